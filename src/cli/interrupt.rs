//! Ctrl-C and the termination signals.

use super::complain;
use crate::error::{Error, ErrorKind, Result};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The exit code of a run that was interrupted, as shells count it.
pub(super) const EXIT_CODE: u8 = 130;

/// Whether the run is asked to end. Clones share the answer.
#[derive(Clone, Debug)]
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
    obeyed: Arc<AtomicBool>,
    /// Disconnected by the first signal.
    signal: Receiver<()>,
}

impl Interrupt {
    /// One that is not asked, and what disconnects its signal.
    fn new() -> (Self, Sender<()>) {
        let (sender, signal) = bounded(0);
        let interrupt = Interrupt {
            asked: Arc::default(),
            obeyed: Arc::default(),
            signal,
        };
        (interrupt, sender)
    }

    /// Listens for signals from now on. The first asks the run to end in good
    /// order, the second ends the program where it stands.
    ///
    /// # Errors
    /// The system does not let it listen.
    pub(super) fn listen() -> Result<Self> {
        let (interrupt, sender) = Interrupt::new();
        let asked = Arc::clone(&interrupt.asked);
        let mut sender = Some(sender);
        ctrlc::set_handler(move || {
            if asked.swap(true, Relaxed) {
                std::process::exit(i32::from(EXIT_CODE));
            }
            drop(sender.take());
            // On a thread of its own: a full pipe must not hold up the second signal.
            let _ = std::thread::Builder::new().spawn(|| {
                complain("interrupted: finishing the batches in flight; once more to abort");
            });
        })
        .map_err(|error| Error::new(ErrorKind::Io, format!("no signal handler: {error}")))?;
        Ok(interrupt)
    }

    /// One that a test asks through the function.
    #[cfg(test)]
    pub(super) fn by_hand() -> (Self, impl FnOnce()) {
        let (interrupt, sender) = Interrupt::new();
        let asked = Arc::clone(&interrupt.asked);
        let ask = move || {
            asked.store(true, Relaxed);
            drop(sender);
        };
        (interrupt, ask)
    }

    /// Disconnected once the run is asked to end.
    pub(super) fn signal(&self) -> &Receiver<()> {
        &self.signal
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
