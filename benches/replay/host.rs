//! What a replay takes of the calling thread, and stages by themselves.

use crate::Bench;
use crate::slots::Slots;
use crate::work::Shape;
use std::time::{Duration, Instant};
use tapeloop::Result;
use tapeloop::backend::{DeviceSlot, GraphId, GraphSource, Op, Queue};
use tapeloop::replay::{Bindings, Lowered, Policy, lower};

/// A stage of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    Upload,
    Kernels,
    Download,
}

/// The stages of every slot, to be run apart from each other.
pub(crate) struct StageLoop<'a> {
    slots: &'a mut Slots,
    parts: Vec<Parts>,
}

/// One device slot's stages: the copies, and a graph of the kernels.
struct Parts {
    upload: Op,
    kernels: GraphId,
    download: Op,
}

/// A recording's operations as they are in `device slot`.
pub(crate) fn lowered(
    bench: &Bench,
    slots: &Slots,
    device_slot: &dyn DeviceSlot,
    policy: &Policy,
) -> Result<Vec<Lowered>> {
    let bindings = Bindings::new(&slots.recording, &*bench.backend, device_slot, policy)?;
    Ok(lower(&bindings))
}

/// Gives an operation that was lowered for this device slot.
fn give(device_slot: &mut dyn DeviceSlot, queue: Queue, op: &Op) -> Result<()> {
    // SAFETY: the operations of these benchmarks are lowered from a checked recording
    // over the device slot's own buffers.
    unsafe { device_slot.enqueue(queue, op) }
}

/// A graph of operations, captured in their order.
pub(crate) fn capture(device_slot: &mut dyn DeviceSlot, body: &[&Lowered]) -> Result<GraphId> {
    let ops: Vec<&Op> = body.iter().map(|lowered| lowered.op()).collect();
    // SAFETY: as for `give`.
    let (graph, _) = unsafe { device_slot.make_graph(GraphSource::Captured(&ops), None)? };
    Ok(graph)
}

impl<'a> StageLoop<'a> {
    pub(crate) const CASES: &'static [(&'static str, Stage)] = &[
        ("stage_upload", Stage::Upload),
        ("stage_kernels", Stage::Kernels),
        ("stage_download", Stage::Download),
    ];

    pub(crate) fn new(bench: &Bench, slots: &'a mut Slots) -> Result<Self> {
        let mut parts = Vec::new();
        for index in 0..slots.slots.len() {
            let device_slot = &*slots.slots[index].device_slot;
            let ops = lowered(bench, slots, device_slot, &Policy::default())?;
            let of = |queue| ops.iter().filter(move |lowered| lowered.queue() == queue);
            let kernels: Vec<&Lowered> = of(Queue::Compute).collect();
            let one = |queue| of(queue).next().expect("a copy each way").op().clone();
            parts.push(Parts {
                upload: one(Queue::Upload),
                download: one(Queue::Download),
                kernels: capture(&mut *slots.slots[index].device_slot, &kernels)?,
            });
        }
        Ok(StageLoop { slots, parts })
    }

    /// Runs the stages of every slot one after the other, and refuses a wrong
    /// output.
    pub(crate) fn check(&mut self, case: &str) -> Result<()> {
        let buffers = self.slots.buffers;
        for (slot, parts) in self.slots.slots.iter_mut().zip(&self.parts) {
            slot.reset(buffers);
            for (_, stage) in Self::CASES {
                parts.submit(&mut *slot.device_slot, *stage)?;
                slot.device_slot.wait()?;
            }
        }
        self.slots.check_left(case)
    }

    /// One stage over all slots in turn, as batches go in
    /// [`Slots::closed_loop`].
    pub(crate) fn closed_loop(&mut self, stage: Stage, batches: usize) -> Result<Duration> {
        let slots = &mut self.slots.slots;
        let count = slots.len();
        let start = Instant::now();
        for batch in 0..batches {
            let device_slot = &mut *slots[batch % count].device_slot;
            if batch >= count {
                while !device_slot.is_done()? {}
            }
            self.parts[batch % count].submit(device_slot, stage)?;
        }
        for slot in slots {
            while !slot.device_slot.is_done()? {}
        }
        Ok(start.elapsed())
    }
}

impl Parts {
    fn submit(&self, device_slot: &mut dyn DeviceSlot, stage: Stage) -> Result<()> {
        match stage {
            Stage::Upload => give(device_slot, Queue::Upload, &self.upload)?,
            Stage::Kernels => device_slot.launch_graph(self.kernels)?,
            Stage::Download => give(device_slot, Queue::Download, &self.download)?,
        }
        device_slot.fence()
    }
}

/// A launch and its mark on an idle device, for graphs of more and more kernels:
/// by the device slot, a graph of the kernels alone; by the executor, the whole batch.
pub(crate) fn host(bench: &Bench) -> Result<()> {
    for kernels in [1, 3, 10, 30, 100] {
        let shape = Shape::small(kernels);
        let mut slots = Slots::open(bench, shape, 1, &Policy::default())?;
        let mut stages = StageLoop::new(bench, &mut slots)?;
        stages.check("host_kernels")?;
        let parts = &stages.parts[0];
        let device_slot = &mut *stages.slots.first().device_slot;
        let launch = |device_slot: &mut dyn DeviceSlot| parts.submit(device_slot, Stage::Kernels);
        let samples = host_times(bench, device_slot, launch)?;
        stages.check("host_kernels")?;
        let line = shape.line("host_kernels", 1, false);
        line.times("host_", samples).print();

        slots.check("host_batch")?;
        let slot = slots.first();
        let executor = &mut slot.executor;
        let launch = |device_slot: &mut dyn DeviceSlot| {
            executor.replay(device_slot, 0, shape.extent()).map(drop)
        };
        let samples = host_times(bench, &mut *slot.device_slot, launch)?;
        slots.check_left("host_batch")?;
        let line = shape.line("host_batch", 1, false);
        line.times("host_", samples).print();
    }
    Ok(())
}

fn host_times(
    bench: &Bench,
    device_slot: &mut dyn DeviceSlot,
    mut launch: impl FnMut(&mut dyn DeviceSlot) -> Result<()>,
) -> Result<Vec<f64>> {
    let count = (bench.samples / 5).max(1);
    let warm = count / 10;
    let mut samples = Vec::with_capacity(count);
    for round in 0..warm + count {
        let start = Instant::now();
        launch(device_slot)?;
        let took = start.elapsed();
        while !device_slot.is_done()? {}
        if round >= warm {
            samples.push(took.as_nanos() as f64);
        }
    }
    Ok(samples)
}
