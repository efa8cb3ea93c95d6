//! The simulated device: checks work when it is submitted, and runs it later.
//!
//! Where violations are refused, functions that check return [`Violation::error`], of
//! [`ErrorKind::Usage`]. Other errors are planned ([`Fault`]), or say how the device was lost.

use super::access::{ResolvedOp, Touch};
use super::clock::{Epoch, PastAccess, VectorClock};
use super::fault::{Fault, FaultPlan};
use super::graph::{Graph, Order, Touches};
use super::loops::DeviceLoop;
use super::memory::{Graveyard, SimMemory};
use super::random::Random;
use super::schedule::{HOST, Schedule, StreamRun, StreamWork};
use super::slot_state::SlotState;
use super::violation::{Accessed, Action, Actor, Violation, ViolationKind};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tapeloop_engine::backend::Contents;
use tapeloop_engine::backend::contract::{Call, CallCounters, Op};
use tapeloop_engine::error::{Error, ErrorKind, Result};
use tapeloop_engine::internal::{Functions, NodeRole};
use tapeloop_error::internal::LaterFields;

/// Settings of a simulated device. Later versions may add fields: end a literal with
/// `..SimOptions::seeded(seed)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// Chooses the order of work, and poison.
    pub seed: u64,
    /// The planned faults.
    pub faults: Vec<Fault>,
    /// Whether a call that breaks a rule fails without effect. Otherwise the violation is only
    /// recorded.
    pub refuses: bool,
    /// Whether memory starts poisoned, instead of zeroed as the contract has it: for programs that
    /// must not depend on zeros.
    pub poisoned: bool,
    /// Whether a lost device can be revived. As other supervised ones, it has no allocations of the program's,
    /// and no [`Fault::ForeignCapture`].
    pub supervised: bool,
    #[doc(hidden)]
    pub later: LaterFields,
}

impl SimOptions {
    /// A device without faults that refuses calls which break a rule.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        SimOptions {
            seed,
            faults: Vec::new(),
            refuses: true,
            poisoned: false,
            supervised: false,
            later: LaterFields::NONE,
        }
    }
}

pub(super) struct SimDevice {
    pub(super) memory: SimMemory,
    pub(super) schedule: Schedule,
    pub(super) slots: BTreeMap<u32, SlotState>,
    pub(super) slots_opened: u32,
    pub(super) loops: BTreeMap<u32, DeviceLoop>,
    pub(super) loops_made: u32,
    pub(super) functions: Arc<Functions>,
    pub(super) plan: FaultPlan,
    pub(super) random: Random,
    /// The most steps that the device takes during a call of the host.
    pace: u64,
    /// What the host has done, and the work that it has seen done.
    pub(super) host: VectorClock,
    host_accesses: u64,
    pub(super) calls: Arc<CallCounters>,
    pub(super) violations: Vec<Violation>,
    /// Whether a call that breaks a rule fails.
    refuses: bool,
    /// Whether it can be revived after a loss.
    pub(super) supervised: bool,
    pub(super) graveyard: Graveyard,
    /// The contents of memory that is restored after a loss, by address.
    pub(super) filled: BTreeMap<u64, Arc<Contents>>,
    /// Number of steps of the device and calls of the host so far: the clock, in microseconds.
    pub(super) steps: u64,
    lost: Option<Error>,
}

impl SimDevice {
    /// A device whose pace and order of work come from the seed of `options`.
    pub(super) fn new(
        options: SimOptions,
        functions: Arc<Functions>,
        calls: Arc<CallCounters>,
        graveyard: Graveyard,
    ) -> Self {
        let mut random = Random::new(options.seed);
        let mut faults = options.faults;
        if options.supervised {
            // In a worker process no other thread captures.
            faults.retain(|fault| !matches!(fault, Fault::ForeignCapture { .. }));
        }
        SimDevice {
            memory: SimMemory::new(random.next(), options.poisoned),
            schedule: Schedule::new(),
            slots: BTreeMap::new(),
            slots_opened: 0,
            loops: BTreeMap::new(),
            loops_made: 0,
            functions,
            plan: FaultPlan::new(faults),
            // Slow and fast devices: work ends late after some seeds, and early after others.
            pace: [2, 4, 16][random.below(3) as usize],
            random,
            host: VectorClock::default(),
            host_accesses: 0,
            calls,
            violations: Vec::new(),
            refuses: options.refuses,
            supervised: options.supervised,
            graveyard,
            filled: BTreeMap::new(),
            steps: 0,
            lost: None,
        }
    }

    /// Runs a random number of steps. Every call of the host starts with it.
    pub(super) fn enter(&mut self) {
        self.bury();
        self.schedule.pass_call();
        self.steps += 1;
        for _ in 0..self.random.below(self.pace) {
            if self.lost.is_some() {
                return;
            }
            let Some(stream) = self.schedule.choose(&mut self.random) else {
                return;
            };
            self.step(stream);
        }
    }

    /// Frees the allocations whose last handle was dropped.
    pub(super) fn bury(&mut self) {
        let dead = std::mem::take(&mut *self.graveyard.lock());
        for address in dead {
            self.memory.free(address);
            self.filled.remove(&address);
        }
    }

    /// Counts a call. Fails if the device is lost, or is lost by a planned fault of this call.
    ///
    /// # Errors
    /// The error of the loss; that of a planned capture elsewhere, for a call that it affects.
    pub(super) fn call(&mut self, call: Call) -> Result<()> {
        self.calls.add(call);
        let planned = self.plan.count_call();
        if self.lost.is_none()
            && let Some(error) = planned
        {
            self.lose(error);
        }
        self.check_lost()?;
        match call {
            // Polling is allowed during a capture of another thread: see `SimSlot::is_done`.
            Call::Poll | Call::Timing => Ok(()),
            Call::Allocation | Call::Submission | Call::GraphEdit => {
                self.plan.captured_elsewhere().map_or(Ok(()), Err)
            }
        }
    }

    /// The error of the loss, if the device is lost.
    pub(super) fn check_lost(&self) -> Result<()> {
        self.lost.clone().map_or(Ok(()), Err)
    }

    /// Loses the device, unless it is lost already: the first error stays.
    pub(super) fn lose(&mut self, error: Error) {
        self.lost.get_or_insert(error);
    }

    /// Recovers from a loss: work in flight is dropped, and device memory gets unspecified
    /// contents, or those that it was filled with. Returns whether there was a loss.
    ///
    /// # Errors
    /// That of a planned fault: the device stays lost.
    pub(super) fn revive(&mut self) -> Result<bool> {
        if self.lost.is_some()
            && let Some(error) = self.plan.count_revival()
        {
            return Err(error);
        }
        let Some(error) = self.lost.take() else {
            return Ok(false);
        };
        // Losses are kept first: what follows marks the work as seen done.
        let slots: Vec<u32> = self.slots.keys().copied().collect();
        slots.iter().for_each(|slot| self.keep_loss(*slot, &error));
        self.schedule.forget();
        self.reset_loops();
        self.bury();
        self.memory.spoil();
        for (address, contents) in &self.filled {
            let memory = self.memory.at_mut(*address);
            let contents = (**contents).as_ref();
            memory.bytes.as_mut_slice().copy_from_slice(contents);
            memory.write_down(&(0..contents.len()));
        }
        slots.iter().for_each(|slot| self.forget_work(*slot));
        Ok(true)
    }

    /// Keeps a violation. Returns its error if violations are refused.
    pub(super) fn violate(&mut self, violation: Violation) -> Result<()> {
        let error = self.refuse(violation);
        if self.refuses { Err(error) } else { Ok(()) }
    }

    /// Keeps a violation of work that cannot run, whatever the options. Returns its error.
    pub(super) fn refuse(&mut self, violation: Violation) -> Error {
        let error = violation.error();
        self.violations.push(violation);
        error
    }

    pub(super) fn slot(&mut self, slot: u32) -> &mut SlotState {
        self.slots.get_mut(&slot).expect("open slots have a state")
    }

    /// The name of an action in messages.
    pub(super) fn operation(&self, action: Action) -> String {
        match action {
            Action::Upload => "upload".to_owned(),
            Action::Copy => "copy".to_owned(),
            Action::Download => "download".to_owned(),
            Action::Memset => "memset".to_owned(),
            Action::Timestamp => "timestamp".to_owned(),
            Action::Host => "the host".to_owned(),
            Action::Kernel(function) => match self.functions.get(function) {
                Ok(kernel) => format!("kernel {}", kernel.name()),
                Err(_) => "a kernel".to_owned(),
            },
        }
    }

    /// An access as a violation describes it.
    fn accessed(&self, actor: Actor, memory: u64, bytes: Range<usize>, writes: bool) -> Accessed {
        Accessed {
            operation: self.operation(actor.action),
            slot: actor.slot.map(|slot| slot as usize),
            node: actor.node.map(|node| node as usize),
            memory: self.memory.at(memory).name.clone(),
            bytes,
            writes,
        }
    }

    /// Checks an access by an actor at `clock`.
    fn check_access(
        &mut self,
        actor: Actor,
        memory: u64,
        range: &Range<usize>,
        writes: bool,
        clock: &VectorClock,
    ) -> Result<()> {
        let history = &self.memory.at(memory).history;
        let Some(past) = history.conflict(range, writes, clock).cloned() else {
            return Ok(());
        };
        let earlier = self.accessed(past.actor, memory, past.range, past.writes);
        let later = self.accessed(actor, memory, range.clone(), writes);
        self.violate(Violation::unordered(earlier, later))
    }

    /// Checks an access by the host to memory. The access is in the history also if it is refused:
    /// a slot's host memory is handed out all the same.
    pub(super) fn host_access(
        &mut self,
        memory: u64,
        range: &Range<usize>,
        writes: bool,
    ) -> Result<()> {
        let actor = Actor::HOST;
        let host = self.host.clone();
        let checked = self.check_access(actor, memory, range, writes, &host);
        self.host_accesses += 1;
        let epoch = Epoch {
            stream: HOST,
            place: self.host_accesses,
        };
        let settled = self.settled_clock();
        self.host.reach(epoch);
        let access = PastAccess {
            epoch,
            actor,
            range: range.clone(),
            writes,
        };
        self.memory.at_mut(memory).add(&access, &settled);
        checked
    }

    /// Submits an operation by itself.
    pub(super) fn submit_single(&mut self, slot: u32, step: ResolvedOp) -> Result<Touches> {
        let stream = self.slot(slot).stream;
        let (epoch, role) = (self.schedule.next_epoch(stream), step.role);
        let mut clock = self.schedule.stream(stream).clock.clone();
        if self.plan.has_no_waits()
            && let Some((last, last_role, before)) = &self.slot(slot).kernel
            && last.place + 1 == epoch.place
            && role.may_start_before_end_of(*last_role)
        {
            // Nothing but the wait would order it after the kernel before.
            clock = before.clone();
        }
        let mut single = Graph::new(vec![step], Order::Line);
        let touches = self.submit_after(slot, &mut single, clock.clone())?;
        if role != NodeRole::Other {
            self.slot(slot).kernel = Some((epoch, role, clock));
        }
        Ok(touches)
    }

    /// Submits a graph.
    pub(super) fn submit(&mut self, slot: u32, graph: &mut Graph) -> Result<Touches> {
        let stream = self.slot(slot).stream;
        let clock = self.schedule.stream(stream).clock.clone();
        self.submit_after(slot, graph, clock)
    }

    /// Submits a graph that is ordered after what `earlier` covers. Checks everything first, and
    /// submits nothing if a check fails.
    fn submit_after(
        &mut self,
        slot: u32,
        graph: &mut Graph,
        earlier: VectorClock,
    ) -> Result<Touches> {
        let stream = self.slot(slot).stream;
        let epoch = self.schedule.next_epoch(stream);
        // An allocation that is in use is refused, which is no violation.
        let taken = self.lease(slot, &graph.steps, epoch)?;
        let mut clock = self.host.clone();
        clock.join(&earlier);
        let touches = match self.admit(slot, graph, epoch, &clock) {
            Ok(touches) => touches,
            Err(error) => {
                self.unlease(slot, taken);
                return Err(error);
            }
        };
        let run = StreamRun::new(Arc::clone(&graph.steps), graph.order.clone());
        self.submit_work(slot, StreamWork::Run(run));
        Ok(touches)
    }

    /// Checks a graph that runs at `epoch`, ordered after what `clock` covers, and adds its
    /// accesses to the history.
    pub(super) fn admit(
        &mut self,
        slot: u32,
        graph: &mut Graph,
        epoch: Epoch,
        clock: &VectorClock,
    ) -> Result<Touches> {
        let has_nodes = matches!(graph.order, Order::After(_)) || graph.steps.len() > 1;
        let steps = Arc::clone(&graph.steps);
        let actor = |node: usize| steps[node].actor(slot, has_nodes.then_some(node));
        let touches = self.check(clock, graph, actor)?;
        let settled = self.settled_clock();
        for (node, touch) in touches.iter() {
            let access = PastAccess {
                epoch,
                actor: actor(*node),
                range: touch.range.clone(),
                writes: touch.access.writes(),
            };
            self.memory.at_mut(touch.memory).add(&access, &settled);
        }
        Ok(touches)
    }

    /// Checks the accesses of a graph that is ordered after what `clock` covers.
    fn check(
        &mut self,
        clock: &VectorClock,
        graph: &mut Graph,
        actor: impl Fn(usize) -> Actor,
    ) -> Result<Touches> {
        let (touches, clash) = graph.touches();
        if let Some((node, _)) = touches.iter().find(|(_, t)| !self.memory.is_live(t.memory)) {
            // That of another slot, which closed since.
            let operation = self.operation(actor(*node).action);
            let message = format!("{operation} is launched with memory that was freed");
            return Err(self.refuse(Violation::new(ViolationKind::Freed, message)));
        }
        if let Some([(a, first), (b, second)]) = clash {
            let accessed = |device: &SimDevice, node, touch: Touch| {
                let writes = touch.access.writes();
                device.accessed(actor(node), touch.memory, touch.range, writes)
            };
            let (earlier, later) = (accessed(self, a, first), accessed(self, b, second));
            self.violate(Violation::unordered(earlier, later))?;
        }
        for (node, touch) in touches.iter() {
            let writes = touch.access.writes();
            self.check_access(actor(*node), touch.memory, &touch.range, writes, clock)?;
        }
        self.check_defined(&touches, actor)?;
        Ok(touches)
    }

    /// Refuses reads of bytes that neither earlier work nor an earlier operation of the graph writes.
    fn check_defined(
        &mut self,
        touches: &[(usize, Touch)],
        actor: impl Fn(usize) -> Actor,
    ) -> Result<()> {
        for (place, (node, touch)) in touches.iter().enumerate() {
            let defined = |earlier: &(usize, Touch)| {
                let (before, earlier) = earlier;
                before < node
                    && earlier.access.writes()
                    && earlier.memory == touch.memory
                    && earlier.range.start < touch.range.end
                    && touch.range.start < earlier.range.end
            };
            let reads = touch.must_be_written && !touch.range.is_empty();
            if reads
                && !self.memory.at(touch.memory).is_written(&touch.range)
                && !touches[..place].iter().any(defined)
            {
                let later = self.accessed(actor(*node), touch.memory, touch.range.clone(), false);
                self.violate(Violation::undefined(later))?;
            }
        }
        Ok(())
    }

    /// Gives work to a slot, ordered after all work that the host has seen done.
    pub(super) fn submit_work(&mut self, slot: u32, work: StreamWork) -> (Epoch, VectorClock) {
        let stream = self.slot(slot).stream;
        let host = &self.host;
        self.schedule.stream(stream).clock.join(host);
        let epoch = self.schedule.push_work(stream, work);
        let clock = self.schedule.stream(stream).clock.clone();
        let given = (epoch, clock);
        self.slot(slot).given = Some(given.clone());
        given
    }

    /// Runs until a piece of work is done, and only the work that it waits for.
    pub(super) fn run_until(&mut self, epoch: Epoch) -> Result<()> {
        while !self.schedule.is_done(epoch) {
            self.check_lost()?;
            self.advance(epoch.stream);
        }
        Ok(())
    }

    /// Runs one part of the work at the head of a stream for which the host waits.
    pub(super) fn advance(&mut self, stream: usize) {
        // Kernels that end after a number of calls also end while the host waits.
        self.schedule.pass_call();
        if !self.schedule.is_held(stream) {
            self.step(stream);
        }
    }

    /// Runs one part of the work at the head of a stream.
    fn step(&mut self, stream: usize) {
        self.steps += 1;
        let random = &mut self.random;
        let (steps, node, part, over) = match self.schedule.stream(stream).queue.front_mut() {
            Some(StreamWork::Run(run)) => {
                let node = run.choose(random);
                let steps = Arc::clone(&run.steps);
                let copies = matches!(
                    steps[node].op,
                    Op::Upload { .. } | Op::Download { .. } | Op::Copy { .. }
                );
                let plan = &mut self.plan;
                let part = run.next_part(node, || {
                    if copies {
                        // Often more than one part, so that others meet a copy that is half done.
                        plan.count_copy()
                            .unwrap_or_else(|| 1 + random.below(3) as u32)
                    } else {
                        1
                    }
                });
                (steps, node, part, run.is_over())
            }
            Some(StreamWork::Fence) => return self.schedule.finish(stream),
            Some(StreamWork::Slow(_)) => return,
            Some(StreamWork::Loop(number)) => {
                let number = *number;
                return self.step_loop(number);
            }
            Some(StreamWork::Endless) => {
                let message = "a kernel that never ends, as planned, was waited for";
                return self.lose(Error::new(ErrorKind::Device, message).with_code(702));
            }
            None => return,
        };
        // Before the launch is counted, as the plan names it by the count.
        let slow = match &steps[node].op {
            Op::Launch { .. } => self.plan.slow(),
            _ => None,
        };
        let outcome = match &steps[node].op {
            Op::Launch { .. } if self.plan.count_endless() => {
                return self
                    .schedule
                    .stream(stream)
                    .queue
                    .push_front(StreamWork::Endless);
            }
            Op::Launch {
                function,
                grid,
                args,
                ..
            } => self.launch(*function, *grid, args),
            &Op::Timestamp { timestamp } => {
                if let Some(state) = self.slots.get_mut(&steps[node].slot) {
                    state.timestamps[timestamp as usize] = Some(self.steps);
                }
                Ok(())
            }
            op => self
                .memory
                .apply(op, part.0, part.1)
                .ok_or_else(illegal_address_error),
        };
        match outcome {
            Ok(()) if over => self.schedule.finish(stream),
            Ok(()) => {}
            Err(error) => self.lose(error),
        }
        // The kernel has run, and its stream is held as if it had not ended.
        if let Some(calls) = slow {
            let queue = &mut self.schedule.stream(stream).queue;
            queue.push_front(StreamWork::Slow(calls));
        }
    }

    /// Runs a kernel's twin, unless a fault is planned for it.
    ///
    /// # Errors
    /// A planned fault; code 700 for memory that was freed; those of the twin, of which a panic
    /// becomes code 719.
    fn launch(
        &mut self,
        function: tapeloop_engine::backend::contract::FunctionId,
        grid: [u32; 3],
        args: &[u64],
    ) -> Result<()> {
        if let Some(error) = self.plan.count_launch() {
            return Err(error);
        }
        let kernel = self.functions.get(function)?;
        let ran = self
            .memory
            .launch(&kernel, grid, args)
            .ok_or_else(illegal_address_error)?;
        ran.map_err(|error| match error.kind() {
            // A panic counts as a trap of the kernel, after which the device is lost.
            ErrorKind::Kernel => Error::new(ErrorKind::Device, error.message()).with_code(719),
            _ => error,
        })
    }

    /// Refuses a call that a capture of this thread forbids, and ends that capture. A driver that
    /// captures for one thread refuses such calls, and the capture fails when it ends.
    pub(super) fn forbid_in_capture(&mut self, call: &str) -> Result<()> {
        let thread = std::thread::current().id();
        let mut captures = self.slots.iter_mut().filter_map(|(slot, state)| {
            let capture = state.capture.as_mut();
            Some((*slot, capture.filter(|capture| capture.thread == thread)?))
        });
        let Some((slot, capture)) = captures.next() else {
            return Ok(());
        };
        let message = format!("{call} during a capture on slot {slot}");
        let error = Error::new(ErrorKind::Device, message.clone()).with_code(901);
        capture.invalid.get_or_insert(error);
        self.violate(Violation::new(ViolationKind::Capture, message))
    }
}

/// The error of an access to freed memory; it occurs only if violations are not refused.
fn illegal_address_error() -> Error {
    Error::new(ErrorKind::Device, "an illegal address was met").with_code(700)
}
