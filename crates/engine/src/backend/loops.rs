//! The host's side of the loops of a device: when they are launched, and when all are stopped.
//!
//! A loop ends by itself only when no batch comes for a while, and some calls wait until nothing of
//! the context runs: freeing memory, loading code, synchronizing the device. So all loops of the
//! process on a device are stopped together, a while after the first of them was launched, and are
//! launched again when all of them have parked. Stopped one by one, eight loops kept
//! `cudaDeviceSynchronize` waiting for 80 ms instead of 10 (H200, driver 580).
//!
//! The backend gives the time, in nanoseconds of any clock, and launches a loop.

#[cfg(doc)]
use super::DeviceSlot;
use super::doorbell::{Doorbell, Words};
use crate::error::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tapeloop_error::internal::LaterFields;

/// When a loop on the device ends ([`DeviceSlot::make_resident`]). Later versions may add fields: end a literal with
/// `..Residency::default()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// A loop ends after this time without a batch.
    pub idle: Duration,
    /// All loops of a device end so long after the first launch, and are launched again. Calls
    /// that wait for the whole context return then. Batches should take much less.
    pub busy: Duration,
    #[doc(hidden)]
    pub later: LaterFields,
}

impl Residency {
    /// The longest of both times: 1 s. For as long, a loop holds up calls that wait for the context.
    pub const MAX: Duration = Duration::from_secs(1);
}

impl Default for Residency {
    /// 1 ms and 10 ms (`DECISIONS.md#loops-on-the-device` has what the second costs).
    fn default() -> Self {
        Residency {
            idle: Duration::from_millis(1),
            busy: Duration::from_millis(10),
            later: LaterFields::NONE,
        }
    }
}

/// Refuses a loop on a device of this backend (`cuda`, `cpu`) in a worker process. The CPU backend
/// is not refused: its launches call no driver, so it needs no loops.
///
/// # Errors
/// [`ErrorKind::Unavailable`].
pub fn check_loop_in_worker(backend: &str) -> Result<()> {
    if backend == "cpu" {
        return Ok(());
    }
    let message = "a GPU in a worker process has no loops, which are signalled through memory of \
                   the process that launched them";
    Err(Error::new(ErrorKind::Unavailable, message).fix(
        "set mode = \"graph\", or supervise = false, or fallback = \"launches\", with which graphs \
         are launched instead",
    ))
}

/// The most loops on a device. A device runs at most 128 grids at once, of which each loop takes
/// one, or one for each branch. With 127 loops other work of the process went on as usual (H200);
/// the hardware queues (`CUDA_DEVICE_MAX_CONNECTIONS`) made no difference.
const LOOPS_MAX: usize = 64;

/// A loop, as the thread of its slot uses it. One batch is in flight at a time.
pub struct LoopHandle<W: Words> {
    doorbell: Arc<Doorbell<W>>,
    loops: Arc<Loops<W>>,
    residency: Residency,
    /// The number of the last batch that was given to the loop.
    rung: u64,
}

impl<W: Words> LoopHandle<W> {
    /// A loop that was not launched yet. `words` are new.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if the device has `LOOPS_MAX` loops already.
    pub fn new(loops: &Arc<Loops<W>>, words: W, residency: Residency) -> Result<Self> {
        let doorbell = Arc::new(Doorbell::new(words));
        loops.add(&doorbell)?;
        Ok(LoopHandle {
            doorbell,
            loops: Arc::clone(loops),
            residency,
            rung: 0,
        })
    }

    /// Gives a batch to the loop, whose data was written and whose batch before is done. Calls
    /// `launch` if the loop has parked.
    ///
    /// # Errors
    /// The errors of `launch`.
    pub fn ring(&mut self, now_ns: u64, launch: impl FnOnce() -> Result<()>) -> Result<()> {
        self.rung += 1;
        self.doorbell.ring(self.rung);
        self.loops.stop_after(self.residency.busy, now_ns);
        self.launch_if_parked(now_ns, launch)
    }

    /// Launches the loop if it parked before it took its batch. The host calls this until the
    /// batch is done.
    ///
    /// # Errors
    /// The errors of `launch`.
    pub fn launch_if_parked(&self, now_ns: u64, launch: impl FnOnce() -> Result<()>) -> Result<()> {
        if !self.doorbell.needs_launch(self.rung) {
            return Ok(());
        }
        let (doorbell, busy) = (&self.doorbell, self.residency.busy);
        let launched = self.loops.launch(doorbell, self.rung, busy, now_ns, launch);
        launched.map(drop)
    }

    /// Whether the last batch is done: the host sees its results.
    pub fn is_done(&self) -> bool {
        self.doorbell.is_done(self.rung)
    }

    /// Makes the loop end. It is not launched again.
    pub fn stop(&self) {
        // Removed first, since `Loops::launch` takes back the stop of all loops that it has.
        self.loops.remove(&self.doorbell);
        self.doorbell.stop(true);
    }
}

/// The loops of this process on one device.
pub struct Loops<W> {
    state: Mutex<LoopState<W>>,
    /// When a loop was last launched while no other ran.
    since_ns: AtomicU64,
}

struct LoopState<W> {
    loops: Vec<Arc<Doorbell<W>>>,
    /// When all loops were told to end, until all have.
    stopped_ns: Option<u64>,
}

impl<W> Default for Loops<W> {
    fn default() -> Self {
        let state = LoopState {
            loops: Vec::new(),
            stopped_ns: None,
        };
        Loops {
            state: Mutex::new(state),
            since_ns: AtomicU64::default(),
        }
    }
}

impl<W: Words> LoopState<W> {
    fn any_runs(&self) -> bool {
        let mut loops = self.loops.iter();
        loops.any(|device_loop| device_loop.runs() && !device_loop.words().is_lost())
    }
}

impl<W: Words> Loops<W> {
    /// Adds a loop. If all loops are stopped now, it starts stopped too.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if `LOOPS_MAX` of them live.
    fn add(&self, doorbell: &Arc<Doorbell<W>>) -> Result<()> {
        let mut state = self.state.lock();
        let is_live = |device_loop: &&Arc<Doorbell<W>>| !device_loop.words().is_lost();
        if state.loops.iter().filter(is_live).count() >= LOOPS_MAX {
            let message = format!(
                "the device has {LOOPS_MAX} graphs with a loop of their own, the most it may have; \
                 each slot needs one for each bucket"
            );
            return Err(Error::new(ErrorKind::Unavailable, message)
                .fix("lower slots or the number of buckets, or set mode = \"graph\""));
        }
        doorbell.stop(state.stopped_ns.is_some());
        state.loops.push(Arc::clone(doorbell));
        Ok(())
    }

    fn remove(&self, doorbell: &Arc<Doorbell<W>>) {
        let mut state = self.state.lock();
        state.loops.retain(|kept| !Arc::ptr_eq(kept, doorbell));
    }

    /// Launches a loop that does not run, for a batch. Returns false if loops are being stopped:
    /// the caller tries again. If that takes longer than `busy`, since a batch takes longer, the
    /// others are launched all the same.
    fn launch(
        &self,
        doorbell: &Doorbell<W>,
        batch: u64,
        busy: Duration,
        now_ns: u64,
        launch: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        let mut state = self.state.lock();
        let mut starts_anew = !state.any_runs();
        if let Some(stopped_ns) = state.stopped_ns {
            starts_anew |= is_over(busy, stopped_ns, now_ns);
            if !starts_anew {
                return Ok(false);
            }
            state.stopped_ns = None;
            state
                .loops
                .iter()
                .for_each(|device_loop| device_loop.stop(false));
        }
        if starts_anew {
            self.since_ns.store(now_ns, Relaxed);
        }
        doorbell.launch_for(batch);
        let launched = launch();
        if launched.is_err() {
            // The launch failed, so the loop does not run.
            doorbell.launch_for(0);
        }
        launched.map(|()| true)
    }

    /// Stops all loops if the first of them was launched longer than `busy` ago.
    fn stop_after(&self, busy: Duration, now_ns: u64) {
        // Without the lock, as each batch comes here: an old value only ends the loops early.
        if !is_over(busy, self.since_ns.load(Relaxed), now_ns) {
            return;
        }
        let mut state = self.state.lock();
        if state.stopped_ns.is_none() && state.any_runs() {
            state.stopped_ns = Some(now_ns);
            state
                .loops
                .iter()
                .for_each(|device_loop| device_loop.stop(true));
        }
    }
}

/// Whether more than `time` has passed.
fn is_over(time: Duration, since_ns: u64, now_ns: u64) -> bool {
    u128::from(now_ns.saturating_sub(since_ns)) > time.as_nanos()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::doorbell::Word;
    use super::*;
    use std::sync::atomic::Ordering;

    const BUSY: Duration = Duration::from_millis(10);
    const BUSY_NS: u64 = 10_000_000;

    #[derive(Default)]
    struct HostWords([AtomicU64; 4]);

    impl Words for HostWords {
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

    type HostLoop = Doorbell<HostWords>;

    fn new_loop(loops: &Loops<HostWords>) -> Arc<HostLoop> {
        let doorbell = Arc::new(Doorbell::new(HostWords::default()));
        loops.add(&doorbell).unwrap();
        doorbell
    }

    fn launch(loops: &Loops<HostWords>, doorbell: &HostLoop, batch: u64, now_ns: u64) -> bool {
        let launched = loops.launch(doorbell, batch, BUSY, now_ns, || Ok(()));
        launched.unwrap()
    }

    fn ring(loops: &Loops<HostWords>, doorbell: &HostLoop, batch: u64, now_ns: u64) -> bool {
        doorbell.ring(batch);
        doorbell.needs_launch(batch) && launch(loops, doorbell, batch, now_ns)
    }

    /// What the device does: it ends the batch, and the loop.
    fn end(doorbell: &HostLoop, batch: u64) {
        doorbell.words().store(Word::Done, batch, Ordering::Release);
        let words = doorbell.words();
        words.store(Word::Parked, batch, Ordering::Release);
    }

    fn is_stopped(doorbell: &HostLoop) -> bool {
        doorbell.words().load(Word::Stop, Relaxed) != 0
    }

    #[test]
    fn busy_loops_end_together_and_then_start_again() {
        let loops = Loops::default();
        let [one, other, idle] = [(); 3].map(|()| new_loop(&loops));
        for doorbell in [&one, &other, &idle] {
            assert!(ring(&loops, doorbell, 1, 5));
        }
        end(&idle, 1);
        loops.stop_after(BUSY, 5 + BUSY_NS);
        assert!(!is_stopped(&one));
        let late_ns = 6 + BUSY_NS;
        loops.stop_after(BUSY, late_ns);
        assert!(is_stopped(&one) && is_stopped(&other));
        // A loop that has parked waits for the last one.
        end(&one, 1);
        assert!(!ring(&loops, &one, 2, late_ns) && one.needs_launch(2));
        assert!(!ring(&loops, &idle, 2, late_ns));
        end(&other, 1);
        assert!(launch(&loops, &one, 2, late_ns));
        assert!(one.runs() && !is_stopped(&one) && !is_stopped(&idle));
        loops.stop_after(BUSY, late_ns + BUSY_NS);
        assert!(!is_stopped(&one), "its time starts anew");
    }

    #[test]
    fn a_batch_that_takes_long_does_not_hold_up_other_loops_for_ever() {
        let loops = Loops::default();
        let [long, short] = [(); 2].map(|()| new_loop(&loops));
        assert!(ring(&loops, &long, 1, 0) && ring(&loops, &short, 1, 0));
        let stopped_ns = BUSY_NS + 1;
        loops.stop_after(BUSY, stopped_ns);
        end(&short, 1);
        assert!(!ring(&loops, &short, 2, stopped_ns + BUSY_NS));
        assert!(launch(&loops, &short, 2, stopped_ns + BUSY_NS + 1));
        assert!(long.runs() && !is_stopped(&short));
    }

    #[test]
    fn a_loop_that_could_not_be_launched_does_not_count_as_running() {
        let loops = Loops::default();
        let doorbell = new_loop(&loops);
        doorbell.ring(1);
        let refused = loops.launch(&doorbell, 1, BUSY, 0, || Err(Error::usage("planted")));
        assert!(refused.is_err() && !doorbell.runs());
        assert!(doorbell.needs_launch(1));
        assert!(launch(&loops, &doorbell, 1, 0));
    }

    #[test]
    fn a_loop_in_a_worker_process_is_refused_with_the_ways_out() {
        check_loop_in_worker("cpu").unwrap();
        let error = check_loop_in_worker("cuda").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let fix = error.fix_text().unwrap();
        for way_out in [
            "mode = \"graph\"",
            "supervise = false",
            "fallback = \"launches\"",
        ] {
            assert!(fix.contains(way_out), "{fix}");
        }
    }

    #[test]
    fn one_loop_too_many_is_refused() {
        let loops = Loops::default();
        let all: Vec<_> = (0..LOOPS_MAX).map(|_| new_loop(&loops)).collect();
        let doorbell = Arc::new(Doorbell::new(HostWords::default()));
        let error = loops.add(&doorbell).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        loops.remove(&all[0]);
        loops.add(&doorbell).unwrap();
    }
}
