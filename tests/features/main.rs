//! The features of structures against their definitions and other programs.
#![cfg(feature = "features")]

#[path = "../support/every_feature.rs"]
mod every_feature;
#[path = "../support/made_up.rs"]
mod made_up;
use tapeloop_test_support::random;
#[path = "../support/samples.rs"]
mod samples;
#[path = "../support/tables.rs"]
mod tables;

mod backbone;
mod chains;
mod contacts;
mod definitions;
mod dssp;
mod golden;
mod interfaces;
mod ligands;
mod properties;
mod reals;
mod residue_depth;
mod sasa;
mod settings;
mod side_chains;
mod summary;
