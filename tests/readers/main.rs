//! Reading structure files.
#![cfg(feature = "structure")]

mod assemblies;
mod damaged_files;
mod hand_made_files;
mod limits;
#[cfg(unix)]
mod linear_time;
mod mmcif;
mod pdb;
mod polymers;
mod predicted_models;
mod real_files;
mod truncation;
