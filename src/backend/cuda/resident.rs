//! A loop on the device that replays a graph.
//!
//! The loop is a graph: a kernel that takes the first batch, and a WHILE node whose body is the
//! replayed graph followed by a kernel that announces the end of the batch and waits for the next
//! one. That kernel ends the loop if none comes. Conditional bodies take kernels, copies and
//! memsets, which is what graphs without timestamps consist of.

use super::context::Context;
use super::graph::{Exec, Template};
use super::loop_clock::BatchTimes;
use super::loop_words::{DEVICE_WORDS_OFFSET, PinnedWords, loops_of};
use super::memory::DeviceMemory;
use super::module::{Function, Functions};
use super::stream::{Event, Stream};
use crate::backend::loops::LoopHandle;
use crate::backend::{Call, Residency, host_ns};
use crate::error::{Context as _, Error, ErrorKind, Result};
use crate::record::{Image, Kernel};
use cudarc::driver::sys::{self, CUdevice_attribute};
use std::ptr::{null, null_mut};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often the driver is asked whether a loop has failed, while its batch is in flight.
const HEALTH_INTERVAL: Duration = Duration::from_millis(1);

/// The argument of both kernels: `Loop` in resident.cu.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct LoopArgs {
    pub(super) host: u64,
    pub(super) device: u64,
    /// Two words: the number of the batch that runs, and when it began.
    batch: u64,
    pub(super) idle_ns: u64,
    condition: u64,
}

/// The kernels of a loop: the one that takes the first batch, and the one at the end of each.
fn kernels() -> &'static [Kernel; 2] {
    static KERNELS: OnceLock<[Kernel; 2]> = OnceLock::new();
    KERNELS.get_or_init(|| {
        let image = Arc::new(Image {
            name: "resident".to_owned(),
            binary: Some(include_bytes!("resident.ptx").to_vec()),
            source: None,
        });
        ["tapeloop_loop_begin", "tapeloop_loop_turn"].map(|name| {
            let kernel = Kernel::new(name).structure("loop", size_of::<LoopArgs>(), &[]);
            // SAFETY: resident.ptx takes one struct of this size. It accesses the words that the
            // struct names, which belong to a `ResidentLoop`; no caller gets its identifier.
            unsafe { kernel.code(&image) }
        })
    })
}

/// The loop as a graph.
struct LoopGraph {
    exec: Exec,
    /// A stream that only this loop uses.
    stream: Stream,
    /// Recorded after each launch; reached when the loop has ended.
    ended: Event,
}

impl LoopGraph {
    /// # Safety
    /// As [`ResidentLoop::ring`].
    unsafe fn launch(&self) -> Result<()> {
        // SAFETY: the caller's promise for the batch; the loop's own words live as long as the
        // loop, whose `drop` waits for the launch.
        unsafe { self.exec.launch(&self.stream)? };
        // The loop runs: without the event nothing would show that it failed.
        let recorded = self.ended.record(&self.stream);
        recorded.map_err(|error| self.stream.context().lose(&error))
    }
}

/// A graph on the device that waits for batches and replays them. One batch is in flight at a time.
pub(super) struct ResidentLoop {
    graph: LoopGraph,
    /// The batch that runs.
    batch: Option<DeviceMemory>,
    handle: LoopHandle<PinnedWords>,
    /// When the last batch was given to the loop.
    rung_at: Instant,
    /// When the driver was last asked about the loop.
    checked_at: Instant,
}

impl ResidentLoop {
    /// A loop that replays `template`. It is launched for its first batch.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for a device that has a time limit for kernels, and if there are
    /// too many loops; errors of the driver.
    pub(super) fn new(
        template: &Template,
        functions: &Functions,
        residency: Residency,
    ) -> Result<ResidentLoop> {
        let context = template.context();
        let limit = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT;
        if context.device.attribute(limit) != 0 {
            let message = "the device ends kernels after some seconds, as it drives a display";
            return Err(Error::new(ErrorKind::Unavailable, message)
                .fix("set mode = \"graph\", or take another device"));
        }
        let [begin, turn] = kernels();
        let function = |kernel| functions.get(functions.load(kernel)?);
        let (begin, turn) = (function(begin)?, function(turn)?);
        let words = PinnedWords::new(context)?;
        let batch = DeviceMemory::new(context, 2 * size_of::<u64>())?;
        let mut args = LoopArgs {
            host: words.address(),
            device: words.address() + DEVICE_WORDS_OFFSET,
            batch: batch.start(),
            idle_ns: residency.idle.min(Residency::MAX).as_nanos() as u64,
            condition: 0,
        };
        let whole = Template::empty(context)?;
        // SAFETY: `whole` is alive, and gets the nodes that its condition and the kernels ask for.
        let exec = unsafe {
            args.condition = new_condition(context, whole.raw())?;
            let begun = add_kernel(context, whole.raw(), null_mut(), &begin, &mut args)?;
            let body = add_while(context, whole.raw(), begun, args.condition)?;
            let replayed = add_child(context, body, template.raw())?;
            add_kernel(context, body, replayed, &turn, &mut args)?;
            whole.instantiate()?
        };
        let (stream, ended) = (Stream::new(context)?, Event::new(context, false)?);
        let loops = loops_of(context.device.handle());
        let handle = LoopHandle::new(&loops, words, residency)?;
        Ok(ResidentLoop {
            graph: LoopGraph {
                exec,
                stream,
                ended,
            },
            batch: Some(batch),
            handle,
            rung_at: Instant::now(),
            checked_at: Instant::now(),
        })
    }

    /// Gives a batch to the loop, and launches the loop if it has parked.
    ///
    /// # Safety
    /// The batch before is done. Until this one is, the memory that the graph accesses must live,
    /// and the host must keep off what it writes.
    pub(super) unsafe fn ring(&mut self) -> Result<()> {
        self.rung_at = Instant::now();
        self.checked_at = self.rung_at;
        let graph = &self.graph;
        // SAFETY: the caller's promise.
        let launch = || unsafe { graph.launch() };
        self.handle.ring(host_ns(self.rung_at), launch)
    }

    /// The moments of the last batch, which was seen done.
    pub(super) fn batch_times(&self) -> BatchTimes {
        let (begun_ns, ended_ns) = self.handle.doorbell().words().batch_ns();
        BatchTimes {
            rung_ns: host_ns(self.rung_at),
            begun_ns,
            ended_ns,
            seen_ns: host_ns(Instant::now()),
        }
    }

    /// Whether the last batch is done. It makes no driver call unless the loop is to be launched
    /// again, or the batch takes long.
    ///
    /// # Errors
    /// The error that ended the loop.
    pub(super) fn is_done(&mut self) -> Result<bool> {
        if self.handle.is_done() {
            return Ok(true);
        }
        let now = Instant::now();
        // SAFETY: `ring` has the caller's promise for the batch.
        let launch = || unsafe { self.graph.launch() };
        let launched = self.handle.launch_if_parked(host_ns(now), launch);
        launched.within(|| "launch the loop")?;
        if now.saturating_duration_since(self.checked_at) < HEALTH_INTERVAL {
            return Ok(false);
        }
        self.checked_at = now;
        // A fault ends the loop. Without one it ends only after it has parked.
        // If that cannot be known the loop may still run, so the device is given up.
        let context = self.graph.stream.context();
        let has_ended = self.graph.ended.is_done().within(|| "a loop on the device");
        let has_ended = has_ended.map_err(|error| context.lose(&error))?;
        let is_lost = has_ended && self.handle.runs() && !self.handle.is_done();
        match is_lost {
            true => Err(context.lose(&Error::new(
                ErrorKind::Device,
                "a loop on the device ended without its batch",
            ))),
            false => Ok(false),
        }
    }
}

impl Drop for ResidentLoop {
    fn drop(&mut self) {
        self.handle.stop();
        if let Err(error) = self.graph.stream.synchronize() {
            // The loop may never end, and writes its words.
            std::mem::forget(Arc::clone(self.handle.doorbell()));
            std::mem::forget(self.batch.take());
            tracing::debug!(%error, "the words of a loop are leaked");
        }
    }
}

/// A condition that is true at each launch of `graph`.
///
/// # Safety
/// `graph` must be alive.
unsafe fn new_condition(context: &Context, graph: sys::CUgraph) -> Result<u64> {
    let driver = context.bind_for(Call::GraphEdit)?;
    let mut condition = 0;
    let flags = sys::CU_GRAPH_COND_ASSIGN_DEFAULT;
    // SAFETY: `condition` outlives the call, and the caller guarantees that the graph is alive.
    context.check("cuGraphConditionalHandleCreate", unsafe {
        (driver.cuGraphConditionalHandleCreate)(&mut condition, graph, context.raw(), 1, flags)
    })?;
    Ok(condition)
}

/// Adds a launch of one thread, behind `after` unless that is null.
///
/// # Safety
/// `graph` must be alive, and `after` one of its nodes.
unsafe fn add_kernel(
    context: &Context,
    graph: sys::CUgraph,
    after: sys::CUgraphNode,
    function: &Function,
    args: &mut LoopArgs,
) -> Result<sys::CUgraphNode> {
    let driver = context.bind_for(Call::GraphEdit)?;
    let mut node = null_mut();
    let mut pointers = [(&raw mut *args).cast()];
    let params = sys::CUDA_KERNEL_NODE_PARAMS {
        func: function.raw(),
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: pointers.as_mut_ptr(),
        extra: null_mut(),
        kern: null_mut(),
        ctx: null_mut(),
    };
    let count = usize::from(!after.is_null());
    // SAFETY: everything outlives the call, in which the driver copies the argument; the caller
    // guarantees that the handles are valid.
    context.check("cuGraphAddKernelNode", unsafe {
        (driver.cuGraphAddKernelNode_v2)(&mut node, graph, &after, count, &params)
    })?;
    Ok(node)
}

/// Adds a WHILE node behind `after`. Returns its body, which lives as long as `graph`.
///
/// # Safety
/// `graph` must be alive, `after` one of its nodes, and `condition` one of its conditions.
unsafe fn add_while(
    context: &Context,
    graph: sys::CUgraph,
    after: sys::CUgraphNode,
    condition: u64,
) -> Result<sys::CUgraph> {
    let driver = context.bind_for(Call::GraphEdit)?;
    // SAFETY: zero is a value of every field of this struct of integers and pointers.
    let mut params: sys::CUgraphNodeParams = unsafe { std::mem::zeroed() };
    params.type_ = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.__bindgen_anon_1.conditional = sys::CUDA_CONDITIONAL_NODE_PARAMS {
        handle: condition,
        type_: sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
        size: 1,
        phGraph_out: null_mut(),
        ctx: context.raw(),
    };
    let mut node = null_mut();
    // SAFETY: everything outlives the call, and the caller guarantees that the handles are valid.
    context.check("cuGraphAddNode", unsafe {
        (driver.cuGraphAddNode_v2)(&mut node, graph, &after, null(), 1, &mut params)
    })?;
    // SAFETY: the driver has set the pointer to an array of `size` graphs.
    Ok(unsafe { *params.__bindgen_anon_1.conditional.phGraph_out })
}

/// Adds a copy of a whole graph as the first node.
///
/// # Safety
/// Both graphs must be alive.
unsafe fn add_child(
    context: &Context,
    graph: sys::CUgraph,
    child: sys::CUgraph,
) -> Result<sys::CUgraphNode> {
    let driver = context.bind_for(Call::GraphEdit)?;
    let mut node = null_mut();
    // SAFETY: `node` outlives the call, and the caller guarantees that the handles are valid.
    context.check("cuGraphAddChildGraphNode", unsafe {
        (driver.cuGraphAddChildGraphNode)(&mut node, graph, null(), 0, child)
    })?;
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::super::device_slot::CudaSlot;
    use super::super::device_slot::tests::{allocation, slot};
    use super::super::fake_driver::{self, Session};
    use crate::backend::{
        Allocation, DeviceSlot, GraphId, GraphSource, Node, Op, Queue, Residency, TIMESTAMPS,
        host_ns,
    };
    use crate::error::{Error, ErrorKind, ErrorScope};
    use crate::record::Access;
    use std::time::{Duration, Instant};

    /// A slot with a resident graph that sets an allocation of 64 bytes to seven.
    fn resident(session: &Session, residency: Residency) -> (CudaSlot, Allocation, GraphId) {
        fake_driver::state(|state| state.loops.loads_modules = true);
        let context = session.context();
        let allocation = allocation(&context);
        let mut slot = slot(&context).unwrap();
        slot.adopt(&allocation).unwrap();
        let op = sevens(&allocation);
        let nodes = [Node {
            op: &op,
            after: &[],
        }];
        // SAFETY: the memset is of an allocation that the slot adopted.
        let (graph, _) = unsafe { slot.make_graph(GraphSource::Explicit(&nodes), None) }.unwrap();
        assert!(slot.make_resident(graph, residency).unwrap());
        (slot, allocation, graph)
    }

    fn sevens(allocation: &Allocation) -> Op {
        Op::Memset {
            device: allocation.address(),
            byte: 7,
            bytes: 64,
        }
    }

    /// Sets the allocation's bytes, which are the host's here, and returns what they were. No work
    /// may be in flight.
    fn replace(allocation: &Allocation, byte: u8) -> [u8; 64] {
        // SAFETY: the caller's promise; the memory is as large and lives as long.
        unsafe { std::ptr::replace(allocation.address() as *mut [u8; 64], [byte; 64]) }
    }

    fn counts() -> (usize, usize) {
        fake_driver::state(|state| (state.loops.batches, state.loops.launches))
    }

    #[test]
    fn a_loop_runs_each_batch_once_and_is_launched_again_after_a_pause() {
        let session = Session::new();
        let residency = Residency {
            idle: Duration::from_millis(20),
            ..Residency::default()
        };
        let (mut slot, allocation, graph) = resident(&session, residency);
        for batch in 1..=50 {
            replace(&allocation, 0);
            if batch % 10 == 0 {
                std::thread::sleep(Duration::from_millis(40));
            }
            slot.launch_graph(graph).unwrap();
            slot.fence().unwrap();
            assert!(!slot.is_quiet() && allocation.lease(Access::Read).is_err());
            match batch % 2 {
                0 => slot.wait().unwrap(),
                _ => while !slot.is_done().unwrap() {},
            }
            assert!(slot.is_quiet() && slot.is_done().unwrap());
            assert!(allocation.lease(Access::Read).is_ok());
            assert_eq!(replace(&allocation, 0), [7; 64]);
            assert_eq!(counts().0, batch);
        }
        assert!((6..50).contains(&counts().1), "{} launches", counts().1);
    }

    #[test]
    fn the_times_of_a_batch_lie_between_the_host_s_moments_and_cost_no_call() {
        let session = Session::new();
        let (mut slot, _, graph) = resident(&session, Residency::default());
        let timings = || session.context().calls.snapshot().timings;
        let before = timings();
        let mut last = 0;
        for _ in 0..20 {
            let start = host_ns(Instant::now());
            slot.launch_graph(graph).unwrap();
            slot.wait().unwrap();
            let times = slot.timestamps().unwrap().map(|time| time.unwrap());
            let end = host_ns(Instant::now());
            assert!(times.is_sorted() && start <= times[0] && times[3] <= end);
            assert!(last <= times[0], "batches follow each other");
            last = times[3];
        }
        assert_eq!(timings(), before);
        slot.drop_graph(graph);
        assert_eq!(slot.timestamps().unwrap(), [None; TIMESTAMPS]);
    }

    #[test]
    fn loops_that_are_busy_for_too_long_are_launched_again() {
        let session = Session::new();
        let residency = Residency {
            idle: Duration::from_secs(10),
            busy: Duration::from_millis(2),
        };
        let (mut slot, _, graph) = resident(&session, residency);
        let mut batches = 0;
        while counts().1 < 5 {
            slot.launch_graph(graph).unwrap();
            slot.wait().unwrap();
            batches += 1;
        }
        assert_eq!(counts().0, batches);
    }

    #[test]
    fn other_work_of_the_slot_and_a_loop_s_batch_wait_for_each_other() {
        let session = Session::new();
        let (mut slot, allocation, graph) = resident(&session, Residency::default());
        slot.launch_graph(graph).unwrap();
        let zero = Op::Memset {
            device: allocation.address(),
            byte: 0,
            bytes: 64,
        };
        // SAFETY: the memset is of an allocation that the slot adopted.
        unsafe { slot.enqueue(Queue::Compute, &zero) }.unwrap();
        assert_eq!(counts().0, 1, "the batch is done");
        assert!(!slot.is_quiet());
        slot.launch_graph(graph).unwrap();
        slot.launch_graph(graph).unwrap();
        slot.fence().unwrap();
        slot.wait().unwrap();
        assert!(slot.is_quiet());
        assert_eq!(counts().0, 3);
        // The graph is fixed, and dropped with a batch in flight.
        let op = sevens(&allocation);
        // SAFETY: as above.
        assert!(unsafe { slot.set_params(graph, 0, &op) }.is_err());
        let nodes = [Node {
            op: &op,
            after: &[],
        }];
        // SAFETY: as above.
        let changed = unsafe { slot.make_graph(GraphSource::Explicit(&nodes), Some(graph)) };
        assert!(changed.is_err());
        slot.launch_graph(graph).unwrap();
        slot.drop_graph(graph);
        assert_eq!(counts().0, 4);
        assert!(slot.is_quiet() && slot.is_done().unwrap());
    }

    #[test]
    fn nothing_is_left_of_a_slot_that_is_dropped_with_a_batch_in_flight() {
        let session = Session::new();
        for _ in 0..20 {
            let (mut slot, allocation, graph) = resident(&session, Residency::default());
            slot.launch_graph(graph).unwrap();
            drop(slot);
            assert_eq!(replace(&allocation, 0), [7; 64]);
        }
        assert_eq!(fake_driver::state(|state| state.memory.len()), 0);
    }

    #[test]
    fn a_slot_that_was_given_up_never_counts_as_quiet() {
        let session = Session::new();
        let (mut slot, _, graph) = resident(&session, Residency::default());
        slot.launch_graph(graph).unwrap();
        let error = Error::new(ErrorKind::Deadline, "planted");
        slot.abandon(&error);
        slot.drop_graph(graph);
        assert!(!slot.is_quiet());
        assert_eq!(slot.is_done().unwrap_err().kind(), ErrorKind::Deadline);
        assert!(slot.launch_graph(graph).is_err());
    }

    #[test]
    fn a_graph_that_is_resident_or_was_changed_is_not_made_resident() {
        let session = Session::new();
        let (mut slot, allocation, graph) = resident(&session, Residency::default());
        let again = slot.make_resident(graph, Residency::default());
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Usage);
        let op = sevens(&allocation);
        let nodes = [Node {
            op: &op,
            after: &[],
        }];
        // SAFETY: the memset is of an allocation that the slot adopted.
        let (other, _) = unsafe { slot.make_graph(GraphSource::Explicit(&nodes), None) }.unwrap();
        // SAFETY: as above. The driver refuses the call, and may hold a part of the change.
        let _ = unsafe { slot.set_params(other, 0, &op) };
        assert!(slot.make_resident(other, Residency::default()).is_err());
    }

    #[test]
    fn a_fault_in_a_loop_is_seen_and_loses_the_device() {
        let session = Session::new();
        let (mut slot, _, graph) = resident(&session, Residency::default());
        fake_driver::state(|state| state.loops.faults = true);
        slot.launch_graph(graph).unwrap();
        slot.fence().unwrap();
        let error = slot.wait().unwrap_err();
        assert_eq!(error.code(), Some(719));
        assert_eq!(error.scope(), ErrorScope::Device);
        assert!(slot.launch_graph(graph).is_err());
        drop(slot);
        fake_driver::state(|state| state.waits_return = 0);
    }
}
