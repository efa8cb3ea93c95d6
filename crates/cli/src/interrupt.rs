//! A request to end a run in order.

use crossbeam_channel::{Receiver, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether the run was asked to end, as by a signal. Clones share the state.
#[derive(Clone, Debug)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    obeyed: Arc<AtomicBool>,
    /// The request disconnects the channel.
    signal: Receiver<()>,
}

impl Interrupt {
    /// An interrupt, and the function that asks the run to end.
    pub fn by_call() -> (Self, impl FnOnce() + Send + use<>) {
        let (sender, signal) = bounded(0);
        let interrupt = Interrupt {
            asked: Arc::default(),
            obeyed: Arc::default(),
            signal,
        };
        let asked = Arc::clone(&interrupt.asked);
        // In this order: who sees the channel disconnected sees the request too.
        let ask = move || {
            asked.store(true, Relaxed);
            drop(sender);
        };
        (interrupt, ask)
    }

    /// A channel that the request disconnects.
    pub fn signal(&self) -> &Receiver<()> {
        &self.signal
    }

    /// Whether to skip the next input and all after it. If so, inputs count as skipped from here on.
    pub fn stops_here(&self) -> bool {
        let asked = self.asked.load(Relaxed);
        if asked {
            self.obeyed.store(true, Relaxed);
        }
        asked
    }

    /// Whether inputs were skipped. A request after the last input skips none.
    pub fn has_stopped(&self) -> bool {
        self.obeyed.load(Relaxed)
    }
}
