//! Starts threads: their stacks, and the error of a thread that the system does not start.

use super::{Error, ErrorKind};
use std::fmt::Display;
use std::thread::Builder;

/// The stack that a thread needs, in bytes: what Rust gives it by default, and what all tests run with.
const STACK_BYTES_MIN: usize = 2 << 20;

/// The variable by which Rust's standard library sizes stacks, in bytes.
const STACK_VARIABLE: &str = "RUST_MIN_STACK";

/// The size of the stacks of threads in bytes: `RUST_MIN_STACK`, but at least what they need. Every thread is
/// started with it, since a thread with less overflows its stack, which ends the process.
pub fn stack_bytes() -> usize {
    stack_for(std::env::var(STACK_VARIABLE).ok().as_deref())
}

fn stack_for(variable: Option<&str>) -> usize {
    let wanted = variable.and_then(|bytes| bytes.parse().ok());
    wanted.unwrap_or(0).max(STACK_BYTES_MIN)
}

/// A thread of this name that has a stack of [`stack_bytes`] bytes.
pub fn thread(name: impl Into<String>) -> Builder {
    Builder::new().name(name.into()).stack_size(stack_bytes())
}

/// The error of a thread that the system does not start, or of a pool of threads.
pub fn thread_error(error: impl Display) -> Error {
    let message = format!("a thread cannot be started: {error}");
    Error::new(ErrorKind::Io, message).fix(thread_fix(stack_bytes()))
}

/// What to do if a thread cannot be started, by how large its stack is.
fn thread_fix(stack_bytes: usize) -> String {
    let limits = "use fewer threads, or raise the limit of processes (ulimit -u, or pids.max of a container) or of \
                  memory (ulimit -v)";
    if stack_bytes > STACK_BYTES_MIN {
        format!("unset {STACK_VARIABLE}, which asks for stacks of {stack_bytes} bytes, {limits}")
    } else {
        limits.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_never_smaller_than_what_threads_need() {
        for (variable, bytes) in [
            (None, STACK_BYTES_MIN),
            (Some("0"), STACK_BYTES_MIN),
            (Some("1000"), STACK_BYTES_MIN),
            (Some("many"), STACK_BYTES_MIN),
            (Some("4194304"), 4 << 20),
        ] {
            assert_eq!(stack_for(variable), bytes, "{variable:?}");
        }
    }

    #[test]
    fn a_variable_that_asks_for_large_stacks_is_named() {
        assert!(!thread_fix(STACK_BYTES_MIN).contains(STACK_VARIABLE));
        assert!(thread_fix(1 << 40).contains("unset RUST_MIN_STACK"));
        assert!(thread_fix(1 << 40).contains("1099511627776 bytes"));
    }
}
