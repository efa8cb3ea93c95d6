//! Slots over a driver without a device.

use super::super::compile::Compiler;
use super::super::device_loop::LoopArgs;
use super::super::fake_driver::{self, CAPTURE_UNSUPPORTED, FakeDriverUse};
use super::super::memory::{DeviceMemory, PinnedMemory};
use super::super::timestamps::DeviceClock;
use super::*;
use crate::backend::{CudaOptions, Layout, Node, Priority, Space};
use crate::error::ErrorKind;
use crate::record::{Access, BufferDecl, Image, Kernel};

pub(in super::super) fn slot(context: &Arc<PrimaryContext>) -> Result<CudaSlot> {
    slot_of(context, Priority::Normal)
}

fn slot_of(context: &Arc<PrimaryContext>, priority: Priority) -> Result<CudaSlot> {
    let layout = Layout::new(&[] as &[BufferDecl]).unwrap();
    let pinned = PinnedMemory::zeroed(context, 64)?;
    let device = DeviceMemory::new(context, 64)?;
    let share = SlotMemory::cut(layout, pinned, device, 1).next().unwrap();
    let compiler = Compiler::new(&CudaOptions::default(), 0);
    let functions = Arc::new(LoadedFunctions::new(context, compiler));
    let stream = SlotStream::new(context, priority, false)?;
    let clock = Arc::<DeviceClock>::default();
    let timestamps = Timestamps::new(context, &clock);
    CudaSlot::open(timestamps, &functions, share, stream)
}

#[test]
fn a_slot_is_opened_and_dropped_while_another_thread_captures() {
    let session = FakeDriverUse::new();
    fake_driver::state(|state| state.captures_elsewhere = true);
    let context = session.context();
    let slot = slot(&context).unwrap();
    drop((slot, context));
    let (live, retained) = fake_driver::state(|state| (state.memory.len(), state.retained));
    assert_eq!((live, retained), (0, 0));
    assert!(!fake_driver::state(|state| state.invalidated));
}

impl CudaSlot {
    /// The identifier of a kernel.
    pub(in super::super) fn load(&self, kernel: &Kernel) -> FunctionId {
        self.functions.load(kernel).unwrap()
    }

    pub(in super::super) fn context(&self) -> Arc<PrimaryContext> {
        Arc::clone(&self.context)
    }
}

pub(in super::super) fn allocation(context: &Arc<PrimaryContext>) -> Allocation {
    let copier = super::super::copier::Copier::new(context).unwrap();
    copier.allocate(Space::Device, 64).unwrap()
}

pub(in super::super) fn zero(allocation: &Allocation) -> Op {
    Op::Memset {
        device: allocation.address(),
        byte: 0,
        bytes: 64,
    }
}

#[test]
fn all_work_of_an_urgent_slot_is_in_a_stream_of_the_highest_priority() {
    let session = FakeDriverUse::new();
    let context = session.context();
    let normal = slot_of(&context, Priority::Normal).unwrap();
    assert!(fake_driver::state(|state| state.priorities.is_empty()));
    let urgent = slot_of(&context, Priority::Urgent).unwrap();
    let priorities = fake_driver::state(|state| state.priorities.clone());
    let stream = urgent.stream().unwrap() as usize;
    assert_eq!(
        Vec::from_iter(priorities),
        [(stream, fake_driver::GREATEST_PRIORITY)]
    );
    drop((normal, urgent));
}

#[test]
fn events_of_other_code_are_waited_for_and_recorded_in_the_slot_s_own_stream() {
    let session = FakeDriverUse::new();
    let context = session.context();
    // SAFETY: the driver without a device does not look at events.
    let [produced, consumed] = [0x70, 0x80].map(|raw| unsafe { ExternalEvent::from_raw(raw) });
    let mut own = slot(&context).unwrap();
    let stream = own.stream().unwrap() as usize;
    own.wait_for_event(&produced).unwrap();
    own.record_event(&consumed).unwrap();
    let waits = fake_driver::state(|state| state.stream_waits.clone());
    assert_eq!(waits, [(stream, 0x70)]);
    let recorded = fake_driver::state(|state| state.loops.recorded[&0x80]);
    assert_eq!(recorded, stream);
    assert!(own.is_quiet(), "neither uses the slot's memory");
}

#[test]
fn an_event_of_a_capture_is_refused_before_the_stream_waits_for_it() {
    let session = FakeDriverUse::new();
    let context = session.context();
    // SAFETY: the driver without a device does not look at events.
    let event = unsafe { ExternalEvent::from_raw(0x70) };
    let mut own = slot(&context).unwrap();
    fake_driver::state(|state| state.captured_event = 0x70);
    let error = own.wait_for_event(&event).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("capture"), "{error}");
    assert!(fake_driver::state(|state| state.stream_waits.is_empty()));
    fake_driver::state(|state| state.captured_event = 0);
    own.wait_for_event(&event).unwrap();
}

#[test]
fn a_graph_of_an_urgent_slot_is_not_made_resident() {
    let session = FakeDriverUse::new();
    fake_driver::state(|state| state.loops.loads_modules = true);
    let context = session.context();
    let allocation = allocation(&context);
    let mut slot = slot_of(&context, Priority::Urgent).unwrap();
    slot.adopt(&allocation).unwrap();
    let (op, after) = (zero(&allocation), &[]);
    let source = GraphSource::Explicit(&[Node { op: &op, after }]);
    // SAFETY: the memset is of an allocation that the slot adopted.
    let (graph, _) = unsafe { slot.make_graph(source, None) }.unwrap();
    let error = slot.make_resident(graph, Residency::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    slot.launch_graph(graph).unwrap();
    slot.fence().unwrap();
    slot.wait().unwrap();
}

#[test]
fn a_graph_that_refused_new_parameters_may_use_their_allocations_all_the_same() {
    let session = FakeDriverUse::new();
    let context = session.context();
    let (old, new) = (allocation(&context), allocation(&context));
    let mut slot = slot(&context).unwrap();
    let mut build = |allocation: &Allocation, into| {
        slot.adopt(allocation).unwrap();
        let (op, after) = (zero(allocation), &[]);
        let source = GraphSource::Explicit(&[Node { op: &op, after }]);
        // SAFETY: the memset is of an allocation that the slot adopted.
        let built = unsafe { slot.make_graph(source, into) };
        slot.disown(allocation);
        built
    };
    let (graph, _) = build(&old, None).unwrap();
    // A graph whose update failed may hold parameters of either.
    fake_driver::state(|state| state.update_returns = (910, 5));
    assert_eq!(build(&new, Some(graph)).unwrap_err().code(), Some(910));
    slot.launch_graph(graph).unwrap();
    for allocation in [&old, &new] {
        assert!(
            allocation.lease(Access::Read).is_err(),
            "the launch holds both"
        );
    }
    slot.fence().unwrap();
    slot.wait().unwrap();
    assert!(new.lease(Access::Read).is_ok());
}

#[test]
fn copies_stay_nodes_where_the_driver_does_not_load_the_kernel_that_merges_them() {
    let session = FakeDriverUse::new();
    let context = session.context();
    let allocation = allocation(&context);
    let mut slot = slot(&context).unwrap();
    slot.adopt(&allocation).unwrap();
    let ops = [0, 32].map(|offset| Op::Memset {
        device: allocation.address() + offset,
        byte: 0,
        bytes: 32,
    });
    let nodes = ops.each_ref().map(|op| Node { op, after: &[] });
    assert!(slot.plan(GraphSource::Explicit(&nodes)).1.is_none());
    // SAFETY: the memsets are of an allocation that the slot adopted.
    let built = unsafe { slot.make_graph(GraphSource::Explicit(&nodes), None) };
    assert_eq!(built.unwrap().1, Built::Instantiated);
}

#[test]
fn a_slot_that_cannot_wait_leaks_what_its_work_may_touch_and_keeps_the_context() {
    let session = FakeDriverUse::new();
    let context = session.context();
    let allocation = allocation(&context);
    let mut first = slot(&context).unwrap();
    first.adopt(&allocation).unwrap();
    // SAFETY: the memset is of an allocation that the slot adopted.
    unsafe { first.enqueue(&zero(&allocation)) }.unwrap();
    fake_driver::state(|state| state.waits_return = CAPTURE_UNSUPPORTED);
    drop(first);
    fake_driver::state(|state| state.waits_return = 0);
    assert!(!context.is_lost());
    let live = || fake_driver::state(|state| state.memory.len());
    assert_eq!(live(), 3, "nothing is freed");
    assert!(allocation.lease(Access::Read).is_err());
    drop(slot(&context).unwrap());
    assert_eq!(live(), 3, "the next one is");
}

/// A kernel with the parameter that the driver without a device knows.
pub(in super::super) fn declared(attributes: impl FnOnce(Kernel) -> Kernel) -> Kernel {
    let kernel = Kernel::new("kernel").structure("args", size_of::<LoopArgs>(), &[]);
    let image = Image::compiled("image", *b".version 8.0\n");
    // SAFETY: the driver without a device does not run it.
    unsafe { attributes(kernel).code(&image) }
}

#[test]
fn launches_and_nodes_have_the_attributes_of_their_kernel() {
    use cudarc::driver::sys::CUlaunchAttributeID as Id;
    let session = FakeDriverUse::new();
    fake_driver::state(|state| (state.loops.loads_modules, state.capability) = (true, 9));
    let context = session.context();
    for (priority, flags) in [(Priority::Normal, 8), (Priority::Urgent, 0)] {
        let mut slot = slot_of(&context, priority).unwrap();
        let plain = slot.functions.load(&declared(|kernel| kernel)).unwrap();
        let all = declared(|kernel| kernel.cluster([2, 1, 1]).cooperative().urgent());
        let all = slot.functions.load(&all).unwrap();
        assert_ne!(plain, all);
        let launches = [plain, all].map(|function| Op::Launch {
            function,
            grid: [2, 1, 1],
            block: [32, 1, 1],
            shared_bytes: 0,
            args: vec![0; size_of::<LoopArgs>() / 8].into(),
        });
        let highest = fake_driver::GREATEST_PRIORITY as u32;
        let attributes = [
            (Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, [2, 1, 1]),
            (Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, [1, 0, 0]),
            (Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, [highest, 0, 0]),
        ]
        .map(|(id, value)| (id as u32, value));
        fake_driver::state(|state| {
            (state.launches, state.node_attributes, state.instantiated) = Default::default();
        });
        for launch in &launches {
            // SAFETY: the launches name no memory.
            unsafe { slot.enqueue(launch) }.unwrap();
        }
        let streamed = fake_driver::state(|state| state.launches.clone());
        assert_eq!(streamed, [vec![], attributes.to_vec()]);
        let nodes = launches.each_ref().map(|op| Node { op, after: &[] });
        for (nodes, given, flags) in [(&nodes[..1], &[][..], 0), (&nodes[..], &attributes, flags)] {
            // SAFETY: as above.
            let made = unsafe { slot.make_graph(GraphSource::Explicit(nodes), None) };
            let (graph, _) = made.unwrap();
            fake_driver::state(|state| {
                assert_eq!(state.node_attributes, given);
                assert_eq!(state.instantiated.pop(), Some(flags));
            });
            let resident = slot.make_resident(graph, Residency::default());
            assert_eq!(
                resident.is_err(),
                nodes.len() == 2 || priority == Priority::Urgent
            );
        }
    }
}

#[test]
fn attributes_that_a_device_does_not_have_are_refused_with_the_kernel_s_name() {
    let session = FakeDriverUse::new();
    fake_driver::state(|state| (state.loops.loads_modules, state.capability) = (true, 5));
    let slot = slot(&session.context()).unwrap();
    let refused = |kernel: Kernel| {
        let error = slot.functions.load(&kernel).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        error.to_string()
    };
    let cluster = refused(declared(|kernel| kernel.cluster([2, 1, 1])));
    assert!(cluster.contains("kernel kernel needs clusters"));
    assert!(cluster.contains("compute capability 5.0"), "{cluster}");
    let cooperative = refused(declared(Kernel::cooperative));
    assert!(cooperative.contains("kernel kernel needs cooperative launches"));
}
