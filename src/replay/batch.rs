//! The lowered commands of a bucket.

use super::audit::{AllowedMemory, Audit, check_lowered};
use super::submit::enqueue_part;
use super::{Bindings, Lowered, Replay, Scope, lower};
use crate::backend::{DeviceSlot, Op, Queue};
use crate::error::{Context, Result};
use crate::record::{BufferId, Command, Unit};
use crate::workload::Extent;

/// Lowered commands: the body that a graph holds, and the copies around it.
pub(super) struct Batch {
    pub(super) scope: Scope,
    pub(super) before: Vec<Copy>,
    pub(super) body: Vec<Lowered>,
    pub(super) after: Vec<Copy>,
    /// The copies in the body.
    pub(super) inside: Vec<Copy>,
}

/// A copy whose live size depends on the batch.
pub(super) struct Copy {
    lowered: Lowered,
    pub(super) bytes: usize,
    unit: Unit,
    element_bytes: usize,
}

impl Batch {
    pub(super) fn new(bindings: &Bindings, scope: Scope) -> Self {
        let mut batch = Batch {
            scope,
            before: Vec::new(),
            body: Vec::new(),
            after: Vec::new(),
            inside: Vec::new(),
        };
        for lowered in lower(bindings) {
            // No command uses a buffer before its upload or writes it after its download, so
            // copies can move to the ends.
            let copy = Copy::of(bindings, &lowered);
            match (scope, copy, lowered.queue()) {
                (Scope::Kernels, Some(copy), Queue::Upload) => batch.before.push(copy),
                (Scope::Kernels, Some(copy), _) => batch.after.push(copy),
                (_, copy, _) => {
                    batch.inside.extend(copy);
                    batch.body.push(lowered);
                }
            }
        }
        batch
    }

    /// The copies before and after the body, each with the index of its command.
    pub(super) fn copies_around(&self) -> impl Iterator<Item = (usize, &Op)> {
        let copies = self.before.iter().chain(&self.after);
        copies.map(|copy| (copy.lowered.command(), copy.lowered.op()))
    }

    /// Checks every address.
    ///
    /// # Errors
    /// As [`check_lowered`].
    pub(super) fn check(&self, memory: &AllowedMemory<'_>) -> Result<Audit> {
        let copies = self.copies_around();
        let body = self.body.iter();
        let body = body.map(|lowered| (lowered.command(), lowered.op()));
        let audit = check_lowered(copies.chain(body), memory)?;
        tracing::debug!(%audit, "audited");
        Ok(audit)
    }
}

impl Copy {
    fn of(bindings: &Bindings, lowered: &Lowered) -> Option<Self> {
        let recording = bindings.recording();
        let id: BufferId = match &recording.commands()[lowered.command()] {
            Command::Upload(id) | Command::Download(id) => *id,
            _ => return None,
        };
        let decl = &recording.buffers()[id.index()];
        Some(Copy {
            lowered: lowered.clone(),
            bytes: bindings.bytes(id),
            unit: decl.unit,
            element_bytes: decl.dtype.size_bytes(),
        })
    }

    pub(super) fn live_bytes(&self, live: Extent) -> usize {
        let bytes = self.unit.live_len(live.as_slice()) * self.element_bytes;
        bytes.min(self.bytes)
    }

    /// Gives the live part of the copy to the slot, if there is one.
    pub(super) fn enqueue(
        &self,
        slot: &mut dyn DeviceSlot,
        queue: Queue,
        live: Extent,
        replay: &mut Replay,
    ) -> Result<()> {
        let live = self.live_bytes(live);
        if live == 0 {
            return Ok(());
        }
        enqueue_part(slot, queue, &self.lowered, live)
            .within(|| format!("command {}", self.lowered.command()))?;
        replay.calls += 1;
        replay.copied_bytes += live;
        Ok(())
    }
}
