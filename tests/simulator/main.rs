//! The engine on the simulated device, under faults and in every order of completion.

#[path = "../support/give/mod.rs"]
mod give;
#[path = "../support/mix/mod.rs"]
mod mix;
#[path = "../support/scale/mod.rs"]
mod scale;
#[path = "../support/seeds/mod.rs"]
mod seeds;

mod device;
mod engine;
mod executor;
mod fallbacks;
mod faults;
mod pipeline;
mod planted;
mod recovery;
mod scarce;
mod updates;
