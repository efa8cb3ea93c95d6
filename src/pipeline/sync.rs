//! What the threads of the driver meet at: channels, locks, and threads
//! themselves. Compiled with `--cfg loom` they are models, which the tests of
//! `driver` run through every order of events.

#[cfg(loom)]
mod model;

#[cfg(loom)]
pub(super) use model::*;

#[cfg(not(loom))]
pub(super) use real::*;

use std::time::Instant;

/// What came first.
pub(super) enum Received<T> {
    /// From the channel of urgent messages.
    Urgent(T),
    Message(T),
    /// The deadline.
    #[cfg_attr(loom, allow(dead_code, reason = "time stands still there"))]
    Due,
    /// Nothing more will come.
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

    /// The next message, an urgent one before others unless `normal_first`, or the
    /// deadline. `urgent` and `normal` close together.
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
        // To wait for two takes several times as long as to look.
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
                // An urgent item may have come between the two looks.
                Err(_) => urgent.try_recv().map_or(Received::Closed, Received::Urgent),
            },
            default(left) => Received::Due,
        }
    }
}
