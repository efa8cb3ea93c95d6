//! An engine on several worker processes.

use super::*;

/// An engine on two workers.
fn engine(config: &EngineConfig) -> ([Arc<WorkerBackend>; 2], Engine<Scale>) {
    let workers = [open(), open()];
    let backends = workers.each_ref().map(|(_, backend)| Arc::clone(backend));
    let engine = Engine::new(Scale::new(2.0), &backends, pool(), config).unwrap();
    (workers.map(|(worker, _)| worker), engine)
}

/// Runs all items, and calls `at` with the number of each that has come back.
fn run(engine: &mut Engine<Scale>, items: &[Vec<f32>], mut at: impl FnMut(usize)) {
    let mut back = 0;
    let mut sink = |done: Completion<Scale>| -> Result<()> {
        assert_eq!(done.item, items[back], "in order");
        assert_eq!(done.result?.0, doubled(&items[back]));
        back += 1;
        at(back);
        Ok(())
    };
    engine.run(items.to_vec().into_iter(), &mut sink).unwrap();
    assert_eq!(back, items.len());
}

#[test]
fn one_of_two_workers_that_is_killed_in_a_run_costs_nothing_but_a_restart() {
    let ([first, second], mut engine) = engine(&EngineConfig::new([64, 8]));
    let [kept, killed] = [&first, &second].map(|worker| worker.process_id().unwrap());
    assert_ne!(kept, killed);
    run(&mut engine, &vectors(4_000), |back| {
        if back == 700 {
            kill(killed);
        }
    });
    assert_eq!(first.process_id(), Some(kept));
    assert_ne!(second.process_id(), Some(killed), "it was started again");
    let (counters, statistics) = (engine.counters(), engine.statistics());
    assert!(counters.restarts >= 1, "{counters:?}");
    assert_eq!((counters.batches_failed, counters.items_rejected), (0, 0));
    for own in &statistics.devices {
        assert!(own.time.batches > 0 && !own.is_lost, "{statistics:?}");
    }
}

#[test]
fn the_batches_of_a_worker_that_cannot_be_restarted_run_on_the_other() {
    let mut config = EngineConfig::new([64, 8]);
    config.restarts_max = 0;
    let ([first, second], mut engine) = engine(&config);
    let killed = second.process_id().unwrap();
    run(&mut engine, &vectors(4_000), |back| {
        if back == 700 {
            kill(killed);
        }
    });
    let (counters, statistics) = (engine.counters(), engine.statistics());
    assert_eq!((counters.restarts, counters.items_rejected), (0, 0));
    assert!(first.process_id().is_some());
    let lost = statistics.devices.iter().map(|own| own.is_lost);
    assert_eq!(lost.collect::<Vec<_>>(), [false, true]);
    // The engine goes on with what is left, and ends with its last device.
    run(&mut engine, &vectors(200), |_| {});
    kill(first.process_id().unwrap());
    let mut sink = |_: Completion<Scale>| Ok(());
    assert!(engine.run(vectors(2_000).into_iter(), &mut sink).is_err());
}
