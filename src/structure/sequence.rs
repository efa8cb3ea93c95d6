//! Positions of residues in the sequences of their chains.

use super::model::Structure;

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
        enum Chain {
            Empty,
            Numbered { first: i32, last: i32 },
            Unnumbered,
        }
        let mut chains = vec![Chain::Empty; self.chains.len()];
        for residue in &self.residues {
            let Some(chain) = chains.get_mut(residue.chain as usize) else {
                continue;
            };
            *chain = match (*chain, residue.sequence_position) {
                (Chain::Empty, Some(first)) => Chain::Numbered { first, last: first },
                (Chain::Numbered { first, last }, Some(this))
                    if this > last && i64::from(this) - i64::from(first) <= SPAN_MAX =>
                {
                    Chain::Numbered { first, last: this }
                }
                _ => Chain::Unnumbered,
            };
        }
        let first = |chain| match chain {
            Chain::Numbered { first, .. } => Some(first),
            Chain::Empty | Chain::Unnumbered => None,
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
