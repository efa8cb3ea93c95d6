//! Supervises the worker process: starts it, sends requests, and starts it again after a loss.

mod allocations;
mod kernels;

use super::arena::CompletionFlag;
use super::ipc::Link;
use super::message::{Request, Spec, WorkerDevice, WorkerReply};
use super::process::{END_TIMEOUT, Fate, Workers};
use super::restart_state::{RestartState, SlotGroup};
use super::{WorkerOptions, unexpected_reply_error};
use crate::backend::fork::Process;
use crate::backend::{Built, Compilation, GraphId, Op};
use crate::error::{Context, Error, ErrorKind, ErrorScope, Result};
use parking_lot::{Mutex, MutexGuard};
use std::io::{self, stderr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time limit for a reply while the worker opens its device, which takes about a second, and
/// while kernels are loaded again.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit for later replies. A worker that takes longer is lost: its driver hangs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit for a worker to end after it was asked to close; then it is killed, since the engine's
/// drop waits for it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of times that the first worker is started if another process kills each before it has opened
/// its device: a system that kills all of them must not keep the program starting. Later starts count
/// towards the engine's limit.
const FIRST_STARTS_MAX: u32 = 3;

pub(super) struct Supervisor {
    options: WorkerOptions,
    core: Mutex<SupervisorCore>,
    /// Outside of `core`, so that a worker that does not answer can be killed.
    workers: Workers,
    /// The worker is a child of this process.
    process: Process,
    /// What earlier workers and the current one have compiled, as they last reported.
    compilation: Mutex<[Compilation; 2]>,
}

struct SupervisorCore {
    link: Link,
    restart_state: RestartState,
}

impl Supervisor {
    /// Starts the first worker, and waits until its device is open. If another process kills it meanwhile,
    /// the next is started, up to [`FIRST_STARTS_MAX`] in all. One that ends otherwise is not replaced:
    /// most likely it is another program.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for a program that cannot be started or is not a worker, and for one
    /// that ends or is killed while it starts; [`ErrorKind::Io`] if its socket or its output cannot be
    /// made; the error that the worker reports for its device.
    pub(super) fn start(options: WorkerOptions) -> Result<(Arc<Supervisor>, WorkerDevice)> {
        let workers = Workers::new(END_TIMEOUT);
        let restart_state = RestartState::default();
        let mut start = 1;
        let started = loop {
            let started = start_worker(&workers, &options, &restart_state);
            match &started {
                Err(error) if start < FIRST_STARTS_MAX && workers.was_signalled(error) => {
                    tracing::warn!(%error, "the first worker was killed, and is restarted");
                    start += 1;
                    workers.wait_for_end()?;
                }
                _ => break started,
            }
        };
        let (link, opened) = started.map_err(|error| match error.kind() {
            ErrorKind::Worker => Error::new(ErrorKind::Unavailable, error.message())
                .fix(error.fix_text().unwrap_or_default()),
            _ => error,
        })?;
        let supervisor = Supervisor {
            options,
            core: Mutex::new(SupervisorCore {
                link,
                restart_state,
            }),
            workers,
            process: Process::current(),
            compilation: Mutex::default(),
        };
        Ok((Arc::new(supervisor), opened))
    }

    /// Locks the connection.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) in a forked child of the process that started the
    /// worker.
    fn core(&self) -> Result<MutexGuard<'_, SupervisorCore>> {
        self.process.check("the worker process")?;
        Ok(self.core.lock())
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        if !self.process.is_current() {
            return None;
        }
        self.workers.process_id()
    }

    /// The state of the worker of a generation.
    pub(super) fn fate(&self, generation: u64) -> Fate {
        self.workers.fate(generation)
    }

    pub(super) fn generation(&self) -> u64 {
        self.workers.generation()
    }

    /// Kills the worker of a generation.
    pub(super) fn lose(&self, generation: u64, error: &Error) {
        if !self.process.is_current() {
            return;
        }
        self.workers.lose(generation, error);
    }

    /// The cause of the last loss.
    pub(super) fn loss(&self) -> Error {
        self.workers.loss()
    }

    /// Waits until the lost process has ended, after which it writes to no memory.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if it does not end within [`END_TIMEOUT`].
    pub(super) fn wait_for_end(&self) -> Result<()> {
        self.process.check("the worker process")?;
        self.workers.wait_for_end()
    }

    /// Notes the loss of a worker that has ended by itself or is about to: it closes its end of the
    /// connection first. Waits for the end then, as the exit status is the cause of the loss, and
    /// not a deadline that passes meanwhile.
    pub(super) fn check_alive(&self) {
        if !self.process.is_current() {
            return;
        }
        // A thread that uses the connection notices its end.
        if let Some(core) = self.core.try_lock()
            && core.link.is_hung_up()
        {
            self.workers
                .hung_up(self.generation(), &worker_ended_error());
        }
        self.workers.check_alive();
    }

    /// Passes the answer to a call on. If it is an error of the worker's device, the worker is lost.
    pub(super) fn check_answer<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && loses_worker(error)
        {
            self.lose(self.generation(), error);
        }
        result
    }

    /// Sends a slot's work to a worker. Returns the worker's generation. `flag` is the slot's, and
    /// `last` the worker that got its work before, of which some may be in flight.
    ///
    /// # Errors
    /// The loss of the worker. With work in flight a later worker counts as a loss too: the work
    /// was lost.
    pub(super) fn send_work(
        &self,
        work: &Request,
        last: u64,
        is_in_flight: bool,
        flag: &CompletionFlag,
    ) -> Result<u64> {
        let mut core = self.core()?;
        let generation = self.check_worker(is_in_flight.then_some(last))?;
        if generation != last {
            // The earlier worker may have announced a failure after its work was seen over.
            flag.clear_failure();
        }
        let sent = core.link.send(work);
        self.check_link(&core.link, sent)?;
        Ok(generation)
    }

    /// The generation of the worker that takes requests, which must be `worker` if given. The core
    /// is locked, so no other worker can start. The loss of the worker, if it is lost or is another
    /// one by now.
    fn check_worker(&self, worker: Option<u64>) -> Result<u64> {
        self.workers.check()?;
        let generation = self.generation();
        if worker.is_some_and(|worker| worker != generation) {
            Err(self.workers.loss())
        } else {
            Ok(generation)
        }
    }

    /// Sends a request and waits for its reply, with the core locked.
    pub(super) fn ask(&self, request: &Request) -> Result<WorkerReply> {
        self.exchange(&mut *self.core()?, request)
    }

    /// Asks the worker of this generation, and waits for its reply.
    ///
    /// # Errors
    /// The loss of that worker, also if another one has started since.
    pub(super) fn ask_worker(&self, request: &Request, worker: u64) -> Result<WorkerReply> {
        let mut core = self.core()?;
        self.check_worker(Some(worker))?;
        self.exchange(&mut core, request)
    }

    /// Sends a request and waits for its reply. An error of the connection loses the worker.
    ///
    /// # Errors
    /// The loss of the worker.
    fn exchange(&self, core: &mut SupervisorCore, request: &Request) -> Result<WorkerReply> {
        self.workers.check()?;
        let reply = core
            .link
            .send(request)
            .and_then(|()| answer(&mut core.link));
        self.check_link(&core.link, reply)
    }

    /// Passes the result of a use of the connection on. If it is an error, the worker counts as lost, and
    /// the first recorded cause of the loss is returned.
    fn check_link<T>(&self, link: &Link, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            if link.is_hung_up() {
                self.workers.hung_up(self.generation(), &error)
            } else {
                self.lose(self.generation(), &error)
            }
            self.workers.check().err().unwrap_or(error)
        })
    }

    /// Opens the slots of a group, whose numbers it fills in and returns. Waits for the worker.
    pub(super) fn open_slots(&self, mut group: SlotGroup, count: usize) -> Result<Vec<u32>> {
        let mut core = self.core()?;
        let numbers = core.restart_state.free_slots(count)?;
        group.slots = numbers.iter().copied().map(Some).collect();
        self.workers.check()?;
        let opened = group.open(&mut core.link);
        self.check_answer(self.check_link(&core.link, opened)?)?;
        core.restart_state.add(group);
        Ok(numbers)
    }

    /// Closes a slot in the worker, for which it waits, and frees allocations that only its graphs
    /// used.
    pub(super) fn close_slot(&self, slot: u32) {
        let Ok(mut core) = self.core() else { return };
        core.restart_state.remove_slot(slot);
        // A lost worker has closed it too.
        let _ = self.exchange(&mut core, &Request::CloseSlot { slot });
        self.free_unused(&mut core);
    }

    /// Has the worker make a graph, or change `into`, waits for it, and keeps `spec` for a restart. Frees allocations that
    /// only the changed graph used. After an error the graph is as it was.
    pub(super) fn build(
        &self,
        slot: u32,
        spec: Spec,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        let mut core = self.core()?;
        let graphs = core.restart_state.graphs(slot);
        let graph = match into {
            Some(graph) => graphs.get(graph).map(|_| graph)?,
            None => GraphId::unique(),
        };
        let request = Request::Build {
            slot,
            graph,
            spec: spec.clone(),
        };
        let built = match self.exchange(&mut core, &request)? {
            WorkerReply::Built(built) => self.check_answer(built)?,
            _ => return Err(self.lose_garbled()),
        };
        let graphs = core.restart_state.graphs(slot);
        match into {
            Some(graph) => {
                *graphs.get_mut(graph)? = spec;
                self.free_unused(&mut core);
            }
            None => graphs.insert_as(graph, spec),
        }
        Ok((graph, built))
    }

    /// Has the worker change the parameters of a node, waits for it, and keeps them for a restart. Frees allocations that
    /// only the node used. After an error the node is as it was.
    pub(super) fn set_params(&self, slot: u32, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        let mut core = self.core()?;
        let known = core.restart_state.graphs(slot).get(graph)?;
        if node >= known.ops.len() {
            return Err(no_node(node));
        }
        let request = Request::SetParams {
            slot,
            graph,
            node,
            op: op.clone(),
        };
        match self.exchange(&mut core, &request)? {
            WorkerReply::Done(set) => self.check_answer(set)?,
            _ => return Err(self.lose_garbled()),
        }
        // In range: checked above, and the lock was held since.
        let known = core.restart_state.graphs(slot).get_mut(graph)?;
        known.ops[node] = op.clone();
        self.free_unused(&mut core);
        Ok(())
    }

    /// Drops a graph, and frees allocations that only it used. Sends the worker a request, and does
    /// not wait for it.
    pub(super) fn drop_graph(&self, slot: u32, graph: GraphId) {
        let Ok(mut core) = self.core() else { return };
        core.restart_state.graphs(slot).remove(graph);
        if self.workers.check().is_ok() {
            let sent = core.link.send(&Request::DropGraph { slot, graph });
            // A lost worker has dropped it too.
            let _ = self.check_link(&core.link, sent);
        }
        self.free_unused(&mut core);
    }

    /// Loses a worker whose reply does not match the request: later replies would not either.
    pub(super) fn lose_garbled(&self) -> Error {
        let error = unexpected_reply_error();
        self.lose(self.generation(), &error);
        error
    }

    /// Starts another worker in place of a lost one. Returns whether it had to. Waits until the old process
    /// has ended, and the new one has opened its device.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if the old process does not end, [`ErrorKind::Worker`]
    /// if the new one ends while it starts, and what else kept it from starting. It may
    /// be tried again.
    pub(super) fn revive(&self) -> Result<bool> {
        let mut core = self.core()?;
        if !self.workers.is_lost() {
            return Ok(false);
        }
        let start = Instant::now();
        // The old worker might still write to memory that is used again.
        self.workers.wait_for_end()?;
        let started = start_worker(&self.workers, &self.options, &core.restart_state);
        let (link, _) = started.within(|| "restarting the worker")?;
        let earlier = self.compilation();
        *self.compilation.lock() = [earlier, Compilation::default()];
        core.link = link;
        let seconds = start.elapsed().as_secs_f64();
        tracing::info!(seconds, "restarted the worker");
        Ok(true)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // The worker is the parent's.
        if !self.process.is_current() {
            return;
        }
        if !self.workers.is_lost() {
            let link = &mut self.core.get_mut().link;
            // A worker that does not read its requests is killed, like one that does not end.
            let bounded = link.socket().set_write_timeout(Some(CLOSE_TIMEOUT));
            if bounded.is_ok() {
                let _ = link.send(&Request::Close);
            }
        }
        self.workers.close(CLOSE_TIMEOUT);
    }
}

/// Whether this error of a call loses the worker's device. Other errors leave the device as it was.
fn loses_worker(error: &Error) -> bool {
    error.scope() == ErrorScope::Device
}

fn no_node(node: usize) -> Error {
    Error::usage(format!("the graph has no operation {node}"))
}

/// The next answer.
pub(super) fn answer(link: &mut Link) -> Result<WorkerReply> {
    let reply = link.receive()?;
    reply.ok_or_else(worker_ended_error)
}

fn worker_ended_error() -> Error {
    Error::new(ErrorKind::Device, "the worker process ended")
}

/// Starts a worker, which opens its device, and sends it the restart state. A worker that fails on
/// the way is ended.
fn start_worker(
    workers: &Workers,
    options: &WorkerOptions,
    restart_state: &RestartState,
) -> Result<(Link, WorkerDevice)> {
    let (child, mut link) = spawn(options)?;
    workers.note_started(Box::new(child));
    let opened = open(&mut link, options, restart_state);
    let opened = opened.map_err(|error| workers.did_not_open(error, link.is_hung_up()))?;
    workers.note_opened();
    Ok((link, opened))
}

/// The variable by which a process knows that it was started as a worker: the process that did so.
const WORKER_OF: &str = "TAPELOOP_WORKER_OF";

/// Refuses a process that was started as a worker, and starts one in place of serving: that one
/// would do the same, without end.
fn check_serves() -> Result<()> {
    let parent = std::os::unix::process::parent_id().to_string();
    if std::env::var(WORKER_OF).is_ok_and(|worker_of| worker_of == parent) {
        Err(
            Error::usage("a process that was started as a worker starts one itself").fix(
                "call worker::serve before anything else where the program gets `args` and `env`",
            ),
        )
    } else {
        Ok(())
    }
}

/// Starts a worker process with one end of a socket as its standard input. Returns the process and
/// the other end. [`ErrorKind::Unavailable`] if no process can be started; [`ErrorKind::Io`] if its
/// socket or its output cannot be made.
fn spawn(options: &WorkerOptions) -> Result<(Child, Link)> {
    check_serves()?;
    let (here, there) = UnixStream::pair().map_err(Error::io)?;
    let program = match &options.program {
        Some(program) => program.path().to_owned(),
        None => std::env::current_exe().map_err(Error::io)?,
    };
    let log = stderr().as_fd().try_clone_to_owned().map_err(Error::io)?;
    let child = Command::new(&program)
        .args(&options.args)
        .envs(options.env.0.iter().map(|(name, value)| (name, value)))
        .env(WORKER_OF, std::process::id().to_string())
        .stdin(Stdio::from(OwnedFd::from(there)))
        // The output of kernels must not mix with the output of the program.
        .stdout(Stdio::from(log))
        // Ctrl-C is for the engine's process, which ends its worker in order.
        .process_group(0)
        .spawn();
    let child = child.map_err(|error| {
        let message = format!("{} cannot be started: {error}", program.display());
        let fix = match error.kind() {
            // The system has no room for another process.
            io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
                "raise the limit of processes (ulimit -u, or pids.max of a container) or of memory"
            }
            _ => "name the program that runs workers, such as tapeloop itself",
        };
        Error::new(ErrorKind::Unavailable, message).fix(fix)
    })?;
    Ok((child, Link::new(here)))
}

/// Has a new worker open the device, and brings it to the state of the one before: images, kernels,
/// memory, slots and graphs. Waits for the device up to [`OPEN_TIMEOUT`], and sets the timeout of
/// later requests. The errors are those of the link, of the device, and of the replay.
fn open(
    link: &mut Link,
    options: &WorkerOptions,
    restart_state: &RestartState,
) -> Result<WorkerDevice> {
    let limit = |link: &Link, timeout| {
        let socket = link.socket();
        let limited = socket.set_read_timeout(timeout);
        limited.and_then(|()| socket.set_write_timeout(timeout))
    };
    limit(link, Some(OPEN_TIMEOUT)).map_err(Error::io)?;
    link.send(&Request::Open {
        choice: options.choice,
        cuda: options.cuda.clone(),
        nvrtc: options
            .cuda
            .nvrtc
            .as_ref()
            .map(|library| library.path().to_owned()),
        kernel_cache: (options.cuda.kernel_cache.as_ref()).map(|cache| cache.path().to_owned()),
        threads: options.threads,
    })?;
    let opened = match answer(link)? {
        WorkerReply::Opened(opened) => opened?,
        _ => return Err(unexpected_reply_error()),
    };
    restart_state.replay(link)?;
    limit(link, Some(ANSWER_TIMEOUT)).map_err(Error::io)?;
    Ok(opened)
}
