//! A workload with its recordings, one a bucket, checked against each other.

use crate::error::{Context, Error, Result};
use crate::record::{AXES_MAX, BufferId, Command, Recorder, Recording, View};
use crate::replay::{Bucket, Buckets, check_ladder};
use crate::workload::{DeviceInfo, Extent, ViewLayout, Workload};
use parking_lot::RwLock;
use std::sync::Arc;

/// What every stage knows of the workload.
pub(crate) struct Program<W: Workload> {
    pub(crate) workload: W,
    pub(crate) buffers: W::Buffers,
    buckets: RwLock<Arc<Buckets>>,
    /// Uploaded buffers that the host writes, the header among them, by id.
    pub(crate) upload_ids: Vec<BufferId>,
    pub(crate) header: Option<BufferId>,
    pub(crate) uploads: ViewLayout,
    pub(crate) downloads: ViewLayout,
    pub(crate) download_ids: Vec<BufferId>,
}

impl<W: Workload> Program<W> {
    pub(crate) fn new(workload: W, buckets: &[Extent], device: &DeviceInfo) -> Result<Self> {
        let (buckets, buffers) = record_buckets(&workload, buckets, device)?;
        let largest = Arc::clone(&buckets.largest().recording);
        let uploads = ViewLayout::new(&largest, View::Upload);
        let downloads = ViewLayout::new(&largest, View::Download);
        let header = largest.header();
        let mut upload_ids: Vec<_> = uploads.buffers().chain(header).collect();
        upload_ids.sort_unstable();
        Ok(Program {
            upload_ids,
            header,
            download_ids: downloads.buffers().collect(),
            uploads,
            downloads,
            buckets: RwLock::new(Arc::new(buckets)),
            buffers,
            workload,
        })
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
    check_ladder(buckets.iter().copied())?;
    let axes = workload.axes().len();
    if axes > AXES_MAX {
        return Err(Error::usage(format!(
            "{axes} axes; a workload has at most {AXES_MAX}"
        )));
    }
    let mut recorded: Vec<Bucket> = Vec::with_capacity(buckets.len());
    let mut handles = None;
    for &capacity in buckets {
        let place = || format!("recording of bucket {capacity}");
        let mut recorder = Recorder::new(&capacity.as_slice()[..axes]);
        handles = Some(workload.record(&mut recorder, device).within(place)?);
        let recording = recorder.finish().within(place)?;
        if let Some(first) = recorded.first() {
            check_same_shape(&first.recording, &recording).within(place)?;
        }
        recorded.push(Bucket {
            capacity,
            recording: Arc::new(recording),
        });
    }
    let handles = handles.expect("at least one bucket");
    Ok((Buckets::new(recorded)?, handles))
}

/// Slots hold one set of buffers for all buckets, so the recordings may differ
/// in sizes alone.
fn check_same_shape(first: &Recording, other: &Recording) -> Result<()> {
    let buffers_agree =
        first.buffers().len() == other.buffers().len()
            && first.buffers().iter().zip(other.buffers()).all(|(a, b)| {
                (&a.name, a.dtype, a.unit, a.view) == (&b.name, b.dtype, b.unit, b.view)
            });
    let commands_agree = first.commands().len() == other.commands().len()
        && first
            .commands()
            .iter()
            .zip(other.commands())
            .all(|pair| match pair {
                (Command::Upload(a), Command::Upload(b)) => a == b,
                (Command::Download(a), Command::Download(b)) => a == b,
                (Command::Memset { buffer: a, .. }, Command::Memset { buffer: b, .. }) => a == b,
                (Command::Launch(a), Command::Launch(b)) => a.kernel.name == b.kernel.name,
                _ => false,
            });
    if buffers_agree && commands_agree {
        Ok(())
    } else {
        Err(
            Error::usage("it declares or launches other things than the first bucket's")
                .fix("record the same buffers and commands for every capacity"),
        )
    }
}
