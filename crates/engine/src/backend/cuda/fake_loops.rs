//! The part of the driver without a device that makes, launches and runs graphs: their copies and
//! memsets, and loops, whose launches are threads that do what the kernels of `resident.cu` do.

use super::copies;
use super::device_loop::LoopArgs;
use super::fake_driver::{Refusal, put, put_new_handle, state, wait};
use super::{driver::Driver, result_codes};
use crate::backend::host_ns;
use cudarc::driver::sys;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::*, fence};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct FakeLoops {
    graphs: BTreeMap<usize, Nodes>,
    /// By exec: the nodes of its graph.
    execs: BTreeMap<usize, Nodes>,
    /// Launches of loops, by stream; the next one of a stream waits for the one before.
    running: BTreeMap<usize, JoinHandle<()>>,
    /// By event: the stream that it was last recorded on.
    pub(super) recorded: BTreeMap<usize, usize>,
    /// Whether modules can be loaded.
    pub(super) loads_modules: bool,
    /// Launches so far.
    pub(super) launches: usize,
    /// Batches that loops ran so far.
    pub(super) batches: usize,
    /// Whether the next batch of a loop faults.
    pub(super) faults: bool,
    /// Whether the kernel that copies can be loaded.
    pub(super) loads_copies: bool,
    /// The handle of that kernel.
    copies: usize,
    /// The programmatic edges of the graph that was instantiated last.
    pub(super) programmatic: usize,
}

impl FakeLoops {
    /// The launches that have not been waited for.
    pub(super) fn take_running(&mut self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut self.running).into_values().collect()
    }
}

/// What a graph does.
#[derive(Clone, Default)]
struct Nodes {
    /// Memsets and copies, in the order in which they were added.
    work: Vec<FakeLoopWork>,
    /// The argument of its launches of one thread.
    kernel: Option<LoopArgs>,
    /// The body of its WHILE node.
    body: Option<usize>,
    /// Its programmatic edges, as pairs of nodes.
    programmatic: Vec<(usize, usize)>,
}

#[derive(Clone, Copy)]
enum FakeLoopWork {
    Set {
        to: usize,
        bytes: usize,
        byte: u8,
    },
    Copy {
        to: usize,
        from: usize,
        bytes: usize,
    },
}

impl FakeLoopWork {
    /// Does the work, as a graph's node would.
    fn run(self) {
        // SAFETY: the test keeps the memory until the batch is done, and does not touch it.
        unsafe {
            match self {
                FakeLoopWork::Set { to, bytes, byte } => {
                    std::ptr::write_bytes(to as *mut u8, byte, bytes)
                }
                FakeLoopWork::Copy { to, from, bytes } => {
                    std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes);
                }
            }
        }
    }
}

fn word(address: u64) -> &'static AtomicU64 {
    // SAFETY: the backend keeps the words of a loop until its launches have ended.
    unsafe { &*(address as *const AtomicU64) }
}

/// The device's clock, which started long before the host's.
fn device_ns() -> u64 {
    (1 << 60) + host_ns(Instant::now())
}

/// What a launch of a loop does on the device.
fn run_loop(body: &Nodes) {
    let args = body.kernel.expect("its last node is a kernel");
    let [ring, stop] = [args.host, args.host + 8].map(word);
    let [done, parked, begun, ended] = [0, 8, 16, 24].map(|offset| word(args.device + offset));
    let mut batch = ring.load(Relaxed);
    fence(Acquire);
    let mut begun_ns = device_ns();
    loop {
        if state(|state| std::mem::take(&mut state.loops.faults)) {
            return state(|state| state.waits_return = 719);
        }
        body.work.iter().for_each(|work| work.run());
        state(|state| state.loops.batches += 1);
        begun.store(begun_ns, Relaxed);
        ended.store(device_ns(), Relaxed);
        done.store(batch, Release);
        let since = Instant::now();
        loop {
            let next = ring.load(Acquire);
            if next != batch {
                batch = next;
                begun_ns = device_ns();
                break;
            }
            let idle = since.elapsed() > Duration::from_nanos(args.idle_ns);
            if stop.load(Relaxed) != 0 || idle {
                return parked.store(batch, Release);
            }
            std::thread::yield_now();
        }
    }
}

fn nodes<T>(graph: sys::CUgraph, change: impl FnOnce(&mut Nodes) -> T) -> T {
    state(|state| change(state.loops.graphs.entry(graph as usize).or_default()))
}

/// Installs the calls that make, instantiate and launch graphs, load modules, describe functions, record
/// and query events, and wait for streams. A graph with a body is a loop: its launches run on threads, one
/// after the other in each stream.
pub(super) fn install(driver: &mut Driver) {
    extern "C" fn add_memset(
        node: *mut sys::CUgraphNode,
        graph: sys::CUgraph,
        _: *const sys::CUgraphNode,
        _: usize,
        params: *const sys::CUDA_MEMSET_NODE_PARAMS,
        _: sys::CUcontext,
    ) -> i32 {
        // SAFETY: the backend passes parameters that outlive the call.
        let params = unsafe { &*params };
        let memset = FakeLoopWork::Set {
            to: params.dst as usize,
            bytes: params.width,
            byte: params.value as u8,
        };
        nodes(graph, |nodes| nodes.work.push(memset));
        put_new_handle(node)
    }
    extern "C" fn add_memcpy(
        node: *mut sys::CUgraphNode,
        graph: sys::CUgraph,
        _: *const sys::CUgraphNode,
        _: usize,
        params: *const sys::CUDA_MEMCPY3D,
        _: sys::CUcontext,
    ) -> i32 {
        // SAFETY: the backend passes parameters that outlive the call.
        let params = unsafe { &*params };
        // The side that is not used is 0.
        let copy = FakeLoopWork::Copy {
            to: params.dstDevice as usize | params.dstHost as usize,
            from: params.srcDevice as usize | params.srcHost as usize,
            bytes: params.WidthInBytes,
        };
        nodes(graph, |nodes| nodes.work.push(copy));
        put_new_handle(node)
    }
    extern "C" fn add_kernel(
        node: *mut sys::CUgraphNode,
        graph: sys::CUgraph,
        _: *const sys::CUgraphNode,
        _: usize,
        params: *const sys::CUDA_KERNEL_NODE_PARAMS,
    ) -> i32 {
        // SAFETY: these tests launch the kernels of a loop alone, which take this struct.
        let args = unsafe { *(*(*params).kernelParams).cast::<LoopArgs>() };
        nodes(graph, |nodes| nodes.kernel = Some(args));
        put_new_handle(node)
    }
    extern "C" fn set_kernel(
        _: sys::CUgraphExec,
        _: sys::CUgraphNode,
        _: *const sys::CUDA_KERNEL_NODE_PARAMS,
    ) -> i32 {
        result_codes::SUCCESS
    }
    extern "C" fn add_node(
        node: *mut sys::CUgraphNode,
        graph: sys::CUgraph,
        _: *const sys::CUgraphNode,
        _: *const sys::CUgraphEdgeData,
        _: usize,
        params: *mut sys::CUgraphNodeParams,
    ) -> i32 {
        let mut body: sys::CUgraph = null_mut();
        put_new_handle(&mut body);
        let body = body as usize;
        nodes(graph, |nodes| nodes.body = Some(body));
        // The driver's own array of one graph.
        let body_array = Box::leak(Box::new(body as sys::CUgraph));
        // SAFETY: the backend passes parameters of a conditional node that outlive the call.
        unsafe { (*params).__bindgen_anon_1.conditional.phGraph_out = body_array };
        put_new_handle(node)
    }
    extern "C" fn add_child(
        node: *mut sys::CUgraphNode,
        graph: sys::CUgraph,
        _: *const sys::CUgraphNode,
        _: usize,
        child: sys::CUgraph,
    ) -> i32 {
        let child = nodes(child, |child| child.clone());
        nodes(graph, |nodes| {
            nodes.work.extend(child.work);
            nodes.programmatic.extend(child.programmatic);
        });
        put_new_handle(node)
    }
    extern "C" fn add_edge(
        graph: sys::CUgraph,
        from: *const sys::CUgraphNode,
        to: *const sys::CUgraphNode,
        data: *const sys::CUgraphEdgeData,
        _: usize,
    ) -> i32 {
        // Work runs in the order in which its nodes were added, so plain edges change nothing.
        if data.is_null() {
            return result_codes::SUCCESS;
        }
        if state(|state| state.programmatic_refusal == Some(Refusal::Edge)) {
            return result_codes::NOT_SUPPORTED;
        }
        // SAFETY: the backend passes one edge, which outlives the call.
        let (edge, data) = unsafe { ((*from as usize, *to as usize), *data) };
        // A programmatic edge: from where the kernel lets the next one start, to its start.
        assert_eq!((data.from_port, data.to_port, data.type_), (1, 0, 1));
        nodes(graph, |nodes| nodes.programmatic.push(edge));
        result_codes::SUCCESS
    }
    extern "C" fn remove_edge(
        graph: sys::CUgraph,
        from: *const sys::CUgraphNode,
        to: *const sys::CUgraphNode,
        _: *const sys::CUgraphEdgeData,
        _: usize,
    ) -> i32 {
        // SAFETY: the backend passes one edge, which outlives the call.
        let edge = unsafe { (*from as usize, *to as usize) };
        nodes(graph, |nodes| {
            nodes.programmatic.retain(|known| *known != edge)
        });
        result_codes::SUCCESS
    }
    extern "C" fn new_condition(
        condition: *mut sys::CUgraphConditionalHandle,
        _: sys::CUgraph,
        _: sys::CUcontext,
        _: c_uint,
        _: c_uint,
    ) -> i32 {
        put(condition, 1)
    }
    extern "C" fn instantiate(
        exec: *mut sys::CUgraphExec,
        graph: sys::CUgraph,
        flags: c_ulonglong,
    ) -> i32 {
        let made = nodes(graph, |nodes| nodes.clone());
        let refused = state(|state| {
            let edges = match (state.programmatic_refusal, made.body) {
                (Some(Refusal::Instantiation), None) => &made.programmatic,
                (Some(Refusal::Loop), Some(body)) => &state.loops.graphs[&body].programmatic,
                _ => return false,
            };
            !edges.is_empty()
        });
        if refused {
            return result_codes::NOT_SUPPORTED;
        }
        state(|state| {
            state.instantiated.push(flags);
            state.loops.programmatic = made.programmatic.len();
        });
        let result = put_new_handle(exec);
        // SAFETY: just written.
        let exec = unsafe { *exec } as usize;
        state(|state| state.loops.execs.insert(exec, made));
        result
    }
    extern "C" fn launch(exec: sys::CUgraphExec, stream: sys::CUstream) -> i32 {
        let (exec, stream) = (exec as usize, stream as usize);
        let body = state(|state| {
            let made = state.loops.execs[&exec].clone();
            let body = made.body.map(|body| state.loops.graphs[&body].clone());
            state.loops.launches += usize::from(body.is_some());
            body
        });
        if let Some(body) = body {
            let earlier = state(|state| state.loops.running.remove(&stream));
            let running = std::thread::spawn(move || {
                if let Some(earlier) = earlier {
                    earlier.join().unwrap();
                }
                run_loop(&body);
            });
            state(|state| state.loops.running.insert(stream, running));
        }
        result_codes::SUCCESS
    }
    extern "C" fn load_module(
        module: *mut sys::CUmodule,
        _: *const c_void,
        _: c_uint,
        _: *mut sys::CUjit_option,
        _: *mut *mut c_void,
    ) -> i32 {
        if state(|state| state.loops.loads_modules) {
            put_new_handle(module)
        } else {
            result_codes::NOT_SUPPORTED
        }
    }
    extern "C" fn function(
        function: *mut sys::CUfunction,
        _: sys::CUmodule,
        name: *const c_char,
    ) -> i32 {
        let result = put_new_handle(function);
        // SAFETY: the backend passes a text that ends in a zero, and `put_new_handle` has written the handle.
        let (name, function) = unsafe { (CStr::from_ptr(name), *function as usize) };
        if name.to_bytes() == copies::kernel((0, 0)).name().as_bytes() {
            state(|state| state.loops.copies = function);
        }
        result
    }
    extern "C" fn load_function(_: sys::CUfunction) -> i32 {
        result_codes::SUCCESS
    }
    extern "C" fn param(
        function: sys::CUfunction,
        index: usize,
        offset: *mut usize,
        bytes: *mut usize,
    ) -> i32 {
        let copies = state(|state| state.loops.loads_copies.then_some(state.loops.copies));
        put(offset, 0);
        put(
            bytes,
            match copies {
                Some(copies) if copies == function as usize => copies::ARGS_BYTES,
                _ => size_of::<LoopArgs>(),
            },
        );
        match index {
            0 => result_codes::SUCCESS,
            _ => result_codes::INVALID_VALUE,
        }
    }
    extern "C" fn attribute(
        value: *mut c_int,
        which: sys::CUfunction_attribute,
        _: sys::CUfunction,
    ) -> i32 {
        use sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION;
        match which {
            CU_FUNC_ATTRIBUTE_PTX_VERSION => put(value, state(|state| state.ptx_version)),
            _ => put(value, 1024),
        }
    }
    driver.cuGraphAddMemsetNode = add_memset;
    driver.cuGraphAddMemcpyNode = add_memcpy;
    driver.cuGraphAddKernelNode_v2 = add_kernel;
    driver.cuGraphExecKernelNodeSetParams_v2 = set_kernel;
    driver.cuGraphAddNode_v2 = add_node;
    driver.cuGraphAddChildGraphNode = add_child;
    driver.cuGraphAddDependencies_v2 = add_edge;
    driver.cuGraphRemoveDependencies_v2 = remove_edge;
    driver.cuGraphConditionalHandleCreate = new_condition;
    driver.cuGraphInstantiateWithFlags = instantiate;
    driver.cuGraphLaunch = launch;
    driver.cuModuleLoadDataEx = load_module;
    driver.cuModuleGetFunction = function;
    driver.cuFuncLoad = load_function;
    driver.cuFuncGetParamInfo = param;
    extern "C" fn record(event: sys::CUevent, stream: sys::CUstream) -> i32 {
        let (event, stream) = (event as usize, stream as usize);
        state(|state| state.loops.recorded.insert(event, stream));
        result_codes::SUCCESS
    }
    extern "C" fn query(event: sys::CUevent) -> i32 {
        if state(|state| state.captured_event == event as usize) {
            return result_codes::INVALID_VALUE;
        }
        let runs = state(|state| {
            let stream = state.loops.recorded.get(&(event as usize));
            let running = stream.and_then(|stream| state.loops.running.get(stream));
            running.is_some_and(|running| !running.is_finished())
        });
        if runs {
            result_codes::NOT_READY
        } else {
            wait()
        }
    }
    extern "C" fn synchronize(stream: sys::CUstream) -> i32 {
        let running = state(|state| state.loops.running.remove(&(stream as usize)));
        if let Some(running) = running {
            running.join().unwrap();
        }
        wait()
    }
    driver.cuFuncGetAttribute = attribute;
    driver.cuEventRecord = record;
    driver.cuEventQuery = query;
    driver.cuStreamSynchronize = synchronize;
}
