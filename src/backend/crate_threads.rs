//! Which threads are the crate's own.
//!
//! On a thread that belongs to the embedder a backend leaves no trace: what a call
//! changes of the thread's state, it restores. On the threads of an engine or of a
//! worker process that would be wasted, as nothing else uses their state.

use std::cell::Cell;

thread_local! {
    static REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// Declares the calling thread the crate's own, for as long as it runs: backends may
/// leave their state in it.
pub(crate) fn register() {
    REGISTERED.set(true);
}

/// Whether the calling thread was given to [`register`].
#[cfg(feature = "cuda")]
pub(super) fn is_registered() -> bool {
    REGISTERED.get()
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_thread() {
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
