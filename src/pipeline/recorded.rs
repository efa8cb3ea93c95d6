//! A workload with its recordings, one a bucket, checked against each other.

use super::reentrancy::{EngineId, InsideEngine};
use super::upload::guarded;
use crate::error::{Context, Error, Result};
use crate::record::{AXES_MAX, BufferId, Recorder, RecordingId, Scalar, Uniform, View};
use crate::replay::{Bucket, Buckets, check_ladder};
use crate::workload::{DeviceInfo, Extent, ViewLayout, Workload};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What every stage knows of the workload.
pub(crate) struct RecordedWorkload<W: Workload> {
    pub(crate) workload: W,
    pub(crate) buffers: W::Buffers,
    buckets: RwLock<Arc<Buckets>>,
    device: DeviceInfo,
    /// Which recordings are its.
    pub(crate) id: RecordingId,
    /// Uploaded buffers that the host writes, the header among them, by id.
    pub(crate) upload_ids: Vec<BufferId>,
    pub(crate) header: Option<BufferId>,
    /// Bits of the uniforms, as the next header gets them.
    uniforms: Vec<AtomicU32>,
    pub(crate) uploads: ViewLayout,
    pub(crate) downloads: ViewLayout,
    pub(crate) download_ids: Vec<BufferId>,
    engine: EngineId,
}

impl<W: Workload> RecordedWorkload<W> {
    /// A workload with its recordings, from [`record_buckets`].
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
            upload_ids,
            id: largest.id(),
            header,
            uniforms: largest
                .uniforms()
                .iter()
                .map(|uniform| AtomicU32::new(uniform.bits))
                .collect(),
            download_ids: downloads.buffers().collect(),
            uploads,
            downloads,
            buckets: RwLock::new(buckets),
            device: device.clone(),
            buffers,
            workload,
            engine,
        }
    }

    /// Runs the workload's code for an item; a panic is the item's error. Calls that
    /// would wait for the engine are refused meanwhile.
    pub(crate) fn guarded<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let _inside = InsideEngine::enter(self.engine);
        guarded(work)
    }

    /// What an item takes of a batch; a panic is the item's error.
    pub(crate) fn extent(&self, item: &W::Item) -> Result<Extent> {
        guarded(|| self.workload.extent(item))
    }

    /// Bits of the uniforms in their order.
    pub(crate) fn uniforms(&self) -> impl Iterator<Item = u32> {
        self.uniforms.iter().map(|bits| bits.load(Relaxed))
    }

    /// Sets a uniform for the batches that are filled from here on.
    pub(crate) fn set_uniform(&self, name: &str, value: Scalar) -> Result<()> {
        let buckets = self.buckets();
        let known = buckets.largest().recording.uniforms();
        let of_name = |uniform: &Uniform| uniform.name == name && !uniform.is_constant;
        let Some(index) = known.iter().position(of_name) else {
            let names = known.iter().filter(|uniform| !uniform.is_constant);
            let names: Vec<&str> = names.map(|uniform| uniform.name.as_str()).collect();
            let error = Error::usage(format!("no uniform is named {name}"));
            return Err(match names.is_empty() {
                true => error.fix("the workload has none"),
                false => error.fix(format!("there are: {}", names.join(", "))),
            });
        };
        if known[index].dtype != value.dtype {
            let (takes, got) = (known[index].dtype, value.dtype);
            return Err(Error::usage(format!("it takes {takes:?}, and got {got:?}"))
                .within(format!("uniform {name}")));
        }
        self.uniforms[index].store(value.bits as u32, Relaxed);
        Ok(())
    }

    /// Bytes copied for each unit along each axis, both ways.
    pub(crate) fn copied_bytes_per_unit(&self) -> Vec<usize> {
        (0..AXES_MAX)
            .map(|axis| self.uploads.unit_bytes(axis) + self.downloads.unit_bytes(axis))
            .collect()
    }

    /// Records the workload for other buckets, the largest of which stays.
    pub(crate) fn record_again(&self, capacities: &[Extent]) -> Result<()> {
        let known = self.buckets();
        let known = known.as_slice().iter().map(|bucket| bucket.capacity);
        if known.eq(capacities.iter().copied()) {
            return Ok(());
        }
        let (buckets, _) = record_as(self.id, &self.workload, capacities, &self.device)?;
        self.buckets().check_successor(&buckets)?;
        *self.buckets.write() = Arc::new(buckets);
        Ok(())
    }

    /// The buckets that batches run in now.
    pub(crate) fn buckets(&self) -> Arc<Buckets> {
        Arc::clone(&self.buckets.read())
    }
}

/// Records the workload for each bucket, smallest first.
pub(crate) fn record_buckets<W: Workload>(
    workload: &W,
    buckets: &[Extent],
    device: &DeviceInfo,
) -> Result<(Buckets, W::Buffers)> {
    record_as(RecordingId::new(), workload, buckets, device)
}

/// [`record_buckets`], with handles that are those of all recordings with this id.
fn record_as<W: Workload>(
    id: RecordingId,
    workload: &W,
    buckets: &[Extent],
    device: &DeviceInfo,
) -> Result<(Buckets, W::Buffers)> {
    let _span = tracing::debug_span!("record", buckets = buckets.len()).entered();
    check_ladder(buckets.iter().copied())?;
    let axes = workload.axes().len();
    if axes > AXES_MAX {
        return Err(Error::usage(format!(
            "{axes} axes; a workload has at most {AXES_MAX}"
        )));
    }
    let mut recorded: Vec<Bucket> = Vec::with_capacity(buckets.len());
    let mut handles = None;
    let largest = *buckets.last().expect("a ladder has a bucket");
    for &capacity in buckets {
        let place = || format!("recording of bucket {capacity}");
        let [own, whole] = [&capacity, &largest].map(|extent| &extent.as_slice()[..axes]);
        let mut recorder = Recorder::of_workload::<W>(id, own, whole);
        handles = Some(workload.record(&mut recorder, device).within(place)?);
        let recording = recorder.finish().within(place)?;
        recorded.push(Bucket {
            capacity,
            recording: Arc::new(recording),
        });
    }
    let handles = handles.expect("at least one bucket");
    Ok((Buckets::new(recorded)?, handles))
}
