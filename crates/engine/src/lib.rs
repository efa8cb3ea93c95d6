//! *Record once, loop forever.* A CUDA-graph replay pipeline engine.
//!
//! An embedder brings a [`Workload`]: how large an item is, which commands a
//! batch runs ([`Recorder`] takes them down, once), and how an item is written
//! and read. The [`Engine`] packs items into batches, and each batch goes through
//! a slot, which is pinned memory, a stream, and the batch's commands captured as
//! one CUDA graph: upload, kernels and download are one call, and three slots
//! keep all three busy at once. Every kernel has a CPU twin, so the same program
//! runs where there is no GPU.
//!
//! # The shortest program
//!
//! It needs one dependency, and no CUDA to build:
//!
//! ```toml
//! [dependencies]
//! tapeloop-engine = { path = "../tapeloop/crates/engine", features = ["cuda-12040"] }
//! ```
//!
//! ```
//! use tapeloop_engine::*;
//!
//! const TEXT: &str = r#"
//! extern "C" __global__ void twice(const unsigned* header, const float* x, float* y)
//! {
//!     const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
//!     if (i < header[0])
//!         y[i] = 2 * x[i];
//! }"#;
//!
//! /// The kernel's CPU twin.
//! fn twice(launch: &mut TwinLaunch<'_>) {
//!     let len = launch.read::<u32>()[0] as usize;
//!     let x = &launch.read::<f32>()[..len];
//!     for (y, x) in launch.write::<f32>().iter_mut().zip(x) {
//!         *y = 2.0 * x;
//!     }
//! }
//!
//! struct Twice(Kernel);
//!
//! impl Workload for Twice {
//!     type Item = Vec<f32>;
//!     type Output = Vec<f32>;
//!     type Buffers = [Buffer<f32>; 2];
//!
//!     fn axes(&self) -> &'static [&'static str] {
//!         &["elements"]
//!     }
//!
//!     fn extent(&self, item: &Vec<f32>) -> Result<Extent> {
//!         Ok([item.len() as u32].into())
//!     }
//!
//!     fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<[Buffer<f32>; 2]> {
//!         let header = recorder.header();
//!         let x = recorder.upload_buffer("x", 0, 1);
//!         let y = recorder.download_buffer("y", 0, 1);
//!         recorder.upload(header);
//!         recorder.upload(x);
//!         let blocks = recorder.capacity(0).div_ceil(128);
//!         recorder.launch(&self.0, blocks, &[header.into(), x.into(), y.into()]);
//!         recorder.download(y);
//!         Ok([x, y])
//!     }
//!
//!     fn write(
//!         &self,
//!         [x, _]: &[Buffer<f32>; 2],
//!         item: &Vec<f32>,
//!         _: Extent,
//!         views: &mut WriteViews<'_>,
//!     ) -> Result<()> {
//!         views.take(*x).copy_from_slice(item);
//!         Ok(())
//!     }
//!
//!     fn read(
//!         &self,
//!         [_, y]: &[Buffer<f32>; 2],
//!         _: &Vec<f32>,
//!         _: Extent,
//!         views: &ReadViews<'_>,
//!     ) -> Result<Vec<f32>> {
//!         Ok(views.get(*y).to_vec())
//!     }
//! }
//!
//! fn main() -> Result<()> {
//!     // SAFETY: it touches the first `header[0]` elements of `x` and `y`, which the engine
//!     // keeps within their capacity.
//!     let kernel = unsafe { Kernel::from_cuda("twice.cu", TEXT, "twice") }?.twin(twice);
//!     let engine = Engine::auto(Twice(kernel), &EngineConfig::new([1 << 20]))?;
//!     let done = engine.submit(vec![1.0, 2.0])?.wait()?;
//!     assert_eq!(done.result?, [2.0, 4.0]);
//!     Ok(())
//! }
//! ```
//!
//! The guide to embedding (docs/guides/embed.md) explains such a program line by line.
//!
//! # Modules, in the order that data takes
//!
//! - [`record`]: *what* runs, as plain data: buffers, kernels, commands, checked once
//! - [`workload`]: *why*: the trait that an embedder implements
//! - [`backend`]: *where*: the CPU, GPUs and the choice among them; [`backend::contract`] is for
//!   authors of others, and unstable
//! - [`memory`]: buffers for an embedder's own use, from a pool
//! - [`replay`]: *how*: a recording against a slot's addresses, captured and launched
//! - [`pipeline`]: *when*: batches, slots and stages; [`Engine`]
//!
//! # Cargo features
//!
//! Without any, the CPU is the one device. `cuda` adds GPUs. `cuda-12040` also chooses the version of
//! the driver API that the bindings are of, which is that of the oldest driver that works. Versions
//! exclude each other, so a library selects `cuda` alone, and the program `cuda-12040` or a later one, as
//! a feature of `cudarc`; if nothing in the build selects one, the build script of `cudarc` lists them. The
//! driver is loaded at run time, so that no build needs CUDA. `nvtx` shows the stages in Nsight
//! Systems. `supervise` adds devices behind a worker process (Linux).

pub mod backend;
pub mod memory;
pub mod pipeline;
pub mod record;
pub mod replay;
pub mod workload;

pub use backend::{Backend, DeviceInfo};
pub use pipeline::{
    Counters, Engine, EngineConfig, Pipeline, Statistics, SubmitOptions, Ticket, Tickets,
    TrySubmitError, Wait,
};
pub use record::{Buffer, Image, Kernel, Recorder, Recording, TwinLaunch};
pub use replay::{Bindings, Build, Executor, Mode, Policy};
pub use tapeloop_error as error;
pub use tapeloop_error::{Error, ErrorKind, ErrorScope, Result};
pub use workload::{
    Completion, DeviceInputs, DeviceLeased, Extent, Leased, ReadViews, Sink, Workload, WriteViews,
};

/// What the other crates of tapeloop use. It may change with every version.
#[doc(hidden)]
pub mod internal {
    /// The bindings, for tests.
    #[cfg(feature = "cuda")]
    pub use cudarc;

    #[cfg(feature = "cuda")]
    pub use crate::backend::cuda::compiled;
    pub use crate::backend::devices::device_names;
    pub use crate::backend::doorbell::{Word, Words};
    pub use crate::backend::edges::{NodeRole, programmatic_edges};
    pub use crate::backend::graphs::{Graphs, check_same_build};
    pub use crate::backend::loops::check_loop_in_worker;
    pub use crate::backend::loops::{LoopHandle, Loops};
    pub use crate::backend::refusals::{no_allocations, no_timestamp};
    pub use crate::backend::storage::Storage;
    pub use crate::backend::timestamp::of_whole_batch;
    pub use crate::backend::twin_launch::{Functions, TwinCall, check_words};
}
