//! *How*: a recording against a slot's addresses, replayed.
//!
//! [`lower`] alone turns a command into an [`Op`](crate::backend::Op); a stream
//! call and a capture give the same operations to the same stream, so graph and
//! stream mode run the same work.

mod bindings;
mod capture;
mod executor;
mod lower;

pub use bindings::Bindings;
pub(crate) use bindings::load_functions;
pub use executor::{Executor, Mode};
pub use lower::lower;
