//! Refuses calls in which an engine would wait for itself.
//!
//! A thread that runs an engine's code must not wait for that engine: a submission in
//! `Workload::read` would wait for a slot that the same thread frees. So each thread keeps a list
//! of the engines whose code it runs, and calls that would wait for one of them fail.

use super::sync::thread_local;
use crate::error::{Error, Result};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Identifies an engine in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EngineId(u64);

impl EngineId {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        EngineId(NEXT.fetch_add(1, Relaxed))
    }
}

thread_local! {
    /// Outermost first. A thread of a shared pool may run another engine's code within that of one.
    ///
    /// A thread that ends drops this list, and may drop an engine after it, from another variable of
    /// the thread. Then no engine counts as entered.
    static ENGINES: RefCell<Vec<EngineId>> = const { RefCell::new(Vec::new()) };
}

/// While this guard lives, the current thread runs the engine's code. Guards are dropped in the reverse order
/// of [`InsideEngine::enter`].
pub(crate) struct InsideEngine {
    /// Whether this is the outermost guard of its engine on this thread.
    is_first: bool,
}

impl InsideEngine {
    /// Notes that this thread runs code for `engine` until the guard is dropped. Guards nest: the
    /// outermost one of an engine counts.
    pub(crate) fn enter(engine: EngineId) -> InsideEngine {
        let is_first = ENGINES.try_with(|engines| {
            let mut engines = engines.borrow_mut();
            let is_first = !engines.contains(&engine);
            if is_first {
                engines.push(engine);
            }
            is_first
        });
        InsideEngine {
            is_first: is_first.unwrap_or(false),
        }
    }

    /// Keeps the mark for as long as the thread lives.
    pub(crate) fn stay(self) {
        std::mem::forget(self);
    }
}

impl Drop for InsideEngine {
    fn drop(&mut self) {
        if self.is_first {
            let _ = ENGINES.try_with(|engines| engines.borrow_mut().pop());
        }
    }
}

/// Whether the current thread runs this engine's code.
pub(crate) fn is_inside(engine: EngineId) -> bool {
    let is_inside = ENGINES.try_with(|engines| engines.borrow().contains(&engine));
    is_inside.unwrap_or(false)
}

/// Whether the current thread runs the code of any engine.
pub(crate) fn is_inside_any() -> bool {
    let is_inside = ENGINES.try_with(|engines| !engines.borrow().is_empty());
    is_inside.unwrap_or(false)
}

/// Fails if this thread runs the engine's code. `call` names the refused call.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) with `fix` if it does.
pub(crate) fn check_outside(engine: EngineId, call: &str, fix: &str) -> Result<()> {
    if is_inside(engine) {
        Err(Error::usage(format!(
            "{call} here would wait for itself: this thread runs the engine's own code"
        ))
        .fix(fix))
    } else {
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_inside_until_the_outermost_guard_of_an_engine_is_dropped() {
        let (a, b) = (EngineId::new(), EngineId::new());
        assert!(!is_inside(a) && !is_inside_any());
        let first = InsideEngine::enter(a);
        let other = InsideEngine::enter(b);
        let again = InsideEngine::enter(a);
        assert!(is_inside(a) && is_inside(b));
        drop(again);
        assert!(is_inside(a) && is_inside(b));
        drop(other);
        assert!(is_inside(a) && !is_inside(b));
        assert!(check_outside(a, "submit", "use try_submit").is_err());
        assert!(check_outside(b, "submit", "use try_submit").is_ok());
        drop(first);
        assert!(!is_inside(a) && !is_inside_any());
    }
}
