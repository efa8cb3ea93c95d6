//! A workload with its recordings, one for each bucket.

use super::reentrancy::{EngineId, InsideEngine};
use crate::error::{Context, Error, ErrorKind, Result, catch};
use crate::record::{AXES_MAX, BufferId, DeviceInfo, Recorder, RecordingId, Scalar, Uniform, View};
use crate::replay::{Bucket, Buckets, check_ladder};
use crate::workload::{Extent, ViewLayout, Workload};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

/// A workload with its recordings and the layout of its buffers. All stages share it.
pub(crate) struct RecordedWorkload<W: Workload> {
    pub(crate) workload: W,
    /// [`Workload::axes`] when the workload was recorded.
    pub(crate) axes: &'static [&'static str],
    pub(crate) buffers: W::Buffers,
    buckets: RwLock<Arc<Buckets>>,
    /// The address of the buckets.
    latest: AtomicPtr<Buckets>,
    pub(crate) device: DeviceInfo,
    /// The id of all its recordings.
    pub(crate) id: RecordingId,
    /// The buffers that the host writes, header included, sorted.
    pub(crate) upload_ids: Vec<BufferId>,
    pub(crate) header: Option<BufferId>,
    /// Bits of the uniforms for the next header.
    uniforms: Vec<AtomicU32>,
    pub(crate) uploads: ViewLayout,
    pub(crate) downloads: ViewLayout,
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
            uniforms: largest
                .uniforms()
                .iter()
                .map(|uniform| AtomicU32::new(uniform.bits))
                .collect(),
            download_ids: downloads.buffers().collect(),
            uploads,
            downloads,
            latest: AtomicPtr::new(Arc::as_ptr(&buckets).cast_mut()),
            buckets: RwLock::new(buckets),
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
        guarded(|| self.workload.extent(item))
    }

    /// The bits of the uniforms, in order.
    pub(crate) fn uniforms(&self) -> impl Iterator<Item = u32> {
        self.uniforms.iter().map(|bits| bits.load(Relaxed))
    }

    /// Sets a uniform for batches that are filled from now on.
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
            return Err(Error::usage(format!("the type is {takes:?}, not {got:?}"))
                .within(format!("uniform {name}")));
        }
        let bits = u32::try_from(value.bits).map_err(|_| {
            let message = format!("it takes 32 bits, and got {:#x}", value.bits);
            Error::usage(message).within(format!("uniform {name}"))
        })?;
        self.uniforms[index].store(bits, Relaxed);
        Ok(())
    }

    /// Bytes copied per unit along each axis, uploads and downloads together.
    pub(crate) fn copied_bytes_per_unit(&self) -> Vec<usize> {
        (0..AXES_MAX)
            .map(|axis| self.uploads.unit_bytes(axis) + self.downloads.unit_bytes(axis))
            .collect()
    }

    /// Records the workload for other buckets. The largest must be the same.
    pub(crate) fn record_again(&self, capacities: &[Extent]) -> Result<()> {
        let known = self.buckets();
        let known = known.as_slice().iter().map(|bucket| bucket.capacity);
        if known.eq(capacities.iter().copied()) {
            return Ok(());
        }
        let axes = self.axes.len();
        let (buckets, _) = record_as(self.id, &self.workload, axes, capacities, &self.device)?;
        self.buckets().check_successor(&buckets)?;
        let buckets = Arc::new(buckets);
        let latest = Arc::as_ptr(&buckets).cast_mut();
        *self.buckets.write() = buckets;
        self.latest.store(latest, Release);
        Ok(())
    }

    /// The current buckets; `None` if they are those that the caller has. Takes no lock then, as
    /// this runs for each batch.
    pub(crate) fn newer_buckets(&self, known: &Arc<Buckets>) -> Option<Arc<Buckets>> {
        // The caller keeps its buckets alive, so no others have their address.
        let is_latest = std::ptr::eq(self.latest.load(Acquire), Arc::as_ptr(known));
        (!is_latest).then(|| self.buckets())
    }

    /// The current buckets.
    pub(crate) fn buckets(&self) -> Arc<Buckets> {
        Arc::clone(&self.buckets.read())
    }
}

/// Runs an embedder's code. A panic becomes an [`ErrorKind::Input`] error of the item.
#[inline]
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch(work).unwrap_or_else(|panic| {
        let message = format!("the workload panicked: {panic}");
        Err(Error::new(ErrorKind::Input, message))
    })
}

/// Records the workload for each bucket, smallest first.
pub(crate) fn record_buckets<W: Workload>(
    workload: &W,
    buckets: &[Extent],
    device: &DeviceInfo,
) -> Result<(Buckets, W::Buffers)> {
    let axes = workload.axes().len();
    record_as(RecordingId::new(), workload, axes, buckets, device)
}

/// [`record_buckets`] with a given id, which the buffer handles of all its recordings share.
fn record_as<W: Workload>(
    id: RecordingId,
    workload: &W,
    axes: usize,
    buckets: &[Extent],
    device: &DeviceInfo,
) -> Result<(Buckets, W::Buffers)> {
    let _span = tracing::debug_span!("record", buckets = buckets.len()).entered();
    check_ladder(buckets.iter().copied())?;
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
