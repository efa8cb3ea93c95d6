//! A slot in flight: polls, waits, the deadline, and the fence of a failed batch.

use super::{Done, FENCE_RETRY, FENCE_TIMEOUT, Failed, Free, InFlight, Progress, Slot};
use crate::error::{Error, ErrorKind, ErrorScope, Result};
use crate::replay::give_up;
use std::time::Instant;
use tracing::trace_span;

impl<B> InFlight<B> {
    pub(super) fn new(batch: B, due: Option<Instant>) -> Self {
        InFlight {
            batch,
            due,
            failed: None,
            has_reported: false,
            unfenced_since: None,
        }
    }

    /// The state of a batch whose submission failed, so that its fence is still to be given.
    pub(super) fn unfenced(batch: B, due: Option<Instant>, failed: Option<Error>) -> Self {
        InFlight {
            failed,
            unfenced_since: Some(Instant::now()),
            ..InFlight::new(batch, due)
        }
    }
}

impl<B> Failed<B> {
    /// Puts the slot in flight again, so that the batch is waited for before the slot is reused.
    /// For errors that concern the batch only, not the device.
    pub(crate) fn wait_out(self) -> Slot<InFlight<B>> {
        let Failed { error, batch, slot } = self;
        let due = slot.core.due();
        slot.with(|_| InFlight::unfenced(batch, due, Some(error)))
    }
}

impl<B> Slot<InFlight<B>> {
    pub(crate) fn batch_mut(&mut self) -> &mut B {
        &mut self.state.batch
    }

    pub(crate) fn has_deadline(&self) -> bool {
        self.state.due.is_some()
    }

    /// Checks once whether the batch is done.
    pub(crate) fn poll(mut self) -> Progress<B> {
        if let Err(error) = self.check_process() {
            return Progress::Failed(self.fail(error, |state| state.batch));
        }
        let done = match self.fence() {
            Ok(true) => self.core.device_slot.is_done(),
            unfenced => unfenced,
        };
        let overdue = self.state.due.is_some_and(|due| due <= Instant::now());
        self.progress(done, overdue)
    }

    /// Waits until the batch is done, has failed, or misses its deadline. In a child of the process
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage).
    pub(crate) fn wait(mut self) -> Result<Slot<Done<B>>, Box<Failed<B>>> {
        if let Err(error) = self.check_process() {
            return Err(self.fail(error, |state| state.batch));
        }
        loop {
            match self.wait_once() {
                // The device has reported an error, but may still work on the batch.
                Progress::Pending(slot) => self = slot,
                Progress::Done(slot) => return Ok(slot),
                Progress::Failed(failed) => return Err(failed),
            }
        }
    }

    /// Waits for the batch until its deadline. If the driver refused the batch's fence, sleeps for
    /// a moment in place of that, and the next call tries the fence again.
    fn wait_once(mut self) -> Progress<B> {
        let span = trace_span!("wait", slot = self.core.index).entered();
        let done = match (self.fence(), self.state.due) {
            (Ok(true), None) => self.core.device_slot.wait().map(|()| true),
            (Ok(true), Some(due)) => {
                let left = due.saturating_duration_since(Instant::now());
                self.core.device_slot.wait_for(left)
            }
            (Ok(false), _) => {
                std::thread::sleep(FENCE_RETRY);
                Ok(false)
            }
            (Err(error), _) => Err(error),
        };
        drop(span);
        let overdue = self.state.due.is_some_and(|due| due <= Instant::now());
        self.progress(done, overdue)
    }

    /// Adds the fence that a failed submission lacks, so that the slot can be waited for. Returns
    /// whether the slot has its fence.
    ///
    /// # Errors
    /// The error of a device that is lost, of a fence that breaks a rule, and [`ErrorKind::Device`]
    /// if the device refuses it for [`FENCE_TIMEOUT`].
    fn fence(&mut self) -> Result<bool> {
        let Some(since) = self.state.unfenced_since else {
            return Ok(true);
        };
        match self.core.device_slot.fence() {
            Ok(()) => {
                self.state.unfenced_since = None;
                Ok(true)
            }
            // A fence that breaks a rule would be refused for ever.
            Err(error)
                if error.scope() >= ErrorScope::Device || error.kind() == ErrorKind::Usage =>
            {
                Err(error)
            }
            Err(_) if since.elapsed() < FENCE_TIMEOUT => Ok(false),
            Err(error) => Err(Error::new(
                ErrorKind::Device,
                format!("the device refuses the fence of a failed batch: {error}"),
            )),
        }
    }

    /// What follows from an answer of the device: `done` is whether the batch is done, `overdue`
    /// whether its deadline has passed. After an error of the batch alone the slot waits on, as the
    /// device still writes to its memory.
    fn progress(mut self, done: Result<bool>, overdue: bool) -> Progress<B> {
        let error = match done {
            Ok(true) => match self.state.failed.take() {
                None => return Progress::Done(self.with(|state| Done { batch: state.batch })),
                Some(error) => return self.end(error),
            },
            Ok(false) if !overdue => return Progress::Pending(self),
            Ok(false) => {
                let deadline = self.core.executor.policy().deadline.unwrap_or_default();
                give_up(&mut *self.core.device_slot, deadline)
            }
            Err(error) if error.scope() >= ErrorScope::Device => error,
            Err(error) if self.state.has_reported => Error::new(
                ErrorKind::Device,
                format!("the device does not finish the failed batch: {error}"),
            ),
            Err(error) => {
                self.state.has_reported = true;
                let error = self.name_slot(error.within("compute"));
                self.state.failed.get_or_insert(error);
                return Progress::Pending(self);
            }
        };
        let error = self.name_slot(error.within("compute"));
        self.end(error)
    }

    /// Ends the flight with an error. The slot is free, and the batch comes back.
    fn end(self, error: Error) -> Progress<B> {
        let batch = self.state.batch;
        let slot = Slot {
            core: self.core,
            state: Free(()),
        };
        Progress::Failed(Box::new(Failed { error, batch, slot }))
    }
}
