//! When a graph that the device refused is tried again.

use crate::error::{Error, ErrorKind, ErrorScope};
use tapeloop_error::internal::CAPTURE_CODES;

/// How many batches of a bucket take another way before its graph is tried again: after the
/// first failure, and at most. Memory may be back by then, and a failed attempt costs as much as a few
/// batches, so the first wait makes it a small part of the time, and the last one none that counts.
const WAIT_BATCHES_MIN: u32 = 16;
const WAIT_BATCHES_MAX: u32 = 4096;

/// The failures of one bucket's graph. The wait doubles with each.
#[derive(Default)]
pub(super) struct GraphRetry(Option<Refused>);

struct Refused {
    error: Error,
    wait_batches: u32,
    left_batches: u32,
}

impl GraphRetry {
    /// Notes a failure.
    pub(super) fn refuse(&mut self, error: Error) {
        let before = self.0.as_ref().map(|refused| refused.wait_batches);
        let wait = before.map_or(WAIT_BATCHES_MIN, |wait| (2 * wait).min(WAIT_BATCHES_MAX));
        self.0 = Some(Refused {
            error,
            wait_batches: wait,
            left_batches: wait,
        });
    }

    /// Forgets the failures.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// Counts a batch. Returns the failure as long as the graph is not to be tried for it.
    pub(super) fn wait(&mut self) -> Option<Error> {
        let refused = self.0.as_mut()?;
        refused.left_batches = refused.left_batches.checked_sub(1)?;
        Some(refused.error.clone())
    }
}

/// Whether the device refused a graph, or holds another one than was lowered, and still takes
/// other work.
pub(super) fn is_of_graph(error: &Error) -> bool {
    let kinds = [
        ErrorKind::OutOfMemory,
        ErrorKind::Device,
        ErrorKind::Mismatch,
    ];
    kinds.contains(&error.kind()) && error.scope() < ErrorScope::Device
}

/// Whether a capture failed.
pub(super) fn is_of_capture(error: &Error) -> bool {
    error
        .code()
        .is_some_and(|code| CAPTURE_CODES.contains(&code))
}
