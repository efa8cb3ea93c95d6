//! The choice of a device. A process of its own: the driver reads CUDA_VISIBLE_DEVICES once, so
//! these tests start this program again with other values.

#[cfg(feature = "cuda")]
#[path = "../support/every_feature.rs"]
mod every_feature;
#[cfg(feature = "cuda")]
#[path = "../../crates/engine/tests/support/gpu.rs"]
mod gpu;
#[cfg(feature = "cuda")]
use tapeloop_test_support::samples;
#[cfg(feature = "cuda")]
#[path = "../support/tables.rs"]
mod tables;

#[cfg(feature = "cuda")]
mod cards;
mod choice;
#[cfg(feature = "cuda")]
mod visible;
