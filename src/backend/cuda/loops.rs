//! The loops of a device: when they are launched, and when all of them are stopped.
//!
//! A loop ends by itself only when no batch comes for a while, and some calls wait until nothing of the context runs:
//! freeing memory, loading code, synchronizing the device. So all loops of the process on a device
//! are stopped together, a while after the first of them was launched, and are launched again when
//! all of them have parked. Stopped one by one, eight loops kept `cudaDeviceSynchronize` waiting for
//! 80 ms instead of 10 (H200, driver 580).

use super::context::Context;
use super::memory::Pinned;
use crate::backend::doorbell::{Doorbell, LoopWords};
use crate::backend::host_ns;
use crate::error::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The most loops on a device. A device runs at most 128 grids at once, of which each loop takes
/// one, or one for each branch. With 127 loops other work of the process went on as usual (H200);
/// the hardware queues (`CUDA_DEVICE_MAX_CONNECTIONS`) made no difference.
const LOOPS_MAX: usize = 64;

/// The words of a loop, in pinned memory.
pub(super) struct PinnedWords {
    pinned: Pinned,
    context: Arc<Context>,
}

impl PinnedWords {
    pub(super) fn new(context: &Arc<Context>) -> Result<PinnedWords> {
        Ok(PinnedWords {
            pinned: Pinned::zeroed(context, size_of::<LoopWords>())?,
            context: Arc::clone(context),
        })
    }

    /// The address on the device. With unified addressing it equals the host's.
    pub(super) fn address(&self) -> u64 {
        self.pinned.start().as_ptr() as u64
    }
}

impl Deref for PinnedWords {
    type Target = LoopWords;

    fn deref(&self) -> &LoopWords {
        // SAFETY: the memory is as large, zeroed, aligned to a page, and lives as long as `self`.
        // The words are atomics, which the device changes as another thread would.
        unsafe { self.pinned.start().cast().as_ref() }
    }
}

pub(super) type CudaDoorbell = Doorbell<PinnedWords>;

/// The loops of this process on one device.
#[derive(Default)]
pub(super) struct Loops {
    state: Mutex<State>,
    /// When a loop was last launched while no other ran, as [`host_ns`].
    since_ns: AtomicU64,
}

#[derive(Default)]
struct State {
    loops: Vec<Arc<CudaDoorbell>>,
    /// When all loops were told to end, until all have.
    stopped: Option<Instant>,
}

impl State {
    fn any_runs(&self) -> bool {
        let mut loops = self.loops.iter();
        loops.any(|it| it.runs() && !it.words().context.is_lost())
    }
}

impl Loops {
    /// The loops on the device with this handle.
    pub(super) fn of(device: i32) -> &'static Loops {
        static DEVICES: Mutex<BTreeMap<i32, &'static Loops>> = Mutex::new(BTreeMap::new());
        let mut devices = DEVICES.lock();
        devices
            .entry(device)
            .or_insert_with(|| Box::leak(Box::default()))
    }

    /// Adds a loop.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if the device has [`LOOPS_MAX`] loops already.
    pub(super) fn add(&self, doorbell: &Arc<CudaDoorbell>) -> Result<()> {
        let mut state = self.state.lock();
        let is_live = |it: &&Arc<CudaDoorbell>| !it.words().context.is_lost();
        if state.loops.iter().filter(is_live).count() >= LOOPS_MAX {
            let message = format!(
                "the device has {LOOPS_MAX} graphs with a loop of their own, the most it may have; \
                 each slot needs one for each bucket"
            );
            return Err(Error::new(ErrorKind::Unavailable, message)
                .fix("lower slots or the number of buckets, or set mode = \"graph\""));
        }
        doorbell.stop(state.stopped.is_some());
        state.loops.push(Arc::clone(doorbell));
        Ok(())
    }

    /// Removes a loop, which is not launched again.
    pub(super) fn remove(&self, doorbell: &Arc<CudaDoorbell>) {
        let mut state = self.state.lock();
        state.loops.retain(|it| !Arc::ptr_eq(it, doorbell));
    }

    /// Launches a loop that does not run, for a batch. Returns false if loops are being stopped:
    /// the caller tries again. If that takes longer than `busy`, since a batch takes longer, the
    /// others are launched all the same.
    ///
    /// # Errors
    /// Those of `launch`.
    pub(super) fn launch(
        &self,
        doorbell: &CudaDoorbell,
        batch: u64,
        busy: Duration,
        launch: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        let mut state = self.state.lock();
        let (now, mut starts_anew) = (Instant::now(), !state.any_runs());
        if let Some(stopped) = state.stopped {
            starts_anew |= now.saturating_duration_since(stopped) > busy;
            if !starts_anew {
                return Ok(false);
            }
            state.stopped = None;
            state.loops.iter().for_each(|it| it.stop(false));
        }
        if starts_anew {
            self.since_ns.store(host_ns(now), Relaxed);
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
    pub(super) fn stop_after(&self, busy: Duration, now: Instant) {
        let age_ns = host_ns(now).saturating_sub(self.since_ns.load(Relaxed));
        if u128::from(age_ns) <= busy.as_nanos() {
            return;
        }
        let mut state = self.state.lock();
        if state.stopped.is_none() && state.any_runs() {
            state.stopped = Some(now);
            state.loops.iter().for_each(|it| it.stop(true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_driver::Session;
    use super::*;

    const BUSY: Duration = Duration::from_millis(10);

    fn new_loop(loops: &Loops, context: &Arc<Context>) -> Arc<CudaDoorbell> {
        let words = PinnedWords::new(context).unwrap();
        let doorbell = Arc::new(CudaDoorbell::new(words));
        loops.add(&doorbell).unwrap();
        doorbell
    }

    fn ring(loops: &Loops, doorbell: &CudaDoorbell, batch: u64) -> bool {
        doorbell.ring(batch);
        doorbell.needs_launch(batch) && loops.launch(doorbell, batch, BUSY, || Ok(())).unwrap()
    }

    #[test]
    fn busy_loops_end_together_and_then_start_again() {
        let session = Session::new();
        let context = session.context();
        let loops = Loops::default();
        let [one, other, idle] = [(); 3].map(|()| new_loop(&loops, &context));
        assert!(ring(&loops, &one, 1) && ring(&loops, &other, 1) && ring(&loops, &idle, 1));
        idle.words().end(1);
        loops.stop_after(BUSY, Instant::now());
        assert!(!one.words().is_stopped());
        loops.stop_after(BUSY, Instant::now() + 2 * BUSY);
        assert!(one.words().is_stopped() && other.words().is_stopped());
        // A loop that has parked waits for the last one.
        one.words().end(1);
        assert!(!ring(&loops, &one, 2) && one.needs_launch(2));
        assert!(!ring(&loops, &idle, 2));
        other.words().end(1);
        assert!(loops.launch(&one, 2, BUSY, || Ok(())).unwrap());
        assert!(one.runs() && !one.words().is_stopped() && !idle.words().is_stopped());
        loops.stop_after(BUSY, Instant::now());
        assert!(!one.words().is_stopped(), "its time starts anew");
    }

    #[test]
    fn a_batch_that_takes_long_does_not_hold_up_other_loops_for_ever() {
        let session = Session::new();
        let context = session.context();
        let loops = Loops::default();
        let [long, short] = [(); 2].map(|()| new_loop(&loops, &context));
        assert!(ring(&loops, &long, 1) && ring(&loops, &short, 1));
        loops.stop_after(Duration::ZERO, Instant::now());
        short.words().end(1);
        assert!(!ring(&loops, &short, 2));
        assert!(loops.launch(&short, 2, Duration::ZERO, || Ok(())).unwrap());
        assert!(long.runs() && !short.words().is_stopped());
    }

    #[test]
    fn a_loop_that_could_not_be_launched_does_not_count_as_running() {
        let session = Session::new();
        let context = session.context();
        let loops = Loops::default();
        let doorbell = new_loop(&loops, &context);
        doorbell.ring(1);
        let refused = loops.launch(&doorbell, 1, BUSY, || Err(Error::usage("planted")));
        assert!(refused.is_err() && !doorbell.runs());
        assert!(doorbell.needs_launch(1));
        assert!(loops.launch(&doorbell, 1, BUSY, || Ok(())).unwrap());
    }

    #[test]
    fn one_loop_too_many_is_refused() {
        let session = Session::new();
        let context = session.context();
        let loops = Loops::default();
        let all: Vec<_> = (0..LOOPS_MAX).map(|_| new_loop(&loops, &context)).collect();
        let doorbell = Arc::new(CudaDoorbell::new(PinnedWords::new(&context).unwrap()));
        let error = loops.add(&doorbell).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        loops.remove(&all[0]);
        loops.add(&doorbell).unwrap();
    }
}
