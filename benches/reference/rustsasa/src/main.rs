//! RustSASA's kernel, one thread, over atoms that are in memory.
//!
//! `rustsasa ATOMS POINTS` reads little-endian structures, each a u32 count and
//! four f32 (x, y, z, radius in A) an atom, and prints the seconds that the
//! kernel took and the total area in A^2.

use rust_sasa::{Atom, calculate_sasa_internal};
use std::time::Instant;

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

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().expect("usage: rustsasa ATOMS POINTS");
    let structures = structures(&std::fs::read(next()).expect("the file of atoms"));
    let points = next().parse().expect("a number of points");
    let start = Instant::now();
    let areas = structures
        .iter()
        .flat_map(|atoms| calculate_sasa_internal(atoms, 1.4, points, 1));
    let total: f64 = areas.map(f64::from).sum();
    println!("{} {total}", start.elapsed().as_secs_f64());
}
