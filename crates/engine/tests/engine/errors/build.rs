//! What an engine refuses when it is built, and what it takes from the workload only then.

use super::*;
use std::sync::atomic::AtomicBool;

/// [`AddOne`] with code that panics on request.
struct Panics {
    inner: AddOne,
    in_record: bool,
    in_axes: Arc<AtomicBool>,
}

impl Panics {
    fn new() -> Self {
        Panics {
            inner: AddOne::new(),
            in_record: false,
            in_axes: Arc::default(),
        }
    }
}

impl Workload for Panics {
    type Item = Item;
    type Output = u32;
    type Buffers = [Buffer<u32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        assert!(!self.in_axes.load(Relaxed), "planted");
        self.inner.axes()
    }

    fn extent(&self, item: &Item) -> Result<Extent> {
        self.inner.extent(item)
    }

    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<[Buffer<u32>; 2]> {
        assert!(!self.in_record, "planted");
        self.inner.record(recorder, device)
    }

    fn write(
        &self,
        buffers: &[Buffer<u32>; 2],
        item: &Item,
        offset: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        self.inner.write(buffers, item, offset, views)
    }

    fn read(
        &self,
        buffers: &[Buffer<u32>; 2],
        item: &Item,
        offset: Extent,
        views: &ReadViews<'_>,
    ) -> Result<u32> {
        self.inner.read(buffers, item, offset, views)
    }
}

#[test]
fn a_recording_that_panics_is_an_error() {
    let workload = Panics {
        in_record: true,
        ..Panics::new()
    };
    let error = Engine::new(workload, &[cpu()], pool(), &config())
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let text = error.to_string();
    assert!(
        text.contains("bucket [1]") && text.contains("planted"),
        "{text}"
    );
}

#[test]
fn axes_are_asked_for_when_the_engine_is_built_alone() {
    let workload = Panics::new();
    let in_axes = Arc::clone(&workload.in_axes);
    let engine = Engine::new(workload, &[cpu()], pool(), &config()).unwrap();
    in_axes.store(true, Relaxed);
    let too_long = engine.submit(long(3, 2)).unwrap().wait().unwrap();
    let error = too_long.result.unwrap_err().to_string();
    assert!(error.contains("2 numbers"), "{error}");
    let done = engine.submit(number(4)).unwrap().wait().unwrap();
    assert_eq!(done.result.unwrap(), 5);
}

#[test]
fn a_batch_without_room_is_refused() {
    let config = EngineConfig {
        policy: config().policy,
        ..EngineConfig::new([0])
    };
    let error = Engine::new(AddOne::new(), &[cpu()], pool(), &config)
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("no room"), "{error}");
}
