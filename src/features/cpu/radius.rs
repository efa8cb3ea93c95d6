//! The radius of gyration of the atoms that a block goes through:
//! `kernels/radius.cuh`.

use super::super::layout::Atom;

/// Root mean square distance of atoms from their mean in A.
///
/// All sums are of whole numbers, about the whole number below the mean, so that
/// neither the atoms' order nor where they lie changes a bit.
pub(super) fn radius_of<'a>(atoms: impl Iterator<Item = &'a Atom> + Clone) -> f32 {
    let (mut sums, mut count) = ([0i64; 3], 0i64);
    let coordinates = |atom: &Atom| <[i32; 3]>::from(atom.position).map(i64::from);
    for atom in atoms.clone() {
        let position = coordinates(atom);
        (0..3).for_each(|axis| sums[axis] += position[axis]);
        count += 1;
    }
    if count == 0 {
        return f32::NAN;
    }
    let below = sums.map(|sum| sum.div_euclid(count));
    // A sum of squares has up to 76 bits.
    let (mut low, mut high) = (0i64, 0i64);
    for atom in atoms {
        let position = coordinates(atom);
        let [dx, dy, dz] = std::array::from_fn(|axis| position[axis] - below[axis]);
        let square = dx * dx + dy * dy + dz * dz;
        low += square & 0xffff_ffff;
        high += square >> 32;
    }
    let n = count as f64;
    let [x, y, z] = sums.map(|sum| sum.rem_euclid(count) as f64 / n);
    let rest = x * x + y * y + z * z;
    let mean = (high as f64 * 4_294_967_296.0 + low as f64) / n;
    ((mean - rest).sqrt() * 0.001) as f32
}
