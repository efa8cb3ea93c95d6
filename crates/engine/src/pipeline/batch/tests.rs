//! The batcher over items that are their own length.

use super::*;
use crate::record::{DeviceInfo, Recorder};
use crate::workload::{ReadViews, WriteViews};

/// Items that are their own length; the batcher asks for nothing else.
struct Lengths;

impl Workload for Lengths {
    type Item = u32;
    type Output = ();
    type Buffers = ();

    fn axes(&self) -> &'static [&'static str] {
        &["elements"]
    }
    fn extent(&self, item: &u32) -> Result<Extent> {
        Ok(Extent::from([*item]))
    }
    fn record(&self, _: &mut Recorder, _: &DeviceInfo) -> Result<()> {
        Ok(())
    }
    fn write(&self, (): &(), _: &u32, _: Extent, _: &mut WriteViews<'_>) -> Result<()> {
        Ok(())
    }
    fn read(&self, (): &(), _: &u32, _: Extent, _: &ReadViews<'_>) -> Result<()> {
        Ok(())
    }
}

fn batcher(wait: Duration) -> Batcher<Lengths> {
    Batcher::new(
        &["elements"],
        Extent::from([10]),
        Extent::from([100]),
        wait,
        Vec::new(),
    )
}

fn push(
    batcher: &mut Batcher<Lengths>,
    length: u32,
    now: Instant,
    deadline: Option<Instant>,
) -> Vec<Vec<u32>> {
    let options = SubmitOptions {
        deadline,
        ..SubmitOptions::default()
    };
    let closed = batcher.push(length, Lengths.extent(&length), now, &options);
    closed.iter().map(|batch| lengths(batch)).collect()
}

fn lengths(batch: &Batch<Lengths>) -> Vec<u32> {
    batch.entries.iter().map(|entry| *entry.item()).collect()
}

#[test]
fn an_extent_along_an_axis_that_the_workload_has_not_is_an_error_that_names_the_axes() {
    let mut batcher = batcher(Duration::MAX);
    // The second is too large along the workload's own axis too: a larger batch would not help.
    for extent in [Extent::from([1, 3]), Extent::from([11, 3])] {
        let options = SubmitOptions::default();
        let mut closed = batcher.push(1, Ok(extent), Instant::now(), &options);
        let refused = closed.pop().unwrap();
        let error = refused.entries[0].location.as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let text = error.to_string();
        assert!(
            text.contains("3 along axis 1") && text.contains("elements"),
            "{text}"
        );
    }
}

#[test]
fn a_batch_closes_when_it_is_full_and_before_the_item_that_exceeds_it() {
    let (mut batcher, now) = (batcher(Duration::MAX), Instant::now());
    let none: [Vec<u32>; 0] = [];
    assert_eq!(push(&mut batcher, 4, now, None), none);
    assert_eq!(push(&mut batcher, 6, now, None), [[4, 6]], "ten fill ten");
    assert_eq!(push(&mut batcher, 7, now, None), none);
    assert_eq!(push(&mut batcher, 5, now, None), [[7]], "twelve exceed it");
    assert_eq!(
        push(&mut batcher, 60, now, None),
        [[5], [60]],
        "a large one goes alone, and at once"
    );
    assert_eq!(push(&mut batcher, 1, now, None), none);
    // One that is too large takes no room, and closes its batch, which holds one of them.
    let options = SubmitOptions::default();
    let mut closed = batcher.push(101, Lengths.extent(&101), now, &options);
    let last = closed.pop().unwrap();
    assert!(closed.is_empty() && !batcher.is_open());
    assert_eq!((last.items, last.total), (1, Extent::from([1])));
    assert_eq!(
        last.entries[1].location.as_ref().unwrap_err().kind(),
        ErrorKind::Capacity
    );
    assert!(batcher.flush().is_none());
}

#[test]
fn a_batch_is_due_when_its_oldest_item_has_waited_or_at_the_first_deadline() {
    let (second, now) = (Duration::from_secs(1), Instant::now());
    let mut batcher = batcher(4 * second);
    assert_eq!(batcher.closes_at(), None);
    push(&mut batcher, 1, now, None);
    push(&mut batcher, 1, now + second, None);
    assert_eq!(
        batcher.closes_at(),
        Some(now + 4 * second),
        "the oldest decides"
    );
    push(&mut batcher, 1, now + second, Some(now + 9 * second));
    assert_eq!(
        batcher.closes_at(),
        Some(now + 4 * second),
        "a late deadline changes nothing"
    );
    push(&mut batcher, 1, now + second, Some(now + 2 * second));
    assert_eq!(batcher.closes_at(), Some(now + 2 * second));
    batcher.flush();
    assert_eq!(batcher.closes_at(), None);
}

#[test]
fn a_wait_without_end_is_none() {
    let mut batcher = batcher(Duration::MAX);
    push(&mut batcher, 1, Instant::now(), None);
    assert_eq!(batcher.closes_at(), None);
}

#[test]
fn cancelled_and_expired_items_leave_their_room_to_the_others() {
    let (second, now) = (Duration::from_secs(1), Instant::now());
    let mut batcher = batcher(Duration::MAX);
    let expiries = [None, Some(now), Some(now + second), None, Some(now)];
    let mut closed = ArrayVec::new();
    for (length, expires_at) in [3, 2, 1, 4, 101].into_iter().zip(expiries) {
        let options = SubmitOptions {
            expires_at,
            ..SubmitOptions::default()
        };
        let extent = Lengths.extent(&length);
        if length == 4 {
            // It had no room if the first item were there.
            let mut cancelled = Vec::new();
            batcher.open().cancel(0..1, |item| cancelled.push(item));
            batcher.open().cancel(0..1, |item| cancelled.push(item));
            assert_eq!(cancelled, [3]);
        }
        closed = batcher.push(length, extent, now, &options);
        assert_eq!(closed.len(), usize::from(length == 101));
    }
    let mut batch = closed.pop().unwrap();
    assert_eq!((batch.total, batch.items), (Extent::from([7]), 3));
    assert_eq!(batch.leave_out(now), 1);
    assert_eq!((batch.total, batch.items), (Extent::from([5]), 2));
    let places: Vec<_> = batch
        .entries
        .iter()
        .map(|entry| match &entry.location {
            Ok(location) => Ok((location.offset[0], location.extent[0])),
            Err(error) => Err(error.kind()),
        })
        .collect();
    let expected = [
        Err(ErrorKind::Usage),
        Err(ErrorKind::Expired),
        Ok((0, 1)),
        Ok((1, 4)),
        Err(ErrorKind::Capacity),
    ];
    assert_eq!(places, expected, "a rejected item keeps its error");
    let left: Vec<_> = batch.entries.iter().map(|entry| entry.item).collect();
    assert_eq!(left, [None, Some(2), Some(1), Some(4), Some(101)]);
    assert!(!batch.is_emptied());
    batch.cancel(1..5, drop);
    assert!(batch.is_emptied());
    batch.clear();
    assert_eq!((batch.taken_out, batch.expiries.len()), (0, 0));
}

#[test]
fn items_that_take_no_room_close_a_batch_by_their_number() {
    let (mut batcher, now) = (batcher(Duration::MAX), Instant::now());
    push(&mut batcher, 1, now, None);
    let mut closed = ArrayVec::new();
    for item in 0..EMPTY_ENTRIES_MAX {
        assert!(closed.is_empty());
        let extent = match item % 2 {
            0 => Ok(Extent::default()),
            _ => Err(Error::new(ErrorKind::Input, "rejected")),
        };
        closed = batcher.push(0, extent, now, &SubmitOptions::default());
    }
    assert_eq!(closed[0].entries.len(), 1 + EMPTY_ENTRIES_MAX as usize);
}

#[test]
fn a_batch_holds_as_many_items_as_have_room() {
    let all = 3 << 16;
    let capacity = Extent::from([all]);
    let mut batcher =
        Batcher::<Lengths>::new(&["elements"], capacity, capacity, Duration::MAX, Vec::new());
    let now = Instant::now();
    for _ in 1..all {
        assert!(push(&mut batcher, 1, now, None).is_empty());
    }
    assert_eq!(push(&mut batcher, 1, now, None)[0].len(), all as usize);
}
