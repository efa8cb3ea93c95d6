//! The command line program.

mod config;
mod inputs;
mod tables;
