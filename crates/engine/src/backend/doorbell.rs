//! How the host gives batches to a loop on a device: through words in memory that both access.
//!
//! A loop replays one graph. It runs a batch, announces its end and waits for the next batch. If
//! none comes for a while, or if the host asks for it, the loop *parks*: it ends, and must be
//! launched again.
//!
//! Each word has one writer, and no word is read and written in one step: such operations are not
//! atomic between a device and a processor. The host numbers the batches of a loop from 1.
//!
//! - The host writes a batch's data, then its number into `ring`, and never rings again before the
//!   batch is done.
//! - The loop runs a batch as soon as `ring` differs from the batch before, writes the results, and
//!   then the batch's number into `done`. When it parks it writes the number of its last batch into
//!   `parked`, and takes no batch from then on.
//! - So if a loop parks while the host rings, the batch stays untouched. The host looks at `parked`
//!   after it rang, and again whenever it looks for `done`, and launches the loop
//!   anew if `parked` is an earlier batch.

#[cfg(loom)]
use loom::sync::atomic::AtomicU64;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// A word that a loop shares with the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Written by the host: the number of the last batch.
    Ring,
    /// Written by the host: not zero if the loop is to park at the end of its batch.
    Stop,
    /// Written by the loop: the number of the last batch that is done.
    Done,
    /// Written by the loop: the number of the last batch before it parked.
    Parked,
}

/// The host's access to the words of one loop, which are 0 at first.
pub trait Words {
    /// The value of a word.
    fn load(&self, word: Word, order: Ordering) -> u64;

    /// Sets a word.
    fn store(&self, word: Word, value: u64, order: Ordering);

    /// Whether the device is lost: nothing writes the words any more.
    fn is_lost(&self) -> bool;
}

/// A loop, as the host's threads see it. One thread rings and launches it.
pub(crate) struct Doorbell<W> {
    words: W,
    /// The first batch since the last launch; 0 before the first one. Written under the lock of
    /// [`Loops`](super::loops::Loops), which other threads hold when they read it.
    launched: AtomicU64,
}

impl<W: Words> Doorbell<W> {
    /// A loop that was not launched yet. `words` are new.
    pub(crate) fn new(words: W) -> Self {
        Doorbell {
            words,
            launched: AtomicU64::default(),
        }
    }

    pub(crate) fn words(&self) -> &W {
        &self.words
    }

    /// Gives a batch to the loop, whose data was written. Numbers ascend by one.
    pub(crate) fn ring(&self, batch: u64) {
        self.words.store(Word::Ring, batch, Release);
    }

    /// Notes a launch for this batch. Until the loop has parked it may not be launched again.
    pub(crate) fn launch_for(&self, batch: u64) {
        self.launched.store(batch, Relaxed);
    }

    /// Whether the loop was launched and has not parked.
    pub(crate) fn runs(&self) -> bool {
        self.words.load(Word::Parked, Acquire) < self.launched.load(Relaxed)
    }

    /// Whether the loop parked before it took this batch, and must be launched for it.
    pub(crate) fn needs_launch(&self, batch: u64) -> bool {
        // A loop may run the batch and park between two looks of the host.
        let parked = self.words.load(Word::Parked, Acquire);
        self.launched.load(Relaxed) <= parked && parked < batch
    }

    /// Whether the last batch is done: the host sees its results.
    pub(crate) fn is_done(&self, batch: u64) -> bool {
        self.words.load(Word::Done, Acquire) == batch
    }

    /// Makes the loop park at the end of its batch, or at once, until this is taken back. No data
    /// goes with it, so it is not ordered.
    pub(crate) fn stop(&self, stop: bool) {
        self.words.store(Word::Stop, stop.into(), Relaxed);
    }
}

/// The loop in the order of operations of `cuda/resident.cu`, on a thread instead of a device, and
/// the host, in every order of events and of memory that the C++11 model allows.
#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::fence;
    use loom::thread::{JoinHandle, spawn, yield_now};

    /// A mistake that the model must find.
    #[derive(Clone, Copy, PartialEq)]
    enum Planted {
        Nothing,
        /// `done` is written before the results.
        DoneEarly,
        /// The loop does not order the batch's data behind `ring`.
        NoAcquire,
        /// The host does not order the batch's data before `ring`.
        NoRelease,
        /// The host does not look at `parked` again after it rang.
        LooksOnce,
        /// A loop that has parked takes one more batch.
        TakesAfterParking,
        /// The host launches a parked loop for a batch that it has run.
        LaunchesTwice,
    }

    #[derive(Default)]
    struct ModelWords([AtomicU64; 4]);

    impl Words for ModelWords {
        fn load(&self, word: Word, order: Ordering) -> u64 {
            self.0[word as usize].load(order)
        }

        fn store(&self, word: Word, value: u64, order: Ordering) {
            self.0[word as usize].store(value, order);
        }

        fn is_lost(&self) -> bool {
            false
        }
    }

    struct Memory {
        bell: Doorbell<ModelWords>,
        input: AtomicU64,
        output: AtomicU64,
        /// How often a batch was run.
        runs: AtomicU64,
    }

    /// What the graph does with a batch, in any order of memory: kernels are not ordered with
    /// `done` but by the loop's fence.
    fn run_batch(memory: &Memory) {
        memory.runs.fetch_add(1, Ordering::Relaxed);
        let input = memory.input.load(Ordering::Relaxed);
        memory.output.store(10 * input, Ordering::Relaxed);
    }

    /// A launch of the loop, which looks `looks` times for the next batch before it parks.
    fn device(memory: &Memory, looks: usize, planted: Planted) {
        let words = memory.bell.words();
        let acquire = || {
            if planted != Planted::NoAcquire {
                fence(Ordering::Acquire);
            }
        };
        let mut batch = words.load(Word::Ring, Ordering::Relaxed);
        acquire();
        loop {
            if planted == Planted::DoneEarly {
                words.store(Word::Done, batch, Ordering::Relaxed);
            }
            run_batch(memory);
            fence(Ordering::Release);
            words.store(Word::Done, batch, Ordering::Relaxed);
            let mut next = batch;
            for look in 0..looks {
                if look > 0 {
                    yield_now();
                }
                next = words.load(Word::Ring, Ordering::Relaxed);
                if next != batch || words.load(Word::Stop, Ordering::Relaxed) != 0 {
                    break;
                }
            }
            if next == batch {
                words.store(Word::Parked, batch, Ordering::Release);
                if planted != Planted::TakesAfterParking {
                    return;
                }
                next = words.load(Word::Ring, Ordering::Relaxed);
                if next == batch {
                    return;
                }
            }
            acquire();
            batch = next;
        }
    }

    /// A host that gives two batches to a loop and checks the results. With `stops` it makes the
    /// loop park between them.
    fn check(planted: Planted, stops: bool, looks: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let memory = Arc::new(Memory {
                bell: Doorbell::new(ModelWords::default()),
                input: AtomicU64::default(),
                output: AtomicU64::default(),
                runs: AtomicU64::default(),
            });
            let mut launches: Vec<JoinHandle<()>> = Vec::new();
            let mut launch = |batch| {
                memory.bell.launch_for(batch);
                // The launches of a stream run one after the other.
                let earlier = launches.pop();
                let memory = Arc::clone(&memory);
                launches.push(spawn(move || {
                    earlier.map(|thread: JoinHandle<()>| thread.join().unwrap());
                    device(&memory, looks, planted);
                }));
            };
            for batch in 1..=2 {
                memory.input.store(batch, Ordering::Relaxed);
                match planted {
                    Planted::NoRelease => {
                        let words = memory.bell.words();
                        words.store(Word::Ring, batch, Ordering::Relaxed);
                    }
                    _ => memory.bell.ring(batch),
                }
                if memory.bell.needs_launch(batch) {
                    launch(batch);
                }
                while !memory.bell.is_done(batch) {
                    let launches = match planted {
                        Planted::LooksOnce => false,
                        Planted::LaunchesTwice => !memory.bell.runs(),
                        _ => memory.bell.needs_launch(batch),
                    };
                    if launches {
                        launch(batch);
                    }
                    yield_now();
                }
                assert_eq!(memory.output.load(Ordering::Relaxed), 10 * batch);
                if stops {
                    memory.bell.stop(true);
                    while memory.bell.runs() {
                        yield_now();
                    }
                    memory.bell.stop(false);
                }
            }
            for launch in launches {
                launch.join().unwrap();
            }
            assert_eq!(memory.runs.load(Ordering::Relaxed), 2);
        });
    }

    #[test]
    fn loom_a_loop_that_parks_at_any_moment_loses_no_batch() {
        check(Planted::Nothing, false, 1);
    }

    #[test]
    fn loom_a_loop_takes_batch_after_batch() {
        check(Planted::Nothing, false, 2);
    }

    #[test]
    fn loom_a_loop_that_is_stopped_goes_on_when_it_is_launched() {
        check(Planted::Nothing, true, 2);
    }

    #[test]
    #[should_panic]
    fn loom_finds_a_batch_that_is_announced_early() {
        check(Planted::DoneEarly, false, 1);
    }

    #[test]
    #[should_panic]
    fn loom_finds_a_loop_that_reads_old_data() {
        check(Planted::NoAcquire, false, 2);
    }

    #[test]
    #[should_panic]
    fn loom_finds_a_host_that_rings_before_its_data_is_written() {
        check(Planted::NoRelease, false, 2);
    }

    #[test]
    #[should_panic]
    fn loom_finds_a_batch_that_nobody_takes() {
        check(Planted::LooksOnce, false, 1);
    }

    #[test]
    #[should_panic]
    fn loom_finds_a_parked_loop_that_takes_a_batch() {
        check(Planted::TakesAfterParking, false, 1);
    }

    #[test]
    #[should_panic]
    fn loom_finds_a_launch_for_a_batch_that_has_run() {
        check(Planted::LaunchesTwice, false, 1);
    }
}
