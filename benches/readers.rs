//! Times the readers on the plain text of the sample set in memory. `tapeloop bench` with
//! `--references` compares them with other programs.
//! Throughput is in atom lines of the files.
//!
//! ```sh
//! cargo bench -p tapeloop --no-default-features --bench readers
//! ```

use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use flate2::read::MultiGzDecoder;
use tapeloop::structure::{Format, Models, ReadOptions, Reader};

struct Sample {
    text: Vec<u8>,
    /// ATOM and HETATM lines, in all models.
    atom_lines: usize,
}

/// The samples of a format.
fn samples(format: Format) -> Vec<Sample> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.retain(|path| Format::from_name(&path.to_string_lossy()) == Some(format));
    let mut samples = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        let mut text = Vec::new();
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut decoder = MultiGzDecoder::new(&bytes[..]);
            decoder.read_to_end(&mut text).unwrap();
        } else {
            text = bytes;
        }
        let lines = text.split(|&byte| byte == b'\n');
        let is_atom = |line: &&[u8]| line.starts_with(b"ATOM ") || line.starts_with(b"HETATM");
        let atom_lines = lines.filter(is_atom).count();
        samples.push(Sample { text, atom_lines });
    }
    samples
}

fn readers(criterion: &mut Criterion) {
    let mut reader = Reader::new(ReadOptions {
        models: Models::All,
        ..ReadOptions::default()
    });
    for (name, format) in [("pdb", Format::Pdb), ("mmcif", Format::Mmcif)] {
        let samples = samples(format);
        assert!(!samples.is_empty(), "no {name} samples");
        for sample in &samples {
            let structures = reader.read_bytes(&sample.text, format).unwrap();
            let atoms: usize = structures.iter().map(|structure| structure.xyz.len()).sum();
            assert!(0 < atoms && atoms <= sample.atom_lines);
        }
        let atom_lines: usize = samples.iter().map(|sample| sample.atom_lines).sum();
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(atom_lines as u64));
        group.bench_function(BenchmarkId::new("tapeloop", samples.len()), |bencher| {
            bencher.iter(|| {
                for sample in &samples {
                    black_box(reader.read_bytes(black_box(&sample.text), format).unwrap());
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, readers);
criterion_main!(benches);
