//! Runs a worker process.

use super::addresses::{Map, WorkerAllocations};
use super::arena::{Arena, CompletionFlags};
use super::ipc::Link;
use super::message::{KernelDecl, Request, SlotCall, Spec, WorkerDevice, WorkerReply};
use super::polling::poll_slots;
use super::served_slot::{Posted, ServedGraph, ServedSlot, ServedState, unknown_id_error};
use crate::backend::select::{Builtin, open_builtin};
use crate::backend::{
    Backend, Built, Compilation, FunctionId, GraphId, KernelCache, Layout, NvrtcLibrary, Op,
    Priority, Space, crate_threads, host_ns,
};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{BufferDecl, Image, Kernel, Twin, TwinCode};
use crossbeam_channel::{Sender, bounded, unbounded};
use rayon::{ThreadPool, ThreadPoolBuilder};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Signal, getpid, kill_process};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tapeloop_error::internal::{catch, stack_bytes, thread, thread_error};

/// The time between two reports of a compilation: far below the supervisor's time limit for a reply.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Runs a worker for the process that started this one, until that process closes the connection.
/// Standard input is empty from then on.
///
/// # Errors
/// [`ErrorKind::Usage`] for two twins of one name, and if standard input is not connected to a
/// process; [`ErrorKind::Io`] if the connection fails. Errors of the device go to the other
/// process.
///
/// # Safety
/// Standard input is the one that this program was started with, and a
/// [`WorkerBackend`](super::WorkerBackend) started it: the other end names code that runs here, and
/// memory.
pub unsafe fn serve<N: AsRef<str>>(twins: &[(N, Twin)]) -> Result<()> {
    let mut by_name = BTreeMap::new();
    for (name, twin) in twins {
        if by_name.insert(name.as_ref(), *twin).is_some() {
            let name = name.as_ref();
            return Err(Error::usage(format!("kernel {name} was given two twins")));
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
    // A twin that reads standard input, or a program that it starts, must not take requests.
    let nothing = File::open("/dev/null").map_err(Error::io)?;
    rustix::stdio::dup2_stdin(nothing).map_err(|errno| Error::io(errno.into()))?;
    let watched = socket.as_fd().try_clone_to_owned().map_err(Error::io)?;
    let mut link = Link::new(socket);
    let Some(Request::Open {
        choice,
        mut cuda,
        nvrtc,
        kernel_cache,
        threads,
    }) = link.receive()?
    else {
        return Err(Error::usage("the first request opens a device"));
    };
    // SAFETY: the process that started this one vouched for the library.
    cuda.nvrtc = nvrtc.map(|path| unsafe { NvrtcLibrary::new(path) });
    // SAFETY: it vouched for the folder too.
    cuda.kernel_cache = kernel_cache.map(|path| unsafe { KernelCache::new(path) });
    let pool = match die_with(watched).and_then(|()| start_pool(threads)) {
        Ok(pool) => Arc::new(pool),
        Err(error) => return link.send(&WorkerReply::Opened(Err(error))),
    };
    let (builtin, reason) = match open_builtin(choice, &pool, &cuda) {
        Ok(opened) => opened,
        Err(error) => return link.send(&WorkerReply::Opened(Err(error))),
    };
    let backend = builtin.shared();
    let opened = WorkerDevice::new(backend.device(), reason);
    link.send(&WorkerReply::Opened(Ok(opened)))?;
    let mut worker = Worker {
        builtin,
        backend,
        twins: by_name,
        images: Vec::new(),
        kernels: Vec::new(),
        allocations: WorkerAllocations::default(),
        slots: BTreeMap::new(),
        poller: None,
        threads: Vec::new(),
    };
    while let Some(request) = link.receive()? {
        match request {
            Request::Close => break,
            Request::OpenSlots {
                buffers,
                slots,
                priority,
            } => {
                let files = (link.receive_file()?, link.receive_file()?);
                let opened = worker.open_slots(&buffers, &slots, priority, files);
                link.send(&WorkerReply::Done(opened))?;
            }
            Request::Fill {
                address,
                offset,
                bytes,
            } => {
                let contents = link.receive_file()?;
                let filled = worker.fill(address, offset, bytes, contents);
                link.send(&WorkerReply::Done(filled))?;
            }
            Request::Prepare { first } => worker.prepare(first, &mut link)?,
            request => {
                if let Some(reply) = worker.handle(request) {
                    link.send(&reply)?;
                }
            }
        }
    }
    let threads = worker.close();
    for thread in threads {
        // A poller that panicked has printed why, and the process ends.
        let _ = thread.join();
    }
    Ok(())
}

/// Runs `compile` on a thread of its own, and replies with its outcome. Until then it reports
/// progress every [`REPORT_EVERY`], so that the supervisor's read does not time out. It reports
/// none while nothing compiles, as when a driver call hangs: then the read may time out. A panic of
/// `compile`, or a thread that cannot be started, is the outcome. The error is that of the link.
fn compile_and_report(
    compile: impl FnOnce() -> Result<()> + Send,
    progress: impl Fn() -> Compilation,
    link: &mut Link,
) -> Result<()> {
    std::thread::scope(|scope| {
        let (sender, outcome) = bounded(1);
        let run = move || {
            let outcome = catch(compile).unwrap_or_else(|panic| {
                let message = format!("compiling the kernels panicked: {panic}");
                Err(Error::new(ErrorKind::Kernel, message))
            });
            // This function may have returned, as the supervisor's end is closed.
            let _ = sender.send(outcome);
        };
        if let Err(error) = thread("tapeloop-compile").spawn_scoped(scope, run) {
            return link.send(&WorkerReply::Done(Err(thread_error(error))));
        }
        let outcome = loop {
            // The thread sends before it drops its sender, so an error means that it still compiles.
            if let Ok(outcome) = outcome.recv_timeout(REPORT_EVERY) {
                break outcome;
            }
            let compilation = progress();
            if compilation.done < compilation.images {
                link.send(&WorkerReply::Compiling(compilation))?;
            }
        };
        link.send(&WorkerReply::Compiling(progress()))?;
        link.send(&WorkerReply::Done(outcome))
    })
}

fn start_pool(threads: usize) -> Result<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads);
    pool.stack_size(stack_bytes()).build().map_err(thread_error)
}

/// Ends this process when the other end closes the connection, whatever runs here: a kernel without
/// end must not hold the device. [`thread_error`] if the thread that watches it cannot be started.
fn die_with(socket: OwnedFd) -> Result<()> {
    let watch = move || {
        if wait_for_close(&socket) {
            // No process is refused to kill itself.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    };
    let started = thread("tapeloop-watch").spawn(watch);
    started.map(drop).map_err(thread_error)
}

/// Waits until the other end closes the connection. Returns false if the socket cannot be watched.
fn wait_for_close(socket: &OwnedFd) -> bool {
    let closed = PollFlags::HUP | PollFlags::ERR;
    let mut ends = [PollFd::new(socket, PollFlags::empty())];
    loop {
        // A handler of the program's signals may run on this thread and interrupt the call.
        if retry_on_intr(|| poll(&mut ends, None)).is_err() {
            return false;
        }
        if ends[0].revents().intersects(closed) {
            return true;
        }
    }
}

/// An open slot, and the thread that polls it.
struct PolledSlot {
    slot: Arc<ServedSlot>,
    poller: Poller,
}

/// Sends busy slots to a polling thread, which ends when the last sender is dropped and all work is
/// over.
type Poller = Sender<Arc<ServedSlot>>;

struct Worker<'a> {
    builtin: Builtin,
    backend: Arc<dyn Backend>,
    twins: BTreeMap<&'a str, Twin>,
    images: Vec<Arc<Image>>,
    kernels: Vec<(Kernel, FunctionId)>,
    allocations: WorkerAllocations,
    slots: BTreeMap<u32, PolledSlot>,
    /// The poller of all slots, if polling does not compute.
    poller: Option<Poller>,
    threads: Vec<JoinHandle<()>>,
}

impl Worker<'_> {
    /// Does what a request asks for, and returns the reply; `None` for requests that the supervisor
    /// does not wait for. Errors of work are reported with the slot's next fence.
    fn handle(&mut self, request: Request) -> Option<WorkerReply> {
        Some(match request {
            Request::Image(image) => {
                self.images.push(image);
                return None;
            }
            Request::Load(decl) => WorkerReply::Done(self.load(decl)),
            Request::Allocate { address, bytes } => {
                WorkerReply::Done(self.allocate(address, bytes))
            }
            Request::Free { address } => {
                if let Some(allocation) = self.allocations.0.remove(&address) {
                    self.post_to_all(|| Posted::Disown(allocation.clone()));
                }
                return None;
            }
            Request::CloseSlot { slot } => {
                self.slots.remove(&slot);
                WorkerReply::Done(Ok(()))
            }
            Request::Build { slot, graph, spec } => {
                WorkerReply::Built(self.build(slot, graph, spec))
            }
            Request::SetParams {
                slot,
                graph,
                node,
                op,
            } => WorkerReply::Done(self.set_params(slot, graph, node, op)),
            Request::GraphOps { slot, graph } => WorkerReply::Ops(self.graph_ops(slot, graph)),
            Request::DropGraph { slot, graph } => {
                if let Some(entry) = self.slots.get(&slot) {
                    entry.slot.post(Posted::DropGraph(graph));
                }
                return None;
            }
            Request::Work { slot, steps, fence } => {
                self.work(slot, steps, fence);
                return None;
            }
            Request::TakeError { slot } => {
                // The reply is an error in any case: that of the slot, or that there is no such slot.
                let error = self.served(slot).map(ServedSlot::take_error);
                WorkerReply::Done(Err(error.unwrap_or_else(|error| error)))
            }
            Request::Occupancy(function) => WorkerReply::Occupancy(
                (self
                    .kernels
                    .get(function.0 as usize)
                    .ok_or_else(unknown_id_error))
                .and_then(|(kernel, here)| self.backend.occupancy(kernel, *here)),
            ),
            Request::Timestamps { slot } => {
                let timestamps = self.served(slot);
                let timestamps = timestamps.and_then(|served| served.lock().slot.timestamps());
                WorkerReply::Timestamps(timestamps, host_ns(Instant::now()))
            }
            Request::Calls => WorkerReply::Calls(self.backend.driver_calls()),
            Request::Open { .. }
            | Request::OpenSlots { .. }
            | Request::Fill { .. }
            | Request::Prepare { .. }
            | Request::Close => WorkerReply::Done(Err(Error::usage(
                "the supervisor sent a request that is only valid while the device opens",
            ))),
        })
    }

    /// Compiles the images from `first` on, and replies with reports of progress and the outcome.
    fn prepare(&self, first: usize, link: &mut Link) -> Result<()> {
        let images = self.images.get(first..).unwrap_or_default();
        let backend = &*self.backend;
        compile_and_report(|| backend.prepare(images), || backend.compilation(), link)
    }

    /// Loads a kernel that the supervisor declared, and appends it to `kernels`, whose index is its
    /// id there.
    fn load(&mut self, decl: KernelDecl) -> Result<()> {
        let image = match decl.image {
            Some(place) => Some(self.images.get(place).ok_or_else(unknown_id_error)?),
            None => None,
        };
        let mut kernel = decl.kernel();
        kernel.twin = self
            .twins
            .get(kernel.name())
            .copied()
            .map(TwinCode::Function);
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

    fn allocate(&mut self, address: u64, bytes: usize) -> Result<()> {
        let allocation = self.backend.allocate(Space::Device, bytes)?;
        self.post_to_all(|| Posted::Adopt(allocation.clone()));
        self.allocations.0.insert(address, allocation);
        Ok(())
    }

    /// Copies the contents of a shared file into an allocation.
    fn fill(&self, address: u64, offset: usize, bytes: usize, contents: OwnedFd) -> Result<()> {
        let contents = Arena::of_file(contents, bytes)?.cut([bytes]);
        let allocation = self
            .allocations
            .0
            .get(&address)
            .ok_or_else(unknown_id_error)?;
        self.backend
            .write(contents[0].as_slice(), allocation, offset)
    }

    fn post_to_all(&self, posted: impl Fn() -> Posted) {
        let slots = self.slots.values();
        slots.for_each(|entry| entry.slot.post(posted()));
    }

    /// Opens slots over the host memory and the completion flags that the supervisor shares, each
    /// with its poller. Numbers are `None` for slots of a group that were closed before this worker
    /// was started, whose memory keeps its place. [`ErrorKind::Usage`] if their sizes overflow.
    fn open_slots(
        &mut self,
        buffers: &[BufferDecl],
        numbers: &[Option<u32>],
        priority: Priority,
        (host, flags): (OwnedFd, OwnedFd),
    ) -> Result<()> {
        let layout = Layout::new(buffers);
        let sums = layout.and_then(|layout| {
            let bytes = layout.host_bytes.checked_mul(numbers.len())?;
            Some((layout, bytes))
        });
        let (layout, bytes) = sums.ok_or_else(|| {
            Error::usage("the buffers of all slots are larger than the address space")
        })?;
        let host = Arena::of_file(host, bytes)?;
        let flags = Arc::new(CompletionFlags::of_file(flags, numbers.len())?);
        let slots = self
            .builtin
            .open_slots_over(buffers, numbers.len(), priority, host)?;
        for (index, (&number, mut slot)) in numbers.iter().zip(slots).enumerate() {
            // The slot was closed before this worker was started.
            let Some(number) = number else { continue };
            for allocation in self.allocations.0.values() {
                slot.adopt(allocation)?;
            }
            let map = Map::new(number, layout.clone(), &*slot);
            let slot = Arc::new(ServedSlot::new(slot, map, Arc::clone(&flags), index));
            let poller = self.poller()?;
            self.slots.insert(number, PolledSlot { slot, poller });
        }
        Ok(())
    }

    /// The poller of a new slot. Slots that compute when they are polled have a thread each, so
    /// that no slot waits for the computation of another. [`thread_error`] if a thread cannot be
    /// started.
    fn poller(&mut self) -> Result<Poller> {
        if let Some(poller) = &self.poller {
            return Ok(poller.clone());
        }
        let (poller, arrivals) = unbounded();
        let thread = thread("tapeloop-polls")
            .spawn(move || {
                crate_threads::register();
                poll_slots(&arrivals);
            })
            .map_err(thread_error)?;
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(thread);
        if !self.builtin.computes_when_asked() {
            self.poller = Some(poller.clone());
        }
        Ok(poller)
    }

    /// Closes all slots. The threads that poll end when work in flight has ended.
    fn close(self) -> Vec<JoinHandle<()>> {
        self.threads
    }

    fn served(&self, slot: u32) -> Result<&ServedSlot> {
        let entry = self.slots.get(&slot).ok_or_else(unknown_id_error)?;
        Ok(&entry.slot)
    }

    /// The operation with the names of this process.
    fn op(&self, map: &Map, op: &Op) -> Result<Op> {
        let mut known = None;
        if let Op::Launch { function, .. } = op {
            known = Some(
                self.kernels
                    .get(function.0 as usize)
                    .ok_or_else(unknown_id_error)?,
            );
        }
        let mut op = map.op(op, known.map(|(kernel, _)| kernel), &self.allocations)?;
        if let (Op::Launch { function, .. }, Some((_, here))) = (&mut op, known) {
            *function = *here;
        }
        Ok(op)
    }

    /// Makes a graph, or changes the graph of this id, and keeps the operations under the ids and
    /// addresses of both processes.
    fn build(&self, slot: u32, graph: GraphId, spec: Spec) -> Result<Built> {
        let served = self.served(slot)?;
        let ops = spec.ops.iter().map(|op| self.op(&served.map, op));
        let ops: Vec<Op> = ops.collect::<Result<_>>()?;
        let mut state = served.lock();
        let ServedState { slot, graphs, .. } = &mut *state;
        let into = graphs.get(&graph.0).map(|held| held.graph);
        let (here, built) = spec.with_ops(&ops, |source| {
            // SAFETY: the process that started this one gave the operations and their edges to
            // its slot, so code there vouched for them; `Map::op` put this slot's addresses in.
            unsafe { slot.make_graph(source, into) }
        })?;
        let held = ServedGraph {
            spec,
            ops,
            graph: here,
        };
        graphs.insert(graph.0, held);
        Ok(built)
    }

    /// Changes the parameters of a node, here and in the operations that are kept of it.
    fn set_params(&self, slot: u32, graph: GraphId, node: usize, op: Op) -> Result<()> {
        let served = self.served(slot)?;
        let op_here = self.op(&served.map, &op)?;
        let mut state = served.lock();
        let ServedState { slot, graphs, .. } = &mut *state;
        let held = graphs.get_mut(&graph.0).ok_or_else(unknown_id_error)?;
        let (Some(held_op), Some(held_op_here)) =
            (held.spec.ops.get_mut(node), held.ops.get_mut(node))
        else {
            return Err(unknown_id_error());
        };
        // SAFETY: as for `build`, where the graph came from.
        unsafe { slot.set_params(held.graph, node, &op_here)? };
        (*held_op, *held_op_here) = (op, op_here);
        Ok(())
    }

    /// The operations of a graph, with the names of the other process.
    fn graph_ops(&self, slot: u32, graph: GraphId) -> Result<Vec<Op>> {
        let state = self.served(slot)?.lock();
        let held = state.graphs.get(&graph.0).ok_or_else(unknown_id_error)?;
        let found = state.slot.graph_ops(held.graph)?.into_iter();
        // An operation that is as requested gets its original names; any other is foreign there.
        let named = found
            .enumerate()
            .map(|(node, op)| match held.ops.get(node) {
                Some(known) if *known == op => held.spec.ops[node].clone(),
                _ => op,
            });
        Ok(named.collect())
    }

    /// Posts work to a slot, and wakes its poller. Work for a slot that was closed is dropped.
    fn work(&self, number: u32, steps: Vec<SlotCall>, fence: u32) {
        let Some(entry) = self.slots.get(&number) else {
            return;
        };
        let with_addresses_here = |step| match step {
            SlotCall::Op(op) => Ok(SlotCall::Op(self.op(&entry.slot.map, &op)?)),
            step => Ok(step),
        };
        let steps = steps.into_iter().map(with_addresses_here).collect();
        entry.slot.post(Posted::Work { steps, fence });
        // A slot that refused the work is asked too, so that it reports the refusal.
        // A poller ends only with the worker, or after a panic, which was printed.
        let _ = entry.poller.send(Arc::clone(&entry.slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_compiler_is_reported() {
        let (near, far) = UnixStream::pair().unwrap();
        let (mut link, mut supervisor) = (Link::new(near), Link::new(far));
        compile_and_report(|| panic!("made up"), Compilation::default, &mut link).unwrap();
        assert!(matches!(
            supervisor.receive().unwrap(),
            Some(WorkerReply::Compiling(_))
        ));
        let Some(WorkerReply::Done(Err(error))) = supervisor.receive().unwrap() else {
            panic!("the outcome is an error");
        };
        assert_eq!(error.kind(), ErrorKind::Kernel);
        assert_eq!(error.message(), "compiling the kernels panicked: made up");
    }

    #[test]
    fn a_signal_that_the_program_handles_does_not_end_the_watch() {
        extern "C" fn handle(_: libc::c_int) {}
        // SAFETY: the handler does nothing, and no other test uses the signal.
        unsafe { libc::signal(libc::SIGUSR2, handle as *const () as libc::sighandler_t) };
        let (near, far) = UnixStream::pair().unwrap();
        let (sender, started) = bounded(1);
        let watch = std::thread::spawn(move || {
            // SAFETY: it has no preconditions.
            sender.send(unsafe { libc::pthread_self() }).unwrap();
            wait_for_close(&near.into())
        });
        let thread = started.recv().unwrap();
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(5));
            // SAFETY: the thread has not been joined.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
        }
        assert!(!watch.is_finished());
        drop(far);
        assert!(watch.join().unwrap());
    }
}
