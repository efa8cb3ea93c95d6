//! *How*: a recording against a slot's addresses, replayed.
//!
//! [`lower`] alone turns a command into an [`Op`](crate::backend::Op); a stream
//! call, a capture, a node built by hand and a change of parameters apply the
//! same operations, so all ways to replay run the same work.

mod bindings;
mod buckets;
mod executor;
mod graph;
mod hazards;
mod lower;
mod policy;
pub mod timed;
mod update;

pub use bindings::Bindings;
pub(crate) use buckets::check_ladder;
pub use buckets::{Bucket, Buckets};
pub use executor::{Executor, Replay};
pub use hazards::hazards;
pub use lower::{Lowered, lower};
pub use policy::{Build, MAPPED_BYTES_MAX, Mode, Policy, Scope, Transfer};
pub use update::{Rung, Updates};
