//! The worker's side.

use super::addresses::Map;
use super::arena::{Arena, Marks};
use super::link::Link;
use super::message::{KernelDecl, Opened, Reply, Request, Spec, Step};
use crate::backend::{
    Backend, Built, FunctionId, GraphId, Lane, Layout, Node, Op, Queue, Streams, host_ns,
    select_with,
};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{BufferDecl, Image, Kernel, Twin};
use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, getpid, kill_process};
use rustix::thread::futex;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;
use std::time::Instant;

/// Runs a worker for the process that started this one, until that is done with it.
/// `twins` are those that a CPU backend runs, by the names of their kernels, each of
/// which comes once.
///
/// # Errors
/// [`ErrorKind::Usage`] for two twins of one name, and where no process is at the
/// other end; what the link to that process says. A device's errors go there.
pub fn serve<N: AsRef<str>>(twins: &[(N, Twin)]) -> Result<()> {
    let mut by_name = BTreeMap::new();
    for (name, twin) in twins {
        if by_name.insert(name.as_ref(), *twin).is_some() {
            let name = name.as_ref();
            return Err(Error::usage(format!(
                "two twins are of a kernel named {name}"
            )));
        }
    }
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let socket = UnixStream::from(socket.map_err(Error::io)?);
    if socket.peer_addr().is_err() {
        return Err(
            Error::usage("a worker is started by another process, over a socket")
                .fix("set supervise = true, and leave starting workers to it"),
        );
    }
    die_with(socket.as_fd().try_clone_to_owned().map_err(Error::io)?);
    let mut link = Link::new(socket);
    let Some(Request::Open {
        choice,
        cuda,
        threads,
    }) = link.receive()?
    else {
        return Err(Error::usage("the first request opens a device"));
    };
    let marks = Marks::new(Arena::of_file(link.receive_file()?, Marks::BYTES)?);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = Arc::new(pool.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?);
    let selected = match select_with(choice, &pool, &cuda) {
        Ok(selected) => selected,
        Err(error) => return link.send(&Reply::Opened(Err(error))),
    };
    let opened = Opened::new(selected.backend.device(), selected.reason);
    link.send(&Reply::Opened(Ok(opened)))?;
    let (waiting, waited) = unbounded();
    let waiter = std::thread::Builder::new()
        .name("tapeloop-marks".to_owned())
        .spawn(move || wait_for_marks(&marks, &waited))
        .map_err(Error::io)?;
    let mut worker = Worker {
        backend: selected.backend,
        twins: by_name,
        images: Vec::new(),
        kernels: Vec::new(),
        lanes: BTreeMap::new(),
        waiting,
    };
    while let Some(request) = link.receive()? {
        match request {
            Request::Close => break,
            Request::OpenLanes {
                buffers,
                lanes,
                streams,
            } => {
                let file = link.receive_file()?;
                let opened = worker.open_lanes(&buffers, &lanes, streams, file);
                link.send(&Reply::Done(opened))?;
            }
            request => {
                if let Some(reply) = worker.handle(request) {
                    link.send(&reply)?;
                }
            }
        }
    }
    drop(worker);
    let _ = waiter.join();
    Ok(())
}

/// Ends this process when the other end of its link is gone, whatever it is doing: a
/// kernel without end must not hold the device.
fn die_with(socket: OwnedFd) {
    let watch = move || {
        let mut ends = [PollFd::new(&socket, PollFlags::empty())];
        while poll(&mut ends, None).is_ok() {
            if ends[0]
                .revents()
                .intersects(PollFlags::HUP | PollFlags::ERR)
            {
                let _ = kill_process(getpid(), Signal::KILL);
            }
        }
    };
    let _ = std::thread::Builder::new()
        .name("tapeloop-watch".to_owned())
        .spawn(watch);
}

/// A lane with what is known of it by the other process's names.
struct Served {
    state: Arc<Mutex<State>>,
    map: Map,
}

/// Locked while the device is waited for: a lane takes nothing meanwhile.
struct State {
    lane: Box<dyn Lane>,
    graphs: BTreeMap<u32, Held>,
    error: Option<Error>,
}

/// A graph: as it was asked for, and its operations and name here.
struct Held {
    spec: Spec,
    ops: Vec<Op>,
    graph: GraphId,
}

/// A lane, its number, and the mark that it is to reach.
type Awaited = (Arc<Mutex<State>>, u32, u32);

/// Sets the marks of lanes as they are reached.
fn wait_for_marks(marks: &Marks, waited: &Receiver<Awaited>) {
    while let Ok((state, lane, mark)) = waited.recv() {
        let mut state = state.lock();
        let done = state.error.is_none() && {
            let waited = state.lane.wait();
            state.error = waited.err();
            state.error.is_none()
        };
        drop(state);
        let word = marks.lane(lane);
        match done {
            true => word.done.store(mark, Release),
            false => word.failed.store(1, Release),
        }
        wake(marks, lane);
    }
}

fn wake(marks: &Marks, lane: u32) {
    // There may be nobody to wake.
    let _ = futex::wake(&marks.lane(lane).done, futex::Flags::empty(), u32::MAX);
}

struct Worker<'a> {
    backend: Arc<dyn Backend>,
    twins: BTreeMap<&'a str, Twin>,
    images: Vec<Arc<Image>>,
    kernels: Vec<(Kernel, FunctionId)>,
    lanes: BTreeMap<u32, Served>,
    waiting: Sender<Awaited>,
}

impl Worker<'_> {
    fn handle(&mut self, request: Request) -> Option<Reply> {
        Some(match request {
            Request::Image(image) => {
                self.images.push(image);
                return None;
            }
            Request::Load(decl) => Reply::Done(self.load(decl)),
            Request::CloseLane { lane } => {
                self.lanes.remove(&lane);
                Reply::Done(Ok(()))
            }
            Request::Build { lane, graph, spec } => Reply::Built(self.build(lane, graph, spec)),
            Request::SetParams {
                lane,
                graph,
                node,
                op,
            } => Reply::Done(self.set_params(lane, graph, node, op)),
            Request::GraphOps { lane, graph } => Reply::Ops(self.graph_ops(lane, graph)),
            Request::DropGraph { lane, graph } => {
                if let Some(served) = self.lanes.get(&lane) {
                    let mut state = served.state.lock();
                    if let Some(held) = state.graphs.remove(&graph.0) {
                        state.lane.drop_graph(held.graph);
                    }
                }
                return None;
            }
            Request::Work { lane, steps, mark } => {
                self.work(lane, &steps, mark);
                return None;
            }
            Request::Why { lane } => {
                let error = self
                    .lanes
                    .get(&lane)
                    .and_then(|it| it.state.lock().error.clone());
                Reply::Done(Err(error.unwrap_or_else(unknown)))
            }
            Request::Occupancy(function) => Reply::Occupancy(
                (self.kernels.get(function.0 as usize).ok_or_else(unknown))
                    .and_then(|(kernel, here)| self.backend.occupancy(kernel, *here)),
            ),
            Request::Stamps { lane } => {
                let stamps = self.served(lane);
                let stamps = stamps.and_then(|served| served.state.lock().lane.stamps());
                Reply::Stamps(stamps, host_ns(Instant::now()))
            }
            Request::Calls => Reply::Calls(self.backend.driver_calls()),
            Request::Open { .. } | Request::OpenLanes { .. } | Request::Close => {
                Reply::Done(Err(Error::usage("a request out of its turn")))
            }
        })
    }

    fn load(&mut self, decl: KernelDecl) -> Result<()> {
        let image = match decl.image {
            Some(place) => Some(self.images.get(place).ok_or_else(unknown)?),
            None => None,
        };
        let mut kernel = decl.kernel();
        kernel.twin = self.twins.get(kernel.name()).copied();
        if let Some(image) = image {
            // SAFETY: the process that started this one has the kernel with this code,
            // so code there vouched for it; only the launches that were recorded there
            // are made of it here.
            kernel = unsafe { kernel.code(image) };
        }
        let function = self.backend.load(&kernel)?;
        self.kernels.push((kernel, function));
        Ok(())
    }

    fn open_lanes(
        &mut self,
        buffers: &[BufferDecl],
        numbers: &[u32],
        streams: Streams,
        file: OwnedFd,
    ) -> Result<()> {
        let layout = Layout::new(buffers);
        let layout = layout.ok_or_else(|| Error::usage("buffers without a layout"))?;
        let host = Arena::of_file(file, layout.host_bytes * numbers.len())?;
        let lanes = self
            .backend
            .open_lanes_over(buffers, numbers.len(), streams, host)?;
        for (&number, lane) in numbers.iter().zip(lanes) {
            let map = Map::new(number, layout.clone(), &*lane);
            let state = Arc::new(Mutex::new(State {
                lane,
                graphs: BTreeMap::new(),
                error: None,
            }));
            self.lanes.insert(number, Served { state, map });
        }
        Ok(())
    }

    fn served(&self, lane: u32) -> Result<&Served> {
        self.lanes.get(&lane).ok_or_else(unknown)
    }

    /// The operation by the names of this process.
    fn op(&self, map: &Map, op: &Op) -> Result<Op> {
        let mut known = None;
        if let Op::Launch { function, .. } = op {
            known = Some(self.kernels.get(function.0 as usize).ok_or_else(unknown)?);
        }
        let mut op = map.op(op, known.map(|(kernel, _)| kernel))?;
        if let (Op::Launch { function, .. }, Some((_, here))) = (&mut op, known) {
            *function = *here;
        }
        Ok(op)
    }

    fn build(&self, lane: u32, graph: GraphId, spec: Spec) -> Result<Built> {
        let served = self.served(lane)?;
        let ops = spec.ops.iter().map(|op| self.op(&served.map, op));
        let ops: Vec<Op> = ops.collect::<Result<_>>()?;
        let mut state = served.state.lock();
        let State { lane, graphs, .. } = &mut *state;
        let into = graphs.get(&graph.0).map(|held| held.graph);
        let (here, built) = match &spec.after {
            None => {
                lane.begin_capture()?;
                let given = ops.iter().try_for_each(|op| {
                    // SAFETY: the process that started this one gave the operation to
                    // its lane, so code there vouched for it; `Map::op` put this lane's
                    // addresses in.
                    unsafe { lane.enqueue(Queue::Compute, op) }
                });
                let ended = lane.end_capture(into);
                given.and(ended)?
            }
            Some(after) => {
                let nodes = ops.iter().zip(after);
                let nodes: Vec<Node<'_>> = nodes.map(|(op, after)| Node { op, after }).collect();
                // SAFETY: as above, and the edges are those of that process.
                unsafe { lane.build_graph(&nodes, into)? }
            }
        };
        let held = Held {
            spec,
            ops,
            graph: here,
        };
        graphs.insert(graph.0, held);
        Ok(built)
    }

    fn set_params(&self, lane: u32, graph: GraphId, node: usize, op: Op) -> Result<()> {
        let served = self.served(lane)?;
        let here = self.op(&served.map, &op)?;
        let mut state = served.state.lock();
        let State { lane, graphs, .. } = &mut *state;
        let held = graphs.get_mut(&graph.0).ok_or_else(unknown)?;
        // SAFETY: as for `build`, where the graph came from.
        unsafe { lane.set_params(held.graph, node, &here)? };
        (held.spec.ops[node], held.ops[node]) = (op, here);
        Ok(())
    }

    /// What the device holds, by the names of the other process.
    fn graph_ops(&self, lane: u32, graph: GraphId) -> Result<Vec<Op>> {
        let state = self.served(lane)?.state.lock();
        let held = state.graphs.get(&graph.0).ok_or_else(unknown)?;
        let found = state.lane.graph_ops(held.graph)?.into_iter();
        // What is as it was asked for has its names; all else is foreign there.
        let named = found
            .enumerate()
            .map(|(node, op)| match held.ops.get(node) {
                Some(known) if *known == op => held.spec.ops[node].clone(),
                _ => op,
            });
        Ok(named.collect())
    }

    fn work(&self, number: u32, steps: &[Step], mark: u32) {
        let Some(served) = self.lanes.get(&number) else {
            return;
        };
        let mut state = served.state.lock();
        if let Err(error) = self.give(served, &mut state, steps) {
            state.error.get_or_insert(error);
        }
        drop(state);
        // Also of a lane that failed, which is then told.
        let _ = self.waiting.send((Arc::clone(&served.state), number, mark));
    }

    fn give(&self, served: &Served, state: &mut State, steps: &[Step]) -> Result<()> {
        for step in steps {
            match step {
                Step::Op(queue, op) => {
                    let op = self.op(&served.map, op)?;
                    // SAFETY: as for `build`.
                    unsafe { state.lane.enqueue(*queue, &op)? };
                }
                Step::Graph(graph) => {
                    let held = state.graphs.get(&graph.0).ok_or_else(unknown)?;
                    state.lane.launch_graph(held.graph)?;
                }
                Step::Join(earlier, later) => state.lane.join(*earlier, *later)?,
            }
        }
        state.lane.fence()
    }
}

fn unknown() -> Error {
    Error::usage("the worker was not told of this")
}
