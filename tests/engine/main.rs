//! The engine and what it is made of, on the CPU backend and on the simulated device.

#[path = "../support/forward.rs"]
mod forward;
#[path = "../support/gather.rs"]
mod gather;
#[path = "../support/give.rs"]
mod give;
#[path = "../support/leasing.rs"]
mod leasing;
use tapeloop_test_support::random;
#[path = "../support/scale.rs"]
mod scale;
#[path = "../support/seeds/mod.rs"]
mod seeds;
#[path = "../support/tamper.rs"]
mod tamper;

mod audit;
mod buckets;
mod contract;
mod cpu;
mod dot;
mod errors;
mod events;
mod executor;
mod gate;
mod leases;
mod outgrown;
mod pipeline;
mod side_by_side;
mod soundness;
mod statistics;
mod structs;
mod threads;
mod tickets;
mod timeline;
mod timestamps;
mod urgent;
mod verify;
