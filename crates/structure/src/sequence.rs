//! Positions of residues in the sequences of their chains, sequences in one-letter codes, and the
//! residues of sequences that were not observed.

use super::atom_table::PolymerKind;
use super::components::{self, Component};
use super::model::{Chain, Structure};
use super::model::{MISSING, Residue, ResidueFlags, SequenceResidue};

/// The largest difference between two positions of a chain that are used. No sequence is as long,
/// and sums of differences fit 32 bits.
const SPAN_MAX: i64 = 1 << 20;

impl Structure {
    /// For each chain the position of its first row in the sequence, if
    /// [`Residue::sequence_position`](super::Residue::sequence_position) numbers the chain: all of
    /// its rows have a position, the positions increase from row to row, and they span at most
    /// 1,048,576. `None` for any other chain: there, differences of rows stand for differences of
    /// positions.
    pub fn first_positions(&self) -> Vec<Option<i32>> {
        #[derive(Clone, Copy)]
        enum ChainNumbering {
            Empty,
            Numbered { first: i32, last: i32 },
            Unnumbered,
        }
        let mut chains = vec![ChainNumbering::Empty; self.chains.len()];
        for residue in &self.residues {
            let Some(known) = chains.get_mut(residue.chain as usize) else {
                continue;
            };
            *known = match (*known, residue.sequence_position) {
                (ChainNumbering::Empty, Some(first)) => {
                    ChainNumbering::Numbered { first, last: first }
                }
                (ChainNumbering::Numbered { first, last }, Some(this))
                    if this > last && i64::from(this) - i64::from(first) <= SPAN_MAX =>
                {
                    ChainNumbering::Numbered { first, last: this }
                }
                _ => ChainNumbering::Unnumbered,
            };
        }
        let first = |known| match known {
            ChainNumbering::Numbered { first, .. } => Some(first),
            ChainNumbering::Empty | ChainNumbering::Unnumbered => None,
        };
        chains.into_iter().map(first).collect()
    }

    /// The number of chains with a break inside whose rows have no positions in the sequence, so
    /// that it is unknown how many residues lie in the break.
    #[doc(hidden)]
    pub fn unnumbered_broken_chains(&self) -> u64 {
        let rows = self.residues.iter().zip(self.residues.iter().skip(1));
        let broken = rows.filter(|(before, this)| this.break_before && before.chain == this.chain);
        let mut chains: Vec<u32> = broken.map(|(_, residue)| residue.chain).collect();
        if chains.is_empty() {
            return 0;
        }
        chains.sort_unstable();
        chains.dedup();
        let first = self.first_positions();
        let is_unnumbered = |&&chain: &&u32| first.get(chain as usize).copied().flatten().is_none();
        chains.iter().filter(is_unnumbered).count() as u64
    }
}

impl Chain {
    /// The one-letter codes of [`Chain::sequence`]: those of the components' parents, and `X` for a
    /// component without one.
    #[doc(hidden)]
    pub fn sequence_letters(&self) -> Option<String> {
        let residues = self.sequence.as_ref()?.iter();
        let letter = |id| components::lookup(id).map_or('X', |known| char::from(known.aa));
        Some(residues.map(|residue| letter(residue.comp_id)).collect())
    }
}

/// A residue of a chain's sequence that was not observed: it is not among [`Structure::residues`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnobservedResidue {
    /// The residue, without atoms.
    pub residue: Residue,
    /// Whether the file states its author's number; 0 stands for it otherwise.
    pub is_numbered: bool,
    /// The index among [`Structure::residues`] of the residue that it comes before; their number if it comes last.
    pub before: usize,
}

impl Structure {
    /// The amino acids of [`Chain::sequence`] that have no row, sorted by the rows that they come
    /// before. Chains without rows or without a sequence have none, and so do those whose rows have no
    /// positions in the sequence, or positions beyond it.
    #[doc(hidden)]
    pub fn unobserved(&self) -> Vec<UnobservedResidue> {
        /// How far the sequence of a chain has been compared with its rows.
        struct SequenceCursor<'a> {
            sequence: &'a [SequenceResidue],
            /// Positions before this one have been looked at; from 0.
            next: usize,
            last_row: usize,
        }
        let mut chains: Vec<Option<SequenceCursor<'_>>> =
            self.chains.iter().map(|_| None).collect();
        for ((first, chain), open) in self
            .first_positions()
            .iter()
            .zip(&self.chains)
            .zip(&mut chains)
        {
            let (Some(1..), Some(sequence)) = (first, &chain.sequence) else {
                continue;
            };
            *open = Some(SequenceCursor {
                sequence,
                next: 0,
                last_row: 0,
            });
        }
        for residue in &self.residues {
            let open = &mut chains[residue.chain as usize];
            let length = open.as_ref().map_or(0, |open| open.sequence.len());
            if residue
                .sequence_position
                .is_none_or(|position| position as usize > length)
            {
                *open = None;
            }
        }
        let mut found = Vec::new();
        for (row, residue) in self.residues.iter().enumerate() {
            let Some(open) = &mut chains[residue.chain as usize] else {
                continue;
            };
            let position = residue.sequence_position.unwrap_or_default() as usize;
            for index in open.next..position - 1 {
                found.extend(self.unobserved_at(residue.chain, open.sequence, index, row));
            }
            (open.next, open.last_row) = (position, row);
        }
        // Residues after a chain's last row come before those that precede the next chain's first row.
        let mut ends = Vec::new();
        for (chain, open) in (0..).zip(&chains) {
            if let Some(open) = open {
                for index in open.next..open.sequence.len() {
                    ends.extend(self.unobserved_at(chain, open.sequence, index, open.last_row + 1));
                }
            }
        }
        ends.extend(found);
        ends.sort_by_key(|unobserved| unobserved.before);
        ends
    }

    /// The residue at an index of a chain's sequence, if it is an amino acid; a component that the table
    /// lacks counts as one.
    fn unobserved_at(
        &self,
        chain: u32,
        sequence: &[SequenceResidue],
        index: usize,
        before: usize,
    ) -> Option<UnobservedResidue> {
        let SequenceResidue {
            comp_id,
            auth_seq_id,
            ins_code,
        } = sequence[index];
        let component = components::lookup(comp_id);
        let component = component.unwrap_or_else(|| Component::unknown(PolymerKind::Amino));
        if component.kind != PolymerKind::Amino {
            return None;
        }
        let position = index as i32 + 1;
        let has_label = self.chains[chain as usize].label_asym_id.is_some();
        let residue = Residue {
            chain,
            auth_seq_id: auth_seq_id.unwrap_or(0),
            ins_code,
            label_seq_id: has_label.then_some(position),
            sequence_position: Some(position),
            comp_id,
            parent_comp_id: component.parent,
            aa: component.aa,
            break_before: true,
            n: MISSING,
            ca: MISSING,
            c: MISSING,
            o: MISSING,
            cb: MISSING,
            uniprot: None,
            flags: ResidueFlags::NONE,
        };
        Some(UnobservedResidue {
            residue,
            is_numbered: auth_seq_id.is_some(),
            before,
        })
    }
}
