//! What an atom belongs to.

use super::structure_rows::StructureRows;
use std::sync::Arc;

/// What an atom belongs to, by its index among those of its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AtomOwner {
    Residue(usize),
    /// A residue without a row: a nucleotide or a cap.
    Loose(usize),
    Ligand(usize),
}

impl AtomOwner {
    /// The owner at an index of the table of atoms: residues come first, and ligands follow.
    pub(super) fn of_rows(record: &StructureRows, index: usize) -> Self {
        match index.checked_sub(record.structure.residues.len()) {
            None => AtomOwner::Residue(index),
            Some(ligand) => AtomOwner::Ligand(ligand),
        }
    }

    /// The owner at an index of [`Chemistry::owners`](tapeloop::structure::Chemistry::owners).
    pub(super) fn of_chemistry(record: &StructureRows, index: usize) -> Self {
        let structure = &record.structure;
        let Some(other) = index.checked_sub(structure.residues.len()) else {
            return AtomOwner::Residue(index);
        };
        match other.checked_sub(structure.loose_residues.len()) {
            None => AtomOwner::Loose(other),
            Some(ligand) => AtomOwner::Ligand(ligand),
        }
    }

    pub(super) fn res_index(self) -> Option<i32> {
        match self {
            AtomOwner::Residue(residue) => Some(residue as i32),
            AtomOwner::Loose(_) | AtomOwner::Ligand(_) => None,
        }
    }

    pub(super) fn ligand_index(self) -> Option<i32> {
        match self {
            AtomOwner::Ligand(ligand) => Some(ligand as i32),
            AtomOwner::Residue(_) | AtomOwner::Loose(_) => None,
        }
    }

    /// The author's chain; `None` where the file names none.
    pub(super) fn chain(self, record: &StructureRows) -> Option<&str> {
        let id: &Arc<str> = match self {
            AtomOwner::Residue(residue) => &record.chain_of(residue).auth_asym_id,
            AtomOwner::Loose(loose) => {
                let chain = record.structure.loose_residues[loose].chain;
                &record.structure.chains[chain as usize].auth_asym_id
            }
            AtomOwner::Ligand(ligand) => &record.ligand(ligand).auth_asym_id,
        };
        (!id.is_empty()).then_some(&**id)
    }

    /// The index of its chain; `None` for a ligand, which has the author's id of its chain and no index.
    pub(super) fn chain_index(self, record: &StructureRows) -> Option<u32> {
        match self {
            AtomOwner::Residue(residue) => Some(record.residue(residue).chain),
            AtomOwner::Loose(loose) => Some(record.structure.loose_residues[loose].chain),
            AtomOwner::Ligand(_) => None,
        }
    }

    /// The author's number.
    pub(super) fn number(self, record: &StructureRows) -> Option<i32> {
        match self {
            AtomOwner::Residue(residue) => record.number(residue),
            AtomOwner::Loose(loose) => record.structure.loose_residues[loose].auth_seq_id,
            AtomOwner::Ligand(ligand) => record.ligand(ligand).auth_seq_id,
        }
    }

    pub(super) fn ins_code(self, record: &StructureRows) -> u8 {
        match self {
            AtomOwner::Residue(residue) => record.residue(residue).ins_code,
            AtomOwner::Loose(loose) => record.structure.loose_residues[loose].ins_code,
            AtomOwner::Ligand(ligand) => record.ligand(ligand).ins_code,
        }
    }

    pub(super) fn comp_id(self, record: &StructureRows) -> &[u8; 8] {
        match self {
            AtomOwner::Residue(residue) => &record.residue(residue).comp_id,
            AtomOwner::Loose(loose) => &record.structure.loose_residues[loose].comp_id,
            AtomOwner::Ligand(ligand) => &record.ligand(ligand).comp_id,
        }
    }
}
