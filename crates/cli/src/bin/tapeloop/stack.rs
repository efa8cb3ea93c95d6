//! The stack of the main thread. Those of other threads are sized where they are started.

use tapeloop::error::Result;

/// The stack that the main thread needs, in bytes, with room for a build that is not optimized.
#[cfg(target_os = "linux")]
const MAIN_BYTES_MIN: u64 = 1 << 20;

/// Refuses a limit under which the stack of the main thread may overflow, which would end the program without
/// a reason.
///
/// # Errors
/// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) with the limit and how to raise it.
#[cfg(target_os = "linux")]
pub(super) fn check() -> Result<()> {
    use rustix::process::{Resource, getrlimit};
    use tapeloop::error::{Error, ErrorKind};
    let limit = getrlimit(Resource::Stack).current;
    match limit.filter(|bytes| *bytes < MAIN_BYTES_MIN) {
        None => Ok(()),
        Some(bytes) => {
            let message = format!(
                "the stack may have {bytes} bytes, and the program needs {MAIN_BYTES_MIN} (`ulimit -s`)"
            );
            Err(Error::new(ErrorKind::Io, message).fix("raise the limit: ulimit -s 8192"))
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn check() -> Result<()> {
    Ok(())
}
