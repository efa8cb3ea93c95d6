//! The same batch as launches and as a graph, compared bit by bit.
//!
//! The audit shows that a graph holds what was lowered; this shows that it does the
//! same. It also finds kernels whose results depend on timing or on the order of
//! their threads: of those, no replay is sure.

use super::deadline::wait_within;
use super::executor::{Executor, Ready, Replay, mark_all};
use super::give::enqueue_zeros;
use super::timed::Times;
use super::{Bindings, Policy, Verify};
use crate::backend::{Backend, DeviceSlot, Streams};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::record::{BufferId, Command, DType, Recording, View};
use crate::workload::Extent;

impl Executor {
    /// Whether the next batch of a bucket runs twice: the first one of its graph,
    /// and every so many of the slot.
    pub(super) fn is_checked(&mut self, bucket: usize) -> bool {
        let policy = &self.policy;
        let every = u64::from(policy.shadow_every);
        let shadowed = every > 0 && self.replays.is_multiple_of(every);
        let shares_memory = self.backend.device().shares_host_memory;
        let first = match policy.verify {
            // There a graph is the same calls.
            Verify::Auto => !shares_memory,
            Verify::First => true,
            Verify::Off => false,
        };
        let has_graph = self
            .ready_mut(bucket)
            .is_some_and(|ready| ready.graph.is_some());
        let is_first = first && has_graph && !self.past[bucket].verified;
        if !is_first && !shadowed {
            return false;
        }
        let once = self.runs_once(bucket);
        if once && is_first {
            // Said once.
            self.past[bucket].verified = true;
            tracing::info!(
                bucket,
                "not verified: a batch changes its inputs, and cannot run twice"
            );
        }
        !once
    }

    /// Whether a batch of a bucket may not run a second time, as its inputs cannot be
    /// brought back: its kernels may write memory of the embedder, or they change an
    /// input that is uploaded in part.
    pub(super) fn runs_once(&self, bucket: usize) -> bool {
        let recording = &self.buckets().as_slice()[bucket].recording;
        let mut commands = recording.commands().iter();
        if commands.any(|command| command.writes_declared() == Some(true)) {
            return true;
        }
        let bindings = self.bindings[bucket].as_ref();
        bindings.is_some_and(|bindings| {
            let changed = changed_inputs(recording);
            let size = |id: &BufferId| recording.buffers()[id.index()].size_bytes();
            changed.iter().any(|id| bindings.bytes(*id) < size(id))
        })
    }
}

/// Gives a batch as launches, waits, gives it again as it is replayed, waits, and
/// compares what of the downloads is live. Both start from buffers of zeros: what
/// an item without a result leaves there is no difference.
pub(super) fn give_twice(
    backend: &dyn Backend,
    slot: &mut dyn DeviceSlot,
    ready: &Ready,
    bindings: &Bindings,
    live: Extent,
    policy: &Policy,
    replay: &mut Replay,
) -> Result<()> {
    let per_stage = policy.streams == Streams::PerStage;
    // Host memory may be looked at once all is done that anybody gave.
    replay.calls += mark_all(slot, per_stage).within(|| "earlier work")?;
    wait_within(slot, policy.deadline).within(|| "earlier work")?;
    let inputs = updated_inputs(backend, &*slot, bindings);
    reset(slot, bindings, &[], replay).within(|| "reset of buffers")?;
    ready
        .give(slot, None, live, per_stage, Times::None, replay)
        .within(|| "as launches")?;
    wait_within(slot, policy.deadline).within(|| "as launches")?;
    let first = Results::of(&*slot, bindings, live)?;
    reset(slot, bindings, &inputs, replay).within(|| "reset of buffers")?;
    ready.give(slot, ready.graph, live, per_stage, Times::None, replay)?;
    wait_within(slot, policy.deadline)?;
    let second = Results::of(&*slot, bindings, live)?;
    let names = match ready.graph {
        Some(_) => ["as launches", "as a graph"],
        None => ["the first time", "the second time"],
    };
    first.compare(&second, bindings.recording(), names)?;
    replay.verified = 1;
    Ok(())
}

/// Upload buffers that kernels or memsets change.
fn changed_inputs(recording: &Recording) -> Vec<BufferId> {
    let mut changed = Vec::new();
    for command in recording.commands() {
        command.visit_buffers(|id, _, writes| {
            let is_upload = recording.buffers()[id.index()].view == View::Upload;
            let changes = writes && !matches!(command, Command::Upload(_));
            if is_upload && changes && !changed.contains(&id) {
                changed.push(id);
            }
        });
    }
    changed.sort_unstable();
    changed
}

/// The contents of upload buffers that kernels change and whose host side they change
/// with it, so that another upload would not bring them back.
pub(super) fn updated_inputs(
    backend: &dyn Backend,
    slot: &dyn DeviceSlot,
    bindings: &Bindings,
) -> Vec<(BufferId, Vec<u8>)> {
    if !backend.device().shares_host_memory {
        return Vec::new();
    }
    let mut changed = changed_inputs(bindings.recording());
    changed.retain(|id| bindings.host_view(*id).is_none());
    let bytes = |id: BufferId| (id, slot.host(id).to_vec());
    changed.into_iter().map(bytes).collect()
}

/// Brings inputs back as they were, where the host may write.
pub(super) fn restore(slot: &mut dyn DeviceSlot, inputs: &[(BufferId, Vec<u8>)]) {
    for (id, bytes) in inputs {
        slot.host_mut(&[*id])[0].copy_from_slice(bytes);
    }
}

/// Sets what an earlier run left to zero, so that nothing of it passes for a result
/// of the next. What embedders bound is theirs, and uploads run again.
fn reset(
    slot: &mut dyn DeviceSlot,
    bindings: &Bindings,
    inputs: &[(BufferId, Vec<u8>)],
    replay: &mut Replay,
) -> Result<()> {
    restore(slot, inputs);
    let recording = bindings.recording();
    let made = |view: View| view != View::Upload;
    for (id, decl) in recording
        .buffers_by_id()
        .filter(|(_, decl)| made(decl.view))
    {
        let bytes = decl.size_bytes();
        if decl.view == View::Download && bindings.host_view(id).is_none() {
            slot.host_mut(&[id])[0][..bytes].fill(0);
        }
    }
    for (id, decl) in recording
        .buffers_by_id()
        .filter(|(_, decl)| made(decl.view))
    {
        let own = slot.addresses(id).device;
        if bindings.device(id) == own {
            enqueue_zeros(slot, id, decl.size_bytes())?;
            replay.calls += 1;
        }
    }
    Ok(())
}

/// The live bytes of every download.
struct Results(Vec<(BufferId, Vec<u8>)>);

impl Results {
    fn of(slot: &dyn DeviceSlot, bindings: &Bindings, live: Extent) -> Result<Self> {
        let recording = bindings.recording();
        let mut results = Vec::new();
        for command in recording.commands() {
            let Command::Download(id) = *command else {
                continue;
            };
            let decl = &recording.buffers()[id.index()];
            let bytes = decl.unit.live_len(live.as_slice()) * decl.dtype.size_bytes();
            let bytes = bytes.min(bindings.bytes(id));
            let copied = match bindings.host_view(id) {
                None => slot.host(id)[..bytes].to_vec(),
                Some(view) => {
                    let start = (view.address() - view.allocation().address()) as usize;
                    view.allocation().read()?[start..start + bytes].to_vec()
                }
            };
            results.push((id, copied));
        }
        Ok(Results(results))
    }

    /// # Errors
    /// [`ErrorKind::Mismatch`], with the first element that differs.
    fn compare(&self, other: &Results, recording: &Recording, names: [&str; 2]) -> Result<()> {
        for ((id, first), (_, second)) in self.0.iter().zip(&other.0) {
            let decl = &recording.buffers()[id.index()];
            let size = decl.dtype.size_bytes();
            let elements = first.chunks(size).zip(second.chunks(size)).enumerate();
            let mut differing = elements.filter(|(_, (first, second))| first != second);
            let Some((index, (a, b))) = differing.next() else {
                continue;
            };
            let (count, all) = (1 + differing.count(), first.len() / size);
            let [a, b] = [a, b].map(|bytes| element_text(decl.dtype, bytes));
            let [one, two] = names;
            let message = format!(
                "element {index} is {a} {one}, and {b} {two}; {count} of {all} elements differ"
            );
            return Err(Error::new(ErrorKind::Mismatch, message)
                .fix(
                    "make what the kernels compute independent of time and of the order of \
                     threads, or set verify = \"off\" and shadow_every = 0",
                )
                .within(format!("buffer {}", decl.name)));
        }
        Ok(())
    }
}

/// One element as a number; of types without one of their own, its bits.
fn element_text(dtype: DType, bytes: &[u8]) -> String {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    // With the sign of the element, whatever its size.
    let shift = 64 - 8 * bytes.len() as u32;
    match dtype {
        DType::F32 => format!("{:?} ({bits:#010x})", f32::from_bits(bits as u32)),
        DType::F64 => format!("{:?} ({bits:#018x})", f64::from_bits(bits)),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            format!("{}", (bits << shift) as i64 >> shift)
        }
        _ => format!("{bits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_told_as_numbers_of_their_type() {
        let text = element_text;
        assert_eq!(text(DType::I8, &[0xfe]), "-2");
        assert_eq!(text(DType::I32, &(-7_i32).to_le_bytes()), "-7");
        assert_eq!(
            text(DType::I64, &i64::MIN.to_le_bytes()),
            "-9223372036854775808"
        );
        assert_eq!(text(DType::U16, &[1, 1]), "257");
        assert_eq!(text(DType::U64, &[255; 8]), "18446744073709551615");
        assert_eq!(text(DType::F32, &1.5_f32.to_le_bytes()), "1.5 (0x3fc00000)");
        assert_eq!(
            text(DType::F64, &(-0.0_f64).to_le_bytes()),
            "-0.0 (0x8000000000000000)"
        );
    }
}
