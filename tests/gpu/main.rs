//! Slots, graphs, kernels and features on a real device, many tests at once in one process.
//! Without a device those that need one say "skipped: no device".

#[cfg(feature = "cuda")]
use tapeloop_test_support::gather;
#[cfg(feature = "cuda")]
use tapeloop_test_support::give;
#[cfg(feature = "cuda")]
#[path = "../support/gpu.rs"]
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
mod audit;
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
mod several_slots;
#[cfg(feature = "cuda")]
mod slot;
#[cfg(feature = "cuda")]
mod verify;
