//! The spans that a subscriber receives. A process of its own, since its subscriber listens to the
//! whole process.

use tapeloop_conformance::scale;

use parking_lot::Mutex;
use rayon::ThreadPoolBuilder;
use scale::{Scale, vectors};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tapeloop_conformance::program::Program;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Ring, Wait};
use tapeloop_engine::replay::Policy;
use tapeloop_engine::workload::{Completion, Extent};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A span's name and its fields.
type Seen = (&'static str, BTreeMap<&'static str, u64>);

/// Takes every span down, and how deep threads are in them.
#[derive(Clone, Default)]
struct Listener {
    spans: Arc<Mutex<Vec<Seen>>>,
    next: Arc<AtomicU64>,
    entered: Arc<AtomicU64>,
    exited: Arc<AtomicU64>,
}

struct Fields(BTreeMap<&'static str, u64>);

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        panic!("{field} is {value:?}, and no number");
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("tapeloop")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields(BTreeMap::new());
        attributes.record(&mut fields);
        let name = attributes.metadata().name();
        self.spans.lock().push((name, fields.0));
        Id::from_u64(self.next.fetch_add(1, Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {
        self.entered.fetch_add(1, Relaxed);
    }

    fn exit(&self, _: &Id) {
        self.exited.fetch_add(1, Relaxed);
    }
}

impl Listener {
    /// The fields of all spans of a name, in their order.
    fn of(&self, name: &str) -> Vec<BTreeMap<&'static str, u64>> {
        let spans = self.spans.lock();
        let named = spans.iter().filter(|(span_name, _)| *span_name == name);
        named.map(|(_, fields)| fields.clone()).collect()
    }
}

#[test]
fn every_stage_of_every_batch_has_its_span() {
    let listener = Listener::default();
    tracing::subscriber::set_global_default(listener.clone()).unwrap();
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let config = EngineConfig::new([100, 100]);
    let backends = [Arc::clone(&backend)];
    let shared = Arc::clone(&pool);
    let mut engine = Engine::new(Scale::new(2.0), &backends, pool, &config).unwrap();
    for (name, count) in [("build", 1), ("record", 1), ("memory", 1), ("graphs", 3)] {
        assert_eq!(listener.of(name).len(), count, "{name}");
    }
    let mut sink = |done: Completion<Scale>| done.result.map(drop);
    engine.run(vectors(50).into_iter(), &mut sink).unwrap();
    let batches = engine.counters().batches;
    drop(engine);
    for name in ["fill", "submit", "complete", "unpack"] {
        let spans = listener.of(name);
        // The thread that submits and the device's thread both start batches, so that a batch may
        // overtake the one before it.
        let mut numbers: Vec<u64> = spans.iter().map(|fields| fields["batch"]).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..batches), "{name}: {spans:?}");
        let items: u64 = spans.iter().map(|fields| fields["items"]).sum();
        assert_eq!(items, 50, "{name}");
        assert!(spans.iter().all(|fields| fields["slot"] < 3), "{name}");
    }

    // The batch, and then all buckets.
    let large = EngineConfig::new([1 << 20, 100]);
    drop(Engine::new(Scale::new(2.0), &backends, Arc::clone(&shared), &large).unwrap());
    assert_eq!(listener.of("record").len(), 3);

    let program = Program::new();
    let policy = Policy::default();
    let mut ring = Ring::<()>::new(&backend, &program.buckets, 1, &policy, Wait::Block).unwrap();
    let mut slot = ring.acquire().unwrap();
    let bindings = slot.bindings(0).unwrap();
    slot.rebind(0, bindings).unwrap();
    assert_eq!(listener.of("rebind").len(), 1);
    ring.submit(slot, Extent::from([1]), ()).unwrap();
    let before = listener.of("wait").len();
    assert!(ring.wait().unwrap().is_ok());
    assert_eq!(listener.of("wait").len(), before + 1);
    assert_eq!(
        listener.entered.load(Relaxed),
        listener.exited.load(Relaxed)
    );
}
