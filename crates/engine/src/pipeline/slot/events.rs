//! Events of other code, which a batch waits for or records.

use super::{Filling, Slot, SlotCore};
use crate::backend::contract::DeviceSlot;
use crate::backend::{ExternalEvent, no_events, no_stream};
use crate::error::Result;
use crate::replay::Mode;

/// The events of the batch that is submitted next.
#[derive(Default)]
pub(super) struct Events {
    waits_for: Vec<ExternalEvent>,
    signals: Vec<ExternalEvent>,
}

impl Events {
    pub(super) fn len(&self) -> usize {
        self.waits_for.len() + self.signals.len()
    }

    /// Makes later work of the slot wait. To be called before the batch is given to it.
    pub(super) fn wait(&self, slot: &mut dyn DeviceSlot) -> Result<()> {
        let mut waits_for = self.waits_for.iter();
        waits_for.try_for_each(|event| slot.wait_for_event(event))
    }

    /// Records the batch. To be called when the slot was given all of it.
    pub(super) fn record(&self, slot: &mut dyn DeviceSlot) -> Result<()> {
        let mut signals = self.signals.iter();
        signals.try_for_each(|event| slot.record_event(event))
    }
}

impl Slot<Filling> {
    /// Makes the batch that is filled now wait on the device for what `event` has recorded when the
    /// batch is submitted, such as kernels of another library that write the batch's input. The host
    /// does not wait. The wait counts for [`Policy::deadline`](crate::replay::Policy::deadline): with a
    /// deadline, an event that comes too late loses the device.
    ///
    /// ```no_run
    /// # use tapeloop_engine::pipeline::Ring;
    /// # fn f(mut ring: Ring<()>, produced: u64, consumed: u64) -> tapeloop_engine::Result<()> {
    /// use tapeloop_engine::backend::ExternalEvent;
    ///
    /// let mut slot = ring.acquire().expect("no batch is in flight");
    /// // SAFETY: both are events of the GPU's primary context, and live until the batch is submitted.
    /// unsafe {
    ///     slot.wait_for(ExternalEvent::from_raw(produced))?;
    ///     slot.signal(ExternalEvent::from_raw(consumed))?;
    /// }
    /// let submitted = ring.submit(slot, [1024].into(), ());
    /// submitted.map_err(|failed| failed.error)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) for a device that is no GPU of this
    /// process, and for [`Mode::Resident`], as batches of a loop on the device are in no stream. The
    /// submission fails with [`ErrorKind::Usage`](crate::ErrorKind::Usage) if a capture has recorded the
    /// event.
    pub fn wait_for(&mut self, event: ExternalEvent) -> Result<()> {
        self.core.check_events()?;
        self.state.0.waits_for.push(event);
        Ok(())
    }

    /// Lets `event` record the batch that is filled now when the batch is submitted, so that other
    /// work can wait on the device for the batch's results. If the submission fails, the event may not
    /// have recorded anything, and work that waits for it does not wait.
    ///
    /// # Errors
    /// The errors of [`Slot::wait_for`].
    pub fn signal(&mut self, event: ExternalEvent) -> Result<()> {
        self.core.check_events()?;
        self.state.0.signals.push(event);
        Ok(())
    }
}

impl SlotCore {
    /// Refuses events where no stream has all work of the slot.
    pub(super) fn check_events(&self) -> Result<()> {
        match self.executor.policy().mode {
            Mode::Resident => Err(no_events("a loop on the device may run them")),
            _ if self.device_slot.stream().is_none() => Err(no_stream()),
            _ => Ok(()),
        }
    }
}
