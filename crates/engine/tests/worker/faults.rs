//! Items and signals that end a worker.

use super::*;

/// Streams numbers, one of them with a fate, and returns the counters.
fn stream(count: u32, batch: u32, fate: u32, deadline: Option<Duration>) -> Counters {
    let (_, backend) = open();
    let mut config = EngineConfig::new([batch]);
    config.policy.deadline = deadline;
    let culprit = count / 2 + 3;
    let item = |place: u32| if place == culprit { fate } else { 10 + place };
    let mut engine = Engine::new(Fated::new(), &[backend], pool(), &config).unwrap();
    let mut next = 0;
    let mut sink = |done: Completion<Fated>| -> Result<()> {
        assert_eq!(done.item, item(next), "in order");
        if next == culprit {
            let error = done.result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Quarantined, "{error}");
        } else {
            assert_eq!(done.result.unwrap(), item(next).wrapping_mul(7))
        }
        next += 1;
        Ok(())
    };
    engine.run((0..count).map(item), &mut sink).unwrap();
    assert_eq!(next, count);
    let counters = engine.counters();
    assert_eq!(counters.items_done, u64::from(count) - 1);
    assert_eq!(
        (counters.items_quarantined, counters.items_rejected),
        (1, 1)
    );
    let restarts_max = u64::from(3 + batch.next_power_of_two().ilog2());
    assert!(
        (3..=restarts_max).contains(&counters.restarts),
        "{counters:?}"
    );
    counters
}

#[test]
fn an_item_that_ends_the_process_is_found_among_ten_thousand() {
    stream(10_000, 1_000, ABORTS, None);
}

#[test]
fn a_twin_that_reads_standard_input_takes_no_requests() {
    let (_, backend) = open();
    let mut config = EngineConfig::new([4]);
    config.policy.deadline = Some(Duration::from_secs(20));
    let mut engine = Engine::new(Fated::new(), &[backend], pool(), &config).unwrap();
    let mut bytes_read = Vec::new();
    let mut sink = |done: Completion<Fated>| -> Result<()> {
        bytes_read.push(done.result?);
        Ok(())
    };
    engine
        .run([READS_INPUT; 40].into_iter(), &mut sink)
        .unwrap();
    assert_eq!(bytes_read, [0; 40]);
    assert_eq!(engine.counters().restarts, 0);
}

#[test]
fn an_item_that_never_ends_is_found_by_the_deadline() {
    stream(200, 16, NEVER_ENDS, Some(Duration::from_millis(100)));
}

#[test]
fn a_batch_of_one_item_costs_three_restarts() {
    let counters = stream(10, 1, ABORTS, None);
    assert_eq!(counters.restarts, 3, "{counters:?}");
}

/// Streams 64 numbers in batches, the 21st with this fate, and returns the counters.
/// All of them come back right.
fn stream_well(options: WorkerOptions, batch: u32, fate: u32) -> Counters {
    let worker = WorkerBackend::open(options).unwrap();
    let config = EngineConfig::new([batch]);
    let mut engine = Engine::new(Fated::new(), &[Arc::new(worker)], pool(), &config).unwrap();
    let mut results = Vec::new();
    let mut sink = |done: Completion<Fated>| -> Result<()> {
        results.push((done.item, done.result?));
        Ok(())
    };
    let items = (0..64).map(|place| if place == 20 { fate } else { 10 + place });
    engine.run(items.clone(), &mut sink).unwrap();
    assert!(
        results
            .into_iter()
            .eq(items.map(|x| (x, x.wrapping_mul(7))))
    );
    engine.counters()
}

#[test]
fn inputs_that_a_kernel_changes_are_as_they_were_when_a_batch_runs_again() {
    let every = Verify::Every(std::num::NonZeroU32::MIN);
    for verify in [Verify::Off, every] {
        let mut config = EngineConfig::new([16]);
        config.policy.verify = verify;
        let (_, backend) = open();
        let mut engine = Engine::new(Fated::in_place(), &[backend], pool(), &config).unwrap();
        let items = (0..100).map(|place| if place == 37 { ABORTS } else { 10 + place });
        let mut done = 0;
        let mut sink = |completion: Completion<Fated>| -> Result<()> {
            done += 1;
            match completion.result {
                Ok(number) => assert_eq!(number, 7 * completion.item),
                Err(error) => {
                    assert_eq!(completion.item, ABORTS);
                    assert_eq!(error.kind(), ErrorKind::Quarantined, "{error}");
                }
            }
            Ok(())
        };
        engine.run(items, &mut sink).unwrap();
        assert_eq!(done, 100);
    }
}

#[test]
fn work_with_a_deadline_does_not_outlive_its_pipeline() {
    let (_, backend) = open();
    let mut config = EngineConfig::new([1]);
    config.policy.deadline = Some(Duration::from_millis(200));
    let backends = [backend];
    let mut pipeline = Pipeline::new(Fated::new(), &backends, pool(), &config).unwrap();
    pipeline.submit(NEVER_ENDS).unwrap();
    drop(pipeline);
    config.policy.deadline = None;
    let engine = Engine::new(Fated::new(), &backends, pool(), &config).unwrap();
    let ticket = engine.submit(15).unwrap();
    engine.flush().unwrap();
    assert_eq!(ticket.wait().unwrap().result.unwrap(), 105);
}

#[test]
fn an_item_is_not_blamed_for_signals_from_outside() {
    for batch in [1, 16] {
        let ends = tempfile::NamedTempFile::new().unwrap();
        let options = options_with(&[(ENDS, ends.path())]);
        let counters = stream_well(options, batch, IS_KILLED_14_TIMES);
        assert_eq!(counters.restarts, 14, "{counters:?}");
    }
}

#[test]
fn an_item_is_not_blamed_for_one_failure_alone() {
    // In flight, and then alone.
    let ends = tempfile::NamedTempFile::new().unwrap();
    let options = options_with(&[(ENDS, ends.path())]);
    let counters = stream_well(options, 1, ABORTS_TWICE);
    assert_eq!(counters.restarts, 2, "{counters:?}");
}

#[test]
fn workers_that_are_killed_while_they_start_are_started_again_up_to_the_limit() {
    let files = || {
        let [ends, starts] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
        let options = options_with(&[(ENDS, ends.path()), (KILLED_STARTS, starts.path())]);
        let worker = WorkerBackend::open(options).unwrap();
        std::fs::write(starts.path(), "...").unwrap();
        (ends, starts, worker)
    };
    let run = |worker, restarts_max| {
        let mut config = EngineConfig::new([16]);
        config.restarts_max = restarts_max;
        let mut engine = Engine::new(Fated::new(), &[Arc::new(worker)], pool(), &config).unwrap();
        let mut sink = |done: Completion<Fated>| done.result.map(|_| ());
        let ran = engine.run([10, ABORTS_TWICE, 11].into_iter(), &mut sink);
        (ran, engine.counters().restarts)
    };
    let (_ends, _starts, worker) = files();
    let (ran, restarts) = run(worker, 1000);
    ran.unwrap();
    assert_eq!(restarts, 5, "two ends and three starts");
    let (_ends, _starts, worker) = files();
    let error = run(worker, 3).0.unwrap_err();
    assert!(error.to_string().contains("restarted 3 times"), "{error}");
}
