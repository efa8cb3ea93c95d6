//! Panics of code that is given to the crates.

/// Runs code that may panic. The error is the message of the panic.
#[inline]
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(panic_text)
}

/// The message of a panic. Drops the payload of the panic, whose drop may panic too.
fn panic_text(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("no message").to_owned();
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(panic)));
    // The payload of the second panic may panic again, so it is leaked.
    dropped.unwrap_or_else(std::mem::forget);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            std::panic::panic_any(PanicsWhenDropped);
        }
    }

    #[test]
    fn a_panic_that_panics_when_it_is_dropped_ends_nothing() {
        assert_eq!(panic_text(Box::new(PanicsWhenDropped)), "no message");
        assert_eq!(panic_text(Box::new("planted")), "planted");
        assert_eq!(panic_text(Box::new("planted".to_owned())), "planted");
    }
}
