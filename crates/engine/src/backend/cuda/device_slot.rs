//! A slot of the CUDA backend.

use super::address_checks::{self, Checked};
use super::allocations::{AllocationUse, SlotAllocations};
use super::capture::{capture, capture_call};
use super::context::PrimaryContext;
use super::copies;
use super::graph::{Draft, Graph, NodeWork, Template};
use super::graph_plan::{NodePlan, one_each, plan};
use super::module::{Function, LoadedFunctions};
use super::programmatic_launch::or_without;
use super::slot_memory::SlotMemory;
use super::slot_stream::SlotStream;
use super::timestamps::Timestamps;
use crate::backend::edges::{NodeRole, programmatic_edges};
use crate::backend::graphs::Graphs;
use crate::backend::{
    self, Addresses, Allocation, Built, Call, DeviceSlot, DeviceSlotId, ExternalEvent, FunctionId,
    GraphId, GraphSource, HostViews, Op, Priority, Residency,
};
use crate::error::{Context as _, Error, Result};
use crate::record::BufferId;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// A slot of the CUDA backend.
pub(super) struct CudaSlot {
    id: DeviceSlotId,
    // Fields drop in this order, after `drop` has waited for the stream: graphs and the stream, which
    // start work, go before the memory that the work may use.
    /// Behind a lock, as the driver lets one thread at a time use a graph.
    graphs: Mutex<Graphs<Graph>>,
    stream: SlotStream,
    /// The resident graph whose batch is in flight. The stream then has no work.
    ringing: Option<GraphId>,
    /// The resident graph whose batch was the slot's last work, if it was one.
    last_rang: Option<GraphId>,
    /// Adopted allocations, and the leases of work in flight.
    allocations: SlotAllocations,
    share: SlotMemory,
    /// The events that graphs and streams record.
    timestamps: Timestamps,
    functions: Arc<LoadedFunctions>,
    context: Arc<PrimaryContext>,
}

impl CudaSlot {
    /// Opens a slot, and zeroes its device memory, which it waits for.
    pub(super) fn open(
        timestamps: Timestamps,
        functions: &Arc<LoadedFunctions>,
        share: SlotMemory,
        stream: SlotStream,
    ) -> Result<CudaSlot> {
        let context = Arc::clone(timestamps.context());
        let mut slot = CudaSlot {
            id: DeviceSlotId::new(context.id),
            graphs: Mutex::default(),
            stream,
            ringing: None,
            last_rang: None,
            allocations: SlotAllocations::default(),
            share,
            timestamps,
            functions: Arc::clone(functions),
            context,
        };
        let zero = Op::Memset {
            device: slot.share.device_start(),
            byte: 0,
            bytes: slot.share.device_bytes(),
        };
        // SAFETY: the memset is of the slot's own device memory, and waited for here.
        unsafe { slot.enqueue(&zero)? };
        slot.stream.synchronize()?;
        Ok(slot)
    }

    fn check<'a>(&self, op: &'a Op) -> Result<Checked<'a>> {
        let (share, allocations) = (&self.share, &self.allocations);
        address_checks::check(op, share, allocations, &self.functions, &self.timestamps)
    }

    /// Checks an operation of a graph. A timestamp's event is made first, as the node holds it.
    fn check_node<'a>(&mut self, op: &'a Op) -> Result<Checked<'a>> {
        self.timestamps.make_for(op)?;
        let checked = self.check(op)?;
        checked.check_node()?;
        Ok(checked)
    }

    /// Checks the operations of a graph, and plans the graph. The errors are those of
    /// [`Self::check_node`] with the place of the operation, and of [`Self::draft`].
    fn check_and_draft(&mut self, source: GraphSource<'_>, programmatic: bool) -> Result<Draft> {
        let mut checked = Vec::with_capacity(source.ops().len());
        for (place, op) in source.ops().enumerate() {
            let node = self.check_node(op);
            checked.push(node.within(|| format!("operation {place}"))?);
        }
        self.draft(source, checked, programmatic)
    }

    /// Makes a graph with programmatic edges if they are allowed. If the driver refuses those and a
    /// kernel asks for them, makes the graph again with full edges.
    fn new_graph(&mut self, source: GraphSource<'_>) -> Result<Graph> {
        let programmatic = self.context.programmatic.is_allowed();
        let made = self
            .check_and_draft(source, programmatic)
            .and_then(Graph::new);
        if !self.functions.have_waiting_kernel() {
            return made;
        }
        let context = Arc::clone(&self.context);
        or_without(&context, made, || {
            self.check_and_draft(source, false).and_then(Graph::new)
        })
    }

    /// Makes a graph of operations, of which `checked` passed the checks. `programmatic` allows
    /// programmatic edges.
    fn draft(
        &self,
        source: GraphSource<'_>,
        checked: Vec<Checked<'_>>,
        programmatic: bool,
    ) -> Result<Draft> {
        let (plan, copies) = self.plan(source);
        let ops: Vec<&Op> = source.ops().collect();
        let launches: Vec<Option<Op>> = plan
            .iter()
            .map(|node| {
                let (function, _) = copies.as_ref().filter(|_| node.copies)?;
                let pieces = node.places.iter().map(|&place| ops[place]);
                Some(copies::launch(*function, pieces))
            })
            .collect();
        let parts = checked.iter().map(|op| op.uses().to_vec()).collect();
        let mut checked: Vec<_> = checked.into_iter().map(Some).collect();
        let nodes = plan
            .iter()
            .zip(&launches)
            .map(|(node, launch)| match (launch, &copies) {
                (Some(launch), Some((_, function))) => Checked::copies(launch, function.clone()),
                _ => checked[node.places[0]]
                    .take()
                    .expect("a place is in one node"),
            });
        let nodes: Vec<Checked<'_>> = nodes.collect();
        let calls = nodes.iter().map(|node| self.capture_call(node));
        let calls = calls.collect::<Result<Vec<_>>>()?;
        let is_library: Vec<bool> = calls.iter().map(Option::is_some).collect();
        let line: Vec<usize> = (0..nodes.len()).collect();
        let after: Vec<&[usize]> = match source {
            GraphSource::Captured(_) => {
                let indices = line.iter();
                indices
                    .map(|&index| &line[index.saturating_sub(1)..index])
                    .collect()
            }
            GraphSource::Explicit(_) => plan.iter().map(|node| &*node.after).collect(),
        };
        let roles: Vec<NodeRole> = nodes.iter().map(Checked::role).collect();
        let programmatic = if programmatic {
            programmatic_edges(after.iter().copied(), &roles)
        } else {
            vec![None; nodes.len()]
        };
        // Each library call is a node, of which a capture on one stream would make several.
        let template = if source.is_captured() && !is_library.contains(&true) {
            capture(self.stream.stream(), &nodes, programmatic)?
        } else {
            Template::explicit(&self.context, &after, &nodes, &calls, programmatic)?
        };
        let work = |(node, is_library): (NodePlan, bool)| match (node.copies, is_library) {
            (false, false) => NodeWork::One(node.places[0]),
            (false, true) => {
                let place = node.places[0];
                NodeWork::Library(place, ops[place].clone())
            }
            (true, _) => {
                let places = node.places.into_iter();
                NodeWork::Copies(places.map(|place| (place, ops[place].clone())).collect())
            }
        };
        // All work of a slot for urgent batches has the highest priority already.
        let urgent_kernel = match self.stream.priority() {
            Priority::Normal => nodes.iter().find_map(Checked::urgent_kernel).cloned(),
            Priority::Urgent => None,
        };
        Ok(Draft {
            template,
            is_captured: source.is_captured(),
            urgent_kernel,
            work: plan.into_iter().zip(is_library).map(work).collect(),
            parts,
        })
    }

    /// The graph of a library call; `None` for other operations.
    fn capture_call(&self, checked: &Checked<'_>) -> Result<Option<Template>> {
        let is_call = checked.is_library_call();
        is_call
            .then(|| capture_call(self.stream.stream(), checked))
            .transpose()
    }

    /// The nodes of a graph, and the function that does merged copies and memsets. Where the driver
    /// does not load that function, each operation is a node.
    fn plan(&self, source: GraphSource<'_>) -> (Vec<NodePlan>, Option<(FunctionId, Function)>) {
        let merged = plan(source);
        if !merged.iter().any(|node| node.copies) {
            return (merged, None);
        }
        let loaded = self
            .functions
            .load(copies::kernel(self.context.device.capability()));
        match loaded.and_then(|id| Ok((id, self.functions.get(id)?))) {
            Ok(function) => (merged, Some(function)),
            Err(error) => {
                tracing::debug!(
                    %error,
                    "copies are not merged into one kernel: each copy is a node of the graph"
                );
                (one_each(source), None)
            }
        }
    }

    fn assert_quiet(&self) {
        assert!(
            self.is_quiet(),
            "host memory is touched while the slot works: set a fence behind the work, then wait"
        );
    }

    /// Releases the leases if no work is in flight.
    fn release_if_quiet(&mut self) {
        if self.is_quiet() {
            self.allocations.release();
        }
    }

    /// Whether the batch of the resident graph in flight is done, if there is one.
    fn is_batch_done(&mut self) -> Result<bool> {
        self.context.check_lost()?;
        let Some(graph) = self.ringing else {
            self.release_if_quiet();
            return Ok(true);
        };
        let resident = self.graphs.get_mut().get_mut(graph)?.resident();
        let done = resident.expect("a loop has its batch").is_done();
        // An error that does not lose the context is that of a refused launch: no loop has the batch.
        // If it is done its results are there, even if another slot has lost the context since.
        if done.as_ref().map_or(!self.context.is_lost(), |done| *done) {
            self.ringing = None;
            self.release_if_quiet();
        }
        done
    }

    /// Waits for the batch of a resident graph, if one is in flight: nothing else orders it before
    /// later work.
    fn finish_ringing(&mut self) -> Result<()> {
        let waited = self.ringing.map(|_| self.wait_for(Duration::MAX));
        waited.map_or(Ok(()), |waited| waited.map(drop))
    }
}

/// Leases the allocations of work that is about to be submitted. Leases that a refusal leaves are
/// released with the rest.
fn lease(
    allocations: &mut SlotAllocations,
    stream: &mut SlotStream,
    uses: &[AllocationUse],
) -> Result<()> {
    let leased = allocations.lease(uses, || stream.synchronize());
    if leased.is_err() && stream.is_quiet() {
        allocations.release();
    }
    leased
}

// SAFETY: buffers lie in the slot's own part of the arenas, where the layout has them, and
// `share` gives host memory out only while nothing of the slot is in flight.
unsafe impl DeviceSlot for CudaSlot {
    fn id(&self) -> &DeviceSlotId {
        &self.id
    }

    fn stream(&self) -> Option<u64> {
        Some(self.stream.stream().handle())
    }

    fn is_quiet(&self) -> bool {
        self.stream.is_quiet() && self.ringing.is_none()
    }

    fn buffer_count(&self) -> usize {
        self.share.buffer_count()
    }

    fn addresses(&self, buffer: BufferId) -> Addresses {
        self.share.addresses(buffer)
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.assert_quiet();
        // SAFETY: the assert above: nothing is in flight on this slot, and other
        // slots are refused addresses that are not their own.
        unsafe { self.share.host(buffer) }
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        self.assert_quiet();
        // SAFETY: as for `host`.
        unsafe { self.share.host_mut(buffers) }
    }

    fn adopt(&mut self, allocation: &Allocation) -> Result<()> {
        allocation.check_key(self.context.allocation_key)?;
        self.allocations.adopt(allocation);
        Ok(())
    }

    fn disown(&mut self, allocation: &Allocation) {
        self.allocations.disown(allocation);
    }

    unsafe fn enqueue(&mut self, op: &Op) -> Result<()> {
        let _outer = self.context.enter();
        self.finish_ringing()?;
        self.timestamps.make_for(op)?;
        let checked = self.check(op)?;
        lease(&mut self.allocations, &mut self.stream, checked.uses())?;
        self.last_rang = None;
        let starts_early = checked.role() == NodeRole::WaitingKernel
            && self.stream.ends_in_kernel()
            && self.context.programmatic.is_allowed();
        let stream = self.stream.stream_for_work();
        // SAFETY: the work was counted as given. Until it is seen done, the
        // leases above stay in `allocations` (`release_if_quiet`), the host side is out of
        // reach (`assert_quiet`), and `drop` waits for it before the slot's memory goes.
        let submit = |early| unsafe { checked.submit(stream, Call::Submission, early) };
        let mut submitted = submit(starts_early);
        if starts_early {
            submitted = or_without(&self.context, submitted, || submit(false));
        }
        submitted?;
        if checked.role() != NodeRole::Other {
            self.stream.note_kernel();
        }
        Ok(())
    }

    unsafe fn make_graph(
        &mut self,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        source.check()?;
        let _outer = self.context.enter();
        let Some(id) = into else {
            let graph = self.new_graph(source)?;
            return Ok((self.graphs.get_mut().insert(graph), Built::Instantiated));
        };
        let draft = self.check_and_draft(source, self.context.programmatic.is_allowed())?;
        let graph = self.graphs.get_mut().get_mut(id)?;
        graph.check_changeable()?;
        Ok((id, graph.take(draft)?))
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        let _outer = self.context.enter();
        self.graphs.get_mut().get(graph)?.check_changeable()?;
        let checked = self.check_node(op)?;
        let call = self.capture_call(&checked)?;
        self.graphs
            .get_mut()
            .get_mut(graph)?
            .set(node, checked, &self.functions, call)
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        let _outer = self.context.enter();
        self.graphs
            .lock()
            .get(graph)?
            .ops(&self.functions, &self.timestamps)
    }

    fn drop_graph(&mut self, graph: GraphId) {
        let _outer = self.context.enter();
        if self.ringing == Some(graph) {
            // The batch's error is lost with its graph.
            // If it cannot be waited for the context is lost, and the slot never counts as quiet.
            let _ = self.finish_ringing();
        }
        self.graphs.get_mut().remove(graph);
    }

    fn make_resident(&mut self, graph: GraphId, residency: Residency) -> Result<bool> {
        let _outer = self.context.enter();
        self.stream.check_loop()?;
        let graph = self.graphs.get_mut().get_mut(graph)?;
        graph.make_resident(&self.functions, residency)?;
        Ok(true)
    }

    fn launch_graph(&mut self, id: GraphId) -> Result<()> {
        self.context.check_lost()?;
        self.finish_ringing()?;
        let graph = self.graphs.get_mut().get_mut(id)?;
        let mut uses = Cow::Borrowed(graph.uses());
        if !self.allocations.adopted().is_empty() && self.functions.follow_device_pointers() {
            // Allocations may have been adopted since the graph was made.
            self.allocations.add_adopted(uses.to_mut());
        }
        lease(&mut self.allocations, &mut self.stream, &uses)?;
        if let Some(resident) = graph.resident() {
            if !self.stream.is_quiet() {
                self.stream.synchronize()?;
            }
            self.last_rang = Some(id);
            // SAFETY: as for `enqueue`: the batch counts as in flight until it is seen done. The
            // slot's other work is done.
            unsafe { resident.ring()? };
            self.ringing = Some(id);
            return Ok(());
        }
        self.last_rang = None;
        let stream = self.stream.stream_for_work();
        // SAFETY: as for `enqueue`.
        unsafe { graph.launch(stream) }
    }

    fn wait_for_event(&mut self, event: &ExternalEvent) -> Result<()> {
        let _outer = self.context.enter();
        self.finish_ringing()?;
        self.stream.wait_for_event(event)
    }

    fn record_event(&mut self, event: &ExternalEvent) -> Result<()> {
        let _outer = self.context.enter();
        self.finish_ringing()?;
        self.stream.record_event(event)
    }

    fn fence(&mut self) -> Result<()> {
        // A loop announces the end of its batch.
        self.last_rang
            .map_or_else(|| self.stream.fence(), |_| Ok(()))
    }

    fn is_done(&mut self) -> Result<bool> {
        if self.last_rang.is_some() {
            return self.is_batch_done();
        }
        let done = self.stream.is_done()?;
        self.release_if_quiet();
        Ok(done)
    }

    fn wait(&mut self) -> Result<()> {
        if self.last_rang.is_some() {
            return self.finish_ringing();
        }
        self.stream.wait()?;
        self.release_if_quiet();
        Ok(())
    }

    fn abandon(&mut self, error: &Error) -> Error {
        self.context.lose(error)
    }

    fn timestamps(&self) -> Result<backend::Timestamps> {
        let rang = self.last_rang.filter(|_| self.ringing.is_none());
        let times = rang.and_then(|rang| self.graphs.lock().get(rang).ok()?.batch_times());
        if let Some(times) = times {
            return Ok(self.timestamps.of_batch(&times));
        }
        let _outer = self.context.enter();
        self.timestamps.read()
    }
}

impl Drop for CudaSlot {
    fn drop(&mut self) {
        let _outer = self.context.enter();
        // Refused if the context is lost: its work may never end.
        let ended = self
            .finish_ringing()
            .and_then(|()| self.stream.synchronize());
        if let Err(error) = ended {
            // The work may never end. Everything that it may use is leaked: the arenas, the
            // allocations with their leases, the graphs, their events and functions. Other slots
            // are not affected, so the context stays.
            self.share.leak();
            self.allocations.leak();
            self.timestamps.leak();
            std::mem::forget(std::mem::take(self.graphs.get_mut()));
            std::mem::forget(Arc::clone(&self.functions));
            tracing::warn!(
                %error,
                "the memory of a slot is leaked: waiting for its work failed, so the device may still use it"
            );
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
