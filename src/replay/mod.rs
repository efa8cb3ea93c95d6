//! *How*: a recording against a slot's addresses, replayed.
//!
//! [`lower`] alone turns a command into an [`Op`](crate::backend::Op); a stream
//! call, a capture, a node built by hand and a change of parameters apply the
//! same operations, so all ways to replay run the same work.

mod audit;
mod batch;
mod bindings;
mod buckets;
mod choose;
mod deadline;
mod declared;
mod dot;
mod executor;
mod fallback;
mod give;
mod graph;
mod hazards;
mod lower;
mod policy;
pub mod timed;
mod update;
mod verify;

pub use audit::Audit;
pub use bindings::Bindings;
pub(crate) use buckets::check_ladder;
pub use buckets::{Bucket, Buckets};
pub(crate) use choose::Choices;
pub use choose::{Chosen, Tried};
pub(crate) use deadline::give_up;
pub use executor::{Executor, Replay};
#[cfg(feature = "bench")]
pub(crate) use give::enqueue;
pub use hazards::hazards;
pub use lower::{Lowered, lower};
pub use policy::{Build, Fallback, MAPPED_BYTES_MAX, Mode, Policy, Scope, Transfer, Verify, Way};
pub use update::{Rung, Updates};
