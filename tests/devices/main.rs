//! The choice of a device. A process of its own: the driver reads CUDA_VISIBLE_DEVICES once, so
//! these tests start this program again with other values.

#[cfg(feature = "cuda")]
#[path = "../support/gpu.rs"]
mod gpu;

mod choice;
#[cfg(feature = "cuda")]
mod visible;
