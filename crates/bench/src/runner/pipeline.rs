//! Runs a point through a pipeline: items go in and results come out on the caller's thread.

use super::{
    BatchFacts, Closed, ItemOf, ItemSource, Machine, Runner, Stopwatch, add_latency, latencies,
};
use crate::benchmark::Benchmark;
use crate::machine::CpuClock;
use crate::point::Point;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tapeloop_engine::error::Result;
use tapeloop_engine::pipeline::{Pipeline, TrySubmitError};
use tapeloop_engine::workload::Completion;

pub(super) struct PipelineRunner<S: Benchmark> {
    source: ItemSource<S>,
    pipeline: Pipeline<S::Workload>,
    /// The number of the next item.
    next_number: u64,
}

impl<S: Benchmark> PipelineRunner<S> {
    /// Opens a pipeline on all devices.
    pub(super) fn open(machine: &Machine, benchmark: &Arc<S>, point: &Point) -> Result<Self> {
        let source = ItemSource::open(machine, benchmark, point)?;
        let config = source.config(point)?;
        let pool = Arc::clone(&machine.pool);
        Ok(PipelineRunner {
            source,
            pipeline: Pipeline::new(benchmark.workload()?, &machine.backends, pool, &config)?,
            next_number: 0,
        })
    }

    /// Submits items until a closed batch waits for a slot, and closes the batch after the last item. So one
    /// batch more than there are slots is under way. Leaves the other items in `items`.
    fn submit(&mut self, items: &mut VecDeque<ItemOf<S>>) -> Result<()> {
        while let Some(item) = items.pop_front() {
            match self.pipeline.submit(item) {
                Ok(number) => self.next_number = number + 1,
                Err(TrySubmitError::Full(item)) => {
                    items.push_front(item);
                    return Ok(());
                }
                Err(TrySubmitError::Closed(_, reason)) => return Err(reason),
            }
            if items.is_empty() {
                self.pipeline.flush();
            }
        }
        Ok(())
    }
}

impl<S: Benchmark> Runner for PipelineRunner<S> {
    fn batch_facts(&self) -> BatchFacts {
        self.source.batch
    }

    fn run_closed_loop(&mut self, batches: u64) -> Result<Closed> {
        let slots = self.source.slots;
        let batches = batches.max(slots);
        let mut load = self.source.make_batches(batches);
        let before = self.pipeline.counters();
        let mut latencies = latencies();
        // By batch in flight: the number of its last item, and when its first was submitted.
        let mut in_flight: VecDeque<(u64, Instant)> = VecDeque::with_capacity(batches as usize);
        let (mut items, mut to_check) = (VecDeque::new(), Vec::new());
        let mut done = 0;
        let watch = Stopwatch::start(CpuClock::All);
        while done < batches {
            if items.is_empty()
                && let Some(batch) = load.pop_front()
            {
                items = batch.into();
                // Numbers are given out in the order of submission.
                let last = self.next_number + items.len() as u64 - 1;
                in_flight.push_back((last, Instant::now()));
            }
            self.submit(&mut items)?;
            while let Some((number, Completion { item, result })) = self.pipeline.poll() {
                let output = result?;
                // Only the last batches are compared: to keep all outputs would take memory and time.
                if done + slots >= batches {
                    to_check.push((item, output));
                }
                // Batches of several slots may finish in another order.
                let position = in_flight.iter().position(|(last, _)| *last == number);
                if let Some((_, since)) = position.and_then(|index| in_flight.remove(index)) {
                    add_latency(&mut latencies, since.elapsed());
                    done += 1;
                }
            }
        }
        let times = watch.stop();
        let counters = (before, self.pipeline.counters());
        self.source
            .check_and_summarize(&to_check, counters, times, latencies)
    }
}
