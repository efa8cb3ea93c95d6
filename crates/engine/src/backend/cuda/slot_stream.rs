//! The stream of a slot, and the progress of work in it.

use super::context::PrimaryContext;
use super::stream::{Event, Stream};
use crate::backend::{ExternalEvent, Priority};
use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The error of a loop whose work has a priority, and what to change for it.
pub(super) fn no_priority(why: &str, change: &str) -> Error {
    let message = format!("a loop on the device has no priority, and {why}");
    Error::new(ErrorKind::Unavailable, message).fix(format!("set mode = \"graph\", or {change}"))
}

/// A slot's stream with the event of its fence.
pub(super) struct SlotStream {
    fence: Event,
    stream: Stream,
    /// How many operations were given to the stream.
    given: u64,
    /// How many of those come before the last fence.
    fenced: u64,
    /// How many of those are known to be done.
    done: u64,
    /// `given` when the last kernel was launched by itself.
    kernel: Option<u64>,
}

impl SlotStream {
    pub(super) fn new(
        context: &Arc<PrimaryContext>,
        priority: Priority,
        blocking_wait: bool,
    ) -> Result<SlotStream> {
        Ok(SlotStream {
            fence: Event::new(context, blocking_wait)?,
            stream: Stream::of_priority(context, priority)?,
            given: 0,
            fenced: 0,
            done: 0,
            kernel: None,
        })
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(super) fn priority(&self) -> Priority {
        self.stream.priority()
    }

    /// Refuses a loop where it would lose the slot's priority.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] in a slot for urgent batches.
    pub(super) fn check_loop(&self) -> Result<()> {
        match self.priority() {
            Priority::Normal => Ok(()),
            Priority::Urgent => Err(no_priority(
                "the slot is for urgent batches",
                "urgent_slots = 0",
            )),
        }
    }

    /// The stream for an operation, which counts as submitted from now on: work that may not have
    /// started never counts as done.
    pub(super) fn stream_for_work(&mut self) -> &Stream {
        self.given += 1;
        &self.stream
    }

    /// Notes that the last operation is a kernel.
    pub(super) fn note_kernel(&mut self) {
        self.kernel = Some(self.given);
    }

    /// Whether the stream ends in a kernel that was launched by itself, without a fence behind it.
    pub(super) fn ends_in_kernel(&self) -> bool {
        self.kernel == Some(self.given) && self.fenced < self.given
    }

    pub(super) fn wait_for_event(&mut self, event: &ExternalEvent) -> Result<()> {
        self.kernel = None;
        self.stream.wait_for_external(event)
    }

    pub(super) fn record_event(&self, event: &ExternalEvent) -> Result<()> {
        self.stream.record_external(event)
    }

    pub(super) fn fence(&mut self) -> Result<()> {
        self.fence.record(&self.stream)?;
        self.fenced = self.given;
        Ok(())
    }

    pub(super) fn is_done(&mut self) -> Result<bool> {
        let is_done = self.fence.is_done()?;
        if is_done {
            self.note_fenced_done();
        }
        Ok(is_done)
    }

    pub(super) fn wait(&mut self) -> Result<()> {
        self.fence.wait()?;
        self.note_fenced_done();
        Ok(())
    }

    /// Work may have been seen done after the last fence, by [`Self::synchronize`].
    fn note_fenced_done(&mut self) {
        self.done = self.done.max(self.fenced);
    }

    /// Waits for all work, fenced or not.
    pub(super) fn synchronize(&mut self) -> Result<()> {
        self.stream.synchronize()?;
        self.done = self.given;
        Ok(())
    }

    /// Whether all work was seen done.
    pub(super) fn is_quiet(&self) -> bool {
        self.done == self.given
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_driver::FakeDriverUse;
    use super::*;

    #[test]
    fn a_stream_ends_in_a_kernel_until_it_gets_other_work_or_a_fence() {
        let session = FakeDriverUse::new();
        let mut stream = SlotStream::new(&session.context(), Priority::Normal, false).unwrap();
        assert!(!stream.ends_in_kernel());
        let kernel = |stream: &mut SlotStream| {
            stream.stream_for_work();
            stream.note_kernel();
            assert!(stream.ends_in_kernel());
        };
        kernel(&mut stream);
        stream.stream_for_work();
        assert!(!stream.ends_in_kernel());
        kernel(&mut stream);
        stream.fence().unwrap();
        assert!(!stream.ends_in_kernel());
    }

    #[test]
    fn work_behind_the_last_fence_counts_as_running() {
        let session = FakeDriverUse::new();
        let mut stream = SlotStream::new(&session.context(), Priority::Normal, false).unwrap();
        assert!(stream.is_quiet());
        stream.stream_for_work();
        stream.fence().unwrap();
        assert!(!stream.is_quiet(), "not seen done");
        stream.stream_for_work();
        assert!(stream.is_done().unwrap());
        assert!(!stream.is_quiet(), "given after the fence");
        stream.synchronize().unwrap();
        assert!(stream.is_quiet());
        stream.wait().unwrap();
        assert!(stream.is_quiet(), "an old fence takes nothing back");
    }
}
