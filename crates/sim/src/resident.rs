//! The host's side of loops on the simulated device: the code that every backend with loops uses,
//! over words that the device keeps.

use super::device_slot::{SimShared, SimSlot};
use super::fault::LoopMistake;
use super::graph::Touches;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tapeloop_engine::backend::Residency;
use tapeloop_engine::backend::contract::{Call, GraphId};
use tapeloop_engine::error::{Error, Result};
use tapeloop_engine::internal::LoopHandle;
use tapeloop_engine::internal::{Word, Words};

/// The words of a loop. The device runs for a while before each access, so that every order of
/// its accesses and the host's comes up.
pub(super) struct SimWords {
    shared: Arc<SimShared>,
    number: u32,
}

impl Words for SimWords {
    fn load(&self, word: Word, order: Ordering) -> u64 {
        let mut device = self.shared.device.lock();
        device.enter();
        device.load_word(self.number, word, order)
    }

    fn store(&self, word: Word, value: u64, order: Ordering) {
        let mut device = self.shared.device.lock();
        let is_twice = word == Word::Ring && device.plan.makes(LoopMistake::RingsTwice);
        for _ in 0..1 + u32::from(is_twice) {
            device.enter();
            device.store_word(self.number, word, value, order);
        }
    }

    fn is_lost(&self) -> bool {
        self.shared.device.lock().check_lost().is_err()
    }
}

/// The loop of a resident graph.
pub(super) struct SimLoop {
    number: u32,
    handle: LoopHandle<SimWords>,
    shared: Arc<SimShared>,
}

impl SimLoop {
    /// Adds a loop to the device, which replays `graph` in `slot`.
    ///
    /// # Errors
    /// If the device refuses it as planned, if it has no such graph, or if there are too many loops. No loop
    /// is left then.
    fn new(
        shared: &Arc<SimShared>,
        slot: u32,
        graph: GraphId,
        residency: Residency,
    ) -> Result<SimLoop> {
        let number = {
            let mut device = shared.device.lock();
            device.enter();
            device.call(Call::GraphEdit)?;
            device.plan.count_graph().map_or(Ok(()), Err)?;
            let graph = device.slot(slot).graphs.get(graph)?.clone();
            device.add_loop(slot, graph, residency)
        };
        let words = SimWords {
            shared: Arc::clone(shared),
            number,
        };
        let handle = LoopHandle::new(&shared.loops, words, residency);
        let handle = handle.inspect_err(|_| shared.device.lock().end_loop(number))?;
        Ok(SimLoop {
            number,
            handle,
            shared: Arc::clone(shared),
        })
    }

    /// Gives the loop a batch of a slot whose other work is done.
    fn ring(&mut self, slot: u32) -> Result<()> {
        let now_ns = now_ns(&self.shared);
        let (shared, number) = (&self.shared, self.number);
        let rung = self.handle.ring(now_ns, || launch(shared, number, slot));
        rung.inspect_err(|_| shared.device.lock().take_back(number))
    }

    /// Whether the batch that was rung last is done. Launches the loop if it parked before it.
    fn is_done(&self, slot: u32) -> Result<bool> {
        if self.handle.is_done() {
            return Ok(true);
        }
        let (shared, number) = (&self.shared, self.number);
        let launch = || launch(shared, number, slot);
        let launched = self.handle.launch_if_parked(now_ns(shared), launch);
        let launched = launched.inspect_err(|_| shared.device.lock().take_back(number));
        launched.map(|()| false)
    }
}

impl Drop for SimLoop {
    fn drop(&mut self) {
        self.handle.stop();
        self.shared.device.lock().end_loop(self.number);
    }
}

/// The device's clock, of which a step is a microsecond.
fn now_ns(shared: &SimShared) -> u64 {
    shared.device.lock().steps * 1000
}

/// Launches a loop. The errors are the loss of the device, those of planned faults, and a
/// violation.
fn launch(shared: &SimShared, number: u32, slot: u32) -> Result<()> {
    let mut device = shared.device.lock();
    device.enter();
    device.call(Call::Submission)?;
    device.count_submission(slot)?;
    device.launch_loop(number)
}

impl SimSlot {
    /// Adds a loop that replays a graph.
    pub(super) fn add_loop(&mut self, graph: GraphId, residency: Residency) -> Result<()> {
        self.check_changeable(graph)?;
        let made = SimLoop::new(&self.shared, self.id, graph, residency)?;
        self.loops.insert(graph, made);
        Ok(())
    }

    /// Refuses to change a resident graph: its loop has a copy.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](tapeloop_engine::error::ErrorKind::Usage).
    pub(super) fn check_changeable(&self, graph: GraphId) -> Result<()> {
        if self.loops.contains_key(&graph) {
            Err(Error::usage("a resident graph does not change")
                .fix("make a new graph, and drop this one"))
        } else {
            Ok(())
        }
    }

    /// Waits for the slot's other work: no stream orders it before a loop's batch.
    fn wait_for_other_work(&mut self, graph: GraphId) -> Result<()> {
        let mistake = LoopMistake::SwitchesEarly;
        if self.ringing != Some(graph) && self.shared.device.lock().plan.makes(mistake) {
            return Ok(());
        }
        self.finish_ringing()?;
        self.enter(|device, views, slot| {
            device.check_lost()?;
            device.run_all(slot)?;
            views.refresh(&device.memory);
            Ok(())
        })
    }

    /// Gives a batch to the loop of a resident graph.
    ///
    /// # Errors
    /// The loss of the device; that of the slot's earlier batch; an allocation in use; a violation;
    /// a loop that could not be launched. The batch is then not given.
    pub(super) fn ring(&mut self, graph: GraphId) -> Result<()> {
        self.wait_for_other_work(graph)?;
        let number = self.loops[&graph].number;
        let touches = self.enter(|device, _, slot| -> Result<Touches> {
            device.check_lost()?;
            device.slot(slot).gone.clone().map_or(Ok(()), Err)?;
            let mut resident = device.slot(slot).graphs.get(graph)?.clone();
            device.check_adopted(slot, &resident)?;
            let epoch = device.next_of_loop(number);
            device.lease(slot, &resident.steps, epoch)?;
            let mut clock = device.host.clone();
            clock.reach(epoch);
            device.note_given(slot, (epoch, clock));
            Ok(resident.touches().0)
        })?;
        self.has_rung_last = true;
        let resident = self.loops.get_mut(&graph).expect("looked up above");
        let rung = resident.ring(self.id);
        let mut device = self.shared.device.lock();
        match rung {
            Ok(()) => {
                self.ringing = Some(graph);
                self.views.poison(&device.memory, &touches);
            }
            // The batch was taken back, so its leases are over.
            Err(_) => device.release(self.id, false),
        }
        rung
    }

    /// Whether the batch of the resident graph in flight is done, if there is one.
    ///
    /// # Errors
    /// The loss of the device, or that the loop could not be launched, which leaves no batch in flight.
    pub(super) fn is_batch_done(&mut self) -> Result<bool> {
        {
            let mut device = self.shared.device.lock();
            device.check_lost()?;
            let lost = device.take_loss(self.id);
            lost.inspect_err(|_| self.ringing = None)?;
        }
        let Some(graph) = self.ringing else {
            return Ok(true);
        };
        let done = self.loops[&graph].is_done(self.id);
        // After an error no loop has the batch: its launch was refused.
        if !matches!(done, Ok(false)) {
            self.ringing = None;
            let mut device = self.shared.device.lock();
            device.release(self.id, false);
            self.views.refresh(&device.memory);
        }
        done
    }

    /// Waits for the batch of a resident graph, if one is in flight: nothing else orders it before
    /// later work.
    pub(super) fn finish_ringing(&mut self) -> Result<()> {
        while !self.is_batch_done()? {
            let Some(graph) = self.ringing else { break };
            let number = self.loops[&graph].number;
            self.shared.device.lock().advance_loop(number)?;
        }
        Ok(())
    }
}
