//! Mode auto in an engine.

use super::*;

fn engine_config(mode: Mode) -> EngineConfig {
    let mut config = EngineConfig::new([64, 8]);
    config.buckets = [[16, 8], [64, 8]].map(Extent::from).to_vec();
    config.policy.mode = mode;
    config
}

#[test]
fn an_engine_chooses_once_a_device_and_bucket_and_says_so() {
    for devices in [1, 2] {
        let backends: Vec<_> = (0..devices)
            .map(|_| priced(self::devices()[0].clone(), slow_graphs))
            .collect();
        let each: Vec<Arc<dyn Backend>> = backends.iter().map(|(_, it)| Arc::clone(it)).collect();
        let config = engine_config(Mode::Auto);
        let mut engine = Engine::new(Scale::new(2.0), &each, pool(), &config).unwrap();
        assert_eq!(engine.chosen(), []);
        let items = vectors(400);
        let mut seen = 0;
        let mut sink = |done: Completion<Scale>| {
            assert_eq!(done.result?.0, doubled(&items[seen]));
            seen += 1;
            Ok(())
        };
        engine.run(items.iter().cloned(), &mut sink).unwrap();
        assert_eq!(seen, items.len());
        let chosen = engine.chosen();
        let places: Vec<_> = chosen.iter().map(|it| (it.device, it.bucket)).collect();
        assert!(places.is_sorted() && !places.is_empty());
        assert!(places.iter().all(|place| place.0 < devices), "{places:?}");
        assert!(chosen.iter().all(|it| it.way.mode == Mode::Stream));
        assert_eq!(engine.counters().tried_batches, chosen.len() as u64);
        drop(engine);
        assert!(backends.iter().all(|(tamper, _)| tamper.graphs() == 0));
    }
}

#[test]
fn what_a_trial_takes_is_in_no_statistic() {
    // Under a second of trial, and a hundredth of that for the batch.
    let (_, backend) = priced(devices()[0].clone(), slow_calls);
    let config = engine_config(Mode::Auto);
    let start = Instant::now();
    let mut engine = Engine::new(Scale::new(2.0), &[backend], pool(), &config).unwrap();
    let mut sink = |done: Completion<Scale>| done.result.map(drop);
    engine.run(vectors(1).into_iter(), &mut sink).unwrap();
    let (counters, statistics) = (engine.counters(), engine.statistics());
    let elapsed_ns = start.elapsed().as_nanos() as u64;
    assert_eq!((counters.batches, counters.tried_batches), (1, 1));
    assert!(counters.trial_ns > 0);
    for (what, ns) in [
        ("wall", statistics.wall_ns),
        ("device", statistics.device.busy_ns),
        ("submit", counters.submit_ns),
        ("compute", counters.compute_ns),
        ("latency", statistics.batch_latency.max_ns()),
    ] {
        // Together they are part of what went by; the trial is most of that.
        assert!(counters.trial_ns + ns <= elapsed_ns, "{what}: {ns} ns");
    }
    // What was replayed for it is of no batch.
    let mode = engine.chosen()[0].way;
    assert_eq!((mode, counters.driver_calls), (GRAPH, 2));
}
