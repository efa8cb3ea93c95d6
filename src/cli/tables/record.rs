//! One structure's results, on their way into the tables.

use crate::features::{FeatureTable, TableName};
use crate::structure::{Chain, Residue, Structure};

/// A structure with its features, and what identifies it.
#[derive(Debug)]
pub struct Record<'a> {
    pub(in super::super) source: &'a str,
    /// The structure's name.
    pub(in super::super) name: &'a str,
    pub(in super::super) structure: &'a Structure,
    pub(in super::super) features: &'a FeatureTable,
    /// The chains that have rows, in the structure's order.
    pub(super) chains: Vec<ChainRow>,
}

/// A chain that has residues.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainRow {
    /// Among the structure's chains.
    pub(super) index: u32,
    pub(super) residues: u32,
    /// Residues that do not follow on the one before them in the chain.
    pub(super) breaks: u32,
}

impl<'a> Record<'a> {
    /// The rows of a structure.
    pub fn new(
        source: &'a str,
        name: &'a str,
        structure: &'a Structure,
        features: &'a FeatureTable,
    ) -> Self {
        Record {
            source,
            name,
            structure,
            features,
            chains: chain_rows(structure),
        }
    }

    /// Rows that the structure has in a table.
    pub(super) fn row_count(&self, table: TableName) -> usize {
        match table {
            TableName::Residues => self.structure.residues.len(),
            TableName::Chains => self.chains.len(),
            TableName::Structures => 1,
        }
    }

    /// Which of a feature's values in a table is a row's.
    pub(super) fn value_index(&self, table: TableName, row: usize) -> usize {
        match table {
            TableName::Residues | TableName::Structures => row,
            TableName::Chains => self.chains[row].index as usize,
        }
    }

    pub(super) fn residue(&self, row: usize) -> &'a Residue {
        &self.structure.residues[row]
    }

    /// The chain of a residue's row.
    pub(super) fn chain_of(&self, row: usize) -> &'a Chain {
        &self.structure.chains[self.residue(row).chain as usize]
    }

    /// The chain of a chain's row.
    pub(super) fn chain(&self, row: usize) -> &'a Chain {
        &self.structure.chains[self.chains[row].index as usize]
    }

    /// Breaks inside all chains.
    pub(super) fn breaks(&self) -> u32 {
        self.chains.iter().map(|chain| chain.breaks).sum()
    }
}

fn chain_rows(structure: &Structure) -> Vec<ChainRow> {
    let new = |index| ChainRow {
        index,
        residues: 0,
        breaks: 0,
    };
    let mut chains: Vec<ChainRow> = (0..structure.chains.len() as u32).map(new).collect();
    let mut last = None;
    for residue in &structure.residues {
        let chain = &mut chains[residue.chain as usize];
        chain.residues += 1;
        // Where a chain begins is no break.
        chain.breaks += u32::from(residue.break_before && last == Some(residue.chain));
        last = Some(residue.chain);
    }
    chains.retain(|chain| chain.residues > 0);
    chains
}
