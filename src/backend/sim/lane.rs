//! A lane of the simulated device: the calls, in the terms of the device.

use super::Shared;
use super::device::Device;
use super::graph::{Graph, Order};
use super::share::Capture;
use super::view::Views;
use crate::backend::{
    Addresses, Block, Built, Call, GraphId, HostViews, Lane, LaneId, Node, Op, Queue, Stamps,
    Streams, refused_in_capture,
};
use crate::error::{Error, Result};
use crate::record::BufferId;
use std::sync::Arc;

pub(super) struct SimLane {
    id: u32,
    lane_id: LaneId,
    buffers: Vec<Addresses>,
    views: Views,
    shared: Arc<Shared>,
}

impl SimLane {
    pub(super) fn new(id: u32, buffers: Vec<Addresses>, views: Views, shared: Arc<Shared>) -> Self {
        SimLane {
            id,
            lane_id: LaneId::new(shared.id),
            buffers,
            views,
            shared,
        }
    }

    /// What every call begins with: the device learns what the host wrote, and
    /// goes on for a while.
    fn enter<T>(&mut self, work: impl FnOnce(&mut Device, &mut Views, u32) -> T) -> T {
        let mut device = self.shared.device.lock();
        self.views.publish(&mut device.memory);
        device.enter();
        work(&mut device, &mut self.views, self.id)
    }

    /// A call that the device must be there for.
    fn call<T>(
        &mut self,
        call: Call,
        work: impl FnOnce(&mut Device, &mut Views, u32) -> Result<T>,
    ) -> Result<T> {
        self.enter(|device, views, lane| {
            device.call(call)?;
            work(device, views, lane)
        })
    }

    /// The host looks at the side of a buffer that it sees.
    fn look(&self, buffer: BufferId, writes: bool) {
        let (address, range) = self.views.range(buffer);
        let mut device = self.shared.device.lock();
        device.enter();
        assert!(
            device.lane(self.id).gone.is_none(),
            "host memory is touched before the lane's loss was reported: wait for the lane"
        );
        // The call has no error to give; the violation is kept.
        let _ = device.host_access(self.id, address, &range, writes);
    }
}

impl Device {
    fn graph(&mut self, lane: u32, graph: GraphId) -> Result<&mut Graph> {
        let graphs = &mut self.lane(lane).graphs;
        let graph = graphs.get_mut(&graph);
        graph.ok_or_else(|| Error::usage("the lane has no such graph"))
    }

    fn finish_graph(
        &mut self,
        lane: u32,
        graph: Graph,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        if graph.steps.is_empty() {
            return Err(Error::usage("the graph has no operation"));
        }
        let Some(id) = into else {
            if let Some(error) = self.plan.graph() {
                return Err(error);
            }
            let graphs = &mut self.lane(lane).graphs;
            let id = GraphId::unique();
            graphs.insert(id, graph);
            return Ok((id, Built::Instantiated));
        };
        let old = self.graph(lane, id)?;
        if let Some(reason) = old.other_build(&graph) {
            return Err(Error::usage(reason));
        }
        let refused = match old.difference(&graph) {
            None => self.plan.update(),
            Some(_) => self.plan.graph(),
        };
        let old = self.graph(lane, id)?;
        if let Some(error) = refused {
            // It may have taken over some of the parameters.
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

    fn end_capture(&mut self, lane: u32, into: Option<GraphId>) -> Result<(GraphId, Built)> {
        // Over in any case, so before anything can fail.
        let capture = self.lane(lane).capture.take();
        self.call(Call::GraphEdit)?;
        let capture = capture.ok_or_else(|| Error::usage("no capture is in progress"))?;
        let planned = self.plan.capture();
        if let Some(error) = capture.invalid.or(planned) {
            return Err(error);
        }
        if capture.steps.is_empty() {
            return Err(Error::usage("the capture took nothing down"));
        }
        self.finish_graph(lane, Graph::new(capture.steps, Order::Line), into)
    }
}

// SAFETY: each buffer has memory of its own in the device's model, and the host sees copies.
unsafe impl Lane for SimLane {
    fn id(&self) -> &LaneId {
        &self.lane_id
    }

    fn streams(&self) -> Option<Streams> {
        let mut device = self.shared.device.lock();
        let [upload, compute, _] = device.lane(self.id).streams;
        Some(match upload == compute {
            true => Streams::PerSlot,
            false => Streams::PerStage,
        })
    }

    fn is_quiet(&self) -> bool {
        let mut device = self.shared.device.lock();
        let share = device.lane(self.id);
        let (is_seen, given) = (share.gone.is_none(), share.given.clone());
        let mut given = given.into_iter().flatten();
        is_seen && given.all(|(epoch, _)| device.host.covers(epoch))
    }

    fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    fn addresses(&self, buffer: BufferId) -> Addresses {
        self.buffers[buffer.index()]
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.look(buffer, false);
        self.views.bytes(buffer)
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        assert!(buffers.is_sorted(), "buffers ascend");
        buffers.iter().for_each(|buffer| self.look(*buffer, true));
        self.views.bytes_mut(buffers)
    }

    fn adopt(&mut self, block: &Block) -> Result<()> {
        block.check_home(self.shared.home)?;
        let adopted = (block.address(), block.clone());
        self.enter(|device, _, lane| device.lane(lane).adopted.extend([adopted]));
        Ok(())
    }

    fn disown(&mut self, block: &Block) {
        let address = block.address();
        self.enter(|device, _, lane| device.lane(lane).adopted.remove(&address));
    }

    unsafe fn enqueue(&mut self, queue: Queue, op: &Op) -> Result<()> {
        self.enter(|device, views, lane| {
            device.check_lost()?;
            let step = device.resolve(lane, op);
            if let Some(capture) = device.lane(lane).capture.as_mut() {
                match step {
                    Ok(step) => capture.steps.push(step),
                    // The graph would lack it.
                    Err(error) => {
                        capture.invalid.get_or_insert(refused_in_capture());
                        return Err(error);
                    }
                }
                let called = device.call(Call::GraphEdit);
                if let (Err(error), Some(capture)) = (&called, device.lane(lane).capture.as_mut()) {
                    capture.invalid.get_or_insert(error.clone());
                }
                return called;
            }
            let step = step?;
            device.call(Call::Submission)?;
            device.count_submission(lane)?;
            let mut single = Graph::new(vec![step], Order::Line);
            let touches = device.submit(lane, queue, &mut single)?;
            views.poison(&device.memory, &touches);
            Ok(())
        })
    }

    fn join(&mut self, earlier: Queue, later: Queue) -> Result<()> {
        self.enter(|device, _, lane| {
            let share = device.lane(lane);
            if share.stream(earlier) == share.stream(later) {
                return device.check_lost();
            }
            device.forbid_in_own_capture(lane, "a join")?;
            // An event's record, and a stream's wait for it.
            device.call(Call::Submission)?;
            device.call(Call::Submission)?;
            device.count_submission(lane)?;
            device.join(lane, earlier, later);
            Ok(())
        })
    }

    fn begin_capture(&mut self) -> Result<()> {
        self.call(Call::GraphEdit, |device, _, lane| {
            device.forbid_in_own_capture(lane, "a capture was begun")?;
            device.lane(lane).capture = Some(Capture {
                steps: Vec::new(),
                thread: std::thread::current().id(),
                invalid: None,
            });
            Ok(())
        })
    }

    fn end_capture(&mut self, into: Option<GraphId>) -> Result<(GraphId, Built)> {
        self.enter(|device, _, lane| device.end_capture(lane, into))
    }

    unsafe fn build_graph(
        &mut self,
        nodes: &[Node<'_>],
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        self.call(Call::GraphEdit, |device, _, lane| {
            let late = |(place, node): (usize, &Node<'_>)| {
                node.after.iter().any(|earlier| *earlier >= place)
            };
            if let Some(node) = nodes.iter().enumerate().position(late) {
                let message = format!("node {node} runs after one that does not come before it");
                return Err(Error::usage(message));
            }
            let steps = nodes.iter().map(|node| device.resolve(lane, node.op));
            let steps = steps.collect::<Result<_>>()?;
            let after = nodes.iter().map(|node| node.after.to_vec()).collect();
            let graph = Graph::new(steps, Order::After(Arc::new(after)));
            device.finish_graph(lane, graph, into)
        })
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        self.call(Call::GraphEdit, |device, _, lane| {
            let step = device.resolve(lane, op)?;
            let refused = device.plan.params();
            let graph = device.graph(lane, graph)?;
            if node >= graph.steps.len() {
                return Err(Error::usage("the graph has no such operation"));
            }
            // Parameters that are refused may be taken over all the same.
            match (graph.set(node, step), refused) {
                (_, Some(error)) => Err(error),
                (true, None) => Ok(()),
                (false, None) => Err(Error::usage("an operation stays of its kind")),
            }
        })
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        let mut device = self.shared.device.lock();
        device.check_lost()?;
        let graph = device.graph(self.id, graph)?;
        Ok(graph.steps.iter().map(|step| step.op.clone()).collect())
    }

    fn drop_graph(&mut self, graph: GraphId) {
        self.enter(|device, _, lane| {
            device.calls.add(Call::GraphEdit);
            device.lane(lane).graphs.remove(&graph);
        });
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        self.call(Call::Submission, |device, views, lane| {
            device.forbid_in_own_capture(lane, "a graph was launched")?;
            device.count_submission(lane)?;
            let mut launched = device.graph(lane, graph)?.clone();
            device.check_adopted(lane, &launched)?;
            let touches = device.submit(lane, Queue::Compute, &mut launched)?;
            // With what was found out about it.
            *device.graph(lane, graph)? = launched;
            views.poison(&device.memory, &touches);
            Ok(())
        })
    }

    fn fence(&mut self) -> Result<()> {
        self.call(Call::Submission, |device, _, lane| {
            device.forbid_in_own_capture(lane, "a mark was set")?;
            device.count_submission(lane)?;
            device.mark(lane);
            Ok(())
        })
    }

    fn is_done(&mut self) -> Result<bool> {
        self.call(Call::Poll, |device, views, lane| {
            device.forbid_in_own_capture(lane, "the lane was asked whether it is done")?;
            device.check_gone(lane)?;
            let done = !device.plan.is_captured_elsewhere() && device.is_marked(lane);
            if done {
                device.see_mark(lane);
                views.refresh(&device.memory);
            }
            Ok(done)
        })
    }

    fn wait(&mut self) -> Result<()> {
        self.call(Call::Poll, |device, views, lane| {
            device.forbid_in_own_capture(lane, "a wait")?;
            device.check_gone(lane)?;
            device.run_to_mark(lane)?;
            device.see_mark(lane);
            views.refresh(&device.memory);
            Ok(())
        })
    }

    fn abandon(&mut self, error: &Error) {
        self.shared.device.lock().lose(error.clone());
    }

    fn stamps(&self) -> Result<Stamps> {
        let mut device = self.shared.device.lock();
        device.calls.add(Call::Timing);
        device.check_lost()?;
        Ok(device.lane(self.id).stamps)
    }
}

impl Drop for SimLane {
    fn drop(&mut self) {
        let lane = self.id;
        let mut device = self.shared.device.lock();
        self.views.publish(&mut device.memory);
        device.close(lane);
        device.bury();
    }
}
