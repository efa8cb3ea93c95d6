//! A loop on the device that replays a graph, without its host.
//!
//! The loop is a graph: a kernel that takes the first batch, and a WHILE node whose body is the
//! replayed graph followed by a kernel that announces the end of the batch and waits for the next
//! one. That kernel ends the loop if none comes. Conditional bodies take kernels, copies and
//! memsets, which is what graphs without timestamps consist of.

use super::context::PrimaryContext;
use super::graph::{Exec, Template};
use super::memory::DeviceMemory;
use super::module::{Function, LoadedFunctions};
use super::pinned_words::{LoopWords, PinnedWords};
use super::stream::{Event, Stream};
use crate::backend::doorbell::{Word, Words};
use crate::backend::{Call, Residency};
use crate::error::{Context as _, Error, ErrorKind, Result};
use crate::record::{Image, Kernel};
use cudarc::driver::sys::{self, CUdevice_attribute};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often the driver is asked whether a loop has failed: rarely, as such calls are what loops save,
/// but soon enough for an error.
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
        let image = Image::compiled("resident", *include_bytes!("resident.ptx"));
        ["tapeloop_loop_begin", "tapeloop_loop_turn"].map(|name| {
            let kernel = Kernel::new(name).structure("loop", size_of::<LoopArgs>(), &[]);
            // SAFETY: both kernels of resident.ptx take one struct of this size, and access only the
            // memory at its addresses. Those are not declared as pointers: `DeviceLoop::new` alone
            // launches the kernels, over memory of the loop, and no caller gets their `FunctionId`s.
            unsafe { kernel.code(&image) }
        })
    })
}

/// A loop on the device. Its host gives it batches, and launches it when it has parked.
pub(super) struct DeviceLoop {
    exec: Exec,
    /// A stream that only this loop uses.
    stream: Stream,
    /// Recorded after each launch; reached when the loop has ended.
    ended: Event,
    /// The batch that runs.
    batch: Option<DeviceMemory>,
    words: Arc<PinnedWords>,
    /// The batch of the last launch, until it is known that the loop has ended.
    launched: Option<u64>,
    /// When the driver was last asked about the loop.
    checked_at: Instant,
}

impl DeviceLoop {
    /// A loop that replays `template`, and was not launched yet.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] for a device that has a time limit for kernels; errors of the
    /// driver.
    pub(super) fn new(
        template: &Template,
        functions: &LoadedFunctions,
        residency: Residency,
        words: Arc<PinnedWords>,
    ) -> Result<DeviceLoop> {
        let context = template.context();
        let limit = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT;
        if context.device.attribute(limit) != 0 {
            let message =
                "the device drives a display, so the driver ends kernels after some seconds";
            return Err(Error::new(ErrorKind::Unavailable, message)
                .fix("set mode = \"graph\", or use a GPU without a display"));
        }
        let [begin, turn] = kernels();
        let function = |kernel| functions.get(functions.load(kernel)?);
        let (begin, turn) = (function(begin)?, function(turn)?);
        let batch = DeviceMemory::new(context, 2 * size_of::<u64>())?;
        let mut args = LoopArgs {
            host: words.address(),
            device: words.address() + LoopWords::DEVICE_OFFSET,
            batch: batch.start(),
            idle_ns: residency.idle.min(Residency::MAX).as_nanos() as u64,
            condition: 0,
        };
        let outer = Template::empty(context)?;
        // SAFETY: `outer` is alive, and gets the nodes that its condition and the kernels ask for.
        let exec = unsafe {
            args.condition = new_condition(context, outer.raw())?;
            let begun = add_kernel(context, outer.raw(), null_mut(), &begin, &mut args)?;
            let body = add_while(context, outer.raw(), begun, args.condition)?;
            let replayed = add_child(context, body, template.raw())?;
            add_kernel(context, body, replayed, &turn, &mut args)?;
            outer.instantiate(false)?
        };
        Ok(DeviceLoop {
            exec,
            stream: Stream::new(context)?,
            ended: Event::new(context, false)?,
            batch: Some(batch),
            words,
            launched: None,
            checked_at: Instant::now(),
        })
    }

    /// Launches the loop, which has parked, for the batch that was rung last. An event that cannot
    /// be recorded counts as the loss of the context.
    ///
    /// # Safety
    /// Until the loop has ended, the memory that its graph accesses must live. Until each batch
    /// that it is given is done, the host must not access what the graph writes.
    pub(super) unsafe fn launch(&mut self) -> Result<()> {
        let batch = self.words.load(Word::Ring, Acquire);
        // SAFETY: the caller's promise; the loop's own words live as long as the loop, whose `drop`
        // waits for the launch.
        unsafe { self.exec.launch(&self.stream)? };
        self.launched = Some(batch);
        self.put_off_check(Instant::now());
        // The loop runs: without the event nothing would show that it failed.
        let recorded = self.ended.record(&self.stream);
        recorded.map_err(|error| self.stream.context().lose(&error))
    }

    /// Puts off the next question to the driver, as the loop was seen alive at `now`.
    pub(super) fn put_off_check(&mut self, now: Instant) {
        self.checked_at = now;
    }

    /// When the batch that was last seen done began and ended, in nanoseconds of the device's clock.
    pub(super) fn batch_ns(&self) -> (u64, u64) {
        self.words.batch_ns()
    }

    /// Asks the driver, every [`HEALTH_INTERVAL`], whether the loop has failed.
    ///
    /// # Errors
    /// The error that ended the loop.
    pub(super) fn check(&mut self, now: Instant) -> Result<()> {
        let Some(launched) = self.launched else {
            return Ok(());
        };
        if now.saturating_duration_since(self.checked_at) < HEALTH_INTERVAL {
            return Ok(());
        }
        self.checked_at = now;
        // A fault ends the loop. Without one it ends only after it has parked.
        // If that cannot be known the loop may still run, so the device is given up.
        let context = self.stream.context();
        let has_ended = self.ended.is_done().within(|| "a loop on the device");
        if !has_ended.map_err(|error| context.lose(&error))? {
            return Ok(());
        }
        if self.words.load(Word::Parked, Acquire) < launched {
            let message = "a loop on the device ended without its batch";
            return Err(context.lose(&Error::new(ErrorKind::Device, message)));
        }
        self.launched = None;
        Ok(())
    }
}

impl Drop for DeviceLoop {
    fn drop(&mut self) {
        // The host gives it no batch any more.
        self.words.store(Word::Stop, 1, Relaxed);
        if let Err(error) = self.stream.synchronize() {
            // The loop may never end, and writes its words and what its graph writes.
            self.stream.context().lose(&error);
            std::mem::forget(Arc::clone(&self.words));
            std::mem::forget(self.batch.take());
            tracing::debug!(%error, "the memory of a loop on the device is leaked: the loop may still run");
        }
    }
}

/// A condition that is true at each launch of `graph`.
///
/// # Safety
/// `graph` must be alive.
unsafe fn new_condition(context: &PrimaryContext, graph: sys::CUgraph) -> Result<u64> {
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
    context: &PrimaryContext,
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
    context: &PrimaryContext,
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
    context: &PrimaryContext,
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
