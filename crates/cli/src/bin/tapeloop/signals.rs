//! Ctrl-C, the termination signals, and the one of the limit of file sizes.

use std::io;
use tapeloop::error::{Error, ErrorKind, Result};
use tapeloop_cli::exit_codes::INTERRUPTED;
use tapeloop_cli::interrupt::Interrupt;
use tapeloop_cli::terminal::complain;
use tapeloop_error::internal::{thread, thread_error};

/// Makes a write beyond the limit of file sizes (`ulimit -f`) an error, which names the file. By default the
/// system ends the program with SIGXFSZ.
pub(super) fn ignore_size_limit() {
    // SAFETY: ignoring a signal runs no code when it arrives.
    #[cfg(unix)]
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Installs the signal handler. The first signal asks the run to end in order, the second one exits the
/// program at once.
///
/// # Errors
/// [`ErrorKind::Io`] if the system refuses the handler.
pub(super) fn listen() -> Result<Interrupt> {
    let (interrupt, ask) = Interrupt::by_call();
    let mut ask = Some(ask);
    ctrlc::set_handler(move || {
        match ask.take() {
            Some(ask) => ask(),
            None => std::process::exit(i32::from(INTERRUPTED)),
        }
        // Printing to a full pipe blocks, and must not hold up the second signal.
        let _ = thread("tapeloop-notice").spawn(|| {
            complain("interrupted: finishing the batches in flight; interrupt again to abort");
        });
    })
    .map_err(|error| match error {
        // What the system says if it starts no thread for the handler.
        ctrlc::Error::System(error) if error.kind() == io::ErrorKind::WouldBlock => {
            thread_error(error)
        }
        error => Error::new(
            ErrorKind::Io,
            format!("cannot install the signal handler: {error}"),
        ),
    })?;
    Ok(interrupt)
}
