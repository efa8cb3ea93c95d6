//! Twin of `kernels/radius_of_gyration.cu`.

use super::super::layout::Atom;
use super::split::structures;
use super::{atoms_of, tree_sum};
use crate::record::TwinLaunch;
use rayon::prelude::*;

/// Threads of the kernel's block, whose partial sums are added as a tree.
const THREADS: usize = 256;

/// Root mean square distance of atoms from their mean.
pub(in super::super) fn radius_of_gyration(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let structures = structures(header, launch.read());
    let atoms: &[Atom] = bytemuck::cast_slice(launch.read::<i32>());
    let radii: &mut [f32] = launch.write();
    let axis: u32 = launch.scalar();

    let of =
        |(structure, radius): (_, &mut f32)| *radius = radius_of(&atoms[atoms_of(structure, axis)]);
    structures.par_iter().zip(radii).for_each(of);
}

fn radius_of(atoms: &[Atom]) -> f32 {
    let (mut x, mut y, mut z, mut count) = (0i64, 0i64, 0i64, 0i64);
    for p in atoms.iter().filter(|p| p.is_present()) {
        let p = p.position;
        x += i64::from(p.x);
        y += i64::from(p.y);
        z += i64::from(p.z);
        count += 1;
    }
    if count == 0 {
        return f32::NAN;
    }
    let n = count as f64;
    let (mean_x, mean_y, mean_z) = (x as f64 / n, y as f64 / n, z as f64 / n);
    let mut squares = [0f64; THREADS];
    for (lane, p) in (0..THREADS).cycle().zip(atoms) {
        if p.is_present() {
            let p = p.position;
            let dx = f64::from(p.x) - mean_x;
            let dy = f64::from(p.y) - mean_y;
            let dz = f64::from(p.z) - mean_z;
            squares[lane] += dx * dx + dy * dy + dz * dz;
        }
    }
    ((tree_sum(&mut squares) / n).sqrt() * 0.001) as f32
}
