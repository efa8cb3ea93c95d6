//! *How fast*: the engine measured, beside what the machine can do and what other
//! programs do of the same work.

pub mod compare;
mod points;
pub mod record;
pub mod report;
mod statistics;
mod units;
