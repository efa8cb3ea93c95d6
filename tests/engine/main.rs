//! The engine and what it is made of, on the CPU backend and on the simulated device.

#[path = "../support/gather/mod.rs"]
mod gather;
#[path = "../support/give/mod.rs"]
mod give;
#[path = "../support/scale/mod.rs"]
mod scale;
#[path = "../support/seeds/mod.rs"]
mod seeds;
#[path = "../support/tamper/mod.rs"]
mod tamper;

mod alive;
mod audit;
mod auto;
mod contract;
mod dot;
mod executor;
mod pipeline;
mod statistics;
mod structs;
mod threads;
mod timeline;
mod timestamps;
mod verify;
mod vouched;
