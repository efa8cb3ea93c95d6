//! *Record once, loop forever.* A CUDA-graph replay pipeline engine.

pub mod backend;
#[cfg(feature = "cli")]
pub mod cli;
pub mod error;
#[cfg(feature = "features")]
pub mod features;
pub mod pipeline;
pub mod record;
pub mod replay;
pub mod workload;

#[cfg(feature = "structure")]
pub mod structure;

pub use error::{Error, ErrorKind, Result};
