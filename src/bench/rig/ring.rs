//! Slots that are packed once and submitted again and again.

use super::{
    About, Closed, Machine, Opened, Rig, Stopwatch, TimedBatch, about_buckets, add_latency, fill,
    latencies, lost, sentences, sum,
};
use crate::backend::host_ns;
use crate::bench::machine::Threads;
use crate::bench::point::Point;
use crate::bench::record::Amounts;
use crate::bench::subject::Subject;
use crate::error::{Error, Result};
use crate::pipeline::{Done, Filling, Finished, Packed, Packer, Ring, Slot, Wait};
use crate::replay::Replay;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Batch<S> = Packed<<S as Subject>::Workload>;

/// Packed, and on no device.
struct Ready<S: Subject> {
    slot: Slot<Filling>,
    batch: Batch<S>,
}

pub(super) struct RingRig<S: Subject> {
    subject: Arc<S>,
    /// Whose time counts.
    threads: Threads,
    point: Point,
    packer: Packer<S::Workload>,
    ring: Ring<Batch<S>>,
    /// No seed is used twice.
    seed: u64,
    about: About,
}

impl<S: Subject> RingRig<S> {
    pub(super) fn open(machine: &Machine, subject: &Arc<S>, point: &Point) -> Result<Self> {
        let Machine { backend, pool } = machine;
        let ladder = subject.ladder(point.buckets);
        let packer = Packer::new(subject.workload()?, &ladder, backend, Arc::clone(pool))?;
        let buckets = packer.buckets();
        let ring = Ring::new(backend, &buckets, point.slots, &point.policy, Wait::Spin)?;
        let mut rig = RingRig {
            subject: Arc::clone(subject),
            // Where the CPU is the device, the thread that waits hands over to others.
            threads: match backend.device().shares_host_memory {
                true => Threads::All,
                false => Threads::This,
            },
            point: *point,
            packer,
            ring,
            seed: 0,
            about: about_buckets(&buckets),
        };
        rig.check()?;
        Ok(rig)
    }

    /// Every slot with items that no batch had before.
    fn pack(&mut self) -> Result<Vec<Ready<S>>> {
        let mut amounts = Amounts::default();
        let mut ready = Vec::with_capacity(self.point.slots);
        for _ in 0..self.point.slots {
            let mut slot = self.ring.acquire().ok_or_else(lost)?;
            self.seed += 1;
            let items = self
                .subject
                .items(self.seed, fill(&self.point, slot.index()));
            amounts = amounts + sum(&*self.subject, &items);
            let batch = self.packer.pack(&mut slot, items);
            let batch = batch.map_err(|(error, _)| error)?;
            ready.push(Ready { slot, batch });
        }
        self.about.amounts = Amounts {
            upload_bytes: self.about.amounts.upload_bytes,
            download_bytes: self.about.amounts.download_bytes,
            ..amounts * (1.0 / self.point.slots as f64)
        };
        Ok(ready)
    }

    fn submit(&mut self, ready: Ready<S>, timed: bool) -> Result<Replay> {
        let Ready { slot, batch } = ready;
        let live = batch.extent();
        let given = match timed {
            false => self.ring.submit(slot, live, batch),
            true => self.ring.submit_timed(slot, live, batch),
        };
        given.map_err(|failed| failed.error)
    }

    /// Looks at the results of a batch, and makes it ready again.
    fn read(&mut self, slot: Slot<Done<Batch<S>>>) -> Result<Ready<S>> {
        let outputs = self.packer.read(&slot);
        for (item, output) in slot.batch().items().zip(outputs) {
            self.subject.check(item, &output?)?;
        }
        self.again(Ok(slot))
    }

    fn again(&mut self, finished: Finished<Batch<S>>) -> Result<Ready<S>> {
        let (batch, error) = self.ring.release(finished);
        match error {
            Some(error) => Err(error),
            None => Ok(Ready {
                // The one that was just released.
                slot: self.ring.acquire().ok_or_else(lost)?,
                batch,
            }),
        }
    }

    fn next(&mut self) -> Result<Slot<Done<Batch<S>>>> {
        let finished = self.ring.wait().ok_or_else(lost)?;
        finished.map_err(|failed| failed.error)
    }

    /// Waits for all that is in flight, and checks it.
    fn drain(&mut self, mut seen: impl FnMut(&Slot<Done<Batch<S>>>) -> Result<()>) -> Result<()> {
        let mut ready = Vec::with_capacity(self.point.slots);
        while self.ring.in_flight() > 0 {
            let slot = self.next()?;
            seen(&slot)?;
            ready.push(self.read(slot)?);
        }
        self.park(ready);
        Ok(())
    }

    /// Slots without a batch go back to the ring.
    fn park(&mut self, ready: Vec<Ready<S>>) {
        for Ready { slot, .. } in ready {
            self.ring.put_free(slot.cancel());
        }
    }
}

impl<S: Subject> Rig for RingRig<S> {
    fn about(&self) -> About {
        self.about
    }

    fn chosen(&self) -> Vec<String> {
        sentences(self.ring.chosen())
    }

    fn check(&mut self) -> Result<()> {
        for ready in self.pack()? {
            self.submit(ready, false)?;
        }
        self.drain(|_| Ok(()))
    }

    fn closed(&mut self, batches: u64) -> Result<Closed> {
        let ready = self.pack()?;
        let slots = ready.len() as u64;
        let mut latencies = latencies();
        let mut submitted_at = vec![Instant::now(); self.point.slots];
        let (mut host, mut calls, mut copied) = (Duration::ZERO, 0, 0);
        let mut given = |rig: &mut Self, ready: Ready<S>, submitted_at: &mut [Instant]| {
            let index = ready.slot.index();
            let before = Instant::now();
            let replay = rig.submit(ready, false)?;
            host += before.elapsed();
            calls += replay.calls as u64;
            copied += replay.copied_bytes as u64;
            submitted_at[index] = before;
            Ok::<(), Error>(())
        };
        let watch = Stopwatch::start(self.threads);
        for ready in ready {
            given(self, ready, &mut submitted_at)?;
        }
        for _ in slots..batches {
            let slot = self.next()?;
            add_latency(&mut latencies, submitted_at[slot.index()].elapsed());
            let ready = self.again(Ok(slot))?;
            given(self, ready, &mut submitted_at)?;
        }
        let mut ends = Vec::with_capacity(self.point.slots);
        while self.ring.in_flight() > 0 {
            let slot = self.next()?;
            add_latency(&mut latencies, submitted_at[slot.index()].elapsed());
            ends.push(slot);
        }
        let (elapsed, busy) = watch.stop();
        for slot in ends {
            let ready = self.read(slot)?;
            self.park(vec![ready]);
        }
        let batches = batches.max(slots);
        self.about.copied(copied as f64 / batches as f64);
        Ok(Closed {
            elapsed,
            batches,
            busy,
            host,
            calls,
            latencies,
        })
    }

    fn open(&mut self, arrivals: &[Duration]) -> Result<Option<Opened>> {
        let mut free = self.pack()?;
        let mut latencies = latencies();
        let mut arrived_at = vec![Instant::now(); self.point.slots];
        let start = Instant::now();
        let (mut next, mut done) = (0, 0);
        while done < arrivals.len() {
            while let Some(&arrival) = arrivals.get(next)
                && arrival <= start.elapsed()
                && let Some(ready) = free.pop()
            {
                // From when it should have begun, whether or not a slot was free.
                arrived_at[ready.slot.index()] = start + arrival;
                self.submit(ready, false)?;
                next += 1;
            }
            if let Some(finished) = self.ring.poll() {
                let slot = finished.map_err(|failed| failed.error)?;
                add_latency(&mut latencies, arrived_at[slot.index()].elapsed());
                done += 1;
                free.push(self.again(Ok(slot))?);
            }
            std::hint::spin_loop();
        }
        let elapsed = start.elapsed();
        self.park(free);
        Ok(Some(Opened { elapsed, latencies }))
    }

    fn timed(&mut self, batches: usize) -> Result<Vec<TimedBatch>> {
        let ready = self.pack()?;
        let mut timed = Vec::with_capacity(batches);
        let mut submitted = vec![None; self.point.slots];
        let give = |rig: &mut Self, ready: Ready<S>, submitted: &mut [Option<(u64, u64)>]| {
            let index = ready.slot.index();
            let from = host_ns(Instant::now());
            let replay = rig.submit(ready, true)?;
            submitted[index] = replay.timed.then(|| (from, host_ns(Instant::now())));
            Ok::<(), Error>(())
        };
        let mut note = |slot: &Slot<Done<Batch<S>>>, submitted: &[Option<(u64, u64)>]| {
            if let Some(submit_ns) = submitted[slot.index()]
                && let [Some(a), Some(b), Some(c), Some(d)] = slot.timestamps()?
            {
                timed.push(TimedBatch {
                    slot: slot.index(),
                    submit_ns,
                    timestamps_ns: [a, b, c, d],
                });
            }
            Ok::<(), Error>(())
        };
        let slots = ready.len();
        for ready in ready {
            give(self, ready, &mut submitted)?;
        }
        for _ in slots..batches {
            let slot = self.next()?;
            note(&slot, &submitted)?;
            let ready = self.again(Ok(slot))?;
            give(self, ready, &mut submitted)?;
        }
        self.drain(|slot| note(slot, &submitted))?;
        Ok(timed)
    }
}
