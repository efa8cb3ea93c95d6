//! Times the readers, and pdbtbx for comparison, on the plain text of the sample set in memory.
//! Throughput is in atom lines of the files.
//!
//! ```sh
//! cargo bench --no-default-features --features structure --bench readers
//! ```

use std::hint::black_box;
use std::io::{BufReader, Cursor, Read};
use std::panic::catch_unwind;
use std::path::Path;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use flate2::read::MultiGzDecoder;
use tapeloop::structure::{Format, Models, ReadOptions, Reader};

struct Sample {
    text: Vec<u8>,
    /// ATOM and HETATM lines, in all models.
    atom_lines: usize,
}

/// The samples of a format of which pdbtbx reads all atoms too.
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
        match bytes.starts_with(&[0x1f, 0x8b]) {
            true => drop(
                MultiGzDecoder::new(&bytes[..])
                    .read_to_end(&mut text)
                    .unwrap(),
            ),
            false => text = bytes,
        }
        let lines = text.split(|&byte| byte == b'\n');
        let is_atom = |line: &&[u8]| line.starts_with(b"ATOM ") || line.starts_with(b"HETATM");
        let atom_lines = lines.filter(is_atom).count();
        if catch_unwind(|| read_with_pdbtbx(&text, format)).ok() == Some(Some(atom_lines)) {
            samples.push(Sample { text, atom_lines });
        } else {
            println!("left out, pdbtbx does not read it: {}", path.display());
        }
    }
    samples
}

/// How many atoms pdbtbx reads; `None` if it refuses the file.
fn read_with_pdbtbx(text: &[u8], format: Format) -> Option<usize> {
    let format = match format {
        Format::Pdb => pdbtbx::Format::Pdb,
        Format::Mmcif => pdbtbx::Format::Mmcif,
        _ => return None,
    };
    let (structure, _) = pdbtbx::ReadOptions::new()
        .set_format(format)
        .set_level(pdbtbx::StrictnessLevel::Loose)
        .read_raw(BufReader::new(Cursor::new(text)))
        .ok()?;
    Some(structure.total_atom_count())
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
        group.sample_size(10);
        group.bench_function(BenchmarkId::new("pdbtbx", samples.len()), |bencher| {
            bencher.iter(|| {
                for sample in &samples {
                    black_box(read_with_pdbtbx(black_box(&sample.text), format));
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, readers);
criterion_main!(benches);
