//! The capacities that batches are recorded for.

use crate::backend::AllocationView;
use crate::error::{Context, Error, Result};
use crate::record::{AXES_MAX, Buffer, BufferDecl, BufferId, Command, Element, Recording, View};
use crate::workload::Extent;
use std::sync::Arc;

/// One capacity with its recording.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// The largest extent of a batch.
    pub capacity: Extent,
    /// The commands of such a batch.
    pub recording: Arc<Recording>,
}

/// Buckets, smallest first. A batch runs in the first bucket that holds it.
#[derive(Clone, Debug)]
pub struct Buckets {
    buckets: Vec<Bucket>,
    resident: Vec<(BufferId, AllocationView)>,
}

impl Buckets {
    /// A ladder of buckets.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if there is no bucket, if one does not fit in
    /// the next, and for recordings that differ in more than sizes, have another capacity than
    /// their bucket, have a buffer that is larger than that of the largest bucket, or are not of
    /// one [`Recorder::ladder`](crate::record::Recorder::ladder).
    pub fn new(buckets: Vec<Bucket>) -> Result<Self> {
        check_ladder(buckets.iter().map(|bucket| bucket.capacity))?;
        let largest = buckets.last().expect("a ladder has a step");
        for bucket in &buckets {
            let place = || format!("bucket {}", bucket.capacity);
            check_same_shape(&largest.recording, &bucket.recording).within(place)?;
            if capacity_of(&bucket.recording) != bucket.capacity {
                let message = "its recording is of another capacity";
                return Err(Error::usage(message).within(place()));
            }
        }
        Ok(Buckets {
            buckets,
            resident: Vec::new(),
        })
    }

    /// Binds a resident buffer of all buckets to device memory, in place of an earlier binding. The
    /// memory has to be of the device that the buckets run on, and large enough.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a buffer that is not resident, or of
    /// another recording. What is wrong with the memory is found where the buckets are bound.
    pub fn with_resident<T: Element>(
        self,
        buffer: Buffer<T>,
        memory: AllocationView,
    ) -> Result<Self> {
        let decl = self.largest().recording.buffer(buffer.id());
        let fits = |decl: &BufferDecl| (decl.view, decl.dtype) == (View::Resident, T::DTYPE);
        if decl.is_some_and(fits) {
            Ok(self.with_resident_id(buffer.id(), memory))
        } else {
            Err(Error::usage("the recording has no such resident buffer")
                .fix("declare it with Recorder::resident_buffer"))
        }
    }

    /// [`Self::with_resident`] for a handle that is known to be of a resident buffer.
    pub(crate) fn with_resident_id(mut self, buffer: BufferId, memory: AllocationView) -> Self {
        self.resident.retain(|(id, _)| *id != buffer);
        self.resident.push((buffer, memory));
        self
    }

    /// The memory of resident buffers.
    pub(crate) fn resident(&self) -> &[(BufferId, AllocationView)] {
        &self.resident
    }

    /// A single recording, for batches of its own capacity.
    pub fn single(recording: Recording) -> Self {
        let bucket = Bucket {
            capacity: capacity_of(&recording),
            recording: Arc::new(recording),
        };
        Buckets {
            buckets: vec![bucket],
            resident: Vec::new(),
        }
    }

    /// All buckets.
    pub fn as_slice(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The largest bucket, which determines the size of memory.
    pub fn largest(&self) -> &Bucket {
        self.buckets.last().expect("at least one bucket")
    }

    /// The index of the smallest bucket that holds a batch.
    pub fn find(&self, total: Extent) -> Option<usize> {
        let fits = |bucket: &Bucket| total.fits(bucket.capacity);
        self.buckets.iter().position(fits)
    }
}

/// Refuses capacities of which one does not fit in the next, and no capacity at all.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage).
pub(crate) fn check_ladder(capacities: impl Iterator<Item = Extent>) -> Result<()> {
    let mut previous: Option<Extent> = None;
    for capacity in capacities {
        if let Some(smaller) = previous
            && !smaller.fits(capacity)
        {
            return Err(Error::usage(format!(
                "bucket {smaller} does not fit in the next one, {capacity}; order them by size"
            )));
        }
        previous = Some(capacity);
    }
    match previous {
        Some(_) => Ok(()),
        None => Err(Error::usage("the engine has no bucket")),
    }
}

fn capacity_of(recording: &Recording) -> Extent {
    let mut capacity = [0; AXES_MAX];
    capacity[..recording.capacity().len()].copy_from_slice(recording.capacity());
    capacity.into()
}

/// Slots have one set of buffers for all buckets, sized for the largest, so the recordings may only
/// differ in sizes.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage).
fn check_same_shape(largest: &Recording, other: &Recording) -> Result<()> {
    if largest.id() != other.id() {
        return Err(Error::usage(
            "it is of another recorder than the largest bucket's, so its handles are others",
        )
        .fix("record all buckets with the recorders of one Recorder::ladder"));
    }
    let buffers_agree = largest.buffers().len() == other.buffers().len()
        && largest.buffers().iter().zip(other.buffers()).all(|(a, b)| {
            (&a.name, a.dtype, a.unit, a.view) == (&b.name, b.dtype, b.unit, b.view)
                && a.is_replaceable == b.is_replaceable
                && a.len >= b.len
        });
    let commands_agree = largest.commands().len() == other.commands().len()
        && largest
            .commands()
            .iter()
            .zip(other.commands())
            .all(|pair| match pair {
                (Command::Upload(a), Command::Upload(b)) => a == b,
                (Command::Download(a), Command::Download(b)) => a == b,
                (Command::Memset { buffer: a, .. }, Command::Memset { buffer: b, .. }) => a == b,
                (Command::Launch(a), Command::Launch(b)) => a.kernel.name() == b.kernel.name(),
                _ => false,
            });
    if buffers_agree && commands_agree && largest.uniforms() == other.uniforms() {
        Ok(())
    } else {
        Err(
            Error::usage("it declares or launches other things than the largest bucket's")
                .fix("record the same buffers and commands for every capacity"),
        )
    }
}
