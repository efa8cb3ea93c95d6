//! A workload with its recordings, one for each bucket.

use super::config::EngineConfig;
use super::reentrancy::{EngineId, InsideEngine};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::record::{AXES_MAX, BufferId, DeviceInfo, Recorder, RecordingId, UniformDecl, View};
use crate::replay::{Bucket, Buckets, Mode, check_ladder};
use crate::workload::{Extent, ViewLayout, Workload};
use std::iter::successors;
use std::sync::Arc;
use tapeloop_error::internal::catch;

/// A workload with its recordings and the layout of its buffers. All stages share it.
pub(crate) struct RecordedWorkload<W: Workload> {
    pub(crate) workload: W,
    /// [`Workload::axes`] when the workload was recorded.
    pub(crate) axes: &'static [&'static str],
    pub(crate) buffers: W::Buffers,
    pub(crate) buckets: Arc<Buckets>,
    pub(crate) device: DeviceInfo,
    /// The id of all its recordings.
    pub(crate) id: RecordingId,
    /// The buffers that the host writes, header included, sorted.
    pub(crate) upload_ids: Vec<BufferId>,
    pub(crate) header: Option<BufferId>,
    pub(crate) uploads: ViewLayout,
    pub(crate) downloads: ViewLayout,
    /// The input buffers, which are filled on the device.
    pub(crate) inputs: ViewLayout,
    pub(crate) download_ids: Vec<BufferId>,
    engine: EngineId,
}

impl<W: Workload> RecordedWorkload<W> {
    /// `buckets` and `buffers` come from [`record_buckets`].
    pub(crate) fn new(
        workload: W,
        buckets: Arc<Buckets>,
        buffers: W::Buffers,
        device: &DeviceInfo,
        engine: EngineId,
    ) -> Self {
        let largest = Arc::clone(&buckets.largest().recording);
        let uploads = ViewLayout::new(&largest, View::Upload);
        let downloads = ViewLayout::new(&largest, View::Download);
        let header = largest.header();
        let mut upload_ids: Vec<_> = uploads.buffers().chain(header).collect();
        upload_ids.sort_unstable();
        RecordedWorkload {
            axes: workload.axes(),
            upload_ids,
            id: largest.id(),
            header,
            download_ids: downloads.buffers().collect(),
            uploads,
            downloads,
            inputs: ViewLayout::new(&largest, View::DeviceInput),
            buckets,
            device: device.clone(),
            buffers,
            workload,
            engine,
        }
    }

    /// While the guard lives, calls of the workload's code on this thread that would wait for the
    /// engine fail.
    pub(crate) fn inside(&self) -> InsideEngine {
        InsideEngine::enter(self.engine)
    }

    /// The extent of an item. A panic of the workload becomes the item's error.
    #[inline]
    pub(crate) fn extent(&self, item: &W::Item) -> Result<Extent> {
        catch_as_input(|| self.workload.extent(item))
    }

    /// The uniforms, in the order of the header.
    pub(crate) fn uniforms(&self) -> &[UniformDecl] {
        self.buckets.largest().recording.uniforms()
    }

    /// The bits of the uniforms as they were declared.
    pub(crate) fn first_uniforms(&self) -> Vec<u32> {
        self.uniforms().iter().map(|uniform| uniform.bits).collect()
    }
}

/// Runs an embedder's code. A panic becomes an [`ErrorKind::Input`] error of the item.
#[inline]
pub(crate) fn catch_as_input<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch(work).unwrap_or_else(|panic| {
        let message = format!("the workload panicked: {panic}");
        Err(Error::new(ErrorKind::Input, message))
    })
}

/// Buckets are halved until a batch copies about this many bytes of items, if the configuration names
/// none. Smaller buckets would gain less than a microsecond a batch on a GPU (docs/PERFORMANCE.md).
const SMALLEST_BYTES: usize = 64 << 10;

/// Records the workload for the buckets of a configuration. If it names none they are the batch, its
/// half and so on ([`halves`]), or the batch alone in resident mode, and where the workload does not record
/// the same for smaller capacities.
///
/// # Errors
/// Those of [`record_buckets`] for the buckets that are named, or for the batch.
pub(super) fn record_config<W: Workload>(
    workload: &W,
    config: &EngineConfig,
    device: &DeviceInfo,
) -> Result<(Buckets, W::Buffers)> {
    if !config.buckets.is_empty() {
        return record_buckets(workload, &config.buckets, device);
    }
    let whole = record_buckets(workload, &[config.batch], device)?;
    if config.policy.mode == Mode::Resident {
        return Ok(whole);
    }
    let recording = &whole.0.largest().recording;
    let layouts = [View::Upload, View::Download].map(|view| ViewLayout::new(recording, view));
    let copied_bytes = |axis: usize, length: u32| -> usize {
        let alone = Extent::default().with(axis, length);
        layouts.iter().map(|layout| layout.bytes(alone)).sum()
    };
    let mut capacities = halves(copied_bytes, config.batch);
    capacities.truncate(config.policy.ready_max);
    if capacities.len() <= 1 {
        return Ok(whole);
    }
    capacities.reverse();
    let recorded = record_buckets(workload, &capacities, device);
    Ok(recorded.unwrap_or_else(|error| {
        tracing::info!(%error, "there is one bucket, for batches of all sizes");
        whole
    }))
}

/// The batch, and from each capacity to the next half of each axis that has more than its share of
/// [`SMALLEST_BYTES`], largest first. An axis of few bytes keeps its length, so that a batch of many
/// small items finds a small bucket too. `copied_bytes` are those of a length along an axis.
fn halves(copied_bytes: impl Fn(usize, u32) -> usize, batch: Extent) -> Vec<Extent> {
    let axes = (0..AXES_MAX).filter(|&axis| copied_bytes(axis, batch[axis]) > 0);
    let axes: Vec<usize> = axes.collect();
    let half = |extent: &Extent| {
        let bytes = |axis: usize| copied_bytes(axis, extent[axis]);
        let large = axes
            .iter()
            .filter(|&&axis| bytes(axis) * axes.len() > SMALLEST_BYTES);
        let half = large.fold(*extent, |half, &axis| {
            half.with(axis, extent[axis].div_ceil(2))
        });
        (half != *extent).then_some(half)
    };
    successors(Some(batch), half).collect()
}

/// Records the workload for each bucket, smallest first.
///
/// # Errors
/// [`ErrorKind::Config`] for a capacity that does not fit the axes; [`ErrorKind::Usage`] for capacities of
/// which one does not fit in the next, too many axes, a recording that is not valid, and a panic of the
/// workload; its own errors.
pub(crate) fn record_buckets<W: Workload>(
    workload: &W,
    buckets: &[Extent],
    device: &DeviceInfo,
) -> Result<(Buckets, W::Buffers)> {
    let _span = tracing::debug_span!("record", buckets = buckets.len()).entered();
    check_ladder(buckets.iter().copied())?;
    let (id, axes) = (RecordingId::new(), workload.axes().len());
    if axes > AXES_MAX {
        return Err(Error::usage(format!(
            "{axes} axes; a workload has at most {AXES_MAX}"
        )));
    }
    (buckets.iter()).try_for_each(|capacity| check_axes(workload.axes(), *capacity))?;
    let mut recorded: Vec<Bucket> = Vec::with_capacity(buckets.len());
    let mut handles = None;
    let largest = *buckets.last().expect("a ladder has a bucket");
    for &capacity in buckets {
        let place = || format!("recording of bucket {capacity}");
        let [capacities, largest_capacities] =
            [&capacity, &largest].map(|extent| &extent.as_slice()[..axes]);
        let mut recorder = Recorder::of_workload::<W>(id, capacities, largest_capacities);
        let declared = catch(|| workload.record(&mut recorder, device))
            .unwrap_or_else(|panic| Err(Error::usage(format!("the workload panicked: {panic}"))));
        handles = Some(declared.within(place)?);
        let recording = recorder.finish().within(place)?;
        recorded.push(Bucket {
            capacity,
            recording: Arc::new(recording),
        });
    }
    let handles = handles.expect("at least one bucket");
    Ok((Buckets::new(recorded)?, handles))
}

/// Checks that `capacity` has a length along each of the workload's `axes`, and along no other.
///
/// # Errors
/// [`ErrorKind::Config`].
fn check_axes(axes: &[&str], capacity: Extent) -> Result<()> {
    let is_wrong = |axis: &usize| (capacity[*axis] > 0) != (*axis < axes.len());
    let Some(axis) = (0..AXES_MAX).find(is_wrong) else {
        return Ok(());
    };
    let names = axes.join(", ");
    let message = match axes.get(axis) {
        Some(name) => format!("a batch of {capacity} has no length along the axis {name}"),
        None => format!("a batch of {capacity} has more axes than the workload: {names}"),
    };
    let fix = format!("give `batch`, and each of `buckets`, a length for each of: {names}");
    Err(Error::config(message).fix(fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_batch_has_a_length_along_each_axis_of_the_workload_and_no_other() {
        let check = |lengths: &[u32]| {
            let lengths = lengths.iter().enumerate();
            let capacity = lengths.fold(Extent::default(), |capacity, (axis, &length)| {
                capacity.with(axis, length)
            });
            check_axes(&["numbers", "vectors"], capacity)
        };
        check(&[100, 10]).unwrap();
        let error = check(&[100]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("vectors"), "{error}");
        let error = check(&[100, 10, 5]).unwrap_err();
        assert!(error.to_string().contains("more axes"), "{error}");
    }

    #[test]
    fn buckets_are_halved_until_a_batch_copies_64_kib_of_items() {
        let found = |batch: &[u32], bytes: &[usize]| {
            let lengths = batch.iter().enumerate();
            let batch = lengths.fold(Extent::default(), |batch, (axis, &length)| {
                batch.with(axis, length)
            });
            let copied_bytes = |axis, length| bytes.get(axis).unwrap_or(&0) * length as usize;
            halves(copied_bytes, batch)
        };
        let one = |lengths: &[u32]| -> Vec<Extent> {
            lengths.iter().map(|&length| [length].into()).collect()
        };
        assert_eq!(found(&[1], &[1]), one(&[1]));
        assert_eq!(found(&[1 << 16], &[1]), one(&[65_536]));
        assert_eq!(found(&[100_001], &[2]), one(&[100_001, 50_001, 25_001]));
        // One unit is larger than that.
        assert_eq!(found(&[3], &[1 << 20]), one(&[3, 2, 1]));
        // Two large axes, one of few bytes, one without copies and one of length 0.
        let all = found(&[1 << 18, 1 << 17, 16, 1 << 20, 0], &[1, 1, 4, 0, 1]);
        let expected = [(18, 17), (17, 16), (16, 15), (15, 14), (14, 14)];
        let expected = expected.map(|(a, b)| Extent::from([1 << a, 1 << b, 16, 1 << 20, 0]));
        assert_eq!(all, expected);
    }
}
