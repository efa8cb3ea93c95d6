//! The worker process as the engine's process sees it: started, told, asked, and
//! started again.

use super::arena::{Arena, LANES_MAX, Mark, Marks};
use super::link::Link;
use super::message::{KernelDecl, Opened, Reply, Request, Spec};
use super::{WorkerOptions, unexpected};
use crate::backend::graphs::Graphs;
use crate::backend::{Built, FunctionId, GraphId, Op, Streams};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::record::{BufferDecl, Image, Kernel};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::stderr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::{Duration, Instant};

/// A worker that opens a device takes a second or so.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);
/// What a worker that is told to end may take for it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Supervisor {
    options: WorkerOptions,
    marks: Marks,
    core: Mutex<Core>,
    /// Apart from `core`, so that a worker that does not answer can be ended.
    process: Mutex<Option<Child>>,
    is_lost: AtomicBool,
    /// Workers so far.
    generation: AtomicU64,
    loss: Mutex<Option<Error>>,
}

struct Core {
    link: Link,
    ledger: Ledger,
}

/// What a new worker has to be told.
#[derive(Default)]
struct Ledger {
    images: Vec<Arc<Image>>,
    kernels: Vec<KernelDecl>,
    groups: Vec<Group>,
    lanes: BTreeMap<u32, Graphs<Spec>>,
}

/// Lanes that were opened together.
struct Group {
    buffers: Vec<BufferDecl>,
    lanes: Vec<u32>,
    streams: Streams,
    host: Arc<Arena>,
}

impl Supervisor {
    /// Starts the first worker.
    pub(super) fn start(options: WorkerOptions) -> Result<(Arc<Supervisor>, Opened)> {
        let marks = Marks::new(Arena::new(Marks::BYTES)?);
        let (mut child, mut link) = spawn(&options)?;
        let opened = match open(&mut link, &options, &marks) {
            Ok(opened) => opened,
            Err(error) => return Err(end(&mut child, error)),
        };
        let supervisor = Supervisor {
            options,
            marks,
            core: Mutex::new(Core {
                link,
                ledger: Ledger::default(),
            }),
            process: Mutex::new(Some(child)),
            is_lost: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            loss: Mutex::new(None),
        };
        Ok((Arc::new(supervisor), opened))
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        let is_lost = self.is_lost.load(Acquire);
        let process = self.process.lock();
        process.as_ref().filter(|_| !is_lost).map(Child::id)
    }

    pub(super) fn mark(&self, lane: u32) -> &Mark {
        self.marks.lane(lane)
    }

    /// Whether what was given to a worker of this generation is lost; and why.
    pub(super) fn check(&self, generation: u64) -> Result<()> {
        if self.generation.load(Acquire) == generation && !self.is_lost.load(Acquire) {
            return Ok(());
        }
        let loss = self.loss.lock().clone();
        Err(loss.unwrap_or_else(|| Error::new(ErrorKind::Device, "the worker process was lost")))
    }

    /// Whether there is a worker to talk to; and why not.
    fn check_now(&self) -> Result<()> {
        self.check(self.generation.load(Acquire))
    }

    /// Ends a worker that is of no use any more. The first reason is the one to tell.
    pub(super) fn lose(&self, error: &Error) {
        let mut process = self.process.lock();
        if self.is_lost.load(Acquire) {
            return;
        }
        // The reason first: whoever sees the loss asks for it.
        *self.loss.lock() = Some(error.clone());
        self.is_lost.store(true, Release);
        if let Some(child) = process.as_mut() {
            // One that has ended already is as good.
            let _ = child.kill();
        }
    }

    /// Loses a worker that has ended by itself.
    pub(super) fn check_alive(&self) -> Result<()> {
        let ended = match self.process.lock().as_mut() {
            Some(child) => child.try_wait().map_err(Error::io)?,
            None => None,
        };
        match ended {
            None => Ok(()),
            Some(status) => {
                let message = format!("the worker process ended: {status}");
                let error = Error::new(ErrorKind::Device, message);
                self.lose(&error);
                Err(error)
            }
        }
    }

    /// Passes on an error of the worker, which is lost with most of its device's.
    fn refused<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && loses_worker(error)
        {
            self.lose(error);
        }
        result
    }

    /// Sends what is not answered; returns the generation of who got it.
    pub(super) fn tell(&self, request: &Request) -> Result<u64> {
        let mut core = self.core.lock();
        let generation = self.generation.load(Acquire);
        self.check(generation)?;
        let sent = core.link.send(request);
        self.link(sent)?;
        Ok(generation)
    }

    pub(super) fn ask(&self, request: &Request) -> Result<Reply> {
        self.exchange(&mut self.core.lock(), request)
    }

    fn exchange(&self, core: &mut Core, request: &Request) -> Result<Reply> {
        self.check_now()?;
        let reply = core
            .link
            .send(request)
            .and_then(|()| answer(&mut core.link));
        self.link(reply)
    }

    /// Loses the worker with its link. Who ended it knows better why.
    fn link<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            self.lose(&error);
            self.loss.lock().clone().unwrap_or(error)
        })
    }

    pub(super) fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        let mut core = self.core.lock();
        let images = &core.ledger.images;
        let place = |code: &Arc<Image>| images.iter().position(|known| Arc::ptr_eq(known, code));
        let new = kernel.image.as_ref().filter(|code| place(code).is_none());
        let code = kernel.image.as_ref();
        let image = code.map(|code| place(code).unwrap_or(images.len()));
        let decl = KernelDecl::of(kernel, image);
        if let Some(place) = core.ledger.kernels.iter().position(|known| *known == decl) {
            return Ok(FunctionId(place as u32));
        }
        if let Some(code) = new {
            self.check_now()?;
            let sent = core.link.send(&Request::Image(Arc::clone(code)));
            self.link(sent)?;
            core.ledger.images.push(Arc::clone(code));
        }
        match self.exchange(&mut core, &Request::Load(decl.clone()))? {
            Reply::Done(loaded) => self.refused(loaded)?,
            _ => return Err(unexpected()),
        }
        core.ledger.kernels.push(decl);
        Ok(FunctionId(core.ledger.kernels.len() as u32 - 1))
    }

    /// Opens lanes over `host`, and returns their numbers.
    pub(super) fn open_lanes(
        &self,
        buffers: &[BufferDecl],
        lanes: usize,
        streams: Streams,
        host: Arc<Arena>,
    ) -> Result<Vec<u32>> {
        let mut core = self.core.lock();
        let ledger = &core.ledger;
        let is_free = |lane: &u32| !ledger.lanes.contains_key(lane);
        let numbers: Vec<u32> = (0..LANES_MAX as u32).filter(is_free).take(lanes).collect();
        if numbers.len() < lanes {
            return Err(Error::usage(format!(
                "a worker has at most {LANES_MAX} lanes"
            )));
        }
        let group = Group {
            buffers: buffers.to_vec(),
            lanes: numbers.clone(),
            streams,
            host,
        };
        self.check_now()?;
        let opened = group.open(&mut core.link);
        self.refused(self.link(opened)?)?;
        let graphs = numbers.iter().map(|lane| (*lane, Graphs::new()));
        core.ledger.lanes.extend(graphs);
        core.ledger.groups.push(group);
        Ok(numbers)
    }

    pub(super) fn close_lane(&self, lane: u32) {
        let mut core = self.core.lock();
        core.ledger.lanes.remove(&lane);
        for group in &mut core.ledger.groups {
            group.lanes.retain(|known| *known != lane);
        }
        core.ledger.groups.retain(|group| !group.lanes.is_empty());
        // A worker that is gone has closed it too.
        let _ = self.exchange(&mut core, &Request::CloseLane { lane });
    }

    pub(super) fn build(
        &self,
        lane: u32,
        spec: Spec,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        let mut core = self.core.lock();
        let graphs = core.ledger.graphs(lane);
        let graph = match into {
            Some(graph) => graphs.get(graph).map(|_| graph)?,
            None => graphs.free(),
        };
        let request = Request::Build {
            lane,
            graph,
            spec: spec.clone(),
        };
        let built = match self.exchange(&mut core, &request)? {
            Reply::Built(built) => self.refused(built)?,
            _ => return Err(unexpected()),
        };
        let graphs = core.ledger.graphs(lane);
        match into {
            Some(graph) => *graphs.get_mut(graph)? = spec,
            None => {
                let inserted = graphs.insert(spec);
                debug_assert_eq!(inserted, graph);
            }
        }
        Ok((graph, built))
    }

    pub(super) fn set_params(&self, lane: u32, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        let mut core = self.core.lock();
        let request = Request::SetParams {
            lane,
            graph,
            node,
            op: op.clone(),
        };
        match self.exchange(&mut core, &request)? {
            Reply::Done(set) => self.refused(set)?,
            _ => return Err(unexpected()),
        }
        core.ledger.graphs(lane).get_mut(graph)?.ops[node] = op.clone();
        Ok(())
    }

    pub(super) fn drop_graph(&self, lane: u32, graph: GraphId) {
        let mut core = self.core.lock();
        core.ledger.graphs(lane).remove(graph);
        if self.check_now().is_ok() {
            let sent = core.link.send(&Request::DropGraph { lane, graph });
            // A worker that is gone has dropped it too.
            let _ = self.link(sent);
        }
    }

    /// Starts another worker in place of one that was lost; whether it had to.
    pub(super) fn revive(&self) -> Result<bool> {
        let mut core = self.core.lock();
        if !self.is_lost.load(Acquire) {
            return Ok(false);
        }
        let start = Instant::now();
        // What the old one still wrote would go into memory that is used again.
        if let Some(mut child) = self.process.lock().take() {
            let _ = child.kill();
            child.wait().map_err(Error::io)?;
        }
        let place = || "starting the worker again";
        let (mut child, link) = spawn(&self.options).within(place)?;
        core.link = link;
        let told = open(&mut core.link, &self.options, &self.marks).and_then(|_| {
            let Core { link, ledger } = &mut *core;
            ledger.tell(link, &self.marks)
        });
        if let Err(error) = told {
            return Err(end(&mut child, error).within(place()));
        }
        *self.process.lock() = Some(child);
        self.generation.fetch_add(1, Release);
        self.is_lost.store(false, Release);
        let seconds = start.elapsed().as_secs_f64();
        tracing::info!(seconds, "started the worker again");
        Ok(true)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let Some(mut child) = self.process.lock().take() else {
            return;
        };
        let _ = self.core.lock().link.send(&Request::Close);
        let start = Instant::now();
        while matches!(child.try_wait(), Ok(None)) {
            if start.elapsed() > CLOSE_TIMEOUT || self.is_lost.load(Acquire) {
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Ledger {
    fn graphs(&mut self, lane: u32) -> &mut Graphs<Spec> {
        self.lanes
            .get_mut(&lane)
            .expect("open lanes are in the ledger")
    }

    /// Tells a new worker all of it.
    fn tell(&self, link: &mut Link, marks: &Marks) -> Result<()> {
        for image in &self.images {
            link.send(&Request::Image(Arc::clone(image)))?;
        }
        for kernel in &self.kernels {
            done(link, &Request::Load(kernel.clone()))?;
        }
        for group in &self.groups {
            group.open(link)??;
        }
        for (&lane, graphs) in &self.lanes {
            marks.lane(lane).failed.store(0, Release);
            for (graph, spec) in graphs.iter() {
                let spec = spec.clone();
                link.send(&Request::Build { lane, graph, spec })?;
                match answer(link)? {
                    Reply::Built(built) => built.map(|_| ())?,
                    _ => return Err(unexpected()),
                }
            }
        }
        Ok(())
    }
}

impl Group {
    /// The outer error is the link's, the inner the device's.
    fn open(&self, link: &mut Link) -> Result<Result<()>> {
        link.send(&Request::OpenLanes {
            buffers: self.buffers.clone(),
            lanes: self.lanes.clone(),
            streams: self.streams,
        })?;
        link.send_file(self.host.file())?;
        match answer(link)? {
            Reply::Done(opened) => Ok(opened),
            _ => Err(unexpected()),
        }
    }
}

/// Whether the worker's device is lost with an error: refused captures and
/// parameters leave it as it was.
fn loses_worker(error: &Error) -> bool {
    let is_of_graphs = matches!(error.code(), Some(1 | 900..=999));
    error.kind() == ErrorKind::Device && !is_of_graphs
}

fn answer(link: &mut Link) -> Result<Reply> {
    let reply = link.receive()?;
    reply.ok_or_else(|| Error::new(ErrorKind::Device, "the worker process ended"))
}

fn done(link: &mut Link, request: &impl Serialize) -> Result<()> {
    link.send(request)?;
    match answer(link)? {
        Reply::Done(done) => done,
        _ => Err(unexpected()),
    }
}

fn spawn(options: &WorkerOptions) -> Result<(Child, Link)> {
    let (here, there) = UnixStream::pair().map_err(Error::io)?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(Error::io)?,
    };
    let log = stderr().as_fd().try_clone_to_owned().map_err(Error::io)?;
    let child = Command::new(&program)
        .args(&options.args)
        .envs(options.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(OwnedFd::from(there)))
        // What kernels print must not mix with what the program prints.
        .stdout(Stdio::from(log))
        // Ctrl-C is for the engine's process, which ends its worker in order.
        .process_group(0)
        .spawn();
    let child = child.map_err(|error| {
        let message = format!("{} cannot be started: {error}", program.display());
        Error::new(ErrorKind::Unavailable, message)
            .fix("name the program that runs workers, such as tapeloop itself")
    })?;
    Ok((child, Link::new(here)))
}

fn open(link: &mut Link, options: &WorkerOptions, marks: &Marks) -> Result<Opened> {
    let timeout = |link: &Link, timeout| link.socket().set_read_timeout(timeout);
    timeout(link, Some(OPEN_TIMEOUT)).map_err(Error::io)?;
    link.send(&Request::Open {
        choice: options.choice,
        cuda: options.cuda.clone(),
        threads: options.threads,
    })?;
    link.send_file(marks.arena().file())?;
    let reply = answer(link)?;
    timeout(link, None).map_err(Error::io)?;
    match reply {
        Reply::Opened(opened) => opened,
        _ => Err(unexpected()),
    }
}

/// The error of a worker that did not come up, with how it ended.
fn end(child: &mut Child, error: Error) -> Error {
    if error.kind() != ErrorKind::Device {
        // It said itself what is missing.
        let _ = child.kill();
        let _ = child.wait();
        return error;
    }
    // One that has ended says more than the link that broke with it.
    std::thread::sleep(Duration::from_millis(20));
    let ended = child.try_wait().ok().flatten();
    let _ = child.kill();
    let _ = child.wait();
    let status = ended.map_or_else(|| "it was stopped".to_owned(), |status| status.to_string());
    let message = format!(
        "the worker process did not come up: {} ({status})",
        error.message()
    );
    Error::new(ErrorKind::Unavailable, message)
        .fix("name a program that runs workers, such as tapeloop itself, and see its log")
}
