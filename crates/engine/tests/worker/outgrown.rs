//! Items that outgrow their extents, and lose the device when they run again by themselves.

use super::*;
use tapeloop_engine::workload::BatchItem;

/// The item whose worker is killed once when it runs by itself, and the one that aborts each.
const IS_KILLED_ONCE: u32 = 1;
const ABORTS_ALONE: u32 = 2;

/// The room of an item in its first run, and in its second.
const ROOM: u32 = 1;
const MORE_ROOM: u32 = 2;

/// Multiplies the number of each item by seven. `room` says how much an item has.
pub(super) fn fated_alone(launch: &mut TwinLaunch<'_>) {
    let (x, room): (&[u32], &[u32]) = (launch.read(), launch.read());
    let y: &mut [u32] = launch.write();
    for ((y, x), room) in y.iter_mut().zip(x).zip(room) {
        match *x {
            IS_KILLED_ONCE if *room == MORE_ROOM && ends_now(1) => kill(std::process::id()),
            ABORTS_ALONE if *room == MORE_ROOM => std::process::abort(),
            x => *y = x * 7,
        }
    }
}

/// Items that all need more room than they have at first.
struct Growing(Kernel);

impl Workload for Growing {
    type Item = u32;
    type Output = u32;
    type Buffers = [Buffer<u32>; 3];

    fn axes(&self) -> &'static [&'static str] {
        &["numbers", "room"]
    }
    fn extent(&self, _: &u32) -> Result<Extent> {
        Ok(Extent::from([1, ROOM]))
    }
    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<[Buffer<u32>; 3]> {
        let x = recorder.upload_buffer("x", 0, 1);
        let room = recorder.upload_buffer("room", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        // An axis has a buffer.
        let unused = recorder.upload_buffer::<u32>("unused", 1, 1);
        for buffer in [x, room, unused] {
            recorder.upload(buffer);
        }
        recorder.launch(&self.0, 1, &[x.into(), room.into(), y.into()]);
        recorder.download(y);
        Ok([x, room, y])
    }
    fn write(
        &self,
        [x, room, _]: &[Buffer<u32>; 3],
        item: &u32,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*x)[0] = *item;
        views.take(*room)[0] = views.extent()[1];
        Ok(())
    }
    fn read(
        &self,
        [_, _, y]: &[Buffer<u32>; 3],
        _: &u32,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<u32> {
        Ok(views.get(*y)[0])
    }
    fn outgrown(
        &self,
        _: &[Buffer<u32>; 3],
        items: &mut dyn Iterator<Item = BatchItem<'_, u32>>,
        _: &ReadViews<'_>,
    ) -> Result<Vec<(usize, Extent)>> {
        let first = items.map(|item| item.extent).enumerate();
        let first = first.filter(|(_, extent)| extent[1] == ROOM);
        let more = first.map(|(index, _)| (index, Extent::from([1, MORE_ROOM])));
        Ok(more.collect())
    }
}

#[test]
fn an_item_that_loses_the_device_in_its_second_run_ends_no_engine() {
    let ends = tempfile::NamedTempFile::new().unwrap();
    let options = options_with(&[(ENDS, ends.path())]);
    let backend: Arc<dyn Backend> = Arc::new(WorkerBackend::open(options).unwrap());
    let kernel = Kernel::new("fated_alone")
        .reads::<u32>("x")
        .reads::<u32>("room")
        .writes::<u32>("y")
        .twin(fated_alone);
    let config = EngineConfig::new([4, 8]);
    let engine = Engine::new(Growing(kernel), &[backend], pool(), &config).unwrap();
    let items = [3, IS_KILLED_ONCE, ABORTS_ALONE, 4];
    for done in engine.submit_many(items).unwrap().wait().unwrap() {
        match done.item {
            ABORTS_ALONE => {
                let error = done.result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Quarantined, "{error}");
            }
            item => assert_eq!(done.result.unwrap(), 7 * item),
        }
    }
    assert!(engine.ended().is_none());
    assert_eq!(
        engine.submit(5).unwrap().wait().unwrap().result.unwrap(),
        35
    );
    assert_eq!(engine.counters().items_quarantined, 1);
}
