//! The benchmark's own work on the card.

use crate::gpu::device;
use crate::target::turn;
use std::sync::Arc;
use std::time::Duration;
use tapeloop_bench::limits;
use tapeloop_bench::machine::describe;
use tapeloop_bench::measure::{Session, Settings};
use tapeloop_bench::point::{Axis, Point, PointSpace, Work};
use tapeloop_bench::record::{Outcome, Record};
use tapeloop_bench::runner::Machine;
use tapeloop_bench::synthetic::Synthetic;

fn session() -> Session {
    let backends = vec![device()];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
    Session {
        run: describe(&backends, String::new()),
        machine: Machine {
            backends,
            pool: Arc::new(pool.unwrap()),
        },
        settings: Settings {
            rounds: 1,
            repetition: Duration::from_millis(1),
            loads: vec![0.5],
            base_loads: vec![0.5],
        },
        references: Vec::new(),
    }
}

/// Small batches, odd sizes.
fn points(work: Work) -> Vec<Point> {
    let mut space = PointSpace::for_work(work, true);
    space.base.batch = 1_000;
    space.base.kernels = 5;
    space.batches = vec![1, 257, 5_000];
    space.kernels = vec![1, 2, 7];
    space.one_at_a_time(&Axis::ALL)
}

fn measure(session: &mut Session, points: &[Point]) -> Vec<Record> {
    let benchmark = |point: &Point| Arc::new(Synthetic::for_point(point).unwrap());
    session.measure(points, benchmark, |_, _, _| true)
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_work_comes_out_right_by_every_policy_and_front() {
    let _turn = turn();
    let mut session = session();
    for work in [Work::Launch, Work::Copy, Work::Compute] {
        let points = points(work);
        let records = measure(&mut session, &points);
        assert_eq!(records.len(), points.len());
        for (record, point) in records.iter().zip(points) {
            match &record.outcome {
                Outcome::Measured(figures) => assert!(figures.period_ns[0] > 0.0),
                Outcome::Refused(reason) => panic!("{point}: {reason}"),
            }
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn limits_are_those_of_a_card() {
    let _turn = turn();
    let session = session();
    let limits = limits::measure(&session.machine).unwrap();
    let within = |value: Option<f64>, low: f64, high: f64| {
        let value = value.expect("a card has it");
        assert!((low..high).contains(&value), "{value} in {limits:?}");
    };
    // From an old card in a slow slot to what is not built yet.
    within(limits.upload_bytes_per_s, 1e9, 1e12);
    within(limits.download_bytes_per_s, 1e9, 1e12);
    within(limits.device_bytes_per_s, 5e10, 1e14);
    within(limits.fma_per_s, 1e11, 1e16);
    within(limits.launch_ns, 100.0, 1e6);
    within(limits.graph_launch_ns, 100.0, 1e6);
}
