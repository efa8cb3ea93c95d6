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
mod caller_driven;
mod compute;
mod counters;
mod dot;
mod download;
mod driver;
mod engine;
mod exclusive;
mod fit_buckets;
#[cfg(all(test, loom))]
mod loom_tests;
mod ordered_map;
mod packer;
mod plan;
mod recorded;
mod recover;
mod reentrancy;
mod ring;
mod slot;
mod stages;
mod statistics;
mod sync;
mod ticket;
mod timeline;
mod upload;
mod vec_pool;

pub use build::Shrunk;
pub use caller_driven::{Delivery, Pipeline, Refused};
pub use counters::Counters;
pub use dot::dot;
pub use engine::{Engine, EngineConfig, SLOTS_MAX, SubmitOptions, TrySubmitError};
pub use fit_buckets::fit_buckets;
pub use ordered_map::OrderedMap;
pub use packer::{Packed, Packer};
pub use plan::{MemoryLine, MemoryPlan};
pub use ring::{Finished, Ring, Wait};
pub use slot::{Done, Failed, Filling, Free, Slot};
pub use statistics::{Latencies, Stage, StageTime, Statistics};
pub use ticket::Ticket;
pub use timeline::{Span, SpanKind, Timeline, TimelineConfig};
