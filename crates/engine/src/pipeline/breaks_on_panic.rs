//! [`BreaksOnPanic`]: ends an engine whose thread panics.

use super::dispatcher::Dispatcher;
use crate::workload::Workload;
use std::thread::panicking;

/// Breaks the engine off if its thread panics. The code of embedders is guarded elsewhere, so only
/// a mistake in this crate does that.
pub(super) struct BreaksOnPanic<'a, W: Workload> {
    dispatcher: &'a Dispatcher<W>,
    /// Whether the thread panicked before, as one may that drops an engine.
    was_panicking: bool,
}

impl<'a, W: Workload> BreaksOnPanic<'a, W> {
    pub(super) fn new(dispatcher: &'a Dispatcher<W>) -> Self {
        BreaksOnPanic {
            dispatcher,
            was_panicking: panicking(),
        }
    }
}

impl<W: Workload> Drop for BreaksOnPanic<'_, W> {
    fn drop(&mut self) {
        if panicking() && !self.was_panicking {
            self.dispatcher.break_off();
        }
    }
}
