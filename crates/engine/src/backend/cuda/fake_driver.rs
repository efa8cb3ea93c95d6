//! A driver without a device, for tests of the backend's reactions to the driver. Memory is the
//! host's, a copy takes effect when it is waited for, and captures of other threads refuse calls
//! and are invalidated by the driver's rules.

use super::context::{DriverDevice, PrimaryContext};
use super::driver::Driver;
use super::fake_loops::FakeLoops;
use super::result_codes;
use cudarc::driver::sys;
use parking_lot::{Mutex, MutexGuard};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uchar, c_uint, c_void};
use std::sync::Arc;
use std::thread::{ThreadId, current};

/// `CU_STREAM_CAPTURE_MODE_GLOBAL` and `CU_STREAM_CAPTURE_MODE_RELAXED`.
pub(super) const GLOBAL: u32 = 0;
pub(super) const RELAXED: u32 = 2;
/// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`.
pub(super) const CAPTURE_UNSUPPORTED: i32 = 900;
/// `CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD`.
const CAPTURE_WRONG_THREAD: i32 = 908;
const INVALID_CONTEXT: i32 = 201;
/// The primary context's handle.
pub(super) const PRIMARY: usize = 0x1000;
/// The highest priority of a stream, which is the least number.
pub(super) const GREATEST_PRIORITY: i32 = -5;
const ALIGN_BYTES: usize = 256;

/// A launch attribute: its number, and the first numbers of its value.
pub(super) type Attribute = (u32, [u32; 3]);

/// The state of the driver.
#[derive(Default)]
pub(super) struct DriverState {
    /// Whether another thread has a capture of mode global open.
    pub(super) captures_elsewhere: bool,
    /// Whether a call invalidated that capture.
    pub(super) invalidated: bool,
    /// The result of waits, if not 0.
    pub(super) waits_return: i32,
    /// References to the primary context.
    pub(super) retained: u32,
    /// Allocations by address, with their sizes.
    pub(super) memory: BTreeMap<usize, usize>,
    /// Pending copies: (to, from, bytes).
    pub(super) copies: Vec<(usize, usize, usize)>,
    /// The capture on the backend's own stream: its mode, and who began it.
    pub(super) capture: Option<(u32, ThreadId)>,
    /// The result of an update of a graph and its reason, if not 0.
    pub(super) update_returns: (i32, u32),
    /// An event that was recorded in a capture of other code.
    pub(super) captured_event: usize,
    /// The streams that wait for events, with these.
    pub(super) stream_waits: Vec<(usize, usize)>,
    /// The priorities of the streams that were created with one.
    pub(super) priorities: BTreeMap<usize, i32>,
    /// The major number of the device's compute capability.
    pub(super) capability: c_int,
    /// The call that refuses programmatic dependent launch, if one does.
    pub(super) programmatic_refusal: Option<Refusal>,
    /// The architecture that code was compiled for, times 10.
    pub(super) ptx_version: c_int,
    /// The nodes of the capture.
    captured: Vec<usize>,
    /// The attributes of each launch into a stream.
    pub(super) launches: Vec<Vec<Attribute>>,
    /// The attributes that nodes were given.
    pub(super) node_attributes: Vec<Attribute>,
    /// The flags of instantiated graphs.
    pub(super) instantiated: Vec<u64>,
    /// Graphs that are loops, and their launches.
    pub(super) loops: FakeLoops,
    handles: usize,
}

/// A call that a test lets the driver refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Launch,
    Edge,
    Instantiation,
    /// The instantiation of a loop.
    Loop,
}

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
pub(super) const PROGRAMMATIC: u32 = 6;

static STATE: Mutex<Option<DriverState>> = Mutex::new(None);
static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    static MODE: Cell<u32> = const { Cell::new(GLOBAL) };
    /// How often the mode was changed, and how often a context was made current.
    static CHANGES: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Exclusive use of the driver, with fresh state.
pub(super) struct FakeDriverUse {
    _turn: MutexGuard<'static, ()>,
    pub(super) driver: &'static Driver,
}

impl FakeDriverUse {
    pub(super) fn new() -> FakeDriverUse {
        let turn = TURN.lock();
        *STATE.lock() = Some(DriverState::default());
        FakeDriverUse {
            _turn: turn,
            driver: Box::leak(Box::new(driver())),
        }
    }

    pub(super) fn context(&self) -> Arc<PrimaryContext> {
        PrimaryContext::retain(DriverDevice::open(self.driver, 0).unwrap()).unwrap()
    }
}

impl Drop for FakeDriverUse {
    fn drop(&mut self) {
        // The loop of a slot that was given up may still run.
        for running in state(|state| state.loops.take_running()) {
            running.join().unwrap();
        }
    }
}

/// Reads or changes the driver's state.
pub(super) fn state<T>(use_it: impl FnOnce(&mut DriverState) -> T) -> T {
    use_it(STATE.lock().as_mut().expect("a session is open"))
}

/// The calling thread's mode and its stack of contexts.
pub(super) fn thread() -> (u32, Vec<usize>) {
    (MODE.get(), STACK.with_borrow(Vec::clone))
}

/// Sets the mode and the contexts of the calling thread.
pub(super) fn set_thread(mode: u32, stack: &[usize]) {
    MODE.set(mode);
    STACK.set(stack.to_vec());
}

/// How often the thread's mode and its contexts were changed since the last call.
pub(super) fn take_changes() -> (u32, u32) {
    CHANGES.take()
}

/// Refuses a potentially unsafe call by the rules of captures, and any without a
/// context.
fn allow(then: impl FnOnce(&mut DriverState) -> i32) -> i32 {
    if STACK.with_borrow(Vec::is_empty) {
        return INVALID_CONTEXT;
    }
    state(|state| {
        if state.captures_elsewhere && MODE.get() == GLOBAL {
            state.invalidated = true;
            return CAPTURE_UNSUPPORTED;
        }
        then(state)
    })
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN_BYTES).unwrap()
}

fn take_memory(bytes: usize) -> usize {
    // SAFETY: the callers refuse a size of 0.
    let start = unsafe { alloc_zeroed(layout(bytes)) } as usize;
    state(|state| state.memory.insert(start, bytes));
    start
}

/// Frees memory of [`take_memory`]; an unknown address is refused, as one that was freed before.
fn free(start: usize) -> i32 {
    allow(|state| match state.memory.remove(&start) {
        Some(bytes) => {
            // SAFETY: `take_memory` made it with this layout, and it was still known.
            unsafe { dealloc(start as *mut u8, layout(bytes)) };
            result_codes::SUCCESS
        }
        None => result_codes::INVALID_VALUE,
    })
}

/// Waits: makes the pending copies, unless it is set to fail.
pub(super) fn wait() -> i32 {
    allow(|state| {
        if state.capture.is_some() {
            return CAPTURE_UNSUPPORTED;
        }
        if state.waits_return == result_codes::SUCCESS {
            for (to, from, bytes) in state.copies.drain(..) {
                // SAFETY: the backend keeps both ranges alive until this wait. The tests
                // check that it does before they let a wait succeed.
                unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
            }
        }
        state.waits_return
    })
}

fn give_copy(to: usize, from: usize, bytes: usize) -> i32 {
    state(|state| state.copies.push((to, from, bytes)));
    result_codes::SUCCESS
}

/// Writes what a call returns by pointer.
pub(super) fn put<T>(place: *mut T, value: T) -> i32 {
    // SAFETY: the backend passes places that outlive the call.
    unsafe { place.write(value) };
    result_codes::SUCCESS
}

/// Writes a new, unique handle.
pub(super) fn put_new_handle<T>(place: *mut *mut T) -> i32 {
    let handle = state(|state| {
        state.handles += 1;
        state.handles
    });
    put(place, handle as *mut T)
}

/// A driver whose calls work on [`DriverState`]; those that no test needs are refused.
fn driver() -> Driver {
    let mut driver = Driver::refusing();
    extern "C" fn device_get(device: *mut sys::CUdevice, ordinal: c_int) -> i32 {
        put(device, ordinal)
    }
    extern "C" fn attribute(
        value: *mut c_int,
        attribute: sys::CUdevice_attribute,
        _: sys::CUdevice,
    ) -> i32 {
        use sys::CUdevice_attribute as A;
        let capability = state(|state| state.capability);
        put(
            value,
            match attribute {
                A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => capability,
                A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH => (capability >= 6).into(),
                _ => 0,
            },
        )
    }
    driver.cuDeviceGet = device_get;
    driver.cuDeviceGetAttribute = attribute;
    install_thread_calls(&mut driver);
    install_memory_calls(&mut driver);
    install_stream_and_event_calls(&mut driver);
    install_capture_and_graph_calls(&mut driver);
    install_launch_calls(&mut driver);
    super::fake_loops::install(&mut driver);
    driver
}

/// Installs the calls that change or read the state of a thread: its context and its capture mode.
fn install_thread_calls(driver: &mut Driver) {
    extern "C" fn retain(context: *mut sys::CUcontext, _: sys::CUdevice) -> i32 {
        state(|state| {
            if state.captures_elsewhere && MODE.get() == GLOBAL {
                state.invalidated = true;
                return CAPTURE_UNSUPPORTED;
            }
            state.retained += 1;
            put(context, PRIMARY as sys::CUcontext)
        })
    }
    extern "C" fn release(_: sys::CUdevice) -> i32 {
        state(|state| state.retained -= 1);
        result_codes::SUCCESS
    }
    extern "C" fn get(context: *mut sys::CUcontext) -> i32 {
        let top = STACK.with_borrow(|stack| stack.last().copied());
        put(context, top.unwrap_or(0) as sys::CUcontext)
    }
    extern "C" fn push(context: sys::CUcontext) -> i32 {
        STACK.with_borrow_mut(|stack| stack.push(context as usize));
        CHANGES.set((CHANGES.get().0, CHANGES.get().1 + 1));
        result_codes::SUCCESS
    }
    extern "C" fn pop(context: *mut sys::CUcontext) -> i32 {
        match STACK.with_borrow_mut(Vec::pop) {
            Some(top) => put(context, top as sys::CUcontext),
            None => INVALID_CONTEXT,
        }
    }
    extern "C" fn set(context: sys::CUcontext) -> i32 {
        STACK.with_borrow_mut(Vec::pop);
        push(context)
    }
    extern "C" fn exchange(mode: *mut sys::CUstreamCaptureMode) -> i32 {
        // SAFETY: the backend passes a number of the enum's size.
        let wanted = unsafe { mode.cast::<u32>().read() };
        CHANGES.set((CHANGES.get().0 + 1, CHANGES.get().1));
        put(mode.cast(), MODE.replace(wanted))
    }
    driver.cuDevicePrimaryCtxRetain = retain;
    driver.cuDevicePrimaryCtxRelease_v2 = release;
    driver.cuCtxGetCurrent = get;
    driver.cuCtxPushCurrent_v2 = push;
    driver.cuCtxPopCurrent_v2 = pop;
    driver.cuCtxSetCurrent = set;
    driver.cuThreadExchangeStreamCaptureMode = exchange;
}

/// Installs the calls that allocate, free and copy memory. Copies are made by [`wait`].
fn install_memory_calls(driver: &mut Driver) {
    extern "C" fn allocate(address: *mut sys::CUdeviceptr, bytes: usize) -> i32 {
        match allow(|_| result_codes::SUCCESS) {
            result_codes::SUCCESS => put(address, take_memory(bytes) as u64),
            refused => refused,
        }
    }
    extern "C" fn allocate_host(address: *mut *mut c_void, bytes: usize, _: c_uint) -> i32 {
        match allow(|_| result_codes::SUCCESS) {
            result_codes::SUCCESS => put(address, take_memory(bytes) as *mut c_void),
            refused => refused,
        }
    }
    extern "C" fn free_device(address: sys::CUdeviceptr) -> i32 {
        free(address as usize)
    }
    extern "C" fn free_host(address: *mut c_void) -> i32 {
        free(address as usize)
    }
    extern "C" fn upload(
        to: sys::CUdeviceptr,
        from: *const c_void,
        bytes: usize,
        _: sys::CUstream,
    ) -> i32 {
        give_copy(to as usize, from as usize, bytes)
    }
    extern "C" fn download(
        to: *mut c_void,
        from: sys::CUdeviceptr,
        bytes: usize,
        _: sys::CUstream,
    ) -> i32 {
        give_copy(to as usize, from as usize, bytes)
    }
    extern "C" fn copy(
        to: sys::CUdeviceptr,
        from: sys::CUdeviceptr,
        bytes: usize,
        _: sys::CUstream,
    ) -> i32 {
        give_copy(to as usize, from as usize, bytes)
    }
    extern "C" fn set(_: sys::CUdeviceptr, byte: c_uchar, _: usize, _: sys::CUstream) -> i32 {
        assert_eq!(byte, 0, "memory comes zeroed, so only zeros are set");
        result_codes::SUCCESS
    }
    driver.cuMemAlloc_v2 = allocate;
    driver.cuMemHostAlloc = allocate_host;
    driver.cuMemFree_v2 = free_device;
    driver.cuMemFreeHost = free_host;
    driver.cuMemcpyHtoDAsync_v2 = upload;
    driver.cuMemcpyDtoHAsync_v2 = download;
    driver.cuMemcpyAsync = copy;
    driver.cuMemsetD8Async = set;
}

/// Installs the calls of streams and events, which are handles alone.
fn install_stream_and_event_calls(driver: &mut Driver) {
    extern "C" fn create_stream(stream: *mut sys::CUstream, _: c_uint) -> i32 {
        put_new_handle(stream)
    }
    extern "C" fn create_with_priority(
        stream: *mut sys::CUstream,
        _: c_uint,
        priority: c_int,
    ) -> i32 {
        let result = put_new_handle(stream);
        // SAFETY: `put_new_handle` has written it.
        let made = unsafe { stream.read() } as usize;
        state(|state| state.priorities.insert(made, priority));
        result
    }
    extern "C" fn priority_range(least: *mut c_int, greatest: *mut c_int) -> i32 {
        put(least, 0);
        put(greatest, GREATEST_PRIORITY)
    }
    extern "C" fn create_event(event: *mut sys::CUevent, _: c_uint) -> i32 {
        put_new_handle(event)
    }
    extern "C" fn synchronize_event(_: sys::CUevent) -> i32 {
        wait()
    }
    driver.cuStreamCreate = create_stream;
    driver.cuStreamCreateWithPriority = create_with_priority;
    driver.cuCtxGetStreamPriorityRange = priority_range;
    extern "C" fn stream_wait_event(stream: sys::CUstream, event: sys::CUevent, _: u32) -> i32 {
        state(|state| state.stream_waits.push((stream as usize, event as usize)));
        result_codes::SUCCESS
    }
    driver.cuStreamWaitEvent = stream_wait_event;
    driver.cuEventCreate = create_event;
    driver.cuEventSynchronize = synchronize_event;
}

/// Installs the calls of captures, and those of graphs that are not for loops.
fn install_capture_and_graph_calls(driver: &mut Driver) {
    extern "C" fn begin_capture(_: sys::CUstream, mode: sys::CUstreamCaptureMode) -> i32 {
        state(|state| {
            state.captured.clear();
            state.capture = Some((mode as u32, current().id()));
        });
        result_codes::SUCCESS
    }
    extern "C" fn capture_info(
        _: sys::CUstream,
        status: *mut sys::CUstreamCaptureStatus,
        _: *mut sys::cuuint64_t,
        _: *mut sys::CUgraph,
        nodes: *mut *const sys::CUgraphNode,
        edges: *mut *const sys::CUgraphEdgeData,
        count: *mut usize,
    ) -> i32 {
        assert!(!edges.is_null(), "edges may be programmatic");
        // The nodes that the next one will wait for: the last. Behind a programmatic edge the driver also
        // lists the node at the start of that edge.
        let ends: Vec<sys::CUgraphNode> = state(|state| {
            let starts_early =
                |launch: &Vec<Attribute>| launch.iter().any(|(id, _)| *id == PROGRAMMATIC);
            let ends_count = 1 + usize::from(state.launches.last().is_some_and(starts_early));
            let ends = state.captured.iter().rev().take(ends_count);
            ends.map(|node| *node as sys::CUgraphNode).collect()
        });
        put(
            status,
            sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
        );
        put(count, ends.len());
        // The driver owns the list until the next call on the stream; a test may leak it.
        put(nodes, ends.leak().as_ptr())
    }
    extern "C" fn get_nodes(_: sys::CUgraph, _: *mut sys::CUgraphNode, count: *mut usize) -> i32 {
        put(count, state(|state| state.captured.len()))
    }
    extern "C" fn end_capture(_: sys::CUstream, graph: *mut sys::CUgraph) -> i32 {
        let wrong_thread = state(|state| match state.capture {
            Some((mode, thread)) if mode != RELAXED && thread != current().id() => true,
            _ => {
                state.capture = None;
                false
            }
        });
        if wrong_thread {
            CAPTURE_WRONG_THREAD
        } else {
            put_new_handle(graph)
        }
    }
    extern "C" fn create(graph: *mut sys::CUgraph, _: c_uint) -> i32 {
        put_new_handle(graph)
    }
    extern "C" fn update(
        _: sys::CUgraphExec,
        _: sys::CUgraph,
        info: *mut sys::CUgraphExecUpdateResultInfo,
    ) -> i32 {
        let (result, why) = state(|state| state.update_returns);
        // SAFETY: the backend passes a place that outlives the call.
        let result_place = unsafe { &raw mut (*info).result };
        put(result_place.cast::<u32>(), why);
        result
    }
    driver.cuStreamBeginCapture_v2 = begin_capture;
    driver.cuStreamGetCaptureInfo_v3 = capture_info;
    driver.cuGraphGetNodes = get_nodes;
    driver.cuStreamEndCapture = end_capture;
    driver.cuGraphCreate = create;
    driver.cuGraphExecUpdate_v2 = update;
}

/// Installs the calls that launch kernels into streams, and set attributes of nodes.
fn install_launch_calls(driver: &mut Driver) {
    fn attribute(
        id: sys::CUlaunchAttributeID,
        value: *const sys::CUlaunchAttributeValue,
    ) -> Attribute {
        // SAFETY: the backend passes values of 64 initialised bytes that outlive the call.
        (id as u32, unsafe { value.cast::<[u32; 3]>().read() })
    }
    extern "C" fn launch(
        config: *const sys::CUlaunchConfig,
        _: sys::CUfunction,
        _: *mut *mut c_void,
        _: *mut *mut c_void,
    ) -> i32 {
        // SAFETY: the backend passes a configuration and attributes that outlive the call.
        let attributes = unsafe {
            let config = &*config;
            std::slice::from_raw_parts(config.attrs, config.numAttrs as usize)
        };
        let attributes = attributes.iter().map(|raw| attribute(raw.id, &raw.value));
        let attributes: Vec<Attribute> = attributes.collect();
        let starts_early = attributes.iter().any(|(id, _)| *id == PROGRAMMATIC);
        state(|state| {
            if starts_early && state.programmatic_refusal == Some(Refusal::Launch) {
                return result_codes::NOT_SUPPORTED;
            }
            state.launches.push(attributes);
            if state.capture.is_some() {
                state.handles += 1;
                state.captured.push(state.handles);
            }
            result_codes::SUCCESS
        })
    }
    extern "C" fn set(
        _: sys::CUgraphNode,
        id: sys::CUkernelNodeAttrID,
        value: *const sys::CUkernelNodeAttrValue,
    ) -> i32 {
        state(|state| state.node_attributes.push(attribute(id, value)));
        result_codes::SUCCESS
    }
    driver.cuLaunchKernelEx = launch;
    driver.cuGraphKernelNodeSetAttribute = set;
}
