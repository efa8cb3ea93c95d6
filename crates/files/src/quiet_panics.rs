//! Runs decoders of other projects, which panic at damaged data.

use std::cell::Cell;
use std::panic::{set_hook, take_hook};
use std::sync::Once;
use tapeloop_error::internal::catch;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, whose panics are errors of the input, without a message of the panic on standard
/// error. The error is the message of the panic.
pub fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                others(panic);
            }
        }));
    });
    IS_QUIET.set(true);
    let outcome = catch(work);
    IS_QUIET.set(false);
    outcome
}
