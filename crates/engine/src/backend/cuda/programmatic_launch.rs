//! Programmatic dependent launch: a kernel starts before the one that it runs after has ended, and
//! waits for that end in its code.

use super::context::Context;
use crate::backend::Call;
use crate::error::{ErrorKind, Result};
use cudarc::driver::sys;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The compute capability from which devices have it.
pub(super) const SINCE: (u32, u32) = (9, 0);

const EDGE: sys::CUgraphEdgeData = sys::CUgraphEdgeData {
    from_port: sys::CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC as u8,
    to_port: 0,
    type_: sys::CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC as u8,
    reserved: [0; 5],
};

/// Whether a context's driver takes it.
#[derive(Default)]
pub(super) struct ProgrammaticLaunch {
    is_refused: AtomicBool,
}

impl ProgrammaticLaunch {
    pub(super) fn is_allowed(&self) -> bool {
        !self.is_refused.load(Relaxed)
    }
}

/// Does without programmatic dependent launch what the driver refused with it, and never uses it again
/// in the context if that helps. The error is that of the first try.
pub(super) fn or_without<T>(
    context: &Context,
    made: Result<T>,
    without: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let Err(error) = made else {
        return made;
    };
    let has_other_cause = error.code().is_none() || error.kind() == ErrorKind::OutOfMemory;
    if has_other_cause || !context.programmatic.is_allowed() || context.is_lost() {
        return Err(error);
    }
    let Ok(made) = without() else {
        return Err(error);
    };
    context.programmatic.is_refused.store(true, Relaxed);
    tracing::debug!(
        %error,
        "the driver refuses programmatic dependent launch: kernels start when the work before them \
         has ended"
    );
    Ok(made)
}

/// Adds a programmatic edge between two kernels.
///
/// # Safety
/// `graph` must be alive, and both nodes of it.
pub(super) unsafe fn add_edge(
    context: &Context,
    graph: sys::CUgraph,
    from: sys::CUgraphNode,
    to: sys::CUgraphNode,
) -> Result<()> {
    let driver = context.bind_for(Call::GraphEdit)?;
    // SAFETY: the nodes and the edge's data outlive the call; the caller answers for the handles.
    context.check("cuGraphAddDependencies", unsafe {
        (driver.cuGraphAddDependencies_v2)(graph, &from, &to, &EDGE, 1)
    })
}

/// Puts a full edge in the place of a programmatic edge.
///
/// # Safety
/// `graph` must be alive, and both nodes of it.
pub(super) unsafe fn make_full(
    context: &Context,
    graph: sys::CUgraph,
    from: sys::CUgraphNode,
    to: sys::CUgraphNode,
) -> Result<()> {
    let driver = context.bind_for(Call::GraphEdit)?;
    // SAFETY: as in `add_edge`.
    context.check("cuGraphRemoveDependencies", unsafe {
        (driver.cuGraphRemoveDependencies_v2)(graph, &from, &to, &EDGE, 1)
    })?;
    // SAFETY: as in `add_edge`; without data an edge is full.
    context.check("cuGraphAddDependencies", unsafe {
        (driver.cuGraphAddDependencies_v2)(graph, &from, &to, null(), 1)
    })
}
