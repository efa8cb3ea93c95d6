//! The capacities that batches are recorded for.

use crate::error::{Error, Result};
use crate::record::Recording;
use crate::workload::Extent;
use std::sync::Arc;

/// One capacity with its recording.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// The most that a batch spans along each axis.
    pub capacity: Extent,
    /// What such a batch does.
    pub recording: Arc<Recording>,
}

/// Buckets, smallest first. A batch runs in the first that holds it.
#[derive(Clone, Debug)]
pub struct Buckets(Vec<Bucket>);

impl Buckets {
    /// A ladder of buckets.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for none, and for one that
    /// does not fit in the next.
    pub fn new(buckets: Vec<Bucket>) -> Result<Self> {
        check_ladder(buckets.iter().map(|bucket| bucket.capacity))?;
        Ok(Buckets(buckets))
    }

    /// A single recording, for batches of its own capacity.
    pub fn single(recording: Recording) -> Self {
        let mut capacity = [0; crate::record::AXES_MAX];
        capacity[..recording.capacity().len()].copy_from_slice(recording.capacity());
        Buckets(vec![Bucket {
            capacity: capacity.into(),
            recording: Arc::new(recording),
        }])
    }

    /// All of them.
    pub fn as_slice(&self) -> &[Bucket] {
        &self.0
    }

    /// The one that memory is sized for.
    pub fn largest(&self) -> &Bucket {
        self.0.last().expect("at least one bucket")
    }

    /// The place of the smallest bucket that holds a batch.
    pub fn find(&self, total: Extent) -> Option<usize> {
        let fits = |bucket: &Bucket| total.fits(bucket.capacity);
        self.0.iter().position(fits)
    }
}

/// Refuses capacities that are no ladder.
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
