//! Code that the tests of several crates share.

#[cfg(feature = "archives")]
pub mod archives;
#[cfg(unix)]
pub mod child;
pub mod counted;
#[cfg(feature = "engine")]
pub mod empty;
mod files;
#[cfg(feature = "structure")]
pub mod made_up;
pub mod messages;
#[cfg(feature = "engine")]
pub mod mix;
pub mod random;
#[cfg(feature = "structure")]
pub mod samples;
#[cfg(feature = "engine")]
pub mod seeds;
#[cfg(feature = "engine")]
pub mod sevenfold;

pub use files::repository;
