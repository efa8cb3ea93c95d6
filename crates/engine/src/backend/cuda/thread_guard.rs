//! Sets the CUDA state of the calling thread for a call of the backend.
//!
//! The driver keeps two things for each thread: a stack of contexts, whose top is current, and a
//! mode that determines whose captures restrict the thread. In the default mode a capture of mode
//! global on any thread of the process (PyTorch's are) refuses "potentially unsafe" calls
//! everywhere, such as allocations and queries of events, and such a call also invalidates the
//! capture. So every call here runs in the relaxed mode, which captures of other threads do not
//! affect, and with the backend's context current.

use super::driver::Driver;
use super::result_codes;
use crate::backend::crate_threads;
use cudarc::driver::sys::{self, CUstreamCaptureMode};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::null_mut;

thread_local! {
    /// The context of the active guard; null if there is none.
    static ACTIVE_CONTEXT: Cell<sys::CUcontext> = const { Cell::new(null_mut()) };
    /// Whether this registered thread is in the relaxed mode for good.
    static RELAXED: Cell<bool> = const { Cell::new(false) };
}

/// The name and the result of a refused driver call.
pub(super) type Refused = (&'static str, i32);

/// The driver's functions, while a context is current on the thread and the thread is in the
/// relaxed mode. Dropping it restores both, except on registered threads (see [`crate_threads`]).
pub(super) struct ThreadGuard {
    driver: &'static Driver,
    restore: Option<Restore>,
    /// It restores the state of the thread that made it.
    _not_send: PhantomData<*const ()>,
}

/// The state before an outermost guard.
struct Restore {
    mode: Option<Relaxed>,
    /// Whether a context was pushed.
    has_pushed: bool,
    /// The context of the guard that was active before.
    outer: sys::CUcontext,
}

impl ThreadGuard {
    /// Makes `context` current on this thread.
    ///
    /// `context` must be retained. Its handle is only compared and handed to the
    /// driver, which refuses one that it does not know.
    pub(super) fn new(
        driver: &'static Driver,
        context: sys::CUcontext,
    ) -> Result<ThreadGuard, Refused> {
        let mut guard = ThreadGuard {
            driver,
            restore: None,
            _not_send: PhantomData,
        };
        if crate_threads::is_registered() {
            set_for_good(driver, context)?;
        } else if ACTIVE_CONTEXT.get() != context {
            // A guard inside another one of the same context changes nothing.
            let has_pushed = current(driver)? != context;
            if has_pushed {
                // SAFETY: the driver checks the handle. The context below on the
                // stack is not touched, so it may even be destroyed meanwhile.
                let result = unsafe { (driver.cuCtxPushCurrent_v2)(context) };
                refuse("cuCtxPushCurrent", result)?;
            }
            // Put in before the mode is changed: if that is refused, the guard is dropped and pops
            // the context.
            let restore = guard.restore.insert(Restore {
                mode: None,
                has_pushed,
                outer: ACTIVE_CONTEXT.replace(context),
            });
            restore.mode = Some(Relaxed::new(driver)?);
        }
        Ok(guard)
    }
}

impl Deref for ThreadGuard {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        self.driver
    }
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        let Some(restore) = self.restore.take() else {
            return;
        };
        // The mode is restored before the context is popped, as the driver keeps it with the context's thread.
        drop(restore.mode);
        if restore.has_pushed {
            let mut popped = null_mut();
            // SAFETY: `popped` outlives the call. What is popped is what `new`
            // pushed: guards are dropped in the reverse order on the same thread.
            unsafe { (self.driver.cuCtxPopCurrent_v2)(&mut popped) };
        }
        ACTIVE_CONTEXT.set(restore.outer);
    }
}

/// Keeps the thread in the relaxed mode; dropping it restores the previous mode.
pub(super) struct Relaxed {
    driver: &'static Driver,
    before: u32,
    _not_send: PhantomData<*const ()>,
}

impl Relaxed {
    pub(super) fn new(driver: &'static Driver) -> Result<Relaxed, Refused> {
        Ok(Relaxed {
            driver,
            before: exchange(driver, RELAXED_MODE)?,
            _not_send: PhantomData,
        })
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // The driver itself returned this mode, so it refuses the mode only while it shuts down.
        let _ = exchange(self.driver, self.before);
    }
}

const RELAXED_MODE: u32 = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as u32;

/// Changes the thread's mode, and returns the previous one. Modes are plain numbers here, as a
/// newer driver may return one that the bindings' enum lacks.
fn exchange(driver: &Driver, mode: u32) -> Result<u32, Refused> {
    const { assert!(size_of::<CUstreamCaptureMode>() == size_of::<u32>()) };
    let mut mode = mode;
    // SAFETY: `mode` outlives the call and, as asserted, has the size that the driver
    // reads and writes.
    let result = unsafe { (driver.cuThreadExchangeStreamCaptureMode)((&raw mut mode).cast()) };
    refuse("cuThreadExchangeStreamCaptureMode", result).map(|()| mode)
}

/// The context that is current on this thread; null if there is none. The driver answers from
/// thread-local memory.
fn current(driver: &Driver) -> Result<sys::CUcontext, Refused> {
    let mut current = null_mut();
    // SAFETY: `current` outlives the call.
    let result = unsafe { (driver.cuCtxGetCurrent)(&mut current) };
    refuse("cuCtxGetCurrent", result).map(|()| current)
}

/// Makes `context` current and the mode relaxed on a registered thread. Slots of several devices
/// may share the thread, so the context is checked each time.
fn set_for_good(driver: &'static Driver, context: sys::CUcontext) -> Result<(), Refused> {
    if current(driver)? != context {
        // SAFETY: the driver checks the handle.
        let result = unsafe { (driver.cuCtxSetCurrent)(context) };
        refuse("cuCtxSetCurrent", result)?;
    }
    if !RELAXED.get() {
        exchange(driver, RELAXED_MODE)?;
        RELAXED.set(true);
    }
    Ok(())
}

fn refuse(call: &'static str, result: i32) -> Result<(), Refused> {
    match result {
        result_codes::SUCCESS => Ok(()),
        _ => Err((call, result)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_driver::{self, FakeDriverUse, GLOBAL, PRIMARY, RELAXED};
    use super::super::stream::{Event, Stream};
    use super::*;
    use crate::backend::Call;

    const FOREIGN: usize = 0x77;

    /// Runs in a new thread, whose state is fresh.
    fn in_a_thread(work: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    }

    #[test]
    fn a_call_leaves_the_contexts_and_the_mode_of_the_thread_as_they_were() {
        let session = FakeDriverUse::new();
        for (mode, stack) in [
            (GLOBAL, vec![]),
            (GLOBAL, vec![FOREIGN]),
            (1, vec![FOREIGN, PRIMARY]),
            (RELAXED, vec![PRIMARY]),
        ] {
            in_a_thread(|| {
                fake_driver::set_thread(mode, &stack);
                let context = session.context();
                assert_eq!(fake_driver::thread(), (mode, stack.clone()));
                let bound = context.bind().unwrap();
                let (inside, contexts) = fake_driver::thread();
                assert_eq!((inside, contexts.last()), (RELAXED, Some(&PRIMARY)));
                drop(bound);
                assert_eq!(fake_driver::thread(), (mode, stack.clone()));
                let stream = Stream::new(&context).unwrap();
                let event = Event::new(&context, false).unwrap();
                event.record(&stream).unwrap();
                event.wait().unwrap();
                drop((stream, event));
                assert_eq!(fake_driver::thread(), (mode, stack.clone()));
                // An error, and a context that is lost meanwhile.
                let bound = context.bind().unwrap();
                assert!(context.check("cuEventQuery", 700).is_err());
                drop(bound);
                assert!(context.bind().is_err());
                drop(context);
                assert_eq!(fake_driver::thread(), (mode, stack.clone()));
            });
        }
    }

    #[test]
    fn inside_a_guard_nothing_is_changed_once_more() {
        let session = FakeDriverUse::new();
        in_a_thread(|| {
            fake_driver::set_thread(GLOBAL, &[FOREIGN]);
            let context = session.context();
            fake_driver::take_changes();
            let outer = context.enter();
            for _ in 0..3 {
                drop(context.bind_for(Call::Poll).unwrap());
                assert_eq!(fake_driver::thread(), (RELAXED, vec![FOREIGN, PRIMARY]));
            }
            drop(outer);
            assert_eq!(fake_driver::thread(), (GLOBAL, vec![FOREIGN]));
            assert_eq!(
                fake_driver::take_changes(),
                (2, 1),
                "two exchanges, one push"
            );
        });
    }

    #[test]
    fn a_thread_of_the_crate_s_own_is_changed_once_and_keeps_it() {
        let session = FakeDriverUse::new();
        in_a_thread(|| {
            let context = session.context();
            crate_threads::register();
            fake_driver::take_changes();
            for _ in 0..3 {
                assert!(context.enter().is_none());
                drop(context.bind().unwrap());
                assert_eq!(fake_driver::thread(), (RELAXED, vec![PRIMARY]));
            }
            assert_eq!(
                fake_driver::take_changes(),
                (1, 1),
                "one exchange, one context"
            );
        });
    }

    #[test]
    fn captures_of_other_threads_neither_refuse_a_call_nor_are_invalidated() {
        let session = FakeDriverUse::new();
        fake_driver::state(|state| state.captures_elsewhere = true);
        for own in [false, true] {
            in_a_thread(|| {
                if own {
                    crate_threads::register();
                }
                let context = session.context();
                let stream = Stream::new(&context).unwrap();
                let event = Event::new(&context, false).unwrap();
                event.record(&stream).unwrap();
                assert!(event.is_done().unwrap());
                event.wait().unwrap();
                stream.synchronize().unwrap();
                drop((stream, event, context));
            });
        }
        assert!(!fake_driver::state(|state| state.invalidated));
        assert_eq!(fake_driver::state(|state| state.retained), 0);
    }

    #[test]
    fn a_wait_that_a_capture_refuses_is_made_again_and_loses_nothing() {
        let session = FakeDriverUse::new();
        let context = session.context();
        let stream = Stream::new(&context).unwrap();
        let event = Event::new(&context, false).unwrap();
        for refusal in 900..=909 {
            fake_driver::state(|state| state.waits_return = refusal);
            assert!(!event.is_done().unwrap(), "not yet");
            assert_eq!(event.wait().unwrap_err().code(), Some(refusal));
            assert_eq!(stream.synchronize().unwrap_err().code(), Some(refusal));
            assert!(!context.is_lost());
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(3));
                fake_driver::state(|state| state.waits_return = 0);
            });
            event.wait().unwrap();
        });
        assert!(event.is_done().unwrap());
        fake_driver::state(|state| state.waits_return = 700);
        assert_eq!(event.is_done().unwrap_err().code(), Some(700));
        assert!(context.is_lost());
    }
}
