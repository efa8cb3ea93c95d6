//! Adds operations to graphs as nodes, and changes their parameters.

use super::address_checks::{Checked, pointers};
use super::context::PrimaryContext;
use super::programmatic_launch;
use crate::backend::op::no_copy_in_graph;
use crate::backend::{Call, FunctionId, Op};
use crate::error::Result;
use cudarc::driver::sys::{self, CUmemorytype};
use std::ffi::c_void;
use std::ptr::null_mut;

/// The kind of a node's operation; of the launch where one does several copies.
#[derive(Clone, Copy)]
pub(super) struct NodeKind {
    /// The kind for messages.
    pub(super) kind: &'static str,
    /// The function of a launch.
    pub(super) function: Option<FunctionId>,
}

impl NodeKind {
    pub(super) fn new(checked: &Checked<'_>) -> NodeKind {
        NodeKind {
            kind: checked.op().kind_name(),
            function: checked.function_id(),
        }
    }
}

/// Adds an operation to a graph, after the nodes `after`. The captured graph `child` of a library
/// call is one node. A `programmatic` edge is that from the one node of `after`, between two
/// kernels. [`Op::Copy`] is refused.
///
/// # Safety
/// `graph`, `after` and `child` must be alive, and `after` nodes of `graph`.
pub(super) unsafe fn add(
    context: &PrimaryContext,
    graph: sys::CUgraph,
    after: &[sys::CUgraphNode],
    checked: &Checked<'_>,
    child: Option<sys::CUgraph>,
    programmatic: bool,
) -> Result<sys::CUgraphNode> {
    let driver = context.bind_for(Call::GraphEdit)?;
    let (early, after) = after.split_at(usize::from(programmatic));
    let (mut node, count) = (null_mut(), after.len());
    let after = after.as_ptr();
    match (checked.op(), child) {
        (Op::Upload { .. } | Op::Download { .. }, _) => {
            let params = copy_params(checked.op());
            // SAFETY: `after` and `params` outlive the call, the caller answers
            // for the handles, and nothing runs yet.
            context.check("cuGraphAddMemcpyNode", unsafe {
                (driver.cuGraphAddMemcpyNode)(
                    &mut node,
                    graph,
                    after,
                    count,
                    &params,
                    context.raw(),
                )
            })?;
        }
        (Op::Memset { .. }, _) => {
            let params = memset_params(checked.op());
            // SAFETY: as above.
            context.check("cuGraphAddMemsetNode", unsafe {
                (driver.cuGraphAddMemsetNode)(
                    &mut node,
                    graph,
                    after,
                    count,
                    &params,
                    context.raw(),
                )
            })?;
        }
        (Op::Launch { .. }, Some(child)) => {
            // SAFETY: as above; the node gets a copy of `child`.
            context.check("cuGraphAddChildGraphNode", unsafe {
                (driver.cuGraphAddChildGraphNode)(&mut node, graph, after, count, child)
            })?;
        }
        (Op::Launch { args, .. }, None) => {
            let mut pointers = pointers(&checked.function().params, args);
            let params = kernel_params(checked, pointers.as_mut_ptr());
            // SAFETY: as above; the driver copies the arguments in the call, as
            // many and as large as `Checked` says the code takes.
            context.check("cuGraphAddKernelNode", unsafe {
                (driver.cuGraphAddKernelNode_v2)(&mut node, graph, after, count, &params)
            })?;
            let attributes = &checked.function().attributes;
            // SAFETY: the node of a kernel, which was just added.
            unsafe { attributes.give_to(context, node) }?;
            for from in early {
                // SAFETY: the caller answers for the handles, and the node was just added.
                unsafe { programmatic_launch::add_edge(context, graph, *from, node) }?;
            }
        }
        (Op::Copy { .. }, _) => return Err(no_copy_in_graph()),
        (Op::Timestamp { .. }, _) => {
            // SAFETY: as above; the event lives as long as the slot, whose graph it
            // is.
            context.check("cuGraphAddEventRecordNode", unsafe {
                (driver.cuGraphAddEventRecordNode)(&mut node, graph, after, count, checked.event())
            })?;
        }
    }
    Ok(node)
}

/// Gives a node of an exec the parameters of an operation. The captured graph of a library call is
/// `child`. A copy on the device is refused with [`no_copy_in_graph`].
///
/// # Safety
/// All handles must be alive, and `node` of the graph that `exec` was made of.
pub(super) unsafe fn set(
    context: &PrimaryContext,
    exec: sys::CUgraphExec,
    node: sys::CUgraphNode,
    checked: &Checked<'_>,
    child: Option<sys::CUgraph>,
) -> Result<()> {
    let driver = context.bind_for(Call::GraphEdit)?;
    match (checked.op(), child) {
        (Op::Upload { .. } | Op::Download { .. }, _) => {
            let params = copy_params(checked.op());
            // SAFETY: `params` outlives the call, the caller answers for the
            // handles, and launches in flight keep their own parameters.
            context.check("cuGraphExecMemcpyNodeSetParams", unsafe {
                (driver.cuGraphExecMemcpyNodeSetParams)(exec, node, &params, context.raw())
            })
        }
        (Op::Memset { .. }, _) => {
            let params = memset_params(checked.op());
            // SAFETY: as above.
            context.check("cuGraphExecMemsetNodeSetParams", unsafe {
                (driver.cuGraphExecMemsetNodeSetParams)(exec, node, &params, context.raw())
            })
        }
        (Op::Launch { .. }, Some(child)) => {
            // SAFETY: as above; the driver copies `child`.
            context.check("cuGraphExecChildGraphNodeSetParams", unsafe {
                (driver.cuGraphExecChildGraphNodeSetParams)(exec, node, child)
            })
        }
        (Op::Launch { args, .. }, None) => {
            let mut pointers = pointers(&checked.function().params, args);
            let params = kernel_params(checked, pointers.as_mut_ptr());
            // SAFETY: as above; the driver copies the arguments in the call, as
            // many and as large as `Checked` says the code takes.
            context.check("cuGraphExecKernelNodeSetParams", unsafe {
                (driver.cuGraphExecKernelNodeSetParams_v2)(exec, node, &params)
            })
        }
        (Op::Copy { .. }, _) => Err(no_copy_in_graph()),
        (Op::Timestamp { .. }, _) => {
            // SAFETY: as above; the event lives as long as the slot, whose graph it
            // is.
            context.check("cuGraphExecEventRecordNodeSetEvent", unsafe {
                (driver.cuGraphExecEventRecordNodeSetEvent)(exec, node, checked.event())
            })
        }
    }
}

/// The parameters of a launch; `args` are pointers to its arguments.
fn kernel_params(checked: &Checked<'_>, args: *mut *mut c_void) -> sys::CUDA_KERNEL_NODE_PARAMS {
    let Op::Launch {
        grid,
        block,
        shared_bytes,
        ..
    } = checked.op()
    else {
        unreachable!("the callers match on the kind");
    };
    sys::CUDA_KERNEL_NODE_PARAMS {
        func: checked.function().raw(),
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: grid[2],
        blockDimX: block[0],
        blockDimY: block[1],
        blockDimZ: block[2],
        sharedMemBytes: *shared_bytes,
        kernelParams: args,
        extra: null_mut(),
        kern: null_mut(),
        ctx: null_mut(),
    }
}

/// The parameters of a one-dimensional copy, with the memory types that a captured copy has.
fn copy_params(op: &Op) -> sys::CUDA_MEMCPY3D {
    let mut params = sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: std::ptr::null(),
        srcDevice: 0,
        srcArray: null_mut(),
        reserved0: null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: 0,
        dstArray: null_mut(),
        reserved1: null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: 0,
        Height: 1,
        Depth: 1,
    };
    match *op {
        Op::Upload {
            host,
            device,
            bytes,
        } => {
            params.srcHost = host as *const c_void;
            params.dstDevice = device;
            params.WidthInBytes = bytes;
        }
        Op::Download {
            device,
            host,
            bytes,
        } => {
            params.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
            params.srcDevice = device;
            params.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
            params.dstHost = host as *mut c_void;
            params.WidthInBytes = bytes;
        }
        _ => unreachable!("the callers match on the kind"),
    }
    params
}

/// The driver's parameters of a memset of bytes in one row.
pub(super) fn memset_params(op: &Op) -> sys::CUDA_MEMSET_NODE_PARAMS {
    let &Op::Memset {
        device,
        byte,
        bytes,
    } = op
    else {
        unreachable!("the callers match on the kind");
    };
    sys::CUDA_MEMSET_NODE_PARAMS {
        dst: device,
        pitch: 0,
        value: byte.into(),
        elementSize: 1,
        width: bytes,
        height: 1,
    }
}
