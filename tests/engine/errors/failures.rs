//! Batches that fail and leave the engine running.

use super::*;

#[test]
fn a_twin_that_panics_fails_its_batch() {
    let engine = engine(&cpu(), &config());
    let error = ask(&engine, number(PANICS)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Kernel);
    check_alive(&engine, &error, ErrorScope::Batch);
}

#[test]
fn a_batch_that_comes_out_differently_fails_alone() {
    let mut config = config();
    config.policy.verify = Verify::First;
    for backend in [cpu(), sim(Vec::new()).1] {
        let engine = engine(&backend, &config);
        let error = ask(&engine, number(NOISY)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        check_alive(&engine, &error, ErrorScope::Batch);
    }
}

#[test]
fn calls_that_the_device_refuses_fail_their_batch() {
    for build in [Build::Capture, Build::Explicit] {
        let mut config = config();
        (config.policy.build, config.policy.fallback) = (build, Fallback::None);
        // The first submissions of a device zero nothing here: graph, then mark.
        for (fault, code, scope) in [
            (Fault::Submission { submission: 0 }, 701, ErrorScope::Batch),
            (Fault::Submission { submission: 1 }, 701, ErrorScope::Batch),
        ] {
            let (sim, backend) = sim(vec![fault]);
            let engine = engine(&backend, &config);
            let error = ask(&engine, number(5)).unwrap_err();
            assert_eq!(error.code(), Some(code), "{error}");
            check_alive(&engine, &error, scope);
            drop((engine, backend));
            assert_eq!((sim.violations(), sim.live()), (vec![], Live::default()));
        }
    }
}

#[test]
fn a_graph_that_cannot_be_made_fails_its_batches_alone() {
    let mut config = config();
    (config.policy.warm_up, config.policy.fallback) = (false, Fallback::None);
    config.slots = 1;
    for (fault, code) in [
        (Fault::Graph { graph: 0 }, 2),
        (Fault::Capture { capture: 0 }, 901),
    ] {
        let engine = engine(&sim(vec![fault]).1, &config);
        let error = ask(&engine, number(5)).unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
        check_alive(&engine, &error, ErrorScope::Graph);
    }
}

#[test]
fn a_capture_of_another_thread_fails_batches_and_loses_nothing() {
    let (mut failed, mut right) = (0, 0);
    for call in 0..120 {
        let calls = 1 + call % 40;
        let (sim, backend) = sim(vec![Fault::ForeignCapture { call, calls }]);
        let Ok(engine) = Engine::new(AddOne::new(), &[backend], pool(), &config()) else {
            // It was built meanwhile.
            continue;
        };
        for n in 0..12 {
            match ask(&engine, number(n)) {
                Ok(value) => {
                    assert_eq!(value, n + 1);
                    right += 1;
                }
                Err(error) => {
                    assert_eq!(error.code(), Some(900), "{error}");
                    failed += 1;
                }
            }
        }
        drop(engine);
        assert_eq!((sim.violations(), sim.live()), (vec![], Live::default()));
    }
    assert!(failed > 0 && right > 10 * failed, "{failed} of {right}");
}

/// Runs 1,000 batches of one item each, and returns the numbers of those that failed
/// with an error that `is_expected`.
fn thousand(
    backend: &Arc<dyn Backend>,
    config: &EngineConfig,
    item: impl Fn(u32) -> Item,
    is_expected: impl Fn(&Error) -> bool,
) -> Vec<u32> {
    let engine = engine(backend, config);
    let tickets: Vec<_> = (0..1000).map(|n| engine.submit(item(n)).unwrap()).collect();
    let mut failed = Vec::new();
    for (n, ticket) in (0..).zip(tickets) {
        match answer(ticket) {
            Ok(value) => assert_eq!(value, n + 1),
            Err(error) => {
                assert!(is_expected(&error), "{error}");
                failed.push(n);
            }
        }
    }
    assert_eq!(engine.counters().batches_failed, failed.len() as u64);
    check_alive(&engine, &Error::usage("none"), ErrorScope::Batch);
    failed
}

#[test]
fn of_a_thousand_batches_ten_that_differ_fail() {
    let mut config = config();
    config.policy.shadow_every = 1;
    let item = |n| number(if n % 100 == 50 { NOISY } else { n });
    let is_expected = |error: &Error| error.kind() == ErrorKind::Mismatch;
    let failed = thousand(&cpu(), &config, item, is_expected);
    assert!(failed.into_iter().eq((0..10).map(|k| 100 * k + 50)));
}

#[test]
fn of_a_thousand_batches_ten_that_are_refused_fail() {
    // Two submissions a batch: its graph and its mark; one more for each that failed.
    let submission = |k: u64| Fault::Submission {
        submission: 200 * k + 100,
    };
    let (sim, backend) = sim((0..10).map(submission).collect());
    let is_expected = |error: &Error| error.code() == Some(701);
    let failed = thousand(&backend, &config(), number, is_expected);
    assert_eq!(failed.len(), 10);
    drop(backend);
    assert_eq!((sim.violations(), sim.live()), (vec![], Live::default()));
}

#[test]
fn of_a_thousand_batches_ten_that_lack_memory_for_their_graph_fail() {
    // One graph at a time, so each change of the bucket makes one: small, large (which
    // fails), small again.
    let faults = (0..10).map(|k| Fault::Graph { graph: 2 * k + 1 });
    let (_, backend) = sim(faults.collect());
    let mut config = config();
    (config.slots, config.policy.ready_max) = (1, 1);
    config.policy.fallback = Fallback::None;
    config.batch = Extent::from([1]);
    config.buckets = vec![Extent::from([1]), Extent::from([64])];
    let item = |n| long(n, if n % 100 == 50 { 64 } else { 1 });
    let is_expected = |error: &Error| error.kind() == ErrorKind::OutOfMemory;
    let failed = thousand(&backend, &config, item, is_expected);
    assert!(failed.into_iter().eq((0..10).map(|k| 100 * k + 50)));
}
