//! `tapeloop bench`: what it measures, refuses and draws.
#![cfg(feature = "bench")]

#[path = "../support/forward.rs"]
mod forward;
#[path = "../support/made_up_run.rs"]
mod made_up_run;
#[path = "../support/measured.rs"]
mod measured;
use tapeloop_test_support::random;
#[path = "../support/tamper.rs"]
mod tamper;

mod points;
mod references;
mod report;
mod screenshot;
mod verdict;
