//! What a replay takes of the calling thread, and stages by themselves.

use crate::Bench;
use crate::slots::Slots;
use crate::work::Shape;
use std::time::{Duration, Instant};
use tapeloop::Result;
use tapeloop::backend::{GraphId, Lane, Op, Queue};
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

/// One lane's stages: the copies, and a graph of the kernels.
struct Parts {
    upload: Op,
    kernels: GraphId,
    download: Op,
}

/// A recording's operations as they are in `lane`.
pub(crate) fn lowered(
    bench: &Bench,
    slots: &Slots,
    lane: &dyn Lane,
    policy: &Policy,
) -> Result<Vec<Lowered>> {
    let bindings = Bindings::new(&slots.recording, &*bench.backend, lane, policy)?;
    Ok(lower(&bindings))
}

/// Gives an operation that was lowered for this lane.
fn give(lane: &mut dyn Lane, queue: Queue, op: &Op) -> Result<()> {
    // SAFETY: the operations of these benchmarks are lowered from a checked recording
    // over the lane's own buffers.
    unsafe { lane.enqueue(queue, op) }
}

/// A graph of operations, captured in their order.
pub(crate) fn capture(lane: &mut dyn Lane, body: &[&Lowered]) -> Result<GraphId> {
    lane.begin_capture()?;
    let taken_down = body
        .iter()
        .try_for_each(|lowered| give(lane, lowered.queue(), lowered.op()));
    let ended = lane.end_capture(None);
    taken_down?;
    Ok(ended?.0)
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
            let lane = &*slots.slots[index].lane;
            let ops = lowered(bench, slots, lane, &Policy::default())?;
            let of = |queue| ops.iter().filter(move |lowered| lowered.queue() == queue);
            let kernels: Vec<&Lowered> = of(Queue::Compute).collect();
            let one = |queue| of(queue).next().expect("a copy each way").op().clone();
            parts.push(Parts {
                upload: one(Queue::Upload),
                download: one(Queue::Download),
                kernels: capture(&mut *slots.slots[index].lane, &kernels)?,
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
                parts.submit(&mut *slot.lane, *stage)?;
                slot.lane.wait()?;
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
            let lane = &mut *slots[batch % count].lane;
            if batch >= count {
                while !lane.is_done()? {}
            }
            self.parts[batch % count].submit(lane, stage)?;
        }
        for slot in slots {
            while !slot.lane.is_done()? {}
        }
        Ok(start.elapsed())
    }
}

impl Parts {
    fn submit(&self, lane: &mut dyn Lane, stage: Stage) -> Result<()> {
        match stage {
            Stage::Upload => give(lane, Queue::Upload, &self.upload)?,
            Stage::Kernels => lane.launch_graph(self.kernels)?,
            Stage::Download => give(lane, Queue::Download, &self.download)?,
        }
        lane.fence()
    }
}

/// A launch and its mark on an idle device, for graphs of more and more kernels:
/// by the lane, a graph of the kernels alone; by the executor, the whole batch.
pub(crate) fn host(bench: &Bench) -> Result<()> {
    for kernels in [1, 3, 10, 30, 100] {
        let shape = Shape::small(kernels);
        let mut slots = Slots::open(bench, shape, 1, &Policy::default())?;
        let mut stages = StageLoop::new(bench, &mut slots)?;
        stages.check("host_kernels")?;
        let parts = &stages.parts[0];
        let lane = &mut *stages.slots.first().lane;
        let launch = |lane: &mut dyn Lane| parts.submit(lane, Stage::Kernels);
        let samples = host_times(bench, lane, launch)?;
        stages.check("host_kernels")?;
        let line = shape.line("host_kernels", 1, false);
        line.times("host_", samples).print();

        slots.check("host_batch")?;
        let slot = slots.first();
        let executor = &mut slot.executor;
        let launch = |lane: &mut dyn Lane| executor.replay(lane, 0, shape.extent()).map(drop);
        let samples = host_times(bench, &mut *slot.lane, launch)?;
        slots.check_left("host_batch")?;
        let line = shape.line("host_batch", 1, false);
        line.times("host_", samples).print();
    }
    Ok(())
}

fn host_times(
    bench: &Bench,
    lane: &mut dyn Lane,
    mut launch: impl FnMut(&mut dyn Lane) -> Result<()>,
) -> Result<Vec<f64>> {
    let count = (bench.samples / 5).max(1);
    let warm = count / 10;
    let mut samples = Vec::with_capacity(count);
    for round in 0..warm + count {
        let start = Instant::now();
        launch(lane)?;
        let took = start.elapsed();
        while !lane.is_done()? {}
        if round >= warm {
            samples.push(took.as_nanos() as f64);
        }
    }
    Ok(samples)
}
