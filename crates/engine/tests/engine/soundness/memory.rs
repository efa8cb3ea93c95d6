//! Memory that is bound or declared.

use super::*;

fn copied(launch: &mut TwinLaunch<'_>) {
    let _: u64 = launch.structure();
    let (d, y): (&[u32], &mut [u32]) = (launch.read(), launch.write());
    y.iter_mut().zip(d).for_each(|(y, d)| *y = *d);
}

/// Copies what is at an address in a struct.
fn copying() -> Kernel {
    Kernel::new("copy")
        .structure("from", 8, &[(0, Access::Read, DType::U32)])
        .changeable("from")
        .writes::<u32>("y")
        .twin(copied)
}

/// A recording that writes buffer `d`, and reads what is at `address`.
fn by_both_names(address: u64) -> (Recording, Buffer<u32>) {
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.upload_buffer::<u32>("x", 0, 1);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    let d = recorder.device_buffer::<u32>("d", 0, 1);
    // SAFETY: the twin reads no more than there is.
    let from = unsafe { StructArg::new(&[0; 8]).address(address) };
    recorder.upload(x);
    recorder.launch(&doubling(), LEN / 4, &[x.into(), d.into()]);
    recorder.launch(&copying(), 1, &[from.into(), y.into()]);
    recorder.download(y);
    (recorder.finish().unwrap(), d)
}

#[test]
fn an_allocation_may_end_with_a_part_of_an_element() {
    type Triple = [u32; 3];
    let make = Kernel::new("make").writes::<Triple>("d").twin(|launch| {
        let d: &mut [Triple] = launch.write();
        (0..).zip(d).for_each(|(n, d)| *d = [n, n + 1, n + 2]);
    });
    let copy = Kernel::new("copy_triples")
        .reads::<Triple>("d")
        .writes::<Triple>("y")
        .twin(|launch| {
            let (d, y): (&[Triple], &mut [Triple]) = (launch.read(), launch.write());
            y.iter_mut().zip(d).for_each(|(y, d)| *y = *d);
        });
    for backend in devices() {
        let mut recorder = Recorder::new(&[LEN]);
        let d = recorder.device_buffer::<Triple>("d", 0, 1);
        let y = recorder.download_buffer::<Triple>("y", 0, 1);
        recorder.launch(&make, 1, &[d.into()]);
        recorder.launch(&copy, 1, &[d.into(), y.into()]);
        recorder.download(y);
        let recording = recorder.finish().unwrap();
        let mut device_slot = device_slot(&backend, &recording);
        let device_slot = &mut *device_slot;
        let buckets = Arc::new(Buckets::single(recording));
        let mut executor =
            Executor::new(&backend, device_slot, &buckets, &Policy::default()).unwrap();
        let bytes = LEN as usize * size_of::<Triple>();
        let allocation = backend.allocate(Space::Device, bytes + 7).unwrap();
        let mut bound = executor.bindings(device_slot, 0).unwrap().clone();
        let view = AllocationView::new(&allocation, 0, bytes).unwrap();
        bound.bind_device(d, view).unwrap();
        executor.update(device_slot, 0, bound).unwrap();
        executor
            .replay(device_slot, 0, Extent::from([LEN]))
            .unwrap();
        device_slot.wait().unwrap();
        let written: &[Triple] = bytemuck::cast_slice(device_slot.host(y.id()));
        assert_eq!(written[5], [5, 6, 7]);
    }
}

#[test]
fn memory_is_bound_or_declared_and_never_both() {
    for backend in devices() {
        for build in [Build::Capture, Build::Explicit] {
            let allocation = backend.allocate(Space::Device, 256).unwrap();
            let view = |offset| AllocationView::new(&allocation, offset, 128).unwrap();
            let (recording, d) = by_both_names(allocation.address());
            let mut device_slot = device_slot(&backend, &recording);
            let device_slot = &mut *device_slot;
            let policy = Policy {
                warm_up: false,
                build,
                ..Policy::default()
            };
            let buckets = Arc::new(Buckets::single(recording));
            let mut executor = Executor::new(&backend, device_slot, &buckets, &policy).unwrap();
            executor.declare(device_slot, view(0)).unwrap();
            let own = executor.bindings(device_slot, 0).unwrap().clone();
            let bound_at = |offset| {
                let mut bound = own.clone();
                bound.bind_device(d, view(offset)).unwrap();
                bound
            };
            let range = |offset: u64| {
                let start = allocation.address() + offset;
                format!("{start:#x} to {:#x}", start + 128)
            };
            let error = executor.update(device_slot, 0, bound_at(64)).unwrap_err();
            let (bound, declared) = (range(64), range(0));
            assert_usage(
                &error,
                &format!("buffer d is bound to {bound}, which overlaps declared"),
            );
            assert_usage(&error, &declared);
            executor.update(device_slot, 0, bound_at(128)).unwrap();
            let error = executor.declare(device_slot, view(64)).unwrap_err();
            let (bound, declared) = (range(128), range(64));
            assert_usage(
                &error,
                &format!("buffer d is bound to {bound}, which overlaps declared"),
            );
            assert_usage(&error, &declared);
            executor
                .replay(device_slot, 0, Extent::from([LEN]))
                .unwrap();
            device_slot.wait().unwrap();
        }
    }
}

#[test]
fn an_address_inside_bound_memory_is_said_to_be_there() {
    for backend in devices() {
        let [declared, bound] = [0; 2].map(|_| backend.allocate(Space::Device, 128).unwrap());
        let view = |allocation| AllocationView::new(allocation, 0, 128).unwrap();
        let (recording, d) = by_both_names(declared.address());
        let mut device_slot = device_slot(&backend, &recording);
        let device_slot = &mut *device_slot;
        let policy = Policy {
            warm_up: false,
            ..Policy::default()
        };
        let buckets = Arc::new(Buckets::single(recording));
        let mut executor = Executor::new(&backend, device_slot, &buckets, &policy).unwrap();
        executor.declare(device_slot, view(&declared)).unwrap();
        let mut bindings = executor.bindings(device_slot, 0).unwrap().clone();
        bindings.bind_device(d, view(&bound)).unwrap();
        // SAFETY: the update is refused, so nothing is read there.
        let inside = unsafe { StructArg::new(&[0; 8]).address(bound.address() + 32) };
        bindings.set_struct(1, "from", inside).unwrap();
        let error = executor.update(device_slot, 0, bindings).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        let text = error.to_string();
        assert!(
            text.contains("is memory that a buffer is bound to"),
            "{text}"
        );
    }
}

/// What the refusal above is for: a slot that is given such a graph runs both kernels
/// side by side, and the simulated device reports it.
#[test]
fn a_graph_without_the_edge_between_both_names_is_reported() {
    let sim = Arc::new(SimBackend::new(SimOptions::seeded(1)));
    let backend: Arc<dyn Backend> = sim.clone();
    let allocation = backend.allocate(Space::Device, 256).unwrap();
    let (recording, _) = by_both_names(allocation.address());
    let mut device_slot = device_slot(&backend, &recording);
    device_slot.adopt(&allocation).unwrap();
    let ids: Vec<_> = recording.buffers_by_id().map(|(id, _)| id).collect();
    let (x, y) = (device_slot.addresses(ids[0]), device_slot.addresses(ids[1]));
    let launch = |kernel: &Kernel, args: [u64; 2]| {
        let function: FunctionId = backend.load(kernel).unwrap();
        Op::Launch {
            function,
            grid: [LEN / 4, 1, 1],
            block: [4, 1, 1],
            shared_bytes: 0,
            args: Box::new(args),
        }
    };
    let ops = [
        Op::Upload {
            host: x.host.unwrap(),
            device: x.device,
            bytes: 64,
        },
        launch(&doubling(), [x.device, allocation.address()]),
        launch(&copying(), [allocation.address(), y.device]),
    ];
    let node = |op, after| Node { op, after };
    let graph = |after: [&'static [usize]; 3]| {
        let nodes = ops.iter().zip(after);
        nodes.map(|(op, after)| node(op, after)).collect::<Vec<_>>()
    };
    let (ordered, _) = device_slot
        .give_graph(&graph([&[], &[0], &[1]]), None)
        .unwrap();
    device_slot.launch_graph(ordered).unwrap();
    assert!(sim.violations().is_empty());
    let (unordered, _) = device_slot
        .give_graph(&graph([&[], &[0], &[]]), None)
        .unwrap();
    let error = device_slot.launch_graph(unordered).unwrap_err();
    assert!(error.to_string().contains("kernel copy"), "{error}");
    let violations = sim.violations();
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].kind, ViolationKind::Unordered);
}

#[test]
fn host_memory_is_not_read_while_the_slot_has_work() {
    let backend = &devices()[0];
    let (recording, x, y) = recorded(Recorder::new(&[LEN]));
    let mut slot = device_slot(backend, &recording);
    let buckets = Arc::new(Buckets::single(recording));
    let mut executor = Executor::new(backend, &mut *slot, &buckets, &Policy::default()).unwrap();
    executor.replay(&mut *slot, 0, Extent::from([LEN])).unwrap();
    let too_early = "set a fence behind the work, then wait";
    let text = panic_of(|| assert!(slot.host(y.id()).is_empty()));
    assert!(text.contains(too_early), "{text}");
    let text = panic_of(|| assert!(slot.host_mut(&[x.id()]).is_empty()));
    assert!(text.contains(too_early), "{text}");
    slot.wait().unwrap();
    assert_eq!(slot.host(y.id()).len(), 4 * LEN as usize);
}

#[test]
fn a_slot_without_the_host_side_of_a_buffer_is_refused() {
    let backend = &devices()[1];
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.device_buffer::<u32>("x", 0, 1);
    let y = recorder.device_buffer::<u32>("y", 0, 1);
    recorder.memset(x, 1);
    recorder.launch(&doubling(), LEN / 4, &[x.into(), y.into()]);
    let on_device = recorder.finish().unwrap();
    let mut slot = device_slot(backend, &on_device);
    let buckets = Arc::new(Buckets::single(recorded(Recorder::new(&[LEN])).0));
    let refused = Executor::new(backend, &mut *slot, &buckets, &Policy::default());
    assert_usage(&refused.err().unwrap(), "or no host side of one");
}

/// A workload with a resident buffer that is larger than any memory.
struct Endless;

impl Workload for Endless {
    type Item = ();
    type Output = ();
    type Buffers = ();

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, (): &()) -> Result<Extent> {
        Ok(Extent::from([1]))
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<()> {
        let x = recorder.resident_buffer::<u32>("endless", 1 << (usize::BITS - 6));
        let y = recorder.download_buffer::<u32>("y", 0, 1);
        recorder.launch(&doubling(), LEN / 4, &[x.into(), y.into()]);
        recorder.download(y);
        Ok(())
    }

    fn write(&self, (): &(), (): &(), _: Extent, _: &mut WriteViews<'_>) -> Result<()> {
        Ok(())
    }

    fn read(&self, (): &(), (): &(), _: Extent, _: &ReadViews<'_>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_resident_buffer_that_is_larger_than_the_memory_is_an_error() {
    for backend in devices() {
        let config = EngineConfig::new([LEN]);
        let error = Engine::new(Endless, &[backend], pool(), &config).err();
        let error = error.expect("no memory is so large");
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert!(error.to_string().contains("buffer endless"), "{error}");
    }
}
