//! The engine on the simulated device, under faults and in every order of completion.

#[path = "../support/forward.rs"]
mod forward;
#[path = "../support/give.rs"]
mod give;
#[path = "../support/leasing.rs"]
mod leasing;
#[path = "../support/lookup.rs"]
mod lookup;
#[path = "../support/mix.rs"]
mod mix;
use tapeloop_test_support::random;
#[path = "../support/scale.rs"]
mod scale;
#[path = "../support/seeds/mod.rs"]
mod seeds;

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
