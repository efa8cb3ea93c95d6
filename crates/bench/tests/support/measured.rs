//! A session on a CPU that may be tampered with, and small points.

use crate::forward::BackendHooks;
use crate::tamper::Tamper;
use std::sync::Arc;
use std::time::Duration;
use tapeloop_bench::machine::describe;
use tapeloop_bench::measure::{Session, Settings};
use tapeloop_bench::point::{Point, PointSpace, Work};
use tapeloop_bench::record::{Figures, Outcome, Record};
use tapeloop_bench::runner::Machine;
use tapeloop_bench::synthetic::Synthetic;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};

/// A session on a CPU that may be tampered with.
pub(crate) fn session(tamper: &Arc<Tamper>) -> Session {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let inner: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
    let backend = Arc::clone(tamper).around(inner);
    let backends = vec![backend];
    let run = describe(&backends, "# none\n".to_owned());
    Session {
        machine: Machine {
            backends,
            pool: Arc::new(pool.unwrap()),
        },
        settings: Settings {
            rounds: 3,
            repetition: Duration::from_millis(2),
            loads: vec![0.5],
            base_loads: vec![0.3, 0.6],
        },
        run,
        references: Vec::new(),
    }
}

pub(crate) fn small() -> Point {
    Point {
        batch: 100,
        kernels: 3,
        slots: 2,
        ..PointSpace::for_work(Work::Launch, false).base
    }
}

pub(crate) fn measure(session: &mut Session, points: &[Point]) -> Vec<Record> {
    let benchmark = |point: &Point| Arc::new(Synthetic::for_point(point).unwrap());
    session.measure(points, benchmark, |_, _, _| true)
}

pub(crate) fn figures(record: &Record) -> &Figures {
    match &record.outcome {
        Outcome::Measured(figures) => figures,
        Outcome::Refused(reason) => panic!("refused: {reason}"),
    }
}
