//! Runs a batch as single launches and as a graph, and compares the results bit by bit.
//!
//! The audit shows that a graph holds the lowered commands; this check shows that they compute the
//! same. It also finds kernels whose results depend on timing or on the order of their threads:
//! no replay of those is reproducible.

use super::deadline::wait_within;
use super::ready_batch::{ReadyBatch, Submission};
use super::submit::enqueue_zeros;
use super::{Bindings, Policy, Replay};
use crate::backend::{Backend, DeviceSlot};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::record::{BufferId, Command, DType, Recording, View};
use crate::workload::Extent;

/// Whether a batch over these bindings can run only once, because its inputs cannot be restored:
/// its commands may write memory of the embedder, a resident buffer or an input on the device, or change
/// an input that is uploaded in part.
pub(super) fn runs_once(bindings: &Bindings) -> bool {
    let recording = bindings.recording();
    let mut commands = recording.commands().iter();
    let size = |id: &BufferId| recording.buffers()[id.index()].size_bytes();
    commands.any(|command| command.writes_declared() == Some(true))
        || recording.updated_resident().is_some()
        || recording
            .buffers_by_id()
            .any(|(id, decl)| decl.view == View::DeviceInput && recording.writes(id))
        || changed_inputs(recording)
            .iter()
            .any(|id| bindings.bytes(*id) < size(id))
}

/// Submits a batch as single launches, waits, submits it again as the policy replays it, waits,
/// and compares the live part of the downloads. Buffers are set to zero before each run, so that
/// an item without a result makes no difference.
///
/// # Errors
/// [`ErrorKind::Mismatch`] if the results differ; [`ErrorKind::Deadline`] if a run takes longer
/// than the policy allows; as [`DeviceSlot::enqueue`] and [`DeviceSlot::wait`].
pub(super) fn run_twice(
    backend: &dyn Backend,
    slot: &mut dyn DeviceSlot,
    ready: &ReadyBatch,
    bindings: &Bindings,
    live: Extent,
    policy: &Policy,
    replay: &mut Replay,
) -> Result<()> {
    // The host may read its memory only when no work is in flight.
    slot.fence().within(|| "earlier work")?;
    replay.calls += 1;
    wait_within(slot, policy.deadline).within(|| "earlier work")?;
    let inputs = updated_inputs(backend, &*slot, bindings);
    reset(slot, bindings, &[], replay).within(|| "reset of buffers")?;
    ready
        .submit(slot, Submission::Launches, live, replay)
        .and_then(|()| wait_within(slot, policy.deadline))
        .within(|| "as launches")?;
    let first = DownloadedBytes::read(&*slot, bindings, live)?;
    reset(slot, bindings, &inputs, replay).within(|| "reset of buffers")?;
    ready.submit(slot, ready.untimed_submission(), live, replay)?;
    wait_within(slot, policy.deadline)?;
    let second = DownloadedBytes::read(&*slot, bindings, live)?;
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

/// The contents of upload buffers that kernels change, where host and device share memory: there
/// another upload does not restore them.
fn updated_inputs(
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

/// Writes inputs back to the host side.
fn restore(slot: &mut dyn DeviceSlot, inputs: &[(BufferId, Vec<u8>)]) {
    for (id, bytes) in inputs {
        slot.host_mut(&[*id])[0].copy_from_slice(bytes);
    }
}

/// Restores the inputs and sets all other buffers of the slot to zero, so that no result of an
/// earlier run is taken for one of the next. Memory that the embedder bound stays as it is, and so do result
/// buffers.
fn reset(
    slot: &mut dyn DeviceSlot,
    bindings: &Bindings,
    inputs: &[(BufferId, Vec<u8>)],
    replay: &mut Replay,
) -> Result<()> {
    restore(slot, inputs);
    let recording = bindings.recording();
    let made = |view: View| matches!(view, View::Download | View::Device);
    // All host sides first: none may be touched once the slot has work.
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
        let address = slot.addresses(id).device;
        if bindings.device(id) == address {
            enqueue_zeros(slot, id, 0, decl.size_bytes())?;
            replay.calls += 1;
        }
    }
    Ok(())
}

/// The live bytes of every download.
struct DownloadedBytes(Vec<(BufferId, Vec<u8>)>);

impl DownloadedBytes {
    /// Copies the live part of each buffer that a batch downloads. The batch is done.
    fn read(slot: &dyn DeviceSlot, bindings: &Bindings, live: Extent) -> Result<Self> {
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
        Ok(DownloadedBytes(results))
    }

    /// Compares with the bytes of another replay; `names` say in the message whose they are.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] with the first element that differs.
    fn compare(
        &self,
        other: &DownloadedBytes,
        recording: &Recording,
        names: [&str; 2],
    ) -> Result<()> {
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
                    "make what the kernels compute independent of time, of the order of threads and \
                     of what inputs hold beyond the batch, or set verify = \"off\"",
                )
                .within(format!("buffer {}", decl.name)));
        }
        Ok(())
    }
}

/// One element as a number; of types that Rust lacks, its bits.
fn element_text(dtype: DType, bytes: &[u8]) -> String {
    if let DType::Struct(_) = dtype {
        return format!("{bytes:02x?}");
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    // Moves the sign bit of an integer of any size to the top.
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
    fn elements_are_printed_as_numbers_of_their_type() {
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
