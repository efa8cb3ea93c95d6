//! Reading PDB and mmCIF files.
#![cfg(feature = "structure")]

mod assemblies;
mod broken;
mod limits;
mod mmcif;
mod pdb;
mod predicted;
mod select;
mod small_files;
mod structures;
