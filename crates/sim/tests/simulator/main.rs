//! The engine on the simulated device, under faults and in every order of completion.

use tapeloop_test_support::give;
use tapeloop_test_support::leasing;
use tapeloop_test_support::lookup;
use tapeloop_test_support::mix;
use tapeloop_test_support::random;
use tapeloop_test_support::scale;
use tapeloop_test_support::seeds;

mod device;
mod engine;
mod executor;
mod fallbacks;
mod faults;
mod leases;
mod loops;
mod pipeline;
mod planted;
mod recovery;
mod resident;
mod scarce;
mod updates;
