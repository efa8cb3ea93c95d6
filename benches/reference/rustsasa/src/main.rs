//! RustSASA over many structures, as its own program goes over a folder: a structure on
//! each thread.
//!
//! `rustsasa kernel ATOMS POINTS THREADS` reads little-endian structures into memory
//! first, each a u32 count and four f32 (x, y, z, radius in A) an atom.
//! `rustsasa files LIST POINTS THREADS` reads the PDB and mmCIF files that LIST names, a
//! path a line, and takes the radii that RustSASA has for their atoms.
//! Both print the seconds that it took, the total area in A^2, and how many failed.

use pdbtbx::{ReadOptions, StrictnessLevel};
use rayon::prelude::*;
use rust_sasa::options::{AtomLevel, SASAOptions};
use rust_sasa::{Atom, calculate_sasa_internal};
use std::time::Instant;

const USAGE: &str = "usage: rustsasa kernel|files FILE POINTS THREADS";
const PROBE: f32 = 1.4;

fn structures(bytes: &[u8]) -> Vec<Vec<Atom>> {
    let mut words = bytes
        .chunks_exact(4)
        .map(|word| <[u8; 4]>::try_from(word).expect("four bytes"));
    let mut structures = Vec::new();
    while let Some(count) = words.next() {
        let mut float = || f32::from_le_bytes(words.next().expect("a whole structure"));
        let atoms = (0..u32::from_le_bytes(count) as usize).map(|id| Atom {
            position: [float(), float(), float()],
            radius: float(),
            id,
            parent_id: None,
        });
        structures.push(atoms.collect());
    }
    structures
}

fn total(areas: &[f32]) -> f64 {
    areas.iter().copied().map(f64::from).sum()
}

/// The area of a file's protein atoms; `None` if it cannot be read.
fn area_of_file(path: &str, points: usize) -> Option<f64> {
    let mut reading = ReadOptions::default();
    reading.set_level(StrictnessLevel::Loose);
    let (structure, _) = reading.read(path).ok()?;
    let options = SASAOptions::<AtomLevel>::new()
        .with_threads(1)
        .with_n_points(points)
        .with_probe_radius(PROBE)
        .with_allow_vdw_fallback(true);
    Some(total(&options.process(&structure).ok()?))
}

/// Prints what `area` makes of all, on so many threads.
fn measure<T, Area>(items: &[T], threads: usize, area: Area)
where
    T: Sync,
    Area: Fn(&T) -> Option<f64> + Send + Sync,
{
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let pool = pool.build().expect("threads");
    let start = Instant::now();
    let areas: Vec<Option<f64>> = if threads == 1 {
        items.iter().map(area).collect()
    } else {
        pool.install(|| items.par_iter().map(area).collect())
    };
    let seconds = start.elapsed().as_secs_f64();
    let total: f64 = areas.iter().flatten().sum();
    let failed = areas.iter().filter(|area| area.is_none()).count();
    println!("{seconds} {total} {failed}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [part, file, points, threads] = arguments[..] else {
        panic!("{USAGE}");
    };
    let points = points.parse().expect("a number of points");
    let threads = threads.parse().expect("a number of threads");
    match part {
        "kernel" => {
            let structures = structures(&std::fs::read(file).expect("the file of atoms"));
            measure(&structures, threads, |atoms| {
                Some(total(&calculate_sasa_internal(atoms, PROBE, points, 1)))
            });
        }
        "files" => {
            let list = std::fs::read_to_string(file).expect("the list of files");
            let paths: Vec<&str> = list.lines().collect();
            measure(&paths, threads, |path| area_of_file(path, points));
        }
        _ => panic!("{USAGE}"),
    }
}
