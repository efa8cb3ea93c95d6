//! Slots, graphs, kernels and features on a real device, many tests at once in one process.
//! Those that need a device are ignored without `--include-ignored`.

#[cfg(feature = "cuda")]
use tapeloop_conformance::give;
#[cfg(feature = "cuda")]
#[path = "../../crates/engine/tests/support/gpu.rs"]
mod gpu;
#[cfg(feature = "cuda")]
use tapeloop_test_support::made_up;
use tapeloop_test_support::random;
#[cfg(feature = "cuda")]
#[path = "../support/tables.rs"]
mod tables;

#[cfg(feature = "cuda")]
mod allocations;
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
mod slot;
