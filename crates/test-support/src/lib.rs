//! What the tests of several crates share.

#[cfg(feature = "archives")]
pub mod archives;
pub mod counted;
#[cfg(feature = "engine")]
pub mod empty;
mod files;
#[cfg(feature = "engine")]
pub mod forward;
#[cfg(feature = "engine")]
pub mod gather;
#[cfg(feature = "engine")]
pub mod give;
#[cfg(feature = "engine")]
pub mod leasing;
#[cfg(feature = "engine")]
pub mod lookup;
#[cfg(feature = "structure")]
pub mod made_up;
#[cfg(feature = "engine")]
pub mod mix;
pub mod random;
#[cfg(feature = "structure")]
pub mod samples;
#[cfg(feature = "engine")]
pub mod scale;
#[cfg(feature = "engine")]
pub mod seeds;
#[cfg(feature = "engine")]
pub mod sevenfold;
#[cfg(feature = "engine")]
pub mod tamper;
#[cfg(unix)]
pub mod thread_time;

pub use files::repository;
