//! What is taken, what is given back, and what a pool does with it.

use super::mix::{Item, Mix, UNIFORMS};
use super::target::Target;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::contract::Priority;
use tapeloop_engine::memory::{Limits, Pool, PoolConfig};
use tapeloop_engine::pipeline::{Engine, EngineConfig};
use tapeloop_engine::record::{Element, Recorder};
use tapeloop_engine::workload::Workload;

/// The driver hands out its memory in pages of this size.
const PAGE_BYTES: u64 = 2 << 20;

/// Whether `lost` is `expected`, but for the end of the last page.
fn assert_lost(lost: u64, expected: u64) {
    let pages = expected..expected + PAGE_BYTES;
    assert!(pages.contains(&lost), "{lost} bytes for {expected}");
}

/// The card has as much free as it had `before`.
fn assert_back(target: &Target, before: Option<u64>) {
    if let (Some(before), Some(now)) = (before, target.free_bytes()) {
        assert!(
            before < now + PAGE_BYTES,
            "{now} of {before} bytes are free"
        );
    }
}

pub(crate) fn a_plan_is_what_the_device_loses_and_not_a_byte_less_will_do(target: &Target) {
    let elements = target.large as u32;
    let mut config = EngineConfig::new([elements, 100]);
    config.slots = 2;
    let (backend, device) = (&target.backend, target.backend.device());
    let plan = Engine::memory_plan(&Mix::new(), device, 1, &config).unwrap();
    // Three buffers that the host sees, and one that it does not.
    let least = 2 * 4 * u64::from(elements);
    assert!(plan.device_bytes() > 4 * least, "{plan}");
    assert!(device.shares_host_memory || plan.host_bytes() > 3 * least);

    let mut recorder = Recorder::new(&[elements, 100]);
    Mix::new().record(&mut recorder, device).unwrap();
    let recording = recorder.finish().unwrap();
    let open = || backend.open_slots(recording.buffers(), 2, Priority::Normal);
    // The driver keeps something of the first streams.
    drop(open().unwrap());
    let before = target.free_bytes();
    let device_slots = open().unwrap();
    if let (Some(before), Some(after)) = (before, target.free_bytes()) {
        assert_lost(before - after, plan.device_bytes());
    }
    drop(device_slots);
    assert_back(target, before);

    let build = |budget: u64| {
        let mut config = config.clone();
        config.memory_bytes_max = Some(budget);
        let backends = [Arc::clone(backend)];
        Engine::new(Mix::new(), &backends, Arc::clone(&target.pool), &config)
    };
    let sum = plan.bytes();
    let allocations = backend.driver_calls().allocations;
    let refused = build(sum - 1).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Capacity);
    assert_eq!(backend.driver_calls().allocations, allocations);
    let engine = build(sum).unwrap();
    assert_eq!(engine.memory(), &plan);
    if let (Some(before), Some(after)) = (before, target.free_bytes()) {
        assert!(before - after >= plan.device_bytes());
    }
    let item = Item::new(3, 1_000);
    let done = engine.submit(item.clone()).unwrap().wait().unwrap();
    assert_eq!(done.result.unwrap(), item.output(UNIFORMS));
}

/// Keeps 4 free allocations of a size for a minute.
fn pool(target: &Target) -> Pool {
    let limits = Limits {
        bytes_max: None,
        cached_max_per_class: 4,
        idle_trim: Duration::from_secs(60),
    };
    let config = PoolConfig {
        device: limits,
        pinned: limits,
        tracking: true,
        fill: None,
        ..PoolConfig::production()
    };
    Pool::new(Arc::clone(&target.backend), config)
}

/// Host to device to device to pinned to pinned to device to host, by odd parts.
fn round_trip<T: Element + PartialEq + std::fmt::Debug>(pool: &Pool, values: &[T]) {
    let len = values.len();
    let (mut a, mut b) = (
        pool.device::<T>(len + 3, "a").unwrap(),
        pool.device::<T>(len, "b").unwrap(),
    );
    let (mut p, mut q) = (
        pool.pinned::<T>(len + 5, "p").unwrap(),
        pool.pinned::<T>(len, "q").unwrap(),
    );
    a.slice_mut(3..).unwrap().upload(values).unwrap();
    b.copy_from(a.slice(3..).unwrap()).unwrap();
    let mut part = p.slice_mut(5..).unwrap();
    part.copy_from(b.as_slice()).unwrap();
    assert_eq!(&*part.as_slice().read().unwrap(), values);
    q.copy_from(p.slice(5..).unwrap()).unwrap();
    assert_eq!(&*q.read().unwrap(), values);
    // Each half to the other half's place.
    let half = len / 2;
    let whole = a.slice_mut(..2 * half).unwrap();
    let (mut left, mut right) = whole.split_at(half).unwrap();
    left.copy_from(q.slice(half..2 * half).unwrap()).unwrap();
    right.copy_from(q.slice(..half).unwrap()).unwrap();
    let mut host = values.to_vec();
    left.download(&mut host[..half]).unwrap();
    right.download(&mut host[half..2 * half]).unwrap();
    assert_eq!(host[..half], values[half..2 * half]);
    assert_eq!(host[half..2 * half], values[..half]);
    // Within one buffer, by the device.
    left.copy_from(right.as_slice()).unwrap();
    left.download(&mut host[..half]).unwrap();
    assert_eq!(host[..half], values[..half]);
    host.copy_from_slice(values);
    q.write().unwrap().fill(values[0]);
    b.slice_mut(..1)
        .unwrap()
        .copy_from(q.slice(1..2).unwrap())
        .unwrap();
    b.download(&mut host).unwrap();
    assert_eq!((host[0], &host[1..]), (values[0], &values[1..]));
}

pub(crate) fn a_pool_copies_in_every_direction(target: &Target) {
    let pool = pool(target);
    for len in [2, 255, 1_000, target.large / 4 + 1] {
        let numbers = 0..len as u32;
        let f32s: Vec<f32> = numbers.clone().map(|n| n as f32 * 0.5).collect();
        let u8s: Vec<u8> = numbers.clone().map(|n| (n * 7) as u8).collect();
        let i16s: Vec<i16> = numbers.clone().map(|n| (n * 77) as i16).collect();
        let u64s: Vec<u64> = numbers.map(|n| u64::from(n) << 30).collect();
        round_trip(&pool, &f32s);
        round_trip(&pool, &u8s);
        round_trip(&pool, &i16s);
        round_trip(&pool, &u64s);
    }
    let stats = pool.stats();
    assert_eq!((stats.device.buffers, stats.pinned.buffers), (0, 0));
    assert!(pool.leaks().is_empty());
}

pub(crate) fn a_pool_keeps_count_and_gives_memory_back(target: &Target) {
    let pool = pool(target);
    // The copies and the first allocation may make the driver take something.
    drop(pool.device::<u8>(1, "first").unwrap());
    assert_eq!(pool.clear(), 256);
    let before = target.free_bytes();
    let lost = || Some(before?.saturating_sub(target.free_bytes()?));
    let len = target.large;
    let requested = 4 * len as u64;

    let buffer = pool.device::<u32>(len, "large").unwrap();
    let held = pool.stats().device;
    assert_eq!((held.buffers, held.requested_bytes), (1, requested));
    assert_eq!(held.held_bytes(), held.in_use_bytes);
    let bytes = held.in_use_bytes;
    assert!((requested..requested + requested / 4).contains(&bytes));
    lost().into_iter().for_each(|lost| assert_lost(lost, bytes));

    let address = buffer.view().address();
    drop(buffer);
    let free = pool.stats().device;
    assert_eq!((free.in_use_bytes, free.cached_bytes), (0, bytes));
    lost().into_iter().for_each(|lost| assert_lost(lost, bytes));
    let again = pool.device::<u32>(len, "again").unwrap();
    assert_eq!(again.view().address(), address, "the same allocation");
    drop(again);

    assert_eq!(pool.trim(Instant::now()), 0, "nothing is idle yet");
    assert_eq!(pool.trim(Instant::now() + Duration::from_secs(61)), bytes);
    assert_back(target, before);

    let pinned = pool.pinned::<u32>(len, "pinned").unwrap();
    drop(pinned);
    assert_eq!(pool.clear(), bytes);
    let stats = pool.stats();
    let (device, pinned) = (stats.device, stats.pinned);
    assert_eq!((device.hits, device.misses), (1, 2));
    assert_eq!((pinned.hits, pinned.misses), (0, 1));
    assert_eq!((device.held_bytes(), pinned.held_bytes()), (0, 0));
    assert_eq!(
        (device.held_bytes_peak, pinned.held_bytes_peak),
        (bytes, bytes)
    );

    // An allocation that a view still holds is parked: the driver keeps it.
    let buffer = pool.device::<u32>(len, "viewed").unwrap();
    let view = buffer.view();
    drop(buffer);
    assert_eq!(pool.clear(), 0);
    assert_eq!(pool.stats().device.parked_bytes, bytes);
    lost().into_iter().for_each(|lost| assert_lost(lost, bytes));
    drop(view);
    assert_eq!(pool.clear(), bytes);
    assert_back(target, before);
}
