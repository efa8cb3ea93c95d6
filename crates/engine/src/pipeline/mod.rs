//! *When* batches run: items become batches, and batches pass through slots, stage by stage.
//!
//! ```text
//! items -> batch -> [upload: fill a free slot, submit it] -> [compute: in flight, done in any
//! order] -> [download: unpack, in the order of the items if asked] -> results
//!                     ^------------------- the free slot goes back <-----------+
//! ```
//!
//! `slot` has a type for each state of a slot, `batch` forms batches, `ring` recycles slots,
//! `stages` has one step of each stage. None of them starts threads. Three fronts use them:
//! [`Ring`] for whole batches that the caller, or a [`Packer`], fills in place; [`Pipeline`] for
//! items on the caller's own thread; and [`Engine`], for any number of threads, whose `queue` forms
//! batches and gives them slots, whose `dispatcher` starts and answers them on the thread that
//! closed a batch or freed a slot, and whose `driver` has a thread for each device.

mod batch;
mod breaks_on_panic;
mod build;
mod caller_driven;
mod compute;
mod config;
mod counters;
mod device_results;
mod dispatcher;
mod dot;
mod download;
mod driver;
mod ending;
mod engine;
mod exclusive;
mod leases;
#[cfg(all(test, loom))]
mod loom_tests;
mod meter;
mod ordered_map;
mod outgrown;
mod packer;
mod plan;
mod pool;
mod queue;
mod recorded;
mod recover;
mod reentrancy;
mod resident;
mod resident_version;
mod ring;
mod run_results;
#[cfg(not(loom))]
mod shutdown;
mod slot;
mod stages;
mod statistics;
mod submitting;
mod sync;
mod ticket;
mod timeline;
mod uniforms;
mod unwinding;
mod upload;

pub use build::Shrunk;
pub use caller_driven::Pipeline;
pub use config::{Close, EngineConfig, SLOTS_MAX, SubmitOptions, TrySubmitError};
pub use counters::Counters;
pub use dot::{dot, graph_svg};
pub use ending::Ended;
pub use engine::Engine;
pub use ordered_map::OrderedMap;
pub use packer::{Packed, Packer};
pub use plan::{MemoryLine, MemoryPlan};
pub use ring::{Finished, Ring, Wait};
#[cfg(not(loom))]
pub use shutdown::Unfinished;
pub use slot::{Done, Failed, Filling, Free, Slot};
pub use statistics::{DeviceStatistics, Latencies, Stage, StageTime, Statistics};
pub use submitting::Submitting;
pub use ticket::{Ticket, Tickets};
pub use timeline::{Span, SpanKind, Timeline, TimelineConfig};
pub use uniforms::Uniforms;
