use super::*;
use std::sync::Arc;

/// A process that ends when the test says so, and notes that it was killed.
#[derive(Clone, Default)]
struct Planted {
    killed: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    /// As `waitpid` reports it.
    raw_status: i32,
}

/// An exit with code 3.
const EXIT_3: i32 = 3 << 8;

impl ChildProcess for Planted {
    fn id(&self) -> u32 {
        77
    }
    fn kill(&mut self) {
        self.killed.store(true, Release);
    }
    fn try_exit(&mut self) -> Option<Exit> {
        let ended = self.ended.load(Acquire);
        ended.then(|| Exit::from_status(ExitStatus::from_raw(self.raw_status)))
    }
}

fn open(end_timeout: Duration) -> (Workers, Planted) {
    let workers = Workers::new(end_timeout);
    let process = Planted::default();
    workers.note_started(Box::new(process.clone()));
    workers.note_opened();
    (workers, process)
}

fn reason(text: &str) -> Error {
    Error::new(ErrorKind::Device, text)
}

#[test]
fn memory_is_free_only_when_the_process_has_ended() {
    let (workers, process) = open(Duration::from_secs(1_000));
    let generation = workers.generation();
    assert!(matches!(workers.fate(generation), Fate::Runs));
    workers.lose(generation, &reason("planted"));
    assert!(process.killed.load(Acquire));
    assert_eq!(workers.process_id(), None);
    assert!(matches!(workers.fate(generation), Fate::Ending));
    process.ended.store(true, Release);
    let Fate::Ended(error) = workers.fate(generation) else {
        panic!("it has ended");
    };
    assert_eq!(error.message(), "planted");
}

#[test]
fn a_process_that_does_not_end_is_waited_for_no_longer_than_the_limit() {
    let (workers, process) = open(Duration::ZERO);
    let generation = workers.generation();
    workers.lose(generation, &reason("planted"));
    let error = workers.wait_for_end().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("process 77"), "{error}");
    for _ in 0..2 {
        let Fate::Stuck(error) = workers.fate(generation) else {
            panic!("its memory is not free");
        };
        assert_eq!(error.message(), "planted");
    }
    // It may end later all the same.
    process.ended.store(true, Release);
    workers.wait_for_end().unwrap();
    assert!(matches!(workers.fate(generation), Fate::Ended(_)));
}

#[test]
fn the_first_reason_of_a_loss_is_reported_and_an_old_loss_spares_the_next_worker() {
    let (workers, process) = open(Duration::from_secs(1_000));
    let first = workers.generation();
    workers.lose(first, &reason("the first"));
    workers.lose(first, &reason("the second"));
    assert_eq!(workers.check().unwrap_err().message(), "the first");
    process.ended.store(true, Release);
    workers.wait_for_end().unwrap();
    let next = Planted::default();
    workers.note_started(Box::new(next.clone()));
    assert!(matches!(workers.fate(first), Fate::Ended(_)));
    workers.check().unwrap_err();
    workers.note_opened();
    workers.check().unwrap();
    workers.lose(first, &reason("late"));
    workers.check().unwrap();
    assert!(!next.killed.load(Acquire));
    assert!(matches!(workers.fate(first), Fate::Ended(_)));
}

#[test]
fn other_threads_go_on_while_one_waits_for_the_end() {
    let (workers, process) = open(Duration::from_secs(1_000));
    let generation = workers.generation();
    workers.lose(generation, &reason("planted"));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| workers.wait_for_end());
        for _ in 0..1_000 {
            assert!(matches!(workers.fate(generation), Fate::Ending));
            workers.lose(generation, &reason("another"));
            assert_eq!(workers.check().unwrap_err().message(), "planted");
        }
        process.ended.store(true, Release);
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn a_worker_that_ended_by_itself_is_lost_with_its_status() {
    let (workers, process) = open(Duration::ZERO);
    workers.check_alive();
    workers.check().unwrap();
    process.ended.store(true, Release);
    workers.check_alive();
    let error = workers.check().unwrap_err();
    assert!(error.message().contains("exit status: 0"), "{error}");
    assert!(matches!(workers.fate(workers.generation()), Fate::Ended(_)));
}

#[test]
fn only_a_signal_from_outside_clears_the_work() {
    let faults = FAULT_SIGNALS.map(Signal::as_raw);
    for signal in 1..=31 {
        let exit = Exit::from_status(ExitStatus::from_raw(signal));
        let kind = if faults.contains(&signal) {
            ErrorKind::Device
        } else {
            ErrorKind::Worker
        };
        assert_eq!(exit.loss().kind(), kind, "{}", exit.status);
    }
    // With a core file, which a fault leaves.
    let dumped = Exit::from_status(ExitStatus::from_raw(Signal::SEGV.as_raw() | 0x80));
    assert_eq!(dumped.loss().kind(), ErrorKind::Device);
    for code in [0, 1, 101, 255] {
        let exit = Exit::from_status(ExitStatus::from_raw(code << 8));
        assert_eq!(exit.loss().kind(), ErrorKind::Device, "{}", exit.status);
    }
}

#[test]
fn a_closed_link_is_explained_by_the_exit_status() {
    let killed = Planted {
        raw_status: Signal::KILL.as_raw(),
        ..Planted::default()
    };
    killed.ended.store(true, Release);
    for (process, kind) in [
        (killed, ErrorKind::Worker),
        // Its link is closed, and it does not end.
        (Planted::default(), ErrorKind::Device),
    ] {
        let workers = Workers::new(Duration::ZERO);
        workers.note_started(Box::new(process));
        workers.note_opened();
        workers.hung_up(workers.generation(), &reason("the link broke"));
        assert_eq!(workers.check().unwrap_err().kind(), kind);
    }
}

#[test]
fn a_worker_that_does_not_open_is_killed_and_its_own_account_is_kept() {
    let workers = Workers::new(Duration::ZERO);
    let process = Planted::default();
    workers.note_started(Box::new(process.clone()));
    let error = workers.did_not_open(Error::new(ErrorKind::OutOfMemory, "no room"), false);
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(process.killed.load(Acquire));
    // The one that is left is waited for before another starts.
    assert!(workers.wait_for_end().is_err());
    process.ended.store(true, Release);
    workers.wait_for_end().unwrap();
    for (raw_status, kind, status) in [
        (0, ErrorKind::Unavailable, "exit status: 0"),
        (EXIT_3, ErrorKind::Worker, "exit status: 3"),
        (Signal::KILL.as_raw(), ErrorKind::Worker, "SIGKILL"),
    ] {
        let process = Planted {
            raw_status,
            ..Planted::default()
        };
        process.ended.store(true, Release);
        workers.note_started(Box::new(process));
        let error = workers.did_not_open(reason("the link broke"), true);
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(status), "{error}");
    }
}
