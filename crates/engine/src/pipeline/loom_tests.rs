//! The driver's hand-offs under loom: every order of events, up to a number of preemptions, with
//! models of the locks and channels.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p tapeloop-engine --lib --release loom_`

use super::run_results::{RunBatch, RunResults};
use super::sync::{Builder, Condvar, Mutex};
use super::{Engine, EngineConfig, SubmitOptions, Ticket};
use crate::backend::{Backend, cpu::CpuBackend};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Buffer, DeviceInfo, Kernel, Recorder, TwinLaunch};
use crate::replay::Verify;
use crate::workload::{Completion, Extent, Leased, ReadViews, Workload, WriteViews};
use rayon::ThreadPool;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Doubles numbers; 0 is no item, and 13 makes the kernel panic. Reading 7 drops the engine that is
/// in `held`; reading 9 submits 4 to it; reading 11 leaves its result in `LEASED`.
struct Double {
    kernel: Kernel,
    held: Held,
}

static LEASED: std::sync::Mutex<Option<Leased<u32>>> = std::sync::Mutex::new(None);

type Held = Arc<std::sync::Mutex<Option<Arc<Engine<Double>>>>>;

fn double(launch: &mut TwinLaunch<'_>) {
    let x: &[u32] = launch.read();
    let y: &mut [u32] = launch.write();
    for (y, x) in y.iter_mut().zip(x) {
        assert!(*x != 13, "planted");
        *y = x * 2;
    }
}

struct Buffers {
    x: Buffer<u32>,
    y: Buffer<u32>,
}

impl Workload for Double {
    type Item = u32;
    type Output = u32;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, item: &u32) -> Result<Extent> {
        match item {
            0 => Err(Error::input("planted")),
            _ => Ok(Extent::from([1])),
        }
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        recorder.upload(x);
        recorder.launch(&self.kernel, 1, &[x.into(), y.into()]);
        recorder.download(y);
        Ok(Buffers { x, y })
    }

    fn write(
        &self,
        buffers: &Buffers,
        item: &u32,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(buffers.x)[0] = *item;
        Ok(())
    }

    fn read(&self, buffers: &Buffers, item: &u32, _: Extent, views: &ReadViews<'_>) -> Result<u32> {
        let held = || self.held.lock().unwrap();
        match item {
            7 => drop(held().take()),
            9 => {
                let engine = held().clone().expect("it is held");
                let error = engine.submit(4).err().expect("it would wait for itself");
                assert_eq!(error.kind(), ErrorKind::Usage);
                let ticket = engine.try_submit(4, SubmitOptions::default());
                drop(ticket.expect("there is room"));
            }
            11 => *LEASED.lock().unwrap() = Some(views.lease(buffers.y)),
            _ => {}
        }
        Ok(views.get(buffers.y)[0])
    }
}

/// Runs `test` on a new engine of `slots` slots, one item a batch, in every order of events with at
/// most `preemptions` preemptions.
fn check(slots: usize, preemptions: usize, test: impl Fn(Engine<Double>) + Send + Sync + 'static) {
    let cpu = || -> Vec<Arc<dyn Backend>> { vec![Arc::new(CpuBackend::inline())] };
    check_on(cpu, [slots, 0], preemptions, move |engine, _| test(engine));
}

/// [`check`] on the devices that `backends` makes, with what the workload holds. `slots` are all of
/// a device, and those that are kept for urgent batches.
fn check_on(
    backends: impl Fn() -> Vec<Arc<dyn Backend>> + Send + Sync + 'static,
    slots: [usize; 2],
    preemptions: usize,
    test: impl Fn(Engine<Double>, Held) + Send + Sync + 'static,
) {
    let pool = pool();
    explore(preemptions, move || {
        let (engine, held) = engine(&backends(), &pool, slots);
        test(engine, held);
    });
}

fn pool() -> Arc<ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    Arc::new(pool.unwrap())
}

fn engine(
    backends: &[Arc<dyn Backend>],
    pool: &Arc<ThreadPool>,
    slots: [usize; 2],
) -> (Engine<Double>, Held) {
    let kernel = Kernel::new("double")
        .reads::<u32>("x")
        .writes::<u32>("y")
        .twin(double);
    let held = Held::default();
    let workload = Double {
        kernel,
        held: Arc::clone(&held),
    };
    let mut config = EngineConfig::new([1]);
    [config.slots, config.urgent_slots] = slots;
    config.batch_wait = Duration::MAX;
    config.policy.verify = Verify::Off;
    let engine = Engine::new(workload, backends, Arc::clone(pool), &config);
    (engine.unwrap(), held)
}

/// The stack of a model's thread that builds engines, in words.
const STACK_WORDS: usize = 1 << 15;

/// Runs `test` in every order of events with at most `preemptions` preemptions.
fn explore(preemptions: usize, test: impl Fn() + Send + Sync + 'static) {
    let orders = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&orders);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    let test = Arc::new(test);
    model.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let test = Arc::clone(&test);
        // A thread of its own, as the stack of a model's first thread is too small to build engines.
        let thread = Builder::new().stack_size(STACK_WORDS);
        let thread = thread.spawn(move || test()).unwrap();
        thread.join().unwrap();
    });
    println!(
        "{} orders of events",
        orders.load(std::sync::atomic::Ordering::Relaxed)
    );
}

fn value(ticket: Ticket<Double>) -> Result<u32> {
    ticket.wait()?.result
}

/// Adds the items of a run's batch with their results.
fn take(seen: &mut Vec<(u32, u32)>, batch: Result<RunBatch<Completion<Double>>>) {
    let mut batch = batch.unwrap();
    while let Some(done) = batch.pop() {
        seen.push((done.item, done.result.unwrap()));
    }
}

#[test]
fn loom_every_ticket_is_answered() {
    check(1, 4, |engine| {
        let tickets: Vec<_> = [3, 0, 5].map(|item| engine.submit(item).unwrap()).into();
        engine.flush().unwrap();
        let values: Vec<_> = tickets.into_iter().map(value).collect();
        assert!(matches!(values[..], [Ok(6), Err(_), Ok(10)]));
    });
}

/// Wakes the thread that polls.
struct Poller {
    is_woken: Mutex<bool>,
    woken: Condvar,
}

impl Wake for Poller {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock() = true;
        self.woken.notify_all();
    }
}

/// Polls a future whenever its task is woken, until it is ready.
fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    let poller = Arc::new(Poller {
        is_woken: Mutex::new(false),
        woken: Condvar::new(),
    });
    let waker = Waker::from(Arc::clone(&poller));
    loop {
        let polled = Pin::new(&mut future).poll(&mut Context::from_waker(&waker));
        if let Poll::Ready(output) = polled {
            return output;
        }
        let mut is_woken = poller.is_woken.lock();
        while !*is_woken {
            poller.woken.wait(&mut is_woken);
        }
        *is_woken = false;
    }
}

#[test]
fn loom_no_task_that_awaits_tickets_misses_its_wake() {
    check(1, 3, |engine| {
        let tickets = engine.submit_many([3, 5]).unwrap();
        let last = engine.submit(13).unwrap();
        engine.flush().unwrap();
        let values = block_on(tickets).unwrap().into_iter();
        let values: Vec<_> = values.map(|done| done.result.unwrap()).collect();
        assert_eq!(values, [6, 10]);
        assert!(block_on(last).unwrap().result.is_err());
    });
}

#[test]
fn loom_no_task_that_waits_for_room_misses_its_turn() {
    check(1, 2, |engine| {
        // One takes the slot, and two wait for it: there is no room.
        for item in [3, 4, 5] {
            drop(engine.submit(item).unwrap());
        }
        let ticket = block_on(engine.submit_async(8, SubmitOptions::default()));
        assert_eq!(value(ticket.unwrap()).unwrap(), 16);
    });
}

#[test]
fn loom_a_task_that_gives_up_leaves_its_turn_to_the_next() {
    check(1, 2, |engine| {
        for item in [3, 4, 5] {
            drop(engine.submit(item).unwrap());
        }
        let mut given_up = engine.submit_async(7, SubmitOptions::default());
        let polled = Pin::new(&mut given_up).poll(&mut Context::from_waker(Waker::noop()));
        let mut next = engine.submit_async(8, SubmitOptions::default());
        let mut ticket = None;
        // Woken or not, by the time that the next one waits behind it.
        if polled.is_pending() {
            let polled = Pin::new(&mut next).poll(&mut Context::from_waker(Waker::noop()));
            ticket = match polled {
                Poll::Ready(ticket) => Some(ticket),
                Poll::Pending => None,
            };
        }
        drop(given_up);
        let ticket = ticket.unwrap_or_else(|| block_on(next));
        assert_eq!(value(ticket.unwrap()).unwrap(), 16);
    });
}

#[test]
fn loom_the_end_of_an_engine_is_heard() {
    check(1, 4, |engine| {
        let ended = engine.until_ended();
        drop(engine.submit(3).unwrap());
        let waiting = Builder::new().spawn(move || block_on(ended));
        drop(engine);
        let ended = waiting.unwrap().join().unwrap();
        assert_eq!(ended.kind(), ErrorKind::Closed);
    });
}

#[test]
fn loom_a_batch_starts_in_the_slot_that_a_result_gives_back() {
    check(1, 3, |engine| {
        assert_eq!(value(engine.submit(11).unwrap()).unwrap(), 22);
        let leased = LEASED.lock().unwrap().take().expect("it was read");
        let dropping = Builder::new().spawn(move || {
            assert_eq!(leased[..], [22]);
            drop(leased);
        });
        assert_eq!(value(engine.submit(4).unwrap()).unwrap(), 8);
        dropping.unwrap().join().unwrap();
    });
}

#[test]
fn loom_dropping_the_engine_finishes_what_was_submitted() {
    check(2, 4, |engine| {
        let first = engine.submit(4).unwrap();
        let second = engine.submit(5).unwrap();
        drop(engine);
        assert!(first.is_done() && second.is_done());
        assert_eq!((value(first).unwrap(), value(second).unwrap()), (8, 10));
    });
}

#[test]
fn loom_two_producers_share_an_engine() {
    check(1, 3, |engine| {
        let engine = Arc::new(engine);
        let other = Arc::clone(&engine);
        let urgent = SubmitOptions {
            urgent: true,
            ..SubmitOptions::default()
        };
        let producer = Builder::new()
            .spawn(move || {
                let ticket = other.submit_with(7, urgent).unwrap();
                other.flush().unwrap();
                drop(other);
                assert_eq!(value(ticket).unwrap(), 14);
            })
            .unwrap();
        let ticket = engine.submit(8).unwrap();
        engine.flush().unwrap();
        assert_eq!(value(ticket).unwrap(), 16);
        drop(engine);
        producer.join().unwrap();
    });
}

#[test]
fn loom_urgent_items_gather_while_the_slot_that_is_kept_for_them_is_in_use() {
    let cpu = || -> Vec<Arc<dyn Backend>> { vec![Arc::new(CpuBackend::inline())] };
    check_on(cpu, [2, 1], 2, |engine, _| {
        let engine = Arc::new(engine);
        let other = Arc::clone(&engine);
        let producer = Builder::new()
            .spawn(move || assert_eq!(value(other.submit(8).unwrap()).unwrap(), 16))
            .unwrap();
        let urgent = SubmitOptions {
            urgent: true,
            ..SubmitOptions::default()
        };
        let tickets: Vec<_> = [3, 5]
            .map(|item| engine.submit_with(item, urgent).unwrap())
            .into();
        let values: Vec<_> = tickets.into_iter().map(value).collect();
        assert!(matches!(values[..], [Ok(6), Ok(10)]));
        producer.join().unwrap();
    });
}

/// One batch is in the slot and two wait for it, so the fourth has no room at first.
#[test]
fn loom_a_submission_that_waits_for_room_fills_the_slot_that_becomes_free() {
    check(1, 2, |engine| {
        let tickets: Vec<_> = [1, 2, 3, 4].map(|item| engine.submit(item).unwrap()).into();
        for (ticket, expected) in tickets.into_iter().zip([2, 4, 6, 8]) {
            assert_eq!(value(ticket).unwrap(), expected);
        }
    });
}

/// One batch is in the slot and two wait for it, so the fourth has no room until one of them starts
/// or is cancelled.
#[test]
fn loom_a_cancelled_item_comes_back_or_runs_and_leaves_room() {
    check(1, 2, |engine| {
        let engine = Arc::new(engine);
        let first = engine.submit(1).unwrap();
        let [second, third] = [2, 3].map(|item| engine.submit(item).unwrap());
        let other = Arc::clone(&engine);
        let producer = Builder::new()
            .spawn(move || assert_eq!(value(other.submit(4).unwrap()).unwrap(), 8))
            .unwrap();
        let cancelled = third.cancel();
        assert!(matches!(cancelled, Err(_) | Ok(3)));
        assert_eq!((value(first).unwrap(), value(second).unwrap()), (2, 4));
        producer.join().unwrap();
        let taken = u64::from(cancelled.is_ok());
        assert_eq!(engine.counters().items_cancelled, taken);
    });
}

#[test]
fn loom_a_batch_that_fails_answers_its_tickets_and_the_next_one_runs() {
    check(1, 3, |engine| {
        let failing = engine.submit(13).unwrap();
        let after = engine.submit(2).unwrap();
        engine.flush().unwrap();
        let failed = failing.wait().unwrap();
        assert_eq!(failed.item, 13);
        assert_eq!(failed.result.unwrap_err().kind(), ErrorKind::Kernel);
        assert_eq!(value(after).unwrap(), 4);
    });
}

#[test]
fn loom_two_devices_take_batches_side_by_side() {
    let cpus = || -> Vec<Arc<dyn Backend>> {
        vec![
            Arc::new(CpuBackend::inline()),
            Arc::new(CpuBackend::inline()),
        ]
    };
    check_on(cpus, [1, 0], 2, |engine, _| {
        let tickets: Vec<_> = [3, 5].map(|item| engine.submit(item).unwrap()).into();
        drop(engine);
        let values: Vec<_> = tickets.into_iter().map(value).collect();
        assert!(matches!(values[..], [Ok(6), Ok(10)]));
    });
}

#[test]
fn loom_the_last_handle_may_be_dropped_by_the_engine_s_own_thread() {
    let cpu = || -> Vec<Arc<dyn Backend>> { vec![Arc::new(CpuBackend::inline())] };
    check_on(cpu, [1, 0], 3, |engine, held| {
        let engine = Arc::new(engine);
        *held.lock().unwrap() = Some(Arc::clone(&engine));
        let ticket = engine.submit(7).unwrap();
        engine.flush().unwrap();
        drop(engine);
        assert_eq!(value(ticket).unwrap(), 14);
    });
}

#[test]
fn loom_an_item_may_submit_another_while_it_is_read() {
    let cpu = || -> Vec<Arc<dyn Backend>> { vec![Arc::new(CpuBackend::inline())] };
    check_on(cpu, [1, 0], 2, |engine, held| {
        let engine = Arc::new(engine);
        *held.lock().unwrap() = Some(Arc::clone(&engine));
        assert_eq!(value(engine.submit(9).unwrap()).unwrap(), 18);
        drop(held.lock().unwrap().take());
    });
}

#[test]
fn loom_items_of_several_batches_share_a_handle() {
    check(1, 3, |engine| {
        let tickets = engine.submit_many([1, 0, 2]).unwrap();
        let values = tickets.wait().unwrap().into_iter().map(|done| done.result);
        let values: Vec<_> = values.collect();
        assert!(matches!(values[..], [Ok(2), Err(_), Ok(4)]));
    });
}

#[test]
fn loom_a_run_comes_out_in_order_and_may_end_early() {
    for all in [true, false] {
        check(2, 3, move |engine| {
            let dispatcher = engine.dispatcher();
            // Fewer batches than items, so that some wait for the consumer.
            let (results, unconsumed, batches) = RunResults::new(2, false, |done| done);
            dispatcher.set_run(Some(Arc::new(results)));
            let items = [1, 2, 3].map(|item| (item, Ok(Extent::from([1]))));
            dispatcher.submit_many(items, |_, _| ()).unwrap();
            dispatcher.set_run(None);
            let mut seen = Vec::new();
            while let Ok(batch) = batches.recv() {
                unconsumed.take();
                dispatcher.start_ready();
                take(&mut seen, batch);
                if !all {
                    unconsumed.lift();
                    dispatcher.start_ready();
                    return;
                }
            }
            assert_eq!(seen, [(1, 2), (2, 4), (3, 6)]);
        });
    }
}
