//! Buffers that all batches share: weights that they read, and a sum that they update.

use super::target::Target;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tapeloop_conformance::program::policies;
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::memory::{Pool, PoolConfig};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Pipeline, Ring, TimelineConfig, Wait};
use tapeloop_engine::record::{Buffer, Image, Kernel, Recorder, TwinLaunch};
use tapeloop_engine::replay::{Buckets, Policy};
use tapeloop_engine::workload::{Extent, ReadViews, ResidentViews, Workload, WriteViews};
use tapeloop_engine::{Error, ErrorKind, Result};

const TEXT: &str = r#"
extern "C" __global__ void layer(const unsigned* header, const unsigned* x, const unsigned* rows,
                                 const unsigned* weights, unsigned* y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) y[i] = weights[rows[x[i] % 7u] % 100u] * x[i];
}
extern "C" __global__ void accumulate(const unsigned* header, const unsigned* x, unsigned* sum /* updated */,
                                      unsigned* y)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (unsigned i = 0; i < header[0]; i++) {
            sum[0] += x[i];
            y[i] = sum[0];
        }
}
"#;

const WEIGHTS: usize = 100;
const ROWS: usize = 7;
const BLOCK: u32 = 32;

fn weight(seed: u32, index: usize) -> u32 {
    (index as u32 + 1).wrapping_mul(2_654_435_761) ^ seed
}

fn row(index: usize) -> u32 {
    (index as u32 * 41 + 3) % WEIGHTS as u32
}

fn layer(launch: &mut TwinLaunch<'_>) {
    let (header, x): (&[u32], &[u32]) = (launch.read(), launch.read());
    let (rows, weights): (&[u32], &[u32]) = (launch.read(), launch.read());
    let y: &mut [u32] = launch.write();
    let live = header[0].min(launch.grid[0] * BLOCK) as usize;
    for (y, x) in y[..live].iter_mut().zip(x) {
        *y = weights[rows[*x as usize % ROWS] as usize].wrapping_mul(*x);
    }
}

fn accumulate(launch: &mut TwinLaunch<'_>) {
    let (header, x): (&[u32], &[u32]) = (launch.read(), launch.read());
    let (sum, y): (&mut [u32], &mut [u32]) = (launch.write(), launch.write());
    for (y, x) in y.iter_mut().zip(x).take(header[0] as usize) {
        sum[0] = sum[0].wrapping_add(*x);
        *y = sum[0];
    }
}

fn kernel(name: &str, twin: fn(&mut TwinLaunch<'_>)) -> Kernel {
    let kernel = Kernel::declared_in(TEXT, name).unwrap();
    let kernel = kernel.block(BLOCK).twin(twin);
    // SAFETY: the kernels touch what the header counts of `x` and `y`, and of the resident buffers
    // what their constants allow.
    unsafe { kernel.code(&Image::cuda("resident_buffers.cu", TEXT)) }
}

/// Multiplies numbers with weights, or adds them up over all batches.
struct Layer {
    seed: u32,
    is_sum: bool,
    fails: bool,
}

#[derive(Clone, Copy)]
struct Buffers {
    x: Buffer<u32>,
    y: Buffer<u32>,
    rows: Buffer<u32>,
    weights: Buffer<u32>,
}

fn record(recorder: &mut Recorder, is_sum: bool) -> Buffers {
    let header = recorder.header();
    let x = recorder.upload_buffer("x", 0, 1);
    let y = recorder.download_buffer("y", 0, 1);
    let rows = recorder.resident_buffer("rows", ROWS);
    let weights = if is_sum {
        recorder.resident_buffer("weights", WEIGHTS)
    } else {
        recorder.replaceable_buffer("weights", WEIGHTS)
    };
    recorder.upload(header);
    recorder.upload(x);
    let blocks = recorder.capacity(0).div_ceil(BLOCK);
    if is_sum {
        let args = [header.into(), x.into(), weights.into(), y.into()];
        recorder.launch(&kernel("accumulate", accumulate), blocks, &args);
    } else {
        let args = [
            header.into(),
            x.into(),
            rows.into(),
            weights.into(),
            y.into(),
        ];
        recorder.launch(&kernel("layer", layer), blocks, &args);
    }
    recorder.download(y);
    Buffers {
        x,
        y,
        rows,
        weights,
    }
}

impl Workload for Layer {
    type Item = Vec<u32>;
    type Output = Vec<u32>;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, item: &Vec<u32>) -> Result<Extent> {
        Ok([item.len() as u32].into())
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        Ok(record(recorder, self.is_sum))
    }

    fn fill_resident(&self, buffers: &Buffers, views: &mut ResidentViews<'_>) -> Result<()> {
        if self.fails {
            return Err(Error::input("no weights, as told"));
        }
        if self.is_sum {
            return Ok(());
        }
        let rows = views.take(buffers.rows).iter_mut().enumerate();
        rows.for_each(|(index, of)| *of = row(index));
        let weights = views.take(buffers.weights).iter_mut().enumerate();
        weights.for_each(|(index, of)| *of = weight(self.seed, index));
        Ok(())
    }

    fn write(
        &self,
        buffers: &Buffers,
        item: &Vec<u32>,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(buffers.x).copy_from_slice(item);
        Ok(())
    }

    fn read(
        &self,
        buffers: &Buffers,
        _: &Vec<u32>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<u32>> {
        Ok(views.get(buffers.y).to_vec())
    }
}

fn layer_of(seed: u32) -> Layer {
    Layer {
        seed,
        is_sum: false,
        fails: false,
    }
}

fn expected(seed: u32, item: &[u32]) -> Vec<u32> {
    let of = |x: &u32| weight(seed, row(*x as usize % ROWS) as usize).wrapping_mul(*x);
    item.iter().map(of).collect()
}

fn item(number: u32) -> Vec<u32> {
    let length = 1 + number * 37 % 150;
    (0..length).map(|at| number * 131 + at * 17).collect()
}

fn config(policy: &Policy) -> EngineConfig {
    let mut config = EngineConfig::new([200]);
    config.buckets = [[60], [200]].map(Extent::from).to_vec();
    config.policy = *policy;
    config
}

pub(crate) fn every_batch_reads_the_same_weights(target: &Target) {
    let all = policies();
    for (round, policy) in all.iter().enumerate().take(2 * target.rounds) {
        let seed = round as u32;
        let backends = [Arc::clone(&target.backend)];
        let pool = Arc::clone(&target.pool);
        let engine = Engine::new(layer_of(seed), &backends, pool, &config(policy)).unwrap();
        let resident = &engine.memory().resident;
        let sizes = [("rows", 4 * ROWS), ("weights", 2 * 4 * WEIGHTS)];
        let sizes = sizes.map(|(name, bytes)| (name.to_owned(), bytes as u64));
        assert_eq!(resident[..], sizes);
        let tickets: Vec<_> = (0..120).map(|n| engine.submit(item(n)).unwrap()).collect();
        for (ticket, number) in tickets.into_iter().zip(0..) {
            let found = ticket.wait().unwrap().result.unwrap();
            assert_eq!(found, expected(seed, &item(number)), "{policy:?}");
        }
    }
}

fn replace(engine: &Engine<Layer>, seed: u32) {
    let write = |buffers: &Buffers, views: &mut ResidentViews<'_>| {
        let weights = views.take(buffers.weights).iter_mut().enumerate();
        weights.for_each(|(index, of)| *of = weight(seed, index));
        Ok(())
    };
    engine.replace_resident(write).unwrap();
}

/// An item has the weights of its submission, whichever buckets and slots its batch meets.
pub(crate) fn an_item_has_the_weights_of_its_submission(target: &Target) {
    for policy in policies().iter().take(2 * target.rounds) {
        let backends = [Arc::clone(&target.backend)];
        let pool = Arc::clone(&target.pool);
        let mut config = config(policy);
        config.timeline = Some(TimelineConfig::default());
        let engine = Engine::new(layer_of(0), &backends, pool, &config).unwrap();
        let submit = |number: u32| {
            if number > 0 && number.is_multiple_of(5) {
                replace(&engine, number / 5);
            }
            engine.submit(item(number)).unwrap()
        };
        let tickets: Vec<_> = (0..60).map(submit).collect();
        for (ticket, number) in tickets.into_iter().zip(0..) {
            let found = ticket.wait().unwrap().result.unwrap();
            assert_eq!(found, expected(number / 5, &item(number)), "{policy:?}");
        }
    }
}

/// Two threads submit and two replace. The weights of an item are those of one replacement, none older than those
/// that were there when it was submitted.
pub(crate) fn weights_are_replaced_under_load(target: &Target) {
    let backends = [Arc::clone(&target.backend)];
    let pool = Arc::clone(&target.pool);
    let config = config(&Policy::default());
    let engine = Engine::new(layer_of(0), &backends, pool, &config).unwrap();
    let (last, started, is_over) = (Mutex::new(0), AtomicU32::new(0), AtomicBool::new(false));
    let replace_often = || {
        while !is_over.load(Relaxed) {
            let mut last = last.lock().unwrap();
            started.store(*last + 1, SeqCst);
            replace(&engine, *last + 1);
            *last += 1;
        }
    };
    let submit = |first: u32| {
        for number in first..first + 40 * target.rounds as u32 {
            let oldest = started.load(SeqCst).saturating_sub(1);
            let found = engine.submit(item(number)).unwrap();
            let newest = started.load(SeqCst);
            let found = found.wait().unwrap().result.unwrap();
            let mut seeds = oldest..=newest;
            let is_one = seeds.any(|seed| found == expected(seed, &item(number)));
            assert!(is_one, "item {number}, weights {oldest} to {newest}");
        }
    };
    std::thread::scope(|scope| {
        let replacing = [(); 2].map(|()| scope.spawn(replace_often));
        let submitting = [0, 10_000].map(|first| scope.spawn(move || submit(first)));
        let submitted = submitting.map(|thread| thread.join());
        is_over.store(true, Relaxed);
        submitted.into_iter().for_each(|ended| ended.unwrap());
        for thread in replacing {
            thread.join().unwrap();
        }
    });
    assert!(*last.lock().unwrap() > 1);
}

pub(crate) fn batches_of_one_slot_update_a_sum_in_order(target: &Target) {
    let sum = || Layer {
        is_sum: true,
        ..layer_of(0)
    };
    let backends = [Arc::clone(&target.backend)];
    for policy in policies().iter().take(target.rounds) {
        let mut config = config(policy);
        let pool = Arc::clone(&target.pool);
        let refused = Engine::new(sum(), &backends, pool, &config).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Config);
        let text = refused.to_string();
        assert!(
            text.contains("buffer weights: ") && text.contains("3 slots"),
            "{text}"
        );
        assert!(text.contains("slots = 1"), "{text}");
        config.slots = 1;
        let pool = Arc::clone(&target.pool);
        let mut pipeline = Pipeline::new(sum(), &backends, pool, &config).unwrap();
        let mut total = 0_u32;
        for number in 0..50 {
            let item = item(number);
            pipeline.submit(item.clone()).unwrap();
            let (_, done) = pipeline.wait().unwrap();
            let sums = item.iter().map(|x| {
                total = total.wrapping_add(*x);
                total
            });
            let sums: Vec<u32> = sums.collect();
            assert_eq!(done.result.unwrap(), sums, "{policy:?}");
        }
    }
}

pub(crate) fn a_ring_reads_weights_of_a_pool(target: &Target) {
    let pool = Pool::new(Arc::clone(&target.backend), PoolConfig::development());
    let mut memory = [
        pool.device::<u32>(WEIGHTS, "weights"),
        pool.device(WEIGHTS, "others"),
    ]
    .map(Result::unwrap);
    for (seed, memory) in (0..).zip(&mut memory) {
        let weights: Vec<u32> = (0..WEIGHTS).map(|index| weight(seed, index)).collect();
        memory.as_slice_mut().upload(&weights).unwrap();
    }
    let mut rows = pool.device::<u32>(ROWS, "rows").unwrap();
    let numbers: Vec<u32> = (0..ROWS).map(row).collect();
    rows.as_slice_mut().upload(&numbers).unwrap();

    let mut recorder = Recorder::new(&[200]);
    let buffers = record(&mut recorder, false);
    let buckets = Buckets::single(recorder.finish().unwrap());
    let wrong = buckets.clone().with_resident(buffers.x, rows.view());
    let text = wrong.err().unwrap().to_string();
    assert!(text.contains("no such resident buffer"), "{text}");
    let open = |buckets: Buckets| {
        let buckets = Arc::new(buckets);
        let (slots, policy) = (2, Policy::default());
        Ring::<Vec<u32>>::new(&target.backend, &buckets, slots, &policy, Wait::Spin)
    };
    let text = open(buckets.clone()).err().unwrap().to_string();
    assert!(text.contains("buffer rows: "), "{text}");
    let small = buckets
        .clone()
        .with_resident(buffers.weights, rows.view())
        .unwrap();
    let text = open(small).err().unwrap().to_string();
    assert!(
        text.contains("buffer weights: ") && text.contains("400 bytes"),
        "{text}"
    );

    let buckets = buckets.with_resident(buffers.rows, rows.view()).unwrap();
    let buckets = buckets
        .with_resident(buffers.weights, memory[0].view())
        .unwrap();
    let mut ring = open(buckets).unwrap();
    for number in 0..20 {
        let seed = number / 3 % 2;
        let item = item(number);
        let live = Extent::from([item.len() as u32]);
        let mut slot = ring.acquire().unwrap();
        let mut bindings = slot.bindings(0).unwrap();
        bindings
            .bind_device(buffers.weights, memory[seed as usize].view())
            .unwrap();
        slot.rebind(0, bindings).unwrap();
        slot.write_header(live, 1);
        slot.write(buffers.x)[..item.len()].copy_from_slice(&item);
        ring.submit(slot, live, item)
            .map_err(|failed| failed.error)
            .unwrap();
        let done = ring.wait().unwrap();
        {
            let slot = done.as_ref().unwrap();
            let found = &slot.read(buffers.y)[..slot.batch().len()];
            assert_eq!(found, expected(seed, slot.batch()));
        }
        let (_, error) = ring.release(done);
        assert!(error.is_none());
    }
}

pub(crate) fn an_engine_without_its_weights_is_not_built(target: &Target) {
    let failing = Layer {
        fails: true,
        ..layer_of(0)
    };
    let backends = [Arc::clone(&target.backend)];
    let pool = Arc::clone(&target.pool);
    let built = Engine::new(failing, &backends, pool, &config(&Policy::default()));
    let text = built.err().unwrap().to_string();
    assert!(text.contains("no weights, as told"), "{text}");
}
