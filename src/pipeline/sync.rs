//! Channels, locks and threads of the driver. With `--cfg loom` they are models, and the tests of
//! `driver` explore every order of events.

#[cfg(loom)]
mod model;

#[cfg(loom)]
pub(super) use model::*;

#[cfg(not(loom))]
pub(super) use real::*;

use std::time::Instant;

/// What [`receive`] received first.
pub(super) enum Received<T> {
    /// From the channel of urgent messages.
    Urgent(T),
    Message(T),
    /// The deadline.
    #[cfg_attr(loom, allow(dead_code, reason = "time stands still there"))]
    Due,
    /// Both channels are closed and empty.
    Closed,
}

#[cfg(not(loom))]
mod real {
    use super::{Instant, Received};
    pub(in crate::pipeline) use crate::backend::receive_within;
    use crossbeam_channel::select_biased;
    pub(in crate::pipeline) use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
    pub(in crate::pipeline) use parking_lot::{Condvar, Mutex};
    pub(in crate::pipeline) use std::thread::{Builder, JoinHandle, yield_now};
    pub(in crate::pipeline) use std::thread_local;
    use std::time::Duration;

    /// Both ends of a channel.
    type Ends<T> = (Sender<T>, Receiver<T>);

    /// Two channels that [`receive`] can wait for at once.
    pub(in crate::pipeline) fn bounded_pair<T>(room: usize) -> (Ends<T>, Ends<T>) {
        (bounded(room), bounded(room))
    }

    /// Waits for the next message or the deadline. Prefers urgent messages unless `normal_first`.
    /// Both channels must close at the same time.
    pub(in crate::pipeline) fn receive<T>(
        urgent: &Receiver<T>,
        normal: &Receiver<T>,
        normal_first: bool,
        deadline: Option<Instant>,
    ) -> Received<T> {
        if normal_first && let Ok(message) = normal.try_recv() {
            return Received::Message(message);
        }
        if let Ok(message) = urgent.try_recv() {
            return Received::Urgent(message);
        }
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        let left = deadline.map_or(Duration::MAX, until);
        if left.is_zero() {
            return Received::Due;
        }
        // Waiting for two channels takes several times as long as trying one.
        if let Ok(message) = normal.try_recv() {
            return Received::Message(message);
        }
        select_biased! {
            recv(urgent) -> message => match message {
                Ok(message) => Received::Urgent(message),
                Err(_) => normal.recv().map_or(Received::Closed, Received::Message),
            },
            recv(normal) -> message => match message {
                Ok(message) => Received::Message(message),
                // An urgent message may have arrived between the two checks.
                Err(_) => urgent.try_recv().map_or(Received::Closed, Received::Urgent),
            },
            default(left) => Received::Due,
        }
    }
}
