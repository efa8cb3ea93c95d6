//! Positions of residues in the sequences of their chains, and sequences in one-letter codes.

use super::components;
use super::model::{Chain, Structure};

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
        enum Known {
            Empty,
            Numbered { first: i32, last: i32 },
            Unnumbered,
        }
        let mut chains = vec![Known::Empty; self.chains.len()];
        for residue in &self.residues {
            let Some(known) = chains.get_mut(residue.chain as usize) else {
                continue;
            };
            *known = match (*known, residue.sequence_position) {
                (Known::Empty, Some(first)) => Known::Numbered { first, last: first },
                (Known::Numbered { first, last }, Some(this))
                    if this > last && i64::from(this) - i64::from(first) <= SPAN_MAX =>
                {
                    Known::Numbered { first, last: this }
                }
                _ => Known::Unnumbered,
            };
        }
        let first = |known| match known {
            Known::Numbered { first, .. } => Some(first),
            Known::Empty | Known::Unnumbered => None,
        };
        chains.into_iter().map(first).collect()
    }

    /// The number of chains with a break inside whose rows have no positions in the sequence, so
    /// that it is unknown how many residues lie in the break.
    #[cfg(feature = "cli")]
    pub(crate) fn unnumbered_broken_chains(&self) -> u64 {
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
    #[cfg(feature = "cli")]
    pub(crate) fn sequence_letters(&self) -> Option<String> {
        let components = self.sequence.as_ref()?.iter();
        let letter = |id| components::lookup(id).map_or('X', |known| char::from(known.aa));
        Some(components.map(|id| letter(*id)).collect())
    }
}
