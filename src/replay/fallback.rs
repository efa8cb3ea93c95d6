//! What becomes of a batch whose graph cannot be made.
//!
//! A larger bucket does the same work with more padding, so a batch goes there
//! first; as plain launches it runs only where the policy says so, since that is
//! many times slower. A capture that failed says nothing of memory: no other
//! bucket stands in for it.

use super::executor::{Executor, Replay};
use super::{Fallback, Mode, Way};
use crate::backend::DeviceSlot;
use crate::error::{Error, ErrorKind, ErrorScope, Result};
use crate::workload::Extent;

/// How many batches of a bucket go another way before its graph is tried again:
/// after the first failure, and at most.
const WAIT_BATCHES_MIN: u32 = 16;
const WAIT_BATCHES_MAX: u32 = 4096;

/// What happened to a bucket so far.
#[derive(Default)]
pub(super) struct Past {
    /// Its graph could not be made.
    refused: Option<Refused>,
    /// It has other bindings than those recorded.
    pub(super) rebound: bool,
    /// A batch of it was compared with its launches.
    pub(super) verified: bool,
}

/// A graph that could not be made, and when it is tried again.
struct Refused {
    error: Error,
    wait_batches: u32,
    left_batches: u32,
}

impl Past {
    /// Notes a failure; the wait for the next try doubles with each.
    fn refuse(&mut self, error: Error) {
        let before = self.refused.as_ref().map(|refused| refused.wait_batches);
        let wait = before.map_or(WAIT_BATCHES_MIN, |wait| (2 * wait).min(WAIT_BATCHES_MAX));
        self.refused = Some(Refused {
            error,
            wait_batches: wait,
            left_batches: wait,
        });
    }

    /// Why the graph is not tried for this batch, which is counted.
    fn wait(&mut self) -> Option<Error> {
        let refused = self.refused.as_mut()?;
        refused.left_batches = refused.left_batches.checked_sub(1)?;
        Some(refused.error.clone())
    }
}

impl Executor {
    /// Makes a bucket ready for a batch that spans `live`, or what stands in for it.
    /// Returns the bucket that the batch runs in.
    pub(super) fn ready_for_batch(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        live: Extent,
        replay: &mut Replay,
    ) -> Result<usize> {
        self.choose(slot, bucket, live, replay)?;
        let Some(error) = self.try_ready(slot, bucket, replay)? else {
            return Ok(bucket);
        };
        if !is_of_capture(&error) {
            for larger in bucket + 1..self.past.len() {
                // Other bindings are other work.
                if self.past[bucket].rebound || self.past[larger].rebound {
                    continue;
                }
                self.choose(slot, larger, live, replay)?;
                if self.try_ready(slot, larger, replay)?.is_none() {
                    replay.larger_bucket = 1;
                    return Ok(larger);
                }
            }
        }
        self.ready_as_launches(slot, bucket, error)?;
        replay.as_launches = 1;
        Ok(bucket)
    }

    /// Makes a bucket ready, with its graph or, where the policy allows it,
    /// without; as launches while it is open how it is replayed.
    ///
    /// # Errors
    /// As [`Executor::new`].
    pub(super) fn make_ready(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<()> {
        match self.try_ready(slot, bucket, &mut Replay::default())? {
            None => Ok(()),
            Some(error) => self.ready_as_launches(slot, bucket, error),
        }
    }

    fn ready_as_launches(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        error: Error,
    ) -> Result<()> {
        if self.policy.fallback != Fallback::Launches {
            // Whoever comes next tries at once.
            self.past[bucket].refused = None;
            return Err(error);
        }
        match self.ready_mut(bucket) {
            Some(_) => Ok(()),
            None => {
                let mode = Mode::Stream;
                let way = self.ways[bucket].unwrap_or(self.policy.first_way());
                self.prepare(slot, bucket, Way { mode, ..way })
            }
        }
    }

    /// Makes a bucket ready unless it is, or waits with a graph that could not be
    /// made before. Returns why it is not, where another way may be taken.
    fn try_ready(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        replay: &mut Replay,
    ) -> Result<Option<Error>> {
        self.check_bucket(slot, bucket)?;
        let way = self.ways[bucket].unwrap_or(Way {
            mode: Mode::Stream,
            ..self.policy.first_way()
        });
        if self.ready_ref(bucket).is_some_and(|ready| ready.is_of(way)) {
            return Ok(None);
        }
        if let Some(error) = self.past[bucket].wait() {
            return Ok(Some(error));
        }
        self.drop_ready(slot, bucket);
        replay.dropped += self.make_room(slot);
        match self.prepare(slot, bucket, way) {
            Ok(()) => {
                replay.made += 1;
                self.past[bucket].refused = None;
                Ok(None)
            }
            Err(error) if is_of_graph(&error) => {
                self.refuse(bucket, &error, replay);
                Ok(Some(error))
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a bucket ready before there is a batch for it, unless it is open how it is
    /// replayed. A graph that the device refuses is left to the bucket's first batch:
    /// while the executor is made only a capture that failed, and if the policy has a
    /// way around it.
    pub(super) fn warm(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        is_new: bool,
        replay: &mut Replay,
    ) -> Result<()> {
        let around = self.policy.fallback == Fallback::Launches;
        let Some(way) = self.ways[bucket] else {
            return Ok(());
        };
        match self.prepare(slot, bucket, way) {
            Ok(()) => replay.made += 1,
            Err(error) => {
                let later = match is_new {
                    true => around && is_of_capture(&error),
                    false => is_of_graph(&error),
                };
                if !later {
                    return Err(error);
                }
                self.refuse(bucket, &error, replay);
            }
        }
        Ok(())
    }

    fn refuse(&mut self, bucket: usize, error: &Error, replay: &mut Replay) {
        tracing::warn!(bucket, %error, "a graph could not be made; it is tried again later");
        replay.graphs_failed += 1;
        self.past[bucket].refuse(error.clone());
    }
}

/// Whether a device refused a graph, or holds another one than was lowered, and still
/// takes other work.
pub(super) fn is_of_graph(error: &Error) -> bool {
    let kinds = [
        ErrorKind::OutOfMemory,
        ErrorKind::Device,
        ErrorKind::Mismatch,
    ];
    kinds.contains(&error.kind()) && error.scope() < ErrorScope::Device
}

/// Whether a capture failed: the driver's numbers for that are 900 to 909.
fn is_of_capture(error: &Error) -> bool {
    matches!(error.code(), Some(900..=909))
}
