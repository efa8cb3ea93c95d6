//! The features of structures against their definitions and other programs.

#[path = "../support/every_feature.rs"]
mod every_feature;
use tapeloop_test_support::made_up;
use tapeloop_test_support::samples;
#[path = "../support/tables.rs"]
mod tables;

mod backbone;
mod chains;
mod contacts;
mod definitions;
mod dssp;
mod example;
mod golden;
mod instructions;
mod interactions;
mod interfaces;
mod kernel_code;
mod lee_richards;
mod ligands;
mod properties;
mod reals;
mod residue_depth;
mod sasa;
mod settings;
mod side_chains;
mod summary;
