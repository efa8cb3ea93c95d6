//! *How fast* all of it is: the benchmarks of [`tapeloop_bench`], and points of features over real
//! structures.

pub mod structures;

pub use tapeloop_bench::*;
