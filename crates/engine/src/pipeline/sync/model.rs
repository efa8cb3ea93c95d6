//! Models of what `sync` offers, over loom.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(in crate::pipeline) use loom::sync::atomic::{AtomicBool, AtomicU64};
pub(in crate::pipeline) use loom::thread::{Builder, JoinHandle, yield_now};
pub(in crate::pipeline) use loom_thread_local as thread_local;

/// A thread of a model. Its stack is sized by the model.
pub(in crate::pipeline) fn thread(name: String) -> Builder {
    Builder::new().name(name)
}

/// A model has no time in which to spin.
pub(in crate::pipeline) fn spin(_: impl Fn() -> bool) {}

/// Lets other threads have the lock once.
pub(in crate::pipeline) fn spin_unlocked<T>(guard: &mut Guard<'_, T>, _: impl Fn() -> bool) {
    guard.held = None;
    guard.held = Some(guard.mutex.lock().unwrap());
}

/// `std::thread_local` for one variable, by loom's threads.
macro_rules! loom_thread_local {
    ($(#[$doc:meta])* static $name:ident: $type:ty = const { $init:expr };) => {
        loom::thread_local! { $(#[$doc])* static $name: $type = $init }
    };
}
pub(in crate::pipeline) use loom_thread_local;

/// What the ends of a channel wait at.
#[derive(Default)]
struct Meeting {
    lock: loom::sync::Mutex<()>,
    changed: loom::sync::Condvar,
}

/// A bounded channel as crossbeam's: senders and receivers are counted, a full one blocks, and what
/// was sent before the last sender went is still received.
struct ModelChannel<T> {
    meeting: Meeting,
    // Locked under the meeting's lock only, so never contended.
    state: std::sync::Mutex<State<T>>,
}

struct State<T> {
    queue: VecDeque<T>,
    room: usize,
    senders: usize,
    receivers: usize,
}

/// A message that was not sent.
pub(in crate::pipeline) struct SendError<T>(pub(in crate::pipeline) T);

impl<T> std::fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SendError")
    }
}

pub(in crate::pipeline) struct Sender<T>(Arc<ModelChannel<T>>);
pub(in crate::pipeline) struct Receiver<T>(Arc<ModelChannel<T>>);
/// The other end was dropped.
#[derive(Debug)]
pub(in crate::pipeline) struct Disconnected;

/// Both ends of a channel.
type Ends<T> = (Sender<T>, Receiver<T>);

/// A channel with room for `room` messages, for loom's models.
pub(in crate::pipeline) fn bounded<T>(room: usize) -> Ends<T> {
    let channel = Arc::new(ModelChannel {
        meeting: Meeting::default(),
        state: std::sync::Mutex::new(State {
            queue: VecDeque::new(),
            room,
            senders: 1,
            receivers: 1,
        }),
    });
    (Sender(Arc::clone(&channel)), Receiver(channel))
}

impl Meeting {
    /// Looks until `step` has an answer, waiting for changes between.
    fn until<A>(&self, mut step: impl FnMut() -> Option<A>) -> A {
        let mut held = self.lock.lock().unwrap();
        loop {
            if let Some(answer) = step() {
                self.changed.notify_all();
                return answer;
            }
            held = self.changed.wait(held).unwrap();
        }
    }
}

impl<T> State<T> {
    fn next(&mut self) -> Option<Result<T, Disconnected>> {
        match self.queue.pop_front() {
            Some(message) => Some(Ok(message)),
            None if self.senders == 0 => Some(Err(Disconnected)),
            None => None,
        }
    }
}

impl<T> Sender<T> {
    /// Sends a message, and blocks while the channel is full.
    pub(in crate::pipeline) fn send(&self, message: T) -> Result<(), SendError<T>> {
        let mut message = Some(message);
        self.0.meeting.until(|| {
            let mut state = self.0.state.lock().unwrap();
            if state.receivers == 0 {
                let message = message.take().expect("given once");
                return Some(Err(SendError(message)));
            }
            (state.queue.len() < state.room).then(|| {
                state.queue.extend(message.take());
                Ok(())
            })
        })
    }

    /// Fails without a receiver, or without room.
    pub(in crate::pipeline) fn try_send(&self, message: T) -> Result<(), SendError<T>> {
        let mut message = Some(message);
        self.0.meeting.until(|| {
            let mut state = self.0.state.lock().unwrap();
            let message = message.take().expect("asked once");
            let has_room = state.receivers > 0 && state.queue.len() < state.room;
            Some(if has_room {
                state.queue.push_back(message);
                Ok(())
            } else {
                Err(SendError(message))
            })
        })
    }
}

impl<T> Receiver<T> {
    pub(in crate::pipeline) fn recv(&self) -> Result<T, Disconnected> {
        self.0.meeting.until(|| self.0.state.lock().unwrap().next())
    }

    pub(in crate::pipeline) fn try_recv(&self) -> Result<T, Disconnected> {
        self.0.meeting.until(|| {
            let next = self.0.state.lock().unwrap().next();
            Some(next.unwrap_or(Err(Disconnected)))
        })
    }
}

/// As the real one, after a pause of any length.
pub(in crate::pipeline) fn receive_within<T>(receiver: &Receiver<T>, _: Duration) -> Option<T> {
    yield_now();
    receiver.try_recv().ok()
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.0.meeting.until(|| {
            self.0.state.lock().unwrap().receivers += 1;
            Some(())
        });
        Receiver(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.meeting.until(|| {
            self.0.state.lock().unwrap().senders -= 1;
            Some(())
        });
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let left = self.0.meeting.until(|| {
            let mut state = self.0.state.lock().unwrap();
            state.receivers -= 1;
            // Messages that no receiver will take are dropped at once, as crossbeam does.
            Some(match state.receivers {
                0 => std::mem::take(&mut state.queue),
                _ => VecDeque::new(),
            })
        });
        drop(left);
    }
}

/// `parking_lot::Mutex`.
pub(in crate::pipeline) struct Mutex<T>(loom::sync::Mutex<T>);
/// `parking_lot::MutexGuard`; taken while its thread waits.
pub(in crate::pipeline) struct Guard<'a, T> {
    mutex: &'a loom::sync::Mutex<T>,
    held: Option<loom::sync::MutexGuard<'a, T>>,
}
/// `parking_lot::Condvar`.
#[derive(Default)]
pub(in crate::pipeline) struct Condvar(loom::sync::Condvar);

impl<T> Mutex<T> {
    pub(in crate::pipeline) fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub(in crate::pipeline) fn lock(&self) -> Guard<'_, T> {
        Guard {
            mutex: &self.0,
            held: Some(self.0.lock().unwrap()),
        }
    }
}

impl Condvar {
    pub(in crate::pipeline) fn new() -> Self {
        Condvar::default()
    }

    pub(in crate::pipeline) fn wait<T>(&self, guard: &mut Guard<'_, T>) {
        let held = guard.held.take().expect("held outside of wait");
        guard.held = Some(self.0.wait(held).unwrap());
    }

    /// As the real one, after a pause of any length.
    pub(in crate::pipeline) fn wait_until<T>(&self, guard: &mut Guard<'_, T>, _: Instant) {
        spin_unlocked(guard, || true);
    }

    pub(in crate::pipeline) fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_deref().expect("held outside of wait")
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_deref_mut().expect("held outside of wait")
    }
}
