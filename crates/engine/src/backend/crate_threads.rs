//! Registers the threads that belong to this crate.
//!
//! On a thread of the embedder a backend restores the thread's CUDA state after each call. On the
//! threads of an engine or of a worker process it leaves its own state in place, as no other code
//! uses it: that saves driver calls.

use std::cell::Cell;

thread_local! {
    static REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// Registers the calling thread for the rest of its life.
pub(crate) fn register() {
    REGISTERED.set(true);
}

/// Whether the calling thread is registered.
#[cfg(feature = "cuda")]
pub(super) fn is_registered() -> bool {
    REGISTERED.get()
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;

    #[test]
    fn a_registration_is_of_one_thread() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(!is_registered());
                register();
                assert!(is_registered());
                let other = std::thread::spawn(is_registered).join().unwrap();
                assert!(!other);
            });
        });
    }
}
