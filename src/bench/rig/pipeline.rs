//! Items in and results out, all on this thread.

use super::{
    About, Closed, ItemOf, Machine, Rig, Stopwatch, about, add_latency, closed, engine_config,
    latencies, load, sentences,
};
use crate::bench::machine::Threads;
use crate::bench::point::Point;
use crate::bench::subject::Subject;
use crate::error::Result;
use crate::pipeline::Pipeline;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

pub(super) struct PipelineRig<S: Subject> {
    subject: Arc<S>,
    slots: u64,
    pipeline: Pipeline<S::Workload>,
    /// The number of the next item.
    next_number: u64,
    seed: u64,
    about: About,
}

impl<S: Subject> PipelineRig<S> {
    pub(super) fn open(machine: &Machine, subject: &Arc<S>, point: &Point) -> Result<Self> {
        let config = engine_config(&**subject, point)?;
        let backends = [Arc::clone(&machine.backend)];
        let pool = Arc::clone(&machine.pool);
        let mut rig = PipelineRig {
            subject: Arc::clone(subject),
            slots: point.slots as u64,
            pipeline: Pipeline::new(subject.workload()?, &backends, pool, &config)?,
            next_number: 0,
            seed: 0,
            about: about(machine, &**subject, point)?,
        };
        rig.check()?;
        Ok(rig)
    }

    /// Gives items until no slot is free, and closes the batch after the last.
    fn give(&mut self, items: &mut VecDeque<ItemOf<S>>) {
        while let Some(item) = items.pop_front() {
            match self.pipeline.submit(item) {
                Ok(number) => self.next_number = number + 1,
                Err(refused) => return items.push_front(refused.0),
            }
            if items.is_empty() {
                self.pipeline.flush();
            }
        }
    }
}

impl<S: Subject> Rig for PipelineRig<S> {
    fn about(&self) -> About {
        self.about
    }

    fn chosen(&self) -> Vec<String> {
        sentences(self.pipeline.chosen())
    }

    fn check(&mut self) -> Result<()> {
        self.closed(self.slots).map(drop)
    }

    fn closed(&mut self, batches: u64) -> Result<Closed> {
        let (mut load, amounts) = load(&*self.subject, &mut self.seed, self.slots, batches);
        let before = self.pipeline.counters();
        let mut latencies = latencies();
        // The number of each batch's last item, and when its first was given.
        let mut begun: VecDeque<(u64, Instant)> = VecDeque::with_capacity(batches as usize);
        let (mut items, mut kept) = (VecDeque::new(), Vec::new());
        let mut done = 0;
        let watch = Stopwatch::start(Threads::All);
        while done < batches {
            if items.is_empty()
                && let Some(batch) = load.pop_front()
            {
                items = batch.into();
                let last = self.next_number + items.len() as u64 - 1;
                begun.push_back((last, Instant::now()));
            }
            self.give(&mut items);
            while let Some(delivery) = self.pipeline.poll() {
                let output = delivery.result?;
                if done + self.slots >= batches {
                    kept.push((delivery.item, output));
                }
                let of_batch = begun.iter().position(|(last, _)| *last == delivery.number);
                if let Some((_, since)) = of_batch.and_then(|index| begun.remove(index)) {
                    add_latency(&mut latencies, since.elapsed());
                    done += 1;
                }
            }
        }
        let times = watch.stop();
        for (item, output) in &kept {
            self.subject.check(item, output)?;
        }
        let after = self.pipeline.counters();
        Ok(closed(
            &mut self.about,
            amounts,
            (before, after),
            times,
            latencies,
        ))
    }
}
