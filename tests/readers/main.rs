//! Reading PDB and mmCIF files.
#![cfg(feature = "structure")]

#[path = "../support/random.rs"]
mod random;
#[path = "../support/thread_time.rs"]
mod thread_time;

mod assemblies;
mod broken;
mod limits;
mod mmcif;
mod pdb;
mod predicted;
mod select;
mod small_files;
mod structures;
