//! Loops on the simulated device, in the order of operations of `cuda/resident.cu`.
//!
//! A loop has a stream of its own. Its words carry clocks: a store with release takes the clock of
//! its thread along, and a load with acquire joins the clock of the value that it finds. So a batch
//! is ordered after what the host did before it rang, and after nothing else; and what the host does
//! next is ordered after the batch only if it saw the batch announced.

use super::clock::{Epoch, VectorClock};
use super::device::SimDevice;
use super::fault::LoopMistake;
use super::graph::Graph;
use super::schedule::{StreamRun, StreamWork};
use super::violation::{Violation, ViolationKind};
use std::sync::atomic::Ordering::{self, Acquire, Release};
use tapeloop_engine::backend::Residency;
use tapeloop_engine::error::Result;
use tapeloop_engine::internal::Word;
use tapeloop_engine::internal::of_whole_batch;

/// The value of a word, and what is ordered before its store.
#[derive(Clone, Default)]
struct Stored {
    value: u64,
    clock: VectorClock,
}

/// A loop, as the device knows it.
pub(super) struct DeviceLoop {
    slot: u32,
    stream: usize,
    graph: Graph,
    residency: Residency,
    /// By [`Word`].
    words: [Stored; 4],
    next: LoopStep,
    /// The batch that was taken last.
    batch: u64,
    /// When it was taken.
    begun: u64,
    /// The batch that was rung last, until the host takes it back.
    rung: Option<Epoch>,
    /// How often the host found a batch not done that no loop will take.
    forsaken: u32,
    /// What the host saw first since it rang, for [`LoopMistake::LooksOnce`].
    seen_parked: Option<u64>,
}

/// What a loop that was launched does next.
#[derive(Clone, Copy)]
enum LoopStep {
    /// It takes the batch for which it was launched.
    Begin,
    /// It announces its batch.
    Announce,
    /// It looks for the next batch.
    Look {
        since: u64,
    },
    Park,
}

impl SimDevice {
    /// Adds a loop that replays a graph of `slot`. Returns its number.
    pub(super) fn add_loop(&mut self, slot: u32, graph: Graph, residency: Residency) -> u32 {
        let number = self.loops_made;
        self.loops_made += 1;
        let made = DeviceLoop {
            slot,
            stream: self.schedule.open(),
            graph,
            residency,
            words: Default::default(),
            next: LoopStep::Begin,
            batch: 0,
            begun: 0,
            rung: None,
            forsaken: 0,
            seen_parked: None,
        };
        self.loops.insert(number, made);
        number
    }

    fn device_loop(&mut self, number: u32) -> &mut DeviceLoop {
        self.loops.get_mut(&number).expect("a loop that was added")
    }

    /// Where the next batch of a loop takes place.
    pub(super) fn next_of_loop(&mut self, number: u32) -> Epoch {
        let stream = self.device_loop(number).stream;
        self.schedule.next_epoch(stream)
    }

    fn runs(&self, number: u32) -> bool {
        self.schedule.is_busy(self.loops[&number].stream)
    }

    /// How many loops run.
    pub(super) fn loops_running(&self) -> usize {
        self.loops
            .keys()
            .filter(|number| self.runs(**number))
            .count()
    }

    /// What all later work is ordered after. A loop that runs may take a batch without knowing
    /// what the host has seen since.
    pub(super) fn settled_clock(&mut self) -> VectorClock {
        let mut clock = self.host.clone();
        for device_loop in self.loops.values() {
            if self.schedule.is_busy(device_loop.stream) {
                clock.meet(&self.schedule.stream(device_loop.stream).clock);
            }
        }
        clock
    }

    /// A load by the host.
    pub(super) fn load_word(&mut self, number: u32, word: Word, order: Ordering) -> u64 {
        let is_mistaken = self.plan.makes(LoopMistake::LooksOnce);
        let device_loop = self.device_loop(number);
        let found = device_loop.words[word as usize].clone();
        if word == Word::Parked && is_mistaken {
            return *device_loop.seen_parked.get_or_insert(found.value);
        }
        if word == Word::Done {
            self.check_forsaken(number);
        }
        if order == Acquire {
            self.host.join(&found.clock);
        }
        found.value
    }

    /// Loses the device if the host looks for a batch again and again that no loop will take.
    fn check_forsaken(&mut self, number: u32) {
        let is_idle = self.loops_running() == 0;
        let device_loop = self.device_loop(number);
        let is_taken = device_loop.words[Word::Ring as usize].value == device_loop.batch;
        device_loop.forsaken = if is_idle && !is_taken {
            device_loop.forsaken + 1
        } else {
            0
        };
        // The first time the host may be about to launch the loop.
        if device_loop.forsaken > 1 {
            let (batch, slot) = (
                device_loop.words[Word::Ring as usize].value,
                device_loop.slot,
            );
            let message =
                format!("no loop takes batch {batch} of slot {slot}, which parked before it");
            let violation = Violation::new(ViolationKind::Doorbell, message);
            self.lose(violation.error());
            // The device is lost in any case.
            let _ = self.violate(violation);
        }
    }

    /// A store by the host.
    pub(super) fn store_word(&mut self, number: u32, word: Word, value: u64, order: Ordering) {
        if word == Word::Ring {
            self.note_ring(number, value);
        }
        let is_dropped =
            self.plan.makes(LoopMistake::StopIsLost) && (word, value) == (Word::Stop, 1);
        let is_relaxed = self.plan.makes(LoopMistake::RingsUnreleased) && word == Word::Ring;
        let clock = if order == Release && !is_relaxed {
            self.host.clone()
        } else {
            VectorClock::default()
        };
        if !is_dropped {
            self.device_loop(number).words[word as usize] = Stored { value, clock };
        }
    }

    /// Checks that the host has seen the batch before done.
    fn note_ring(&mut self, number: u32, batch: u64) {
        let next = self.next_of_loop(number);
        let host = &self.host;
        let device_loop = self.loops.get_mut(&number).expect("a loop that was added");
        (device_loop.forsaken, device_loop.seen_parked) = (0, None);
        let before = device_loop.rung.replace(next);
        if before.is_some_and(|before| !host.covers(before)) {
            let slot = device_loop.slot;
            let message = format!(
                "batch {batch} of slot {slot} is rung before the batch before it was seen done"
            );
            // The caller cannot return an error; the violation is kept.
            let _ = self.doorbell_violation(message);
        }
    }

    /// Launches a loop, ordered after all that the host has done and seen.
    pub(super) fn launch_loop(&mut self, number: u32) -> Result<()> {
        let device_loop = self.device_loop(number);
        let (slot, stream) = (device_loop.slot, device_loop.stream);
        // The device is not idle from here on: [`SimDevice::check_forsaken`] counts anew.
        self.loops
            .values_mut()
            .for_each(|device_loop| device_loop.forsaken = 0);
        if self.schedule.is_busy(stream) {
            let message = format!("a loop of slot {slot} is launched while it runs");
            return self.doorbell_violation(message);
        }
        self.device_loop(number).next = LoopStep::Begin;
        self.schedule.stream(stream).clock.join(&self.host);
        self.schedule
            .stream(stream)
            .queue
            .push_back(StreamWork::Loop(number));
        Ok(())
    }

    /// Runs a part of a loop that was launched, or of its batch.
    ///
    /// # Errors
    /// The loss of the device.
    pub(super) fn advance_loop(&mut self, number: u32) -> Result<()> {
        self.check_lost()?;
        if self.runs(number) {
            self.advance(self.loops[&number].stream);
        }
        Ok(())
    }

    /// Takes back a batch whose loop could not be launched, and whose place is not used again.
    pub(super) fn take_back(&mut self, number: u32) {
        let (next, device_loop) = (self.next_of_loop(number), self.device_loop(number));
        let stream = device_loop.stream;
        // The slot's leases and its fence name the place, so it counts as done.
        if device_loop.rung.take() == Some(next) && !self.schedule.is_busy(stream) {
            let epoch = self.schedule.push_work(stream, StreamWork::Fence);
            self.schedule.finish(stream);
            self.host.reach(epoch);
        }
    }

    /// After a loss: loops have ended, and take the next batch when they are launched again.
    pub(super) fn reset_loops(&mut self) {
        let numbers: Vec<u32> = self.loops.keys().copied().collect();
        for number in numbers {
            self.take_back(number);
            let [ring, _, _, parked] = &mut self.device_loop(number).words;
            parked.value = ring.value;
            let device_loop = self.device_loop(number);
            device_loop.batch = device_loop.words[Word::Ring as usize].value;
        }
    }

    /// Waits for a loop that was told to stop, and removes it.
    pub(super) fn end_loop(&mut self, number: u32) {
        let device_loop = self.device_loop(number);
        let (slot, stream) = (device_loop.slot, device_loop.stream);
        let is_told = device_loop.words[Word::Stop as usize].value != 0;
        if self.check_lost().is_ok() && self.runs(number) && !is_told {
            let message = format!(
                "a loop of slot {slot} is waited for, and goes on: it was not told to stop"
            );
            // Dropping a loop returns no error; the violation is kept.
            let _ = self.doorbell_violation(message);
            self.schedule.forget_stream(stream);
        }
        // An error is the loss of the device, after which the loop does not run either.
        while self.runs(number) && self.advance_loop(number).is_ok() {}
        self.schedule.forget_stream(stream);
        self.loops.remove(&number);
    }

    fn doorbell_violation(&mut self, message: String) -> Result<()> {
        self.violate(Violation::new(ViolationKind::Doorbell, message))
    }

    /// Runs one step of a loop, whose batch is not running.
    pub(super) fn step_loop(&mut self, number: u32) {
        let steps = self.steps;
        let early = self.plan.makes(LoopMistake::AnnouncesEarly);
        let unfenced = self.plan.makes(LoopMistake::AnnouncesUnfenced);
        let device_loop = self.device_loop(number);
        let (stream, batch) = (device_loop.stream, device_loop.batch);
        let ring = device_loop.words[Word::Ring as usize].value;
        match device_loop.next {
            LoopStep::Begin => self.take(number),
            LoopStep::Announce => {
                device_loop.next = LoopStep::Look { since: steps };
                let (slot, begun) = (device_loop.slot, device_loop.begun);
                self.slot(slot).timestamps = of_whole_batch(begun, steps);
                if !early {
                    self.publish(number, Word::Done, batch, !unfenced);
                }
            }
            LoopStep::Look { .. } if ring != batch => self.take(number),
            LoopStep::Look { since } => {
                let idle = u128::from(steps - since) > device_loop.residency.idle.as_micros();
                if device_loop.words[Word::Stop as usize].value != 0 || idle {
                    device_loop.next = LoopStep::Park;
                }
            }
            LoopStep::Park => {
                self.publish(number, Word::Parked, batch, true);
                if self.plan.makes(LoopMistake::TakesAfterParking) && ring != batch {
                    return self.take(number);
                }
                self.schedule.stream(stream).queue.pop_front();
            }
        }
    }

    /// A store by the loop, behind a fence or not.
    fn publish(&mut self, number: u32, word: Word, value: u64, fenced: bool) {
        let stream = self.device_loop(number).stream;
        let clock = if fenced {
            self.schedule.stream(stream).clock.clone()
        } else {
            VectorClock::default()
        };
        self.device_loop(number).words[word as usize] = Stored { value, clock };
    }

    /// Takes the batch that was rung last: the loop's graph runs next. Loses the device if the
    /// batch breaks a rule.
    fn take(&mut self, number: u32) {
        let acquires = !self.plan.makes(LoopMistake::TakesUnfenced);
        let early = self.plan.makes(LoopMistake::AnnouncesEarly);
        let steps = self.steps;
        let device_loop = self.device_loop(number);
        device_loop.begun = steps;
        let (slot, stream, before) = (device_loop.slot, device_loop.stream, device_loop.batch);
        let Stored { value, clock } = device_loop.words[Word::Ring as usize].clone();
        (device_loop.batch, device_loop.next) = (value, LoopStep::Announce);
        let mut graph = device_loop.graph.clone();
        if value <= before {
            let message = format!("batch {value} of slot {slot} runs twice");
            if let Err(error) = self.doorbell_violation(message) {
                return self.lose(error);
            }
        }
        if acquires {
            self.schedule.stream(stream).clock.join(&clock);
        }
        if early {
            self.publish(number, Word::Done, value, true);
        }
        let (epoch, known) = (
            self.schedule.next_epoch(stream),
            self.schedule.stream(stream).clock.clone(),
        );
        match self.admit(slot, &mut graph, epoch, &known) {
            Err(error) => self.lose(error),
            Ok(_) => {
                self.device_loop(number).graph = graph.clone();
                let run = StreamWork::Run(StreamRun::new(graph.steps, graph.order));
                // The loop resumes after the batch, so its own entry moves behind it.
                self.schedule.stream(stream).queue.pop_front();
                self.schedule.push_work(stream, run);
                self.schedule
                    .stream(stream)
                    .queue
                    .push_back(StreamWork::Loop(number));
            }
        }
    }
}
