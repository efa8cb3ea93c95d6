//! What a reader made of one input.

use crate::{CheckedStructure, Result, Structure};

/// An input: a structure, or the error why it could not be read.
#[derive(Clone, Debug)]
pub struct Input {
    /// The path that it was read from.
    pub source: String,
    /// Zero-based index of the source in the list of inputs.
    pub ordinal: u64,
    /// The model's number in its file; `None` if the file could not be read.
    pub model: Option<i32>,
    /// The structure, or the error of the reader or of [`CheckedStructure::new`].
    pub structure: Result<CheckedStructure>,
}

impl Input {
    /// An input of what a reader returned. Checks a structure on the calling thread, in time that is
    /// linear in its size.
    pub fn new(source: impl Into<String>, ordinal: u64, structure: Result<Structure>) -> Self {
        Input {
            source: source.into(),
            ordinal,
            model: structure.as_ref().ok().map(|structure| structure.model),
            structure: structure.and_then(CheckedStructure::new),
        }
    }
}
