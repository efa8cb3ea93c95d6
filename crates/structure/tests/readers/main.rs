//! Reading structure files.

mod message_pack;
use tapeloop_test_support::messages::has_parts;
use tapeloop_test_support::random;
#[cfg(unix)]
mod assemblies;
mod binary_cif;
mod binary_cif_errors;
mod chain_splits;
mod damaged_files;
mod entry_headers;
mod hand_made_files;
mod joined_models;
mod ligands;
mod limits;
#[cfg(unix)]
mod linear_time;
mod links;
mod mmcif;
mod names;
mod pdb;
mod polymers;
mod predicted_models;
mod real_files;
mod sequence;
mod truncation;
