//! What becomes of a service that is offered twice what it can do.
//!
//! A closed loop first measures the capacity: it keeps as many items submitted as the engine holds. Then an
//! open loop offers twice as many, at a fixed rate, whatever becomes of them. An item is refused at once
//! where `waiting_batches_max` batches wait for a slot, and expires after [`TIMEOUT`]. Prints what was
//! answered in time as a share of the capacity, and how long refusals took.
//!
//! ```sh
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example overload
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example overload -- 30 cpu   # 30 s each, on the CPU
//! ```

use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use tapeloop_engine::backend::{Choice, ThreadPoolBuilder, select};
use tapeloop_engine::pipeline::{SubmitOptions, TrySubmitError};
use tapeloop_engine::*;

/// How long an item may wait for its result.
const TIMEOUT: Duration = Duration::from_millis(100);
/// Items per batch, and numbers per item.
const BATCH: u32 = 64;
const LEN: u32 = 256;
/// Steps for each number: an item takes about 100 us on a core, and a batch about that on an H100.
const STEPS_ON_CPU: u32 = 200;
const STEPS_ON_GPU: u32 = 100_000;

const TEXT: &str = r#"
extern "C" __global__ void turn(const unsigned* header, const float* x, float* y, const unsigned* steps)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= header[0])
        return;
    float value = x[i];
    for (unsigned step = 0; step < *steps; step++)
        value = value * 0.5f + 1.0f;
    y[i] = value;
}
"#;

/// The kernel's CPU twin.
fn turn(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let x: &[f32] = launch.read();
    let y: &mut [f32] = launch.write();
    let steps = launch.read::<u32>()[0];
    let items = y[..live].par_chunks_mut(LEN as usize);
    items.zip(x.par_chunks(LEN as usize)).for_each(|(y, x)| {
        for (y, x) in y.iter_mut().zip(x) {
            *y = (0..steps).fold(*x, |value, _| value * 0.5 + 1.0);
        }
    });
}

struct Turns(Kernel);

impl Workload for Turns {
    type Item = f32;
    type Output = f32;
    type Buffers = [Buffer<f32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, _: &f32) -> Result<Extent> {
        Ok([LEN].into())
    }

    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<[Buffer<f32>; 2]> {
        let steps = match device.backend {
            "cpu" => STEPS_ON_CPU,
            _ => STEPS_ON_GPU,
        };
        let header = recorder.header();
        let steps = recorder.constant("steps", steps);
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        recorder.upload(header);
        recorder.upload(x);
        let args = [header.into(), x.into(), y.into(), steps.into()];
        recorder.launch(&self.0, recorder.capacity(0).div_ceil(128), &args);
        recorder.download(y);
        Ok([x, y])
    }

    fn write(
        &self,
        [x, _]: &[Buffer<f32>; 2],
        item: &f32,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*x).fill(*item);
        Ok(())
    }

    fn read(
        &self,
        [_, y]: &[Buffer<f32>; 2],
        _: &f32,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<f32> {
        Ok(views.get(*y)[0])
    }
}

/// Items that are answered in a second while as many are submitted as the engine holds.
fn capacity(engine: &Engine<Turns>, config: &EngineConfig, time: Duration) -> Result<f64> {
    let held = (config.slots + config.waiting_batches_max) * BATCH as usize;
    let mut tickets: VecDeque<Ticket<Turns>> = VecDeque::new();
    let (start, mut done) = (Instant::now(), 0);
    while start.elapsed() < time {
        while tickets.len() < held {
            tickets.push_back(engine.submit(2.0)?);
        }
        let first = tickets.pop_front().expect("there are some");
        first.wait()?.result?;
        done += 1;
    }
    Ok(f64::from(done) / start.elapsed().as_secs_f64())
}

/// What became of the items that were offered.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) capacity: f64,
    pub(crate) offered: usize,
    pub(crate) in_time: usize,
    pub(crate) late: usize,
    /// How long each refusal took, in seconds, from the shortest.
    pub(crate) refusals: Vec<f64>,
    pub(crate) seconds: f64,
}

/// Offers `rate` items a second, each of which expires after `timeout`.
fn overload(
    engine: &Engine<Turns>,
    rate: f64,
    time: Duration,
    timeout: Duration,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let (sender, tickets) = channel::<(Instant, Ticket<Turns>)>();
    thread::scope(|scope| {
        let collector = scope.spawn(move || -> Result<(usize, usize, Vec<f64>)> {
            let (mut in_time, mut late, mut expired) = (0, 0, Vec::new());
            for (submitted, ticket) in tickets {
                let done = ticket.wait()?;
                let taken = submitted.elapsed();
                match done.result {
                    Ok(_) if taken <= timeout => in_time += 1,
                    Ok(_) => late += 1,
                    Err(error) if error.kind() == ErrorKind::Expired => {
                        expired.push(taken.as_secs_f64());
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok((in_time, late, expired))
        });
        // Bursts of a quarter of a batch, as longer pauses leave a fast device idle.
        let pause = Duration::from_secs_f64(f64::from(BATCH / 4) / rate);
        let total = (rate * time.as_secs_f64()).ceil() as usize;
        let start = Instant::now();
        while outcome.offered < total {
            thread::sleep(pause);
            let due = ((start.elapsed().as_secs_f64() * rate) as usize).min(total);
            while outcome.offered < due {
                outcome.offered += 1;
                let now = Instant::now();
                let options = SubmitOptions {
                    expires_at: Some(now + timeout),
                    ..SubmitOptions::default()
                };
                match engine.try_submit(2.0, options) {
                    Ok(ticket) => drop(sender.send((now, ticket))),
                    Err(TrySubmitError::Full(_)) => {
                        outcome.refusals.push(now.elapsed().as_secs_f64());
                    }
                    Err(TrySubmitError::Closed(_, reason)) => return Err(reason),
                }
            }
        }
        outcome.seconds = start.elapsed().as_secs_f64();
        drop(sender);
        let (in_time, late, expired) = collector.join().expect("the collector does not panic")?;
        (outcome.in_time, outcome.late) = (in_time, late);
        outcome.refusals.extend(expired);
        outcome.refusals.sort_by(f64::total_cmp);
        Ok(outcome)
    })
}

pub(crate) fn run(choice: Choice, time: Duration, timeout: Duration) -> Result<Outcome> {
    let pool = Arc::new(ThreadPoolBuilder::new().build().expect("threads"));
    let backend = select(choice, &pool)?.backend;
    println!("on {}", backend.device().name);
    let config = EngineConfig::new([BATCH * LEN]);
    // SAFETY: it touches the first `header[0]` numbers of `x` and `y`, which the engine keeps within
    // their capacity, and one number at `steps`.
    let kernel = unsafe { Kernel::from_cuda("turn.cu", TEXT, "turn") }?;
    let turns = Turns(kernel.twin(turn));
    let engine = Engine::new(turns, &[backend], pool, &config)?;
    let capacity = capacity(&engine, &config, time)?;
    let mut outcome = overload(&engine, 2.0 * capacity, time, timeout)?;
    outcome.capacity = capacity;
    Ok(outcome)
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().and_then(|text| text.parse().ok()).unwrap_or(5);
    let choice = match args.next().as_deref() {
        Some("cpu") => Choice::Cpu,
        _ => Choice::Auto,
    };
    let outcome = run(choice, Duration::from_secs(seconds), TIMEOUT)?;
    let rate = |count: usize| count as f64 / outcome.seconds;
    println!("capacity in a closed loop: {:.0} items/s", outcome.capacity);
    println!(
        "offered in an open loop: {:.0} items/s",
        rate(outcome.offered)
    );
    println!(
        "answered within {TIMEOUT:?}: {:.0} items/s, {:.2} of the capacity; late: {}",
        rate(outcome.in_time),
        rate(outcome.in_time) / outcome.capacity,
        outcome.late
    );
    let refusals = &outcome.refusals;
    let ms = |share: f64| 1e3 * refusals[((refusals.len() - 1) as f64 * share) as usize];
    if refusals.is_empty() {
        println!("nothing was refused")
    } else {
        println!(
            "refused: {:.0} items/s; half of them within {:.4} ms, 99% within {:.4} ms",
            rate(refusals.len()),
            ms(0.5),
            ms(0.99)
        )
    }
    Ok(())
}
