//! From submission to its result, a batch allocates nothing, on a device that does nothing. The only test
//! of its process, since the allocator counts all threads, those of the test harness too.

use tapeloop_test_support::empty;

use empty::{EmptyBackend, EmptyKernels};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tapeloop_engine::backend::contract::Priority;
use tapeloop_engine::pipeline::{Pipeline, Ring, Wait};
use tapeloop_engine::replay::{Executor, Mode, Policy};
use tapeloop_engine::workload::{Completion, Extent};
use tapeloop_engine::{Engine, EngineConfig};

/// Batches after which all threads have run, and buffers have their sizes.
const WARM_UP: u32 = 2_048;

/// Batches that are counted.
const BATCHES: u32 = 8_192;

/// Tickets that their producer holds at once. Each may be of another batch, as a device without work
/// takes a batch that is not full.
const AT_ONCE: u32 = 64;

/// Batches that a run has open at most: three slots, those that wait for one, and one that is filled.
const OPEN_IN_A_RUN: u32 = 8;

/// What engines with other threads may take in all: they keep the memory of as many batches as were open
/// at once, and each thread has some since its first wait. On a busy machine either may be after the
/// warm-up. An allocation for each batch, or for one of ten, exceeds it.
fn allocations_max(batches_open: u32, items: u32) -> u64 {
    u64::from(batches_open * (items + 8) + 16)
}

/// The system's allocator, counting.
struct Counting;

/// Of all threads.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.fetch_add(1, Relaxed);
    // A thread that ends has no counter any more.
    let _ = OF_THREAD.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: the system's allocator does all, as its caller asks.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
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

fn assert_few(of: &str, allocations: u64, allocations_max: u64) {
    assert!(
        allocations <= allocations_max,
        "{of}: {allocations} allocations by {BATCHES} batches"
    );
}

/// Runs batches on this thread, which allocates nothing.
fn assert_steady(of: &str, mut batch: impl FnMut()) {
    (0..WARM_UP).for_each(|_| batch());
    let before = OF_THREAD.get();
    (0..BATCHES).for_each(|_| batch());
    assert_few(of, OF_THREAD.get() - before, 0);
}

fn policies() -> [Policy; 2] {
    [Mode::Graph, Mode::Stream].map(Policy::new)
}

fn executor_and_ring(policy: &Policy) {
    let backend = EmptyBackend::shared();
    let buckets = EmptyKernels::new(4).single(backend.device());
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
    let mut pipeline = Pipeline::new(EmptyKernels::new(4), &backends, pool, &config).unwrap();
    assert_steady("pipeline", || {
        for item in 0..items {
            pipeline.submit(item).unwrap();
        }
        for _ in 0..items {
            pipeline.wait().unwrap().1.result.unwrap();
        }
    });
}

fn engine(policy: &Policy, items: u32) -> Engine<EmptyKernels> {
    let pool = Arc::new(
        rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap(),
    );
    let config = config(policy, items);
    Engine::new(
        EmptyKernels::new(4),
        &[EmptyBackend::shared()],
        pool,
        &config,
    )
    .unwrap()
}

fn runs(policy: &Policy, items: u32) {
    let mut engine = engine(policy, items);
    let (first, last) = (WARM_UP * items, (WARM_UP + BATCHES) * items);
    let (mut before, mut after) = (0, 0);
    let mut sink = |completion: Completion<EmptyKernels>| {
        completion.result?;
        match completion.item {
            item if item == first => before = allocations(),
            item if item == last => after = allocations(),
            _ => {}
        }
        Ok(())
    };
    // The end of a run is not counted.
    engine.run(0..last + WARM_UP * items, &mut sink).unwrap();
    let allocations_max = allocations_max(OPEN_IN_A_RUN, items);
    assert_few("run", after - before, allocations_max);
}

fn tickets(policy: &Policy, items: u32) {
    let engine = engine(policy, items);
    let mut open = Vec::with_capacity(AT_ONCE as usize);
    let mut batches = |count: u32| {
        for _ in 0..count * items / AT_ONCE {
            open.extend((0..AT_ONCE).map(|item| engine.submit(item).unwrap()));
            for ticket in open.drain(..) {
                ticket.wait().unwrap().result.unwrap();
            }
        }
    };
    batches(WARM_UP);
    let before = allocations();
    batches(BATCHES);
    let taken = allocations() - before;
    assert_few("tickets", taken, allocations_max(AT_ONCE, items));
}

#[test]
fn a_batch_allocates_nothing_from_submission_to_result() {
    for policy in policies() {
        executor_and_ring(&policy);
        for items in [1, 4] {
            pipeline(&policy, items);
            runs(&policy, items);
            tickets(&policy, items);
        }
    }
}
