//! Inputs that kernels change and declared memory: what a measurement may replay.

use super::*;

/// One kernel of two buffers, in a slot of its own.
fn small(
    backend: &Arc<dyn Backend>,
    record: impl FnOnce(&mut Recorder) -> [Buffer<i32>; 2],
    policy: &Policy,
) -> (Box<dyn DeviceSlot>, Executor, [Buffer<i32>; 2]) {
    let mut recorder = Recorder::new(&[4]);
    let handles = record(&mut recorder);
    let recording: Recording = recorder.finish().unwrap();
    let buffers = recording.buffers().to_vec();
    let device_slots = backend.open_slots(&buffers, 1, policy.streams, Priority::Normal);
    let mut device_slot = device_slots.unwrap().remove(0);
    let buckets = Arc::new(Buckets::single(recording));
    let executor = Executor::new(backend, &mut *device_slot, &buckets, policy).unwrap();
    (device_slot, executor, handles)
}

/// Records a kernel that changes its input x, which is uploaded, and writes y.
fn record_in_place(recorder: &mut Recorder, twin: fn(&mut TwinLaunch<'_>)) -> [Buffer<i32>; 2] {
    let kernel = Kernel::new("in_place");
    let kernel = kernel.updates::<i32>("x").writes::<i32>("y").twin(twin);
    let x = recorder.upload_buffer::<i32>("x", 0, 1);
    let y = recorder.download_buffer::<i32>("y", 0, 1);
    recorder.upload(x);
    recorder.launch(&kernel, 1, &[x.into(), y.into()]);
    recorder.download(y);
    [x, y]
}

#[test]
fn inputs_that_kernels_change_are_as_from_one_replay() {
    fn in_place(launch: &mut TwinLaunch<'_>) {
        let (x, y): (&mut [i32], &mut [i32]) = (launch.write(), launch.write());
        (0..4).for_each(|i| {
            assert!(x[i] < 10, "an input as another replay left it");
            x[i] += 10;
            y[i] = x[i];
        });
    }
    for policy in auto_policies() {
        for (price, backend) in devices().map(|backend| (slow_graphs as Price, backend)) {
            let (_, backend) = priced(backend, price);
            let record = |recorder: &mut Recorder| record_in_place(recorder, in_place);
            let (mut device_slot, mut executor, [x, y]) = small(&backend, record, &policy);
            for batch in 0..3_i32 {
                let values = [batch, 1, 2, 3];
                device_slot.host_mut(&[x.id()])[0].copy_from_slice(bytemuck::cast_slice(&values));
                let replay = executor
                    .replay(&mut *device_slot, 0, Extent::from([4]))
                    .unwrap();
                device_slot.wait().unwrap();
                assert_eq!(replay.tried, usize::from(batch == 0));
                let out: &[i32] = bytemuck::cast_slice(device_slot.host(y.id()));
                assert_eq!(out, values.map(|value| value + 10), "{policy:?}");
            }
        }
    }
}

#[test]
fn kernels_that_write_declared_memory_are_not_tried() {
    fn count(launch: &mut TwinLaunch<'_>) {
        let [_]: [u64; 1] = launch.structure();
        let total: &mut [i32] = launch.write();
        let (x, y): (&[i32], &mut [i32]) = (launch.read(), launch.write());
        total[0] += x[0];
        y[0] = total[0];
    }
    for inner in devices() {
        let (tamper, backend) = priced(inner, slow_graphs);
        let allocation = backend.allocate(Space::Device, 4).unwrap();
        backend.write(&[0; 4], &allocation, 0).unwrap();
        let record = |recorder: &mut Recorder| {
            let kernel = Kernel::new("count")
                .structure("total", 8, &[(0, Access::ReadWrite, DType::I32)])
                .reads::<i32>("x")
                .writes::<i32>("y")
                .twin(count);
            let x = recorder.upload_buffer::<i32>("x", 0, 1);
            let y = recorder.download_buffer::<i32>("y", 0, 1);
            recorder.upload(x);
            // SAFETY: the twin touches the one element of the allocation.
            let total = unsafe { StructArg::new(&[0; 8]).address(allocation.address()) };
            recorder.launch(&kernel, 1, &[total.into(), x.into(), y.into()]);
            recorder.download(y);
            [x, y]
        };
        let (mut device_slot, mut executor, [x, y]) = small(&backend, record, &auto());
        let view = AllocationView::new(&allocation, 0, 4).unwrap();
        executor.declare(&mut *device_slot, view).unwrap();
        for batch in 1..=3_i32 {
            device_slot.host_mut(&[x.id()])[0][..4].copy_from_slice(&5_i32.to_le_bytes());
            let replay = executor
                .replay(&mut *device_slot, 0, Extent::from([4]))
                .unwrap();
            device_slot.wait().unwrap();
            assert_eq!((replay.tried, replay.trial_ns), (0, 0));
            assert_eq!(device_slot.host(y.id())[..4], (5 * batch).to_le_bytes());
        }
        let chosen = executor.chosen().remove(0);
        assert_eq!((chosen.way, chosen.tried.len()), (GRAPH, 0));
        assert_eq!(tamper.launches(), 3);
    }
}

#[test]
fn a_changed_input_that_is_uploaded_in_part_is_not_tried() {
    fn in_place(launch: &mut TwinLaunch<'_>) {
        let (x, y): (&mut [i32], &mut [i32]) = (launch.write(), launch.write());
        x.iter_mut().for_each(|x| *x += 10);
        y.copy_from_slice(x);
    }
    for inner in devices() {
        let (tamper, backend) = priced(inner, slow_graphs);
        let record = |recorder: &mut Recorder| record_in_place(recorder, in_place);
        let (mut device_slot, mut executor, [x, y]) = small(&backend, record, &auto());
        let device_slot = &mut *device_slot;
        let mut bindings = executor.bindings(device_slot, 0).unwrap().clone();
        bindings.set_copy_len(x, 2).unwrap();
        executor.update(device_slot, 0, bindings).unwrap();
        device_slot.host_mut(&[x.id()])[0].fill(0);
        let replay = executor.replay(device_slot, 0, Extent::from([4])).unwrap();
        device_slot.wait().unwrap();
        assert_eq!((replay.tried, replay.trial_ns), (0, 0));
        assert_eq!(
            device_slot.host(y.id()),
            bytemuck::cast_slice::<i32, u8>(&[10; 4])
        );
        assert_eq!(executor.chosen()[0].tried.len(), 0);
        assert_eq!(tamper.launches(), 1);
    }
}
