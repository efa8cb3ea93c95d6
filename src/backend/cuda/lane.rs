//! One slot's share of the device: its queues, its graphs, its memory.

use super::blocks::{Blocks, Use};
use super::capture::Capture;
use super::context::Context;
use super::graph::{Draft, Graph, Template};
use super::module::Functions;
use super::queues::{Queues, StreamSet};
use super::rights::{self, Checked};
use super::share::Share;
use super::stamps::Stamps;
use super::stream::Stream;
use crate::backend::graphs::Graphs;
use crate::backend::{
    self, Addresses, Block, Built, Call, GraphId, HostViews, Lane, LaneId, Node, Op, Queue, Streams,
};
use crate::error::{Error, Result};
use crate::record::BufferId;
use std::borrow::Cow;
use std::sync::Arc;

/// A lane of the CUDA backend.
pub(super) struct CudaLane {
    id: LaneId,
    // Fields drop in this order, after `drop` has waited for the streams: what
    // work may still use goes after what starts work.
    graphs: Graphs<Graph>,
    queues: Queues,
    /// Where captures happen: the lane's own stream in any case, since a capture
    /// on a shared one would take down what other lanes give.
    capture_stream: Arc<Stream>,
    capture: Option<Capture>,
    /// With the leases on those that work in flight uses.
    blocks: Blocks,
    share: Share,
    /// The events that graphs and streams record.
    stamps: Stamps,
    functions: Arc<Functions>,
    context: Arc<Context>,
}

impl CudaLane {
    pub(super) fn open(
        stamps: Stamps,
        functions: &Arc<Functions>,
        share: Share,
        streams: StreamSet,
        blocking_wait: bool,
    ) -> Result<CudaLane> {
        let context = Arc::clone(stamps.context());
        let queues = Queues::new(&context, streams, blocking_wait)?;
        let capture_stream = match queues.are_shared() {
            true => Arc::new(Stream::new(&context)?),
            false => Arc::clone(queues.stream(Queue::Compute)),
        };
        let mut lane = CudaLane {
            id: LaneId::new(context.id),
            graphs: Graphs::new(),
            queues,
            capture_stream,
            capture: None,
            blocks: Blocks::default(),
            share,
            stamps,
            functions: Arc::clone(functions),
            context,
        };
        let zero = Op::Memset {
            device: lane.share.device_start(),
            byte: 0,
            bytes: lane.share.device_bytes(),
        };
        // SAFETY: the memset is of the lane's own device memory, and waited for here.
        unsafe { lane.enqueue(Queue::Compute, &zero)? };
        lane.queues.synchronize()?;
        Ok(lane)
    }

    fn check<'a>(&self, op: &'a Op) -> Result<Checked<'a>> {
        let (share, blocks) = (&self.share, &self.blocks);
        rights::check(op, share, blocks, &self.functions, &self.stamps)
    }

    fn assert_quiet(&self) {
        assert!(
            self.queues.are_quiet(),
            "host memory is touched while the lane works: join the queues into the download \
             queue, mark the work with fence, then wait"
        );
    }

    fn refuse_in_capture(&self, what: &str) -> Result<()> {
        match self.capture {
            Some(_) => Err(Error::usage(format!("{what} during a capture"))),
            None => Ok(()),
        }
    }

    /// Gives the leases back once nothing is in flight.
    fn settle(&mut self) {
        if self.queues.are_quiet() {
            self.blocks.release();
        }
    }

    /// Makes a graph of `draft`, or gives it to the graph `into`.
    fn finish(&mut self, draft: Draft, into: Option<GraphId>) -> Result<(GraphId, Built)> {
        let Some(id) = into else {
            let graph = Graph::new(draft)?;
            return Ok((self.graphs.insert(graph), Built::Instantiated));
        };
        let built = self.graphs.get_mut(id)?.take(draft)?;
        Ok((id, built))
    }
}

/// Holds the blocks of work that is about to be given. What a refusal leaves is
/// given back with the rest.
fn lease(blocks: &mut Blocks, queues: &mut Queues, uses: &[Use]) -> Result<()> {
    let leased = blocks.lease(uses, || queues.synchronize());
    if leased.is_err() && queues.are_quiet() {
        blocks.release();
    }
    leased
}

// SAFETY: buffers lie in the lane's own part of the arenas, where the layout has them, and
// `share` gives host memory out only while nothing of the lane is in flight.
unsafe impl Lane for CudaLane {
    fn id(&self) -> &LaneId {
        &self.id
    }

    fn streams(&self) -> Option<Streams> {
        Some(match self.queues.are_shared() {
            true => Streams::PerStage,
            false => Streams::PerSlot,
        })
    }

    fn is_quiet(&self) -> bool {
        self.queues.are_quiet()
    }

    fn buffer_count(&self) -> usize {
        self.share.buffer_count()
    }

    fn addresses(&self, buffer: BufferId) -> Addresses {
        self.share.addresses(buffer)
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.assert_quiet();
        // SAFETY: the assert above: nothing is in flight on this lane, and other
        // lanes are refused addresses that are not their own.
        unsafe { self.share.host(buffer) }
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        self.assert_quiet();
        // SAFETY: as for `host`.
        unsafe { self.share.host_mut(buffers) }
    }

    fn adopt(&mut self, block: &Block) -> Result<()> {
        block.check_home(self.context.home)?;
        self.blocks.adopt(block);
        Ok(())
    }

    fn disown(&mut self, block: &Block) {
        self.blocks.disown(block);
    }

    unsafe fn enqueue(&mut self, queue: Queue, op: &Op) -> Result<()> {
        let _outer = self.context.enter();
        self.stamps.make_for(op)?;
        let checked = self.check(op);
        if let Some(capture) = &mut self.capture {
            return capture.take(&self.capture_stream, checked);
        }
        let checked = checked?;
        lease(&mut self.blocks, &mut self.queues, checked.uses())?;
        let stream = self.queues.give(queue);
        // SAFETY: the work was counted as given. Until it is seen done, the
        // leases above stay in `blocks` (`settle`), the host side is out of
        // reach (`assert_quiet`), and `drop` waits for it before the share goes.
        unsafe { checked.submit(stream, Call::Submission) }
    }

    fn join(&mut self, earlier: Queue, later: Queue) -> Result<()> {
        let _outer = self.context.enter();
        // A capture is one line of operations, whatever their queues.
        match self.capture {
            Some(_) => Ok(()),
            None => self.queues.join(earlier, later),
        }
    }

    fn begin_capture(&mut self) -> Result<()> {
        self.refuse_in_capture("a capture was begun")?;
        self.capture = Some(Capture::begin(&self.capture_stream)?);
        Ok(())
    }

    fn end_capture(&mut self, into: Option<GraphId>) -> Result<(GraphId, Built)> {
        let _outer = self.context.enter();
        let capture = self.capture.take();
        let capture = capture.ok_or_else(|| Error::usage("no capture is in progress"))?;
        let draft = capture.end(&self.capture_stream)?;
        self.finish(draft, into)
    }

    unsafe fn build_graph(
        &mut self,
        nodes: &[Node<'_>],
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        self.refuse_in_capture("a graph was built")?;
        let _outer = self.context.enter();
        nodes
            .iter()
            .try_for_each(|node| self.stamps.make_for(node.op))?;
        let checked = nodes.iter().map(|node| {
            let checked = self.check(node.op)?;
            checked.check_node()?;
            Ok(checked)
        });
        let checked: Vec<Checked<'_>> = checked.collect::<Result<_>>()?;
        let draft = Draft {
            template: Template::by_hand(&self.context, nodes, &checked)?,
            captured: false,
            parts: checked.into_iter().map(Checked::into_uses).collect(),
        };
        self.finish(draft, into)
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        self.refuse_in_capture("a graph was changed")?;
        let _outer = self.context.enter();
        self.stamps.make_for(op)?;
        let checked = self.check(op)?;
        checked.check_node()?;
        self.graphs.get_mut(graph)?.set(node, checked)
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        let _outer = self.context.enter();
        self.graphs.get(graph)?.ops(&self.functions, &self.stamps)
    }

    fn drop_graph(&mut self, graph: GraphId) {
        let _outer = self.context.enter();
        self.graphs.remove(graph);
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        self.refuse_in_capture("a graph was launched")?;
        let graph = self.graphs.get_mut(graph)?;
        let mut uses = Cow::Borrowed(graph.uses());
        if !self.blocks.adopted().is_empty() && self.functions.follow_device_pointers() {
            // Blocks may have been adopted since the graph was made.
            self.blocks.add_adopted(uses.to_mut());
        }
        lease(&mut self.blocks, &mut self.queues, &uses)?;
        let stream = self.queues.give(Queue::Compute);
        // SAFETY: as for `enqueue`.
        unsafe { graph.launch(stream) }
    }

    fn fence(&mut self) -> Result<()> {
        self.refuse_in_capture("a fence was set")?;
        self.queues.fence()
    }

    fn is_done(&mut self) -> Result<bool> {
        self.refuse_in_capture("the work was asked for")?;
        let done = self.queues.is_done()?;
        self.settle();
        Ok(done)
    }

    fn wait(&mut self) -> Result<()> {
        self.refuse_in_capture("the work was waited for")?;
        self.queues.wait()?;
        self.settle();
        Ok(())
    }

    fn abandon(&mut self, error: &Error) {
        self.context.lose(error);
    }

    fn stamps(&self) -> Result<backend::Stamps> {
        self.refuse_in_capture("the stamps were asked for")?;
        let _outer = self.context.enter();
        self.stamps.read()
    }
}

impl Drop for CudaLane {
    fn drop(&mut self) {
        let _outer = self.context.enter();
        if let Some(capture) = self.capture.take() {
            // The graph is of no use; ending the capture frees the stream.
            drop(capture.end(&self.capture_stream));
        }
        // Refused where the context is lost: what has no end is not waited for.
        if let Err(error) = self.queues.synchronize() {
            // Work may be under way for ever. What it may touch or run is leaked: the
            // arenas, the blocks with their leases, the graphs, their events and functions.
            // Nothing is known about other lanes, so their context stays.
            self.share.leak();
            self.blocks.leak();
            self.stamps.leak();
            std::mem::forget(std::mem::replace(&mut self.graphs, Graphs::new()));
            std::mem::forget(Arc::clone(&self.functions));
            tracing::warn!(%error, "a lane's memory is leaked: its work could not be waited for");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile::Compiler;
    use super::super::fake::{self, CAPTURE_UNSUPPORTED, Session};
    use super::super::memory::{DeviceMemory, Pinned};
    use super::super::queues::stream_set;
    use super::super::stamps::Clock;
    use super::*;
    use crate::backend::{CudaOptions, Layout, Space, Streams};
    use crate::record::{Access, BufferDecl};

    fn lane(context: &Arc<Context>) -> Result<CudaLane> {
        let layout = Layout::new(&[] as &[BufferDecl]).unwrap();
        let pinned = Pinned::zeroed(context, 64)?;
        let device = DeviceMemory::new(context, 64)?;
        let share = Share::cut(layout, pinned, device, 1).next().unwrap();
        let compiler = Compiler::new(&CudaOptions::default(), 0);
        let functions = Arc::new(Functions::new(context, compiler));
        let streams = stream_set(context, Streams::PerSlot)?;
        let clock = Arc::<Clock>::default();
        let stamps = Stamps::new(context, &clock);
        CudaLane::open(stamps, &functions, share, streams, false)
    }

    #[test]
    fn a_lane_is_opened_and_dropped_while_another_thread_captures() {
        let session = Session::new();
        fake::state(|state| state.captures_elsewhere = true);
        let context = session.context();
        let lane = lane(&context).unwrap();
        drop((lane, context));
        let (live, retained) = fake::state(|state| (state.memory.len(), state.retained));
        assert_eq!((live, retained), (0, 0));
        assert!(!fake::state(|state| state.invalidated));
    }

    fn block(context: &Arc<Context>) -> Block {
        let copier = super::super::copy::Copier::new(context).unwrap();
        copier.allocate(Space::Device, 64).unwrap()
    }

    fn zero(block: &Block) -> Op {
        Op::Memset {
            device: block.address(),
            byte: 0,
            bytes: 64,
        }
    }

    #[test]
    fn a_lane_that_is_dropped_in_a_capture_by_another_thread_ends_it() {
        let session = Session::new();
        let context = session.context();
        let mut lane = lane(&context).unwrap();
        lane.begin_capture().unwrap();
        std::thread::spawn(move || drop(lane)).join().unwrap();
        assert!(fake::state(|state| state.capture.is_none()));
        assert_eq!(
            fake::state(|state| state.memory.len()),
            0,
            "it was waited for"
        );
    }

    #[test]
    fn a_graph_that_refused_new_parameters_may_use_their_blocks_all_the_same() {
        let session = Session::new();
        let context = session.context();
        let (old, new) = (block(&context), block(&context));
        let mut lane = lane(&context).unwrap();
        let mut build = |block: &Block, into| {
            lane.adopt(block).unwrap();
            let (op, after) = (zero(block), &[]);
            // SAFETY: the memset is of a block that the lane adopted.
            let built = unsafe { lane.build_graph(&[Node { op: &op, after }], into) };
            lane.disown(block);
            built
        };
        let (graph, _) = build(&old, None).unwrap();
        // An exec whose update failed may hold parameters of either.
        fake::state(|state| state.update_returns = (910, 5));
        assert_eq!(build(&new, Some(graph)).unwrap_err().code(), Some(910));
        lane.launch_graph(graph).unwrap();
        for block in [&old, &new] {
            assert!(block.lease(Access::Read).is_err(), "the launch holds both");
        }
        lane.fence().unwrap();
        lane.wait().unwrap();
        assert!(new.lease(Access::Read).is_ok());
    }

    #[test]
    fn a_lane_that_cannot_wait_leaks_what_its_work_may_touch_and_keeps_the_context() {
        let session = Session::new();
        let context = session.context();
        let block = block(&context);
        let mut first = lane(&context).unwrap();
        first.adopt(&block).unwrap();
        // SAFETY: the memset is of a block that the lane adopted.
        unsafe { first.enqueue(Queue::Compute, &zero(&block)) }.unwrap();
        fake::state(|state| state.waits_return = CAPTURE_UNSUPPORTED);
        drop(first);
        fake::state(|state| state.waits_return = 0);
        assert!(!context.is_lost());
        assert_eq!(
            fake::state(|state| state.memory.len()),
            3,
            "nothing is freed"
        );
        assert!(block.lease(Access::Read).is_err());
        drop(lane(&context).unwrap());
        assert_eq!(
            fake::state(|state| state.memory.len()),
            3,
            "the next one is"
        );
    }
}
