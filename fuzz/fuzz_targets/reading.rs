//! What all targets share.

use tapeloop::structure::{Assembly, Models, ReadOptions, Reader};

/// Two readers of all models: of deposited chains, and of assembly 1.
pub(crate) fn readers() -> [Reader; 2] {
    [Assembly::Deposited, Assembly::First].map(|assembly| {
        Reader::new(ReadOptions {
            models: Models::All,
            assembly,
            ..ReadOptions::default()
        })
    })
}
