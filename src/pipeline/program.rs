//! A workload with its recordings, one a bucket, checked against each other.

use crate::error::{Context, Error, Result};
use crate::record::{AXES_MAX, BufferId, Command, Recorder, Recording, View};
use crate::workload::{DeviceInfo, Extent, ViewLayout, Workload};

/// What every stage knows of the workload.
pub(crate) struct Program<W: Workload> {
    pub(crate) workload: W,
    pub(crate) buffers: W::Buffers,
    pub(crate) recordings: Vec<Recording>,
    buckets: Vec<Extent>,
    /// Uploaded buffers that the host writes, the header among them, by id.
    pub(crate) upload_ids: Vec<BufferId>,
    pub(crate) header: Option<BufferId>,
    pub(crate) uploads: ViewLayout,
    pub(crate) downloads: ViewLayout,
    pub(crate) download_ids: Vec<BufferId>,
}

impl<W: Workload> Program<W> {
    pub(crate) fn new(workload: W, buckets: &[Extent], device: &DeviceInfo) -> Result<Self> {
        let (recordings, buffers) = record_buckets(&workload, buckets, device)?;
        let largest = recordings.last().expect("one for each bucket");
        let uploads = ViewLayout::new(largest, View::Upload);
        let downloads = ViewLayout::new(largest, View::Download);
        let header = largest.header();
        let mut upload_ids: Vec<_> = uploads.buffers().chain(header).collect();
        upload_ids.sort_unstable();
        Ok(Program {
            upload_ids,
            header,
            download_ids: downloads.buffers().collect(),
            uploads,
            downloads,
            buckets: buckets.to_vec(),
            buffers,
            recordings,
            workload,
        })
    }

    /// The recording that the slots' memory is sized for.
    pub(crate) fn largest(&self) -> &Recording {
        self.recordings.last().expect("at least one bucket")
    }

    /// The smallest bucket that holds a batch.
    pub(crate) fn bucket_for(&self, total: Extent) -> usize {
        let fits = |bucket: &Extent| total.fits(*bucket);
        self.buckets
            .iter()
            .position(fits)
            .expect("batches are formed within the largest bucket")
    }
}

/// Records the workload for each bucket, smallest first.
pub(crate) fn record_buckets<W: Workload>(
    workload: &W,
    buckets: &[Extent],
    device: &DeviceInfo,
) -> Result<(Vec<Recording>, W::Buffers)> {
    check_buckets(buckets)?;
    let axes = workload.axes().len();
    if axes > AXES_MAX {
        return Err(Error::usage(format!(
            "{axes} axes; a workload has at most {AXES_MAX}"
        )));
    }
    let mut recordings: Vec<Recording> = Vec::with_capacity(buckets.len());
    let mut handles = None;
    for bucket in buckets {
        let place = || format!("recording of bucket {bucket}");
        let mut recorder = Recorder::new(&bucket.as_slice()[..axes]);
        handles = Some(workload.record(&mut recorder, device).within(place)?);
        let recording = recorder.finish().within(place)?;
        if let Some(first) = recordings.first() {
            check_same_shape(first, &recording).within(place)?;
        }
        recordings.push(recording);
    }
    Ok((recordings, handles.expect("at least one bucket")))
}

fn check_buckets(buckets: &[Extent]) -> Result<()> {
    if buckets.is_empty() {
        return Err(Error::usage("the engine has no bucket"));
    }
    match buckets.windows(2).find(|pair| !pair[0].fits(pair[1])) {
        Some(pair) => Err(Error::usage(format!(
            "bucket {} does not fit in the next one, {}; order them by size",
            pair[0], pair[1]
        ))),
        None => Ok(()),
    }
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
