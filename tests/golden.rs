//! The sample set against the golden tables in `tests/oracles`, which NumPy,
//! SciPy and Biopython computed from atoms that gemmi read.
#![cfg(feature = "features")]

mod tables;

use flate2::read::GzDecoder;
use rayon::ThreadPoolBuilder;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{
    Column, FeatureConfig, FeatureName, FeatureTable, Features, NULL_COUNT, TableName,
};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::{ReadOptions, Reader, Structure};

const RELATIVE_TOLERANCE: f64 = 1e-4;
/// For values near zero, as `b_z` at the mean.
const ABSOLUTE_FLOOR: f64 = 1e-6;

struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn parse(text: &str) -> Self {
        let split = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines().map(split);
        Table {
            columns: lines.next().expect("a header"),
            rows: lines.collect(),
        }
    }

    fn column(&self, name: &str) -> usize {
        let found = self.columns.iter().position(|column| column == name);
        found.unwrap_or_else(|| panic!("the golden table has no column {name}"))
    }

    /// Rows by the sources that they are of, in order.
    fn by_source(&self) -> BTreeMap<&str, Vec<&[String]>> {
        let source = self.column("source");
        let mut rows: BTreeMap<&str, Vec<&[String]>> = BTreeMap::new();
        for row in &self.rows {
            rows.entry(&row[source]).or_default().push(row);
        }
        rows
    }
}

fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn golden_residues() -> Table {
    let file = File::open(path("tests/oracles/residues.tsv.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    Table::parse(&text)
}

fn samples() -> Vec<(String, Structure)> {
    let mut files: Vec<_> = fs::read_dir(path("samples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut reader = Reader::new(ReadOptions::default());
    let is_structure = |file: &&PathBuf| file.extension().is_some_and(|e| e != "md");
    let first_model = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let mut models = reader
            .read_path(file)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, models.swap_remove(0))
    };
    files.iter().filter(is_structure).map(first_model).collect()
}

/// The features that the golden tables have.
fn config() -> FeatureConfig {
    FeatureConfig {
        features: vec![
            FeatureName::ContactNumber,
            FeatureName::Wcn,
            FeatureName::HseA,
            FeatureName::BFactor,
            FeatureName::Rg,
        ],
        ..FeatureConfig::default()
    }
}

fn compute(samples: &[(String, Structure)]) -> Vec<FeatureTable> {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let workload = Features::new(config()).unwrap();
    let mut config = EngineConfig::new(Features::capacity(2048));
    config.buckets.push(Features::capacity(32_768));
    let mut engine = Engine::new(workload, &[backend], pool, &config).unwrap();
    tables::tables(&mut engine, samples.iter().map(|(_, structure)| structure))
}

/// Compares one column; an empty field is null.
fn compare(place: &str, found: &Column, expected: &[&str]) {
    match found {
        Column::Count(found) => {
            assert_eq!(found.len(), expected.len(), "{place}: rows");
            for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
                let expected = expected.parse().unwrap_or(NULL_COUNT);
                assert_eq!(*found, expected, "{place}, row {row}");
            }
        }
        Column::Real(found) => {
            assert_eq!(found.len(), expected.len(), "{place}: rows");
            for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
                let expected = expected.parse().unwrap_or(f64::NAN);
                let error = (f64::from(*found) - expected).abs();
                let close = error <= (expected.abs() * RELATIVE_TOLERANCE).max(ABSOLUTE_FLOOR);
                let null = found.is_nan() && expected.is_nan();
                assert!(
                    close || null,
                    "{place}, row {row}: {found}, expected {expected}"
                );
            }
        }
    }
}

#[test]
fn the_samples_match_the_golden_tables() {
    let residues = golden_residues();
    let structures =
        Table::parse(&fs::read_to_string(path("tests/oracles/structures.tsv")).unwrap());
    let samples = samples();
    let tables = compute(&samples);
    let (residue_rows, structure_rows) = (residues.by_source(), structures.by_source());
    let config = config();
    for ((source, structure), table) in samples.iter().zip(&tables) {
        let rows = residue_rows
            .get(source.as_str())
            .map_or(&[][..], Vec::as_slice);
        for (decl, column) in config
            .columns(TableName::Residues)
            .iter()
            .zip(&table.residues)
        {
            let at = residues.column(&decl.name);
            let expected: Vec<&str> = rows.iter().map(|row| row[at].as_str()).collect();
            compare(&format!("{source}, {}", decl.name), column, &expected);
        }
        let row = structure_rows[source.as_str()][0];
        let count = |name: &str| row[structures.column(name)].parse::<usize>().unwrap();
        assert_eq!(
            structure.residues.len(),
            count("residues"),
            "{source}: residues"
        );
        assert_eq!(structure.xyz.len(), count("atoms"), "{source}: atoms");
        let pairs = structure.residues.windows(2);
        let breaks = pairs
            .filter(|p| p[1].break_before && p[0].chain == p[1].chain)
            .count();
        assert_eq!(breaks, count("breaks"), "{source}: breaks");
        for (decl, column) in config
            .columns(TableName::Structures)
            .iter()
            .zip(&table.structure)
        {
            let expected = row[structures.column(&decl.name)].as_str();
            compare(&format!("{source}, {}", decl.name), column, &[expected]);
        }
    }
    assert_eq!(
        structure_rows.len(),
        samples.len(),
        "every sample has a golden row"
    );
}
