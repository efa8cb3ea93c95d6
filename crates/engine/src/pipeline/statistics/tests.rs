use super::super::meter::{BusyTime, Meter, StartTimes};
use super::*;
use std::time::Instant;

const OWN: StageThreads = StageThreads::Own { workers: 0 };

/// Statistics of a second with these shares, in percent: filling, stalled, device, unpacking,
/// output.
fn statistics_of(shares: [u64; 5], threads: StageThreads) -> Statistics {
    let [fill_ns, stall_ns, device_ns, unpack_ns, output_ns] =
        shares.map(|share| share * 10_000_000);
    let start = Instant::now();
    // Two batches at a time.
    let busy = |ns: u64| busy(start, Duration::from_nanos(ns), 2);
    let submitted = Submitted {
        first: Some(start),
        closed: busy(fill_ns + stall_ns),
        stalled: busy(stall_ns),
        starting: busy(fill_ns),
        ..Submitted::default()
    };
    let finished = Finished {
        flight: busy(device_ns),
        unpacking: busy(unpack_ns),
        last: Some(start + Duration::from_secs(1)),
        ..Finished::default()
    };
    let counters = Counters {
        output_ns,
        ..Counters::default()
    };
    statistics(submitted, finished, &counters, 3, 1, threads)
}

/// The time of `batches` at once.
fn busy(start: Instant, time: Duration, batches: usize) -> BusyTime {
    let mut busy = BusyTime::default();
    (0..batches).for_each(|_| busy.add(start, start + time));
    busy
}

/// A batch that closed, was written from `started_at` on, and was submitted at once.
fn give(meter: &Meter, slot: usize, closed_at: Instant, started_at: Instant, filled_at: Instant) {
    let start = StartTimes {
        closed_at,
        slot_at: started_at,
        started_at,
        filled_at,
    };
    meter.note_submitted(slot, &start, filled_at);
}

#[test]
fn each_device_has_its_own_time_and_the_only_one_has_the_sum() {
    let at_once = |devices: usize| {
        let (meter, start) = (Meter::new(4, devices), Instant::now());
        let at = |ms: u64| start + Duration::from_millis(ms);
        for (slot, until) in [(0, 40), (1, 60), (3, 100)] {
            give(&meter, slot, at(0), at(0), at(20));
            meter.note_batch_finished(slot, at(20), at(until));
        }
        meter.statistics(&Counters::default(), OWN)
    };
    let one = at_once(1);
    let [device] = one.devices[..] else {
        panic!("{one:?}");
    };
    assert_eq!(device.time, one.device);
    assert_eq!(
        (device.slots, device.slots_in_flight),
        (4, one.slots_in_flight)
    );
    let two = at_once(2);
    let busy = two
        .devices
        .iter()
        .map(|device| device.time.busy_ns / 1_000_000);
    assert_eq!(busy.collect::<Vec<_>>(), [40, 80]);
    assert_eq!(two.device.busy_ns, 80_000_000);
    let batches = two
        .devices
        .iter()
        .map(|device| (device.time.batches, device.slots));
    assert_eq!(batches.collect::<Vec<_>>(), [(2, 2), (1, 2)]);
    let in_flight: f64 = two
        .devices
        .iter()
        .map(|device| device.slots_in_flight)
        .sum();
    assert!((in_flight - two.slots_in_flight).abs() < 1e-9);
    assert_eq!(two.slots_in_flight, one.slots_in_flight);
}

#[test]
fn a_batch_waits_for_a_slot_also_while_others_are_written() {
    let (meter, start) = (Meter::new(2, 1), Instant::now());
    let at = |ms: u64| start + Duration::from_millis(ms);
    // The second closes at 5 ms, and has a slot from 30 ms on.
    give(&meter, 0, at(0), at(0), at(20));
    give(&meter, 1, at(5), at(30), at(50));
    meter.note_batch_finished(0, at(20), at(60));
    meter.note_batch_finished(1, at(50), at(100));
    let statistics = meter.statistics(&Counters::default(), OWN);
    let ms = |time: StageTime| time.busy_ns / 1_000_000;
    assert_eq!((ms(statistics.fill), ms(statistics.stall)), (40, 25));
}

/// Statistics of a second in which workers write and read batches: the time without a batch that waits
/// for a slot, and the average numbers of slots that wait for a worker to be written, are written, in
/// flight, wait to be read, and are read.
fn by_workers(stall_ms: u64, slots: [u64; 5]) -> Statistics {
    let start = Instant::now();
    let busy = |slots| busy(start, Duration::from_millis(900), slots as usize);
    let [to_write, written, in_flight, to_read, read] = slots;
    let mut stalled = BusyTime::default();
    stalled.add(start, start + Duration::from_millis(stall_ms));
    let submitted = Submitted {
        first: Some(start),
        closed: busy(1),
        stalled,
        starting: busy(written),
        worker: Duration::from_millis(1 + 900 * to_write),
        handed_over: 1,
        ..Submitted::default()
    };
    let finished = Finished {
        flight: busy(in_flight),
        unpacking: busy(read),
        worker: Duration::from_millis(900 * to_read),
        last: Some(start + Duration::from_secs(1)),
        ..Finished::default()
    };
    let threads = StageThreads::Own { workers: 4 };
    statistics(submitted, finished, &Counters::default(), 8, 1, threads)
}

#[test]
fn what_holds_the_slots_bounds_while_batches_wait_for_one() {
    for (stall_ms, slots, bound) in [
        (950, [0, 1, 6, 0, 1], Stage::Device),
        (950, [3, 3, 1, 0, 1], Stage::Fill),
        (950, [0, 5, 2, 0, 1], Stage::Fill),
        (950, [0, 2, 2, 3, 1], Stage::Unpack),
        // Several are written nearly all the time, and the next could be too.
        (50, [0, 4, 2, 0, 1], Stage::Input),
    ] {
        let found = by_workers(stall_ms, slots);
        assert_eq!(found.bound, Some(bound), "{slots:?}");
    }
    let found = by_workers(950, [1, 3, 2, 1, 1]);
    let near = |value: f64, expected: f64| (value - expected).abs() < 0.01;
    assert!(near(found.slots_filling, 2.7) && near(found.slots_unpacking, 0.9));
    assert!(near(found.slots_awaiting_worker, 1.8), "{found:?}");
    assert_eq!(found.workers, 4);
}

#[test]
fn what_stage_one_mostly_does_says_what_bounds() {
    for (shares, bound) in [
        ([23, 75, 97, 10, 0], Stage::Device),
        ([95, 2, 40, 10, 0], Stage::Fill),
        ([57, 42, 95, 20, 0], Stage::Device),
        ([20, 70, 50, 98, 0], Stage::Unpack),
        ([20, 70, 50, 30, 65], Stage::Output),
        ([20, 70, 60, 50, 45], Stage::Unpack),
        ([5, 2, 60, 3, 0], Stage::Input),
    ] {
        assert_eq!(statistics_of(shares, OWN).bound, Some(bound), "{shares:?}");
    }
    // What is left to do at the end of a short run is not what held it up.
    let short = statistics_of([67, 0, 1, 31, 0], OWN);
    let bound = short.find_bound(OWN, 310_000_000, HeldTime::default());
    assert_eq!(bound, Stage::Fill);
    // One thread that unpacks most of the time waits for no items meanwhile.
    let shares = [10, 5, 40, 80, 0];
    assert_eq!(statistics_of(shares, OWN).bound, Some(Stage::Input));
    assert_eq!(
        statistics_of(shares, StageThreads::Caller).bound,
        Some(Stage::Unpack)
    );
}

#[test]
fn input_does_not_bound_while_its_threads_compute_batches() {
    for (shares, bound) in [
        ([1, 2, 95, 3, 0], Stage::Input),
        ([15, 2, 95, 3, 0], Stage::Device),
        ([40, 2, 50, 3, 0], Stage::Input),
    ] {
        let mut statistics = statistics_of(shares, OWN);
        assert_eq!(statistics.bound, Some(Stage::Input), "{shares:?}");
        statistics.set_on_cpu();
        assert_eq!(statistics.bound, Some(bound), "{shares:?}");
    }
    let mut filling = statistics_of([95, 2, 97, 10, 0], OWN);
    filling.set_on_cpu();
    assert_eq!(filling.bound, Some(Stage::Fill));
}

#[test]
fn the_time_of_verification_counts_for_no_stage() {
    let start = Instant::now();
    let busy = |ms: u64| busy(start, Duration::from_millis(ms), 1);
    // It happens while a batch is submitted.
    let submitted = Submitted {
        first: Some(start),
        closed: busy(4_980),
        stalled: busy(750),
        starting: busy(4_230),
        ..Submitted::default()
    };
    let finished = Finished {
        flight: busy(4_970),
        last: Some(start + Duration::from_secs(5)),
        ..Finished::default()
    };
    let counters = Counters {
        verify_ns: 4_000_000_000,
        ..Counters::default()
    };
    let found = statistics(submitted, finished, &counters, 3, 1, OWN);
    assert_eq!(found.wall_ns, 1_000_000_000);
    assert_eq!((found.fill.share, found.device.share), (0.23, 0.97));
    assert_eq!(found.bound, Some(Stage::Device));
}

#[test]
fn the_sentence_names_what_bounds_and_the_stages_beside_it() {
    let has = |sentence: String, parts: &[&str]| {
        for part in parts {
            assert!(sentence.contains(part), "{sentence} lacks {part}");
        }
    };
    let sentence = |shares| statistics_of(shares, OWN).sentence();
    has(
        sentence([23, 75, 97, 10, 0]),
        &["device-bound", "97%", "filling 23%", "unpacking 10%"],
    );
    has(
        sentence([5, 2, 60, 3, 0]),
        &[
            "input-bound",
            "93%",
            "filling 5%",
            "device 60%",
            "unpacking 3%",
        ],
    );
    let sentence = |shares| {
        let statistics = Statistics {
            on_cpu: true,
            ..statistics_of(shares, OWN)
        };
        statistics.sentence()
    };
    has(
        sentence([23, 75, 97, 10, 0]),
        &["compute-bound", "97%", "filling 23%", "unpacking 10%"],
    );
    has(
        sentence([5, 2, 60, 3, 0]),
        &[
            "input-bound",
            "93%",
            "filling 5%",
            "computing 60%",
            "unpacking 3%",
        ],
    );
    let none = Meter::new(3, 1).statistics(&Counters::default(), OWN);
    assert_eq!(none.bound, None);
    has(none.sentence(), &["no batch"]);
}

#[test]
fn what_is_left_after_the_last_batch_was_given_is_no_wait_for_items() {
    let (meter, start) = (Meter::new(2, 1), Instant::now());
    let at = |ms: u64| start + Duration::from_millis(ms);
    give(&meter, 0, at(0), at(0), at(1));
    meter.note_batch_finished(0, at(1), at(100));
    let statistics = meter.statistics(&Counters::default(), OWN);
    assert_eq!(statistics.bound, Some(Stage::Device));
    assert_eq!(statistics.input.busy_ns, 0);
}

#[test]
fn slots_in_flight_and_overlap_are_integrals_over_the_wall_time() {
    let statistics = statistics_of([20, 70, 50, 30, 0], OWN);
    assert!((statistics.slots_in_flight - 1.0).abs() < 1e-9);
    assert!((statistics.overlap - 1.0).abs() < 1e-9);
}

#[test]
fn batches_in_flight_are_summed_by_slot_and_as_busy_time_once() {
    let (meter, start) = (Meter::new(2, 1), Instant::now());
    let at = |ms: u64| start + Duration::from_millis(ms);
    give(&meter, 0, at(0), at(0), at(10));
    give(&meter, 1, at(10), at(10), at(30));
    meter.note_batch_finished(0, at(10), at(40));
    meter.note_batch_finished(1, at(30), at(50));
    give(&meter, 0, at(60), at(60), at(60));
    meter.note_batch_finished(0, at(60), at(100));
    let statistics = meter.statistics(&Counters::default(), OWN);
    let ms = |ns: u64| ns / 1_000_000;
    assert_eq!(
        (ms(statistics.wall_ns), ms(statistics.device.busy_ns)),
        (100, 80)
    );
    assert!((statistics.slots_in_flight - 0.9).abs() < 1e-9);
    assert_eq!(statistics.device.batches, 3);
    let latencies = &statistics.batch_latency;
    assert_eq!(latencies.count(), 3);
    let near = |ns: u64, ms: u64| ns.abs_diff(ms * 1_000_000) <= ms * 10_000;
    assert!(near(latencies.quantile_ns(0.0), 20));
    assert!(near(latencies.quantile_ns(0.5), 30));
    assert!(near(latencies.max_ns(), 40), "{latencies:?}");
}

#[test]
fn a_latency_beyond_the_longest_counts_as_the_longest() {
    let mut latencies = Latencies::new();
    latencies.add(Duration::ZERO);
    latencies.add(Duration::MAX);
    assert_eq!((latencies.count(), latencies.quantile_ns(0.5)), (2, 1));
    assert!(latencies.max_ns().abs_diff(LATENCY_NS_MAX) < LATENCY_NS_MAX / 100);
}

#[test]
fn a_batch_in_flight_counts_up_to_now() {
    let meter = Meter::new(2, 1);
    let start = Instant::now();
    give(&meter, 1, start, start, start);
    let so_far = meter.statistics(&Counters::default(), OWN);
    assert!(so_far.device.busy_ns > 0);
    assert_eq!(so_far.device.batches, 0);
    let later = meter.statistics(&Counters::default(), OWN);
    assert!(later.device.busy_ns > so_far.device.busy_ns);
}
