//! A `Pipeline` driven by a seed: every choice and every moment is the seed's, so
//! that a run is the same run again.

use crate::mix::{Item, ItemFate, Mix, Output, UNIFORMS, Uniforms, WriteLog};
use crate::random::Random;
use crate::seeds::broken::{BatchCounts, BrokenBackend, Bug};
use crate::seeds::simulated::device_with;
use rayon::ThreadPool;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_engine::pipeline::{
    Counters, EngineConfig, Pipeline, SubmitOptions, TrySubmitError, Wait,
};
use tapeloop_engine::replay::{Mode, Policy, Verify};
use tapeloop_engine::workload::{Completion, Extent};
use tapeloop_engine::{Error, ErrorKind};
use tapeloop_sim::{Fault, Live, SimOptions};

/// The largest item that still fits in the largest bucket.
const ELEMENTS_MAX: usize = 48;

/// How a run is set up, beside its seed.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) policy: Policy,
    pub(crate) faults: Vec<Fault>,
    pub(crate) bug: Bug,
    pub(crate) forgets: bool,
    /// In place of as many as the seed says.
    pub(crate) slots: Option<usize>,
    pub(crate) steps: usize,
}

impl Setup {
    pub(crate) fn new(policy: Policy) -> Self {
        Setup {
            policy,
            faults: Vec::new(),
            bug: Bug::None,
            forgets: false,
            slots: None,
            steps: 60,
        }
    }
}

/// What a driver did and saw, in its order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Built(Option<String>),
    Accepted(u64, ItemFate),
    Refused(u32),
    Delivered(u64, u32, Result<Output, String>),
    Nothing,
    /// The counters that are no times, at the end.
    Counted([u64; 9]),
}

/// What became of a run.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) trace: Vec<Event>,
    /// What ought not to have been.
    pub(crate) wrong: Vec<String>,
    pub(crate) counters: Counters,
    pub(crate) failed: bool,
}

struct Driver {
    pipeline: Pipeline<Mix>,
    watch: Arc<BatchCounts>,
    log: Arc<WriteLog>,
    random: Random,
    now: Instant,
    slots: usize,
    faulted: bool,
    /// The values of the uniforms now.
    uniforms: Uniforms,
    /// Items that were accepted and are not back, by number, with the uniforms at that time.
    out: BTreeMap<u64, (Item, Uniforms)>,
    refused: Option<Item>,
    accepted: u64,
    ids: u32,
    outcome: Outcome,
}

pub(crate) fn run(seed: u64, setup: &Setup, pool: &Arc<ThreadPool>) -> Outcome {
    let mut random = Random::new(seed);
    let (sim, backend) = device_with(SimOptions {
        poisoned: seed % 2 == 1,
        faults: setup.faults.clone(),
        ..SimOptions::seeded(seed)
    });
    let (watch, backend) = BrokenBackend::watched(backend, setup.bug);
    let config = config(&mut random, setup);
    let log = Arc::new(WriteLog::default());
    let mut mix = Mix::logged(&log);
    mix.forgets = setup.forgets;
    let built = Pipeline::new(mix, &[Arc::clone(&backend)], Arc::clone(pool), &config);
    let told = built.as_ref().err().map(Error::to_string);
    let mut outcome = match built {
        Err(error) => {
            let mut outcome = Outcome {
                failed: true,
                ..Outcome::default()
            };
            if !is_planned(&error) {
                outcome.wrong.push(format!("the build: {error}"));
            }
            outcome
        }
        Ok(pipeline) => {
            let before = backend.driver_calls();
            let mut driver = Driver {
                pipeline,
                watch,
                log,
                random,
                now: Instant::now(),
                slots: config.slots,
                faulted: !setup.faults.is_empty(),
                uniforms: UNIFORMS,
                out: BTreeMap::new(),
                refused: None,
                accepted: 0,
                ids: 0,
                outcome: Outcome::default(),
            };
            driver.small_then_large();
            for _ in 0..setup.steps {
                driver.step();
            }
            driver.drain();
            driver.check_counters();
            let after = backend.driver_calls();
            let submitted = after.submissions - before.submissions;
            let counted = driver.outcome.counters.driver_calls;
            // Launches of loops count for no batch.
            let agree = match setup.policy.mode {
                Mode::Resident => submitted >= counted,
                _ => submitted == counted,
            };
            driver.check(driver.faulted || agree, || {
                format!("{submitted} submissions, and {counted} were counted")
            });
            driver.check(after.allocations == before.allocations, || {
                "something was allocated".to_owned()
            });
            driver.outcome
        }
    };
    outcome.trace.insert(0, Event::Built(told));
    drop(backend);
    let violations = sim.violations();
    let violations = violations.iter().map(|violation| violation.to_string());
    outcome.wrong.extend(violations);
    if sim.live() != Live::default() {
        outcome.wrong.push(format!("still live: {:?}", sim.live()));
    }
    outcome
}

fn config(random: &mut Random, setup: &Setup) -> EngineConfig {
    let ladders: [&[[u32; 2]]; 4] = [
        &[[48, 6]],
        &[[8, 2], [48, 6]],
        &[[8, 2], [16, 4], [48, 6]],
        &[[6, 2], [12, 3], [24, 4], [48, 6]],
    ];
    let mut config = EngineConfig::new([24, 4]);
    let ladder = match setup.bug {
        // One bucket has no other to be taken for.
        Bug::FirstGraph => ladders[1],
        _ => *random.pick(&ladders),
    };
    config.buckets = ladder.iter().copied().map(Extent::from).collect();
    let slots = 1 + random.below(4);
    config.slots = setup.slots.unwrap_or(slots);
    config.policy = setup.policy;
    // Other sizes than asked for are another test's.
    config.memory_bytes_max = Some(u64::MAX);
    // A batch that is verified is done when it is given, and the watch counts those
    // on their way.
    config.policy.verify = Verify::Off;
    config.policy.ready_max = 1 + random.below(ladder.len());
    config.policy.warm_up = random.flip();
    config.batch_wait = Duration::from_micros(random.below(300) as u64);
    config.wait = *random.pick(&[Wait::Spin, Wait::Block]);
    config
}

fn is_planned(error: &Error) -> bool {
    let kinds = [ErrorKind::Device, ErrorKind::OutOfMemory, ErrorKind::Closed];
    kinds.contains(&error.kind()) && error.to_string().contains("as planned")
}

impl Driver {
    fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.outcome.wrong.push(what());
        }
    }

    /// A batch in the smallest bucket, then one in the largest.
    fn small_then_large(&mut self) {
        for elements in [1, ELEMENTS_MAX] {
            let item = Item::new(self.ids, elements);
            self.ids += 1;
            self.submit(item, SubmitOptions::default());
            while self.wait() {}
        }
    }

    fn step(&mut self) {
        self.now += Duration::from_micros(self.random.below(60) as u64);
        match self.random.below(19) {
            0..10 => {
                let item = self.item();
                let options = self.options();
                self.submit(item, options);
            }
            10..15 => {
                self.poll();
            }
            15 => {
                self.wait();
            }
            16 => self.pipeline.flush(),
            _ => self.set_uniforms(),
        }
    }

    /// The item that was refused last, or a new one.
    fn item(&mut self) -> Item {
        if let Some(refused) = self.refused.take() {
            return refused;
        }
        let elements = match self.random.below(12) {
            // More than any bucket holds.
            0 => ELEMENTS_MAX + 1,
            1 => 25 + self.random.below(ELEMENTS_MAX - 24),
            _ => 1 + self.random.below(12),
        };
        let mut item = Item::new(self.ids, elements);
        self.ids += 1;
        item.fate = match self.random.below(10) {
            0 => ItemFate::NoExtent,
            1 => ItemFate::WriteFails,
            2 => ItemFate::ReadFails,
            _ => ItemFate::Fine,
        };
        item
    }

    fn options(&mut self) -> SubmitOptions {
        let deadline = self.now + Duration::from_micros(self.random.below(100) as u64);
        SubmitOptions {
            urgent: self.random.below(8) == 0,
            deadline: (self.random.below(4) == 0).then_some(deadline),
            ..SubmitOptions::default()
        }
    }

    fn submit(&mut self, item: Item, options: SubmitOptions) {
        match self.pipeline.submit_at(item.clone(), options, self.now) {
            Ok(number) => {
                let expected = self.accepted;
                self.check(number == expected, || format!("{number}, not {expected}"));
                self.accepted += 1;
                self.outcome.trace.push(Event::Accepted(number, item.fate));
                if options.urgent {
                    self.check_due("an urgent item");
                }
                self.out.insert(number, (item, self.uniforms));
            }
            Err(TrySubmitError::Full(back)) => {
                self.check(back == item, || format!("{back:?} came back for {item:?}"));
                self.check_busy("refused");
                self.outcome.trace.push(Event::Refused(back.id));
                self.refused = Some(back);
            }
            Err(TrySubmitError::Closed(back, reason)) => {
                let has_ended = self.pipeline.ended().is_some();
                let planned = self.faulted && has_ended && is_planned(&reason);
                self.outcome.failed |= planned;
                self.check(planned && back == item, || {
                    format!("{back:?} came back for {item:?}: {reason}")
                });
                self.outcome.trace.push(Event::Refused(back.id));
            }
        }
        self.check_flight();
    }

    fn poll(&mut self) {
        match self.pipeline.poll_at(self.now) {
            Some((number, done)) => self.take(number, done),
            None => self.outcome.trace.push(Event::Nothing),
        }
        self.check_due("after a poll");
        self.check_flight();
    }

    /// Whether there was anything to wait for.
    fn wait(&mut self) -> bool {
        let done = self.pipeline.wait();
        let waited = done.is_some();
        match done {
            Some((number, done)) => self.take(number, done),
            None => {
                let (idle, out) = (self.pipeline.is_idle(), self.out.len());
                self.check(idle && out == 0, || format!("{out} items are lost"));
                self.outcome.trace.push(Event::Nothing);
            }
        }
        self.check_flight();
        waited
    }

    /// A batch may be overdue only while all slots are busy.
    fn check_due(&mut self, what: &str) {
        let closes_at = self.pipeline.closes_at();
        if closes_at.is_some_and(|at| at <= self.now) {
            self.check_busy(what);
        }
    }

    fn check_busy(&mut self, what: &str) {
        let (flight, slots) = (self.watch.in_flight(), self.slots);
        self.check(self.faulted || flight == slots, || {
            format!("{what}: {flight} of {slots} slots are busy")
        });
    }

    fn check_flight(&mut self) {
        let (flight, twice, slots) = (self.watch.in_flight(), self.watch.overlapping(), self.slots);
        self.check(self.faulted || (flight <= slots && twice == 0), || {
            format!("{flight} batches in {slots} slots, {twice} given too early")
        });
    }

    fn set_uniforms(&mut self) {
        let factor = 0.25 * self.random.below(64) as f32;
        let salt = self.random.next() as u32;
        // A value that is set twice or set to what it is, and a failure that changes nothing.
        let set = self.pipeline.set_uniforms(|uniforms| {
            uniforms.set("salt", !salt)?;
            uniforms.set("factor", factor)?;
            uniforms.set("salt", salt)
        });
        if let Err(error) = set {
            let has_ended = self.pipeline.ended().is_some();
            let planned = self.faulted && has_ended && is_planned(&error);
            self.check(planned, || error.to_string());
            return;
        }
        let failed = self.pipeline.set_uniforms(|uniforms| {
            uniforms.set("factor", factor + 1.0)?;
            uniforms.set("salt", factor)
        });
        assert!(failed.is_err());
        self.uniforms = (factor, salt);
    }

    fn take(&mut self, number: u64, Completion { item, result }: Completion<Mix>) {
        let known = self.out.remove(&number);
        let (known, uniforms) = known.unzip();
        self.check(known.as_ref() == Some(&item), || {
            format!("{number}: {item:?} for {known:?}")
        });
        let is_written = self.log.0.lock().unwrap().contains(&item.id);
        let wrong = match &result {
            Ok(output) if item.fate == ItemFate::Fine => {
                uniforms.map(|uniforms| item.output(uniforms)).as_ref() != Some(output)
            }
            Ok(_) => true,
            Err(error) => {
                let own = own_error(&item);
                // The device is asked before an item is read, and may be before it
                // is written.
                let early = item.fate == ItemFate::ReadFails
                    || (item.fate == ItemFate::WriteFails && !is_written);
                let is_own = own.is_some_and(|own| error.to_string().contains(own));
                let planned = self.faulted && is_planned(error);
                self.outcome.failed |= planned;
                !is_own && !(planned && (own.is_none() || early))
            }
        };
        let result = result.map_err(|error| error.to_string());
        self.check(!wrong, || format!("{number}: {item:?} gave {result:?}"));
        let event = Event::Delivered(number, item.id, result);
        self.outcome.trace.push(event);
    }

    fn drain(&mut self) {
        while let Some(item) = self.refused.take() {
            self.wait();
            self.submit(item, SubmitOptions::default());
        }
        while self.wait() {}
        let (refused, idle) = (self.refused.is_some(), self.watch.in_flight() == 0);
        self.check(!refused && (self.faulted || idle), || "not drained".into());
    }

    fn check_counters(&mut self) {
        let c = self.pipeline.counters();
        let (accepted, given) = (self.accepted, self.watch.fenced() as u64);
        let sums = [
            c.items_done + c.items_rejected == accepted,
            c.bucket_hits + c.bucket_misses == c.batches,
            c.bucket_evictions == 0 || c.bucket_misses > 0,
            c.padding_bytes <= c.copied_bytes,
            self.faulted || c.batches == given,
        ];
        self.check(sums == [true; 5], || {
            format!("{accepted} items, {given} batches: {sums:?} of {c:?}")
        });
        self.outcome.trace.push(Event::Counted([
            c.items_done,
            c.items_rejected,
            c.batches,
            c.driver_calls,
            c.bucket_hits,
            c.bucket_misses,
            c.bucket_evictions,
            c.copied_bytes,
            c.padding_bytes,
        ]));
        self.outcome.counters = c;
    }
}

/// What an item is rejected with on any device.
fn own_error(item: &Item) -> Option<&'static str> {
    match item.fate {
        ItemFate::NoExtent => Some("no extent, as told"),
        _ if item.x.len() > ELEMENTS_MAX => Some("a batch holds at most"),
        ItemFate::WriteFails => Some("no write, as told"),
        ItemFate::ReadFails => Some("no read, as told"),
        ItemFate::Fine => None,
    }
}
