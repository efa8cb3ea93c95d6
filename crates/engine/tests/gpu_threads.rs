//! The engine in a process whose other code uses CUDA too: captures of mode global on other
//! threads, and contexts of the caller's. A process of its own, as such captures disturb all other
//! tests.
#![cfg(feature = "cuda")]

#[path = "support/gpu.rs"]
mod gpu;
use tapeloop_test_support::mix;
#[path = "support/primary_context.rs"]
mod primary_context;

use gpu::*;
use mix::{Mix, UNIFORMS, items};
use primary_context::{check, with_primary};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::ptr::null_mut;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tapeloop_engine::backend::contract::Priority;
use tapeloop_engine::backend::{Backend, Space, devices};
use tapeloop_engine::internal::cudarc::driver::sys::{self, CUresult, CUstreamCaptureMode};
use tapeloop_engine::memory::{Pool, PoolConfig};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Pipeline, Ring, Wait};
use tapeloop_engine::replay::{Buckets, Mode, Policy, Verify};
use tapeloop_engine::workload::Extent;

const BATCHES: usize = 1_000;

/// One test at a time: an open capture of mode global concerns every thread.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn threads() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap())
}

/// A capture of mode global that another thread, which is not the engine's, has open.
struct OpenCapture {
    end: Sender<()>,
    thread: JoinHandle<CUresult>,
}

impl OpenCapture {
    fn begin() -> OpenCapture {
        let (end, ended) = channel();
        let (begun, is_begun) = channel();
        let thread = std::thread::spawn(move || {
            capture(|| {
                begun.send(()).unwrap();
                // Also when the test is over by a panic.
                let _ = ended.recv();
            })
        });
        is_begun.recv().expect("the capture began");
        OpenCapture { end, thread }
    }

    /// Ends it, runs what it took down, and returns what the driver said of its end.
    fn finish(self) -> CUresult {
        self.end.send(()).unwrap();
        self.thread.join().unwrap()
    }

    fn assert_ends_well(self) {
        check("cuStreamEndCapture", self.finish());
    }
}

/// Captures two memsets, with `meanwhile` between them, and runs the graph. Returns what
/// the driver says of the capture's end.
fn capture(meanwhile: impl FnOnce()) -> CUresult {
    const BYTES: usize = 64;
    let (mut stream, mut graph, mut exec) = (null_mut(), null_mut(), null_mut());
    let (mut memory, mut bytes) = (0, [0_u8; BYTES]);
    // SAFETY: all places outlive their calls; the handles are used while they live,
    // each by this thread alone; the memory is of the size that is set and copied.
    with_primary(|| unsafe {
        check("cuStreamCreate", sys::cuStreamCreate(&mut stream, 1));
        check("cuMemAlloc", sys::cuMemAlloc_v2(&mut memory, BYTES));
        let global = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        let begun = sys::cuStreamBeginCapture_v2(stream, global);
        check("cuStreamBeginCapture", begun);
        let half = BYTES / 2;
        let set = |at| sys::cuMemsetD8Async(memory + at as u64, 0xAB, half, stream);
        check("cuMemsetD8Async", set(0));
        meanwhile();
        // Refused if the capture was invalidated, which its end says too.
        set(half);
        let ended = sys::cuStreamEndCapture(stream, &mut graph);
        if ended == CUresult::CUDA_SUCCESS {
            let made = sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0);
            check("cuGraphInstantiate", made);
            check("cuGraphLaunch", sys::cuGraphLaunch(exec, stream));
            check("cuStreamSynchronize", sys::cuStreamSynchronize(stream));
            let copied = sys::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), memory, BYTES);
            check("cuMemcpyDtoH", copied);
            assert_eq!(bytes, [0xAB; BYTES]);
            check("cuGraphExecDestroy", sys::cuGraphExecDestroy(exec));
            check("cuGraphDestroy", sys::cuGraphDestroy(graph));
        }
        check("cuMemFree", sys::cuMemFree_v2(memory));
        check("cuStreamDestroy", sys::cuStreamDestroy_v2(stream));
        ended
    })
}

/// Runs batches through a ring on this thread; `after` is called after each call.
fn run_ring(backend: &Arc<dyn Backend>, batches: usize, after: &dyn Fn(&str)) {
    let saxpy = saxpy();
    let buckets = Arc::new(Buckets::single(saxpy.recording.clone()));
    let policy = Policy::default();
    let mut ring: Ring<usize> = Ring::new(backend, &buckets, 3, &policy, Wait::Spin).unwrap();
    after("Ring::new");
    let mut submitted = 0;
    let mut done = 0;
    while done < batches {
        while submitted < batches
            && let Some(mut slot) = ring.acquire()
        {
            slot.write(saxpy.x)
                .copy_from_slice(&expected(0, submitted).0);
            let submitting = ring.submit(slot, Extent::from([LEN as u32]), submitted);
            submitting.map_err(|failed| failed.error).unwrap();
            submitted += 1;
            after("Ring::submit");
        }
        let finished = match done % 2 {
            0 => ring.wait(),
            _ => ring.poll(),
        };
        after("Ring::wait and Ring::poll");
        let Some(finished) = finished else { continue };
        let slot = finished.as_ref().expect("the batch is right");
        let expected = expected(0, *slot.batch()).1;
        assert!(*slot.read(saxpy.out) == expected[..]);
        let (_, error) = ring.release(finished);
        assert!(error.is_none(), "{error:?}");
        done += 1;
    }
    drop(ring);
    after("the ring's drop");
}

fn config() -> EngineConfig {
    EngineConfig::new([200, 16])
}

/// Runs items through an engine, whose work is on threads of its own.
fn run_engine(backend: &Arc<dyn Backend>, count: usize, after: &dyn Fn(&str)) {
    let backends = [Arc::clone(backend)];
    let engine = Engine::new(Mix::new(), &backends, threads(), &config()).unwrap();
    after("Engine::new");
    let items = items(count, 150);
    let submit = |item: &mix::Item| engine.submit(item.clone()).unwrap();
    let tickets: Vec<_> = items.iter().map(submit).collect();
    after("Engine::submit");
    for (ticket, item) in tickets.into_iter().zip(&items) {
        let done = ticket.wait().unwrap();
        assert_eq!(done.result.unwrap(), item.output(UNIFORMS));
    }
    drop(engine);
    after("the engine's drop");
}

fn run_pipeline(backend: &Arc<dyn Backend>, count: usize, after: &dyn Fn(&str)) {
    let backends = [Arc::clone(backend)];
    let mut pipeline = Pipeline::new(Mix::new(), &backends, threads(), &config()).unwrap();
    after("Pipeline::new");
    for item in items(count, 150) {
        pipeline.submit(item.clone()).expect("it is free");
        pipeline.flush();
        after("Pipeline::submit and Pipeline::flush");
        let (_, done) = pipeline.wait().unwrap();
        assert_eq!(done.result.unwrap(), item.output(UNIFORMS));
        after("Pipeline::wait");
    }
    drop(pipeline);
    after("the pipeline's drop");
}

/// Copies in every direction, of allocations and of a pool's buffers.
fn run_copies(backend: &Arc<dyn Backend>, after: &dyn Fn(&str)) {
    // More than copies take in one part.
    const BYTES: usize = (3 << 20) + 5;
    let bytes: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8).collect();
    for spaces in [
        [Space::Device, Space::Device],
        [Space::Device, Space::Pinned],
        [Space::Pinned, Space::Device],
    ] {
        let allocations = spaces.map(|space| backend.allocate(space, BYTES).unwrap());
        after("Backend::allocate");
        let [from, to] = &allocations;
        backend.write(&bytes, from, 0).unwrap();
        after("Backend::write");
        backend.copy(from, 0, to, 0, BYTES).unwrap();
        after("Backend::copy");
        let mut read = vec![0; BYTES];
        backend.read(to, 0, &mut read).unwrap();
        after("Backend::read");
        assert!(read == bytes);
        drop(allocations);
        after("an allocation's drop");
    }
    let pool = Pool::new(Arc::clone(backend), PoolConfig::testing());
    let mut buffer = pool.device::<u32>(1_000, "buffer").unwrap();
    after("Pool::device");
    buffer.upload(&[7; 1_000]).unwrap();
    let mut read = [0; 1_000];
    buffer.download(&mut read).unwrap();
    assert_eq!(read, [7; 1_000]);
    after("a buffer's copies");
    drop((buffer, pool));
    after("the pool's drop");
}

/// A slot that is opened, used and dropped.
fn run_slot(backend: &Arc<dyn Backend>) {
    let saxpy = saxpy();
    let buffers = saxpy.recording.buffers();
    let mut device_slot = backend
        .open_slots(buffers, 1, Priority::Normal)
        .unwrap()
        .remove(0);
    for mode in MODES {
        let policy = Policy {
            verify: Verify::Off,
            ..Policy::new(mode)
        };
        let mut executor = ready_with(backend, &saxpy.recording, &mut *device_slot, &policy);
        for index in 0..10 {
            round(&saxpy, &mut *device_slot, &mut executor, 0, index);
        }
    }
}

fn nothing(_: &str) {}

#[test]
#[ignore = "needs a CUDA device"]
fn the_driver_refuses_threads_of_the_default_mode_during_a_capture() {
    let _turn = turn();
    drop(device());
    let (mut event, mut memory) = (null_mut(), 0);
    // SAFETY: both places outlive the calls, and the event is destroyed once.
    let (capture, allocated, queried) = with_primary(|| unsafe {
        check("cuEventCreate", sys::cuEventCreate(&mut event, 0));
        let capture = OpenCapture::begin();
        let allocated = sys::cuMemAlloc_v2(&mut memory, 64);
        let queried = sys::cuEventQuery(event);
        check("cuEventDestroy", sys::cuEventDestroy_v2(event));
        (capture, allocated, queried)
    });
    let refused = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    assert_eq!(allocated, refused, "or the tests here would show nothing");
    say(&format!(
        "a query of an event in the default mode: {queried:?}"
    ));
    let invalidated = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    assert_eq!(capture.finish(), invalidated);
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_thousand_batches_are_right_while_another_thread_captures() {
    let _turn = turn();
    let backend = device();
    let capture = OpenCapture::begin();
    run_ring(&backend, BATCHES, &nothing);
    run_engine(&backend, BATCHES, &nothing);
    run_pipeline(&backend, 20, &nothing);
    capture.assert_ends_well();
    run_ring(&backend, 20, &nothing);
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_device_is_opened_and_closed_while_another_thread_captures() {
    let _turn = turn();
    drop(device());
    let capture = OpenCapture::begin();
    let backend = device();
    run_engine(&backend, 50, &nothing);
    drop(backend);
    assert!(devices().unwrap().is_ok());
    capture.assert_ends_well();
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_slot_opened_used_and_dropped_in_a_capture_of_another_thread_leaves_the_device_well() {
    let _turn = turn();
    let backend = device();
    let capture = OpenCapture::begin();
    run_slot(&backend);
    // One that is dropped with work in flight.
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
    replay(&mut *device_slot, &mut executor);
    drop((device_slot, executor));
    capture.assert_ends_well();
    run_engine(&backend, 50, &nothing);
}

#[test]
#[ignore = "needs a CUDA device"]
fn copies_are_right_while_another_thread_captures() {
    let _turn = turn();
    let backend = device();
    let capture = OpenCapture::begin();
    run_copies(&backend, &nothing);
    capture.assert_ends_well();
    run_copies(&backend, &nothing);
}

/// The context that is current on this thread.
fn current() -> usize {
    let mut context = null_mut();
    // SAFETY: `context` outlives the call.
    check("cuCtxGetCurrent", unsafe {
        sys::cuCtxGetCurrent(&mut context)
    });
    context as usize
}

/// The thread's mode of captures; it is the default one afterwards.
fn mode() -> CUstreamCaptureMode {
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: `mode` outlives the call.
    let exchanged = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) };
    check("cuThreadExchangeStreamCaptureMode", exchanged);
    mode
}

/// Every public front on this thread, with a look at the thread after each call.
fn assert_calls_leave(context: usize, see_mode: bool) {
    let after = |call: &str| {
        assert_eq!(current(), context, "after {call}");
        if see_mode {
            let global = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
            assert_eq!(mode(), global, "after {call}");
        }
    };
    let backend = device();
    after("CudaBackend::find");
    assert!(devices().unwrap().is_ok());
    after("devices");
    run_copies(&backend, &after);
    run_ring(&backend, 10, &after);
    run_pipeline(&backend, 5, &after);
    run_engine(&backend, 20, &after);
    drop(backend);
    after("the backend's drop");
}

/// A second context, apart from the primary one. It is current on this thread afterwards.
fn second_context() -> sys::CUcontext {
    type Create = unsafe extern "C" fn(*mut sys::CUcontext, u32, sys::CUdevice) -> CUresult;
    let (mut context, mut device) = (null_mut(), 0);
    // SAFETY: the driver exports the function with this signature since CUDA 3.2, also
    // where the headers name a later one; the places outlive the calls.
    unsafe {
        check("cuDeviceGet", sys::cuDeviceGet(&mut device, 0));
        let create = sys::culib().get::<Create>(b"cuCtxCreate_v2\0").unwrap();
        check("cuCtxCreate", create(&mut context, 0, device));
    }
    context
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_caller_s_context_and_mode_are_the_same_after_every_call() {
    let _turn = turn();
    drop(device());
    let in_a_thread = std::thread::spawn(|| {
        let context = second_context();
        assert_calls_leave(context as usize, true);
        let mut memory = 0;
        // SAFETY: the context is current and destroyed once, here, by the only thread
        // that knows it; `memory` outlives the call.
        unsafe {
            check("cuMemAlloc", sys::cuMemAlloc_v2(&mut memory, 64));
            check("cuMemFree", sys::cuMemFree_v2(memory));
            check("cuCtxDestroy", sys::cuCtxDestroy_v2(context));
        }
    });
    in_a_thread.join().unwrap();
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_thread_without_a_context_has_none_after_any_call() {
    let _turn = turn();
    drop(device());
    let in_a_thread = std::thread::spawn(|| {
        assert_eq!(current(), 0);
        assert_calls_leave(0, false);
    });
    in_a_thread.join().unwrap();
}
