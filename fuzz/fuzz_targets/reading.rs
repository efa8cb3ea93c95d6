//! What all targets share.

use tapeloop::structure::{Assembly, ChainSplit, Models, ReadOptions, Reader};

/// Readers of all models: of deposited chains, of assembly 1, and of one joined structure, each with
/// another rule for chains.
pub(crate) fn readers() -> [Reader; 3] {
    [
        (Models::All, Assembly::Deposited, ChainSplit::Auto),
        (Models::All, Assembly::First, ChainSplit::Number),
        (Models::Joined, Assembly::Deposited, ChainSplit::Ter),
    ]
    .map(|(models, assembly, chain_split)| {
        Reader::new(ReadOptions {
            models,
            assembly,
            chain_split,
            ..ReadOptions::default()
        })
    })
}
