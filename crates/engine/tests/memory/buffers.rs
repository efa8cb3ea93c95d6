//! Buffers, their parts, and copies between them.

use super::{backend, roomy};
use tapeloop_engine::memory::{
    DeviceBuffer, DeviceSlice, PinnedBuffer, PinnedSliceMut, Pool, PoolConfig,
};
use tapeloop_engine::{ErrorKind, Result};

fn pool() -> Pool {
    Pool::new(backend(), roomy())
}

fn get(buffer: DeviceSlice<'_, i32>) -> Vec<i32> {
    let mut host = vec![0; buffer.len()];
    buffer.download(&mut host).unwrap();
    host
}

fn counting(pool: &Pool, len: usize) -> (DeviceBuffer<i32>, PinnedBuffer<i32>) {
    let numbers: Vec<i32> = (0..len as i32).collect();
    let mut device = pool.device(len, "device").unwrap();
    device.upload(&numbers).unwrap();
    let mut pinned = pool.pinned(len, "pinned").unwrap();
    pinned.write().unwrap().copy_from_slice(&numbers);
    (device, pinned)
}

fn assert_usage<T>(result: Result<T>, part: &str) {
    let error = result.err().expect("an error");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn any_range_is_copied_in_every_direction() {
    let pool = pool();
    let (from_device, from_pinned) = counting(&pool, 100);
    for (start, end) in [(0, 100), (0, 1), (99, 100), (7, 60), (50, 50)] {
        let (len, expected) = (end - start, (start as i32..end as i32).collect::<Vec<_>>());
        let source = from_device.slice(start..end).unwrap();
        assert_eq!(get(source), expected, "device to host");

        let mut device = pool.device::<i32>(200, "to").unwrap();
        let mut pinned = pool.pinned::<i32>(200, "to").unwrap();
        let mut to = device.slice_mut(13..13 + len).unwrap();
        to.copy_from(source).unwrap();
        assert_eq!(get(to.as_slice()), expected, "device to device");
        to.upload(&vec![-1; len]).unwrap();
        assert_eq!(get(to.as_slice()), vec![-1; len], "host to device");
        to.copy_from(from_pinned.slice(start..end).unwrap())
            .unwrap();
        assert_eq!(get(to.as_slice()), expected, "pinned to device");

        let mut to: PinnedSliceMut<'_, i32> = pinned.slice_mut(29..29 + len).unwrap();
        to.copy_from(source).unwrap();
        assert_eq!(*to.as_slice().read().unwrap(), expected, "device to pinned");
        to.write().unwrap().fill(-1);
        to.copy_from(from_pinned.slice(start..end).unwrap())
            .unwrap();
        assert_eq!(*to.as_slice().read().unwrap(), expected, "pinned to pinned");
    }
}

#[test]
fn a_copy_touches_its_range_alone() {
    let pool = pool();
    let (_, from) = counting(&pool, 10);
    let mut to = pool.device::<i32>(10, "to").unwrap();
    to.upload(&[-1; 10]).unwrap();
    to.slice_mut(3..6)
        .unwrap()
        .copy_from(from.slice(..3).unwrap())
        .unwrap();
    assert_eq!(get(to.as_slice()), [-1, -1, -1, 0, 1, 2, -1, -1, -1, -1]);
    let (left, mut right) = to.as_slice_mut().split_at(5).unwrap();
    right.copy_from(left.as_slice()).unwrap();
    assert_eq!(get(to.as_slice()), [-1, -1, -1, 0, 1, -1, -1, -1, 0, 1]);
}

#[test]
fn parts_of_parts_count_from_their_own_start() {
    let pool = pool();
    let (mut device, pinned) = counting(&pool, 100);
    let part = device.slice(10..).unwrap().slice(5..=20).unwrap();
    assert_eq!((part.len(), get(part)[0]), (16, 15));
    assert_eq!(part.slice(16..).unwrap().len(), 0);
    assert!(part.slice(..0).unwrap().is_empty());
    assert_eq!(part.view().address(), device.view().address() + 60);
    assert_eq!(part.view().bytes(), 64);
    let inner = pinned.slice(90..).unwrap().slice(9..).unwrap();
    assert_eq!(*inner.read().unwrap(), [99]);
    let mut outer = device.slice_mut(40..60).unwrap();
    outer.slice_mut(19..).unwrap().upload(&[7]).unwrap();
    assert_eq!(get(device.slice(58..61).unwrap()), [58, 7, 60]);
}

#[test]
fn ranges_outside_and_unequal_lengths_are_refused() {
    let pool = pool();
    let (mut device, mut pinned) = counting(&pool, 100);
    assert_usage(device.slice(..101), "elements 0..101 are not inside 100");
    assert_usage(device.slice(101..), "elements 101..100");
    assert_usage(device.slice_mut(0..=usize::MAX), "are not inside 100");
    #[allow(clippy::reversed_empty_ranges, reason = "what is tested")]
    let reversed = pinned.slice(6..5);
    assert_usage(reversed, "elements 6..5");
    assert_usage(pinned.slice_mut(90..).unwrap().slice_mut(..11), "inside 10");
    assert_usage(device.as_slice_mut().split_at(101).map(drop), "inside 100");

    let part = device.slice(..10).unwrap();
    assert_usage(part.download(&mut [0; 9]), "10 elements to 9");
    assert_usage(pinned.copy_from(part), "10 elements to 100");
    assert_usage(pinned.upload(&[0; 101]), "101 elements to 100");
    let mut foreign = Pool::new(backend(), roomy())
        .device(100, "foreign")
        .unwrap();
    assert_usage(foreign.copy_from(device.as_slice()), "another backend");
}

#[test]
fn whose_turn_it_is_is_kept() {
    let pool = pool();
    let (mut device, mut pinned) = counting(&pool, 100);
    {
        let (mut left, mut right) = pinned.as_slice_mut().split_at(50).unwrap();
        let _turn = left.write().unwrap();
        assert_usage(right.write(), "in use");
    }
    {
        let reads = [pinned.read().unwrap(), pinned.read().unwrap()];
        device.copy_from(pinned.as_slice()).unwrap();
        assert_eq!(reads[0][99], reads[1][99]);
    }
    let _writes = pinned.as_slice_mut().into_write().unwrap();
}

#[test]
fn elements_of_every_type_lie_right() {
    fn round_trip<T: tapeloop_engine::record::Element + PartialEq + std::fmt::Debug>(
        pool: &Pool,
        value: T,
    ) {
        let mut buffer = pool.pinned::<T>(5, "typed").unwrap();
        buffer.slice_mut(1..).unwrap().upload(&[value; 4]).unwrap();
        assert_eq!(buffer.read().unwrap()[1..], [value; 4]);
        assert_eq!(buffer.view().bytes(), 5 * size_of::<T>());
    }
    let pool = pool();
    round_trip(&pool, 1_u8);
    round_trip(&pool, 2_i16);
    round_trip(&pool, 3.5_f32);
    round_trip(&pool, 4.5_f64);
    round_trip(&pool, u64::MAX);
}

#[test]
fn contents_under_test_are_no_ones_zeros() {
    let pool = Pool::new(backend(), PoolConfig::testing());
    let buffer = pool.pinned::<f32>(100, "fresh").unwrap();
    assert!(buffer.read().unwrap().iter().all(|x| x.is_nan()));
    let device = pool.device::<i32>(100, "fresh").unwrap();
    assert_eq!(get(device.as_slice()), [-1; 100]);
}

#[test]
fn handles_go_between_threads() {
    fn both<T: Send + Sync>() {}
    both::<Pool>();
    both::<DeviceBuffer<f32>>();
    both::<PinnedBuffer<f64>>();
    both::<DeviceSlice<'_, u8>>();
    both::<PinnedSliceMut<'_, u8>>();
}
