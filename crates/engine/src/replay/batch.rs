//! The lowered commands of a bucket.

use super::audit::{AllowedMemory, Audit, check_lowered};
use super::submit::{NodeSource, enqueue, enqueue_part, enqueue_timestamp};
use super::timed::timed_line;
use super::{Bindings, Lowered, Replay, lower};
use crate::backend::DeviceSlot;
use crate::error::{Context, Result};
use crate::record::{BufferId, Command, Unit};
use crate::workload::Extent;

/// Lowered commands, in their order.
pub(super) struct LoweredBatch {
    pub(super) commands: Vec<Lowered>,
    /// By command; `None` for a launch or a memset.
    copies: Vec<Option<Copy>>,
}

/// The size of a copy, which for a batch of single launches depends on the batch.
#[derive(Clone, Copy)]
struct Copy {
    bytes: usize,
    unit: Unit,
    element_bytes: usize,
}

impl LoweredBatch {
    /// The commands of `bindings`, with the sizes of those that are copies.
    pub(super) fn new(bindings: &Bindings) -> Self {
        let commands = lower(bindings);
        let copies = commands.iter().map(|lowered| Copy::new(bindings, lowered));
        LoweredBatch {
            copies: copies.collect(),
            commands,
        }
    }

    /// Checks every address.
    ///
    /// # Errors
    /// The errors of [`check_lowered`].
    pub(super) fn check(&self, memory: &AllowedMemory<'_>) -> Result<Audit> {
        let commands = self.commands.iter();
        let audit = check_lowered(
            commands.map(|lowered| (lowered.command(), lowered.op())),
            memory,
        )?;
        tracing::debug!(%audit, "audited");
        Ok(audit)
    }

    /// Runs what library calls ask to be run before they are captured, and waits for it.
    pub(super) fn warm_up(&self, slot: &mut dyn DeviceSlot) -> Result<()> {
        let warm_ups: Vec<Lowered> = self.commands.iter().filter_map(Lowered::warm_up).collect();
        if warm_ups.is_empty() {
            return Ok(());
        }
        let given = warm_ups
            .iter()
            .try_for_each(|warm_up| enqueue(slot, warm_up));
        // Also after an error, as those before it are in flight.
        let ended = slot.fence().and_then(|()| slot.wait());
        given.and(ended)
    }

    /// Counts the copies of a graph, which have the size of the bucket.
    pub(super) fn count_copies(&self, live: Extent, replay: &mut Replay) {
        for copy in self.copies.iter().flatten() {
            replay.copied_bytes += copy.bytes;
            replay.padding_bytes += copy.bytes - copy.live_bytes(live);
        }
    }

    /// Gives the commands to the slot one by one. Copies have the size that `live` needs.
    pub(super) fn launch(
        &self,
        slot: &mut dyn DeviceSlot,
        live: Extent,
        replay: &mut Replay,
    ) -> Result<()> {
        // No list of the commands is made, so that a batch allocates nothing.
        for (lowered, copy) in self.commands.iter().zip(&self.copies) {
            enqueue_live(slot, lowered, *copy, live, replay)?;
        }
        Ok(())
    }

    /// Like [`Self::launch`], with all timestamps.
    pub(super) fn launch_timed(
        &self,
        slot: &mut dyn DeviceSlot,
        live: Extent,
        replay: &mut Replay,
    ) -> Result<()> {
        let mut copies = self.copies.iter();
        for node in timed_line(&self.commands) {
            match node {
                NodeSource::Command(lowered) => {
                    let copy = *copies.next().expect("one for each command");
                    enqueue_live(slot, lowered, copy, live, replay)?;
                }
                NodeSource::Timestamp(timestamp) => {
                    enqueue_timestamp(slot, timestamp)
                        .within(|| format!("timestamp {timestamp}"))?;
                    replay.calls += 1;
                }
            }
        }
        Ok(())
    }
}

/// Enqueues a command on the slot. Of a copy only the live part is enqueued; nothing if it is empty.
fn enqueue_live(
    slot: &mut dyn DeviceSlot,
    lowered: &Lowered,
    copy: Option<Copy>,
    live: Extent,
    replay: &mut Replay,
) -> Result<()> {
    let place = || format!("command {}", lowered.command());
    match copy.map(|copy| copy.live_bytes(live)) {
        None => enqueue(slot, lowered).within(place)?,
        Some(0) => return Ok(()),
        Some(bytes) => {
            enqueue_part(slot, lowered, bytes).within(place)?;
            replay.copied_bytes += bytes;
        }
    }
    replay.calls += 1;
    Ok(())
}

impl Copy {
    /// The size of the copy; `None` if the command is no copy.
    fn new(bindings: &Bindings, lowered: &Lowered) -> Option<Self> {
        let recording = bindings.recording();
        let id: BufferId = match &recording.commands()[lowered.command()] {
            Command::Upload(id) | Command::Download(id) => *id,
            _ => return None,
        };
        let decl = &recording.buffers()[id.index()];
        Some(Copy {
            bytes: bindings.bytes(id),
            unit: decl.unit,
            element_bytes: decl.dtype.size_bytes(),
        })
    }

    fn live_bytes(self, live: Extent) -> usize {
        let bytes = self.unit.live_len(live.as_slice()) * self.element_bytes;
        bytes.min(self.bytes)
    }
}
