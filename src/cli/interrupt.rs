//! Ctrl-C and the termination signal.

use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The exit code of a run that was interrupted, as shells count it.
pub(super) const EXIT_CODE: u8 = 130;

/// Whether the run is asked to end. Clones share the answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
    obeyed: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens for signals from now on. The first asks the run to end in good
    /// order, the second ends the program where it stands.
    ///
    /// # Errors
    /// The system does not let it listen.
    pub(super) fn listen() -> Result<Self> {
        let interrupt = Interrupt::default();
        let asked = Arc::clone(&interrupt.asked);
        ctrlc::set_handler(move || {
            if asked.swap(true, Relaxed) {
                std::process::exit(i32::from(EXIT_CODE));
            }
            eprintln!("interrupted: finishing the batches in flight; once more to abort");
        })
        .map_err(|error| Error::new(ErrorKind::Io, format!("no signal handler: {error}")))?;
        Ok(interrupt)
    }

    /// Whether to leave out the next input and all after it.
    pub(super) fn stops_here(&self) -> bool {
        let asked = self.asked.load(Relaxed);
        if asked {
            self.obeyed.store(true, Relaxed);
        }
        asked
    }

    /// Whether inputs were left out: a signal after the last one changes nothing.
    pub(super) fn has_stopped(&self) -> bool {
        self.obeyed.load(Relaxed)
    }
}
