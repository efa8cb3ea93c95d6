//! The kinds of points that are sorted by cell.

use super::constants::FLAG_MASK;
use super::layout::{ATOMS, RESIDUES};

/// Bits of the flags of a kind of points; see `density.rs`.
pub(super) const FLAG_BITS: u32 = FLAG_MASK.count_ones();

/// A kind of points that are sorted by cell.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CellKind {
    /// All atoms but those of ligands, by cell of their structure's `atom_grid`.
    Atoms,
    /// All atoms and those of ligands, by cell of their structure's `atom_grid`.
    BoundAtoms,
    /// C-alphas, by cell of their structure's `residue_grid`.
    Ca,
    /// C-betas, by cell of their structure's `residue_grid`.
    Cb,
}

/// All kinds.
pub(super) const CELL_KINDS: [CellKind; 4] = [
    CellKind::Atoms,
    CellKind::BoundAtoms,
    CellKind::Ca,
    CellKind::Cb,
];

impl CellKind {
    /// The name of a buffer of the kind's cells.
    pub(super) fn buffer(self, part: &str) -> String {
        let kind = match self {
            CellKind::Atoms => "atom",
            CellKind::BoundAtoms => "bound",
            CellKind::Ca => "ca",
            CellKind::Cb => "cb",
        };
        format!("{kind}_cell_{part}")
    }

    /// Whether there is a point for each residue, sorted by cell of `residue_grid`.
    pub(super) fn is_of_residues(self) -> bool {
        matches!(self, CellKind::Ca | CellKind::Cb)
    }

    /// The axis that counts the points, which also tells kernels which of the grids to use.
    pub(super) fn axis(self) -> usize {
        if self.is_of_residues() {
            RESIDUES
        } else {
            ATOMS
        }
    }

    /// The position of the kind's bits in a structure's density flags.
    pub(super) fn flag_shift(self) -> u32 {
        FLAG_BITS * self as u32
    }
}
