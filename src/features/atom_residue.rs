//! The residue of each atom.

use super::cpu::split::parts;
use super::kernels::{Twin, atom_residue};
use super::layout::{ATOMS, RESIDUES, ResidueSpan};
use super::recorder::FeatureRecorder;
use crate::record::Buffer;
use rayon::prelude::*;

#[derive(Clone, Copy)]
struct AtomResidue(Buffer<u32>);

impl FeatureRecorder<'_> {
    /// The residue of each atom, as its index in the batch plus one; zero for an atom of no
    /// residue. `[atoms]` Records the launch that computes it at the first call.
    pub(super) fn atom_residue(&mut self) -> Buffer<u32> {
        if let Some(AtomResidue(residue_of)) = self.shared() {
            return residue_of;
        }
        let residue_of = self.zeros("atom_residue", ATOMS, 1);
        let (header, residues) = (self.header(), self.residues());
        let args = atom_residue::Args {
            header,
            residues,
            residue_of,
        };
        self.launch_threads(RESIDUES, args);
        self.share(AtomResidue(residue_of)).0
    }
}

/// Writes each atom's residue, as its index in the batch plus one.
impl Twin for atom_residue::Views<'_> {
    fn run(self) {
        let residues = &self.residues[..self.header[RESIDUES] as usize];
        let atoms = parts(self.residue_of, residues.iter().map(ResidueSpan::atoms));
        let numbered = atoms.enumerate();
        numbered.for_each(|(residue, atoms)| atoms.fill(residue as u32 + 1));
    }
}
