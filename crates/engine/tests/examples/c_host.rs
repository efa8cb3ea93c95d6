//! The C interface among the examples, from several threads and in a child of a fork.

use crate::capi::{
    Tapeloop, tapeloop_close, tapeloop_open, tapeloop_run_engine, tapeloop_run_ring,
};
use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;

/// A call's return code, and the text of its error.
fn call(work: impl FnOnce(*mut c_char, usize) -> c_int) -> (c_int, String) {
    let mut text = [0; 1000];
    let code = work(text.as_mut_ptr(), text.len());
    // SAFETY: a call ends its text with a zero, and there is one where it wrote none.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    (code, text.to_string_lossy().into_owned())
}

/// The handle goes to other threads, as calls may come from any thread.
#[derive(Clone, Copy)]
struct Handle(*mut Tapeloop);
// SAFETY: the interface says so.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    fn open(backend: &CStr) -> Result<Handle, String> {
        let mut opened = null_mut();
        let (_, text) = call(|error, bytes| {
            // SAFETY: both texts are valid.
            opened = unsafe { tapeloop_open(backend.as_ptr(), error, bytes) };
            0
        });
        if opened.is_null() {
            Err(text)
        } else {
            Ok(Handle(opened))
        }
    }

    fn run_engine(self) -> (c_int, String) {
        // SAFETY: the handle is open, and the text valid.
        call(|error, bytes| unsafe { tapeloop_run_engine(self.0, 50, error, bytes) })
    }

    fn run_ring(self) -> (c_int, String) {
        // SAFETY: as above.
        call(|error, bytes| unsafe { tapeloop_run_ring(self.0, 50, error, bytes) })
    }

    fn close(self) {
        // SAFETY: it is the last call.
        unsafe { tapeloop_close(self.0) };
    }
}

#[test]
fn a_c_host_calls_from_several_threads() {
    let handle = Handle::open(c"cpu").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(handle.run_engine(), (0, String::new())));
            scope.spawn(|| assert_eq!(handle.run_ring(), (0, String::new())));
        }
    });
    handle.close();
    assert!(Handle::open(c"abacus").err().unwrap().contains("abacus"));
}

#[test]
#[cfg(unix)]
fn a_child_of_a_c_host_is_told_that_it_was_forked() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use tapeloop_test_support::child::in_child;
    let handle = Handle::open(c"cpu").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                handle.run_ring();
            }
        });
        let forked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..10 {
                in_child(|| {
                    for (code, text) in [handle.run_engine(), handle.run_ring()] {
                        if code != -1 || !text.contains("fork") {
                            return Err(format!("{code}: {text}"));
                        }
                    }
                    handle.close();
                    Ok(())
                });
                assert_eq!(
                    handle.run_engine(),
                    (0, String::new()),
                    "the parent goes on"
                );
            }
        }));
        is_over.store(true, Relaxed);
        forked.unwrap();
    });
    handle.close();
}
