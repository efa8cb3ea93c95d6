//! *How fast* the engine is, compared with the limits of the machine and with other programs.
//!
//! A [`point`] is a workload with its settings. A [`runner`] runs it through one of the engine's
//! fronts. A [`benchmark`] has the items and their expected outputs: [`synthetic`] numbers, or
//! those of another crate. [`measure`] alternates the repetitions of points and of
//! [`mod@reference`] programs, and relates them to the [`limits`] of the machine. Every point gives
//! a [`record`]; [`report`] shows the records of a run, and [`compare`](mod@compare) compares two
//! runs.

pub mod benchmark;
pub mod compare;
mod diagnosis;
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
pub mod synthetic;

/// What the other crates of tapeloop use. It may change with every version.
#[doc(hidden)]
pub mod internal {
    pub use crate::benchmark::halves;
    pub use crate::diagnosis::spread_warning;
    pub use crate::machine::{CpuClock, core_time};
    pub use crate::runner::slot_missing;
    pub mod format {
        pub use crate::format::*;
    }
}
