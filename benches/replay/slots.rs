//! Device slots with their executors, driven by hand: the replay core without stages.

use crate::Bench;
use crate::work::{Buffers, Chain, Shape, Spares, wrong_output};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop::Result;
use tapeloop::backend::DeviceSlot;
use tapeloop::record::{Recorder, Recording};
use tapeloop::replay::{Buckets, Executor, Policy};
use tapeloop::workload::{Extent, Workload};

/// One slot. The executor's graphs are the device slot's.
pub(crate) struct Slot {
    pub(crate) device_slot: Box<dyn DeviceSlot>,
    pub(crate) executor: Executor,
    busy: bool,
    input: Arc<[f32]>,
    expected: Vec<f32>,
    output: Vec<f32>,
}

/// Slots of one shape under one policy.
pub(crate) struct Slots {
    pub(crate) shape: Shape,
    pub(crate) buffers: Buffers,
    pub(crate) recording: Arc<Recording>,
    pub(crate) slots: Vec<Slot>,
    live: Extent,
}

impl Slots {
    pub(crate) fn open(
        bench: &Bench,
        shape: Shape,
        count: usize,
        policy: &Policy,
    ) -> Result<Slots> {
        let mut recorder = Recorder::new(&[shape.n as u32]);
        let chain = Chain::new(shape, &Spares::default());
        let buffers = chain.record(&mut recorder, bench.backend.device())?;
        let buckets = Arc::new(Buckets::single(recorder.finish()?));
        let recording = Arc::clone(&buckets.largest().recording);
        let device_slots = bench
            .backend
            .open_slots(recording.buffers(), count, policy.streams)?;
        let slot = |(index, mut device_slot): (usize, Box<dyn DeviceSlot>)| -> Result<Slot> {
            let executor = Executor::new(&bench.backend, &mut *device_slot, &buckets, policy)?;
            let input = shape.input(index);
            Ok(Slot {
                device_slot,
                executor,
                busy: false,
                expected: shape.output(&input),
                output: vec![0.0; shape.n],
                input,
            })
        };
        let slots = device_slots.into_iter().enumerate().map(slot);
        Ok(Slots {
            shape,
            buffers,
            recording,
            slots: slots.collect::<Result<_>>()?,
            live: shape.extent(),
        })
    }

    /// The only slot, or the first.
    pub(crate) fn first(&mut self) -> &mut Slot {
        &mut self.slots[0]
    }

    /// Runs a batch of every slot, and refuses a wrong output. It leaves outputs
    /// that cannot be right, for [`Slots::check_left`] after the next batches.
    pub(crate) fn check(&mut self, case: &str) -> Result<()> {
        let (buffers, live) = (self.buffers, self.live);
        for slot in &mut self.slots {
            slot.reset(buffers);
            slot.executor.replay(&mut *slot.device_slot, 0, live)?;
            slot.device_slot.wait()?;
            slot.check_left(buffers, case)?;
            slot.reset(buffers);
        }
        Ok(())
    }

    /// Refuses a wrong output of the last batch of any slot.
    pub(crate) fn check_left(&self, case: &str) -> Result<()> {
        let mut slots = self.slots.iter();
        slots.try_for_each(|slot| slot.check_left(self.buffers, case))
    }

    /// Batches through all slots in turn, each as soon as its slot is done; with
    /// `host_copies` the data comes from elsewhere and goes there.
    pub(crate) fn closed_loop(&mut self, batches: usize, host_copies: bool) -> Result<Duration> {
        let (buffers, live) = (self.buffers, self.live);
        let start = Instant::now();
        let mut left = batches;
        while left > 0 {
            for slot in self.slots.iter_mut().take(left) {
                slot.finish(buffers, host_copies)?;
                if host_copies {
                    slot.put_in(buffers);
                }
                slot.executor.replay(&mut *slot.device_slot, 0, live)?;
                slot.busy = true;
                left -= 1;
            }
        }
        for slot in &mut self.slots {
            slot.finish(buffers, host_copies)?;
        }
        Ok(start.elapsed())
    }
}

impl Slot {
    /// The slot's input in place, and an output that cannot be right.
    pub(crate) fn reset(&mut self, buffers: Buffers) {
        self.put_in(buffers);
        self.device_slot.host_mut(&[buffers.y.id()])[0].fill(0xFF);
    }

    pub(crate) fn put_in(&mut self, buffers: Buffers) {
        let input: &[u8] = bytemuck::cast_slice(&self.input);
        self.device_slot.host_mut(&[buffers.x.id()])[0].copy_from_slice(input);
    }

    pub(crate) fn take_out(&mut self, buffers: Buffers) {
        let output = self.device_slot.host(buffers.y.id());
        self.output.copy_from_slice(bytemuck::cast_slice(output));
    }

    /// Spins until the slot's batch is done, if it has one.
    fn finish(&mut self, buffers: Buffers, host_copies: bool) -> Result<()> {
        if std::mem::take(&mut self.busy) {
            while !self.device_slot.is_done()? {}
            if host_copies {
                self.take_out(buffers);
            }
        }
        Ok(())
    }

    pub(crate) fn check_left(&self, buffers: Buffers, case: &str) -> Result<()> {
        match self.left(buffers) == self.expected {
            true => Ok(()),
            false => Err(wrong_output(case)),
        }
    }

    /// What the slot's last batch left.
    pub(crate) fn left(&self, buffers: Buffers) -> &[f32] {
        bytemuck::cast_slice(self.device_slot.host(buffers.y.id()))
    }

    pub(crate) fn input(&self) -> &[f32] {
        &self.input
    }
}

/// Nanoseconds a batch of `run(batches)`, once a repetition, warmed up before.
pub(crate) fn repeat(
    bench: &Bench,
    rep: Duration,
    slots: usize,
    mut run: impl FnMut(usize) -> Result<Duration>,
) -> Result<Vec<f64>> {
    let mut batches = 4 * slots;
    let mut took = run(batches)?;
    while took < rep / 2 {
        batches *= 2;
        took = run(batches)?;
    }
    let fitting = batches as f64 * rep.as_secs_f64() / took.as_secs_f64();
    let batches = (fitting as usize).max(slots);
    let period = |_| Ok(run(batches)?.as_nanos() as f64 / batches as f64);
    (0..bench.reps).map(period).collect()
}
