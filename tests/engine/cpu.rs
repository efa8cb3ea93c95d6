//! Large batches on the CPU backend, which its pool runs.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::yield_now;
use std::time::{Duration, Instant};
use tapeloop::ErrorKind;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::pipeline::{Finished, Ring, Wait};
use tapeloop::record::{Buffer, Kernel, Recorder, TwinLaunch};
use tapeloop::replay::{Bucket, Buckets, Policy};
use tapeloop::workload::Extent;

/// Elements of a batch, 128 KiB.
const LEN: u32 = 1 << 15;

const PATIENCE: Duration = Duration::from_secs(20);

fn pool(threads: usize) -> Arc<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads);
    Arc::new(pool.build().unwrap())
}

/// Slots of a recording that copies `x` up, runs `twin` over `x` and `y`, and copies `y` down.
fn ring(
    pool: &Arc<ThreadPool>,
    slots: usize,
    twin: fn(&mut TwinLaunch<'_>),
) -> (Ring<usize>, Buffer<f32>, Buffer<f32>) {
    let kernel = Kernel::new("of_test")
        .reads::<f32>("x")
        .writes::<f32>("y")
        .twin(twin);
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.upload_buffer::<f32>("x", 0, 1);
    let y = recorder.download_buffer::<f32>("y", 0, 1);
    recorder.upload(x);
    recorder.launch(&kernel, 1, &[x.into(), y.into()]);
    recorder.download(y);
    let bucket = Bucket {
        capacity: Extent::from([LEN]),
        recording: Arc::new(recorder.finish().unwrap()),
    };
    let buckets = Arc::new(Buckets::new(vec![bucket]).unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(pool)));
    let ring = Ring::new(&backend, &buckets, slots, &Policy::default(), Wait::Block);
    (ring.unwrap(), x, y)
}

fn submit(ring: &mut Ring<usize>, x: Buffer<f32>, value: f32, batch: usize) {
    let mut slot = ring.acquire().unwrap();
    slot.write(x).fill(value);
    ring.submit(slot, Extent::from([LEN]), batch).unwrap();
}

/// Doubles `x`.
fn double(launch: &mut TwinLaunch<'_>) {
    let x: &[f32] = launch.read();
    let y: &mut [f32] = launch.write();
    y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
}

/// [`double`], once the twins of two batches have begun.
fn meet(launch: &mut TwinLaunch<'_>) {
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    BEGUN.fetch_add(1, SeqCst);
    let start = Instant::now();
    while BEGUN.load(SeqCst) < 2 {
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
    match values[batch] >= 0.0 {
        true => check(&finished, y, values[batch]),
        false => {
            let error = &finished.as_ref().err().unwrap().error;
            assert_eq!(error.kind(), ErrorKind::Kernel);
            assert!(error.to_string().contains("planted"), "{error}");
        }
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
