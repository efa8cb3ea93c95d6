//! *Record once, loop forever.* tapeloop is a CUDA-graph replay pipeline engine,
//! and the protein-structure feature streamer built on it.
//!
//! An embedder brings a [`Workload`]: how large an item is, which commands a
//! batch runs ([`Recorder`] takes them down, once), and how an item is written
//! and read. The [`Engine`] packs items into batches, and each batch goes through
//! a slot, which is pinned memory, a stream, and the batch's commands captured as
//! one CUDA graph: upload, kernels and download are one call, and three slots
//! keep all three busy at once. Every kernel has a CPU twin, so the same program
//! runs where there is no GPU.
//!
//! # Modules, in the order that data takes
//!
//! - [`record`]: *what* runs, as plain data: buffers, kernels, commands, checked once
//! - [`workload`]: *why*: the trait that an embedder implements
//! - [`backend`]: *where*: a device's contract, and the CPU and CUDA ones
//! - [`memory`]: an embedder's own buffers beside the engine's, from a pool
//! - [`replay`]: *how*: a recording against a slot's addresses, captured and launched
//! - [`pipeline`]: *when*: batches, slots and stages; [`Engine`]
//! - `structure`, `features`, `cli`: the feature streamer, each behind its Cargo
//!   feature of that name
//! - `bench`: how fast all of that is, behind the feature `bench`
//!
//! # Cargo features
//!
//! `default = ["cli", "cuda-12040"]`. With `default-features = false` the engine
//! comes alone, without Arrow and without readers. `cuda-12040` to `cuda-13000`
//! choose the driver API that the bindings are of, and exclude each other; the
//! driver is loaded at run time, so none of them needs CUDA to build. `nvtx` beside
//! one of them shows the stages in Nsight Systems. `supervise` adds devices behind a
//! worker process (Linux).

pub mod backend;
#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "cli")]
pub mod cli;
pub mod error;
#[cfg(feature = "features")]
pub mod features;
pub mod memory;
pub mod pipeline;
pub mod record;
pub mod replay;
#[cfg(feature = "structure")]
pub mod structure;
#[cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "the timeline needs a part of it")
)]
mod svg;
pub mod workload;

pub use backend::{Backend, DeviceInfo};
pub use error::{Error, ErrorKind, ErrorScope, Result};
pub use pipeline::{Counters, Engine, EngineConfig, Statistics, Ticket};
pub use record::{Buffer, Image, Kernel, Recorder, Recording, TwinLaunch};
pub use replay::{Bindings, Executor, Mode};
pub use workload::{Completion, Extent, ReadViews, Sink, Workload, WriteViews};

/// The README's programs are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
