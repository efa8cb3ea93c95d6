//! A slot's state is the type that owns it.
//!
//! `Free -> Filling -> Filled -> InFlight -> Done -> Free`. Host memory can be
//! written in `Filling` only and read in `Done` only, so a program that refills
//! a slot in flight, or reads it before it is done, does not compile.

use crate::backend::{HostViews, Lane};
use crate::error::{Error, Result};
use crate::record::BufferId;
use crate::replay::{Buckets, Executor, Replay};
use crate::workload::Extent;
use std::sync::Arc;

/// One slot, in state `S`.
pub(crate) struct Slot<S> {
    core: Box<Core>,
    state: S,
}

struct Core {
    index: usize,
    lane: Box<dyn Lane>,
    executor: Executor,
}

/// Holds nothing.
pub(crate) struct Free(());
/// Host memory is being written.
pub(crate) struct Filling(());
/// Ready to submit: a batch, what it spans, and the buckets that it may run in.
pub(crate) struct Filled<B> {
    batch: B,
    live: Extent,
    buckets: Arc<Buckets>,
}
/// On the device.
pub(crate) struct InFlight<B> {
    batch: B,
}
/// Results can be read.
pub(crate) struct Done<B> {
    batch: B,
}

/// A batch that the device failed, and its slot, which the device will not take
/// work from again.
pub(crate) struct Failed<B> {
    pub(crate) error: Error,
    pub(crate) batch: B,
    pub(crate) slot: Slot<Free>,
}

/// A slot given to the device and what that took, or its failure.
pub(crate) type Submitted<B> = Result<(Slot<InFlight<B>>, Replay), Box<Failed<B>>>;

/// What became of a slot in flight.
pub(crate) enum Progress<B> {
    Pending(Slot<InFlight<B>>),
    Done(Slot<Done<B>>),
    Failed(Box<Failed<B>>),
}

impl Core {
    fn replay(&mut self, live: Extent, buckets: &Arc<Buckets>) -> Result<Replay> {
        if !Arc::ptr_eq(self.executor.buckets(), buckets) {
            self.executor.take_buckets(&mut *self.lane, buckets)?;
        }
        let bucket = buckets.find(live);
        let bucket = bucket.expect("batches are formed within the largest bucket");
        self.executor.replay(&mut *self.lane, bucket, live)
    }
}

impl<S> Slot<S> {
    fn with<T>(self, state: impl FnOnce(S) -> T) -> Slot<T> {
        Slot {
            core: self.core,
            state: state(self.state),
        }
    }

    fn fail<B>(self, error: Error, batch: impl FnOnce(S) -> B) -> Box<Failed<B>> {
        let error = error.within(format!("slot {}", self.core.index));
        let batch = batch(self.state);
        let slot = Slot {
            core: self.core,
            state: Free(()),
        };
        Box::new(Failed { error, batch, slot })
    }
}

impl Slot<Free> {
    pub(crate) fn new(index: usize, lane: Box<dyn Lane>, executor: Executor) -> Self {
        Slot {
            core: Box::new(Core {
                index,
                lane,
                executor,
            }),
            state: Free(()),
        }
    }

    pub(crate) fn begin(self) -> Slot<Filling> {
        self.with(|_| Filling(()))
    }

    /// Carries a batch that has nothing for the device in its turn.
    pub(crate) fn pass<B>(self, batch: B) -> Slot<Done<B>> {
        self.with(|_| Done { batch })
    }
}

impl Slot<Filling> {
    pub(crate) fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        self.core.lane.host_mut(buffers)
    }

    pub(crate) fn filled<B>(
        self,
        batch: B,
        live: Extent,
        buckets: Arc<Buckets>,
    ) -> Slot<Filled<B>> {
        self.with(|_| Filled {
            batch,
            live,
            buckets,
        })
    }
}

impl<B> Slot<Filled<B>> {
    /// Gives the batch to the device, in the smallest bucket that holds it.
    pub(crate) fn submit(mut self) -> Submitted<B> {
        match self.core.replay(self.state.live, &self.state.buckets) {
            Ok(replay) => Ok((self.with(|Filled { batch, .. }| InFlight { batch }), replay)),
            Err(error) => Err(self.fail(error.within("submit"), |state| state.batch)),
        }
    }
}

impl<B> Slot<InFlight<B>> {
    /// Looks once.
    pub(crate) fn poll(mut self) -> Progress<B> {
        match self.core.lane.is_done() {
            Ok(false) => Progress::Pending(self),
            Ok(true) => Progress::Done(self.with(|InFlight { batch }| Done { batch })),
            Err(error) => Progress::Failed(self.fail(error.within("compute"), |state| state.batch)),
        }
    }

    /// Waits to the end.
    pub(crate) fn wait(mut self) -> Progress<B> {
        match self.core.lane.wait() {
            Ok(()) => Progress::Done(self.with(|InFlight { batch }| Done { batch })),
            Err(error) => Progress::Failed(self.fail(error.within("compute"), |state| state.batch)),
        }
    }
}

impl<B> Slot<Done<B>> {
    pub(crate) fn batch(&self) -> &B {
        &self.state.batch
    }

    pub(crate) fn host(&self, buffer: BufferId) -> &[u8] {
        self.core.lane.host(buffer)
    }

    pub(crate) fn release(self) -> (Slot<Free>, B) {
        let batch = self.state.batch;
        let slot = Slot {
            core: self.core,
            state: Free(()),
        };
        (slot, batch)
    }
}
