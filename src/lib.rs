//! *Record once, loop forever.* A CUDA-graph replay pipeline engine.

pub mod backend;
pub mod error;
pub mod record;
pub mod workload;

#[cfg(feature = "structure")]
pub mod structure;

pub use error::{Error, ErrorKind, Result};
