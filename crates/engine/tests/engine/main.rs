//! The engine and what it is made of, on the CPU backend and on the simulated device.

use tapeloop_test_support::forward;
use tapeloop_test_support::gather;
use tapeloop_test_support::give;
use tapeloop_test_support::leasing;
use tapeloop_test_support::random;
use tapeloop_test_support::scale;
use tapeloop_test_support::seeds;
use tapeloop_test_support::tamper;

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
