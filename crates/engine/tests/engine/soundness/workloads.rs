//! Handles of a workload, and what an engine records of it.

use super::*;

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
        "the largest bucket [16] does not hold the header's extent [17]"
    );
    slot.write_header(Extent::from([8]), 1);
    let failed = ring.submit(slot, Extent::from([7]), ()).unwrap_err();
    assert_usage(
        &failed.error,
        "the header was written for [8], which the submitted extent [7] does not hold",
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
        assert_usage(&bound.set_grid(0, [1, 1, 1]).unwrap_err(), whose);
        let text = panic_of(|| slot.write_header(Extent::from([1, 1]), 1));
        assert!(text.contains("header"), "{text}");
        let recording = bound.recording();
        let mut device_slot = device_slot(&backend, recording);
        let made = Bindings::new(recording, &*backend, &*device_slot, &policy);
        assert_usage(&made.err().unwrap(), whose);
        let made = Executor::new(&backend, &mut *device_slot, &first.buckets(), &policy);
        assert_usage(&made.err().unwrap(), whose);
        // The other packer's slots have other buffers.
        let (error, items) = second.pack(&mut slot, vec![vec![1.0]]).err().unwrap();
        assert_usage(&error, "does not use this packer's buckets");
        assert_eq!(items, [[1.0]]);
        let packed = first.pack(&mut slot, vec![vec![1.0; 5]]).ok().unwrap();
        let failed = ring.submit(slot, Extent::from([4, 1]), packed).unwrap_err();
        assert_usage(
            &failed.error,
            "the header was written for [5, 1], which the submitted extent [4, 1] does not hold",
        );
    }
}
