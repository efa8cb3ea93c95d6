//! The engine on the simulated device, under faults and in every order of completion.

use tapeloop_conformance::give;
use tapeloop_conformance::leasing;
use tapeloop_conformance::lookup;
use tapeloop_conformance::scale;
use tapeloop_test_support::mix;
use tapeloop_test_support::random;
use tapeloop_test_support::seeds;

mod conformance;
mod device;
mod engine;
mod executor;
mod fallbacks;
mod faults;
mod leases;
mod loops;
mod pipeline;
mod planted;
mod programmatic;
mod recovery;
mod resident;
mod scarce;
mod updates;
