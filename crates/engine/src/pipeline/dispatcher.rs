//! [`Dispatcher`]: what the callers and the threads of an engine share. It starts no threads: the
//! thread that closes a batch, or frees a slot, starts what can start.

mod answering;
mod submission;

pub(super) use submission::Incoming;

use super::batch::{Batch, Ordered};
use super::breaks_on_panic::BreaksOnPanic;
use super::compute::{ToDevice, ToDevices, WakeDevice};
use super::counters::add;
use super::driver::Timer;
use super::ending::ENGINE;
use super::queue::{Admitted, BatchStart, Cancelled, NextSteps, Queue};
use super::reentrancy::{InsideEngine, check_outside};
use super::resident_version::ResidentVersion;
use super::ring::Finished;
use super::run_results::RunSink;
use super::slot::{Failed, Flight, Progress, Slot};
use super::stages::{Shared, SubmitOutcome};
use super::sync::{AtomicBool, AtomicU64, Condvar, Guard, Mutex, Receiver, yield_now};
use super::ticket::{Answers, Early, TicketEngine};
use super::uniforms::Change;
use super::unwinding::catch_and_log;
use super::upload::is_large;
use crate::error::{Error, ErrorKind, Result};
use crate::workload::Workload;
use crossbeam_utils::CachePadded;
use rayon::ThreadPool;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

pub(super) struct Dispatcher<W: Workload> {
    pub(super) shared: Shared<W>,
    queue: CachePadded<Mutex<Queue<W>>>,
    /// A closed batch was given a slot.
    room: Condvar,
    /// Counts the batches that were given a slot, and the slots that are left to submissions which
    /// wait for room. Changes while the queue is locked.
    changes: CachePadded<AtomicU64>,
    /// By device: batches that were given a slot and are not with the completion thread yet.
    starting: Vec<CachePadded<AtomicU64>>,
    devices: Arc<ToDevices<Box<Batch<W>>>>,
    /// `devices` again, as the trait object that results which borrow a slot wake.
    wakes: Arc<dyn WakeDevice>,
    /// By device: the receiver of its completion thread. Threads that wait for a ticket receive from it
    /// too, and so help that thread. Empty if the backend does not allow that.
    inboxes: Vec<Receiver<ToDevice<Box<Batch<W>>>>>,
    /// Batches whose items have their results.
    answered: CachePadded<AtomicU64>,
    /// Answers items that expire; started with the first of them.
    timer: OnceLock<Timer>,
    /// Whether the engine is dropped.
    is_closing: AtomicBool,
    /// Whether a thread panicked while it had a batch.
    is_broken: AtomicBool,
}

impl<W: Workload> Dispatcher<W> {
    pub(super) fn new(
        shared: Shared<W>,
        queue: Queue<W>,
        devices: Arc<ToDevices<Box<Batch<W>>>>,
        inboxes: Vec<Receiver<ToDevice<Box<Batch<W>>>>>,
    ) -> Self {
        let starting = (0..devices.len()).map(|_| CachePadded::default()).collect();
        Dispatcher {
            shared,
            queue: CachePadded::new(Mutex::new(queue)),
            room: Condvar::new(),
            changes: CachePadded::new(AtomicU64::new(0)),
            starting,
            wakes: Arc::clone(&devices) as Arc<dyn WakeDevice>,
            devices,
            inboxes,
            answered: CachePadded::new(AtomicU64::new(0)),
            timer: OnceLock::new(),
            is_closing: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Closes the open batch.
    pub(super) fn flush(self: &Arc<Self>) -> Result<()> {
        self.shared.ended.check()?;
        self.close_open();
        Ok(())
    }

    fn close_open(self: &Arc<Self>) {
        let mut queue = self.queue.lock();
        queue.flush(&self.shared);
        self.unlock_and_start(queue);
    }

    /// Changes uniforms for the items that are added from now on.
    pub(super) fn set_uniforms(self: &Arc<Self>, changes: &[Change]) -> Result<()> {
        self.shared.ended.check()?;
        let mut queue = self.queue.lock();
        queue.set_uniforms(&self.shared, changes);
        self.unlock_and_start(queue);
        Ok(())
    }

    /// Changes the contents of the resident buffers for the items that are added from now on. Starts nothing:
    /// [`Self::start_ready`] does.
    pub(super) fn set_resident(&self, version: &Arc<ResidentVersion>) {
        self.queue.lock().set_resident(&self.shared, version);
    }

    /// Closes the open batch. The next items belong to a run with these results, or to none.
    pub(super) fn set_run(self: &Arc<Self>, results: Option<Arc<dyn RunSink<W>>>) {
        let mut queue = self.queue.lock();
        let before = queue.set_run(&self.shared, results);
        self.unlock_and_start(queue);
        // What the run maps with is the embedder's code.
        catch_and_log(|| drop(before));
    }

    /// Starts what can start, after the consumer of a run has taken a batch or has ended.
    pub(super) fn start_ready(self: &Arc<Self>) {
        self.unlock_and_start(self.queue.lock());
    }

    /// Takes no more items.
    pub(super) fn close_to_items(self: &Arc<Self>) {
        let mut queue = self.queue.lock();
        // Under the lock: no item is added after the last batch was closed.
        self.shared.ended.close();
        queue.flush(&self.shared);
        let next = self.next(&mut queue);
        drop(queue);
        // Submissions that wait fail.
        self.note_room();
        self.start_all(next);
    }

    /// Lets the completion threads end once all batches are answered.
    pub(super) fn close(self: &Arc<Self>) {
        if !self.is_broken() {
            self.close_open();
        }
        // `Self::answer` has the other half: it counts its batch, then looks whether the engine
        // closes.
        self.is_closing.swap(true, SeqCst);
        self.devices.wake_all();
    }

    /// Whether the completion threads have nothing left to do.
    pub(super) fn is_over(&self) -> bool {
        let is_answered = || self.queue.lock().closed() == self.answered.load(SeqCst);
        self.is_broken() || self.is_closing.load(SeqCst) && is_answered()
    }

    /// Fails in a child of the process that made the engine.
    #[inline]
    fn check_process(&self) -> Result<()> {
        self.shared.ended.process().check(ENGINE)
    }

    fn is_broken(&self) -> bool {
        self.is_broken.load(SeqCst)
    }

    /// Closes the open batch if it is due at `now`. Returns when it will be, if it closes by time.
    pub(super) fn close_due(self: &Arc<Self>, now: Instant) -> Option<Instant> {
        let mut queue = self.queue.lock();
        let due = queue.closes_at()?;
        if due > now {
            return Some(due);
        }
        queue.flush(&self.shared);
        self.unlock_and_start(queue);
        None
    }

    /// Closes the open batch if it is due, and starts batches for which there is a slot now. Called on a
    /// device's completion thread that was woken. Returns when the open batch will be due.
    pub(super) fn handle_wake(self: &Arc<Self>, device: usize) -> Option<Instant> {
        self.devices.note_woken(device);
        let due = self.close_due(Instant::now());
        // Results may have given a slot back.
        self.start_ready();
        due
    }

    /// Takes the next start from the queue, which is locked, and counts it as starting on its
    /// device, for [`Self::without_submissions`]. Room has become free with it, so the threads that wait
    /// for room are woken.
    fn next(&self, queue: &mut Queue<W>) -> NextSteps<W> {
        let next = queue.next(&self.shared);
        if let Some(start) = &next.start {
            self.starting[start.slot.device()].fetch_add(1, SeqCst);
            self.note_room();
        }
        next
    }

    /// Wakes the threads that wait for room.
    fn note_room(&self) {
        self.changes.fetch_add(1, SeqCst);
        self.room.notify_all();
    }

    /// Takes what can start from the queue, unlocks the queue, and starts it.
    fn unlock_and_start(self: &Arc<Self>, mut queue: Guard<'_, Queue<W>>) {
        let next = self.next(&mut queue);
        drop(queue);
        self.start_all(next);
    }

    /// Starts batches while there are some with a slot.
    fn start_all(self: &Arc<Self>, mut next: NextSteps<W>) {
        loop {
            if let Some(admitted) = next.admitted {
                self.finish_admission(admitted);
            }
            let Some(mut start) = next.start else { return };
            let more = start.has_more;
            let bytes = self.shared.program.uploads.bytes(start.batch.total);
            next = match self.workers_for(bytes) {
                Some(workers) => {
                    start.batch.handed_over_at = Some(Instant::now());
                    let computes = self.computes();
                    self.hand_over(workers, move |dispatcher| dispatcher.start(start, computes));
                    NextSteps::default()
                }
                None => self.start(start, false),
            };
            if next.start.is_none() && more {
                if let Some(admitted) = next.admitted.take() {
                    self.finish_admission(admitted);
                }
                next = self.next(&mut self.queue.lock());
            }
        }
    }

    /// Wakes the tasks of items that wait for room no longer.
    fn finish_admission(&self, admitted: Admitted<W>) {
        if admitted.changes_due {
            self.devices.wake_all();
        }
        for waker in admitted.wakers {
            catch_and_log(|| waker.wake());
        }
        for item in admitted.refused {
            catch_and_log(|| drop(item));
        }
    }

    /// Whether threads of the engine's pool compute batches. They then write and read large batches too.
    fn computes(&self) -> bool {
        !self.inboxes.is_empty()
    }

    /// Fails if this thread runs the engine's code, or is of the pool that computes its batches: a part of
    /// an item that the workload shares out among the pool's threads looks like any other work there.
    pub(super) fn check_outside(&self, call: &str, fix: &str) -> Result<()> {
        if self.computes() && self.shared.pool.current_thread_index().is_some() {
            return Err(Error::usage(format!(
                "{call} here would wait for itself: this thread is of the pool that computes the batches"
            ))
            .fix(fix));
        }
        check_outside(self.shared.engine, call, fix)
    }

    /// The threads for large batches, if they are faster than this one at copying `bytes` bytes.
    fn workers_for(&self, bytes: usize) -> Option<&ThreadPool> {
        (self.shared.workers.as_deref()).filter(|_| is_large(bytes))
    }

    /// The number of the engine's own workers.
    pub(super) fn workers(&self) -> usize {
        let workers = self.shared.workers.as_ref().filter(|_| !self.computes());
        workers.map_or(0, |workers| workers.current_num_threads())
    }

    /// Lets one of the threads for large batches run a task, and then what the task lets start.
    fn hand_over(
        self: &Arc<Self>,
        workers: &ThreadPool,
        task: impl FnOnce(&Arc<Self>) -> NextSteps<W> + Send + 'static,
    ) {
        let dispatcher = Arc::clone(self);
        // Batches that a worker hands over start in their order.
        workers.spawn_fifo(move || {
            // A panic has broken the engine by now, and its message was printed.
            let _ = catch_unwind(AssertUnwindSafe(|| dispatcher.start_all(task(&dispatcher))));
            // Drops the workload, which is the embedder's code, if the engine's last handle was
            // dropped in the engine's own code. A panic here would end the process.
            let _inside = InsideEngine::enter(dispatcher.shared.engine);
            catch_and_log(|| drop(dispatcher));
        });
    }

    /// Writes and submits a batch, and computes and answers it too if `computes`. Returns the next one that
    /// can start, if this frees the slot.
    fn start(self: &Arc<Self>, start: BatchStart<W>, computes: bool) -> NextSteps<W> {
        let _breaks = BreaksOnPanic::new(self);
        let BatchStart { slot, batch, .. } = start;
        let device = slot.device();
        let finished = match self.shared.fill_and_submit(slot, batch) {
            SubmitOutcome::Submitted(flight) if computes => Some(flight.and_then(Slot::wait)),
            SubmitOutcome::Submitted(flight) => {
                self.send(device, flight);
                None
            }
            SubmitOutcome::Finished(finished) => Some(finished),
        };
        // After the batch was sent to the device's thread: a restart waits for those that were not.
        self.starting[device].fetch_sub(1, SeqCst);
        match finished {
            Some(finished) => self.deliver(self.shared.note_outcome(finished)),
            None => NextSteps::default(),
        }
    }

    /// Gives a batch that was submitted to the device's completion thread.
    fn send(&self, device: usize, flight: Flight<Box<Batch<W>>>) {
        self.devices.send(device, flight);
        // Looked at afterwards: either this finds the engine broken, or `break_off` finds the batch.
        if self.is_broken() {
            self.drop_undelivered();
        }
    }

    /// Drops what the completion threads of a broken engine will not receive. Without helpers it is
    /// dropped with the threads.
    fn drop_undelivered(&self) {
        for batches in &self.inboxes {
            while let Ok(lost) = batches.try_recv() {
                catch_and_log(|| drop(lost));
            }
        }
    }

    /// Reads the results of a batch that has finished, and answers it.
    pub(super) fn finish(self: &Arc<Self>, mut finished: Finished<Box<Batch<W>>>) {
        let batch = match &mut finished {
            Ok(slot) => slot.batch_mut(),
            Err(failed) => &mut failed.batch,
        };
        // Where the pool computes, the device's thread maps small batches itself: workers would only take
        // the pool's cores.
        let maps = |run: &Ordered<W>| !self.computes() && run.results.maps();
        let workers = if batch.ordered.as_ref().is_some_and(maps) {
            self.shared.workers.as_deref()
        } else {
            self.workers_for(self.shared.program.downloads.bytes(batch.total))
        };
        match workers {
            Some(workers) => {
                batch.handed_over_at = Some(Instant::now());
                self.hand_over(workers, |dispatcher| dispatcher.deliver(finished));
            }
            None => self.start_all(self.deliver(finished)),
        }
    }

    /// Reads the results of a batch, frees its slot, and answers it. Returns the next batch that can
    /// start.
    fn deliver(&self, finished: Finished<Box<Batch<W>>>) -> NextSteps<W> {
        let _breaks = BreaksOnPanic::new(self);
        let finished = match finished {
            Err(failed) if self.shared.moves_on(&failed) => return self.move_on(*failed),
            finished => finished,
        };
        let mut outputs = self.shared.outputs.take().unwrap_or_default();
        let wakes = Some(&self.wakes);
        let taken = (self.shared).take_back(finished, &mut outputs, wakes);
        let next = {
            let mut queue = self.queue.lock();
            if taken.failure.is_some() {
                // The engine has ended, so nothing else closes the batches that are open.
                queue.flush(&self.shared);
            }
            // The slot may be left to a submission that waits for room, which sees the change.
            if queue.put_free(taken.slot) {
                self.changes.fetch_add(1, SeqCst);
                NextSteps::default()
            } else {
                self.next(&mut queue)
            }
        };
        self.answer(taken.batch, taken.failure, &mut outputs);
        self.shared.outputs.give_back(outputs);
        next
    }

    /// Queues a batch again whose device was lost for good. Returns the next batch that can start.
    fn move_on(&self, failed: Failed<Box<Batch<W>>>) -> NextSteps<W> {
        let batch = self.shared.take_off(failed);
        let mut queue = self.queue.lock();
        queue.put_back(batch);
        self.next(&mut queue)
    }

    /// Runs `work` while no batch is given to `device`, and all earlier ones are with its completion
    /// thread.
    pub(super) fn without_submissions<T>(
        self: &Arc<Self>,
        device: usize,
        work: impl FnOnce() -> T,
    ) -> T {
        self.queue.lock().suspend(device);
        // This takes as long as writing and submitting a batch.
        while self.starting[device].load(SeqCst) > 0 && !self.is_broken() {
            yield_now();
        }
        let result = work();
        let mut queue = self.queue.lock();
        queue.resume(device);
        self.unlock_and_start(queue);
        result
    }

    /// Ends the engine after a panic: what was submitted may never be answered.
    pub(super) fn break_off(&self) {
        // First: who gives a batch to a device afterwards sees it, and drops the batch.
        self.is_broken.store(true, SeqCst);
        let message = "a thread of the engine panicked, which is a mistake in tapeloop";
        self.shared
            .ended
            .end(Error::new(ErrorKind::Closed, message));
        let (lost, admitted) = {
            let mut queue = self.queue.lock();
            let admitted = queue.refuse_waiting(&self.shared);
            (queue.clear(), admitted)
        };
        self.room.notify_all();
        self.finish_admission(admitted);
        self.devices.wake_all();
        for batch in lost {
            catch_and_log(|| drop(batch));
        }
        self.drop_undelivered();
    }

    /// Answers the items that have expired at `now` and have no slot. Returns when the next one expires.
    pub(super) fn expire_due(self: &Arc<Self>, now: Instant) -> Option<Instant> {
        let mut queue = self.queue.lock();
        let expired = queue.expire(&self.shared, now);
        // A closed batch less waits, so that another may.
        if !expired.emptied.is_empty() {
            self.note_room();
        }
        let expires_at = queue.expires_at();
        let next = self.next(&mut queue);
        drop(queue);
        let count = expired.answers.len() + expired.waiting;
        self.shared.counters.add_expired(count);
        self.finish_admission(expired.admitted);
        expired.answers.into_iter().for_each(Early::finish);
        for batch in expired.emptied {
            self.answer(batch, None, &mut Vec::new());
        }
        self.start_all(next);
        expires_at
    }

    /// Tells the timer that an item expires earlier than those before.
    fn wake_timer(self: &Arc<Self>) {
        self.timer.get_or_init(|| Timer::start(self)).wake();
    }

    /// Wakes the timer, and returns whether it has ended, as it does once the engine is over.
    pub(super) fn ends_timer(&self) -> bool {
        let Some(timer) = self.timer.get() else {
            return true;
        };
        timer.wake();
        timer.has_ended()
    }
}

impl<W: Workload> Drop for Dispatcher<W> {
    fn drop(&mut self) {
        let reason = Error::new(ErrorKind::Closed, "the engine was dropped");
        self.shared.ended.end(reason);
        if let Some(timer) = self.timer.get() {
            timer.wake();
        }
    }
}

impl<W: Workload> TicketEngine<W> for Dispatcher<W> {
    fn help(self: Arc<Self>, takes_batches: bool, is_over: &dyn Fn() -> bool) {
        let breaks = BreaksOnPanic::new(&self);
        let inside = InsideEngine::enter(self.shared.engine);
        let inboxes = self.inboxes.iter().filter(|_| takes_batches);
        for (device, batches) in inboxes.enumerate() {
            let mut was_woken = false;
            while !is_over()
                && let Ok(message) = batches.try_recv()
            {
                let ToDevice::Flight(flight) = message else {
                    self.devices.wake_again(device);
                    // The second one is that which this thread sent: there is no batch.
                    if std::mem::replace(&mut was_woken, true) {
                        break;
                    } else {
                        continue;
                    }
                };
                let unfinished = match flight.map(Slot::poll) {
                    Ok(Progress::Done(slot)) => {
                        self.finish(self.shared.note_outcome(Ok(slot)));
                        continue;
                    }
                    Ok(Progress::Pending(slot)) => Ok(slot),
                    Ok(Progress::Failed(failed)) | Err(failed) => Err(failed),
                };
                // Not done, or lost: the device's thread goes on with it.
                self.send(device, unfinished);
                break;
            }
        }
        drop((inside, breaks));
        // A thread of the pool may be the only one that can compute the batch.
        #[cfg(not(loom))]
        crate::backend::help_until(&self.shared.pool, is_over);
        // Drops the workload, which is the embedder's code, if the engine was dropped meanwhile.
        catch_and_log(|| drop(self));
    }

    fn cancel(
        self: Arc<Self>,
        answers: &Answers<W>,
        items: Range<u32>,
        take: &mut dyn FnMut(W::Item),
    ) -> bool {
        let count = items.len();
        let (cancelled, admitted) = {
            let mut queue = self.queue.lock();
            let cancelled = queue.cancel(&self.shared, answers, items, take);
            let admitted = match cancelled {
                Cancelled::Emptied(_) => {
                    self.note_room();
                    queue.admit_waiting(&self.shared)
                }
                _ => None,
            };
            (cancelled, admitted)
        };
        if let Some(admitted) = admitted {
            // This thread may hold a lock that the workload takes, so others start what can start.
            self.devices.wake_all();
            self.finish_admission(admitted);
        }
        let is_taken = !matches!(cancelled, Cancelled::Late);
        if is_taken {
            add(&self.shared.counters.submitted.items_cancelled, count);
        }
        if let Cancelled::Emptied(batch) = cancelled {
            self.answer(batch, None, &mut Vec::new());
        }
        // May run the last drop of the workload, the embedder's code: see `help`.
        catch_and_log(|| drop(self));
        is_taken
    }
}
