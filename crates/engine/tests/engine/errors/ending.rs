//! An engine that has ended says so, and a shutdown takes no longer than it may.

use super::*;
use crate::gate;
use crate::scale::Scale;
use crate::threads::block_on;
use tapeloop_engine::pipeline::Pipeline;

#[test]
fn every_call_to_an_engine_that_has_ended_gives_the_reason() {
    let fault = Fault::Kernel { launch: 2 };
    let engine = engine(&sim(vec![fault]).1, &config());
    assert!(engine.ended().is_none());
    let ended = engine.until_ended();
    let watch = std::thread::spawn(|| block_on(ended));
    let mut number = 0;
    while engine.ended().is_none() {
        if let Ok(ticket) = engine.submit(self::number(number)) {
            let _ = answer(ticket);
        }
        number += 1;
    }
    let is_reason = |error: &Error| error.to_string().contains("as planned");
    let check = |error: Error| {
        assert!(
            is_reason(&error) && error.kind() == ErrorKind::Closed,
            "{error}"
        );
    };
    check(engine.submit(self::number(1)).err().unwrap());
    check(engine.submit_many([self::number(1)]).err().unwrap());
    check(engine.flush().unwrap_err());
    check(engine.set_uniforms(|_| Ok(())).unwrap_err());
    match engine.try_submit(self::number(7), SubmitOptions::default()) {
        Err(TrySubmitError::Closed(item, reason)) => {
            assert_eq!(item.number, 7);
            check(reason);
        }
        _ => panic!("it is refused"),
    }
    for ended in [
        engine.ended().unwrap(),
        watch.join().unwrap(),
        block_on(engine.until_ended()),
    ] {
        assert!(
            is_reason(&ended) && ended.kind() == ErrorKind::Device,
            "{ended}"
        );
    }
    engine.shutdown(Duration::from_secs(60)).unwrap();
}

#[test]
fn a_pipeline_that_has_ended_takes_no_items_and_says_why() {
    let fault = Fault::Kernel { launch: 2 };
    let backend = sim(vec![fault]).1;
    let mut pipeline = Pipeline::new(AddOne::new(), &[backend], pool(), &config()).unwrap();
    let mut refused = None;
    for n in 0..100 {
        match pipeline.submit(number(n)) {
            Err(TrySubmitError::Closed(item, reason)) => {
                assert_eq!(item.number, n);
                refused = Some(reason);
            }
            _ => drop(pipeline.wait()),
        }
    }
    let refused = refused.expect("the device is lost").to_string();
    assert!(refused.contains("as planned"), "{refused}");
    assert_eq!(pipeline.ended().unwrap().kind(), ErrorKind::Device);
}

#[test]
fn the_end_of_a_dropped_engine_is_awaited() {
    let engine = engine(&cpu(), &config());
    let ended = engine.until_ended();
    let unawaited = engine.until_ended();
    drop(engine);
    assert_eq!(block_on(ended).kind(), ErrorKind::Closed);
    drop(unawaited);
}

#[test]
fn a_shutdown_waits_for_all_items() {
    let engine = engine(&cpu(), &config());
    let tickets: Vec<_> = (0..500)
        .map(|n| engine.submit(number(n)).unwrap())
        .collect();
    engine.shutdown(Duration::from_secs(60)).unwrap();
    for (n, ticket) in (0..).zip(tickets) {
        assert!(ticket.is_done());
        assert_eq!(answer(ticket).unwrap(), n + 1);
    }
}

#[test]
fn a_shutdown_that_is_not_done_in_time_answers_what_has_no_slot_and_returns_the_rest() {
    let (engine, gate) = gate::engine(&gate::config());
    let held = gate.occupy(&engine, 10);
    let waiting: Vec<_> = [10, 5]
        .map(|length| engine.submit(vec![1.0; length]).unwrap())
        .into();
    let start = Instant::now();
    let left = engine.shutdown(Duration::from_millis(20)).unwrap_err();
    assert!(start.elapsed() >= Duration::from_millis(20));
    for ticket in waiting {
        let done = ticket.wait().unwrap();
        assert_eq!(done.item[0], 1.0, "the item comes back");
        let error = done.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(error.to_string().contains("shut down"), "{error}");
    }
    assert_eq!(left.batches(), 1);
    let left = left.wait(Duration::ZERO).unwrap_err();
    assert!(!held.is_done());
    gate.open();
    left.wait(Duration::from_secs(60)).unwrap();
    assert!(held.wait().unwrap().result.is_ok());
}

#[test]
fn a_shutdown_within_an_engine_s_code_does_not_claim_to_have_waited() {
    let (engine, gate) = gate::engine(&gate::config());
    let held = gate.occupy(&engine, 10);
    let waiting = engine.submit(vec![1.0; 10]).unwrap();
    let engine = Mutex::new(Some(engine));
    let workload = AddOne::with(move |_| {
        let engine = engine.lock().unwrap().take().unwrap();
        drop(engine.shutdown(Duration::from_secs(60)).unwrap_err());
        Ok(())
    });
    let outer = Engine::new(workload, &[cpu()], pool(), &config()).unwrap();
    assert_eq!(ask(&outer, number(1)).unwrap(), 2);
    let error = waiting.wait().unwrap().result.unwrap_err();
    assert!(error.to_string().contains("without a wait"), "{error}");
    gate.open();
    assert!(held.wait().unwrap().result.is_ok());
}

#[test]
fn what_a_shutdown_has_left_ends_by_itself_when_it_is_dropped() {
    let (engine, gate) = gate::engine(&gate::config());
    let ended = engine.until_ended();
    let held = gate.occupy(&engine, 10);
    drop(engine.shutdown(Duration::ZERO).unwrap_err());
    assert!(!held.is_done(), "the drop has not waited");
    gate.open();
    assert!(held.wait().unwrap().result.is_ok());
    assert!(block_on(ended).to_string().contains("shut down"));
}

#[test]
fn a_workload_that_panics_when_it_is_dropped_does_not_panic_the_drop_of_the_engine() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("planted");
        }
    }
    let workload = || {
        let bomb = PanicsWhenDropped;
        AddOne::with(move |_| {
            let _ = &bomb;
            Ok(())
        })
    };
    drop(Engine::new(workload(), &[cpu()], pool(), &config()).unwrap());
    let engine = Engine::new(workload(), &[cpu()], pool(), &config()).unwrap();
    engine.shutdown(Duration::from_secs(60)).unwrap();
    drop(Pipeline::new(workload(), &[cpu()], pool(), &config()).unwrap());
}

/// The thread that computes it cannot notice that.
#[test]
fn a_large_batch_on_the_cpu_that_misses_its_deadline_ends_the_engine() {
    let (workload, gate) = gate::Gate::new();
    let length = 20_000;
    let mut config = EngineConfig::new([length as u32, 1]);
    config.policy.deadline = Some(Duration::from_millis(200));
    let engine = Engine::new(workload, &[cpu()], pool(), &config).unwrap();
    let ticket = gate.occupy(&engine, length);
    let done = ticket.wait().unwrap();
    let error = done.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline, "{error}");
    assert!(engine.ended().is_some());
    gate.open();
}

/// Threads of the pool wait, so that no other can compute the batches.
#[test]
fn a_thread_of_the_pool_that_waits_for_a_ticket_computes() {
    for threads in [1, 2] {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = Arc::new(pool.unwrap());
        let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
        let config = EngineConfig::new([20_000, 1]);
        let workload = Scale::new(2.0);
        let engine = Engine::new(workload, &[backend], Arc::clone(&pool), &config).unwrap();
        let tickets: Vec<_> = (0..threads)
            .map(|n| engine.submit(vec![n as f32; 20_000]).unwrap())
            .collect();
        let waits = |(n, ticket): (usize, Ticket<Scale>)| {
            let (values, _) = ticket.wait().unwrap().result.unwrap();
            assert_eq!(values[0], 2.0 * n as f32);
        };
        let tickets = std::sync::Mutex::new(tickets.into_iter().enumerate());
        pool.broadcast(|_| {
            let next = tickets.lock().unwrap().next();
            waits(next.unwrap());
        });
    }
}
