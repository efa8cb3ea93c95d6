//! The life of worker processes: which one runs, why it was lost, and whether it has
//! ended.
//!
//! A worker that is lost is killed, and may write to the memory that it shares until
//! its process has ended. So a loss has two steps: from the first on nothing more is
//! sent to the worker, and after the second its memory belongs to this process.

use crate::backend::Backoff;
use crate::error::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::{Duration, Instant};

/// How long a killed process is waited for. A process that holds a GPU takes up to some
/// seconds to end; one that hangs in the driver may never end.
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a worker whose link broke has to end by itself, to report its exit status.
const STATUS_TIMEOUT: Duration = Duration::from_millis(100);

/// A process of this one's.
pub(super) trait Process: Send {
    fn id(&self) -> u32;
    /// Sends SIGKILL; without effect on a process that has ended.
    fn kill(&mut self);
    /// How the process ended; `None` while it may still run.
    fn exit_status(&mut self) -> Option<String>;
}

impl Process for Child {
    fn id(&self) -> u32 {
        Child::id(self)
    }

    fn kill(&mut self) {
        // The only error is that of a process that has ended.
        let _ = Child::kill(self);
    }

    fn exit_status(&mut self) -> Option<String> {
        match self.try_wait() {
            Ok(status) => status.map(|status| status.to_string()),
            Err(error) => {
                let no_child = rustix::io::Errno::CHILD.raw_os_error();
                let reaped = error.raw_os_error() == Some(no_child);
                reaped.then(|| "its exit status was taken by other code of the program".to_owned())
            }
        }
    }
}

/// What is known of a worker process.
pub(super) enum Fate {
    Runs,
    /// It was killed, and is waited for.
    Ending,
    /// It has ended: nothing writes to its memory any more.
    Ended(Error),
    /// It was killed, and did not end in time.
    Stuck(Error),
}

/// The worker processes, one after the other. Each has a number, its generation, and
/// is started only when the one before has ended.
pub(super) struct Workers {
    current: Mutex<Current>,
    /// Of the current process; changed under the lock.
    generation: AtomicU64,
    /// Whether the current process takes no requests; changed under the lock.
    is_lost: AtomicBool,
    end_timeout: Duration,
}

struct Current {
    /// `None` when it is known to have ended.
    process: Option<Box<dyn Process>>,
    /// How the last process that ended did so.
    status: String,
    /// Why the last worker was lost. It stays while the next one starts.
    loss: Option<Error>,
    killed_at: Option<Instant>,
}

impl Current {
    /// Looks whether the process has ended.
    fn has_ended(&mut self) -> bool {
        let status = match &mut self.process {
            None => return true,
            Some(process) => process.exit_status(),
        };
        if let Some(status) = status {
            self.status = status;
            self.process = None;
        }
        self.process.is_none()
    }

    fn kill(&mut self) {
        self.killed_at = Some(Instant::now());
        if let Some(process) = &mut self.process {
            process.kill();
        }
    }

    fn loss(&self) -> Error {
        let loss = self.loss.clone();
        loss.unwrap_or_else(|| Error::new(ErrorKind::Device, "the worker process was lost"))
    }
}

impl Workers {
    /// No process yet. Killed processes are waited for `end_timeout` at most.
    pub(super) fn new(end_timeout: Duration) -> Workers {
        Workers {
            current: Mutex::new(Current {
                process: None,
                status: String::new(),
                loss: None,
                killed_at: None,
            }),
            generation: AtomicU64::new(0),
            is_lost: AtomicBool::new(true),
            end_timeout,
        }
    }

    /// A process was started. It takes requests from [`Workers::opened`] on.
    pub(super) fn started(&self, process: Box<dyn Process>) {
        let mut current = self.current.lock();
        assert!(current.process.is_none(), "the one before has ended");
        current.process = Some(process);
        current.killed_at = None;
        self.generation.fetch_add(1, Release);
    }

    /// The process that was started is ready.
    pub(super) fn opened(&self) {
        let _current = self.current.lock();
        self.is_lost.store(false, Release);
    }

    /// The process that was started is of no use. Ends it; returns what to report.
    pub(super) fn did_not_open(&self, error: Error) -> Error {
        // An error of another kind is the worker's own account of what is missing.
        let is_of_link = error.kind() == ErrorKind::Device;
        let ended = is_of_link && self.wait(STATUS_TIMEOUT);
        self.current.lock().kill();
        // The next start reports a process that does not end.
        let _ = self.wait_for_end();
        if !is_of_link {
            return error;
        }
        let status = match ended {
            true => self.current.lock().status.clone(),
            false => "it was stopped".to_owned(),
        };
        let message = format!(
            "the worker process did not come up: {} ({status})",
            error.message()
        );
        Error::new(ErrorKind::Unavailable, message)
            .fix("name a program that runs workers, such as tapeloop itself, and see its log")
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Acquire)
    }

    /// The id of the process that takes requests.
    pub(super) fn process_id(&self) -> Option<u32> {
        let current = self.current.lock();
        let process = current.process.as_ref().filter(|_| !self.is_lost());
        process.map(|process| process.id())
    }

    /// # Errors
    /// Why the worker was lost, if it takes no requests.
    pub(super) fn check(&self) -> Result<()> {
        match self.is_lost() {
            false => Ok(()),
            true => Err(self.loss()),
        }
    }

    /// Why the last worker that was lost is.
    pub(super) fn loss(&self) -> Error {
        self.current.lock().loss()
    }

    pub(super) fn fate(&self, generation: u64) -> Fate {
        if self.generation() == generation && !self.is_lost() {
            return Fate::Runs;
        }
        let mut current = self.current.lock();
        let error = current.loss();
        // A process is started only when the one before has ended.
        if generation < self.generation() || current.has_ended() {
            return Fate::Ended(error);
        }
        match current.killed_at {
            Some(at) if at.elapsed() >= self.end_timeout => Fate::Stuck(error),
            _ => Fate::Ending,
        }
    }

    /// Kills the worker of this generation, which takes no requests from here on. The
    /// first reason for a loss is the one that is reported.
    pub(super) fn lose(&self, generation: u64, error: &Error) {
        let mut current = self.current.lock();
        if self.generation() != generation || self.is_lost() {
            return;
        }
        // The reason first: every reader of the loss asks for it.
        current.loss = Some(error.clone());
        self.is_lost.store(true, Release);
        current.kill();
    }

    /// Loses a worker whose process has ended by itself.
    pub(super) fn check_alive(&self) {
        let mut current = self.current.lock();
        if self.is_lost() || !current.has_ended() {
            return;
        }
        let message = format!("the worker process ended: {}", current.status);
        current.loss = Some(Error::new(ErrorKind::Device, message));
        self.is_lost.store(true, Release);
    }

    /// Waits until the killed process has ended.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] if it has not ended in time, counted from the kill.
    pub(super) fn wait_for_end(&self) -> Result<()> {
        let killed_at = self.current.lock().killed_at;
        let waited = killed_at.map_or(Duration::ZERO, |at| at.elapsed());
        if self.wait(self.end_timeout.saturating_sub(waited)) {
            return Ok(());
        }
        let current = self.current.lock();
        let process = current.process.as_ref().map_or(0, |process| process.id());
        Err(Error::new(
            ErrorKind::Device,
            format!(
                "the old worker process {process} was killed and does not end, so its memory cannot be used again"
            ),
        )
        .fix("see what the process waits for, such as a driver that hangs"))
    }

    /// Whether the process ends within `timeout`. The lock is free meanwhile.
    fn wait(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        let backoff = Backoff::new(start);
        loop {
            if self.current.lock().has_ended() {
                return true;
            }
            let now = Instant::now();
            let left = timeout.saturating_sub(now - start);
            if left.is_zero() {
                return false;
            }
            backoff.wait(now, left);
        }
    }

    /// Ends the last worker, which was asked to close: kills it if it does not end by
    /// itself within `timeout`.
    pub(super) fn close(&self, timeout: Duration) {
        if !self.is_lost() && self.wait(timeout) {
            return;
        }
        if !self.is_lost() {
            self.current.lock().kill();
        }
        if let Err(error) = self.wait_for_end() {
            tracing::warn!(%error, "a worker process is left behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A process that ends when the test says so, and notes that it was killed.
    #[derive(Clone, Default)]
    struct Planted {
        killed: Arc<AtomicBool>,
        ended: Arc<AtomicBool>,
    }

    impl Process for Planted {
        fn id(&self) -> u32 {
            77
        }
        fn kill(&mut self) {
            self.killed.store(true, Release);
        }
        fn exit_status(&mut self) -> Option<String> {
            let ended = self.ended.load(Acquire);
            ended.then(|| "as planted".to_owned())
        }
    }

    fn open(end_timeout: Duration) -> (Workers, Planted) {
        let workers = Workers::new(end_timeout);
        let process = Planted::default();
        workers.started(Box::new(process.clone()));
        workers.opened();
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
        assert_eq!(error.kind(), ErrorKind::Device);
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
        workers.started(Box::new(next.clone()));
        assert!(matches!(workers.fate(first), Fate::Ended(_)));
        workers.check().unwrap_err();
        workers.opened();
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
        assert!(error.message().contains("as planted"), "{error}");
        assert!(matches!(workers.fate(workers.generation()), Fate::Ended(_)));
    }

    #[test]
    fn a_worker_that_does_not_open_is_killed_and_its_own_account_is_kept() {
        let workers = Workers::new(Duration::ZERO);
        let process = Planted::default();
        workers.started(Box::new(process.clone()));
        let told = workers.did_not_open(Error::new(ErrorKind::OutOfMemory, "no room"));
        assert_eq!(told.kind(), ErrorKind::OutOfMemory);
        assert!(process.killed.load(Acquire));
        // The one that is left is waited for before another starts.
        assert!(workers.wait_for_end().is_err());
        process.ended.store(true, Release);
        workers.wait_for_end().unwrap();
        let process = Planted::default();
        process.ended.store(true, Release);
        workers.started(Box::new(process));
        let told = workers.did_not_open(reason("the link broke"));
        assert_eq!(told.kind(), ErrorKind::Unavailable);
        assert!(told.to_string().contains("as planted"), "{told}");
    }
}
