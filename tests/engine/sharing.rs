//! Engines that take turns on a device.

use crate::gate::{Gate, config};
use crate::scale::{Scale, TWIN_PANICS, vectors};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tapeloop::ErrorKind;
use tapeloop::backend::sim::{SimBackend, SimOptions};
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::pipeline::{Close, Engine, EngineConfig, Pipeline, Sharing, SubmitOptions, Ticket};
use tapeloop::workload::Completion;

/// What engines run on.
struct Device {
    backend: Arc<dyn Backend>,
    pool: Arc<ThreadPool>,
    sharing: Sharing,
}

impl Device {
    /// A CPU whose engines have so many batches on it at a time.
    fn new(batches_max: usize) -> Device {
        // A batch that stays keeps a thread.
        let pool = Arc::new(ThreadPoolBuilder::new().num_threads(3).build().unwrap());
        Device {
            backend: Arc::new(CpuBackend::new(Arc::clone(&pool))),
            pool,
            sharing: Sharing::new(batches_max),
        }
    }

    fn engine(&self, workload: Scale, config: EngineConfig) -> Engine<Scale> {
        let config = EngineConfig {
            share: Some(self.sharing.share(1)),
            ..config
        };
        let backends = [Arc::clone(&self.backend)];
        Engine::new(workload, &backends, Arc::clone(&self.pool), &config).unwrap()
    }
}

fn three_slots() -> EngineConfig {
    let slots = 3;
    EngineConfig { slots, ..config() }
}

/// A batch of its own.
fn submit(engine: &Engine<Scale>, value: f32) -> Ticket<Scale> {
    engine.submit(vec![value; 10]).unwrap()
}

fn result(mut ticket: Ticket<Scale>) -> tapeloop::Result<Vec<f32>> {
    let done = ticket.wait_timeout(Duration::from_secs(60)).unwrap();
    let done = done.expect("the engine has its turn");
    done.result.map(|(values, _)| values)
}

/// Notes the first element of each batch when it is computed.
fn logged(log: &Arc<Mutex<Vec<f32>>>) -> Scale {
    let log = Arc::clone(log);
    Scale::with(2.0, move |elements| log.lock().unwrap().push(elements[0]))
}

#[test]
fn an_engine_waits_for_its_turn_and_has_it_before_the_one_that_had_more() {
    let device = Device::new(1);
    let log = Arc::default();
    let (gated, gate) = Gate::new();
    let first = device.engine(gated, three_slots());
    let [second, third] = [(); 2].map(|()| device.engine(logged(&log), three_slots()));
    // So that the first engine has used some time.
    let occupied = gate.occupy(&first, 10);
    gate.open();
    result(occupied).unwrap();
    let occupied = gate.occupy(&first, 10);
    let tickets = [(&second, 1.0), (&third, 2.0), (&second, 3.0), (&first, 4.0)]
        .map(|(engine, value)| submit(engine, value));
    assert_eq!(second.counters().batches + third.counters().batches, 0);
    assert!(tickets.iter().all(|ticket| !ticket.is_done()));
    gate.open();
    result(occupied).unwrap();
    for (ticket, value) in tickets.into_iter().zip([1.0, 2.0, 3.0, 4.0]) {
        assert_eq!(result(ticket).unwrap(), [2.0 * value; 10]);
    }
    // Those that wait have used nothing, and the first of them asked first.
    assert_eq!(log.lock().unwrap()[..2], [1.0, 2.0]);
    for engine in [&first, &second, &third] {
        assert!(engine.counters().device_ns > 0);
    }
}

#[test]
fn batches_that_fail_or_have_nothing_to_run_end_their_turns() {
    let device = Device::new(1);
    let [first, second] = [(); 2].map(|()| device.engine(Scale::new(2.0), three_slots()));
    let expired = SubmitOptions {
        expires_at: Some(Instant::now()),
        ..SubmitOptions::default()
    };
    for round in 0..20 {
        let failed = submit(&first, TWIN_PANICS);
        let rejected = first.submit(Vec::new()).unwrap();
        let late = first.submit_with(vec![1.0; 10], expired).unwrap();
        drop(first.submit(vec![1.0; 3]).unwrap().cancel());
        first.flush().unwrap();
        let kinds = [failed, rejected, late].map(|ticket| result(ticket).unwrap_err().kind());
        assert_eq!(
            kinds,
            [ErrorKind::Kernel, ErrorKind::Input, ErrorKind::Expired]
        );
        let other = submit(&second, round as f32);
        assert_eq!(result(other).unwrap(), [2.0 * round as f32; 10]);
    }
}

#[test]
fn a_turn_that_is_no_longer_wanted_passes_to_the_next() {
    let device = Device::new(1);
    let (gated, gate) = Gate::new();
    let first = device.engine(gated, three_slots());
    let [second, third] = [(); 2].map(|()| device.engine(Scale::new(2.0), three_slots()));
    let occupied = gate.occupy(&first, 10);
    let unwanted = submit(&second, 1.0);
    let wanted = submit(&third, 2.0);
    assert!(unwanted.cancel().is_some(), "its batch has no slot yet");
    gate.open();
    assert_eq!(result(wanted).unwrap(), [4.0; 10]);
    result(occupied).unwrap();
    // The engine that gave its turn away has the next one that it wants.
    assert_eq!(result(submit(&second, 3.0)).unwrap(), [6.0; 10]);
}

#[test]
fn an_engine_is_dropped_while_its_batches_wait_for_their_turn() {
    let device = Device::new(1);
    let (gated, gate) = Gate::new();
    let first = device.engine(gated, three_slots());
    let second = device.engine(Scale::new(2.0), three_slots());
    let occupied = gate.occupy(&first, 10);
    let tickets = [1.0, 2.0].map(|value| submit(&second, value));
    std::thread::scope(|scope| {
        scope.spawn(|| drop(second));
        gate.open();
    });
    for (ticket, value) in tickets.into_iter().zip([2.0, 4.0]) {
        assert_eq!(result(ticket).unwrap(), [value; 10]);
    }
    result(occupied).unwrap();
    assert_eq!(result(submit(&first, 1.0)).unwrap(), [2.0; 10]);
}

#[test]
fn urgent_batches_in_slots_that_are_kept_do_not_wait_for_a_turn() {
    let device = Device::new(1);
    let (gated, gate) = Gate::new();
    let first = device.engine(gated, three_slots());
    let urgent_slots = 1;
    let config = EngineConfig {
        urgent_slots,
        ..three_slots()
    };
    let second = device.engine(Scale::new(2.0), config);
    let occupied = gate.occupy(&first, 10);
    let waits = submit(&second, 1.0);
    let urgent = SubmitOptions {
        urgent: true,
        ..SubmitOptions::default()
    };
    let ticket = second.submit_with(vec![3.0], urgent).unwrap();
    assert_eq!(result(ticket).unwrap(), [6.0]);
    assert!(!waits.is_done());
    gate.open();
    assert_eq!(result(waits).unwrap(), [2.0; 10]);
    result(occupied).unwrap();
}

/// Runs of three engines at the same time, with submissions next to each.
fn run_side_by_side(backend: &Arc<dyn Backend>, pool: &Arc<ThreadPool>, batches_max: usize) {
    let sharing = Sharing::new(batches_max);
    std::thread::scope(|scope| {
        for weight in 1..=3 {
            let mut config = EngineConfig::new([100 * weight, 100]);
            config.slots = weight as usize;
            config.share = Some(sharing.share(weight));
            config.close = [Close::Idle, Close::Full][weight as usize % 2];
            scope.spawn(move || {
                let factor = weight as f32;
                let backends = [Arc::clone(backend)];
                let scale = Scale::new(factor);
                let mut engine = Engine::new(scale, &backends, Arc::clone(pool), &config).unwrap();
                let mut sink = |done: Completion<Scale>| {
                    let scaled: Vec<f32> = done.item.iter().map(|x| x * factor).collect();
                    assert_eq!(done.result?.0, scaled);
                    Ok(())
                };
                for round in 0..4 {
                    engine.run(vectors(60).into_iter(), &mut sink).unwrap();
                    let tickets: Vec<_> = vectors(20)
                        .into_iter()
                        .map(|vector| engine.submit(vector).unwrap())
                        .collect();
                    engine.flush().unwrap();
                    for (index, ticket) in tickets.into_iter().enumerate() {
                        match (index + round) % 3 {
                            0 => drop(ticket.cancel()),
                            _ => drop(result(ticket).unwrap()),
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn runs_side_by_side_have_their_own_results() {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    for batches_max in 1..=3 {
        let cpu: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
        run_side_by_side(&cpu, &pool, batches_max);
        let sim = Arc::new(SimBackend::new(SimOptions::seeded(batches_max as u64)));
        run_side_by_side(&(Arc::clone(&sim) as Arc<dyn Backend>), &pool, batches_max);
        assert_eq!(sim.violations(), []);
    }
}

#[test]
fn shares_that_could_not_run_are_refused() {
    let device = Device::new(1);
    let backends = [Arc::clone(&device.backend)];
    for (weight, batches_max) in [(0, 1), (1, 0)] {
        let mut config = config();
        config.share = Some(Sharing::new(batches_max).share(weight));
        let engine = Engine::new(
            Scale::new(1.0),
            &backends,
            Arc::clone(&device.pool),
            &config,
        );
        assert_eq!(engine.err().unwrap().kind(), ErrorKind::Config);
    }
    let mut config = config();
    config.share = Some(device.sharing.share(1));
    let pipeline = Pipeline::new(
        Scale::new(1.0),
        &backends,
        Arc::clone(&device.pool),
        &config,
    );
    let error = pipeline.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("turn"), "{error}");
}
