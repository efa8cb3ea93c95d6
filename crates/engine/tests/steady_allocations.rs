//! From submission to its result, a batch allocates nothing, and idle engines take no processor
//! time, on a device that does nothing. A process of its own, since its allocator and its clock
//! count all threads.

use tapeloop_test_support::empty;

use empty::{EmptyBackend, Nothing};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tapeloop_engine::backend::contract::Priority;
use tapeloop_engine::pipeline::{Pipeline, Ring, Wait};
use tapeloop_engine::replay::{Executor, Mode, Policy};
use tapeloop_engine::workload::{Completion, Extent};
use tapeloop_engine::{Engine, EngineConfig};

/// Batches that are counted at a time.
const BATCHES: u32 = 2048;

/// Batches whose tickets their producer holds at once.
const AT_ONCE: u32 = 64;

/// A thread takes memory when it starts, and when it waits for a channel or a lock for
/// the first time. When that is, is chance, so that some spells may see it.
const SPELLS_MAX: usize = 64;

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator does all, as its caller asks.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, bytes) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations() -> u64 {
    ALLOCATIONS.load(Relaxed)
}

/// Counts spells of batches until one goes by without an allocation.
struct Spells {
    before: u64,
    seen: Vec<u64>,
}

impl Spells {
    fn start() -> Self {
        Spells {
            seen: Vec::with_capacity(SPELLS_MAX),
            before: allocations(),
        }
    }

    /// Ends a spell; whether there is to be another.
    fn goes_on(&mut self) -> bool {
        let now = allocations();
        self.seen.push(now - self.before);
        self.before = now;
        !self.seen.contains(&0) && self.seen.len() < SPELLS_MAX
    }

    fn assert_steady(&self, of: &str) {
        let seen = &self.seen;
        assert!(
            seen.contains(&0),
            "{of}: allocations by {BATCHES} batches: {seen:?}"
        );
    }
}

/// Batches on this thread; a pool's threads start beside it.
fn assert_steady(of: &str, mut batch: impl FnMut()) {
    let mut spells = Spells::start();
    while {
        (0..BATCHES).for_each(|_| batch());
        spells.goes_on()
    } {}
    spells.assert_steady(of);
}

fn policies() -> [Policy; 2] {
    [Mode::Graph, Mode::Stream].map(Policy::of)
}

fn executor_and_ring(policy: &Policy) {
    let backend = EmptyBackend::shared();
    let buckets = Nothing::new(4).single(backend.device());
    let live = Extent::from([1]);
    let buffers = buckets.largest().recording.buffers();
    let mut device_slots = backend.open_slots(buffers, 1, Priority::Normal).unwrap();
    let device_slot = &mut *device_slots[0];
    let mut executor = Executor::new(&backend, device_slot, &buckets, policy).unwrap();
    assert_steady("executor", || {
        executor.replay(device_slot, 0, live).unwrap();
        device_slot.wait().unwrap();
    });
    let mut ring = Ring::new(&backend, &buckets, 3, policy, Wait::Spin).unwrap();
    assert_steady("ring", || {
        let slot = ring.acquire().unwrap();
        ring.submit(slot, live, ()).unwrap();
        let finished = ring.poll().unwrap();
        assert!(ring.release(finished).1.is_none());
    });
}

fn config(policy: &Policy, items: u32) -> EngineConfig {
    EngineConfig {
        policy: *policy,
        ..EngineConfig::new([items])
    }
}

fn pipeline(policy: &Policy, items: u32) {
    let pool = Arc::new(
        rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap(),
    );
    let config = config(policy, items);
    let backends = [EmptyBackend::shared()];
    let mut pipeline = Pipeline::new(Nothing::new(4), &backends, pool, &config).unwrap();
    assert_steady("pipeline", || {
        for item in 0..items {
            pipeline.submit(item).unwrap();
        }
        for _ in 0..items {
            pipeline.wait().unwrap().result.unwrap();
        }
    });
}

fn engine(policy: &Policy, items: u32) -> Engine<Nothing> {
    let pool = Arc::new(
        rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap(),
    );
    let config = config(policy, items);
    Engine::new(Nothing::new(4), &[EmptyBackend::shared()], pool, &config).unwrap()
}

fn runs(policy: &Policy, items: u32) {
    let mut engine = engine(policy, items);
    let mut spells = Spells::start();
    let is_over = AtomicBool::new(false);
    let source = (0..).take_while(|_| !is_over.load(Relaxed));
    let mut sink = |completion: Completion<Nothing>| {
        completion.result?;
        let ends_spell = (completion.item + 1).is_multiple_of(BATCHES * items);
        if ends_spell && !is_over.load(Relaxed) {
            is_over.store(!spells.goes_on(), Relaxed);
        }
        Ok(())
    };
    engine.run(source, &mut sink).unwrap();
    spells.assert_steady("run");
}

fn tickets(policy: &Policy, items: u32) {
    let engine = engine(policy, items);
    let mut open = Vec::with_capacity((AT_ONCE * items) as usize);
    let mut spells = Spells::start();
    loop {
        for _ in 0..BATCHES / AT_ONCE {
            open.extend((0..AT_ONCE * items).map(|item| engine.submit(item).unwrap()));
            for ticket in open.drain(..) {
                ticket.wait().unwrap().result.unwrap();
            }
        }
        if !spells.goes_on() {
            return spells.assert_steady("tickets");
        }
    }
}

/// Tests run one at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Processor time of the process so far.
#[cfg(unix)]
fn processor_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(unix)]
#[test]
fn idle_engines_take_no_processor_time() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let policy = Policy::default();
    let engines: Vec<Engine<Nothing>> = (0..48).map(|_| engine(&policy, 1)).collect();
    for engine in &engines {
        engine.submit(7).unwrap().wait().unwrap().result.unwrap();
    }
    // Their threads spin for a while after the last event, then sleep.
    std::thread::sleep(Duration::from_millis(100));
    let before = processor_time();
    std::thread::sleep(Duration::from_secs(1));
    let taken = processor_time() - before;
    // A thread that wakes every millisecond takes more than that.
    assert!(taken < Duration::from_millis(5), "{taken:?} in a second");
}

#[test]
fn a_batch_allocates_nothing_from_submission_to_result() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for policy in policies() {
        executor_and_ring(&policy);
        for items in [1, 16] {
            pipeline(&policy, items);
            runs(&policy, items);
            tickets(&policy, items);
        }
    }
}
