//! What safe code is refused, as device code rests on it: declarations that change after
//! their code was attached, handles of other recordings, larger grids, other values,
//! headers beyond the capacity, and recordings of a workload without its engine.

mod memory;
mod workloads;

use crate::give::Give;
use crate::scale::Scale;
use rayon::ThreadPoolBuilder;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::backend::contract::{DeviceSlot, FunctionId, Node, Op, Priority};
use tapeloop_engine::backend::cpu::CpuBackend;
use tapeloop_engine::backend::{AllocationView, Backend, Space};
use tapeloop_engine::pipeline::{
    Engine, EngineConfig, Packer, Ring, SLOTS_MAX, TimelineConfig, Wait,
};
use tapeloop_engine::record::{
    Access, Buffer, Cover, DType, Image, Kernel, Recorder, Recording, StructArg, TwinLaunch,
};
use tapeloop_engine::replay::{Bindings, Buckets, Build, Executor, Policy};
use tapeloop_engine::workload::{Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{Error, ErrorKind, Result};
use tapeloop_sim::{SimBackend, SimOptions, ViolationKind};

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

fn assert_usage(error: &Error, part: &str) {
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
    let device_slots = backend.open_slots(recording.buffers(), 1, Priority::Normal);
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
    let changes: [fn(Kernel) -> Kernel; 15] = [
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
        |kernel| kernel.cluster([2, 1, 1]),
        |kernel| kernel.cooperative(),
        |kernel| kernel.urgent(),
        |kernel| kernel.waits_for_dependencies(),
    ];
    for change in changes {
        let text = panic_of(|| drop(change(vouched())));
        assert!(text.contains("kernel double"), "{text}");
    }
    assert!(
        vouched().twin(|_| {}).cpu_twin().is_some(),
        "a twin may come last"
    );
    let text = panic_of(|| drop(doubling().changeable("x")));
    assert!(
        text.contains("kernel double") && text.ends_with("x"),
        "{text}"
    );
}

#[test]
fn a_grid_gets_smaller_and_never_larger() {
    for backend in devices() {
        let mut grid = bindings(&backend, recorded(Recorder::new(&[LEN])).0);
        grid.set_grid(0, [2, 1, 1]).unwrap();
        grid.set_grid(0, [4, 1, 1]).unwrap();
        for larger in [[5, 1, 1], [1, 2, 1], [1, 1, 2]] {
            assert_usage(
                &grid.set_grid(0, larger).unwrap_err(),
                "recorded with [4, 1, 1]",
            );
        }
        assert_usage(&grid.set_grid(0, [0, 1, 1]).unwrap_err(), "at least 1");
        let mut recorder = Recorder::new(&[LEN]);
        let x = recorder.upload_buffer::<u32>("x", 0, 1);
        let y = recorder.download_buffer::<u32>("y", 0, 1);
        recorder.upload(x);
        let args = [x.into(), y.into()];
        recorder.launch_over(&doubling(), LEN.into(), Cover::Once, &args);
        recorder.download(y);
        let mut over = bindings(&backend, recorder.finish().unwrap());
        over.set_grid(0, [4, 1, 1]).unwrap();
        assert_usage(
            &over.set_grid(0, [5, 1, 1]).unwrap_err(),
            "recorded with [4, 1, 1]",
        );
    }
}

#[test]
fn numbers_of_slots_and_spans_at_their_ends_are_refused_or_work() {
    let backend = &devices()[0];
    let buckets = Arc::new(Buckets::single(recorded(Recorder::new(&[LEN])).0));
    for slots in [0, SLOTS_MAX + 1, usize::MAX] {
        let ring = Ring::<()>::new(backend, &buckets, slots, &Policy::default(), Wait::Spin);
        let error = ring.err().expect("it is refused");
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(
            error.to_string().contains(&format!("slots = {slots}")),
            "{error}"
        );
    }
    let mut config = EngineConfig::new([100, 100]);
    config.timeline = Some(TimelineConfig {
        spans_max: usize::MAX,
        ..TimelineConfig::default()
    });
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let backends = [Arc::clone(backend)];
    let engine = Engine::new(Scale::new(2.0), &backends, pool, &config).unwrap();
    let done = engine.submit(vec![1.0]).unwrap().wait().unwrap();
    assert_eq!(done.result.unwrap().0, [2.0]);
    let plan = Engine::memory_plan(&Scale::new(2.0), backend.device(), usize::MAX, &config);
    assert_eq!(plan.unwrap().slots, usize::MAX);
}

#[test]
fn a_grid_stays_one_of_whole_clusters() {
    let kernel = Kernel::new("nothing").cluster([2, 1, 1]).twin(|_| {});
    let mut recorder = Recorder::new(&[LEN]);
    recorder.launch(&kernel, 8, &[]);
    let mut bound = bindings(&devices()[0], recorder.finish().unwrap());
    bound.set_grid(0, [6, 1, 1]).unwrap();
    assert_usage(
        &bound.set_grid(0, [5, 1, 1]).unwrap_err(),
        "launch 0 of kernel nothing: a grid of [5, 1, 1] thread blocks, which is not made of whole clusters of [2, 1, 1]",
    );
}

#[test]
fn a_library_call_has_no_attributes_of_a_launch() {
    let declare: [fn(Kernel) -> Kernel; 4] = [
        |kernel| kernel.cluster([1, 1, 1]),
        |kernel| kernel.cooperative(),
        |kernel| kernel.urgent(),
        |kernel| kernel.waits_for_dependencies(),
    ];
    for declare in declare {
        let kernel = declare(Kernel::new("call"));
        // SAFETY: it submits nothing.
        let kernel = unsafe { kernel.library_call(|_| Ok(())) };
        let mut recorder = Recorder::new(&[LEN]);
        recorder.call(&kernel, &[]);
        let error = recorder.finish().unwrap_err();
        assert_usage(&error, "library call");
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
    assert_usage(
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
        assert_usage(&error, "kernel values, parameter fixed");
        let error = bound.set_struct(0, "fixed_struct", bytes()).unwrap_err();
        assert_usage(&error, "parameter fixed_struct");
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
        assert_usage(
            &bound.bind_device(other_x, view.clone()).unwrap_err(),
            foreign,
        );
        assert_usage(
            &bound.bind_host(other_x, view.clone()).unwrap_err(),
            foreign,
        );
        assert_usage(&bound.set_copy_len(other_x, 1).unwrap_err(), foreign);
        assert_usage(&bound.set_mapped(other_x, true).unwrap_err(), foreign);
        bound.bind_device(x, view).unwrap();
        let buckets = Arc::new(Buckets::single(recording.clone()));
        let policy = Policy::default();
        let mut ring = Ring::<()>::new(&backend, &buckets, 1, &policy, Wait::Spin).unwrap();
        let mut slot = ring.acquire().unwrap();
        let text = panic_of(|| slot.write(other_x).fill(1));
        assert!(text.contains("Upload"), "{text}");
        slot.write(x).fill(1);
        ring.submit(slot, Extent::from([LEN]), ()).unwrap();
        let done = ring.wait().unwrap().unwrap();
        let text = panic_of(|| drop(done.read(other_y).to_vec()));
        assert!(text.contains("Download"), "{text}");
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

#[test]
fn slots_kernels_and_bindings_go_together() {
    let [cpu, other] = [(); 2].map(|()| -> Arc<dyn Backend> { Arc::new(CpuBackend::inline()) });
    let (recording, ..) = recorded(Recorder::new(&[LEN]));
    let recording = Arc::new(recording);
    let mut device_slots = cpu
        .open_slots(recording.buffers(), 2, Priority::Normal)
        .unwrap();
    let policy = Policy::default();
    let mixed = Bindings::new(&recording, &*other, &*device_slots[0], &policy);
    assert_usage(&mixed.err().unwrap(), "another backend");
    let buckets = Arc::new(Buckets::single((*recording).clone()));
    let mixed = Executor::new(&other, &mut *device_slots[0], &buckets, &policy);
    assert_usage(&mixed.err().unwrap(), "another backend");
    let mut executors: Vec<Executor> = device_slots
        .iter_mut()
        .map(|device_slot| Executor::new(&cpu, &mut **device_slot, &buckets, &policy).unwrap())
        .collect();
    let of_first = executors[0]
        .bindings(&mut *device_slots[0], 0)
        .unwrap()
        .clone();
    let error = executors[1].update(&mut *device_slots[1], 0, of_first);
    assert_usage(&error.unwrap_err(), "another slot");
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
        let stream = Policy::new(tapeloop_engine::Mode::Stream);
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
