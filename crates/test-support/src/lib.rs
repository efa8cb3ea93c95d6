//! What the tests of several crates share.

mod files;
pub mod random;
#[cfg(unix)]
pub mod thread_time;

pub use files::repository;
