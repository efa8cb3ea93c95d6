//! What the engine itself costs, without a device: replays and items of a kernel
//! that does nothing, on the CPU backend.
//!
//! ```sh
//! cargo bench --no-default-features --bench overhead
//! ```

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rayon::ThreadPool;
use std::sync::Arc;
use std::time::Instant;
use tapeloop::backend::cpu::CpuBackend;
use tapeloop::backend::{Backend, Lane};
use tapeloop::pipeline::{Pipeline, TimelineConfig, Wait};
use tapeloop::record::{Buffer, Image, Kernel, Recorder, TwinLaunch};
use tapeloop::replay::{Buckets, Executor, Mode, Policy};
use tapeloop::workload::{Completion, DeviceInfo, Extent, ReadViews, Workload, WriteViews};
use tapeloop::{Engine, EngineConfig, Result};

/// A chain of kernels that do nothing, over one number.
struct Nothing {
    kernels: usize,
    kernel: Kernel,
}

fn nothing(_: &mut TwinLaunch<'_>) {}

impl Nothing {
    fn new(kernels: usize) -> Self {
        let kernel = Kernel::new("nothing", &Image::cuda("nothing.cu", ""))
            .reads::<u32>("x")
            .updates::<u32>("y")
            .twin(nothing);
        Nothing { kernels, kernel }
    }
}

impl Workload for Nothing {
    type Item = u32;
    type Output = u32;
    type Buffers = (Buffer<u32>, Buffer<u32>);

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, _: &u32) -> Result<Extent> {
        Ok(Extent::from([1]))
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Self::Buffers> {
        let x = recorder.upload_buffer::<u32>("x", 0, 1);
        let y = recorder.download_buffer::<u32>("y", 0, 1);
        recorder.upload(x);
        recorder.memset(y, 0);
        for _ in 0..self.kernels {
            recorder.launch(&self.kernel, 1, &[x.into(), y.into()]);
        }
        recorder.download(y);
        Ok((x, y))
    }

    fn write(
        &self,
        (x, _): &Self::Buffers,
        item: &u32,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*x)[0] = *item;
        Ok(())
    }

    fn read(
        &self,
        (_, y): &Self::Buffers,
        _: &u32,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<u32> {
        Ok(views.get(*y)[0])
    }
}

fn backend() -> (Arc<ThreadPool>, Arc<dyn Backend>) {
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().build().unwrap());
    let backend = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    (pool, backend)
}

fn replays(criterion: &mut Criterion) {
    let (pool, backend) = backend();
    let mut group = criterion.benchmark_group("replay");
    for mode in [Mode::Graph, Mode::Stream] {
        for kernels in [1, 12] {
            let mut recorder = Recorder::new(&[1]);
            Nothing::new(kernels)
                .record(&mut recorder, backend.device())
                .unwrap();
            let buckets = Arc::new(Buckets::single(recorder.finish().unwrap()));
            let policy = Policy::of(mode);
            let buffers = buckets.largest().recording.buffers();
            let mut lanes = backend.open_lanes(buffers, 1, policy.streams).unwrap();
            let lane: &mut dyn Lane = &mut *lanes[0];
            let mut executor = Executor::new(&backend, lane, &buckets, &policy).unwrap();
            let live = Extent::from([1]);
            let mut run = |replays: u64| {
                let start = Instant::now();
                for _ in 0..replays {
                    executor.replay(lane, 0, live).unwrap();
                    lane.wait().unwrap();
                }
                start.elapsed()
            };
            group.bench_function(BenchmarkId::new(mode.name(), kernels), |bencher| {
                // Inside the pool, so that twins are called and not handed over.
                bencher.iter_custom(|replays| pool.install(|| run(replays)));
            });
        }
    }
    group.finish();
}

fn items(criterion: &mut Criterion) {
    const ITEMS: u32 = 10_000;
    let (pool, backend) = backend();
    let mut group = criterion.benchmark_group("engine");
    group.throughput(Throughput::Elements(ITEMS.into()));
    group.sample_size(10);
    for batch in [1, 16, 256] {
        let config = EngineConfig {
            wait: Wait::Spin,
            ..EngineConfig::new([batch])
        };
        let backends = [Arc::clone(&backend)];
        let mut engine =
            Engine::new(Nothing::new(1), &backends, Arc::clone(&pool), &config).unwrap();
        group.bench_function(BenchmarkId::new("items_a_batch", batch), |bencher| {
            bencher.iter(|| {
                let mut sink = |completion: Completion<Nothing>| completion.result.map(drop);
                engine.run(0..ITEMS, &mut sink).unwrap();
            });
        });
    }
    group.finish();
}

/// Batches of one item on one thread: what the stages cost, and what a timeline adds.
fn batches(criterion: &mut Criterion) {
    const BATCHES: u32 = 4096;
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().build().unwrap());
    let mut group = criterion.benchmark_group("pipeline");
    group.throughput(Throughput::Elements(BATCHES.into()));
    for (case, timeline) in [
        ("plain", None),
        ("sampled", Some(TimelineConfig::default())),
    ] {
        let config = EngineConfig {
            timeline,
            ..EngineConfig::new([1])
        };
        let backend: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
        let pool = Arc::clone(&pool);
        let mut pipeline = Pipeline::new(Nothing::new(1), &[backend], pool, &config).unwrap();
        group.bench_function(case, |bencher| {
            bencher.iter(|| {
                for item in 0..BATCHES {
                    pipeline.submit(item).unwrap();
                    pipeline.wait().unwrap().result.unwrap();
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, replays, items, batches);
criterion_main!(benches);
