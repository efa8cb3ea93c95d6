//! A small network whose weights are replaced while it computes. Each result says which weights it was computed
//! with, and is compared with the host.
//!
//! ```sh
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example reload -- [SECONDS [MILLISECONDS]]
//! ```
//!
//! It runs for so many seconds without, and then with a replacement every so many milliseconds.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tapeloop_engine::workload::ResidentViews;
use tapeloop_engine::*;

/// The numbers of an item, and of its result: the number of the weights, and a sum.
const INPUTS: usize = 256;
const OUTPUTS: usize = 2;

const TEXT: &str = r#"
extern "C" __global__ void weigh(const unsigned* header, const float* x, const float* weights, float* y)
{
    const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= header[0]) return;
    float sum = 0.0f;
    for (unsigned i = 0; i < 256; ++i)
        sum = fmaf(x[256 * item + i], weights[1 + i], sum);
    y[2 * item] = weights[0];
    y[2 * item + 1] = sum;
}
"#;

fn weighed(x: &[f32], weights: &[f32]) -> f32 {
    let pairs = x.iter().zip(weights);
    pairs.fold(0.0, |sum, (x, weight)| x.mul_add(*weight, sum))
}

/// The kernel's CPU twin.
fn weigh(launch: &mut TwinLaunch<'_>) {
    let items = launch.read::<u32>()[0] as usize;
    let (x, weights) = (launch.read::<f32>(), launch.read::<f32>());
    let y = launch.write::<f32>();
    let through = x.chunks(INPUTS).zip(y.chunks_mut(OUTPUTS));
    for (x, y) in through.take(items) {
        y.copy_from_slice(&[weights[0], weighed(x, &weights[1..])]);
    }
}

/// The weights with this number.
fn weights(number: u32) -> impl Iterator<Item = f32> {
    (0..INPUTS as u32).map(move |i| ((i * 31 + number * 7) % 97) as f32 / 97.0)
}

pub(crate) struct Network(Kernel);

pub(crate) struct Buffers {
    x: Buffer<f32>,
    weights: Buffer<f32>,
    y: Buffer<f32>,
}

impl Workload for Network {
    type Item = Vec<f32>;
    type Output = [f32; OUTPUTS];
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["items"]
    }

    fn extent(&self, item: &Vec<f32>) -> Result<Extent> {
        match item.len() {
            INPUTS => Ok([1].into()),
            other => Err(Error::input(format!("{other} numbers for {INPUTS}"))),
        }
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, INPUTS);
        let weights = recorder.replaceable_buffer("weights", 1 + INPUTS);
        let y = recorder.download_buffer("y", 0, OUTPUTS);
        recorder.upload(header);
        recorder.upload(x);
        let args = [header.into(), x.into(), weights.into(), y.into()];
        recorder.launch(&self.0, recorder.capacity(0).div_ceil(128), &args);
        recorder.download(y);
        Ok(Buffers { x, weights, y })
    }

    fn fill_resident(&self, buffers: &Buffers, views: &mut ResidentViews<'_>) -> Result<()> {
        write_weights(0, buffers, views)
    }

    fn write(
        &self,
        buffers: &Buffers,
        item: &Vec<f32>,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(buffers.x).copy_from_slice(item);
        Ok(())
    }

    fn read(
        &self,
        buffers: &Buffers,
        _: &Vec<f32>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<[f32; OUTPUTS]> {
        let y = views.get(buffers.y);
        Ok([y[0], y[1]])
    }
}

fn write_weights(number: u32, buffers: &Buffers, views: &mut ResidentViews<'_>) -> Result<()> {
    let to = views.take(buffers.weights);
    to[0] = number as f32;
    to[1..]
        .iter_mut()
        .zip(weights(number))
        .for_each(|(to, weight)| *to = weight);
    Ok(())
}

/// Computes items for a while, with a replacement every so often. Returns the numbers of both.
pub(crate) fn run(
    engine: &Engine<Network>,
    time: Duration,
    every: Option<Duration>,
) -> Result<(u64, u32)> {
    // The number of the weights that are there, and of those that are on their way.
    static THERE: AtomicU32 = AtomicU32::new(0);
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (first, is_over) = (NEXT.load(SeqCst), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let replacing = scope.spawn(|| -> Result<()> {
            while let Some(every) = every
                && !is_over.load(SeqCst)
            {
                let number = NEXT.fetch_add(1, SeqCst) + 1;
                engine.replace_resident(|buffers, views| write_weights(number, buffers, views))?;
                THERE.store(number, SeqCst);
                std::thread::sleep(every);
            }
            Ok(())
        });
        let (start, mut items) = (Instant::now(), 0);
        while start.elapsed() < time {
            let oldest = THERE.load(SeqCst);
            let some =
                (0..1000).map(|item| (0..INPUTS).map(|i| ((item + i) % 13) as f32).collect());
            for done in engine.submit_many(some)?.wait()? {
                let [number, sum] = done.result?;
                let number = number as u32;
                assert!(
                    (oldest..=NEXT.load(SeqCst)).contains(&number),
                    "weights {number}"
                );
                let weights: Vec<f32> = weights(number).collect();
                assert_eq!(sum, weighed(&done.item, &weights), "weights {number}");
                items += 1;
            }
        }
        is_over.store(true, SeqCst);
        replacing.join().expect("it returns its error")?;
        Ok((items, NEXT.load(SeqCst) - first))
    })
}

pub(crate) fn engine() -> Result<Engine<Network>> {
    // SAFETY: it touches the first `header[0]` items of `x` and `y`, and all weights.
    let kernel = unsafe { Kernel::from_cuda("weigh.cu", TEXT, "weigh") }?.twin(weigh);
    Engine::auto(Network(kernel), &EngineConfig::new([250]))
}

fn main() -> Result<()> {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .map(|arg| arg.parse().expect("a number"))
        .collect();
    let time = Duration::from_secs(numbers.first().copied().unwrap_or(2));
    let every = Duration::from_millis(numbers.get(1).copied().unwrap_or(10));
    let engine = engine()?;
    println!("on {}", engine.device().name);
    for every in [None, Some(every)] {
        let (items, replaced) = run(&engine, time, every)?;
        println!("{items} items right, and weights replaced {replaced} times");
    }
    Ok(())
}
