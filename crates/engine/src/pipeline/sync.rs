//! Channels, locks, atomics and threads of the driver. With `--cfg loom` they are models, and `loom_tests`
//! explores every order of events.

#[cfg(loom)]
mod model;

#[cfg(loom)]
pub(super) use model::*;

#[cfg(not(loom))]
pub(super) use real::*;

#[cfg(not(loom))]
mod real {
    pub(in crate::pipeline) use crate::backend::receive_within;
    pub(in crate::pipeline) use crossbeam_channel::{Receiver, Sender, bounded};
    pub(in crate::pipeline) use parking_lot::{Condvar, Mutex, MutexGuard as Guard};
    pub(in crate::pipeline) use std::sync::atomic::{AtomicBool, AtomicU64};
    pub(in crate::pipeline) use std::thread::{JoinHandle, yield_now};
    pub(in crate::pipeline) use std::thread_local;
    pub(in crate::pipeline) use tapeloop_error::internal::thread;

    use crossbeam_utils::Backoff;

    /// Spins for some microseconds at most, until `is_over`. A thread that sleeps takes longer to
    /// wake up.
    pub(in crate::pipeline) fn spin(is_over: impl Fn() -> bool) {
        let backoff = Backoff::new();
        while !is_over() && !backoff.is_completed() {
            backoff.snooze();
        }
    }

    /// [`spin`] while the lock of `guard` is free.
    pub(in crate::pipeline) fn spin_unlocked<T>(
        guard: &mut Guard<'_, T>,
        is_over: impl Fn() -> bool,
    ) {
        Guard::unlocked(guard, || spin(is_over));
    }
}
