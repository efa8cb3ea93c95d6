//! Loops on a worker's device whose host is this process: what they cost, and how they end. The
//! workers are this program, started again; their driver is the one without a device, whose loops
//! are threads.

use super::serve::serve_with;
use super::{WorkerBackend, WorkerEnv, WorkerOptions};
use crate::backend::select::Builtin;
use crate::backend::{
    Backend, CudaOptions, DeviceSlot, GraphId, GraphSource, Node, Op, Priority, Queue, Residency,
    Streams, cuda, host_ns,
};
use crate::error::{Error, ErrorKind, ErrorScope, Result};
use crate::later_fields::LaterFields;
use crate::record::{BufferDecl, BufferId, DType, Unit, View};
use rayon::ThreadPool;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROLE: &str = "TAPELOOP_TEST_ROLE";
/// Names a file that says what goes wrong in the worker that reads and removes it first.
const PLANTED: &str = "TAPELOOP_TEST_PLANTED";
/// Copies of this size are nodes of their own.
const WORDS: usize = 64 << 10;

/// The workers' `main`: this program is started again with this test alone.
#[test]
fn serve_as_worker() {
    if std::env::var(ROLE).as_deref() != Ok("worker") {
        return;
    }
    let planted = std::env::var_os(PLANTED).and_then(|file| {
        let planted = std::fs::read_to_string(&file).ok()?;
        std::fs::remove_file(file).unwrap();
        Some(planted)
    });
    let open = |_, _: &Arc<ThreadPool>, options: &CudaOptions| {
        let backend = cuda::backend_of_process(options, |loops| match planted.as_deref() {
            Some("fault") => loops.faults = true,
            Some("refusal") => loops.launch_returns = 701,
            _ => {}
        })?;
        Ok((Builtin::Cuda(Arc::new(backend)), "a test".to_owned()))
    };
    // SAFETY: a backend of these tests started the program.
    unsafe { serve_with::<&str>(&[], open) }.unwrap();
}

/// Starts a worker that finds the file `planted`.
fn open_with(planted: &Path) -> WorkerBackend {
    let test = "backend::worker::loop_tests::serve_as_worker";
    let env = WorkerEnv::default();
    WorkerBackend::open(WorkerOptions {
        args: [test, "--exact", "--nocapture"].map(Into::into).to_vec(),
        // SAFETY: only these tests read the variables.
        env: unsafe { env.with(ROLE, "worker").with(PLANTED, planted) },
        threads: 1,
        ..WorkerOptions::default()
    })
    .unwrap()
}

fn open() -> WorkerBackend {
    open_with(Path::new("/nowhere"))
}

/// Loops that end for no reason but a stop.
const LONG: Residency = Residency {
    idle: Residency::MAX,
    busy: Residency::MAX,
    later: LaterFields::NONE,
};

/// A slot with a resident graph that copies one buffer into the other.
struct Slot {
    slot: Box<dyn DeviceSlot>,
    graph: GraphId,
}

fn slots(worker: &WorkerBackend, count: usize, residency: Residency) -> Vec<Slot> {
    let buffer = |name: &str, view| BufferDecl {
        name: name.to_owned(),
        dtype: DType::U32,
        unit: Unit::PerBatch { elements: WORDS },
        view,
        len: WORDS,
    };
    let buffers = [buffer("x", View::Upload), buffer("y", View::Download)];
    let opened = worker
        .open_slots(&buffers, count, Streams::PerSlot, Priority::Normal)
        .unwrap();
    let slot = |mut slot| {
        let graph = resident(&mut slot, residency);
        Slot { slot, graph }
    };
    opened.into_iter().map(slot).collect()
}

fn one_slot(worker: &WorkerBackend, residency: Residency) -> Slot {
    slots(worker, 1, residency).remove(0)
}

fn x() -> BufferId {
    BufferId::of_slot(0)
}

fn y() -> BufferId {
    BufferId::of_slot(1)
}

fn copies(slot: &dyn DeviceSlot) -> [Op; 2] {
    let (x, y) = (slot.addresses(x()), slot.addresses(y()));
    let (device, bytes) = (x.device, x.bytes);
    let upload = Op::Upload {
        host: x.host.unwrap(),
        device,
        bytes,
    };
    let download = Op::Download {
        device,
        host: y.host.unwrap(),
        bytes,
    };
    [upload, download]
}

fn resident(slot: &mut Box<dyn DeviceSlot>, residency: Residency) -> GraphId {
    let graph = new_graph(slot);
    assert!(slot.make_resident(graph, residency).unwrap());
    graph
}

fn new_graph(slot: &mut Box<dyn DeviceSlot>) -> GraphId {
    let [upload, download] = copies(&**slot);
    let node = |op, after| Node { op, after };
    let nodes = [node(&upload, &[][..]), node(&download, &[0])];
    // SAFETY: the copies are of the slot's own buffers, one after the other.
    let (graph, _) = unsafe { slot.make_graph(GraphSource::Explicit(&nodes), None) }.unwrap();
    graph
}

fn fill(slot: &mut dyn DeviceSlot, batch: u32) {
    let mut views = slot.host_mut(&[x()]);
    let words: &mut [u32] = bytemuck::cast_slice_mut(views.pop().unwrap());
    words.fill(batch);
    words[WORDS - 1] = !batch;
}

impl Slot {
    fn give(&mut self, batch: u32) -> Result<()> {
        fill(&mut *self.slot, batch);
        self.slot.launch_graph(self.graph)?;
        self.slot.fence()
    }

    fn check(&self, batch: u32) {
        let words: &[u32] = bytemuck::cast_slice(self.slot.host(y()));
        assert!(words[..WORDS - 1].iter().all(|word| *word == batch));
        assert_eq!(words[WORDS - 1], !batch);
    }

    /// Waits for the batch that was given last.
    fn finish(&mut self, batch: u32) {
        let is_done = self.slot.wait_for(Duration::from_secs(20)).unwrap();
        assert!(is_done, "no loop takes batch {batch}");
        self.check(batch);
    }

    fn run(&mut self, batch: u32) {
        self.give(batch).unwrap();
        self.finish(batch);
    }
}

/// How many requests the worker gets meanwhile, and how many loops it launches.
fn counted(worker: &WorkerBackend, work: impl FnOnce()) -> (u64, u64) {
    // A launch comes with an event.
    let launches = || worker.driver_calls().submissions / 2;
    let launches_before = launches();
    let before = worker.requests();
    work();
    let requests = worker.requests() - before;
    (requests, launches() - launches_before)
}

fn signal(worker: &WorkerBackend, signal: Signal) {
    let process = worker.process_id().unwrap() as i32;
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

/// Stops all threads of the worker.
fn stop(worker: &WorkerBackend) {
    signal(worker, Signal::STOP);
    let tasks = format!("/proc/{}/task", worker.process_id().unwrap());
    let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
        let stat = std::fs::read_to_string(task.unwrap().path().join("stat"));
        stat.unwrap().contains(") T ")
    };
    while !std::fs::read_dir(&tasks).unwrap().all(is_stopped) {
        std::thread::yield_now();
    }
}

#[test]
fn batches_cost_no_message_but_one_for_each_launch_of_a_loop() {
    let worker = open();
    let mut slots = slots(&worker, 2, LONG);
    let (requests, launches) = counted(&worker, || {
        for batch in 0..400 {
            slots.iter_mut().for_each(|it| it.give(batch).unwrap());
            slots.iter_mut().for_each(|it| it.finish(batch));
        }
    });
    assert_eq!(requests, launches);
    // Two loops; more if this thread was interrupted for a second.
    assert!((2..40).contains(&launches), "{launches} launches");
}

#[test]
fn a_loop_that_has_parked_is_launched_by_one_message() {
    let worker = open();
    let idle = Duration::from_millis(1);
    let mut slot = one_slot(&worker, Residency { idle, ..LONG });
    let mut launches_of_all = 0;
    for batch in 0..30 {
        let (requests, launches) = counted(&worker, || slot.run(batch));
        assert_eq!(requests, launches);
        launches_of_all += launches;
        std::thread::sleep(20 * idle);
    }
    // Not for each batch if other work of the machine held up the loop.
    assert!(launches_of_all > 10, "{launches_of_all} launches");
}

#[test]
fn loops_that_park_while_they_are_rung_lose_no_batch() {
    let worker = open();
    let mut launches_of_all = 0;
    for idle in [0, 1, 20, 100, 400].map(Duration::from_micros) {
        let mut slots = slots(&worker, 3, Residency { idle, ..LONG });
        let (requests, launches) = counted(&worker, || {
            for batch in 0..100 {
                slots.iter_mut().for_each(|it| it.give(batch).unwrap());
                slots.iter_mut().for_each(|it| it.finish(batch));
                let start = Instant::now();
                while start.elapsed() < Duration::from_micros(u64::from(batch) * 5) {}
            }
        });
        assert_eq!(requests, launches, "idle after {idle:?}");
        launches_of_all += launches;
    }
    assert!(launches_of_all > 200, "{launches_of_all} launches");
}

#[test]
fn busy_loops_end_together_and_are_launched_again() {
    let worker = open();
    let busy = Duration::from_millis(3);
    let mut slots = slots(&worker, 2, Residency { busy, ..LONG });
    let start = Instant::now();
    let (requests, launches) = counted(&worker, || {
        let mut batch = 0;
        while start.elapsed() < 30 * busy {
            batch += 1;
            slots.iter_mut().for_each(|it| it.give(batch).unwrap());
            slots.iter_mut().for_each(|it| it.finish(batch));
        }
    });
    assert_eq!(requests, launches);
    assert!(launches > 4, "{launches} launches");
}

/// Ends a worker while it has a batch, and goes on with the next worker. The loop runs or has
/// never run before.
fn lost_with_a_batch(
    has_run: bool,
    lose: impl FnOnce(&WorkerBackend, &mut Slot) -> Error,
) -> Error {
    let worker = open();
    let mut slot = one_slot(&worker, LONG);
    if has_run {
        slot.run(1);
    }
    // Its loop takes no batch any more.
    stop(&worker);
    let before = worker.requests();
    slot.give(2).unwrap();
    let launches = u64::from(!has_run);
    assert_eq!(worker.requests() - before, launches);
    assert!(!slot.slot.is_done().unwrap() && !slot.slot.is_quiet());
    let start = Instant::now();
    let error = lose(&worker, &mut slot);
    assert!(start.elapsed() < Duration::from_secs(8));
    assert!(slot.slot.is_quiet(), "its process has ended");
    assert!(slot.give(3).is_err());
    assert!(worker.revive().unwrap());
    (4..10).for_each(|batch| slot.run(batch));
    error
}

#[test]
fn a_worker_that_is_killed_with_a_batch_in_flight_is_noticed_without_a_message() {
    for has_run in [false, true] {
        let error = lost_with_a_batch(has_run, |worker, slot| {
            signal(worker, Signal::KILL);
            slot.slot.wait().unwrap_err()
        });
        assert_eq!(error.kind(), ErrorKind::Worker, "{error}");
        assert!(error.to_string().contains("SIGKILL"), "{error}");
    }
}

#[test]
fn a_deadline_ends_a_worker_that_does_not_answer() {
    for has_run in [false, true] {
        let error = lost_with_a_batch(has_run, |_, slot| {
            let patience = Duration::from_millis(50);
            assert!(!slot.slot.wait_for(patience).unwrap());
            slot.slot
                .abandon(&Error::new(ErrorKind::Deadline, "planted"))
        });
        assert_eq!(error.message(), "planted");
    }
}

/// Kills the worker, and restarts it once `slot` has reported the loss. Slots without a batch in
/// flight have nothing to report.
fn kill_and_revive(worker: &WorkerBackend, slot: &mut Slot, round: u32) {
    signal(worker, Signal::KILL);
    while slot.give(round).and_then(|()| slot.slot.wait()).is_ok() {}
    assert!(worker.revive().unwrap());
}

#[test]
fn idle_loops_of_a_lost_worker_do_not_hold_up_those_of_the_next() {
    let worker = open();
    let mut slots = slots(&worker, 3, LONG);
    for round in 1..4 {
        slots.iter_mut().for_each(|it| it.run(round));
        kill_and_revive(&worker, &mut slots[0], round);
        let (requests, launches) = counted(&worker, || {
            slots.iter_mut().for_each(|it| it.run(10 + round));
        });
        assert_eq!((requests, launches), (3, 3));
    }
}

/// Runs a batch in a worker with a planted mistake. Returns the worker, the slot and the error.
fn planted(mistake: &str) -> (WorkerBackend, Slot, Error) {
    let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&file, mistake).unwrap();
    let worker = open_with(&file);
    assert!(!file.exists());
    let mut slot = one_slot(&worker, LONG);
    slot.give(1).unwrap();
    let error = slot.slot.wait().unwrap_err();
    assert!(slot.slot.is_quiet());
    (worker, slot, error)
}

#[test]
fn a_fault_in_a_loop_is_seen_and_the_next_worker_goes_on() {
    let (worker, mut slot, error) = planted("fault");
    assert_eq!(error.code(), Some(719), "{error}");
    assert_eq!(error.scope(), ErrorScope::Device);
    assert!(slot.give(2).is_err());
    assert!(worker.revive().unwrap());
    (3..10).for_each(|batch| slot.run(batch));
}

#[test]
fn a_launch_that_is_refused_fails_its_batch_and_no_other() {
    let (worker, mut slot, error) = planted("refusal");
    assert_eq!(error.code(), Some(701), "{error}");
    assert!(error.scope() < ErrorScope::Device);
    let (requests, launches) = counted(&worker, || (2..10).for_each(|batch| slot.run(batch)));
    assert_eq!((requests, launches), (1, 1));
    assert!(!worker.revive().unwrap(), "nothing was lost");
}

#[test]
fn slots_and_graphs_are_dropped_with_a_batch_in_flight() {
    let worker = open();
    // More loops in all than may run at once.
    for round in 0..30 {
        let mut slots = slots(&worker, 2, LONG);
        slots.iter_mut().for_each(|it| it.run(round));
        slots.iter_mut().for_each(|it| it.give(round).unwrap());
        let [first, second] = &mut slots[..] else {
            panic!("two slots")
        };
        first.slot.drop_graph(first.graph);
        assert!(first.slot.is_quiet());
        first.check(round);
        // Another graph, whose loop has words of its own.
        first.graph = resident(&mut first.slot, LONG);
        first.run(100 + round);
        assert!(second.slot.make_resident(second.graph, LONG).is_err());
    }
    assert!(worker.process_id().is_some());
}

#[test]
fn more_loops_than_the_device_runs_are_refused_also_after_a_restart() {
    let worker = open();
    let mut slots = slots(&worker, 64, LONG);
    for round in 0..2 {
        let graph = new_graph(&mut slots[0].slot);
        let error = slots[0].slot.make_resident(graph, LONG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("64 graphs"), "{error}");
        slots[0].slot.drop_graph(graph);
        // One loop goes, another one comes.
        let last = &mut slots[63];
        last.slot.drop_graph(last.graph);
        last.graph = resident(&mut last.slot, LONG);
        slots.iter_mut().for_each(|it| it.run(round));
        kill_and_revive(&worker, &mut slots[0], round);
    }
}

#[test]
fn other_work_of_the_slot_and_a_loop_s_batch_wait_for_each_other() {
    let worker = open();
    let Slot { mut slot, graph } = one_slot(&worker, LONG);
    let [upload, download] = copies(&*slot);
    let first = |slot: &dyn DeviceSlot| bytemuck::cast_slice::<u8, u32>(slot.host(y()))[0];
    for batch in 1..50 {
        fill(&mut *slot, batch);
        // SAFETY: the copies are of the slot's own buffers.
        unsafe { slot.enqueue(Queue::Compute, &upload) }.unwrap();
        if batch % 2 == 0 {
            slot.fence().unwrap();
        }
        slot.launch_graph(graph).unwrap();
        slot.launch_graph(graph).unwrap();
        if batch % 3 == 0 {
            slot.fence().unwrap();
        }
        // SAFETY: as above.
        unsafe { slot.enqueue(Queue::Compute, &download) }.unwrap();
        assert!(!slot.is_quiet());
        slot.fence().unwrap();
        slot.wait().unwrap();
        assert!(slot.is_quiet());
        assert_eq!(first(&*slot), batch);
    }
}

#[test]
fn the_times_of_a_batch_cost_no_message_and_lie_between_the_host_s() {
    let worker = open();
    let mut slot = one_slot(&worker, LONG);
    slot.run(0);
    let mut last = 0;
    let (requests, launches) = counted(&worker, || {
        for batch in 1..50 {
            let start = host_ns(Instant::now());
            slot.run(batch);
            let times = slot.slot.timestamps().unwrap().map(Option::unwrap);
            let end = host_ns(Instant::now());
            assert!(times.is_sorted() && start <= times[0] && times[3] <= end);
            assert!(last <= times[0], "batches follow each other");
            last = times[3];
        }
    });
    assert_eq!(requests, launches);
}
