//! Stage two: waits for the slots in flight on one device, in the order in which they finish.

use super::ring::{Finished, InFlightSet, Wait};
use super::slot::{Failed, Flight};
use super::sync::{AtomicBool, Receiver, Sender, receive_within, yield_now};
use crate::backend::Backoff;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Rounds after an event in which the thread keeps its core without a system call, so that a short batch
/// is seen at once; each looks at all slots in flight. From then on it offers its core to the thread that
/// fills slots.
const ROUNDS_OF_SPIN: u32 = 64;

/// What a device's completion thread receives.
pub(super) enum ToDevice<B> {
    Flight(Flight<B>),
    /// Something else has changed that the thread looks at.
    Wake,
}

/// Wakes the completion threads. It runs none of the embedder's code, takes no lock of the engine,
/// and may outlive it.
pub(super) trait WakeDevice: Send + Sync {
    fn wake(&self, device: usize);
}

/// The way to the completion threads of an engine, by device.
pub(super) struct ToDevices<B> {
    threads: Vec<Sender<ToDevice<B>>>,
    /// Whether a [`ToDevice::Wake`] is on its way.
    wakes: Vec<AtomicBool>,
}

impl<B: Send> ToDevices<B> {
    pub(super) fn new(threads: Vec<Sender<ToDevice<B>>>) -> Self {
        ToDevices {
            wakes: threads.iter().map(|_| AtomicBool::new(false)).collect(),
            threads,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.threads.len()
    }

    /// Gives a batch that was submitted, or failed, to the device's thread.
    pub(super) fn send(&self, device: usize, flight: Flight<B>) {
        let sent = self.threads[device].send(ToDevice::Flight(flight));
        assert!(sent.is_ok(), "the completion thread outlives its batches");
    }

    /// Notes that a device's thread has received [`ToDevice::Wake`].
    pub(super) fn note_woken(&self, device: usize) {
        // `swap`, not `store`, so that this thread sees what others wrote before they found the flag set
        // and sent no wake.
        self.wakes[device].swap(false, SeqCst);
    }

    pub(super) fn wake_all(&self) {
        (0..self.len()).for_each(|device| self.wake(device));
    }

    /// Sends a wake even if one counts as sent: a thread that helps may have received that one.
    pub(super) fn wake_again(&self, device: usize) {
        // The channel has room for all slots and one wake; if it is full, a wake is in it.
        let _ = self.threads[device].try_send(ToDevice::Wake);
    }
}

impl<B: Send> WakeDevice for ToDevices<B> {
    /// Wakes a device's thread, unless it is being woken.
    fn wake(&self, device: usize) {
        if !self.wakes[device].swap(true, SeqCst) {
            self.wake_again(device);
        }
    }
}

/// The slots in flight on one device.
pub(super) struct Completions<B> {
    submitted: Receiver<ToDevice<B>>,
    /// Slots whose batch was not submitted.
    failed: Vec<Box<Failed<B>>>,
    in_flight: InFlightSet<B>,
    wait: Wait,
    backoff: Backoff,
    /// Rounds since the last event; 0 if something has happened since the last pause.
    rounds: u32,
    was_woken: bool,
}

impl<B> Completions<B> {
    pub(super) fn new(submitted: Receiver<ToDevice<B>>, slots: usize, wait: Wait) -> Self {
        Completions {
            submitted,
            failed: Vec::new(),
            in_flight: InFlightSet::with_capacity(slots),
            wait,
            backoff: Backoff::new(Instant::now()),
            rounds: 0,
            was_woken: false,
        }
    }

    /// Takes submitted slots in. Returns whether [`ToDevice::Wake`] was received.
    pub(super) fn take_submitted(&mut self) -> bool {
        self.receive_all();
        std::mem::take(&mut self.was_woken)
    }

    fn receive_all(&mut self) {
        while let Ok(submitted) = self.submitted.try_recv() {
            self.sort(submitted);
        }
    }

    /// Takes in what the thread was sent. Polling starts over without pauses.
    fn sort(&mut self, submitted: ToDevice<B>) {
        self.rounds = 0;
        match submitted {
            ToDevice::Flight(Ok(slot)) => self.in_flight.insert(slot),
            ToDevice::Flight(Err(failed)) => self.failed.push(failed),
            ToDevice::Wake => self.was_woken = true,
        }
    }

    /// Polls the slots once, and returns one that has finished.
    pub(super) fn poll(&mut self) -> Option<Finished<B>> {
        if let Some(failed) = self.failed.pop() {
            return Some(Err(failed));
        }
        let finished = self.in_flight.poll()?;
        self.rounds = 0;
        Some(finished)
    }

    /// All slots that have finished, without waiting. After the device was lost, that includes all
    /// batches that were lost with it.
    pub(super) fn all_finished(&mut self) -> Vec<Finished<B>> {
        self.receive_all();
        std::iter::from_fn(|| self.poll()).collect()
    }

    /// Waits for a message, but not for longer than `longest`: spins for a while after the last
    /// event, then sleeps, for as long as it takes if no slot is in flight.
    pub(super) fn pause(&mut self, longest: Option<Duration>) {
        let (is_idle, now) = (self.in_flight.is_empty(), Instant::now());
        if self.rounds == 0 {
            self.backoff.reset(now);
        }
        self.rounds = self.rounds.saturating_add(1);
        // A model of the threads has no clock: it never spins while idle, nor sleeps while not.
        let pause = match self.backoff.pause(now) {
            pause if is_idle && (pause.is_some() || cfg!(loom)) => longest,
            _ if cfg!(loom) => return yield_now(),
            Some(pause) if self.wait == Wait::Block => {
                Some(longest.map_or(pause, |longest| longest.min(pause)))
            }
            _ if self.rounds < ROUNDS_OF_SPIN => return std::hint::spin_loop(),
            // The thread that fills slots may need this core.
            _ => return yield_now(),
        };
        let submitted = match pause {
            None => self.submitted.recv().ok(),
            Some(pause) => receive_within(&self.submitted, pause),
        };
        if let Some(submitted) = submitted {
            self.sort(submitted);
        }
    }
}
