//! The walk over a run's inputs, which a signal ends whatever the walk waits for.

use super::inputs::{Source, Sources};
use super::interrupt::Interrupt;
use super::tally::Tally;
use crate::error::{Error, Result};
use crossbeam_channel::{Receiver, TryRecvError, bounded, select};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Sources that the walk is ahead of the run.
const SOURCES_AHEAD: usize = 64;

/// Sources from a thread of its own. After a signal the run does not wait for it: it may hang
/// in a pipe whose writer is idle, until the process ends.
pub(super) struct Walk {
    sources: Receiver<Source>,
    interrupt: Interrupt,
    // `None` once the walk has ended.
    thread: Option<JoinHandle<()>>,
}

impl Walk {
    /// Starts to walk.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(
        mut sources: Sources,
        interrupt: &Interrupt,
        tally: &Arc<Tally>,
    ) -> Result<Self> {
        let (sender, receiver) = bounded(SOURCES_AHEAD);
        let tally = Arc::clone(tally);
        let walk = move || {
            while let Some(source) = sources.next() {
                tally.set_specials_skipped(sources.specials_skipped());
                if sender.send(source).is_err() {
                    return;
                }
            }
            tally.set_specials_skipped(sources.specials_skipped());
        };
        let thread = std::thread::Builder::new()
            .name("tapeloop-walk".to_owned())
            .spawn(walk)
            .map_err(Error::io)?;
        Ok(Walk {
            sources: receiver,
            interrupt: interrupt.clone(),
            thread: Some(thread),
        })
    }

    /// Passes a panic of the walk on, which must not look like the end of the inputs.
    fn end(&mut self) -> Option<Source> {
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            resume_unwind(panic);
        }
        None
    }
}

impl Iterator for Walk {
    type Item = Source;

    fn next(&mut self) -> Option<Source> {
        let interrupt = &self.interrupt;
        let received = select! {
            recv(self.sources) -> source => source.map_err(|_| TryRecvError::Disconnected),
            recv(interrupt.signal()) -> _ => Err(TryRecvError::Empty),
        };
        let received = match received {
            Err(TryRecvError::Empty) => self.sources.try_recv(),
            received => received,
        };
        match received {
            // A signal behind the last input leaves nothing out.
            Err(TryRecvError::Disconnected) => self.end(),
            _ if self.interrupt.stops_here() => None,
            received => received.ok(),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::process::Command;

    #[test]
    fn a_signal_ends_a_walk_that_waits_for_a_list_and_changes_nothing_behind_the_last_input() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        let made = Command::new("mkfifo").arg(&list).status().unwrap();
        assert!(made.success());
        let item = format!("@{}", list.display());
        let (interrupt, ask) = Interrupt::by_hand();
        let tally = Arc::default();
        let start = |item: &str| {
            Walk::start(Sources::new(vec![item.to_owned()]), &interrupt, &tally).unwrap()
        };
        let mut walk = start(&item);
        let mut writer = OpenOptions::new().write(true).open(&list).unwrap();
        writeln!(writer, "/1.pdb").unwrap();
        assert_eq!(walk.next().unwrap().path.to_str(), Some("/1.pdb"));
        let mut short = start("/2.pdb");
        assert!(short.next().is_some());
        short.thread.take().unwrap().join().unwrap();
        ask();
        assert!(short.next().is_none() && !interrupt.has_stopped());
        // The writer is idle and does not close the list.
        assert!(walk.next().is_none() && interrupt.has_stopped());
        drop(writer);
    }
}
