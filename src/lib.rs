//! *Record once, loop forever.* A CUDA-graph replay pipeline engine.

pub mod error;

#[cfg(feature = "structure")]
pub mod structure;

pub use error::{Error, ErrorKind, Result};
