//! A source into a sink, through the engine's threads.

use super::{
    About, Closed, ItemOf, Machine, Rig, Stopwatch, about, add_latency, closed, engine_config,
    latencies, load, sentences,
};
use crate::bench::machine::Threads;
use crate::bench::point::Point;
use crate::bench::subject::Subject;
use crate::error::Result;
use crate::pipeline::Engine;
use crate::workload::Completion;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

pub(super) struct EngineRig<S: Subject> {
    subject: Arc<S>,
    slots: u64,
    engine: Engine<S::Workload>,
    seed: u64,
    about: About,
}

impl<S: Subject> EngineRig<S> {
    pub(super) fn open(machine: &Machine, subject: &Arc<S>, point: &Point) -> Result<Self> {
        let config = engine_config(&**subject, point)?;
        let backends = [Arc::clone(&machine.backend)];
        let pool = Arc::clone(&machine.pool);
        let mut rig = EngineRig {
            subject: Arc::clone(subject),
            slots: point.slots as u64,
            engine: Engine::new(subject.workload()?, &backends, pool, &config)?,
            seed: 0,
            about: about(machine, &**subject, point)?,
        };
        rig.check()?;
        Ok(rig)
    }
}

impl<S: Subject> Rig for EngineRig<S> {
    fn about(&self) -> About {
        self.about
    }

    fn chosen(&self) -> Vec<String> {
        sentences(self.engine.chosen())
    }

    fn check(&mut self) -> Result<()> {
        self.closed(self.slots).map(drop)
    }

    fn closed(&mut self, batches: u64) -> Result<Closed> {
        let (load, amounts) = load(&*self.subject, &mut self.seed, self.slots, batches);
        // How many items are left of each batch that was given, and since when.
        let begun = Mutex::new(VecDeque::<(usize, Instant)>::with_capacity(load.len()));
        let source = load.into_iter().flat_map(|items: Vec<ItemOf<S>>| {
            begun.lock().push_back((items.len(), Instant::now()));
            items
        });
        let before = self.engine.counters();
        let mut latencies = latencies();
        let mut kept = Vec::new();
        let (mut done, slots) = (0, self.slots);
        let watch = Stopwatch::start(Threads::All);
        let mut sink = |completion: Completion<S::Workload>| {
            let output = completion.result?;
            if done + slots >= batches {
                kept.push((completion.item, output));
            }
            // Results come in the order of their items.
            let mut begun = begun.lock();
            if let Some((left, since)) = begun.front_mut() {
                *left -= 1;
                if *left == 0 {
                    add_latency(&mut latencies, since.elapsed());
                    done += 1;
                    begun.pop_front();
                }
            }
            Ok(())
        };
        self.engine.run(source, &mut sink)?;
        let times = watch.stop();
        for (item, output) in &kept {
            self.subject.check(item, output)?;
        }
        let after = self.engine.counters();
        Ok(closed(
            &mut self.about,
            amounts,
            (before, after),
            times,
            latencies,
        ))
    }
}
