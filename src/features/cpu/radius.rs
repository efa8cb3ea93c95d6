//! The radius of gyration of the atoms that a block goes through:
//! `kernels/radius.cuh`.

use super::super::layout::Atom;
use super::tree_sum;

/// Threads of a kernel's block, whose partial sums are added as a tree.
pub(super) const THREADS: usize = 256;

/// Root mean square distance of atoms from their mean in A; each atom comes with its
/// thread.
pub(super) fn radius_of<'a>(atoms: impl Iterator<Item = (usize, &'a Atom)> + Clone) -> f32 {
    let (mut x, mut y, mut z, mut count) = (0i64, 0i64, 0i64, 0i64);
    for (_, atom) in atoms.clone() {
        let p = atom.position;
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
    for (lane, atom) in atoms {
        let p = atom.position;
        let dx = f64::from(p.x) - mean_x;
        let dy = f64::from(p.y) - mean_y;
        let dz = f64::from(p.z) - mean_z;
        squares[lane] += dx * dx + dy * dy + dz * dz;
    }
    ((tree_sum(&mut squares) / n).sqrt() * 0.001) as f32
}
