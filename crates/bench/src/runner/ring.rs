//! Runs a point through a ring: slots are packed once and submitted again and again.

use super::{
    BatchFacts, Closed, Machine, Opened, Runner, Stopwatch, TimedBatch, add_latency, fill_share,
    largest_batch, latencies, slot_missing, sum_amounts,
};
use crate::benchmark::Benchmark;
use crate::machine::CpuClock;
use crate::point::Point;
use crate::record::Amounts;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_engine::backend::contract::host_ns;
use tapeloop_engine::error::{Error, Result};
use tapeloop_engine::pipeline::{Done, Filling, Finished, Packed, Packer, Ring, Slot, Wait};
use tapeloop_engine::replay::Replay;

type RingBatch<S> = Packed<<S as Benchmark>::Workload>;

/// A packed batch that is not in flight.
struct Ready<S: Benchmark> {
    slot: Slot<Filling>,
    batch: RingBatch<S>,
}

pub(super) struct RingRunner<S: Benchmark> {
    benchmark: Arc<S>,
    /// The CPU clock that is sampled.
    threads: CpuClock,
    point: Point,
    packer: Packer<S::Workload>,
    ring: Ring<RingBatch<S>>,
    /// The last seed that was used.
    seed: u64,
    batch: BatchFacts,
}

impl<S: Benchmark> RingRunner<S> {
    /// Opens a ring on the first device.
    pub(super) fn open(machine: &Machine, benchmark: &Arc<S>, point: &Point) -> Result<Self> {
        let (backend, pool) = (machine.first(), &machine.pool);
        let ladder = benchmark.ladder(point.buckets);
        let packer = Packer::new(benchmark.workload()?, &ladder, backend, Arc::clone(pool))?;
        let buckets = packer.buckets();
        let ring = Ring::new(backend, &buckets, point.slots, &point.policy, Wait::Spin)?;
        Ok(RingRunner {
            benchmark: Arc::clone(benchmark),
            // On the CPU backend other threads work for the one that submits.
            threads: if backend.device().shares_host_memory {
                CpuClock::All
            } else {
                CpuClock::This
            },
            point: *point,
            packer,
            ring,
            seed: 0,
            batch: largest_batch(&buckets),
        })
    }

    /// Packs every slot with new items, and notes what a batch holds on average. Its bytes are noted after the
    /// next closed loop, which counts them.
    fn pack(&mut self) -> Result<Vec<Ready<S>>> {
        let mut amounts = Amounts::default();
        let mut ready = Vec::with_capacity(self.point.slots);
        for _ in 0..self.point.slots {
            let mut slot = self.ring.acquire().ok_or_else(slot_missing)?;
            self.seed += 1;
            let items = self
                .benchmark
                .items(self.seed, fill_share(&self.point, slot.index()));
            amounts = amounts + sum_amounts(&*self.benchmark, &items);
            let batch = self.packer.pack(&mut slot, items);
            let batch = batch.map_err(|(error, _)| error)?;
            ready.push(Ready { slot, batch });
        }
        self.batch.amounts = Amounts {
            upload_bytes: self.batch.amounts.upload_bytes,
            download_bytes: self.batch.amounts.download_bytes,
            ..amounts * (1.0 / self.point.slots as f64)
        };
        Ok(ready)
    }

    /// Submits a packed batch, with timestamps of its stages if `timed`. A batch that fails is dropped.
    fn submit(&mut self, ready: Ready<S>, timed: bool) -> Result<Replay> {
        let Ready { slot, batch } = ready;
        let live = batch.extent();
        let submitted = if timed {
            self.ring.submit_timed(slot, live, batch)
        } else {
            self.ring.submit(slot, live, batch)
        };
        submitted.map_err(|failed| failed.error)
    }

    /// Compares the results of a batch, and makes the batch ready again.
    fn check_outputs(&mut self, slot: Slot<Done<RingBatch<S>>>) -> Result<Ready<S>> {
        let outputs = self.packer.read(&slot);
        for (item, output) in slot.batch().items().zip(outputs) {
            self.benchmark.check(item, &output?)?;
        }
        self.make_ready(Ok(slot))
    }

    /// Releases a finished slot, and takes it again with the same batch.
    fn make_ready(&mut self, finished: Finished<RingBatch<S>>) -> Result<Ready<S>> {
        let (batch, error) = self.ring.release(finished);
        match error {
            Some(error) => Err(error),
            None => Ok(Ready {
                // This is the slot that was just released, as no other is free. Only at the end of a loop
                // another one may be, where the batch is dropped.
                slot: self.ring.acquire().ok_or_else(slot_missing)?,
                batch,
            }),
        }
    }

    fn wait_for_next(&mut self) -> Result<Slot<Done<RingBatch<S>>>> {
        let finished = self.ring.wait().ok_or_else(slot_missing)?;
        finished.map_err(|failed| failed.error)
    }

    /// Waits for all batches in flight, shows each to `visit`, compares its results, and frees its slot.
    fn drain(
        &mut self,
        mut visit: impl FnMut(&Slot<Done<RingBatch<S>>>) -> Result<()>,
    ) -> Result<()> {
        let mut ready = Vec::with_capacity(self.point.slots);
        while self.ring.in_flight() > 0 {
            let slot = self.wait_for_next()?;
            visit(&slot)?;
            ready.push(self.check_outputs(slot)?);
        }
        // Not before, or `make_ready` could take one of these slots for a batch of another.
        self.put_free(ready);
        Ok(())
    }

    /// Gives the slots back to the ring, without their batches.
    fn put_free(&mut self, ready: Vec<Ready<S>>) {
        for Ready { slot, .. } in ready {
            self.ring.put_free(slot.cancel());
        }
    }
}

impl<S: Benchmark> Runner for RingRunner<S> {
    fn batch_facts(&self) -> BatchFacts {
        self.batch
    }

    fn run_closed_loop(&mut self, batches: u64) -> Result<Closed> {
        let ready = self.pack()?;
        let slots = ready.len() as u64;
        let mut latencies = latencies();
        let mut submitted_at = vec![Instant::now(); self.point.slots];
        let (mut host, mut calls, mut copied) = (Duration::ZERO, 0, 0);
        let mut submit = |runner: &mut Self, ready: Ready<S>, submitted_at: &mut [Instant]| {
            let index = ready.slot.index();
            let before = Instant::now();
            let replay = runner.submit(ready, false)?;
            host += before.elapsed();
            calls += replay.calls as u64;
            copied += replay.copied_bytes as u64;
            submitted_at[index] = before;
            Ok::<(), Error>(())
        };
        let watch = Stopwatch::start(self.threads);
        for ready in ready {
            submit(self, ready, &mut submitted_at)?;
        }
        for _ in slots..batches {
            let slot = self.wait_for_next()?;
            add_latency(&mut latencies, submitted_at[slot.index()].elapsed());
            let ready = self.make_ready(Ok(slot))?;
            submit(self, ready, &mut submitted_at)?;
        }
        let mut finished = Vec::with_capacity(self.point.slots);
        while self.ring.in_flight() > 0 {
            let slot = self.wait_for_next()?;
            add_latency(&mut latencies, submitted_at[slot.index()].elapsed());
            finished.push(slot);
        }
        let (elapsed, busy) = watch.stop();
        for slot in finished {
            let ready = self.check_outputs(slot)?;
            self.put_free(vec![ready]);
        }
        let batches = batches.max(slots);
        self.batch.set_copied_bytes(copied as f64 / batches as f64);
        Ok(Closed {
            elapsed,
            batches,
            busy,
            host,
            calls,
            latencies,
        })
    }

    fn run_open_loop(&mut self, arrivals: &[Duration]) -> Result<Option<Opened>> {
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
                // The latency counts from the arrival, whether or not a slot was free.
                arrived_at[ready.slot.index()] = start + arrival;
                self.submit(ready, false)?;
                next += 1;
            }
            if let Some(finished) = self.ring.poll() {
                let slot = finished.map_err(|failed| failed.error)?;
                add_latency(&mut latencies, arrived_at[slot.index()].elapsed());
                done += 1;
                free.push(self.make_ready(Ok(slot))?);
            }
            std::hint::spin_loop();
        }
        let elapsed = start.elapsed();
        self.put_free(free);
        Ok(Some(Opened { elapsed, latencies }))
    }

    fn run_timed(&mut self, batches: usize) -> Result<Vec<TimedBatch>> {
        let ready = self.pack()?;
        let mut timed = Vec::with_capacity(batches);
        let mut submitted = vec![None; self.point.slots];
        let submit = |runner: &mut Self, ready: Ready<S>, submitted: &mut [Option<(u64, u64)>]| {
            let index = ready.slot.index();
            let begun_ns = host_ns(Instant::now());
            let replay = runner.submit(ready, true)?;
            submitted[index] = replay.timed.then(|| (begun_ns, host_ns(Instant::now())));
            Ok::<(), Error>(())
        };
        let mut add_times = |slot: &Slot<Done<RingBatch<S>>>, submitted: &[Option<(u64, u64)>]| {
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
            submit(self, ready, &mut submitted)?;
        }
        for _ in slots..batches {
            let slot = self.wait_for_next()?;
            add_times(&slot, &submitted)?;
            let ready = self.make_ready(Ok(slot))?;
            submit(self, ready, &mut submitted)?;
        }
        self.drain(|slot| add_times(slot, &submitted))?;
        Ok(timed)
    }
}
