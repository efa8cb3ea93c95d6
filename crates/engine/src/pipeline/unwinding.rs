//! Calls of the embedder's code that must not end a thread of the engine.

use tapeloop_error::internal::catch;

/// Calls `work`, which runs the embedder's code: it drops items, or wakes tasks. Logs a panic, and then returns
/// `None`.
pub(super) fn catch_and_log<T>(work: impl FnOnce() -> T) -> Option<T> {
    let report = |panic| tracing::error!("dropping an item or waking a task panicked: {panic}");
    catch(work).map_err(report).ok()
}
