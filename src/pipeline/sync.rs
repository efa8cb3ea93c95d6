//! Channels, locks, atomics and threads of the driver. With `--cfg loom` they are models, and the tests of
//! `driver` explore every order of events.

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
    pub(in crate::pipeline) use std::thread::{Builder, JoinHandle, yield_now};
    pub(in crate::pipeline) use std::thread_local;
}
