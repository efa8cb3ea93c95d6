//! An engine on several worker processes.

use super::*;

/// An engine on two workers.
fn engine(config: &EngineConfig) -> ([Arc<WorkerBackend>; 2], Engine<Scale>) {
    let workers = [open(), open()];
    let backends = workers.each_ref().map(|(_, backend)| Arc::clone(backend));
    let engine = Engine::new(Scale::new(2.0), &backends, pool(), config).unwrap();
    (workers.map(|(worker, _)| worker), engine)
}

/// Two workers, of which the second cannot be restarted.
fn workers_with_one_start_of_the_second() -> [Arc<WorkerBackend>; 2] {
    // Another name of this program, which is gone when the worker is to be restarted.
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("worker");
    std::os::unix::fs::symlink(std::env::current_exe().unwrap(), &name).unwrap();
    let second = Arc::new(
        WorkerBackend::open(WorkerOptions {
            // SAFETY: it is this program, which serves.
            program: Some(unsafe { WorkerProgram::new(&name) }),
            ..options()
        })
        .unwrap(),
    );
    [open().0, second]
}

/// An engine on two workers, of which the second cannot be restarted.
fn engine_with_one_start_of_the_second() -> ([Arc<WorkerBackend>; 2], Engine<Scale>) {
    let workers = workers_with_one_start_of_the_second();
    let backends = (workers.each_ref()).map(|worker| Arc::clone(worker) as Arc<dyn Backend>);
    let config = EngineConfig::new([64, 8]);
    let engine = Engine::new(Scale::new(2.0), &backends, pool(), &config).unwrap();
    (workers, engine)
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
    engine.run(items.iter().cloned(), &mut sink).unwrap();
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
    assert_ne!(second.process_id(), Some(killed), "it was restarted");
    let (counters, statistics) = (engine.counters(), engine.statistics());
    assert!(counters.restarts >= 1, "{counters:?}");
    assert_eq!((counters.batches_failed, counters.items_rejected), (0, 0));
    for own in &statistics.devices {
        assert!(own.time.batches > 0 && !own.is_lost, "{statistics:?}");
    }
}

#[test]
fn the_batches_of_a_worker_that_cannot_be_started_again_run_on_the_other() {
    let ([first, second], mut engine) = engine_with_one_start_of_the_second();
    let killed = second.process_id().unwrap();
    run(&mut engine, &vectors(4_000), |back| {
        if back == 700 {
            kill(killed);
        }
    });
    let (counters, statistics) = (engine.counters(), engine.statistics());
    assert_eq!((counters.restarts, counters.batches_failed), (0, 0));
    assert_eq!(counters.items_rejected, 0);
    assert!(counters.reruns >= 1, "{counters:?}");
    let lost = statistics.devices.iter().map(|device| device.is_lost);
    assert_eq!(lost.collect::<Vec<_>>(), [false, true]);
    // What is left goes on, by tickets too, and is restarted.
    kill(first.process_id().unwrap());
    let items = vectors(200);
    let tickets: Vec<_> = items
        .iter()
        .map(|item| engine.submit(item.clone()).unwrap())
        .collect();
    for (ticket, item) in tickets.into_iter().zip(&items) {
        assert_eq!(ticket.wait().unwrap().result.unwrap().0, doubled(item));
    }
    assert_eq!(engine.counters().restarts, 1);
}

#[test]
fn the_batches_of_a_pipeline_move_to_the_other_worker_too() {
    let [first, second] = workers_with_one_start_of_the_second();
    let killed = second.process_id().unwrap();
    let backends = [first, second].map(|worker| worker as Arc<dyn Backend>);
    let mut config = EngineConfig::new([64, 8]);
    config.slots = 1;
    let mut pipeline = Pipeline::new(Scale::new(2.0), &backends, pool(), &config).unwrap();
    let items = vectors(200);
    let mut back = 0;
    for (number, item) in items.iter().enumerate() {
        if number == 100 {
            kill(killed);
        }
        while pipeline.submit(item.clone()).is_err() {
            let (number, done) = pipeline.wait().unwrap();
            check(&items, number, done);
            back += 1;
        }
    }
    while let Some((number, done)) = pipeline.wait() {
        check(&items, number, done);
        back += 1;
    }
    assert_eq!(back, items.len());
    let counters = pipeline.counters();
    assert!(counters.reruns >= 1, "{counters:?}");
    assert_eq!((counters.batches_failed, counters.items_rejected), (0, 0));
}

/// Checks the result of the item with this number.
fn check(items: &[Vec<f32>], number: u64, done: Completion<Scale>) {
    assert_eq!(done.item, items[number as usize]);
    assert_eq!(done.result.unwrap().0, doubled(&done.item));
}

#[test]
fn a_worker_over_the_limit_of_restarts_is_left_out_and_its_batches_fail() {
    let mut config = EngineConfig::new([64, 8]);
    config.restarts_max = 0;
    let ([_first, second], mut engine) = engine(&config);
    let killed = second.process_id().unwrap();
    let (mut back, mut failed) = (0, 0);
    let items = vectors(4_000);
    let mut sink = |done: Completion<Scale>| -> Result<()> {
        match done.result {
            Ok(output) => assert_eq!(output.0, doubled(&items[back])),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                failed += 1;
            }
        }
        back += 1;
        if back == 700 {
            kill(killed);
        }
        Ok(())
    };
    engine.run(items.clone().into_iter(), &mut sink).unwrap();
    let (counters, statistics) = (engine.counters(), engine.statistics());
    assert_eq!(counters.items_rejected, failed);
    // Those that were in flight there, and no others.
    assert!(
        counters.batches_failed <= config.slots as u64,
        "{counters:?}"
    );
    assert!(statistics.devices[1].is_lost && !statistics.devices[0].is_lost);
}

#[test]
fn a_batch_with_an_item_that_cannot_be_written_moves_to_another_device() {
    let ([_first, second], mut engine) = engine_with_one_start_of_the_second();
    let killed = second.process_id().unwrap();
    // Every eighth vector cannot be written.
    let items: Vec<Vec<f32>> = (0..8_000)
        .map(|n| match n % 8 {
            0 => vec![scale::WRITE_FAILS],
            _ => vec![n as f32; 1 + n % 3],
        })
        .collect();
    let (mut back, mut wrong) = (0, Vec::new());
    let mut sink = |done: Completion<Scale>| -> Result<()> {
        match done.result {
            Ok(output) if output.0 != doubled(&items[back]) => wrong.push((back, output.0)),
            Ok(_) => assert!(back % 8 != 0),
            Err(_) => assert!(back % 8 == 0),
        }
        back += 1;
        if back == 700 {
            kill(killed);
        }
        Ok(())
    };
    engine.run(items.clone().into_iter(), &mut sink).unwrap();
    let counters = engine.counters();
    assert!(counters.reruns >= 1, "{counters:?}");
    assert!(wrong.is_empty(), "{wrong:?}");
}
