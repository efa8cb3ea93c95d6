//! Reading structure files.
#![cfg(feature = "structure")]

#[path = "../support/message_pack.rs"]
mod message_pack;
#[path = "../support/random.rs"]
mod random;
#[cfg(unix)]
#[path = "../support/thread_time.rs"]
mod thread_time;

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
