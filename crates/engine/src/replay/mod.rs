//! *How*: replays a recording over a slot's addresses.
//!
//! Only [`lower`] turns a command into an [`Op`](crate::backend::Op). Stream calls, captures,
//! explicit graphs and changes of parameters all use the same operations, so every way to replay
//! does the same work.

mod audit;
mod batch;
mod bindings;
mod buckets;
mod deadline;
mod declared_memory;
mod dot;
mod executor;
mod graph;
mod graph_retry;
mod hazards;
mod lower;
mod policy;
mod ready_batch;
mod ready_buckets;
mod replay_counts;
mod shadow_check;
mod stage_drawing;
mod submit;
pub mod timed;
mod update_ladder;

pub use audit::Audit;
pub use bindings::Bindings;
pub(crate) use buckets::check_ladder;
pub use buckets::{Bucket, Buckets};
pub(crate) use deadline::give_up;
pub use executor::Executor;
pub use hazards::hazards;
pub use lower::{Lowered, lower};
pub use policy::{Build, Fallback, MAPPED_BYTES_MAX, Mode, Policy, Transfer, Verify};
pub use replay_counts::Replay;
pub(crate) use submit::{enqueue_copy, enqueue_zeros};
pub use update_ladder::{Rung, Updates};
