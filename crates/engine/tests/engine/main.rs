//! The engine and what it is made of, on the CPU backend and on the simulated device.

use tapeloop_conformance::forward;
use tapeloop_conformance::gather;
use tapeloop_conformance::give;
use tapeloop_conformance::leasing;
use tapeloop_conformance::scale;
use tapeloop_conformance::tamper;
use tapeloop_test_support::random;
use tapeloop_test_support::seeds;

mod audit;
mod buckets;
mod contract;
mod cpu;
mod device_data;
mod dot;
mod errors;
mod events;
mod executor;
mod flow;
mod gate;
mod leases;
mod mapped;
mod outgrown;
mod pipeline;
mod replaced;
mod side_by_side;
mod soundness;
mod statistics;
mod threads;
mod tickets;
mod timeline;
mod timestamps;
mod urgent;
