//! `tapeloop bench` measures what is right, and refuses or flags what is not.

use crate::measured::{figures, measure, session, small};
use crate::tamper::Tamper;
use std::sync::Arc;
use tapeloop_bench::machine::describe;
use tapeloop_bench::point::{Axis, Front, POINTS_MAX, Point, PointSpace, Work, check_count};
use tapeloop_bench::record::{self, Outcome, Record};
use tapeloop_bench::reference::ReferenceProgram;
use tapeloop_bench::synthetic::Synthetic;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::replay::{Mode, Policy};

fn refusal(record: &Record) -> &str {
    match &record.outcome {
        Outcome::Refused(reason) => reason,
        Outcome::Measured(_) => panic!("{:?} was measured", record.point),
    }
}

#[test]
fn every_front_mode_and_workload_is_measured() {
    let base = small();
    let fronts = Front::ALL.map(|front| Point { front, ..base });
    let stream = Point {
        policy: Policy::new(Mode::Stream),
        ..base
    };
    let mixed = Point {
        buckets: 3,
        is_mixed: true,
        axis: Some(Axis::Buckets),
        ..base
    };
    let works = [Work::Copy, Work::Compute].map(|work| Point { work, ..base });
    let points = [&fronts[..], &[stream, mixed], &works].concat();
    let mut session = session(&Arc::default());
    let records = measure(&mut session, &points);
    assert_eq!(records.len(), points.len());
    for record in &records {
        let figures = figures(record);
        assert_eq!(figures.period_ns.len(), 3);
        assert_eq!(figures.host_ns.len(), 3);
        assert!(figures.period_ns.iter().all(|ns| *ns > 0.0));
        assert!(figures.closed.count >= 3 * 2 && figures.closed.p50_ns > 0);
        assert!(figures.amounts.fma > 0.0);
        let is_ring = record.point.front == "ring";
        assert_eq!(figures.stages.is_some(), is_ring, "{:?}", record.point);
        assert_eq!(figures.open.is_empty(), !is_ring);
    }
    let measured = |index: usize| (&records[index].point, figures(&records[index]));
    let (point, base) = measured(0);
    assert_eq!(
        (point.kernels, point.upload_bytes, point.download_bytes),
        (3, 400, 400)
    );
    // Launch and mark.
    assert_eq!(base.calls, 2.0);
    assert_eq!(
        base.open.iter().map(|open| open.load).collect::<Vec<_>>(),
        [0.3, 0.6]
    );
    assert!(!base.spans.is_empty());
    let (_, stream) = measured(3);
    // Upload, three kernels, download, mark.
    assert_eq!(stream.calls, 6.0);
    let (_, mixed) = measured(4);
    assert!(mixed.amounts.fma < base.amounts.fma && mixed.spans.is_empty());
    let (copy, _) = measured(5);
    assert_eq!((copy.upload_bytes, copy.download_bytes), (800, 400));
    let (compute, _) = measured(6);
    assert_eq!((compute.kernels, compute.rounds), (1, 3));
}

#[test]
fn points_at_the_ends_of_their_settings_are_measured_or_refused() {
    let empty = Point {
        batch: 0,
        ..small()
    };
    // There are seven halves of 100.
    let many = Point {
        buckets: usize::MAX,
        ..small()
    };
    let records = measure(&mut session(&Arc::default()), &[empty, many]);
    assert!(refusal(&records[0]).starts_with("batch = 0"));
    figures(&records[1]);
}

#[test]
fn a_kernel_that_is_skipped_is_refused_on_every_front() {
    let tamper = Arc::new(Tamper::default());
    tamper.skip_kernels();
    let points = Front::ALL.map(|front| Point { front, ..small() });
    let long = Point {
        work: Work::Compute,
        ..small()
    };
    let points = [&points[..], &[long]].concat();
    let right = measure(&mut session(&Arc::default()), &points);
    for (record, right) in measure(&mut session(&tamper), &points).iter().zip(&right) {
        let reason = refusal(record);
        assert!(reason.starts_with("wrong outputs"), "{reason}");
        assert!(reason.contains("output 0 is "), "{reason}");
        // By these, a comparison with another run finds the point.
        assert_eq!(record.point, right.point);
    }
}

#[test]
fn a_graph_whose_launches_do_nothing_is_refused() {
    let tamper = Arc::new(Tamper::default());
    let mut session = session(&tamper);
    figures(&measure(&mut session, &[small()])[0]);
    tamper.skip_launches_after(0);
    let points = [Front::Ring, Front::Pipeline].map(|front| Point { front, ..small() });
    for record in measure(&mut session, &points) {
        assert!(
            refusal(&record).starts_with("wrong outputs"),
            "{}",
            refusal(&record)
        );
    }
}

#[test]
fn a_result_that_is_wrong_only_in_the_timed_loop_is_refused() {
    // The results are right in the first check, and wrong at the end of the timed loop.
    let tamper = Arc::new(Tamper::default());
    tamper.skip_launches_after(20);
    let record = &measure(&mut session(&tamper), &[small()])[0];
    assert!(
        refusal(record).starts_with("wrong outputs"),
        "{}",
        refusal(record)
    );
}

#[test]
fn other_programs_are_asked_between_repetitions_and_compared() {
    let program = |name: &str, hash: &str| {
        let script = format!(
            "echo hello name={name} version=1; while read line; do case $line in \
             period*workload=chain*n=100*stride=1*kernels=3*slots=2*mode=graph*millis=2) \
             echo ok period_ns=50.5 hash={hash};; *) echo no reason=not_asked_so;; esac; done"
        );
        ReferenceProgram::start(&["sh".to_owned(), "-c".to_owned(), script]).unwrap()
    };
    // The test computes the hash FNV-1a of the outputs by itself.
    let outputs = (0..2_u64).flat_map(|slot| {
        (0..100_u64).map(move |i| {
            let x = ((i * 7 + slot * 13) % 1021) as f32;
            ((x * 2.0 + 1.0) * 0.5 + 1.0) * 2.0 + 1.0
        })
    });
    let hash = outputs
        .flat_map(f32::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
    let mut session = session(&Arc::default());
    session.references = vec![
        program("one", &format!("{hash:016x}")),
        program("two", "00"),
    ];
    let records = measure(&mut session, &[small()]);
    let figures = figures(&records[0]);
    let [right, wrong] = &figures.references[..] else {
        panic!("{:?}", figures.references);
    };
    assert_eq!(right.name, "one 1");
    assert_eq!(right.period_ns, [50.5; 3]);
    assert_eq!((right.agrees, wrong.agrees), (Some(true), Some(false)));
    assert!(figures.flags.iter().any(|flag| flag.contains("two 1")));
}

#[test]
fn the_default_points_are_few_and_each_is_there_once() {
    for on_device in [false, true] {
        let points_of = |work| PointSpace::for_work(work, on_device).one_at_a_time(&Axis::ALL);
        let points: Vec<Point> = Work::ALL.into_iter().flat_map(points_of).collect();
        assert!(
            (60..=POINTS_MAX).contains(&points.len()),
            "{}",
            points.len()
        );
        check_count(points.len()).unwrap();
        for (index, point) in points.iter().enumerate() {
            assert!(point.is_legal(), "{point}");
            let same = |other: &Point| other.facts() == point.facts();
            assert!(!points[..index].iter().any(same), "twice: {point}");
        }
        for axis in Axis::ALL {
            assert!(
                points.iter().any(|point| point.axis == Some(axis)),
                "{axis:?}"
            );
        }
    }
    assert!(check_count(POINTS_MAX + 1).is_err());
}

#[test]
fn a_product_holds_every_legal_combination_once() {
    let space = PointSpace::for_work(Work::Compute, false);
    let points = space.product(&[Axis::Mode, Axis::Slots, Axis::Kernels]);
    assert_eq!(
        points.len(),
        space.modes.len() * space.slots.len() * space.kernels.len()
    );
    let all = PointSpace::for_work(Work::Launch, false).product(&Axis::ALL);
    assert!(all.len() > 1_000 && all.iter().all(Point::is_legal));
}

#[test]
fn a_run_that_is_ended_keeps_what_it_measured() {
    let mut session = session(&Arc::default());
    let points = [
        small(),
        Point {
            slots: 1,
            ..small()
        },
    ];
    let benchmark = |point: &Point| Arc::new(Synthetic::for_point(point).unwrap());
    let records = session.measure(&points, benchmark, |number, _, _| number < 1);
    assert_eq!(records.len(), 1);
    assert_eq!(figures(&records[0]).period_ns.len(), 1);
}

#[test]
fn points_take_turns_back_and_forth_so_that_none_always_follows_the_same_other() {
    let mut session = session(&Arc::default());
    session.settings.rounds = 4;
    let points = [1, 2, 3].map(|slots| Point { slots, ..small() });
    let benchmark = |point: &Point| Arc::new(Synthetic::for_point(point).unwrap());
    let mut order = Vec::new();
    let go_on = |number, all, point: &Point| {
        assert_eq!((number, all), (order.len(), 12));
        order.push(point.slots);
        true
    };
    let records = session.measure(&points, benchmark, go_on);
    assert_eq!(order, [1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1]);
    // Each repetition counts for its own point.
    for (record, point) in records.iter().zip(&points) {
        assert_eq!(record.point.slots, point.slots);
        assert_eq!(figures(record).period_ns.len(), 4);
    }
}

#[test]
fn a_history_is_read_as_it_was_written_and_grows() {
    let mut session = session(&Arc::default());
    let records = measure(&mut session, &[small()]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    record::append(&path, &records).unwrap();
    record::append(&path, &records).unwrap();
    let read = record::read(&path).unwrap();
    assert!(read == [&records[..], &records].concat());
    std::fs::write(&path, "{}\n").unwrap();
    let error = record::read(&path).unwrap_err().to_string();
    assert!(error.contains("history.jsonl, line 1"), "{error}");
    assert!(record::read(&folder.path().join("none")).is_err());
}

#[test]
fn pipelines_and_engines_use_all_devices_and_a_ring_the_first() {
    let mut session = session(&Arc::default());
    let another: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
    session.machine.backends.push(another);
    let name = session.machine.first().device().name.clone();
    let run = describe(&session.machine.backends, String::new());
    assert_eq!(run.device, format!("2 x {name}"));
    let points = Front::ALL.map(|front| Point { front, ..small() });
    let records = measure(&mut session, &points);
    assert_eq!(records.len(), Front::ALL.len());
    for (record, front) in records.iter().zip(Front::ALL) {
        // Each repetition has at least one batch for each slot.
        let devices = if front == Front::Ring { 1 } else { 2 };
        let figures = figures(record);
        let repetitions = figures.period_ns.len();
        let least = small().slots * devices * repetitions;
        assert!(figures.batches >= least as u64, "{front:?}");
    }
}
