//! The `tapeloop` program.

fn main() {}
