//! The library of the program: a config, and what a run does with it.
//!
//! `config` resolves the config, and `plan` chooses the backend for it. During a run, a thread
//! (`source_thread`) lists the files that the config names, the pool reads them into structures
//! (`reading`) with their annotations, the engine computes, and `result_writer` puts the results into the
//! tables (`tables`) of the output folder (`output`), to standard output, or into the record batches of a
//! [`FeatureStream`]. `run_counters` counts, and `run_json` says as JSON what runs.
//!
//! The hidden modules are for the program `tapeloop`, and may change with every version.

#[doc(hidden)]
pub mod config;
#[doc(hidden)]
pub mod core_time;
#[doc(hidden)]
pub mod exit_codes;
mod feature_engine;
#[doc(hidden)]
pub mod feature_list;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
#[doc(hidden)]
pub mod input_count;
#[doc(hidden)]
pub mod interrupt;
#[doc(hidden)]
pub mod output;
#[doc(hidden)]
pub mod oversized;
#[doc(hidden)]
pub mod own_kernels;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod reading;
#[doc(hidden)]
pub mod rejected_batches;
#[doc(hidden)]
pub mod result_writer;
#[doc(hidden)]
pub mod run_counters;
#[doc(hidden)]
pub mod run_json;
#[doc(hidden)]
pub mod selection;
#[doc(hidden)]
pub mod source_thread;
#[doc(hidden)]
pub mod strip;
#[doc(hidden)]
pub mod table_plan;
#[doc(hidden)]
pub mod tables;
#[doc(hidden)]
pub mod terminal;
#[doc(hidden)]
pub mod thread_times;
mod trusted_code;

pub use feature_engine::{FeatureEngine, FeatureStream, Inputs, Next, StreamCounts};
/// The crates of the record batches that [`FeatureStream`] gives.
pub use {arrow_array, arrow_schema};
