//! Large batches on the CPU backend, which its pool runs.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread::yield_now;
use std::time::{Duration, Instant};
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::contract::{DeviceSlot, Priority};
use tapeloop_engine::backend::{Allocation, AllocationView, Backend, Space, cpu::CpuBackend};
use tapeloop_engine::pipeline::{Finished, Ring, Wait};
use tapeloop_engine::record::{Buffer, Kernel, Recorder, TwinLaunch};
use tapeloop_engine::replay::{Bucket, Buckets, Executor, Policy, Rung, Verify};
use tapeloop_engine::workload::Extent;

/// Elements of a batch, 128 KiB.
const LEN: u32 = 1 << 15;

const PATIENCE: Duration = Duration::from_secs(20);

fn pool(threads: usize) -> Arc<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads);
    Arc::new(pool.build().unwrap())
}

/// A recording that copies `x` up, runs `kernel` over `x`, `y` and a factor of 2, and copies `y`
/// down.
fn recorded(kernel: &Kernel) -> (Arc<Buckets>, Buffer<f32>, Buffer<f32>) {
    let kernel = kernel.clone().writes::<f32>("y").scalar::<f32>("factor");
    let kernel = kernel.changeable("factor");
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.upload_buffer::<f32>("x", 0, 1);
    let y = recorder.download_buffer::<f32>("y", 0, 1);
    recorder.upload(x);
    recorder.launch(&kernel, 1, &[x.into(), y.into(), 2_f32.into()]);
    recorder.download(y);
    let bucket = Bucket {
        capacity: Extent::from([LEN]),
        recording: Arc::new(recorder.finish().unwrap()),
    };
    (Arc::new(Buckets::new(vec![bucket]).unwrap()), x, y)
}

/// Reads `x`.
fn reading(twin: fn(&mut TwinLaunch<'_>)) -> Kernel {
    Kernel::new("of_test").reads::<f32>("x").twin(twin)
}

fn cpu(pool: &Arc<ThreadPool>) -> Arc<dyn Backend> {
    Arc::new(CpuBackend::new(Arc::clone(pool)))
}

fn ring(
    pool: &Arc<ThreadPool>,
    slots: usize,
    twin: fn(&mut TwinLaunch<'_>),
) -> (Ring<usize>, Buffer<f32>, Buffer<f32>) {
    ring_with(pool, slots, twin, &Policy::default())
}

fn ring_with(
    pool: &Arc<ThreadPool>,
    slots: usize,
    twin: fn(&mut TwinLaunch<'_>),
    policy: &Policy,
) -> (Ring<usize>, Buffer<f32>, Buffer<f32>) {
    let (buckets, x, y) = recorded(&reading(twin));
    let ring = Ring::new(&cpu(pool), &buckets, slots, policy, Wait::Block);
    (ring.unwrap(), x, y)
}

/// One slot without a ring.
struct Slot {
    executor: Executor,
    device_slot: Box<dyn DeviceSlot>,
    backend: Arc<dyn Backend>,
    x: Buffer<f32>,
    y: Buffer<f32>,
}

impl Slot {
    fn new(pool: &Arc<ThreadPool>, kernel: &Kernel, policy: &Policy) -> Slot {
        let (buckets, x, y) = recorded(kernel);
        let backend = cpu(pool);
        let buffers = buckets.largest().recording.buffers();
        let device_slots = backend.open_slots(buffers, 1, Priority::Normal);
        let mut device_slot = device_slots.unwrap().remove(0);
        let executor = Executor::new(&backend, &mut *device_slot, &buckets, policy);
        Slot {
            executor: executor.unwrap(),
            device_slot,
            backend,
            x,
            y,
        }
    }

    fn fill(&mut self, value: f32) {
        let mut views = self.device_slot.host_mut(&[self.x.id()]);
        bytemuck::cast_slice_mut(views.pop().unwrap()).fill(value);
    }

    fn replay(&mut self) {
        let replayed = self
            .executor
            .replay(&mut *self.device_slot, 0, Extent::from([LEN]));
        replayed.unwrap();
    }

    /// Polls until all work is done.
    fn finish(&mut self) -> tapeloop_engine::Result<()> {
        let start = Instant::now();
        while !self.device_slot.is_done()? {
            assert!(start.elapsed() < PATIENCE, "the batch does not end");
            yield_now();
        }
        Ok(())
    }

    fn check(&self, value: f32) {
        let y: &[f32] = bytemuck::cast_slice(self.device_slot.host(self.y.id()));
        assert!(
            y.iter().all(|y| *y == value),
            "{} in place of {value}",
            y[0]
        );
    }

    /// Binds `y` on the host to an allocation, which it returns.
    fn bind_y(&mut self) -> Allocation {
        let bytes = 4 * LEN as usize;
        let allocation = self.backend.allocate(Space::Pinned, bytes).unwrap();
        let device_slot = &mut *self.device_slot;
        let mut bindings = self.executor.bindings(device_slot, 0).unwrap().clone();
        let view = AllocationView::new(&allocation, 0, bytes).unwrap();
        bindings.bind_host(self.y, view).unwrap();
        self.executor.update(device_slot, 0, bindings).unwrap();
        allocation
    }
}

fn submit(ring: &mut Ring<usize>, x: Buffer<f32>, value: f32, batch: usize) {
    let mut slot = ring.acquire().unwrap();
    slot.write(x).fill(value);
    ring.submit(slot, Extent::from([LEN]), batch).unwrap();
}

/// `x` times the factor, which is 2.
fn double(launch: &mut TwinLaunch<'_>) {
    let x: &[f32] = launch.read();
    let y: &mut [f32] = launch.write();
    let factor: f32 = launch.scalar();
    y.iter_mut().zip(x).for_each(|(y, x)| *y = factor * x);
}

/// By the value of a batch: whether [`gated`] may compute it.
static GATES: [AtomicBool; 8] = [const { AtomicBool::new(false) }; 8];
/// By the value of a batch: how often [`gated`] has begun with it.
static BEGUN: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];

/// [`double`], once the gate of the batch is open.
fn gated(launch: &mut TwinLaunch<'_>) {
    let x: &[f32] = launch.read();
    let y: &mut [f32] = launch.write();
    let factor: f32 = launch.scalar();
    let gate = x[0] as usize;
    BEGUN[gate].fetch_add(1, SeqCst);
    let start = Instant::now();
    while !GATES[gate].load(SeqCst) {
        assert!(start.elapsed() < PATIENCE, "the gate stays closed");
        yield_now();
    }
    y.iter_mut().zip(x).for_each(|(y, x)| *y = factor * x);
}

/// Waits until [`gated`] has begun with a batch.
fn await_begun(gate: usize) {
    let start = Instant::now();
    while BEGUN[gate].load(SeqCst) == 0 {
        assert!(start.elapsed() < PATIENCE, "the batch does not begin");
        yield_now();
    }
}

/// [`double`], which leaves `x` changed.
fn in_place(launch: &mut TwinLaunch<'_>) {
    let x: &mut [f32] = launch.write();
    let y: &mut [f32] = launch.write();
    let factor: f32 = launch.scalar();
    x.iter_mut().for_each(|x| *x *= factor);
    y.copy_from_slice(x);
}

/// [`double`], once the twins of two batches have begun.
fn meet(launch: &mut TwinLaunch<'_>) {
    static MET: AtomicUsize = AtomicUsize::new(0);
    MET.fetch_add(1, SeqCst);
    let start = Instant::now();
    while MET.load(SeqCst) < 2 {
        assert!(start.elapsed() < PATIENCE, "no other batch runs");
        yield_now();
    }
    double(launch);
}

/// [`double`], but a negative value panics.
fn refuse_negative(launch: &mut TwinLaunch<'_>) {
    let x: &[f32] = launch.read();
    let y: &mut [f32] = launch.write();
    assert!(x[0] >= 0.0, "planted");
    y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
}

fn check(finished: &Finished<usize>, y: Buffer<f32>, value: f32) {
    let done = finished.as_ref().ok().unwrap();
    let y = done.read(y);
    assert!(y.len() == LEN as usize && y.iter().all(|y| *y == 2.0 * value));
}

#[test]
fn batches_of_two_slots_run_at_the_same_time() {
    let (mut ring, x, y) = ring(&pool(2), 2, meet);
    submit(&mut ring, x, 3.0, 0);
    submit(&mut ring, x, 4.0, 1);
    let mut seen = Vec::new();
    while let Some(finished) = ring.wait() {
        let batch = *finished.as_ref().ok().unwrap().batch();
        check(&finished, y, [3.0, 4.0][batch]);
        seen.push(ring.release(finished).0);
    }
    seen.sort_unstable();
    assert_eq!(seen, [0, 1]);
}

#[test]
fn a_batch_that_fails_in_the_pool_fails_alone() {
    let (mut ring, x, y) = ring(&pool(2), 3, refuse_negative);
    let values = [1.0, -1.0, 2.0, -2.0, 5.0];
    for round in 0..20 {
        for (batch, value) in values.into_iter().enumerate() {
            if ring.in_flight() == 3 {
                let finished = ring.wait().unwrap();
                judge(&mut ring, finished, y, &values);
            }
            submit(&mut ring, x, value, batch);
        }
        while let Some(finished) = ring.wait() {
            judge(&mut ring, finished, y, &values);
        }
        assert_eq!(ring.in_flight(), 0, "round {round}");
    }
}

fn judge(ring: &mut Ring<usize>, finished: Finished<usize>, y: Buffer<f32>, values: &[f32]) {
    let batch = match &finished {
        Ok(done) => *done.batch(),
        Err(failed) => failed.batch,
    };
    if values[batch] >= 0.0 {
        check(&finished, y, values[batch])
    } else {
        let error = &finished.as_ref().err().unwrap().error;
        assert_eq!(error.kind(), ErrorKind::Kernel);
        assert!(error.to_string().contains("planted"), "{error}");
    }
    ring.release(finished);
}

/// The only thread of the pool waits for the work that it is to run.
#[test]
fn a_thread_of_the_pool_can_wait_for_a_batch() {
    let pool = pool(1);
    let (mut ring, x, y) = ring(&pool, 2, double);
    pool.install(|| {
        for value in [1.0, 2.0, 3.0] {
            submit(&mut ring, x, value, 0);
            let finished = ring.wait().unwrap();
            check(&finished, y, value);
            ring.release(finished);
        }
    });
}

/// Threads of the pool wait for batches as well as other threads, each for those of its own ring.
#[test]
fn threads_of_a_pool_and_others_wait_for_their_batches() {
    let value = |task: usize, batch: usize| (100 * task + batch) as f32;
    for threads in [1, 2] {
        let pool = pool(threads);
        let (sender, ended) = mpsc::channel();
        for task in 0..4 {
            let (own, sender) = (Arc::clone(&pool), sender.clone());
            let rounds = move || {
                let (mut ring, x, y) = ring(&own, 2, double);
                for batch in 0..50 {
                    submit(&mut ring, x, value(task, batch), batch);
                    // Two in flight, and then none.
                    while batch % 2 == 1
                        && let Some(finished) = ring.wait()
                    {
                        let batch = *finished.as_ref().ok().unwrap().batch();
                        check(&finished, y, value(task, batch));
                        ring.release(finished);
                    }
                }
                sender.send(()).unwrap();
            };
            match task % 2 {
                0 => pool.spawn(rounds),
                _ => drop(std::thread::spawn(rounds)),
            }
        }
        for _ in 0..4 {
            ended.recv_timeout(2 * PATIENCE).expect("a thread hangs");
        }
    }
}

/// Work in flight keeps the memory that it uses.
#[test]
fn slots_may_be_dropped_in_flight() {
    let pool = pool(2);
    for _ in 0..50 {
        let (mut ring, x, _) = ring(&pool, 3, double);
        for value in [1.0, 2.0, 3.0] {
            submit(&mut ring, x, value, 0);
        }
    }
}

#[test]
fn a_slot_takes_more_work_while_the_pool_has_some() {
    let mut slot = Slot::new(&pool(1), &reading(gated), &Policy::default());
    slot.fill(1.0);
    slot.replay();
    await_begun(1);
    slot.replay();
    assert!(!slot.device_slot.is_done().unwrap());
    GATES[1].store(true, SeqCst);
    slot.finish().unwrap();
    slot.check(2.0);
    assert_eq!(BEGUN[1].load(SeqCst), 2, "both have run");
}

#[test]
fn a_batch_in_the_pool_that_misses_its_deadline_costs_its_slot_alone() {
    let policy = Policy {
        deadline: Some(Duration::from_secs(1)),
        ..Policy::default()
    };
    let (mut ring, x, y) = ring_with(&pool(2), 2, gated, &policy);
    GATES[3].store(true, SeqCst);
    submit(&mut ring, x, 2.0, 0);
    let finished = ring.wait().unwrap();
    let error = &finished.as_ref().err().unwrap().error;
    assert_eq!(error.kind(), ErrorKind::Deadline, "{error}");
    assert!(ring.release(finished).1.is_some());
    // The pool still has the memory of that slot.
    submit(&mut ring, x, 3.0, 1);
    assert!(ring.acquire().is_none(), "the ring has one slot less");
    check(&ring.wait().unwrap(), y, 3.0);
    GATES[2].store(true, SeqCst);
}

#[test]
fn memory_that_a_batch_in_the_pool_writes_is_closed_until_it_has_ended() {
    let mut slot = Slot::new(&pool(1), &reading(gated), &Policy::default());
    let y = slot.bind_y();
    slot.fill(4.0);
    slot.replay();
    await_begun(4);
    let in_use = || y.read().is_err() && y.write().is_err();
    assert!(in_use());
    assert!(slot.backend.write(&[0; 4], &y, 0).is_err());
    drop((slot.device_slot, slot.executor));
    assert!(in_use(), "the work outlives its slot");
    GATES[4].store(true, SeqCst);
    let start = Instant::now();
    while in_use() {
        assert!(start.elapsed() < PATIENCE, "the memory is never given back");
        yield_now();
    }
    let y = y.read().unwrap();
    assert!(bytemuck::cast_slice::<_, f32>(&y).iter().all(|y| *y == 8.0));
}

#[test]
fn a_batch_in_the_pool_keeps_the_parameters_that_it_was_given_with() {
    let mut slot = Slot::new(&pool(1), &reading(gated), &Policy::default());
    slot.fill(5.0);
    slot.replay();
    await_begun(5);
    let device_slot = &mut *slot.device_slot;
    let mut bindings = slot.executor.bindings(device_slot, 0).unwrap().clone();
    bindings.set_scalar(0, "factor", 3_f32).unwrap();
    let rung = slot.executor.update(device_slot, 0, bindings);
    assert_eq!(rung.unwrap(), Rung::Params);
    GATES[5].store(true, SeqCst);
    slot.finish().unwrap();
    slot.check(10.0);
    slot.replay();
    slot.finish().unwrap();
    slot.check(15.0);
}

/// Each batch runs twice, and each time from what the host wrote.
#[test]
fn inputs_that_a_kernel_changes_in_the_pool_are_brought_back() {
    let kernel = Kernel::new("in_place").updates::<f32>("x").twin(in_place);
    let policy = Policy {
        verify: Verify::Every(NonZeroU32::MIN),
        ..Policy::default()
    };
    let mut slot = Slot::new(&pool(2), &kernel, &policy);
    for value in [1.0, 2.0, 3.0] {
        slot.fill(value);
        slot.replay();
        slot.finish().unwrap();
        slot.check(2.0 * value);
    }
}

#[test]
fn an_error_in_the_pool_is_returned_once_and_the_slot_goes_on() {
    let mut slot = Slot::new(&pool(1), &reading(refuse_negative), &Policy::default());
    slot.fill(-1.0);
    slot.replay();
    slot.replay();
    let error = slot.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Kernel, "{error}");
    assert!(slot.device_slot.is_done().unwrap());
    slot.fill(4.0);
    slot.replay();
    slot.device_slot.wait().unwrap();
    slot.check(8.0);
}
