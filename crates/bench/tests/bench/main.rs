//! `tapeloop bench`: what it measures, refuses and draws.

use tapeloop_conformance::forward;
#[path = "../support/made_up_run.rs"]
mod made_up_run;
#[path = "../support/measured.rs"]
mod measured;
use tapeloop_conformance::tamper;
use tapeloop_test_support::random;

mod points;
mod references;
mod report;
mod screenshot;
mod verdict;
