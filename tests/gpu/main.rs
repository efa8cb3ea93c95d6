//! Slots, graphs, kernels and features on a real device, many tests at once in one process.
//! Those that need a device are ignored without `--include-ignored`. The driver reads
//! CUDA_VISIBLE_DEVICES once, so tests of the choice of a device start this program again with other values.

#[cfg(feature = "cuda")]
#[path = "../support/every_feature.rs"]
mod every_feature;
#[cfg(feature = "cuda")]
use tapeloop_conformance::give;
#[cfg(feature = "cuda")]
#[path = "../../crates/engine/tests/support/gpu.rs"]
mod gpu;
use tapeloop_test_support::random;
#[cfg(feature = "cuda")]
use tapeloop_test_support::{made_up, samples};
#[cfg(feature = "cuda")]
#[path = "../support/tables.rs"]
mod tables;

#[cfg(feature = "cuda")]
mod allocations;
#[cfg(feature = "cuda")]
mod cards;
mod choice;
#[cfg(feature = "cuda")]
mod copies;
#[cfg(feature = "cuda")]
mod error_codes;
#[cfg(feature = "cuda")]
mod features;
#[cfg(feature = "cuda")]
mod graphs;
#[cfg(feature = "cuda")]
mod kernels;
mod launch_shapes;
#[cfg(feature = "cuda")]
mod programmatic;
#[cfg(feature = "cuda")]
mod slot;
#[cfg(feature = "cuda")]
mod visible;
