//! Packed sets: folders of Arrow IPC files that hold structures as they are after reading, so that a
//! run copies them instead of parsing files. `docs/PACKED.md` describes the columns.
//!
//! `schema` has the columns, `rows` turns structures into record batches, `file_writer` writes
//! them, `file` reads them back, and `columns` turns their rows into structures. `settings` are
//! those that decide what is read from a structure file. `folder` is a set on the disk.

mod columns;
mod file;
mod file_writer;
mod folder;
mod residue_columns;
mod rows;
mod schema;
mod set_writer;
mod settings;

pub use file::{BatchInputs, PackedBatch, PackedFile, UnreadBatch};
pub use folder::{check_complete, check_names, files_in};
pub use rows::{ASSEMBLIES, enum_name};
pub use set_writer::SetWriter;
pub use settings::{READER_KEYS, SetSettings, reader_settings};

/// The ending of the name of a packed file.
pub const ENDING: &str = "arrow";

#[cfg(test)]
mod tests;
