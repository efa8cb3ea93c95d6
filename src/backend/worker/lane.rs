//! A lane whose device is in the worker.

use super::addresses::addresses;
use super::arena::Part;
use super::message::{Reply, Request, Spec, Step};
use super::supervisor::Supervisor;
use super::unexpected;
use crate::backend::{
    Addresses, Block, Built, GraphId, HostViews, Lane, LaneId, Layout, Node, Op, Queue, Stamps,
    host_ns,
};
use crate::error::{Error, ErrorKind, Result};
use crate::record::BufferId;
use rustix::thread::futex;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// How long a wait keeps its core.
const SPUN: Duration = Duration::from_micros(20);
/// How often a wait looks whether the worker lives.
const LOOKED: Duration = Duration::from_millis(5);

pub(super) struct WorkerLane {
    id: LaneId,
    lane: u32,
    layout: Arc<Layout>,
    host: Part,
    /// Given since the last mark.
    steps: Vec<Step>,
    capture: Option<Vec<Op>>,
    /// Marks that were given, and those of them that were seen.
    given: u32,
    seen: u32,
    /// The worker that was given the last mark.
    generation: u64,
    looked_at: Instant,
    supervisor: Arc<Supervisor>,
}

impl WorkerLane {
    pub(super) fn new(
        id: LaneId,
        lane: u32,
        layout: Arc<Layout>,
        host: Part,
        supervisor: Arc<Supervisor>,
    ) -> WorkerLane {
        // Whoever had the number before left its last mark.
        let given = supervisor.mark(lane).done.load(Acquire);
        WorkerLane {
            id,
            lane,
            layout,
            host,
            steps: Vec::new(),
            capture: None,
            given,
            seen: given,
            generation: 0,
            looked_at: Instant::now(),
            supervisor,
        }
    }

    fn assert_quiet(&self) {
        assert!(
            self.steps.is_empty() && self.seen == self.given,
            "host memory is touched while the lane works: mark the work with fence, then wait"
        );
    }

    fn refuse_in_capture(&self, what: &str) -> Result<()> {
        match self.capture {
            Some(_) => Err(Error::usage(format!("{what} during a capture"))),
            None => Ok(()),
        }
    }

    /// Whether the last mark is reached. What was lost is told once.
    fn look(&mut self) -> Result<bool> {
        self.refuse_in_capture("the work was asked for")?;
        if self.seen == self.given {
            return Ok(true);
        }
        let mark = self.supervisor.mark(self.lane);
        if mark.done.load(Acquire) == self.given {
            self.seen = self.given;
            return Ok(true);
        }
        let mut state = self.supervisor.check(self.generation);
        if state.is_ok() && mark.failed.load(Acquire) != 0 {
            state = Err(self.why());
        }
        if state.is_ok() && self.looked_at.elapsed() > LOOKED {
            self.looked_at = Instant::now();
            state = self.supervisor.check_alive();
        }
        if state.is_err() {
            self.seen = self.given;
        }
        state.map(|()| false)
    }

    fn why(&self) -> Error {
        let error = match self.supervisor.ask(&Request::Why { lane: self.lane }) {
            Ok(Reply::Done(Err(error))) => error,
            Ok(_) => unexpected(),
            Err(error) => error,
        };
        self.supervisor.lose(&error);
        error
    }

    /// Waits until `until`, without end if there is none; whether it is done.
    fn wait_until(&mut self, until: Option<Instant>) -> Result<bool> {
        let start = Instant::now();
        loop {
            let reached = self.supervisor.mark(self.lane).done.load(Acquire);
            if self.look()? {
                return Ok(true);
            }
            let now = Instant::now();
            let left = until.map_or(LOOKED, |until| until.saturating_duration_since(now));
            if left.is_zero() {
                return Ok(false);
            }
            if now - start < SPUN {
                std::hint::spin_loop();
                continue;
            }
            let left = left.min(LOOKED).as_nanos();
            let timeout = futex::Timespec {
                tv_sec: 0,
                tv_nsec: left as i64,
            };
            let word = &self.supervisor.mark(self.lane).done;
            // Woken, out of time or too late: the next look tells.
            let _ = futex::wait(word, futex::Flags::empty(), reached, Some(&timeout));
        }
    }

    fn build(&mut self, spec: Spec, into: Option<GraphId>) -> Result<(GraphId, Built)> {
        self.supervisor.build(self.lane, spec, into)
    }
}

// SAFETY: buffers lie where the layout has them, apart from each other, and `assert_quiet`
// keeps the host out while the lane works.
unsafe impl Lane for WorkerLane {
    fn id(&self) -> &LaneId {
        &self.id
    }

    fn buffer_count(&self) -> usize {
        self.layout.places.len()
    }

    fn addresses(&self, buffer: BufferId) -> Addresses {
        addresses(self.lane, &self.layout, buffer)
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.assert_quiet();
        let place = &self.layout.places[buffer.index()];
        let offset = place.host.expect("the host sees the buffer");
        &self.host.as_slice()[offset..offset + place.bytes]
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        self.assert_quiet();
        let places = &self.layout.places;
        let mut rest = self.host.as_mut_slice();
        let mut cut = 0;
        let view = |buffer: &BufferId| {
            let place = &places[buffer.index()];
            let offset = place.host.expect("the host sees the buffer");
            let skipped = offset.checked_sub(cut).expect("buffers ascend, each once");
            let (_, from) = std::mem::take(&mut rest).split_at_mut(skipped);
            let (view, after) = from.split_at_mut(place.bytes);
            (rest, cut) = (after, offset + place.bytes);
            view
        };
        buffers.iter().map(view).collect()
    }

    fn adopt(&mut self, _: &Block) -> Result<()> {
        Err(no_blocks())
    }

    fn disown(&mut self, _: &Block) {}

    unsafe fn enqueue(&mut self, queue: Queue, op: &Op) -> Result<()> {
        match &mut self.capture {
            Some(ops) => ops.push(op.clone()),
            None => self.steps.push(Step::Op(queue, op.clone())),
        }
        Ok(())
    }

    fn join(&mut self, earlier: Queue, later: Queue) -> Result<()> {
        if self.capture.is_none() {
            self.steps.push(Step::Join(earlier, later));
        }
        Ok(())
    }

    fn begin_capture(&mut self) -> Result<()> {
        self.refuse_in_capture("a capture was begun")?;
        self.capture = Some(Vec::new());
        Ok(())
    }

    fn end_capture(&mut self, into: Option<GraphId>) -> Result<(GraphId, Built)> {
        let ops = self.capture.take();
        let ops = ops.ok_or_else(|| Error::usage("no capture is in progress"))?;
        self.build(Spec { ops, after: None }, into)
    }

    unsafe fn build_graph(
        &mut self,
        nodes: &[Node<'_>],
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        self.refuse_in_capture("a graph was built")?;
        let spec = Spec {
            ops: nodes.iter().map(|node| node.op.clone()).collect(),
            after: Some(nodes.iter().map(|node| node.after.to_vec()).collect()),
        };
        self.build(spec, into)
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        self.refuse_in_capture("a graph was changed")?;
        self.supervisor.set_params(self.lane, graph, node, op)
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        let lane = self.lane;
        match self.supervisor.ask(&Request::GraphOps { lane, graph })? {
            Reply::Ops(ops) => ops,
            _ => Err(unexpected()),
        }
    }

    fn drop_graph(&mut self, graph: GraphId) {
        self.supervisor.drop_graph(self.lane, graph);
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        self.refuse_in_capture("a graph was launched")?;
        self.steps.push(Step::Graph(graph));
        Ok(())
    }

    fn fence(&mut self) -> Result<()> {
        self.refuse_in_capture("a fence was set")?;
        let mark = self.given.wrapping_add(1);
        let mut work = Request::Work {
            lane: self.lane,
            steps: std::mem::take(&mut self.steps),
            mark,
        };
        let told = self.supervisor.tell(&work);
        if let Request::Work { steps, .. } = &mut work {
            steps.clear();
            self.steps = std::mem::take(steps);
        }
        self.generation = told?;
        self.given = mark;
        self.looked_at = Instant::now();
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool> {
        self.look()
    }

    fn wait(&mut self) -> Result<()> {
        self.wait_until(None).map(|_| ())
    }

    fn wait_for(&mut self, timeout: Duration) -> Result<bool> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn stamps(&self) -> Result<Stamps> {
        let asked = Instant::now();
        let reply = self.supervisor.ask(&Request::Stamps { lane: self.lane })?;
        let Reply::Stamps(stamps, there_ns) = reply else {
            return Err(unexpected());
        };
        // The worker told its time between the question and now.
        let here_ns = host_ns(asked + asked.elapsed() / 2);
        let here = |ns: u64| (here_ns + ns).saturating_sub(there_ns);
        Ok(stamps?.map(|stamp| stamp.map(here)))
    }

    fn abandon(&mut self, error: &Error) {
        self.supervisor.lose(error);
        self.seen = self.given;
    }
}

impl Drop for WorkerLane {
    fn drop(&mut self) {
        self.supervisor.close_lane(self.lane);
    }
}

/// The error of memory that a worker would take with it.
pub(super) fn no_blocks() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "a supervised device has no memory beside its lanes, as that would be lost with its process",
    )
    .fix("use the lanes' buffers, or a device without supervision")
}
