//! Ctrl-C and the termination signals.

use super::exit_codes::INTERRUPTED;
use super::terminal::complain;
use crate::error::{Error, ErrorKind, Result};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether a signal has asked the run to end. Clones share the state.
#[derive(Clone, Debug)]
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
    obeyed: Arc<AtomicBool>,
    /// The first signal disconnects the channel.
    signal: Receiver<()>,
}

impl Interrupt {
    /// An interrupt without a signal yet; dropping the sender disconnects the channel.
    fn new() -> (Self, Sender<()>) {
        let (sender, signal) = bounded(0);
        let interrupt = Interrupt {
            asked: Arc::default(),
            obeyed: Arc::default(),
            signal,
        };
        (interrupt, sender)
    }

    /// Installs the signal handler. The first signal asks the run to end in order, the second one
    /// exits the program at once.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system refuses the handler.
    pub(super) fn listen() -> Result<Self> {
        let (interrupt, sender) = Interrupt::new();
        let asked = Arc::clone(&interrupt.asked);
        let mut sender = Some(sender);
        ctrlc::set_handler(move || {
            if asked.swap(true, Relaxed) {
                std::process::exit(i32::from(INTERRUPTED));
            }
            drop(sender.take());
            // Printing to a full pipe blocks, and must not hold up the second signal.
            let _ = std::thread::Builder::new().spawn(|| {
                complain("interrupted: finishing the batches in flight; interrupt again to abort");
            });
        })
        .map_err(|error| {
            Error::new(
                ErrorKind::Io,
                format!("cannot install the signal handler: {error}"),
            )
        })?;
        Ok(interrupt)
    }

    /// An interrupt without signals, and a function that takes the place of the first one.
    pub(super) fn by_call() -> (Self, impl FnOnce() + Send + use<>) {
        let (interrupt, sender) = Interrupt::new();
        let asked = Arc::clone(&interrupt.asked);
        let ask = move || {
            asked.store(true, Relaxed);
            drop(sender);
        };
        (interrupt, ask)
    }

    /// A channel that the first signal disconnects.
    pub(super) fn signal(&self) -> &Receiver<()> {
        &self.signal
    }

    /// Whether to skip the next input and all after it.
    pub(super) fn stops_here(&self) -> bool {
        let asked = self.asked.load(Relaxed);
        if asked {
            self.obeyed.store(true, Relaxed);
        }
        asked
    }

    /// Whether inputs were skipped. A signal after the last input skips none.
    pub(super) fn has_stopped(&self) -> bool {
        self.obeyed.load(Relaxed)
    }
}
