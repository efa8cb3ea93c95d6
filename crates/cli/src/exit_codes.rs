//! The program's exit codes.

use tapeloop::error::{Error, ErrorKind};

pub const GOOD: u8 = 0;
/// Nothing could run, or the run failed.
pub const FAILED: u8 = 1;
/// The config or the command line is wrong.
const MISUSED: u8 = 2;
/// The run finished, and rejected some inputs.
pub const REJECTED: u8 = 3;
/// A signal ended the run. Shells use this code for Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// The exit code after an error that ended the program.
pub fn of_error(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Config | ErrorKind::Usage => MISUSED,
        _ => FAILED,
    }
}

/// The exit code of a run that finished with `code`, where up to `rejected_max` rejected inputs are as they should
/// be.
pub fn accepting(code: u8, rejected: u64, rejected_max: u64) -> u8 {
    if code == REJECTED && rejected <= rejected_max {
        GOOD
    } else {
        code
    }
}

/// The exit code of a run that finished, by its numbers of structures with results and of rejected inputs.
pub fn of_inputs(good: u64, rejected: u64) -> u8 {
    match (good, rejected) {
        (_, 0) => GOOD,
        (0, _) => FAILED,
        _ => REJECTED,
    }
}
