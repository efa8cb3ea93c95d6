//! Tracks worker processes: which one runs, why it was lost, and whether it has ended.
//!
//! A lost worker is killed, and may write to the shared memory until its process has ended. So a
//! loss has two steps: after the first no requests are sent to the worker, and after the second its
//! memory belongs to this process.

use crate::backend::Backoff;
use crate::error::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::{Duration, Instant};

/// How long to wait for a killed process. A process that holds a GPU takes up to some seconds to
/// end; one that hangs in the driver may never end.
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The signals that a fault of the process itself raises. All others come from outside: a user, a
/// service manager, or the kernel when memory runs out.
const FAULT_SIGNALS: [Signal; 7] = [
    Signal::ABORT,
    Signal::BUS,
    Signal::FPE,
    Signal::ILL,
    Signal::SEGV,
    Signal::SYS,
    Signal::TRAP,
];

/// How a process ended.
#[derive(Clone)]
pub(super) struct Exit {
    cause: ExitCause,
    /// The description of the operating system.
    status: String,
}

#[derive(Clone, Copy, PartialEq)]
enum ExitCause {
    /// It exited with code 0.
    Done,
    /// It exited with another code, or a fault of its own ended it.
    Failed,
    /// A signal from outside ended it.
    Signalled,
}

impl Exit {
    /// Sorts an exit status: a signal that a fault of the process raises counts as failed, any
    /// other as sent by another process.
    fn from_status(status: ExitStatus) -> Exit {
        let is_fault = |signal| FAULT_SIGNALS.iter().any(|fault| fault.as_raw() == signal);
        let cause = match status.signal() {
            Some(signal) if !is_fault(signal) => ExitCause::Signalled,
            None if status.success() => ExitCause::Done,
            _ => ExitCause::Failed,
        };
        Exit {
            cause,
            status: status.to_string(),
        }
    }

    /// The error of a worker whose process ended in this way during work.
    fn loss(&self) -> Error {
        let message = format!("the worker process ended: {}", self.status);
        match self.cause {
            ExitCause::Signalled => Error::new(ErrorKind::Worker, message)
                .fix("see the system's log for what sent the signal, such as the OOM killer"),
            ExitCause::Done | ExitCause::Failed => Error::new(ErrorKind::Device, message),
        }
    }
}

/// A child process.
pub(super) trait ChildProcess: Send {
    fn id(&self) -> u32;
    /// Sends SIGKILL. It has no effect on a process that has ended.
    fn kill(&mut self);
    /// Polls how the process ended; `None` while it may still run.
    fn try_exit(&mut self) -> Option<Exit>;
}

impl ChildProcess for Child {
    fn id(&self) -> u32 {
        Child::id(self)
    }

    fn kill(&mut self) {
        // The only error is that the process has ended.
        let _ = Child::kill(self);
    }

    fn try_exit(&mut self) -> Option<Exit> {
        match self.try_wait() {
            Ok(status) => status.map(Exit::from_status),
            Err(error) => {
                let no_child = rustix::io::Errno::CHILD.raw_os_error();
                let reaped = error.raw_os_error() == Some(no_child);
                reaped.then(|| Exit {
                    cause: ExitCause::Failed,
                    status: "other code of the program took its exit status".to_owned(),
                })
            }
        }
    }
}

/// The state of a worker process.
pub(super) enum Fate {
    Runs,
    /// It was killed, and may not have ended yet.
    Ending,
    /// It has ended, and writes to its memory no more.
    Ended(Error),
    /// It was killed, and did not end in time.
    Stuck(Error),
}

/// The worker processes, one after the other. Each has a number, its generation, and
/// is started only when the one before has ended.
pub(super) struct Workers {
    current: Mutex<Current>,
    /// The generation of the current process; changed under the lock.
    generation: AtomicU64,
    /// Whether the current process takes no requests; changed under the lock.
    is_lost: AtomicBool,
    end_timeout: Duration,
}

struct Current {
    /// `None` when it is known to have ended.
    process: Option<Box<dyn ChildProcess>>,
    /// How the last process ended.
    exit: Option<Exit>,
    /// Why the last worker was lost. It stays while the next one starts.
    loss: Option<Error>,
    killed_at: Option<Instant>,
}

impl Current {
    /// Polls the process. Once it has ended, notes how it did and drops its handle. Returns whether
    /// it has ended.
    fn poll_end(&mut self) -> bool {
        let exit = match &mut self.process {
            None => return true,
            Some(process) => process.try_exit(),
        };
        if exit.is_some() {
            self.exit = exit;
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

    /// The cause of the loss, if one is known.
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
                exit: None,
                loss: None,
                killed_at: None,
            }),
            generation: AtomicU64::new(0),
            is_lost: AtomicBool::new(true),
            end_timeout,
        }
    }

    /// Makes `process`, which was just started, the current one. It takes requests from
    /// [`Workers::note_opened`] on.
    ///
    /// # Panics
    /// If the process before has not ended.
    pub(super) fn note_started(&self, process: Box<dyn ChildProcess>) {
        let mut current = self.current.lock();
        assert!(current.process.is_none(), "the one before has ended");
        current.process = Some(process);
        current.exit = None;
        current.killed_at = None;
        // Before `note_opened`: who sees the process run sees its number.
        self.generation.fetch_add(1, Release);
    }

    /// Notes that the process that was started has opened its device: requests may be sent.
    pub(super) fn note_opened(&self) {
        // The lock keeps it apart from a loss, which looks at the flag and then sets it.
        let _current = self.current.lock();
        self.is_lost.store(false, Release);
    }

    /// Ends a process that could not be opened. Returns the error to report: `error` if the worker
    /// reported it, else one of [`ErrorKind::Worker`] if the process ended by itself, so that another
    /// start may succeed, and of [`ErrorKind::Unavailable`] if it exited with 0, as a program that is no
    /// worker, or had to be killed. `is_hung_up` says whether its end of the connection is closed.
    pub(super) fn did_not_open(&self, error: Error, is_hung_up: bool) -> Error {
        // Before the kill, which would become the exit status.
        let ended = is_hung_up && self.wait(self.end_timeout);
        let exit = self.current.lock().exit.clone().filter(|_| ended);
        self.current.lock().kill();
        // The next start reports a process that does not end.
        let _ = self.wait_for_end();
        // An error of another kind is the worker's own report.
        if error.kind() != ErrorKind::Device {
            return error;
        }
        let (kind, status) = match exit {
            Some(exit) if exit.cause == ExitCause::Done => (ErrorKind::Unavailable, exit.status),
            Some(exit) => (ErrorKind::Worker, exit.status),
            None => (ErrorKind::Unavailable, "it was stopped".to_owned()),
        };
        let message = error.message();
        let message = format!("the worker process did not come up: {message} ({status})");
        Error::new(kind, message)
            .fix("name a program that runs workers, such as tapeloop itself, and see its log")
    }

    /// Whether `error`, of [`Workers::did_not_open`], is that of a process that another one killed.
    pub(super) fn was_signalled(&self, error: &Error) -> bool {
        let current = self.current.lock();
        let exit = current.exit.as_ref();
        error.kind() == ErrorKind::Worker
            && exit.is_some_and(|exit| exit.cause == ExitCause::Signalled)
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

    /// Whether the worker takes requests.
    ///
    /// # Errors
    /// The cause of the loss, if it does not.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_lost() {
            Err(self.loss())
        } else {
            Ok(())
        }
    }

    /// The cause of the last loss.
    pub(super) fn loss(&self) -> Error {
        self.current.lock().loss()
    }

    /// What has become of the work of the worker of this generation. Polls whether its process has
    /// ended.
    pub(super) fn fate(&self, generation: u64) -> Fate {
        if self.generation() == generation && !self.is_lost() {
            return Fate::Runs;
        }
        let mut current = self.current.lock();
        let error = current.loss();
        // A process is started only when the one before has ended.
        if generation < self.generation() || current.poll_end() {
            return Fate::Ended(error);
        }
        match current.killed_at {
            Some(killed_at) if killed_at.elapsed() >= self.end_timeout => Fate::Stuck(error),
            _ => Fate::Ending,
        }
    }

    /// Kills the worker of this generation, which gets no more requests. The first cause of a loss
    /// is the one that is reported.
    pub(super) fn lose(&self, generation: u64, error: &Error) {
        let mut current = self.current.lock();
        if self.generation() != generation || self.is_lost() {
            return;
        }
        // The cause is stored first, as every reader of the loss asks for it.
        current.loss = Some(error.clone());
        self.is_lost.store(true, Release);
        current.kill();
    }

    /// Notes the loss of a worker whose process ended by itself.
    pub(super) fn check_alive(&self) {
        let mut current = self.current.lock();
        if self.is_lost() || !current.poll_end() {
            return;
        }
        current.loss = current.exit.as_ref().map(Exit::loss);
        self.is_lost.store(true, Release);
    }

    /// Loses the worker of this generation, whose end of the link is closed: its process
    /// is ending, and the exit status says what ended it. A process that does not end
    /// in time is killed, and lost with `error`.
    pub(super) fn hung_up(&self, generation: u64, error: &Error) {
        if self.wait(self.end_timeout) {
            self.check_alive();
        }
        self.lose(generation, error);
    }

    /// Waits until the killed process has ended.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if it has not ended in time, counted from the kill.
    pub(super) fn wait_for_end(&self) -> Result<()> {
        let killed_at = self.current.lock().killed_at;
        let waited = killed_at.map_or(Duration::ZERO, |killed_at| killed_at.elapsed());
        if self.wait(self.end_timeout.saturating_sub(waited)) {
            return Ok(());
        }
        let current = self.current.lock();
        let process = current.process.as_ref().map_or(0, |process| process.id());
        Err(Error::new(
            ErrorKind::Unavailable,
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
            if self.current.lock().poll_end() {
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
mod tests;
