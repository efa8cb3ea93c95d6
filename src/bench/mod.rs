//! *How fast*: the engine measured, beside what the machine can do and what other
//! programs do of the same work.
//!
//! A [`point`] is a workload with its settings; [`runner`] sets it up over one of the
//! engine's fronts, and [`benchmark`] knows what has to come out: [`synthetic`] numbers,
//! or features of [`structures`]. [`measure`] repeats points by turns with each other
//! and with [`mod@reference`] programs, against the [`limits`] of the machine; every point
//! is a [`record`].

pub mod benchmark;
pub mod compare;
pub(crate) mod diagnosis;
mod format;
pub mod limits;
pub mod machine;
pub mod measure;
mod merged;
pub mod point;
pub mod record;
pub mod reference;
pub mod report;
pub mod runner;
mod statistics;
pub mod structures;
pub mod synthetic;
