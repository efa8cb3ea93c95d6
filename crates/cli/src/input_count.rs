//! Counts the inputs of a run, on a thread that ends with the run.

use super::run_counters::RunCounters;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::sync::Arc;
use std::thread::JoinHandle;
use tapeloop_error::internal::thread;
use tapeloop_inputs::{Archives, Shard, Sources, Trajectories};

/// A thread that counts all inputs, until it is dropped.
pub struct InputCount {
    _thread: Stoppable,
}

impl InputCount {
    /// Starts a thread that lists `items` to set the total of `counters`, until the value is dropped. `None`
    /// if they can be listed only once.
    pub fn start(
        counters: &Arc<RunCounters>,
        items: &[String],
        trajectories: &Trajectories,
        shard: Shard,
    ) -> Option<Self> {
        if !Sources::can_walk_twice(items) {
            return None;
        }
        let counters = Arc::clone(counters);
        let sources = sources(items, trajectories, shard);
        let work = move |stopped: Receiver<()>| {
            let has_ended = || stopped.try_recv() == Err(TryRecvError::Disconnected);
            if let Some(total) = count(sources, has_ended) {
                counters.set_total(total);
            }
        };
        let thread = Stoppable::start("tapeloop-count", work)?;
        Some(InputCount { _thread: thread })
    }
}

/// The number of inputs. `None` if they can be listed only once, or if there are archives.
pub fn count_inputs(items: &[String], trajectories: &Trajectories, shard: Shard) -> Option<u64> {
    let can_list = Sources::can_walk_twice(items);
    can_list
        .then(|| count(sources(items, trajectories, shard), || false))
        .flatten()
}

fn sources(items: &[String], trajectories: &Trajectories, shard: Shard) -> Sources {
    Sources::new(items.to_vec(), Archives::Whole, shard).with_trajectories(trajectories.whole())
}

/// Counts all inputs, unless the run ends before, or there are archives: their members are not
/// known until they have been read.
fn count(mut sources: Sources, has_ended: impl Fn() -> bool) -> Option<u64> {
    let mut total = 0;
    while sources.next().is_some() {
        if has_ended() || sources.has_members() {
            return None;
        }
        total += 1;
    }
    // An archive in another shard ends the list without a source.
    (!sources.has_members()).then_some(total)
}

/// A thread that dropping ends, and waits for: its channel, which has no messages, is disconnected then.
pub struct Stoppable {
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Stoppable {
    /// Starts the thread. `None` if the thread cannot be started: without it the run shows no progress.
    pub fn start(name: &str, work: impl FnOnce(Receiver<()>) + Send + 'static) -> Option<Self> {
        let (stop, stopped) = bounded(0);
        let started = thread(name).spawn(move || work(stopped));
        let thread = started.ok()?;
        Some(Stoppable {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Stoppable {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic while showing progress does not concern the run.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inputs_of_an_archive_are_not_counted_as_none_where_another_shard_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["a.pdb", "b.tar"].map(|name| folder.path().join(name));
        for path in &names {
            std::fs::write(path, "").unwrap();
        }
        let items = names.map(|path| path.to_str().unwrap().to_owned());
        let count = |items: &[String], shard: &str| {
            count_inputs(items, &Trajectories::Unknown, shard.parse().unwrap())
        };
        assert_eq!(count(&items[..1], "1/2"), Some(1));
        assert_eq!(count(&items[..1], "2/2"), Some(0));
        assert_eq!(count(&items, "1/2"), None);
    }
}
