//! Engines with a timeline: what comes out is the same, and times are where the
//! host had the batch in flight.

use super::mix::{Item, Mix, UNIFORMS, items};
use super::target::{Target, say};
use std::collections::BTreeMap;
use std::sync::Arc;
use tapeloop_conformance::program::policies;
use tapeloop_engine::pipeline::{Engine, EngineConfig, Span, SpanKind, TimelineConfig};
use tapeloop_engine::replay::Verify;
use tapeloop_engine::workload::{Completion, Extent};

/// What the device's clock may be off by the host's.
const OFF_NS_MAX: u64 = 100_000;

pub(crate) fn every_sampled_batch_is_right_and_in_its_time(target: &Target) {
    let mut config = EngineConfig::new([200, 16]);
    config.buckets = [[60, 4], [200, 16]].map(Extent::from).to_vec();
    config.timeline = Some(TimelineConfig {
        every: 1,
        ..TimelineConfig::default()
    });
    for policy in policies() {
        config.policy = policy;
        // What is verified runs twice, and has no times.
        config.policy.verify = Verify::Off;
        let backends = [Arc::clone(&target.backend)];
        let pool = Arc::clone(&target.pool);
        let mut engine = Engine::new(Mix::new(), &backends, pool, &config).unwrap();
        let items: Vec<Item> = items(20 * target.rounds, 150);
        let mut seen = 0;
        let mut sink = |done: Completion<Mix>| {
            assert_eq!(done.result?, items[seen].output(UNIFORMS), "{policy:?}");
            seen += 1;
            Ok(())
        };
        engine.run(items.iter().cloned(), &mut sink).unwrap();
        assert_eq!(seen, items.len());
        let timeline = engine.timeline().unwrap();
        let flights: BTreeMap<u64, Span> = timeline
            .spans
            .iter()
            .filter(|span| span.kind == SpanKind::Flight)
            .map(|span| (span.batch, *span))
            .collect();
        assert_eq!(flights.len() as u64, timeline.batches);
        let of_device = timeline
            .spans
            .iter()
            .filter(|span| span.kind.is_of_device());
        let mut timed = 0;
        for span in of_device {
            let flight = &flights[&span.batch];
            let from = flight.start_ns.saturating_sub(OFF_NS_MAX);
            let to = flight.end_ns + OFF_NS_MAX;
            let inside = from <= span.start_ns && span.end_ns <= to;
            assert!(inside, "{policy:?}: {span:?} in {flight:?}");
            timed += 1;
        }
        let device = target.backend.device().backend;
        // The simulated device counts steps.
        if device != "sim" {
            assert_eq!(timed, 3 * timeline.batches, "{policy:?}");
            let statistics = engine.statistics();
            let overlap = statistics.device_overlap.unwrap();
            say(&format!(
                "{device}: {} overlap {overlap:.2}",
                statistics.sentence()
            ));
        }
    }
}
