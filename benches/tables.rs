//! The Parquet sink: results that are already computed, into files that are flushed to
//! the disk. Rates are rows of residues, and bytes of all tables' files.
//!
//! ```sh
//! cargo bench --bench tables
//! ```

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::cli::tables::{Record, TableSettings, Tables, folders};
use tapeloop::features::{FeatureConfig, FeatureTable, Features, Input};
use tapeloop::structure::{ReadOptions, Reader, Structure};
use tapeloop::workload::Completion;
use tapeloop::{Engine, EngineConfig};
use tempfile::TempDir;

/// How often the samples are written.
const ROUNDS: u64 = 10;

/// The samples, with all features.
fn results(pool: &Arc<ThreadPool>) -> Vec<(Structure, FeatureTable)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut reader = Reader::new(ReadOptions::default());
    let structures = files.iter().filter_map(|file| reader.read_path(file).ok());
    let structures: Vec<Structure> = structures.flatten().collect();
    let inputs = structures.into_iter().map(|structure| Input {
        source: String::new(),
        ordinal: 0,
        structure: Ok(structure),
    });
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(pool)));
    let features = Features::new(FeatureConfig::default()).unwrap();
    let config = EngineConfig::new(Features::capacity(4096));
    let mut engine = Engine::new(features, &[backend], Arc::clone(pool), &config).unwrap();
    let mut results = Vec::new();
    let mut sink = |completion: Completion<Features>| {
        results.push((completion.item.structure?, completion.result?));
        Ok(())
    };
    engine.run(inputs, &mut sink).unwrap();
    results
}

fn new_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    folders().for_each(|table| fs::create_dir(folder.path().join(table)).unwrap());
    folder
}

fn write(folder: &Path, results: &[(Structure, FeatureTable)], pool: &Arc<ThreadPool>) {
    let config = FeatureConfig::default();
    let columns = |table| config.columns(table);
    let settings = TableSettings::default();
    let mut tables = Tables::new(folder, settings, columns, &[], Arc::clone(pool));
    let all = (0..ROUNDS).flat_map(|_| results);
    for (ordinal, (structure, features)) in (0..).zip(all) {
        tables.advance(ordinal).unwrap();
        let record = Record::new("sample.cif", "sample", structure, features);
        tables.append(&record).unwrap();
    }
    assert_eq!(tables.finish().unwrap().parts, 1);
}

fn bytes_under(folder: &Path) -> u64 {
    let files = folders().flat_map(|table| fs::read_dir(folder.join(table)).unwrap());
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}

fn tables(criterion: &mut Criterion) {
    let pool = Arc::new(ThreadPoolBuilder::new().build().unwrap());
    let results = results(&pool);
    let rows: usize = results.iter().map(|(one, _)| one.residues.len()).sum();
    let folder = new_folder();
    write(folder.path(), &results, &pool);
    let mut group = criterion.benchmark_group("tables");
    group.throughput(Throughput::ElementsAndBytes {
        elements: ROUNDS * rows as u64,
        bytes: bytes_under(folder.path()),
    });
    group.bench_function("write", |bencher| {
        let write = |folder: TempDir| {
            write(folder.path(), &results, &pool);
            folder
        };
        bencher.iter_batched(new_folder, write, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    targets = tables
}
criterion_main!(benches);
