//! Streams protein structures into per-residue features, on the replay engine of
//! [`tapeloop_engine`].
//!
//! The names of the engine are here too, so `use tapeloop::*` is enough for a program of both. A program
//! that needs the engine alone depends on the crate `tapeloop-engine`, and one that needs the readers
//! alone on `tapeloop-structure`.
//!
//! - [`structure`]: the readers of PDB, mmCIF and BinaryCIF files, and the model of a structure
//! - [`features`]: the built-in workload: structures in, tables of features out
//!
//! The crate `tapeloop-cli` has the program and its library: configs, and streams of files into tables.
//!
//! The guides: [from a folder to a DataFrame](guides::folder_to_dataframe), [on a
//! cluster](guides::cluster), [read a benchmark report](guides::benchmark_report) and
//! [embed the engine](guides::embed).
//!
//! # Cargo features
//!
//! `default = ["cuda-12040", "supervise"]`. The features `cuda`, `cuda-12040`, `nvtx` and `supervise` are those
//! of [`tapeloop_engine`].

pub mod features;

pub use tapeloop_engine::{
    Backend, Bindings, Buffer, Completion, Counters, DeviceInfo, Engine, EngineConfig, Error,
    ErrorKind, ErrorScope, Executor, Extent, Image, Kernel, Leased, Mode, Pipeline, Policy,
    ReadViews, Recorder, Recording, Result, Sink, Statistics, SubmitOptions, Ticket, Tickets,
    TrySubmitError, TwinLaunch, Workload, WriteViews, backend, error, memory, pipeline, record,
    replay, workload,
};
pub use tapeloop_structure as structure;

/// The guides of `docs/guides`, each a page or two.
#[cfg(any(doc, doctest))]
pub mod guides {
    #[doc = include_str!("../docs/guides/benchmark-report.md")]
    pub mod benchmark_report {}
    #[doc = include_str!("../docs/guides/cluster.md")]
    pub mod cluster {}
    #[doc = include_str!("../docs/guides/embed.md")]
    pub mod embed {}
    #[doc = include_str!("../docs/guides/embed-service.md")]
    pub mod embed_service {}
    #[doc = include_str!("../docs/guides/folder-to-dataframe.md")]
    pub mod folder_to_dataframe {}
}

/// The README's programs are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
