//! [`Pipeline`]: the front without threads, which its caller drives.

use super::batch::{Batch, Batcher, expiry_error};
use super::build::{EngineParts, Shrunk, build};
use super::config::{EngineConfig, SubmitOptions, TrySubmitError};
use super::counters::{Counters, add};
use super::plan::MemoryPlan;
use super::ring::{Finished, Ring};
use super::stages::{Shared, SubmitOutcome};
use super::statistics::{StageThreads, Statistics};
use super::timeline::Timeline;
use super::uniforms::{Uniforms, changes};
use crate::backend::Backend;
use crate::backend::fork::OfProcess;
use crate::error::{Error, Result};
use crate::workload::{Completion, Workload};
use rayon::ThreadPool;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// A workload on one or more devices, driven by its caller: the slots and stages of an
/// [`Engine`](super::Engine), on the calling thread.
///
/// It has the lowest latency, because nothing is handed to another thread. Results come in the
/// order in which batches finish, with the numbers of their items.
///
/// In a child of the process that made it, a pipeline takes no items and returns none, and a drop frees
/// nothing of a device.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
/// # use tapeloop_engine::*;
/// use std::sync::Arc;
/// use tapeloop_engine::backend::cpu::CpuBackend;
/// use tapeloop_engine::backend::{Backend, ThreadPool, ThreadPoolBuilder};
///
/// # fn main() -> Result<()> {
/// let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().expect("one thread"));
/// let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
/// let mut pipeline = Pipeline::new(Double::new()?, &[backend], pool, &EngineConfig::new([100]))?;
/// let submitted = pipeline.submit(vec![1.5]).expect("a slot is free");
/// let (number, done) = pipeline.wait().expect("one item is in flight");
/// assert_eq!((number, done.result?), (submitted, vec![3.0]));
/// # Ok(())
/// # }
/// ```
pub struct Pipeline<W: Workload> {
    // Dropped before `shared`, which holds the exclusive use of the backends.
    ring: Ring<Box<Batch<W>>>,
    shared: OfProcess<Shared<W>>,
    batcher: Batcher<W>,
    /// Batches that closed while no slot was free.
    waiting: VecDeque<Box<Batch<W>>>,
    /// Whether to close the open batch as soon as no batch waits.
    wants_flush: bool,
    outputs: Vec<Result<W::Output>>,
    /// Finished items with their numbers.
    done: VecDeque<(u64, Completion<W>)>,
    memory: MemoryPlan,
    shrunk: Vec<Shrunk>,
}

impl<W: Workload> Pipeline<W> {
    /// Does what [`Engine::new`](super::Engine::new) does, without starting threads.
    /// [`EngineConfig::wait`] sets how [`Pipeline::wait`] waits.
    ///
    /// # Errors
    /// The errors of [`Engine::new`](super::Engine::new), and
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if [`EngineConfig::urgent_slots`] is not 0.
    pub fn new(
        workload: W,
        backends: &[Arc<dyn Backend>],
        pool: Arc<ThreadPool>,
        config: &EngineConfig,
    ) -> Result<Self> {
        if config.urgent_slots > 0 {
            let message = "a Pipeline runs batches in the order of their items, and keeps no slots for urgent ones";
            return Err(Error::config(message).fix("set urgent_slots = 0, or use an Engine"));
        }
        let EngineParts {
            shared,
            slots,
            memory,
            shrunk,
        } = build(workload, backends, pool, config)?;
        let ring = Ring::from_slots(slots, config.wait);
        Ok(Pipeline {
            batcher: shared.batcher(),
            shared: OfProcess::new(shared),
            ring,
            waiting: VecDeque::new(),
            wants_flush: false,
            outputs: Vec::new(),
            done: VecDeque::new(),
            memory,
            shrunk,
        })
    }

    /// Submits an item and returns its number, counted from 0. Waits for nothing unless a supervised
    /// device was lost, like [`Pipeline::poll`].
    ///
    /// # Errors
    /// The item, with the reason why it was not taken: [`TrySubmitError::Full`] while a closed batch waits
    /// for a slot, so poll and submit the item again.
    pub fn submit(&mut self, item: W::Item) -> Result<u64, TrySubmitError<W::Item>> {
        self.submit_by(item, SubmitOptions::default(), Instant::now)
    }

    /// [`Pipeline::submit`] with options, at time `now`. Items keep their order here, so `urgent`
    /// only calls [`Pipeline::flush`] after the item.
    ///
    /// # Errors
    /// The errors of [`Pipeline::submit`].
    pub fn submit_at(
        &mut self,
        item: W::Item,
        options: SubmitOptions,
        now: Instant,
    ) -> Result<u64, TrySubmitError<W::Item>> {
        self.submit_by(item, options, || now)
    }

    /// Adds an item to the open batch, and closes what is full. If batches wait for a slot, first
    /// takes in those that have finished, and refuses the item if that frees no slot. Reads `clock`
    /// for some of the items only.
    fn submit_by(
        &mut self,
        item: W::Item,
        options: SubmitOptions,
        clock: impl Fn() -> Instant,
    ) -> Result<u64, TrySubmitError<W::Item>> {
        if let Err(ended) = self.shared.ended.check() {
            return Err(TrySubmitError::Closed(item, ended));
        }
        if !self.waiting.is_empty() {
            self.expire();
            self.collect_finished();
        }
        if !self.waiting.is_empty() {
            return Err(TrySubmitError::Full(item));
        }
        let extent = self.shared.extent(&item);
        let number = self.batcher.next_number();
        let extent = self.batcher.admit(extent);
        if !self.batcher.has_room(&extent) {
            self.close();
        }
        if self.batcher.add(item, extent, clock, &options) {
            self.close();
        }
        if options.urgent {
            self.flush();
        }
        Ok(number)
    }

    /// Closes the open batch without waiting for it to fill. If an earlier batch waits for a slot,
    /// the open batch closes once that batch has one.
    pub fn flush(&mut self) {
        if self.is_in_child() {
            return;
        }
        self.wants_flush = !self.waiting.is_empty();
        if !self.wants_flush {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(batch) = self.batcher.flush() {
            self.waiting.push_back(batch);
            self.start_next();
        }
    }

    /// Closes the open batch if it is due, and returns one finished item with the number that
    /// [`Pipeline::submit`] gave it. Polls every batch in flight if no item is ready. Waits only if a
    /// supervised device was lost: until it is restarted, and its batches have run again.
    pub fn poll(&mut self) -> Option<(u64, Completion<W>)> {
        self.poll_at(Instant::now())
    }

    /// [`Pipeline::poll`] at time `now`.
    pub fn poll_at(&mut self, now: Instant) -> Option<(u64, Completion<W>)> {
        if self.is_in_child() {
            return None;
        }
        self.expire();
        self.close_due(now);
        if self.done.is_empty() {
            self.collect_finished();
            // The batch that blocked it may have a slot now.
            self.close_due(now);
        }
        self.done.pop_front()
    }

    /// Waits for one finished item, and returns it with the number that [`Pipeline::submit`] gave it;
    /// `None` if no item is left. Closes the open batch, since the caller cannot add to it meanwhile.
    #[inline]
    pub fn wait(&mut self) -> Option<(u64, Completion<W>)> {
        if self.is_in_child() {
            return None;
        }
        if self.done.is_empty() {
            self.wait_for_items();
        }
        self.done.pop_front()
    }

    /// Waits until an item is done, or none is left.
    fn wait_for_items(&mut self) {
        while self.done.is_empty() {
            self.flush();
            match self.ring.wait() {
                Some(finished) => self.collect(finished),
                None => return,
            }
        }
    }

    /// See [`Engine::ended`](super::Engine::ended).
    pub fn ended(&self) -> Option<Error> {
        self.shared.ended.reason()
    }

    /// Whether this is a child of the process that made the pipeline, in which it does nothing.
    fn is_in_child(&self) -> bool {
        !self.shared.ended.process().is_current()
    }

    /// Whether every submitted item has been returned.
    pub fn is_idle(&self) -> bool {
        self.ring.in_flight() == 0
            && self.waiting.is_empty()
            && !self.batcher.is_open()
            && self.done.is_empty()
    }

    /// When [`Pipeline::poll`] closes the open batch, if there is one.
    pub fn closes_at(&self) -> Option<Instant> {
        self.batcher.closes_at()
    }

    /// See [`Engine::set_uniforms`](super::Engine::set_uniforms).
    ///
    /// # Errors
    /// Those of [`Engine::set_uniforms`](super::Engine::set_uniforms).
    pub fn set_uniforms(
        &mut self,
        set: impl FnOnce(&mut Uniforms<'_>) -> Result<()>,
    ) -> Result<()> {
        self.shared.ended.check()?;
        let changes = changes(self.shared.program.uniforms(), set)?;
        if !self.batcher.would_change(&changes) {
            return Ok(());
        }
        if self.batcher.is_open() {
            add(
                &self.shared.counters.submitted.batches_closed_by_uniforms,
                1,
            );
            self.close();
        }
        self.batcher.set_uniforms(&changes);
        Ok(())
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.shared.counters.snapshot()
    }

    /// Where the time went so far, and which stage bounds.
    pub fn statistics(&self) -> Statistics {
        if self.is_in_child() {
            return Statistics::default();
        }
        self.shared.statistics(StageThreads::Caller)
    }

    /// See [`Engine::timeline`](super::Engine::timeline).
    pub fn timeline(&self) -> Option<Timeline> {
        if self.is_in_child() {
            return None;
        }
        self.shared.timeline()
    }

    /// The memory that was allocated.
    pub fn memory(&self) -> &MemoryPlan {
        &self.memory
    }

    /// See [`Engine::shrunk`](super::Engine::shrunk).
    pub fn shrunk(&self) -> &[Shrunk] {
        &self.shrunk
    }

    /// Returns the items that have expired and have no slot.
    fn expire(&mut self) {
        let waiting = self.waiting.iter_mut().map(|batch| &mut **batch);
        let batches = waiting.chain([self.batcher.open()]);
        let mut timed = batches
            .filter(|batch| batch.expires_at().is_some())
            .peekable();
        if timed.peek().is_none() {
            return;
        }
        let (now, before) = (Instant::now(), self.done.len());
        for batch in timed {
            let first = batch.first;
            batch.expire(now, |index, item| {
                let result = Err(expiry_error());
                let number = first + u64::from(index);
                self.done.push_back((number, Completion { item, result }));
            });
        }
        while let Some(place) = self.waiting.iter().position(|batch| batch.is_emptied()) {
            let emptied = self.waiting.remove(place).expect("a batch was found there");
            self.batcher.recycle(emptied);
        }
        let expired = self.done.len() - before;
        self.shared.counters.add_expired(expired);
    }

    fn close_due(&mut self, now: Instant) {
        if self.batcher.closes_at().is_some_and(|time| time <= now) {
            self.flush();
        }
    }

    /// Reads the results of all batches that have finished.
    fn collect_finished(&mut self) {
        while let Some(finished) = self.ring.poll() {
            self.collect(finished);
        }
    }

    /// Starts the first batch that waits, if a slot is free.
    fn start_next(&mut self) {
        let Some(mut batch) = self.waiting.pop_front() else {
            return;
        };
        let shared = &self.shared;
        let Some(slot) = self.ring.take_free(|slot| shared.is_usable(slot)) else {
            // From here on it waits for a slot, which the statistics tell from filling.
            batch.closed_at.get_or_insert_with(Instant::now);
            self.waiting.push_front(batch);
            return;
        };
        match self.shared.fill_and_submit(slot, batch) {
            SubmitOutcome::Submitted(Ok(slot)) => self.ring.insert(slot),
            SubmitOutcome::Submitted(Err(failed)) => self.collect(Err(failed)),
            SubmitOutcome::Finished(finished) => self.collect(finished),
        }
    }

    /// Takes a finished batch back. If its device was lost and can be restarted, restarts it and
    /// runs the lost batches again, on this thread.
    fn collect(&mut self, finished: Finished<Box<Batch<W>>>) {
        match finished {
            Err(failed) if self.shared.can_restart(&failed) => {
                let more = || std::iter::from_fn(|| self.ring.poll()).collect();
                let finished = self.shared.recover(failed, more);
                finished
                    .into_iter()
                    .for_each(|finished| self.take_back(finished));
            }
            finished => {
                let finished = self.shared.note_outcome(finished);
                self.take_back(finished);
            }
        }
    }

    /// Reads the results of a batch into `done`, frees its slot, and starts the next batch. A batch whose device
    /// was lost for good comes before those that wait, if another device can run it.
    fn take_back(&mut self, finished: Finished<Box<Batch<W>>>) {
        let finished = match finished {
            Err(failed) if self.shared.moves_on(&failed) => {
                let batch = self.shared.take_off(*failed);
                self.waiting.push_front(batch);
                return self.start_next();
            }
            finished => finished,
        };
        let taken = (self.shared).take_back(finished, &mut self.outputs, None);
        self.ring.put_free(taken.slot);
        let mut batch = taken.batch;
        let numbers = batch.first..;
        let through = numbers
            .zip(batch.entries.drain(..))
            .zip(self.outputs.drain(..));
        for ((number, entry), result) in through {
            // Items that have expired were returned before.
            let Some(item) = entry.item else { continue };
            self.done.push_back((number, Completion { item, result }));
        }
        self.batcher.recycle(batch);
        self.start_next();
        if self.wants_flush && self.waiting.is_empty() {
            self.flush();
        }
    }
}
