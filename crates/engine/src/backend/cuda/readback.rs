//! Reads the nodes of a graph back as operations.

use super::context::PrimaryContext;
use super::graph_node::NodeKind;
use super::module::LoadedFunctions;
use super::timestamps::Timestamps;
use crate::backend::Op;
use crate::error::{Error, ErrorKind, Result};
use crate::record::StructArg;
use crate::record::struct_arg::words_of;
use cudarc::driver::sys::{self, CUgraphNodeType, CUmemorytype};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// An enum that the driver writes, kept as a number: a newer driver has values that the bindings'
/// enum lacks.
pub(super) struct DriverNumber<E> {
    value: u32,
    marker: PhantomData<E>,
}

impl<E> DriverNumber<E> {
    pub(super) fn new() -> Self {
        const { assert!(size_of::<E>() == size_of::<u32>()) };
        DriverNumber {
            value: u32::MAX,
            marker: PhantomData,
        }
    }

    /// Where the driver writes it.
    pub(super) fn place(&mut self) -> *mut E {
        (&raw mut self.value).cast()
    }

    pub(super) fn get(&self) -> u32 {
        self.value
    }
}

/// The operation of a node.
///
/// # Errors
/// [`ErrorKind::Mismatch`] for a node that no operation of a slot makes, here and in the functions
/// below.
///
/// # Safety
/// `node` must be alive.
pub(super) unsafe fn read(
    context: &PrimaryContext,
    node: sys::CUgraphNode,
    step: NodeKind,
    functions: &LoadedFunctions,
    timestamps: &Timestamps,
) -> Result<Op> {
    let driver = context.bind()?;
    let mut kind = DriverNumber::<CUgraphNodeType>::new();
    // SAFETY: `kind` outlives the call, and the caller answers for the node.
    context.check("cuGraphNodeGetType", unsafe {
        (driver.cuGraphNodeGetType)(node, kind.place())
    })?;
    // SAFETY: the caller's promise; each reads a node of the kind found.
    unsafe {
        // The numbers of `CUgraphNodeType`, asserted below.
        match kind.get() {
            0 => read_launch(context, node, step, functions),
            1 => read_copy(context, node, step),
            2 => read_memset(context, node),
            10 | 11 => Err(foreign_node_error(
                "it allocates or frees memory".to_owned(),
            )),
            7 => read_timestamp(context, node, timestamps),
            other => Err(foreign_node_error(format!("it is of type {other}"))),
        }
    }
}

const _: () = {
    assert!(CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL as u32 == 0);
    assert!(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY as u32 == 1);
    assert!(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET as u32 == 2);
    assert!(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC as u32 == 10);
    assert!(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE as u32 == 11);
    assert!(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD as u32 == 7);
    assert!(CUmemorytype::CU_MEMORYTYPE_HOST as u32 == 1);
    assert!(CUmemorytype::CU_MEMORYTYPE_DEVICE as u32 == 2);
    assert!(CUmemorytype::CU_MEMORYTYPE_UNIFIED as u32 == 4);
};

/// The error of a node that is not an operation of a slot. All functions here return it for what they
/// cannot read, and otherwise errors of the driver.
fn foreign_node_error(reason: String) -> Error {
    Error::new(
        ErrorKind::Mismatch,
        format!("a node of the graph is none of the operations that tapeloop makes: {reason}"),
    )
}

/// The launch of a kernel's node. `step.function` is the declaration that the node was made with.
///
/// # Safety
/// `node` must be alive, and a kernel's.
unsafe fn read_launch(
    context: &PrimaryContext,
    node: sys::CUgraphNode,
    step: NodeKind,
    functions: &LoadedFunctions,
) -> Result<Op> {
    let driver = context.bind()?;
    let mut params = MaybeUninit::<sys::CUDA_KERNEL_NODE_PARAMS>::zeroed();
    // SAFETY: `params` outlives the call; the node is the caller's promise.
    context.check("cuGraphKernelNodeGetParams", unsafe {
        (driver.cuGraphKernelNodeGetParams_v2)(node, params.as_mut_ptr())
    })?;
    // SAFETY: integers and pointers alone, for which zeros are values.
    let params = unsafe { params.assume_init() };
    let known = functions.find_raw(params.func, step.function);
    let (id, function) =
        known.ok_or_else(|| foreign_node_error("its function was not loaded here".to_owned()))?;
    // SAFETY: the caller's promise.
    if !unsafe { function.attributes.are_of(context, node) }? {
        return Err(foreign_node_error(
            "its launch attributes are others".to_owned(),
        ));
    }
    if params.kernelParams.is_null() && !function.params.is_empty() {
        return Err(foreign_node_error("its arguments are packed".to_owned()));
    }
    let mut args = Vec::with_capacity(words_of(&*function.params));
    for (index, kind) in function.params.iter().enumerate() {
        // SAFETY: the node keeps a pointer for each parameter of its code, to as
        // many bytes as that takes: `load` compared both with `params`.
        let passed = unsafe {
            let from = (*params.kernelParams.add(index)).cast::<u8>();
            std::slice::from_raw_parts(from, kind.size_bytes())
        };
        args.extend(StructArg::new(passed).words());
    }
    Ok(Op::Launch {
        function: id,
        grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
        block: [params.blockDimX, params.blockDimY, params.blockDimZ],
        shared_bytes: params.sharedMemBytes,
        args: args.into_boxed_slice(),
    })
}

/// One end of a copy: the number of its type of memory, and its address.
type End = (u32, u64);

/// The upload or download of a node that copies one row of bytes.
///
/// # Safety
/// `node` must be alive, and a copy.
unsafe fn read_copy(
    context: &PrimaryContext,
    node: sys::CUgraphNode,
    step: NodeKind,
) -> Result<Op> {
    let driver = context.bind()?;
    let mut params = MaybeUninit::<sys::CUDA_MEMCPY3D>::zeroed();
    let params_pointer = params.as_mut_ptr();
    // SAFETY: `params` outlives the call; the node is the caller's promise.
    context.check("cuGraphMemcpyNodeGetParams", unsafe {
        (driver.cuGraphMemcpyNodeGetParams)(node, params_pointer)
    })?;
    let host = CUmemorytype::CU_MEMORYTYPE_HOST as u32;
    // SAFETY: zeroed, then written by the driver, each field is some value of its
    // size; those of the enum's type are read as numbers.
    let (from, to, rows, bytes): (End, End, usize, usize) = unsafe {
        let from = (&raw const (*params_pointer).srcMemoryType)
            .cast::<u32>()
            .read();
        let to = (&raw const (*params_pointer).dstMemoryType)
            .cast::<u32>()
            .read();
        let from_start = if from == host {
            (*params_pointer).srcHost as u64
        } else {
            (*params_pointer).srcDevice
        };
        let to_start = if to == host {
            (*params_pointer).dstHost as u64
        } else {
            (*params_pointer).dstDevice
        };
        (
            (from, from_start + (*params_pointer).srcXInBytes as u64),
            (to, to_start + (*params_pointer).dstXInBytes as u64),
            (*params_pointer).Height.max(1) * (*params_pointer).Depth.max(1),
            (*params_pointer).WidthInBytes,
        )
    };
    if rows != 1 {
        return Err(foreign_node_error(format!("it copies {rows} rows")));
    }
    copy_of(from, to, bytes, step)
}

/// The copy between two ends. Unified memory does not tell on which side it is; then the kind that
/// the node was made with decides.
fn copy_of(from: End, to: End, bytes: usize, step: NodeKind) -> Result<Op> {
    let (host, device) = (
        CUmemorytype::CU_MEMORYTYPE_HOST as u32,
        CUmemorytype::CU_MEMORYTYPE_DEVICE as u32,
    );
    let unified = CUmemorytype::CU_MEMORYTYPE_UNIFIED as u32;
    let is = |end: End, wanted: u32| end.0 == wanted || end.0 == unified;
    let up = is(from, host) && is(to, device);
    let down = is(from, device) && is(to, host);
    match (up, down) {
        (true, true) if step.kind == "a download" => Ok(download(from, to, bytes)),
        (true, _) => Ok(Op::Upload {
            host: from.1,
            device: to.1,
            bytes,
        }),
        (false, true) => Ok(download(from, to, bytes)),
        (false, false) => Err(foreign_node_error(format!(
            "it copies from memory of type {} to type {}",
            from.0, to.0
        ))),
    }
}

fn download(from: End, to: End, bytes: usize) -> Op {
    Op::Download {
        device: from.1,
        host: to.1,
        bytes,
    }
}

/// # Safety
/// `node` must be alive, and a memset.
unsafe fn read_memset(context: &PrimaryContext, node: sys::CUgraphNode) -> Result<Op> {
    let driver = context.bind()?;
    let mut params = MaybeUninit::<sys::CUDA_MEMSET_NODE_PARAMS>::zeroed();
    // SAFETY: `params` outlives the call; the node is the caller's promise.
    context.check("cuGraphMemsetNodeGetParams", unsafe {
        (driver.cuGraphMemsetNodeGetParams)(node, params.as_mut_ptr())
    })?;
    // SAFETY: integers alone, for which zeros are values.
    let params = unsafe { params.assume_init() };
    memset_of(&params)
}

/// The timestamp whose event a node records.
///
/// # Safety
/// `node` must be alive, and record an event.
unsafe fn read_timestamp(
    context: &PrimaryContext,
    node: sys::CUgraphNode,
    timestamps: &Timestamps,
) -> Result<Op> {
    let driver = context.bind()?;
    let mut event = null_mut();
    // SAFETY: `event` outlives the call; the node is the caller's promise.
    context.check("cuGraphEventRecordNodeGetEvent", unsafe {
        (driver.cuGraphEventRecordNodeGetEvent)(node, &mut event)
    })?;
    let timestamp = timestamps.find(event);
    let timestamp = timestamp.ok_or_else(|| {
        foreign_node_error("it records an event that is not one of the slot".to_owned())
    })?;
    Ok(Op::Timestamp { timestamp })
}

/// Converts a memset of wider elements to one of bytes, if all bytes are equal.
fn memset_of(params: &sys::CUDA_MEMSET_NODE_PARAMS) -> Result<Op> {
    let (size, value) = (params.elementSize as usize, params.value.to_le_bytes());
    let element = value.get(..size).filter(|element| !element.is_empty());
    let element =
        element.ok_or_else(|| foreign_node_error(format!("it sets elements of {size} bytes")))?;
    if params.height > 1 || element.iter().any(|byte| *byte != element[0]) {
        return Err(foreign_node_error(
            "it sets rows, or bytes that differ".to_owned(),
        ));
    }
    Ok(Op::Memset {
        device: params.dst,
        byte: element[0],
        bytes: params.width * size,
    })
}

#[cfg(test)]
mod tests {
    use super::super::graph_node::memset_params;
    use super::*;

    const KIND: NodeKind = NodeKind {
        kind: "a download",
        function: None,
    };

    #[test]
    fn a_copy_is_up_or_down_by_its_types_of_memory() {
        let upload = Op::Upload {
            host: 16,
            device: 32,
            bytes: 8,
        };
        let download = Op::Download {
            device: 16,
            host: 32,
            bytes: 8,
        };
        for (from, to, expected) in [
            (1, 2, Some(&upload)),
            (2, 1, Some(&download)),
            (4, 2, Some(&upload)),
            (4, 1, Some(&download)),
            (4, 4, Some(&download)),
            (2, 2, None),
            (3, 2, None),
        ] {
            let copy = copy_of((from, 16), (to, 32), 8, KIND);
            assert_eq!(copy.ok().as_ref(), expected, "{from} to {to}");
        }
    }

    #[test]
    fn a_memset_of_wider_elements_is_one_of_bytes_where_they_are_equal() {
        let mut params = memset_params(&Op::Memset {
            device: 64,
            byte: 7,
            bytes: 12,
        });
        let bytes_of = |params: &_| match memset_of(params) {
            Ok(Op::Memset { byte, bytes, .. }) => Some((byte, bytes)),
            _ => None,
        };
        assert_eq!(bytes_of(&params), Some((7, 12)));
        (params.elementSize, params.width, params.value) = (4, 3, 0x0707_0707);
        assert_eq!(bytes_of(&params), Some((7, 12)));
        params.value = 7;
        assert_eq!(bytes_of(&params), None);
        (params.elementSize, params.height) = (1, 2);
        assert_eq!(bytes_of(&params), None);
    }
}
