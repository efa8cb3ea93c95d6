//! A slot of the simulated device.

use super::device::SimDevice;
use super::graph::{Graph, Order};
use super::host_views::Views;
use super::memory::Graveyard;
use super::resident::{SimLoop, SimWords};
use super::slot_state::Capture;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tapeloop_engine::backend::contract::{
    Addresses, AllocationKey, BackendId, Built, Call, CallCounters, DeviceSlot, DeviceSlotId,
    GraphId, GraphSource, HostViews, Op, Timestamps,
};
use tapeloop_engine::backend::{Allocation, Residency};
use tapeloop_engine::error::{Error, Result};
use tapeloop_engine::internal::Functions;
use tapeloop_engine::internal::Loops;
use tapeloop_engine::internal::check_same_build;
use tapeloop_engine::record::BufferId;

/// The state that the backend and its slots share.
pub(super) struct SimShared {
    pub(super) id: BackendId,
    pub(super) allocation_key: AllocationKey,
    pub(super) functions: Arc<Functions>,
    pub(super) calls: Arc<CallCounters>,
    pub(super) graveyard: Graveyard,
    pub(super) loops: Arc<Loops<SimWords>>,
    /// Locked after the loops' own state.
    pub(super) device: Mutex<SimDevice>,
}

pub(super) struct SimSlot {
    pub(super) id: u32,
    slot_id: DeviceSlotId,
    buffers: Vec<Addresses>,
    pub(super) views: Views,
    /// By resident graph.
    pub(super) loops: BTreeMap<GraphId, SimLoop>,
    /// The resident graph whose batch is in flight. The stream then has no work.
    pub(super) ringing: Option<GraphId>,
    /// Whether the slot's last work was a batch of a resident graph.
    pub(super) has_rung_last: bool,
    pub(super) shared: Arc<SimShared>,
}

impl SimSlot {
    pub(super) fn new(
        id: u32,
        buffers: Vec<Addresses>,
        views: Views,
        shared: Arc<SimShared>,
    ) -> Self {
        SimSlot {
            id,
            slot_id: DeviceSlotId::new(shared.id),
            buffers,
            views,
            loops: BTreeMap::new(),
            ringing: None,
            has_rung_last: false,
            shared,
        }
    }

    /// Starts a call: the device sees what the host wrote, and runs for a while.
    pub(super) fn enter<T>(
        &mut self,
        work: impl FnOnce(&mut SimDevice, &mut Views, u32) -> T,
    ) -> T {
        let mut device = self.shared.device.lock();
        self.views.publish(&mut device.memory);
        device.enter();
        work(&mut device, &mut self.views, self.id)
    }

    /// A call that fails if the device is lost.
    fn call<T>(
        &mut self,
        call: Call,
        work: impl FnOnce(&mut SimDevice, &mut Views, u32) -> Result<T>,
    ) -> Result<T> {
        self.enter(|device, views, slot| {
            device.call(call)?;
            work(device, views, slot)
        })
    }

    /// Begins a capture by this thread.
    fn begin_capture(&mut self) -> Result<()> {
        self.call(Call::GraphEdit, |device, _, slot| {
            device.slot(slot).capture = Some(Capture {
                steps: Vec::new(),
                thread: std::thread::current().id(),
                invalid: None,
            });
            Ok(())
        })
    }

    /// Records an operation, or invalidates the capture with the refusal.
    ///
    /// # Errors
    /// The loss, the refusal, or [`ErrorKind::Usage`](tapeloop_engine::error::ErrorKind::Usage) if
    /// no capture is in progress: a restart of the device between the calls ends it.
    fn capture(&mut self, op: &Op) -> Result<()> {
        self.enter(|device, _, slot| {
            // Before `resolve`, which would report violations of operations that a lost device never runs.
            // The capture stays as it is: its end reports the loss.
            device.check_lost()?;
            let resolved = device.resolve(slot, op);
            let accepted = resolved.and_then(|step| device.call(Call::GraphEdit).map(|()| step));
            let capture = device.slot(slot).capture.as_mut();
            let capture = capture.ok_or_else(|| Error::usage("no capture is in progress"))?;
            match accepted {
                Ok(step) => capture.steps.push(step),
                Err(error) => {
                    capture.invalid.get_or_insert_with(|| error.clone());
                    return Err(error);
                }
            }
            Ok(())
        })
    }

    /// Ends the capture, and makes a graph of its steps, or changes `into`.
    ///
    /// # Errors
    /// That which invalidated the capture; else that of a planned fault; those of [`SimSlot::capture`].
    fn end_capture(&mut self, into: Option<GraphId>) -> Result<(GraphId, Built)> {
        self.enter(|device, _, slot| {
            // The capture is over in any case, so this comes first.
            let capture = device.slot(slot).capture.take();
            device.call(Call::GraphEdit)?;
            let capture = capture.ok_or_else(|| Error::usage("no capture is in progress"))?;
            let planned = device.plan.count_capture();
            if let Some(error) = capture.invalid.or(planned) {
                return Err(error);
            }
            device.finish_graph(slot, Graph::new(capture.steps, Order::Line), into)
        })
    }

    /// Checks an access by the host to its side of a buffer.
    fn check_host_access(&self, buffer: BufferId, writes: bool) {
        let (address, range) = self.views.range(buffer);
        let mut device = self.shared.device.lock();
        device.enter();
        assert!(
            device.slot(self.id).gone.is_none(),
            "host memory is touched before the slot's loss was reported: wait for the slot"
        );
        // The caller cannot return an error; the violation is kept.
        let _ = device.host_access(address, &range, writes);
    }
}

impl SimDevice {
    /// Keeps a graph under a new id, or in place of `into`, as the driver would: an update that is
    /// refused may have changed some nodes.
    ///
    /// # Errors
    /// Those of planned faults, and of [`check_same_build`].
    fn finish_graph(
        &mut self,
        slot: u32,
        graph: Graph,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        let graph = if self.plan.has_no_waits() {
            graph.without_waits()
        } else {
            graph
        };
        let Some(id) = into else {
            if let Some(error) = self.plan.count_graph() {
                return Err(error);
            }
            let id = self.slot(slot).graphs.insert(graph);
            return Ok((id, Built::Instantiated));
        };
        let old = self.slot(slot).graphs.get_mut(id)?;
        check_same_build(old.order.is_captured(), graph.order.is_captured())?;
        let refused = match old.difference(&graph) {
            None => self.plan.count_update(),
            Some(_) => self.plan.count_graph(),
        };
        let old = self.slot(slot).graphs.get_mut(id)?;
        if let Some(error) = refused {
            // The graph takes over a half of the parameters, as an update that fails may.
            let taken = graph.steps.len().div_ceil(2);
            if old.difference(&graph).is_none() {
                for (node, step) in graph.steps.iter().take(taken).enumerate() {
                    let is_of_kind = old.set(node, step.clone());
                    debug_assert!(is_of_kind, "the topology is the same");
                }
            }
            return Err(error);
        }
        let built = match old.difference(&graph) {
            None => Built::Updated,
            Some(reason) => Built::Reinstantiated { reason },
        };
        *old = graph;
        Ok((id, built))
    }
}

// SAFETY: each buffer has memory of its own in the device's model, and the host sees copies.
unsafe impl DeviceSlot for SimSlot {
    fn id(&self) -> &DeviceSlotId {
        &self.slot_id
    }

    fn is_quiet(&self) -> bool {
        let mut device = self.shared.device.lock();
        let state = device.slot(self.id);
        let (is_seen, given) = (state.gone.is_none(), state.given.clone());
        is_seen && given.is_none_or(|(epoch, _)| device.host.covers(epoch))
    }

    fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    fn addresses(&self, buffer: BufferId) -> Addresses {
        self.buffers[buffer.index()]
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.check_host_access(buffer, false);
        self.views.bytes(buffer)
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        assert!(buffers.is_sorted(), "buffers ascend");
        buffers
            .iter()
            .for_each(|buffer| self.check_host_access(*buffer, true));
        self.views.bytes_mut(buffers)
    }

    fn adopt(&mut self, allocation: &Allocation) -> Result<()> {
        allocation.check_key(self.shared.allocation_key)?;
        let adopted = (allocation.address(), allocation.clone());
        self.enter(|device, _, slot| device.slot(slot).adopted.extend([adopted]));
        Ok(())
    }

    fn disown(&mut self, allocation: &Allocation) {
        let address = allocation.address();
        self.enter(|device, _, slot| device.slot(slot).adopted.remove(&address));
    }

    unsafe fn enqueue(&mut self, op: &Op) -> Result<()> {
        self.finish_ringing()?;
        self.has_rung_last = false;
        self.enter(|device, views, slot| {
            // Before `resolve`, as in `capture`.
            device.check_lost()?;
            let step = device.resolve(slot, op)?;
            device.call(Call::Submission)?;
            device.count_submission(slot)?;
            let touches = device.submit_single(slot, step)?;
            views.poison(&device.memory, &touches);
            Ok(())
        })
    }

    unsafe fn make_graph(
        &mut self,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        source.check()?;
        into.map_or(Ok(()), |graph| self.check_changeable(graph))?;
        let nodes = match source {
            GraphSource::Captured(ops) => {
                self.begin_capture()?;
                // After a refusal too the capture is ended. The refusal is the error that counts.
                let captured = ops.iter().try_for_each(|op| self.capture(op));
                let ended = self.end_capture(into);
                return captured.and(ended);
            }
            GraphSource::Explicit(nodes) => nodes,
            _ => {
                return Err(Error::usage(
                    "the device does not know such a source of a graph",
                ));
            }
        };
        self.call(Call::GraphEdit, |device, _, slot| {
            let steps = nodes.iter().map(|node| device.resolve(slot, node.op));
            let steps = steps.collect::<Result<_>>()?;
            let after = nodes.iter().map(|node| node.after.to_vec()).collect();
            let graph = Graph::new(steps, Order::After(Arc::new(after)));
            device.finish_graph(slot, graph, into)
        })
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        self.check_changeable(graph)?;
        self.call(Call::GraphEdit, |device, _, slot| {
            let step = device.resolve(slot, op)?;
            let refused = device.plan.count_params();
            let graph = device.slot(slot).graphs.get_mut(graph)?;
            if node >= graph.steps.len() {
                return Err(Error::usage("the graph has no such operation"));
            }
            // Refused parameters may be taken over all the same.
            match (graph.set(node, step), refused) {
                (_, Some(error)) => Err(error),
                (true, None) => Ok(()),
                (false, None) => Err(Error::usage(
                    "an update cannot change the kind of an operation",
                )),
            }
        })
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        let mut device = self.shared.device.lock();
        device.check_lost()?;
        let graph = device.slot(self.id).graphs.get(graph)?;
        Ok(graph.steps.iter().map(|step| step.op.clone()).collect())
    }

    fn drop_graph(&mut self, graph: GraphId) {
        if self.ringing == Some(graph) {
            // The batch's error is lost with its graph.
            let _ = self.finish_ringing();
            self.ringing = None;
        }
        self.loops.remove(&graph);
        self.enter(|device, _, slot| {
            device.calls.add(Call::GraphEdit);
            device.slot(slot).graphs.remove(graph);
        });
    }

    fn make_resident(&mut self, graph: GraphId, residency: Residency) -> Result<bool> {
        self.add_loop(graph, residency).map(|()| true)
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        if self.loops.contains_key(&graph) {
            return self.ring(graph);
        }
        self.finish_ringing()?;
        self.has_rung_last = false;
        self.call(Call::Submission, |device, views, slot| {
            device.count_submission(slot)?;
            let mut launched = device.slot(slot).graphs.get_mut(graph)?.clone();
            device.check_adopted(slot, &launched)?;
            let touches = device.submit(slot, &mut launched)?;
            // Keeps the result of the checks.
            *device.slot(slot).graphs.get_mut(graph)? = launched;
            views.poison(&device.memory, &touches);
            Ok(())
        })
    }

    fn fence(&mut self) -> Result<()> {
        if self.has_rung_last {
            // The loop announces the end of the batch.
            return Ok(());
        }
        self.call(Call::Submission, |device, _, slot| {
            device.count_submission(slot)?;
            device.fence(slot);
            Ok(())
        })
    }

    fn is_done(&mut self) -> Result<bool> {
        if self.has_rung_last {
            return self.is_batch_done();
        }
        self.call(Call::Poll, |device, views, slot| {
            device.take_loss(slot)?;
            let done = !device.plan.is_captured_elsewhere() && device.is_fence_reached(slot);
            if done {
                device.see_fence(slot);
                views.refresh(&device.memory);
            }
            Ok(done)
        })
    }

    fn wait(&mut self) -> Result<()> {
        if self.has_rung_last {
            return self.finish_ringing();
        }
        self.call(Call::Poll, |device, views, slot| {
            device.take_loss(slot)?;
            device.run_to_fence(slot)?;
            device.see_fence(slot);
            views.refresh(&device.memory);
            Ok(())
        })
    }

    fn abandon(&mut self, error: &Error) -> Error {
        let mut device = self.shared.device.lock();
        device.lose(error.clone());
        device.check_lost().expect_err("it is lost now")
    }

    fn timestamps(&self) -> Result<Timestamps> {
        let mut device = self.shared.device.lock();
        device.calls.add(Call::Timing);
        device.check_lost()?;
        Ok(device.slot(self.id).timestamps)
    }
}

impl Drop for SimSlot {
    fn drop(&mut self) {
        // The batch's error is lost with its slot.
        let _ = self.finish_ringing();
        // Before the lock, which the end of a loop takes.
        self.loops.clear();
        let slot = self.id;
        let mut device = self.shared.device.lock();
        // Work in flight may read what the host wrote.
        self.views.publish(&mut device.memory);
        device.close(slot);
        device.bury();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Live, SimBackend, SimOptions, ViolationKind};
    use tapeloop_engine::backend::contract::Priority;
    use tapeloop_engine::backend::{Backend, Space};
    use tapeloop_engine::record::{Kernel, Recorder};

    #[test]
    fn an_allocation_ends_a_capture_of_its_own_thread_and_no_other() {
        let sim = SimBackend::new(SimOptions::seeded(0));
        let mut recorder = Recorder::new(&[1]);
        let elements = 64;
        let buffer = recorder.batch_buffer::<u8>("b", elements);
        recorder.memset(buffer, 0);
        let kernel = Kernel::new("nothing").updates::<u8>("b").twin(|_| {});
        recorder.launch(&kernel, 1, &[buffer.into()]);
        let recording = recorder.finish().unwrap();
        let opened = sim.open_slots(recording.buffers(), 1, Priority::Normal);
        let mut opened = opened.unwrap();
        let addresses = opened[0].addresses(buffer.id());
        let memset = Op::Memset {
            device: addresses.device,
            byte: 1,
            bytes: 64,
        };
        let (id, buffers) = (0, vec![addresses]);
        let mut slot = SimSlot::new(id, buffers, Views::default(), Arc::clone(&sim.shared));
        slot.begin_capture().unwrap();
        slot.capture(&memset).unwrap();
        let elsewhere = || drop(sim.allocate(Space::Device, 8).unwrap());
        std::thread::scope(|scope| scope.spawn(elsewhere).join().unwrap());
        slot.end_capture(None).unwrap();
        assert_eq!(sim.violations(), []);
        slot.begin_capture().unwrap();
        slot.capture(&memset).unwrap();
        assert_eq!(sim.live().captures, 1);
        assert!(sim.allocate(Space::Device, 8).is_err());
        let error = slot.end_capture(None).unwrap_err();
        assert_eq!(error.code(), Some(901), "{error}");
        let kinds: Vec<_> = sim
            .violations()
            .iter()
            .map(|violation| violation.kind)
            .collect();
        assert_eq!(kinds, [ViolationKind::Capture]);
        drop(slot);
        opened.drain(..).for_each(std::mem::forget);
        assert_eq!(sim.live(), Live::default());
    }
}
