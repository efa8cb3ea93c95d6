//! *How fast*: the engine measured, beside what the machine can do and what other
//! programs do of the same work.
//!
//! A [`point`] is a workload with its settings; [`rig`] sets it up over one of the
//! engine's fronts, and [`subject`] knows what has to come out: [`synthetic`] numbers,
//! or features of [`structures`]. [`measure`] repeats points by turns with each other
//! and with [`mod@reference`] programs, against the [`limits`] of the machine; every point
//! is a [`record`].

pub mod compare;
pub(crate) mod judge;
pub mod limits;
pub mod machine;
pub mod measure;
pub mod point;
mod points;
pub mod record;
pub mod reference;
pub mod report;
pub mod rig;
mod statistics;
pub mod structures;
pub mod subject;
pub mod synthetic;
mod units;
