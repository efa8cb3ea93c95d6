//! Coordinates of the residues' atoms.

use super::super::config::CoordinateAtoms;
use tapeloop::structure::{Residue, Structure};

/// For each of N, CA, C, O and CB the coordinates in A, `[residues, 3]`; NaN where the file lacks
/// the atom. Empty for an atom that is not asked for.
#[derive(Clone, Debug, Default)]
pub struct Coordinates([Vec<[f32; 3]>; CoordinateAtoms::COUNT]);

impl Coordinates {
    /// The coordinates of `atoms`.
    pub fn new(structure: &Structure, atoms: CoordinateAtoms) -> Self {
        const INDICES: [fn(&Residue) -> u32; CoordinateAtoms::COUNT] =
            [|r| r.n, |r| r.ca, |r| r.c, |r| r.o, |r| r.cb];
        let angstrom = |position: [i32; 3]| {
            position.map(|thousandths| (f64::from(thousandths) / 1000.0) as f32)
        };
        Coordinates(std::array::from_fn(|atom| {
            if !atoms.has(atom) {
                return Vec::new();
            }
            let residues = structure.residues.iter();
            let positions = residues.map(|residue| structure.position(INDICES[atom](residue)));
            let of_residues = positions.map(|position| position.map_or([f32::NAN; 3], angstrom));
            of_residues.collect()
        }))
    }

    /// The coordinate of a residue's atom; NaN where the file lacks the atom, or it is not asked for.
    pub(super) fn get(&self, atom: usize, axis: usize, residue: usize) -> f32 {
        self.0[atom]
            .get(residue)
            .map_or(f32::NAN, |position| position[axis])
    }
}
