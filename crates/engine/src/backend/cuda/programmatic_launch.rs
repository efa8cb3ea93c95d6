//! Programmatic dependent launch: a kernel starts before the one that it runs after has ended, and
//! waits for that end in its code.

use super::context::PrimaryContext;
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

/// Does without programmatic dependent launch what the driver refused with it, and never uses it
/// again in the context if that helps. The error is that of the first try. Only an error of the
/// driver can be about these launches.
pub(super) fn or_without<T>(
    context: &PrimaryContext,
    made: Result<T>,
    without: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let Err(error) = made else {
        return made;
    };
    if error.kind() != ErrorKind::Device || !context.programmatic.is_allowed() || context.is_lost()
    {
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
    context: &PrimaryContext,
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
    context: &PrimaryContext,
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

#[cfg(test)]
mod tests {
    use super::super::device_loop::LoopArgs;
    use super::super::device_slot::CudaSlot;
    use super::super::device_slot::tests::{allocation, declared, slot, zero};
    use super::super::fake_driver::{self, FakeDriverUse, PROGRAMMATIC, Refusal};
    use super::*;
    use crate::backend::{
        Built, DeviceSlot, ExternalEvent, GraphId, GraphSource, Node, Op, Residency,
    };
    use crate::record::Kernel;

    /// A slot of a device of this compute capability, and launches of a kernel and of one that is
    /// declared to wait, of code for this architecture.
    fn launches(session: &FakeDriverUse, capability: i32, ptx_version: i32) -> (CudaSlot, [Op; 2]) {
        fake_driver::state(|state| {
            state.loops.loads_modules = true;
            (state.capability, state.ptx_version) = (capability, ptx_version);
        });
        let slot = slot(&session.context()).unwrap();
        let kernels = [
            declared(|kernel| kernel),
            declared(Kernel::waits_for_dependencies),
        ];
        let launch = |kernel: &Kernel| Op::Launch {
            function: slot.load(kernel),
            grid: [1; 3],
            block: [32, 1, 1],
            shared_bytes: 0,
            args: vec![0; size_of::<LoopArgs>() / 8].into(),
        };
        let ops = kernels.each_ref().map(launch);
        (slot, ops)
    }

    /// Which launches of the stream start before the one before has ended, since the last call.
    fn early() -> Vec<bool> {
        let launches = fake_driver::state(|state| std::mem::take(&mut state.launches));
        let is_early = |(id, value): &(u32, [u32; 3])| *id == PROGRAMMATIC && value[0] == 1;
        launches
            .iter()
            .map(|launch| launch.iter().any(is_early))
            .collect()
    }

    fn enqueue(slot: &mut CudaSlot, ops: &[&Op]) -> Vec<bool> {
        for op in ops {
            // SAFETY: the launches name no memory, and nothing runs.
            unsafe { slot.enqueue(op) }.unwrap();
        }
        early()
    }

    /// Makes an explicit graph in which each operation runs after the one before. Returns the number of
    /// its programmatic edges, too.
    fn chain(slot: &mut CudaSlot, ops: &[&Op], into: Option<GraphId>) -> (GraphId, Built, usize) {
        let line: Vec<usize> = (0..ops.len()).collect();
        let nodes = ops.iter().enumerate().map(|(place, op)| Node {
            op,
            after: &line[place.saturating_sub(1)..place],
        });
        let nodes: Vec<_> = nodes.collect();
        // SAFETY: as in `enqueue`.
        let made = unsafe { slot.make_graph(GraphSource::Explicit(&nodes), into) };
        let (graph, built) = made.unwrap();
        let edges = fake_driver::state(|state| state.loops.programmatic);
        (graph, built, edges)
    }

    #[test]
    fn a_kernel_in_a_stream_starts_early_after_another_kernel_alone() {
        let session = FakeDriverUse::new();
        let (mut slot, [plain, waits]) = launches(&session, 9, 90);
        let memory = allocation(&slot.context());
        slot.adopt(&memory).unwrap();
        let zero = zero(&memory);
        let ops = [&waits, &waits, &plain, &waits, &zero, &waits];
        let expected = [false, true, false, true, false];
        assert_eq!(enqueue(&mut slot, &ops), expected);
        slot.fence().unwrap();
        assert_eq!(enqueue(&mut slot, &[&waits]), [false]);
        // SAFETY: the driver without a device does not look at events.
        let event = unsafe { ExternalEvent::from_raw(0x70) };
        slot.wait_for_event(&event).unwrap();
        assert_eq!(enqueue(&mut slot, &[&waits]), [false]);
        let (graph, ..) = chain(&mut slot, &[&plain], None);
        slot.launch_graph(graph).unwrap();
        assert_eq!(enqueue(&mut slot, &[&waits]), [false]);
    }

    #[test]
    fn edges_of_a_chain_are_programmatic_in_explicit_and_captured_graphs() {
        let session = FakeDriverUse::new();
        let (mut slot, [plain, waits]) = launches(&session, 9, 90);
        let ops = [&plain, &waits, &waits, &plain];
        assert_eq!(chain(&mut slot, &ops, None).2, 2);
        // SAFETY: as in `enqueue`.
        unsafe { slot.make_graph(GraphSource::Captured(&ops), None) }.unwrap();
        assert_eq!(early(), [false, true, true, false]);
    }

    #[test]
    fn older_devices_and_code_for_them_wait_for_the_end_of_the_kernel_before() {
        for (capability, ptx_version) in [(8, 90), (9, 80)] {
            let session = FakeDriverUse::new();
            let (mut slot, [plain, waits]) = launches(&session, capability, ptx_version);
            assert_eq!(enqueue(&mut slot, &[&plain, &waits]), [false; 2]);
            assert_eq!(chain(&mut slot, &[&plain, &waits], None).2, 0);
        }
    }

    #[test]
    fn what_the_driver_refuses_is_done_without_and_not_tried_again() {
        for refusal in [Refusal::Launch, Refusal::Edge, Refusal::Instantiation] {
            let session = FakeDriverUse::new();
            let (mut slot, [plain, waits]) = launches(&session, 9, 90);
            fake_driver::state(|state| state.programmatic_refusal = Some(refusal));
            let ops = [&plain, &waits, &waits];
            match refusal {
                Refusal::Launch => assert_eq!(enqueue(&mut slot, &ops), [false; 3]),
                _ => assert_eq!(chain(&mut slot, &ops, None).2, 0),
            }
            fake_driver::state(|state| state.programmatic_refusal = None);
            assert_eq!(chain(&mut slot, &ops, None).2, 0);
            assert_eq!(enqueue(&mut slot, &ops), [false; 3]);
        }
        // A capture that the driver refuses.
        let session = FakeDriverUse::new();
        let (mut slot, [plain, waits]) = launches(&session, 9, 90);
        fake_driver::state(|state| state.programmatic_refusal = Some(Refusal::Launch));
        // SAFETY: as in `enqueue`.
        unsafe { slot.make_graph(GraphSource::Captured(&[&plain, &waits]), None) }.unwrap();
        assert_eq!(early().last(), Some(&false));
    }

    #[test]
    fn another_error_leaves_programmatic_launches_on() {
        let session = FakeDriverUse::new();
        let (mut slot, [plain, waits]) = launches(&session, 9, 90);
        let memory = allocation(&slot.context());
        let foreign = zero(&memory);
        let source = [&plain, &waits, &foreign];
        // SAFETY: it is refused.
        unsafe { slot.make_graph(GraphSource::Captured(&source), None) }.unwrap_err();
        assert_eq!(chain(&mut slot, &[&plain, &waits], None).2, 1);
    }

    #[test]
    fn a_loop_that_the_driver_refuses_gets_full_edges() {
        for refusal in [None, Some(Refusal::Loop)] {
            let session = FakeDriverUse::new();
            let (mut slot, [plain, waits]) = launches(&session, 9, 90);
            let ops = [&plain, &waits, &waits];
            let (graph, _, edges) = chain(&mut slot, &ops, None);
            assert_eq!(edges, 2);
            fake_driver::state(|state| state.programmatic_refusal = refusal);
            assert!(slot.make_resident(graph, Residency::default()).unwrap());
            let edges = chain(&mut slot, &ops, None).2;
            assert_eq!(edges, if refusal.is_some() { 0 } else { 2 });
        }
    }

    #[test]
    fn a_graph_never_gets_a_kernel_that_does_not_wait_behind_a_programmatic_edge() {
        let session = FakeDriverUse::new();
        let (mut slot, [plain, waits]) = launches(&session, 9, 90);
        let (graph, ..) = chain(&mut slot, &[&plain, &waits], None);
        // SAFETY: as in `enqueue`.
        let error = unsafe { slot.set_params(graph, 1, &plain) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let updated = chain(&mut slot, &[&waits, &waits], Some(graph));
        assert_eq!(updated.1, Built::Updated);
        let (_, built, edges) = chain(&mut slot, &[&waits, &plain], Some(graph));
        assert!(matches!(built, Built::Reinstantiated { .. }), "{built:?}");
        assert_eq!(edges, 0);
    }

    #[test]
    fn merged_copies_behind_a_programmatic_edge_get_other_parameters() {
        let session = FakeDriverUse::new();
        let (mut slot, [plain, _]) = launches(&session, 9, 90);
        fake_driver::state(|state| state.loops.loads_copies = true);
        let memory = allocation(&slot.context());
        slot.adopt(&memory).unwrap();
        let zeros = [0, 32].map(|offset| Op::Memset {
            device: memory.address() + offset,
            byte: 0,
            bytes: 32,
        });
        let ops = [&plain, &zeros[0], &zeros[1]];
        // SAFETY: as in `enqueue`; the memsets are of an allocation that the slot adopted.
        let made = unsafe { slot.make_graph(GraphSource::Captured(&ops), None) };
        let (graph, _) = made.unwrap();
        assert_eq!(early(), [false, true]);
        // SAFETY: as above.
        unsafe { slot.set_params(graph, 1, &zeros[1]) }.unwrap();
    }
}
