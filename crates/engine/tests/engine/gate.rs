//! A workload whose batches stay in their slots until a test lets them go on.

use crate::scale::Scale;
use crossbeam_channel::{Receiver, Sender, unbounded};
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use std::time::Duration;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{Close, Engine, EngineConfig, Ticket};

/// The first element of a vector whose batch stays in its slot until the test lets it go on.
pub(crate) const STAYS: f32 = -5.0;

/// The other end of the twin: when it has begun a batch that stays, and what lets it go on.
pub(crate) struct Gate {
    pub(crate) began: Receiver<()>,
    go_on: Sender<()>,
}

impl Gate {
    /// A workload that doubles vectors, and its gate.
    pub(crate) fn new() -> (Scale, Gate) {
        let ((begin, began), (go_on, gone_on)) = (unbounded(), unbounded::<()>());
        let scale = Scale::with(2.0, move |elements| {
            if elements.contains(&STAYS) {
                // The test may be over.
                let _ = begin.send(());
                let _ = gone_on.recv();
            }
        });
        (scale, Gate { began, go_on })
    }

    /// Fills a slot with a batch of `length` elements, which stays there until [`Gate::open`].
    pub(crate) fn occupy(&self, engine: &Engine<Scale>, length: usize) -> Ticket<Scale> {
        let ticket = engine.submit(vec![STAYS; length]).unwrap();
        engine.flush().unwrap();
        let began = self.began.recv_timeout(Duration::from_secs(60));
        began.expect("the batch is in a slot");
        ticket
    }

    pub(crate) fn open(&self) {
        self.go_on.send(()).unwrap();
    }
}

/// One slot, and batches of ten elements that close when they are full.
pub(crate) fn config() -> EngineConfig {
    let mut config = EngineConfig::new([10, 10]);
    (config.slots, config.close) = (1, Close::Full);
    config.batch_wait = Duration::from_secs(3600);
    config
}

pub(crate) fn engine(config: &EngineConfig) -> (Engine<Scale>, Gate) {
    // Two threads, as a batch that stays keeps one.
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let (scale, gate) = Gate::new();
    (Engine::new(scale, &[backend], pool, config).unwrap(), gate)
}
