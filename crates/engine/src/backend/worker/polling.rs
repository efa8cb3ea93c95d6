//! Polls busy slots until they finish, in whichever order that is.

use crate::backend::{Backoff, receive_within};
use crossbeam_channel::Receiver;
use std::sync::Arc;
use std::time::Instant;

/// A busy slot.
pub(super) trait Polled {
    /// Whether the work is over. The slot has then published its outcome.
    fn poll(&self) -> bool;
}

/// Polls each slot that arrives until its work is done. Returns when all are done and no more can
/// arrive. A slot arrives again for more work, also while it is polled.
///
/// CUDA has no call that waits for any of several events, so the thread polls: see
/// [`Backoff`] for how often. An arrival wakes it.
pub(super) fn poll_slots<L: Polled>(arrivals: &Receiver<Arc<L>>) {
    let mut at_work: Vec<Arc<L>> = Vec::new();
    let mut backoff = Backoff::new(Instant::now());
    loop {
        if at_work.is_empty() {
            let Ok(slot) = arrivals.recv() else {
                return;
            };
            add(&mut at_work, slot);
            backoff.reset(Instant::now());
        }
        while let Ok(slot) = arrivals.try_recv() {
            add(&mut at_work, slot);
            backoff.reset(Instant::now());
        }
        let before = at_work.len();
        at_work.retain(|slot| !slot.poll());
        let now = Instant::now();
        if at_work.len() < before {
            backoff.reset(now);
            continue;
        }
        let Some(pause) = backoff.pause(now) else {
            std::hint::spin_loop();
            continue;
        };
        if let Some(slot) = receive_within(arrivals, pause) {
            add(&mut at_work, slot);
            backoff.reset(Instant::now());
        }
    }
}

fn add<L>(at_work: &mut Vec<Arc<L>>, slot: Arc<L>) {
    if !at_work.iter().any(|known| Arc::ptr_eq(known, &slot)) {
        at_work.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::{Sender, unbounded};
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::time::Duration;

    /// A slot whose work ends at a time, or after a number of polls.
    struct Planted {
        name: &'static str,
        ends_at: Instant,
        polls_left: AtomicU32,
        polls: Arc<AtomicU32>,
        finished: Sender<&'static str>,
    }

    impl Polled for Planted {
        fn poll(&self) -> bool {
            self.polls.fetch_add(1, Relaxed);
            let left = self.polls_left.load(Relaxed);
            self.polls_left.store(left.saturating_sub(1), Relaxed);
            let is_done = left <= 1 && Instant::now() >= self.ends_at;
            if is_done {
                self.finished.send(self.name).unwrap();
            }
            is_done
        }
    }

    #[test]
    fn the_slot_that_finishes_first_is_answered_first() {
        let (finished, outcomes) = unbounded();
        let (given, arrivals) = unbounded();
        let slot = |name, polls| {
            Arc::new(Planted {
                name,
                ends_at: Instant::now(),
                polls_left: AtomicU32::new(polls),
                polls: Arc::default(),
                finished: finished.clone(),
            })
        };
        for (name, polls) in [("long", 1_000), ("short", 10), ("middle", 100)] {
            given.send(slot(name, polls)).unwrap();
        }
        // A slot that arrives twice is polled once, and answered once.
        let twice = slot("twice", 500);
        given.send(Arc::clone(&twice)).unwrap();
        given.send(twice).unwrap();
        drop(given);
        poll_slots(&arrivals);
        let order: Vec<_> = outcomes.try_iter().collect();
        assert_eq!(order, ["short", "middle", "twice", "long"]);
    }

    #[test]
    fn work_that_arrives_wakes_the_thread() {
        let (finished, outcomes) = unbounded();
        let (given, arrivals) = unbounded();
        let far = Instant::now() + Duration::from_millis(300);
        let slot = |name, ends_at| {
            let finished = finished.clone();
            let polls_left = AtomicU32::new(0);
            Arc::new(Planted {
                name,
                ends_at,
                polls_left,
                polls: Arc::default(),
                finished,
            })
        };
        std::thread::scope(|scope| {
            scope.spawn(|| poll_slots(&arrivals));
            given.send(slot("long", far)).unwrap();
            given.send(slot("late", Instant::now())).unwrap();
            assert_eq!(outcomes.recv().unwrap(), "late");
            assert_eq!(outcomes.recv().unwrap(), "long");
            drop(given);
        });
    }

    #[test]
    fn waiting_for_a_long_batch_takes_little_of_a_core() {
        let (finished, _outcomes) = unbounded();
        let (given, arrivals) = unbounded();
        let wall = Duration::from_millis(100);
        let polls = Arc::new(AtomicU32::new(0));
        for name in ["one", "two", "three"] {
            let slot = Planted {
                name,
                ends_at: Instant::now() + wall,
                polls_left: AtomicU32::new(0),
                polls: Arc::clone(&polls),
                finished: finished.clone(),
            };
            given.send(Arc::new(slot)).unwrap();
        }
        // The sender is kept until the end, since an arrival might still wake the thread.
        let closing = std::thread::spawn(move || {
            std::thread::sleep(wall + Duration::from_millis(50));
            drop(given);
        });
        poll_slots(&arrivals);
        closing.join().unwrap();
        // The thread spins for 50 us, and then polls about 150 times; without a pause there would be millions.
        let polls = polls.load(Relaxed);
        assert!(polls < 20_000, "{polls} polls in {wall:?}");
    }
}
