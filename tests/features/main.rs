//! The features of structures against their definitions and other programs.
#![cfg(feature = "features")]

#[path = "../support/made_up/mod.rs"]
mod made_up;
#[path = "../support/samples/mod.rs"]
mod samples;
#[path = "../support/tables/mod.rs"]
mod tables;

mod backbone;
mod contacts;
mod dssp;
mod golden;
mod properties;
mod reals;
mod sasa;
mod settings;
mod summary;
