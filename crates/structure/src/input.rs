//! What a reader made of one input.

use crate::{Result, Structure};

/// An input: a structure, or the error why it could not be read.
#[derive(Clone, Debug)]
pub struct Input {
    /// The path that it was read from.
    pub source: String,
    /// Zero-based index of the source in the list of inputs.
    pub ordinal: u64,
    /// The structure, or the reader's error.
    pub structure: Result<Structure>,
}
