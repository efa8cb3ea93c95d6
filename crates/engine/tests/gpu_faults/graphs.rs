//! What the driver takes for graphs and streams, against the plan. Each size has a process of its own, as the
//! driver keeps what it took.

use super::gpu::{cuda, say};
use super::{CARD, FATE, play, pool};
use std::sync::Arc;
use tapeloop_engine::backend::{Backend, CudaOptions};
use tapeloop_engine::pipeline::{Engine, EngineConfig};
use tapeloop_engine::record::{Buffer, Image, Kernel, Recorder};
use tapeloop_engine::workload::{Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{DeviceInfo, Result};

/// Slots, buckets, and kernels of a batch.
const SIZES: [(usize, u32, usize); 4] = [(12, 4, 20), (8, 6, 100), (16, 8, 300), (3, 4, 50)];

/// The driver takes its memory in steps of this many bytes.
const STEP_BYTES: f64 = 2.0 * 1024.0 * 1024.0;

const SOURCE: &str = r#"
extern "C" __global__ void increment(const unsigned* header, unsigned* x)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) x[i] += 1;
}
"#;

/// Adds the number of its kernels to a number.
struct Chain {
    kernel: Kernel,
    kernels: usize,
}

impl Chain {
    fn new(kernels: usize) -> Self {
        let kernel = Kernel::new("increment")
            .reads::<u32>("header")
            .updates::<u32>("x");
        // SAFETY: it touches the live part of its buffers.
        let kernel = unsafe { kernel.code(&Image::cuda("increment.cu", SOURCE)) };
        Chain { kernel, kernels }
    }
}

impl Workload for Chain {
    type Item = Vec<u32>;
    type Output = Vec<u32>;
    type Buffers = [Buffer<u32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, item: &Vec<u32>) -> Result<Extent> {
        Ok(Extent::from([item.len() as u32]))
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Self::Buffers> {
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        recorder.upload(header);
        recorder.upload(x);
        recorder.memset(y, 0);
        let blocks = recorder.capacity(0).div_ceil(128);
        for _ in 0..self.kernels {
            recorder.launch(&self.kernel, blocks, &[header.into(), y.into()]);
        }
        recorder.download(y);
        Ok([x, y])
    }

    fn write(
        &self,
        [x, _]: &Self::Buffers,
        item: &Vec<u32>,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*x).copy_from_slice(item);
        Ok(())
    }

    fn read(
        &self,
        [_, y]: &Self::Buffers,
        _: &Vec<u32>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<u32>> {
        Ok(views.get(*y).to_vec())
    }
}

/// Builds an engine of the size that [`FATE`] names, runs a batch of each bucket in each slot, and prints what
/// it planned and what the device lost, before and after the graphs were made.
pub(super) fn measure() {
    let size = std::env::var(FATE).unwrap();
    let size: Vec<u32> = size.split(' ').map(|n| n.parse().unwrap()).collect();
    let [slots, buckets, kernels] = size[..] else {
        panic!("three numbers");
    };
    let backend = Arc::new(cuda(&CudaOptions::default()));
    let open: Arc<dyn Backend> = Arc::clone(&backend) as _;
    let free = || backend.memory_bytes().unwrap().0;
    // The code and what the driver needs once.
    let chain = Chain::new(kernels as usize);
    open.load(&chain.kernel).unwrap();
    let mut config = EngineConfig::new([100]);
    config.buckets = (0..buckets).map(|bucket| [100 << bucket].into()).collect();
    config.slots = slots as usize;
    let before = free();
    let (mut lost, mut plan) = (Vec::new(), None);
    // Without graphs, and with those of all buckets of all slots.
    for warm_up in [false, true] {
        config.policy.warm_up = warm_up;
        let chain = Chain::new(kernels as usize);
        let engine = Engine::new(chain, &[Arc::clone(&open)], pool(), &config).unwrap();
        lost.push(before - free());
        let items = (0..buckets).map(|bucket| vec![0; 100 << bucket]);
        for done in engine.submit_many(items).unwrap().wait().unwrap() {
            assert!(done.result.unwrap().iter().all(|y| *y == kernels));
        }
        plan = Some(engine.memory().clone());
    }
    lost.push(before - free());
    let plan = plan.expect("both engines have the same");
    println!(
        "planned {} {}",
        plan.device_bytes() + plan.driver_bytes,
        plan.driver_bytes
    );
    println!("lost {} {} {}", lost[0], lost[1], lost[2]);
}

#[test]
#[ignore = "needs a CUDA device"]
fn graphs_take_what_the_plan_says() {
    let _turn = CARD.lock();
    let mut wrong = Vec::new();
    for (slots, buckets, kernels) in SIZES {
        let size = format!("{slots} {buckets} {kernels}");
        let output = play("graphs", &size).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let numbers = |name: &str| -> Vec<f64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let line = line.unwrap_or_else(|| panic!("{size}: {text}"));
            line.split_whitespace()
                .map(|n| n.parse().unwrap())
                .collect()
        };
        let (planned, lost) = (numbers("planned"), numbers("lost"));
        let ratio = planned[0] / lost[1];
        say(&format!(
            "{slots} slots, {buckets} buckets, {kernels} kernels: planned {planned:?}, lost {lost:?}, ratio {ratio:.2}"
        ));
        // Less than a step of the driver cannot be told.
        let is_step = (planned[0] - lost[1]).abs() <= STEP_BYTES;
        if !is_step && !(0.8..=1.25).contains(&ratio) {
            wrong.push(size);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
