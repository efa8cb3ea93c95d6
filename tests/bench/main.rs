//! `tapeloop bench`: what it measures, refuses and draws.
#![cfg(feature = "bench")]

#[path = "../support/made_up_run/mod.rs"]
mod made_up_run;
#[path = "../support/measured/mod.rs"]
mod measured;
#[path = "../support/tamper/mod.rs"]
mod tamper;

mod points;
mod report;
mod screenshot;
