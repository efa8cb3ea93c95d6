//! A thread that lists the inputs of a run. A signal ends the list even while the thread waits.

use super::interrupt::Interrupt;
use super::run_counters::RunCounters;
use super::thread_times::ThreadTimer;
use crossbeam_channel::{Receiver, TryRecvError, TrySendError, bounded, select};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tapeloop::error::Result;
use tapeloop_error::internal::{thread, thread_error};
use tapeloop_inputs::{Content, Source, Sources};

/// Maximum number of sources that the thread is ahead of the run: enough for a record batch's
/// structures to come together, few enough that a signal leaves little behind.
const SOURCES_AHEAD: usize = 64;

/// The sources that the thread lists, in groups: those in one record batch of a packed set are together
/// as far as they are listed already, as one thread has to read it before any other can go on with its
/// structures. Any other source is alone. After a signal the run does not join the thread, which may
/// block in a pipe with an idle writer until the process ends.
pub struct SourceThread {
    sources: Receiver<Source>,
    /// The first source of the next group, if it was received.
    next: Option<Source>,
    interrupt: Interrupt,
    // `None` once the thread has been joined.
    thread: Option<JoinHandle<()>>,
}

impl SourceThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if the thread cannot be started.
    pub fn start(
        mut sources: Sources,
        interrupt: &Interrupt,
        counters: &Arc<RunCounters>,
    ) -> Result<Self> {
        let (sender, receiver) = bounded(SOURCES_AHEAD);
        let counters = Arc::clone(counters);
        let list = move || {
            let (timer, mut room) = (ThreadTimer::start(), Duration::ZERO);
            loop {
                let source = sources.next();
                counters.set_skipped(sources.skipped());
                counters.set_names_repeated(sources.names_repeated());
                let sent = source.map(|source| match sender.try_send(source) {
                    Err(TrySendError::Full(source)) => {
                        let start = Instant::now();
                        let sent = sender.send(source).is_ok();
                        room += start.elapsed();
                        sent
                    }
                    sent => sent.is_ok(),
                });
                if sent != Some(true) {
                    break;
                }
            }
            counters.set_list_thread(timer.stop(), room);
        };
        let thread = thread("tapeloop-list").spawn(list);
        let thread = thread.map_err(thread_error)?;
        Ok(SourceThread {
            sources: receiver,
            next: None,
            interrupt: interrupt.clone(),
            thread: Some(thread),
        })
    }

    /// Waits for a source; `None` after the last one, and after a signal, which is looked at again
    /// once a source was received, as `select!` takes either of two that are ready.
    fn receive(&mut self) -> Option<Source> {
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
            // A signal after the last input skips nothing.
            Err(TryRecvError::Disconnected) => self.end(),
            _ if self.interrupt.stops_here() => None,
            received => received.ok(),
        }
    }

    /// Ends the list, and resumes a panic of the thread, which must not look like the last input.
    fn end(&mut self) -> Option<Source> {
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            resume_unwind(panic);
        }
        None
    }
}

impl Iterator for SourceThread {
    type Item = Vec<Source>;

    fn next(&mut self) -> Option<Vec<Source>> {
        let first = match self.next.take() {
            Some(_) if self.interrupt.stops_here() => return None,
            Some(source) => source,
            None => self.receive()?,
        };
        let mut group = vec![first];
        // It does not wait for more: the list may go on much later, or only once this group was read.
        while let Ok(source) = self.sources.try_recv() {
            let contents = (&source.content, &group[0].content);
            let is_together = |one: &Content, other| one.shares_record_batch(other);
            if !matches!(contents, (Ok(one), Ok(other)) if is_together(one, other)) {
                self.next = Some(source);
                break;
            }
            group.push(source);
        }
        Some(group)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use serde_json::Map;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::process::Command;
    use tapeloop::features::Input;
    use tapeloop::structure::{ReadBudget, ReadLimits, ReadOptions, Reader};
    use tapeloop_inputs::packed::{SetSettings, SetWriter};
    use tapeloop_inputs::{ArchiveOptions, Archives, Shard};

    #[test]
    fn structures_of_one_record_batch_come_together() {
        let folder = tempfile::tempdir().unwrap();
        let line = b"ATOM      1  CA  ALA A   1      11.104   6.134  -6.504\n";
        let mut reader = Reader::new(ReadOptions::default());
        let settings = SetSettings::default();
        let sets = ["a", "b"].map(|name| {
            let path = folder.path().join(name);
            let mut set = SetWriter::open(&path, settings.clone()).unwrap();
            for number in 0..3 {
                let structure = reader.read_auto("x.pdb", line).unwrap().remove(0);
                let mut models = vec![Input::new(format!("{number}"), number, Ok(structure))];
                set.add(&mut models).unwrap();
            }
            set.finish().unwrap();
            path.to_str().unwrap().to_owned()
        });
        let archives = Archives::Read(ArchiveOptions {
            members: None,
            limits: ReadLimits::default(),
            budget: Arc::new(ReadBudget::new(1 << 30)),
            has_topology: false,
            reader: Map::new(),
        });
        let [a, b] = sets;
        let items = vec![a, "x.pdb".to_owned(), "y.pdb".to_owned(), b];
        let sources = Sources::new(items, archives, Shard::WHOLE);
        let (interrupt, _ask) = Interrupt::by_call();
        let mut sources = SourceThread::start(sources, &interrupt, &Arc::default()).unwrap();
        // Listed to the end, so that nothing depends on how far the thread is.
        sources.thread.take().unwrap().join().unwrap();
        let ordinals = |group: Vec<Source>| {
            group
                .iter()
                .map(|source| source.ordinal)
                .collect::<Vec<_>>()
        };
        let groups: Vec<_> = sources.map(ordinals).collect();
        assert_eq!(groups, [vec![0, 1, 2], vec![3], vec![4], vec![5, 6, 7]]);
    }

    #[test]
    fn a_signal_ends_sources_that_wait_for_a_list_and_skips_nothing_after_the_last_input() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        let made = Command::new("mkfifo").arg(&list).status().unwrap();
        assert!(made.success());
        let item = format!("@{}", list.display());
        let (interrupt, ask) = Interrupt::by_call();
        let counters = Arc::default();
        let start = |item: &str| {
            let sources = Sources::new(vec![item.to_owned()], Archives::Unknown, Shard::WHOLE);
            SourceThread::start(sources, &interrupt, &counters).unwrap()
        };
        let mut waiting = start(&item);
        let mut writer = OpenOptions::new().write(true).open(&list).unwrap();
        writeln!(writer, "/1.pdb").unwrap();
        assert_eq!(waiting.next().unwrap()[0].path.to_str(), Some("/1.pdb"));
        let mut short = start("/2.pdb");
        assert!(short.next().is_some());
        short.thread.take().unwrap().join().unwrap();
        ask();
        assert!(short.next().is_none() && !interrupt.has_stopped());
        // The writer is idle and does not close the list.
        assert!(waiting.next().is_none() && interrupt.has_stopped());
        drop(writer);
    }
}
