//! Finds out that this process is the child of a fork, in which the threads of its parent do not exist.
//!
//! A lock that another thread of the parent held at the fork stays locked in the child, a device's
//! context is the parent's alone, and a thread that the child waits for never ends. So whatever was made
//! before the fork must not be used after it, and is not even dropped.

use crate::error::{Error, Result};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tapeloop_error::internal::catch;

/// The number of forks between the first process that used this crate and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process that something was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// This process.
    pub(crate) fn current() -> Self {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(count_forks);
        Process(FORKS.load(Relaxed))
    }

    /// Whether this is still that process.
    #[inline]
    pub(crate) fn is_current(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }

    /// Fails in a child of that process.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage). `object` names what was made before the fork.
    #[inline]
    pub(crate) fn check(self, object: &str) -> Result<()> {
        if self.is_current() {
            Ok(())
        } else {
            Err(forked_error(object))
        }
    }
}

/// A value that is leaked instead of dropped in a child of the process that made it. A panic when it
/// is dropped goes no further.
#[derive(Debug)]
pub(crate) struct OfProcess<T> {
    process: Process,
    value: ManuallyDrop<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        OfProcess {
            process: Process::current(),
            value: ManuallyDrop::new(value),
        }
    }
}

impl<T> Deref for OfProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for OfProcess<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.process.is_current() {
            // SAFETY: `drop` runs once, and nothing uses the value after it.
            let dropped = catch(|| unsafe { ManuallyDrop::drop(&mut self.value) });
            if let Err(panic) = dropped {
                tracing::error!("dropping an engine's parts panicked: {panic}");
            }
        }
    }
}

/// The error of an object that was made before the process was forked.
#[cold]
fn forked_error(object: &str) -> Error {
    let message = format!(
        "this process is the child of a fork, and {object} was made before the fork, in its parent"
    );
    Error::usage(message).fix(
        "make it in the child, or start the child without a fork, in Python with the start method \
         \"spawn\" of multiprocessing",
    )
}

/// Installs a handler that counts forks. The system calls it in the child before the fork returns
/// there.
#[cfg(unix)]
fn count_forks() {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Relaxed);
    }
    // SAFETY: the function may run after a fork of a process with threads: it changes an atomic number.
    let failed = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    if failed != 0 {
        tracing::warn!("forks of this process are not noticed: pthread_atfork returned {failed}");
    }
}

#[cfg(not(unix))]
fn count_forks() {}
