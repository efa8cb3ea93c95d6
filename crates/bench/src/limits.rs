//! Measures the limits of the machine with the calls that the engine makes.

use super::benchmark::Benchmark;
use super::point::{Point, PointSpace, Work};
use super::record::MachineLimits;
use super::runner::{self, Machine};
use super::statistics::median;
use super::synthetic::Synthetic;
use rayon::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_engine::backend::contract::{DeviceSlot, GraphId, GraphSource, Op, Priority};
use tapeloop_engine::backend::{Backend, Space as Memory};
use tapeloop_engine::error::{Context, Result};
use tapeloop_engine::record::{Recorder, Recording};
use tapeloop_engine::replay::{Bindings, Lowered, Policy, lower};
use tapeloop_engine::workload::Workload;

/// The size of a copy in bytes, so large that its start and end take a negligible part of the time.
const COPY_BYTES: usize = 64 << 20;

/// The size of a copy within the device in bytes. Such copies are faster, so they must be larger.
const DEVICE_BYTES: usize = 512 << 20;

/// The number of copies in a row, for which the host waits once.
const COPIES: usize = 8;

/// How often each limit is measured. The best result counts, since disturbances only slow a machine
/// down.
const ROUNDS: usize = 5;

/// How often the host time of the launches is measured: enough for medians, in less than a second.
const LAUNCHES: usize = 300;

/// Measures all limits of the machine. The limits of a device are those of the first device.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`](tapeloop_engine::ErrorKind::OutOfMemory) if memory runs out, and the errors of
/// the device.
pub fn measure(machine: &Machine) -> Result<MachineLimits> {
    let mut limits = MachineLimits {
        host_bytes_per_s: Some(host_memory(machine)),
        ..MachineLimits::default()
    };
    let backend = machine.first();
    let launches = LaunchTimer::open(backend)?.measure()?;
    (limits.launch_ns, limits.graph_launch_ns) = (Some(launches.0), Some(launches.1));
    // The CPU backend makes no transfers, and it computes with the kernels' twins, not on a device.
    if backend.device().shares_host_memory {
        return Ok(limits);
    }
    let mut link = CopyTimer::open(backend)?;
    let [up, down] = [[COPIES, 0], [0, COPIES]].map(|copies| link.measure_rate(copies));
    let both = link.measure_rate([COPIES, COPIES])?;
    limits.upload_bytes_per_s = Some(up?);
    limits.download_bytes_per_s = Some(down?);
    (
        limits.upload_both_bytes_per_s,
        limits.download_both_bytes_per_s,
    ) = (Some(both), Some(both));
    drop(link);
    limits.device_bytes_per_s = Some(device_memory(&**backend)?);
    limits.fma_per_s = Some(arithmetic(machine)?);
    Ok(limits)
}

/// The best rate of calls that move `bytes` each.
fn best_rate(bytes: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        call()?;
        best = best.min(start.elapsed());
    }
    Ok(bytes as f64 / best.as_secs_f64())
}

/// The bytes per second that all threads together read and write when they copy between two arrays
/// that exceed the caches.
fn host_memory(machine: &Machine) -> f64 {
    // Not zeros: untouched pages of those are all one page of memory, which the caches hold.
    let from = vec![1_u8; 2 * COPY_BYTES];
    let mut to = vec![0_u8; from.len()];
    // Four parts for each thread, so that a thread that is slowed down leaves some to others.
    let part = from.len().div_ceil(4 * machine.pool.current_num_threads());
    let rate = best_rate(2 * from.len(), || {
        machine.pool.install(|| {
            let parts = to.par_chunks_mut(part).zip(from.par_chunks(part));
            parts.for_each(|(to, from)| to.copy_from_slice(from));
        });
        Ok(())
    });
    // Copying memory does not fail.
    rate.unwrap_or_default()
}

/// The bytes per second that a copy within the device's memory reads and writes. Waits for several
/// copies, of which the fastest counts, after one that warms up.
fn device_memory(backend: &dyn Backend) -> Result<f64> {
    let from = backend.allocate(Memory::Device, DEVICE_BYTES)?;
    let to = backend.allocate(Memory::Device, DEVICE_BYTES)?;
    backend.copy(&from, 0, &to, 0, DEVICE_BYTES)?;
    best_rate(2 * DEVICE_BYTES, || {
        backend.copy(&from, 0, &to, 0, DEVICE_BYTES)
    })
}

/// Records the synthetic workload of a point.
fn record_synthetic(backend: &Arc<dyn Backend>, point: &Point) -> Result<Recording> {
    let benchmark = Synthetic::for_point(point);
    let benchmark = benchmark.unwrap_or_else(|| unreachable!("limits are of synthetic work"));
    let mut recorder = Recorder::new(&[point.batch]);
    benchmark
        .workload()?
        .record(&mut recorder, backend.device())?;
    recorder.finish()
}

/// The commands of a recording, lowered to operations on the slot's addresses.
fn lower_recording(
    backend: &Arc<dyn Backend>,
    recording: &Arc<Recording>,
    device_slot: &dyn DeviceSlot,
) -> Result<Vec<Lowered>> {
    let bindings = Bindings::new(recording, &**backend, device_slot, &Policy::default())?;
    Ok(lower(&bindings))
}

/// Measures copies between host and device with two slots: one uploads, and one downloads.
struct CopyTimer {
    device_slots: Vec<Box<dyn DeviceSlot>>,
    copies: [Lowered; 2],
}

impl CopyTimer {
    /// Opens two slots, one for uploads and one for downloads, so that both can be timed at the
    /// same time.
    fn open(backend: &Arc<dyn Backend>) -> Result<Self> {
        let point = Point {
            batch: (COPY_BYTES / size_of::<f32>()) as u32,
            kernels: 1,
            ..PointSpace::for_work(Work::Launch, true).base
        };
        let recording = Arc::new(record_synthetic(backend, &point)?);
        let device_slots = backend.open_slots(recording.buffers(), 2, Priority::Normal)?;
        let copy = |device_slot: &dyn DeviceSlot, is_wanted: fn(&Op) -> bool| -> Result<Lowered> {
            let mut commands = lower_recording(backend, &recording, device_slot)?.into_iter();
            let found = commands.find(|lowered| is_wanted(lowered.op()));
            Ok(found.expect("a copy each way was recorded"))
        };
        let copies = [
            copy(&*device_slots[0], |op| matches!(op, Op::Upload { .. }))?,
            copy(&*device_slots[1], |op| matches!(op, Op::Download { .. }))?,
        ];
        Ok(CopyTimer {
            device_slots,
            copies,
        })
    }

    /// The rate of `copies` uploads and downloads at the same time, in bytes per second of each
    /// direction.
    fn measure_rate(&mut self, copies: [usize; 2]) -> Result<f64> {
        let bytes = COPY_BYTES * copies[0].max(copies[1]);
        best_rate(bytes, || {
            for (way, device_slot) in self.device_slots.iter_mut().enumerate() {
                let copy = &self.copies[way];
                for _ in 0..copies[way] {
                    // SAFETY: the command was lowered for this slot, and names its buffers alone.
                    unsafe { device_slot.enqueue(copy.op()) }?;
                }
                device_slot.fence()?;
            }
            self.device_slots
                .iter_mut()
                .try_for_each(|device_slot| device_slot.wait())
        })
    }
}

/// Measures launches of the base point's kernels, as separate calls and as one graph.
struct LaunchTimer {
    device_slot: Box<dyn DeviceSlot>,
    kernels: Vec<Lowered>,
    graph: GraphId,
}

impl LaunchTimer {
    /// Opens a slot, and captures the kernels of a batch in a graph.
    fn open(backend: &Arc<dyn Backend>) -> Result<Self> {
        let point = PointSpace::for_work(Work::Launch, true).base;
        let recording = Arc::new(record_synthetic(backend, &point)?);
        let mut device_slots = backend.open_slots(recording.buffers(), 1, Priority::Normal)?;
        let mut device_slot = device_slots.remove(0);
        let mut kernels = lower_recording(backend, &recording, &*device_slot)?;
        kernels.retain(|lowered| matches!(lowered.op(), Op::Launch { .. }));
        let ops: Vec<&Op> = kernels.iter().map(Lowered::op).collect();
        // SAFETY: the commands were lowered for this slot from a checked recording, and name its
        // buffers alone, which start zeroed: the kernels stay within them.
        let made = unsafe { device_slot.make_graph(GraphSource::Captured(&ops), None) };
        let (graph, _) = made.within(|| "capture the graph")?;
        Ok(LaunchTimer {
            device_slot,
            kernels,
            graph,
        })
    }

    /// The medians of the host time of a kernel launch and of a graph launch, in nanoseconds. The device is
    /// idle before each, so that none waits for room in its queue.
    fn measure(&mut self) -> Result<(f64, f64)> {
        let (mut calls, mut graphs) = (Vec::new(), Vec::new());
        for _ in 0..LAUNCHES {
            let start = Instant::now();
            for lowered in &self.kernels {
                // SAFETY: as for the graph.
                unsafe { self.device_slot.enqueue(lowered.op()) }?;
            }
            calls.push(start.elapsed().as_nanos() as f64 / self.kernels.len() as f64);
            self.device_slot.fence()?;
            self.device_slot.wait()?;
            let start = Instant::now();
            self.device_slot.launch_graph(self.graph)?;
            graphs.push(start.elapsed().as_nanos() as f64);
            self.device_slot.fence()?;
            self.device_slot.wait()?;
        }
        Ok((
            median(&calls).unwrap_or_default(),
            median(&graphs).unwrap_or_default(),
        ))
    }
}

/// Fused multiply-adds per second of a kernel that fills the device.
fn arithmetic(machine: &Machine) -> Result<f64> {
    let point = Point {
        // The kernel runs so long that copies and launches take a negligible part of the time.
        batch: 1 << 20,
        kernels: 32_768,
        // Two batches are queued behind the one that computes, so that the device never waits.
        slots: 3,
        ..PointSpace::for_work(Work::Compute, true).base
    };
    let benchmark = Synthetic::for_point(&point).unwrap_or_else(|| unreachable!("it is synthetic"));
    let mut runner = runner::open(machine, &Arc::new(benchmark), &point)?;
    let mut best = 0.0_f64;
    for _ in 0..ROUNDS {
        // Two batches for each slot.
        let closed = runner.run_closed_loop(2 * point.slots as u64)?;
        let fma = runner.batch_facts().amounts.fma * closed.batches as f64;
        best = best.max(fma / closed.elapsed.as_secs_f64());
    }
    Ok(best)
}
