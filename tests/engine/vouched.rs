//! What safe code is refused, as device code rests on it: declarations that change after
//! their code was attached, handles of other recordings, larger grids, other values,
//! headers beyond the capacity, and recordings of a workload without its engine.

use crate::give::Give;
use crate::scale::Scale;
use rayon::ThreadPoolBuilder;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tapeloop::backend::cpu::CpuBackend;
use tapeloop::backend::sim::{SimBackend, SimOptions, ViolationKind};
use tapeloop::backend::{
    Allocation, AllocationView, Backend, DeviceSlot, FunctionId, Node, Op, Space, Streams,
};
use tapeloop::pipeline::{Packer, Ring, Wait};
use tapeloop::record::{
    Access, Buffer, Cover, DType, DeviceInfo, Image, Kernel, Recorder, Recording, StructArg,
    TwinLaunch, Unit,
};
use tapeloop::replay::{Bindings, Buckets, Build, Executor, Policy};
use tapeloop::workload::{Extent, ReadViews, Workload, WriteViews};
use tapeloop::{Error, ErrorKind, Result};

const LEN: u32 = 16;

fn devices() -> [Arc<dyn Backend>; 2] {
    [
        Arc::new(CpuBackend::inline()),
        Arc::new(SimBackend::new(SimOptions::seeded(1))),
    ]
}

fn pool() -> Arc<rayon::ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

fn panic_of(work: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    let text = panic.downcast_ref::<String>().cloned();
    text.unwrap_or_else(|| (*panic.downcast_ref::<&str>().unwrap()).to_owned())
}

fn is_usage(error: &Error, part: &str) {
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert!(error.to_string().contains(part), "{error} lacks {part:?}");
}

fn double(launch: &mut TwinLaunch<'_>) {
    let blocks = launch.grid[0] as usize;
    let (x, y): (&[u32], &mut [u32]) = (launch.read(), launch.write());
    let pairs = y.iter_mut().zip(x).take(blocks * 4);
    pairs.for_each(|(y, x)| *y = 2 * x);
}

fn doubling() -> Kernel {
    Kernel::new("double")
        .block(4)
        .reads::<u32>("x")
        .writes::<u32>("y")
        .twin(double)
}

/// `y = 2 x`, and its handles.
fn recorded(mut recorder: Recorder) -> (Recording, Buffer<u32>, Buffer<u32>) {
    let x = recorder.upload_buffer::<u32>("x", 0, 1);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    recorder.upload(x);
    recorder.launch(&doubling(), LEN / 4, &[x.into(), y.into()]);
    recorder.download(y);
    (recorder.finish().unwrap(), x, y)
}

fn device_slot(backend: &Arc<dyn Backend>, recording: &Recording) -> Box<dyn DeviceSlot> {
    let device_slots = backend.open_slots(recording.buffers(), 1, Streams::PerSlot);
    device_slots.unwrap().remove(0)
}

fn bindings(backend: &Arc<dyn Backend>, recording: Recording) -> Bindings {
    let device_slot = device_slot(backend, &recording);
    let recording = Arc::new(recording);
    Bindings::new(&recording, &**backend, &*device_slot, &Policy::default()).unwrap()
}

#[test]
fn a_declaration_stays_as_it_was_vouched_for() {
    let vouched = || {
        let kernel = doubling().scalar::<u32>("n");
        // SAFETY: nothing launches it.
        unsafe { kernel.code(&Image::cuda("double.cu", "")) }
    };
    assert!(vouched().has_code() && !doubling().has_code());
    let changes: [fn(Kernel) -> Kernel; 11] = [
        |kernel| kernel.block(8),
        |kernel| kernel.block_shape([8, 8, 1]),
        |kernel| kernel.shared_bytes(64),
        |kernel| kernel.reads::<u32>("more"),
        |kernel| kernel.writes::<u32>("more"),
        |kernel| kernel.updates::<u32>("more"),
        |kernel| kernel.scalar::<u32>("more"),
        |kernel| kernel.structure("more", 8, &[]),
        |kernel| kernel.changeable("n"),
        |kernel| kernel.revisits(),
        |kernel| kernel.follows_device_pointers(),
    ];
    for change in changes {
        let text = panic_of(|| drop(change(vouched())));
        assert!(
            text.contains("kernel double has its code already"),
            "{text}"
        );
    }
    assert!(
        vouched().twin(|_| {}).cpu_twin().is_some(),
        "a twin may come last"
    );
    let text = panic_of(|| drop(doubling().changeable("x")));
    assert_eq!(text, "kernel double has no scalar or struct named x");
}

#[test]
fn a_grid_gets_smaller_and_never_larger() {
    for backend in devices() {
        let mut grid = bindings(&backend, recorded(Recorder::new(&[LEN])).0);
        grid.set_grid(0, [2, 1, 1]).unwrap();
        grid.set_grid(0, [4, 1, 1]).unwrap();
        for larger in [[5, 1, 1], [1, 2, 1], [1, 1, 2]] {
            is_usage(
                &grid.set_grid(0, larger).unwrap_err(),
                "recorded with [4, 1, 1]",
            );
        }
        is_usage(&grid.set_grid(0, [0, 1, 1]).unwrap_err(), "at least 1");
        let mut recorder = Recorder::new(&[LEN]);
        let x = recorder.upload_buffer::<u32>("x", 0, 1);
        let y = recorder.download_buffer::<u32>("y", 0, 1);
        recorder.upload(x);
        let args = [x.into(), y.into()];
        recorder.launch_over(&doubling(), LEN.into(), Cover::Once, &args);
        recorder.download(y);
        let mut over = bindings(&backend, recorder.finish().unwrap());
        over.set_grid(0, [4, 1, 1]).unwrap();
        is_usage(
            &over.set_grid(0, [5, 1, 1]).unwrap_err(),
            "recorded with [4, 1, 1]",
        );
    }
}

#[test]
fn a_grid_of_three_dimensions_is_recorded_whole() {
    let backend = &devices()[0];
    let mut recorder = Recorder::new(&[LEN]);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    let kernel = Kernel::new("places").writes::<u32>("y").twin(|launch| {
        let grid = launch.grid;
        launch.write::<u32>()[..3].copy_from_slice(&grid);
    });
    recorder.launch_grid(&kernel, [2, 3, 4], &[y.into()]);
    recorder.download(y);
    let recording = recorder.finish().unwrap();
    let mut device_slot = device_slot(backend, &recording);
    let buckets = Arc::new(Buckets::single(recording));
    let mut executor =
        Executor::new(backend, &mut *device_slot, &buckets, &Policy::default()).unwrap();
    let mut bound = executor.bindings(&mut *device_slot, 0).unwrap().clone();
    bound.set_grid(0, [2, 3, 1]).unwrap();
    is_usage(
        &bound.set_grid(0, [3, 1, 1]).unwrap_err(),
        "recorded with [2, 3, 4]",
    );
    executor
        .replay(&mut *device_slot, 0, Extent::from([LEN]))
        .unwrap();
    device_slot.wait().unwrap();
    let written: &[u32] = bytemuck::cast_slice(device_slot.host(y.id()));
    assert_eq!(written[..3], [2, 3, 4]);
}

#[test]
fn a_value_is_as_recorded_unless_it_is_declared_changeable() {
    let kernel = Kernel::new("values")
        .writes::<u32>("y")
        .scalar::<u32>("fixed")
        .scalar::<u32>("free")
        .changeable("free")
        .structure("fixed_struct", 8, &[])
        .structure("free_struct", 8, &[])
        .changeable("free_struct")
        .twin(|_| {});
    for backend in devices() {
        let mut recorder = Recorder::new(&[LEN]);
        let y = recorder.download_buffer::<u32>("y", 0, 1);
        let bytes = || StructArg::new(&[0; 8]);
        let args = [
            y.into(),
            1_u32.into(),
            2_u32.into(),
            bytes().into(),
            bytes().into(),
        ];
        recorder.launch(&kernel, 1, &args);
        recorder.download(y);
        let mut bound = bindings(&backend, recorder.finish().unwrap());
        bound.set_scalar(0, "free", 3_u32).unwrap();
        bound.set_struct(0, "free_struct", bytes()).unwrap();
        let error = bound.set_scalar(0, "fixed", 3_u32).unwrap_err();
        is_usage(&error, "kernel values, parameter fixed: it keeps the value");
        let error = bound.set_struct(0, "fixed_struct", bytes()).unwrap_err();
        is_usage(&error, "parameter fixed_struct: it keeps the value");
        assert!(error.fix_text().unwrap().contains("Kernel::changeable"));
    }
}

#[test]
fn handles_of_another_recording_are_refused() {
    let (recording, x, y) = recorded(Recorder::new(&[LEN]));
    // The same buffers, recorded once more.
    let (_, other_x, other_y) = recorded(Recorder::new(&[LEN]));
    assert_eq!(other_x.id().index(), x.id().index());
    for backend in devices() {
        let mut bound = bindings(&backend, recording.clone());
        let allocation = backend.allocate(Space::Device, 64).unwrap();
        let view = AllocationView::new(&allocation, 0, 64).unwrap();
        let foreign = "of another recording";
        is_usage(
            &bound.bind_device(other_x, view.clone()).unwrap_err(),
            foreign,
        );
        is_usage(
            &bound.bind_host(other_x, view.clone()).unwrap_err(),
            foreign,
        );
        is_usage(&bound.set_copy_len(other_x, 1).unwrap_err(), foreign);
        is_usage(&bound.set_mapped(other_x, true).unwrap_err(), foreign);
        bound.bind_device(x, view).unwrap();
        let buckets = Arc::new(Buckets::single(recording.clone()));
        let policy = Policy::default();
        let mut ring = Ring::<()>::new(&backend, &buckets, 1, &policy, Wait::Spin).unwrap();
        let mut slot = ring.acquire().unwrap();
        let text = panic_of(|| slot.write(other_x).fill(1));
        assert_eq!(text, "the recording has no such Upload buffer");
        slot.write(x).fill(1);
        ring.submit(slot, Extent::from([LEN]), ()).unwrap();
        let done = ring.wait().unwrap().unwrap();
        let text = panic_of(|| drop(done.read(other_y).to_vec()));
        assert_eq!(text, "the recording has no such Download buffer");
        assert_eq!(done.read(y), [2; LEN as usize]);
    }
}

#[test]
fn handles_of_one_ladder_are_good_for_all_its_buckets() {
    let backend = &devices()[0];
    let recorders = Recorder::ladder(&[&[LEN], &[LEN]]);
    let mut recorded = recorders.into_iter().map(recorded);
    let (_, x, _) = recorded.next().unwrap();
    let (second, ..) = recorded.next().unwrap();
    bindings(backend, second).set_copy_len(x, 3).unwrap();
}

/// A workload that writes and reads by handles of its own, or of another recording.
struct Handles {
    foreign: [bool; 2],
}

impl Workload for Handles {
    type Item = u32;
    type Output = u32;
    type Buffers = [Buffer<u32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, _: &u32) -> Result<Extent> {
        Ok(Extent::from([1]))
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Self::Buffers> {
        let x = recorder.upload_buffer::<u32>("x", 0, 1);
        let y = recorder.download_buffer::<u32>("y", 0, 1);
        recorder.upload(x);
        recorder.launch(&doubling(), LEN / 4, &[x.into(), y.into()]);
        recorder.download(y);
        let (_, other_x, other_y) = recorded(Recorder::new(&[LEN]));
        let pick = |place: usize, own, other| if self.foreign[place] { other } else { own };
        Ok([pick(0, x, other_x), pick(1, y, other_y)])
    }

    fn write(
        &self,
        [x, _]: &Self::Buffers,
        item: &u32,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*x)[0] = *item;
        Ok(())
    }

    fn read(
        &self,
        [_, y]: &Self::Buffers,
        _: &u32,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<u32> {
        Ok(views.get(*y)[0])
    }
}

fn packer<W: Workload>(workload: W, backend: &Arc<dyn Backend>, capacity: Extent) -> Packer<W> {
    Packer::new(workload, &[capacity], backend, pool()).unwrap()
}

#[test]
fn a_workload_sees_no_view_of_a_handle_that_is_not_its_own() {
    let backend = &devices()[0];
    for foreign in [[false, false], [true, false], [false, true]] {
        let packer = packer(Handles { foreign }, backend, Extent::from([LEN]));
        let policy = Policy::default();
        let mut ring = Ring::new(backend, &packer.buckets(), 1, &policy, Wait::Spin).unwrap();
        let mut slot = ring.acquire().unwrap();
        let packed = packer.pack(&mut slot, vec![3]).ok().unwrap();
        let live = packed.extent();
        ring.submit(slot, live, packed).unwrap();
        let done = ring.wait().unwrap().ok().unwrap();
        let result = packer.read(&done).remove(0);
        match foreign {
            [false, false] => assert_eq!(result.unwrap(), 6),
            _ => {
                let error = result.unwrap_err().to_string();
                assert!(error.contains("not one that items see"), "{error}");
            }
        }
    }
}

#[test]
fn a_header_counts_no_more_than_the_capacity_and_than_the_batch() {
    let backend = &devices()[0];
    let mut recorder = Recorder::new(&[LEN]);
    let header = recorder.header();
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    let kernel = Kernel::new("counts")
        .reads::<u32>("header")
        .writes::<u32>("y");
    let kernel = kernel.twin(|launch| {
        let header: &[u32] = launch.read();
        launch.write::<u32>()[0] = header[0];
    });
    recorder.upload(header);
    recorder.launch(&kernel, 1, &[header.into(), y.into()]);
    recorder.download(y);
    let buckets = Arc::new(Buckets::single(recorder.finish().unwrap()));
    let policy = Policy::default();
    let mut ring = Ring::<()>::new(backend, &buckets, 1, &policy, Wait::Spin).unwrap();
    let mut slot = ring.acquire().unwrap();
    let text = panic_of(|| slot.write_header(Extent::from([LEN + 1]), 1));
    assert_eq!(
        text,
        "the header counts [17], and the largest bucket holds [16]"
    );
    slot.write_header(Extent::from([8]), 1);
    let failed = ring.submit(slot, Extent::from([7]), ()).unwrap_err();
    is_usage(
        &failed.error,
        "the header counts [8], and the batch spans [7]",
    );
    ring.release(Err(failed));
    let slot = ring.acquire().unwrap();
    ring.submit(slot, Extent::from([9]), ()).unwrap();
    let done = ring.wait().unwrap().unwrap();
    assert_eq!(done.read(y)[0], 8);
}

#[test]
fn what_an_engine_records_of_a_workload_is_replayed_by_engines_alone() {
    let capacity = Extent::from([64, 8]);
    for backend in devices() {
        let packer_of = |factor| packer(Scale::new(factor), &backend, capacity);
        let (first, second) = (packer_of(2.0), packer_of(3.0));
        let policy = Policy::default();
        let mut ring = Ring::new(&backend, &first.buckets(), 1, &policy, Wait::Spin).unwrap();
        let mut slot = ring.acquire().unwrap();
        let whose = "an engine or a packer made this recording";
        let mut bound = slot.bindings(0).unwrap();
        is_usage(&bound.set_grid(0, [1, 1, 1]).unwrap_err(), whose);
        let text = panic_of(|| slot.write_header(Extent::from([1, 1]), 1));
        assert!(text.contains("its packer's to write"), "{text}");
        let recording = bound.recording();
        let mut device_slot = device_slot(&backend, recording);
        let made = Bindings::new(recording, &*backend, &*device_slot, &policy);
        is_usage(&made.err().unwrap(), whose);
        let made = Executor::new(&backend, &mut *device_slot, &first.buckets(), &policy);
        is_usage(&made.err().unwrap(), whose);
        let own = Arc::new(Buckets::single(recorded(Recorder::new(&[LEN])).0));
        let mut own_slot = self::device_slot(&backend, &own.largest().recording);
        let mut executor = Executor::new(&backend, &mut *own_slot, &own, &policy).unwrap();
        let taken = executor.take_buckets(&mut *own_slot, &first.buckets());
        is_usage(&taken.unwrap_err(), whose);
        // The other packer's slots have other buffers.
        let (error, items) = second.pack(&mut slot, vec![vec![1.0]]).err().unwrap();
        is_usage(&error, "of a ring over other buckets");
        assert_eq!(items, [[1.0]]);
        let packed = first.pack(&mut slot, vec![vec![1.0; 5]]).ok().unwrap();
        let failed = ring.submit(slot, Extent::from([4, 1]), packed).unwrap_err();
        is_usage(
            &failed.error,
            "the header counts [5, 1], and the batch spans [4, 1]",
        );
    }
}

/// A workload that records another one.
#[cfg(feature = "features")]
struct Wrapping<W>(W);

#[cfg(feature = "features")]
impl<W: Workload> Workload for Wrapping<W> {
    type Item = W::Item;
    type Output = W::Output;
    type Buffers = W::Buffers;

    fn axes(&self) -> &'static [&'static str] {
        self.0.axes()
    }

    fn extent(&self, item: &W::Item) -> Result<Extent> {
        self.0.extent(item)
    }

    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<W::Buffers> {
        assert!(recorder.is_for::<Self>() && !recorder.is_for::<W>());
        self.0.record(recorder, device)
    }

    fn write(
        &self,
        buffers: &W::Buffers,
        item: &W::Item,
        at: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        self.0.write(buffers, item, at, views)
    }

    fn read(
        &self,
        buffers: &W::Buffers,
        item: &W::Item,
        at: Extent,
        views: &ReadViews<'_>,
    ) -> Result<W::Output> {
        self.0.read(buffers, item, at, views)
    }
}

/// The kernels rely on what their workload writes, and so get their code in its engine
/// alone.
#[test]
#[cfg(feature = "features")]
fn built_in_kernels_have_their_code_in_an_engine_of_their_own_workload_alone() {
    use tapeloop::features::{FeatureConfig, Features};
    let backend = &devices()[0];
    let capacity = Features::capacity(64);
    for config in FeatureConfig::of_all_kernels() {
        let features = || Features::new(config.clone()).unwrap();
        let have_code = |recording: &Recording| {
            let launches = || recording.launches();
            assert!(launches().count() > 0);
            let count = launches().filter(|launch| launch.has_code()).count();
            (count == launches().count(), count == 0)
        };
        let own = packer(features(), backend, capacity).buckets();
        assert_eq!(have_code(&own.largest().recording), (true, false));
        let wrapped = packer(Wrapping(features()), backend, capacity).buckets();
        assert_eq!(have_code(&wrapped.largest().recording), (false, true));
        let mut recorder = Recorder::new(&capacity.as_slice()[..6]);
        features().record(&mut recorder, backend.device()).unwrap();
        assert_eq!(have_code(&recorder.finish().unwrap()), (false, true));
    }
}

#[test]
fn slots_kernels_and_bindings_go_together() {
    let [cpu, other] = [(); 2].map(|()| -> Arc<dyn Backend> { Arc::new(CpuBackend::inline()) });
    let (recording, ..) = recorded(Recorder::new(&[LEN]));
    let recording = Arc::new(recording);
    let mut device_slots = cpu
        .open_slots(recording.buffers(), 2, Streams::PerSlot)
        .unwrap();
    let policy = Policy::default();
    let mixed = Bindings::new(&recording, &*other, &*device_slots[0], &policy);
    is_usage(&mixed.err().unwrap(), "the slot is of another backend");
    let buckets = Arc::new(Buckets::single((*recording).clone()));
    let mixed = Executor::new(&other, &mut *device_slots[0], &buckets, &policy);
    is_usage(&mixed.err().unwrap(), "the slot is of another backend");
    let mut executors: Vec<Executor> = device_slots
        .iter_mut()
        .map(|device_slot| Executor::new(&cpu, &mut **device_slot, &buckets, &policy).unwrap())
        .collect();
    let of_first = executors[0]
        .bindings(&mut *device_slots[0], 0)
        .unwrap()
        .clone();
    let error = executors[1].update(&mut *device_slots[1], 0, of_first);
    is_usage(&error.unwrap_err(), "the bindings are of another slot");
}

fn copied(launch: &mut TwinLaunch<'_>) {
    let _: u64 = launch.structure();
    let (d, y): (&[u32], &mut [u32]) = (launch.read(), launch.write());
    y.iter_mut().zip(d).for_each(|(y, d)| *y = *d);
}

/// Copies what is at an address in a struct.
fn copying() -> Kernel {
    Kernel::new("copy")
        .structure("from", 8, &[(0, Access::Read, DType::U32)])
        .writes::<u32>("y")
        .twin(copied)
}

/// A recording that writes buffer `d`, and reads what is at the allocation's address.
fn by_both_names(allocation: &Allocation) -> (Recording, Buffer<u32>) {
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.upload_buffer::<u32>("x", 0, 1);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    let d = recorder.device_buffer::<u32>(
        "d",
        Unit::PerAxis {
            axis: 0,
            elements: 1,
        },
    );
    // SAFETY: the twin reads no more than there is.
    let from = unsafe { StructArg::new(&[0; 8]).address(allocation.address()) };
    recorder.upload(x);
    recorder.launch(&doubling(), LEN / 4, &[x.into(), d.into()]);
    recorder.launch(&copying(), 1, &[from.into(), y.into()]);
    recorder.download(y);
    (recorder.finish().unwrap(), d)
}

#[test]
fn memory_is_bound_or_declared_and_never_both() {
    for backend in devices() {
        for build in [Build::Capture, Build::Explicit] {
            let allocation = backend.allocate(Space::Device, 256).unwrap();
            let view = |offset| AllocationView::new(&allocation, offset, 128).unwrap();
            let (recording, d) = by_both_names(&allocation);
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
            is_usage(
                &error,
                &format!("buffer d is bound to {bound}, which overlaps declared"),
            );
            is_usage(&error, &declared);
            executor.update(device_slot, 0, bound_at(128)).unwrap();
            let error = executor.declare(device_slot, view(64)).unwrap_err();
            let (bound, declared) = (range(128), range(64));
            is_usage(
                &error,
                &format!("buffer d is bound to {bound}, which overlaps declared"),
            );
            is_usage(&error, &declared);
            executor
                .replay(device_slot, 0, Extent::from([LEN]))
                .unwrap();
            device_slot.wait().unwrap();
        }
    }
}

/// What the refusal above is for: a device slot that is given such a graph runs both kernels
/// side by side, and the simulated device reports it.
#[test]
fn a_graph_without_the_edge_between_both_names_is_reported() {
    let sim = Arc::new(SimBackend::new(SimOptions::seeded(1)));
    let backend: Arc<dyn Backend> = sim.clone();
    let allocation = backend.allocate(Space::Device, 256).unwrap();
    let (recording, _) = by_both_names(&allocation);
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
fn executors_leave_no_graphs_behind() {
    let recording = recorded(Recorder::new(&[LEN])).0;
    let buckets = Arc::new(Buckets::single(recording));
    let policy = Policy::default();
    for build in [Build::Capture, Build::Explicit] {
        let sim = Arc::new(SimBackend::new(SimOptions::seeded(1)));
        let devices: [Arc<dyn Backend>; 2] = [Arc::new(CpuBackend::inline()), sim.clone()];
        for backend in &devices {
            let policy = Policy { build, ..policy };
            let mut device_slot = device_slot(backend, &buckets.largest().recording);
            let device_slot = &mut *device_slot;
            for _ in 0..1_000 {
                let mut executor = Executor::new(backend, device_slot, &buckets, &policy).unwrap();
                executor
                    .replay(device_slot, 0, Extent::from([LEN]))
                    .unwrap();
                // Makes a second graph, with timestamps.
                let timed = executor
                    .replay_timed(device_slot, 0, Extent::from([LEN]))
                    .unwrap();
                assert!(timed.timed);
                device_slot.wait().unwrap();
            }
            let is_sim = device_slot.id().backend() == sim.id();
            assert_eq!(
                sim.live().graphs,
                if is_sim { 2 } else { 0 },
                "those of the last one"
            );
        }
        assert_eq!(sim.live().graphs, 0, "the device slots are gone");
        let backend = &devices[1];
        let mut device_slot = device_slot(backend, &buckets.largest().recording);
        let executor = Executor::new(backend, &mut *device_slot, &buckets, &policy).unwrap();
        assert_eq!(sim.live().graphs, 1);
        drop(executor);
        let stream = Policy::of(tapeloop::Mode::Stream);
        let made = Executor::new(backend, &mut *device_slot, &buckets, &stream);
        assert_eq!(
            sim.live().graphs,
            0,
            "the next one drops them, also if it makes none"
        );
        drop(made);
    }
}

#[test]
fn the_name_of_a_graph_that_is_gone_is_no_other_s() {
    let (recording, x, _) = recorded(Recorder::new(&[LEN]));
    for backend in &devices() {
        let mut device_slot = device_slot(backend, &recording);
        let op = &Op::Memset {
            device: device_slot.addresses(x.id()).device,
            byte: 0,
            bytes: 4,
        };
        let node = [Node { op, after: &[] }];
        let (first, _) = device_slot.give_graph(&node, None).unwrap();
        device_slot.drop_graph(first);
        let (second, _) = device_slot.give_graph(&node, None).unwrap();
        assert_ne!(first, second);
        assert!(device_slot.graph_ops(first).is_err());
        device_slot.drop_graph(first);
        device_slot.graph_ops(second).unwrap();
    }
}
