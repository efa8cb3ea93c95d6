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
    self, Addresses, Block, Built, Call, GraphId, HostViews, Lane, LaneId, Node, Op, Queue,
};
use crate::error::{Error, Result};
use crate::record::BufferId;
use std::sync::Arc;

/// A lane of the CUDA backend. A capture is begun and ended in one thread.
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
        if let Some(capture) = &self.capture {
            capture.check_thread()?;
        }
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
        self.stamps.make_for(op)?;
        let checked = self.check(op)?;
        checked.check_node()?;
        self.graphs.get_mut(graph)?.set(node, checked)
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        self.graphs.get(graph)?.ops(&self.functions, &self.stamps)
    }

    fn drop_graph(&mut self, graph: GraphId) {
        self.graphs.remove(graph);
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        self.refuse_in_capture("a graph was launched")?;
        let graph = self.graphs.get_mut(graph)?;
        lease(&mut self.blocks, &mut self.queues, graph.uses())?;
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
        self.stamps.read()
    }
}

impl Drop for CudaLane {
    fn drop(&mut self) {
        if let Some(capture) = self.capture.take() {
            // The graph is of no use; ending the capture frees the stream.
            drop(capture.end(&self.capture_stream));
        }
        // Refused where the context is lost: what has no end is not waited for.
        if let Err(error) = self.queues.synchronize() {
            // Work may be under way for ever; the memory of lanes and of blocks
            // that it may touch is leaked, and the blocks' leases with it.
            self.context.lose(&error);
            self.blocks.leak();
            tracing::warn!(%error, "a lane was dropped while the device cannot be used");
        }
    }
}
