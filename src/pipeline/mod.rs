//! *When*: batches through slots, stage by stage.
//!
//! ```text
//! items -> batch -> [upload: fill a free slot, submit it] -> [compute: in flight,
//! done in any order] -> [download: unpack, in order where asked] -> results
//!                     ^------------------ the slot, free again <-------------+
//! ```
//!
//! `slot` makes the life of a slot a chain of types, `batch` forms batches,
//! `ring` holds what is in flight and restores order; none of them has
//! threads. `driver` runs the stages on threads with bounded channels between.

mod batch;
mod compute;
mod download;
mod driver;
mod engine;
mod ordered_map;
mod plan;
mod program;
mod ring;
mod slot;
mod stats;
mod ticket;
mod upload;

pub use engine::{Engine, EngineConfig, SLOTS_MAX, SubmitOptions, Wait};
pub use ordered_map::OrderedMap;
pub use plan::{MemoryLine, MemoryPlan};
pub use stats::{Counters, Snapshot};
pub use ticket::Ticket;
