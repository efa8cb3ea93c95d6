//! Runs a point through the engine: items come from a source, and results go into a sink, on the
//! engine's threads.

use super::{
    BatchFacts, Closed, ItemOf, ItemSource, Machine, Runner, Stopwatch, add_latency, latencies,
};
use crate::benchmark::Benchmark;
use crate::machine::CpuClock;
use crate::point::Point;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tapeloop_engine::error::Result;
use tapeloop_engine::pipeline::Engine;
use tapeloop_engine::workload::Completion;

pub(super) struct EngineRunner<S: Benchmark> {
    source: ItemSource<S>,
    engine: Engine<S::Workload>,
}

impl<S: Benchmark> EngineRunner<S> {
    pub(super) fn open(machine: &Machine, benchmark: &Arc<S>, point: &Point) -> Result<Self> {
        let source = ItemSource::open(machine, benchmark, point)?;
        let config = source.config(point)?;
        let pool = Arc::clone(&machine.pool);
        let engine = Engine::new(benchmark.workload()?, &machine.backends, pool, &config)?;
        Ok(EngineRunner { source, engine })
    }
}

impl<S: Benchmark> Runner for EngineRunner<S> {
    fn batch_facts(&self) -> BatchFacts {
        self.source.batch
    }

    fn run_closed_loop(&mut self, batches: u64) -> Result<Closed> {
        let slots = self.source.slots;
        let batches = batches.max(slots);
        let load = self.source.make_batches(batches);
        // By batch in flight: the number of items without a result, and when the engine got it. The engine
        // takes items and gives results on different threads.
        let in_flight = Mutex::new(VecDeque::<(usize, Instant)>::with_capacity(load.len()));
        let items = load.into_iter().flat_map(|items: Vec<ItemOf<S>>| {
            in_flight.lock().push_back((items.len(), Instant::now()));
            items
        });
        let before = self.engine.counters();
        let mut latencies = latencies();
        let mut to_check = Vec::new();
        let mut done = 0;
        let watch = Stopwatch::start(CpuClock::All);
        let mut sink = |completion: Completion<S::Workload>| {
            let output = completion.result?;
            // Only the last batches are compared: to keep all outputs would take memory and time. The
            // result of the last item of a batch is the one that counts the batch as done.
            if done + slots >= batches {
                to_check.push((completion.item, output));
            }
            // Results come in the order of their items.
            let mut in_flight = in_flight.lock();
            if let Some((left, since)) = in_flight.front_mut() {
                *left -= 1;
                if *left == 0 {
                    add_latency(&mut latencies, since.elapsed());
                    done += 1;
                    in_flight.pop_front();
                }
            }
            Ok(())
        };
        self.engine.run(items, &mut sink)?;
        let times = watch.stop();
        let counters = (before, self.engine.counters());
        self.source
            .check_and_summarize(&to_check, counters, times, latencies)
    }
}
