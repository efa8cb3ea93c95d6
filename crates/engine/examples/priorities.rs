//! How long urgent items take next to bulk items that keep the engine full, and what they cost the bulk.
//!
//! An item is a vector of 16 KiB that twelve kernels change one after the other. Bulk batches have 64 items;
//! urgent items go alone, in the two slots that are kept for them. Prints the latency of urgent items alone and
//! next to the bulk, at a fifth of the rate at which they run alone, and the rate of the bulk in both cases.
//!
//! ```sh
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example priorities            # a GPU, if there is one
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example priorities -- 60 0    # 60 s each, no slot kept
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tapeloop_engine::pipeline::{SubmitOptions, Tickets, Wait};
use tapeloop_engine::*;

const KERNELS: usize = 12;
/// The elements of an item.
const LEN: u32 = 4096;
/// The items of a bulk batch.
const BULK: u32 = 64;
const SLOTS: usize = 4;
/// Steps of each kernel for each element. An H100 works on a bulk batch for some 230 us.
const STEPS_ON_GPU: u32 = 450;
const STEPS_ON_CPU: u32 = 2;
/// The share of their own capacity at which urgent items arrive.
const LOAD: f64 = 0.2;

const TEXT: &str = r#"
extern "C" __global__ void turn(const unsigned* header, const float* x, float* y, unsigned steps)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= header[0])
        return;
    float value = x[i];
    for (unsigned step = 0; step < steps; step++)
        value = value * 0.5f + 1.0f;
    y[i] = value;
}
"#;

/// The kernel's CPU twin. A product with 0.5 is exact, so a fused operation gives the same bits.
fn turn(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let x: &[f32] = launch.read();
    let y: &mut [f32] = launch.write();
    let steps: u32 = launch.scalar();
    for (y, x) in y.iter_mut().zip(x).take(live) {
        *y = (0..steps).fold(*x, |value, _| value * 0.5 + 1.0);
    }
}

/// Vectors of [`LEN`] elements, which start at 2 and stay there.
struct Turns(Kernel);

impl Workload for Turns {
    type Item = ();
    type Output = f32;
    /// The first and the last vector.
    type Buffers = [Buffer<f32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        &["elements"]
    }

    fn extent(&self, (): &()) -> Result<Extent> {
        Ok(Extent::from([LEN]))
    }

    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<[Buffer<f32>; 2]> {
        let steps = match device.backend {
            "cuda" => STEPS_ON_GPU,
            _ => STEPS_ON_CPU,
        };
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        let between = ["even", "odd"].map(|name| recorder.device_buffer(name, 0, 1));
        recorder.upload(header);
        recorder.upload(x);
        let mut from = x;
        for kernel in 1..=KERNELS {
            let to = if kernel == KERNELS {
                y
            } else {
                between[kernel % 2]
            };
            let blocks = recorder.capacity(0).div_ceil(128);
            let args = [header.into(), from.into(), to.into(), steps.into()];
            recorder.launch(&self.0, blocks, &args);
            from = to;
        }
        recorder.download(y);
        Ok([x, y])
    }

    fn write(
        &self,
        [x, _]: &[Buffer<f32>; 2],
        (): &(),
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*x).fill(2.0);
        Ok(())
    }

    fn read(
        &self,
        [_, y]: &[Buffer<f32>; 2],
        (): &(),
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<f32> {
        Ok(views.get(*y).iter().sum::<f32>() / LEN as f32)
    }
}

fn submit_urgent(engine: &Engine<Turns>) -> Result<Ticket<Turns>> {
    let urgent = SubmitOptions {
        urgent: true,
        ..SubmitOptions::default()
    };
    engine.submit_with((), urgent)
}

fn check(done: Completion<Turns>) -> Result<()> {
    assert_eq!(done.result?, 2.0);
    Ok(())
}

/// Keeps an urgent item in each slot. Returns the items per second.
fn urgent_capacity(engine: &Engine<Turns>, time: Duration) -> Result<f64> {
    let (start, mut count, mut tickets) = (Instant::now(), 0, VecDeque::new());
    while start.elapsed() < time {
        tickets.push_back(submit_urgent(engine)?);
        if tickets.len() == SLOTS {
            let oldest: Ticket<Turns> = tickets.pop_front().expect("there are some");
            check(oldest.wait()?)?;
            count += 1;
        }
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// Submits an urgent item at each interval. Returns their latencies, sorted, each from the time at which
/// the item was due.
fn urgent_latencies(
    engine: &Engine<Turns>,
    interval: Duration,
    time: Duration,
) -> Result<Vec<Duration>> {
    let (sender, tickets) = channel::<(Instant, Ticket<Turns>)>();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || -> Result<Vec<Duration>> {
            let mut latencies = Vec::new();
            for (due, ticket) in tickets {
                check(ticket.wait()?)?;
                latencies.push(due.elapsed());
            }
            latencies.sort();
            Ok(latencies)
        });
        let start = Instant::now();
        let mut due = start;
        while due - start < time {
            while Instant::now() < due {
                std::hint::spin_loop();
            }
            let ticket = submit_urgent(engine)?;
            sender.send((due, ticket)).expect("the waiter ends last");
            due += interval;
        }
        drop(sender);
        waiter.join().expect("the waiter does not panic")
    })
}

/// Keeps two bulk batches for each slot in the engine until `is_over`. Returns the batches per second.
fn bulk_rate(engine: &Engine<Turns>, is_over: impl Fn() -> bool) -> Result<f64> {
    let finish = |batch: Tickets<Turns>| batch.wait()?.into_iter().try_for_each(check);
    let (start, mut count, mut batches) = (Instant::now(), 0, VecDeque::new());
    while !is_over() {
        batches.push_back(engine.submit_many((0..BULK).map(|_| ()))?);
        count += 1;
        if batches.len() == 2 * SLOTS {
            batches.pop_front().map_or(Ok(()), finish)?;
        }
    }
    batches.into_iter().try_for_each(finish)?;
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// The median time of a bulk batch that has the engine to itself.
fn bulk_batch(engine: &Engine<Turns>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..50 {
        let start = Instant::now();
        engine.submit_many((0..BULK).map(|_| ()))?.wait()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}

fn print_latencies(what: &str, latencies: &[Duration]) {
    let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize].as_secs_f64() * 1e6;
    let (count, p50, p99) = (latencies.len(), at(0.5), at(0.99));
    println!("urgent items {what}: p50 {p50:.0} us, p99 {p99:.0} us ({count} items)");
}

/// Measures each case for `time`.
pub(crate) fn run(time: Duration, urgent_slots: usize) -> Result<()> {
    // SAFETY: it touches the elements of `x` and `y` below the header's total, which is at most their length.
    let kernel = unsafe { Kernel::from_cuda("turn.cu", TEXT, "turn") }?.twin(turn);
    let mut config = EngineConfig::new([LEN * BULK]);
    config.buckets = [LEN, LEN * BULK]
        .map(|length| Extent::from([length]))
        .to_vec();
    (config.slots, config.urgent_slots) = (SLOTS, urgent_slots);
    config.wait = Wait::Spin;
    let engine = Engine::auto(Turns(kernel), &config)?;
    println!(
        "{}: {SLOTS} slots, {urgent_slots} of them for urgent items",
        engine.device().name
    );

    let batch = bulk_batch(&engine)?;
    let capacity = urgent_capacity(&engine, time / 2)?;
    let interval = Duration::from_secs_f64(1.0 / (LOAD * capacity));
    println!(
        "capacity: {capacity:.0} urgent items/s; they arrive every {} us",
        interval.as_micros()
    );
    println!(
        "a bulk batch by itself, from submission to results: {} us",
        batch.as_micros()
    );
    print_latencies("alone", &urgent_latencies(&engine, interval, time)?);
    let start = Instant::now();
    let alone = bulk_rate(&engine, || start.elapsed() >= time)?;
    println!("bulk alone: {alone:.1} batches/s");
    let is_over = AtomicBool::new(false);
    let (latencies, beside) = std::thread::scope(|scope| {
        let bulk = scope.spawn(|| bulk_rate(&engine, || is_over.load(Relaxed)));
        let latencies = urgent_latencies(&engine, interval, time);
        is_over.store(true, Relaxed);
        (latencies, bulk.join().expect("the bulk does not panic"))
    });
    print_latencies("next to bulk", &latencies?);
    let beside = beside?;
    println!(
        "bulk next to urgent items: {beside:.1} batches/s, {:.0}%",
        100.0 * beside / alone
    );
    Ok(())
}

fn main() -> Result<()> {
    let mut args = std::env::args()
        .skip(1)
        .map(|arg| arg.parse::<f64>().expect("a number"));
    let time = Duration::from_secs_f64(args.next().unwrap_or(5.0));
    run(time, args.next().unwrap_or(2.0) as usize)
}
