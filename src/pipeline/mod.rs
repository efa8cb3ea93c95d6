//! *When*: batches through slots, stage by stage.
//!
//! ```text
//! items -> batch -> [upload: fill a free slot, submit it] -> [compute: in flight,
//! done in any order] -> [download: unpack, in order where asked] -> results
//!                     ^------------------ the slot, free again <-------------+
//! ```
//!
//! `slot` makes the life of a slot a chain of types, `batch` forms batches,
//! `ring` sends slots round, `stages` is one step of each stage; none of them has
//! threads. There are three fronts over them: [`Ring`] for whole batches that the
//! caller fills in place (or a [`Packer`] with a workload's items), [`Pipeline`] for items on the caller's own thread, and
//! [`Engine`], whose `driver` runs the stages on threads with bounded channels
//! between.

mod batch;
mod build;
mod caller;
mod claim;
mod compute;
mod dot;
mod download;
mod driver;
mod engine;
mod inside;
#[cfg(all(test, loom))]
mod loom_tests;
mod ordered_map;
mod packer;
mod plan;
mod program;
mod recover;
mod ring;
mod sizes;
mod slot;
mod spares;
mod stages;
mod statistics;
mod stats;
mod sync;
mod ticket;
mod timeline;
mod upload;

pub use build::Shrunk;
pub use caller::{Delivery, Pipeline, Refused};
pub use dot::dot;
pub use engine::{Engine, EngineConfig, SLOTS_MAX, SubmitOptions, TrySubmitError};
pub use ordered_map::OrderedMap;
pub use packer::{Packed, Packer};
pub use plan::{MemoryLine, MemoryPlan};
pub use ring::{Finished, Ring, Wait};
pub use sizes::fit_buckets;
pub use slot::{Done, Failed, Filling, Free, Slot};
pub use statistics::{Latencies, Stage, StageTime, Statistics};
pub use stats::Counters;
pub use ticket::Ticket;
pub use timeline::{Span, SpanKind, Timeline, TimelineConfig};
