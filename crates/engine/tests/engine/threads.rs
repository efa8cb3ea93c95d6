//! The engine over a small workload, on the CPU backend.

use crate::scale::{READ_FAILS, Scale, TWIN_PANICS, WRITE_FAILS, WRITE_PANICS, doubled, vectors};
use crossbeam_channel::{Receiver, Sender, bounded};
use rayon::ThreadPoolBuilder;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{Close, Engine, EngineConfig, OrderedMap, SubmitOptions, Wait};
use tapeloop_engine::replay::Mode;
use tapeloop_engine::workload::{Completion, Extent};
use tapeloop_engine::{Error, ErrorKind};

fn engine(config: &EngineConfig, threads: usize) -> Engine<Scale> {
    engine_of(Scale::new(2.0), config, threads)
}

fn engine_of(workload: Scale, config: &EngineConfig, threads: usize) -> Engine<Scale> {
    let pool = Arc::new(
        ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap(),
    );
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    Engine::new(workload, &[backend], pool, config).unwrap()
}

#[test]
fn a_run_gives_every_result_in_order_whatever_the_shape() {
    let items = vectors(2000);
    for slots in [1, 2, 3, 7] {
        for (batch, wait) in [(50, Wait::Block), (333, Wait::Spin), (100_000, Wait::Block)] {
            for mode in [Mode::Graph, Mode::Stream] {
                let mut config = EngineConfig::new([batch, batch]);
                (config.slots, config.policy.mode, config.wait) = (slots, mode, wait);
                let mut engine = engine(&config, 3);
                let mut seen = 0;
                let mut sink = |done: Completion<Scale>| {
                    assert_eq!(done.item, items[seen]);
                    assert_eq!(done.result?.0, doubled(&items[seen]));
                    seen += 1;
                    Ok(())
                };
                engine.run(items.iter().cloned(), &mut sink).unwrap();
                assert_eq!(seen, items.len());
                assert_eq!(engine.counters().items_done, items.len() as u64);
            }
        }
    }
}

#[test]
fn a_graph_replay_is_two_calls_however_many_commands() {
    let mut calls = Vec::new();
    for mode in [Mode::Graph, Mode::Stream] {
        let mut config = EngineConfig::new([100, 100]);
        config.policy.mode = mode;
        let mut engine = engine(&config, 1);
        engine
            .run(vectors(100).into_iter(), &mut |_: Completion<Scale>| Ok(()))
            .unwrap();
        let counters = engine.counters();
        calls.push(counters.driver_calls / counters.batches);
    }
    // A graph launch and a mark; three uploads, a launch, a download and a mark.
    assert_eq!(calls, [2, 6]);
}

#[test]
fn a_bad_item_is_rejected_alone_and_in_its_turn() {
    let mut items = vectors(200);
    items[17][0] = WRITE_FAILS;
    items[18][0] = WRITE_PANICS;
    items[90][0] = READ_FAILS;
    items[91].clear();
    items[150] = vec![1.0; 1001];
    let mut engine = engine(&EngineConfig::new([1000, 64]), 2);
    let mut outcomes = Vec::new();
    engine
        .run(items.iter().cloned(), &mut |done: Completion<Scale>| {
            outcomes.push(done);
            Ok(())
        })
        .unwrap();
    assert_eq!(outcomes.len(), items.len());
    for (index, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(outcome.item, items[index]);
        match index {
            17 | 90 => assert!(outcome.result.unwrap_err().to_string().contains("planted")),
            18 => assert!(
                outcome
                    .result
                    .unwrap_err()
                    .to_string()
                    .contains("panicked: planted")
            ),
            91 => assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Input),
            150 => {
                let error = outcome.result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Capacity);
                assert!(error.to_string().contains("1001 elements"));
            }
            _ => assert_eq!(outcome.result.unwrap().0, doubled(&items[index])),
        }
    }
    assert_eq!(engine.counters().items_rejected, 5);
}

#[test]
fn a_large_item_runs_alone_in_the_large_bucket() {
    let mut config = EngineConfig::new([100, 100]);
    config.buckets = [[10, 10], [100, 100], [5000, 100]]
        .map(Extent::from)
        .to_vec();
    let mut engine = engine(&config, 2);
    let items = [vec![1.0; 60], vec![2.0; 5000], vec![3.0; 60], vec![4.0; 7]];
    let mut starts = Vec::new();
    engine
        .run(items.iter().cloned(), &mut |done: Completion<Scale>| {
            let (values, start) = done.result?;
            assert_eq!(values, doubled(&done.item));
            starts.push(start);
            Ok(())
        })
        .unwrap();
    assert_eq!(starts, [0, 0, 0, 60]);
    assert_eq!(engine.counters().batches, 3);
}

#[test]
fn tickets_come_back_from_several_producers() {
    let engine = engine(&EngineConfig::new([500, 500]), 2);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let items = vectors(300);
                let submit = |item: &Vec<f32>| engine.submit(item.clone()).unwrap();
                let tickets: Vec<_> = items.iter().map(submit).collect();
                for (ticket, item) in tickets.into_iter().zip(&items) {
                    let done = ticket.wait().unwrap();
                    assert_eq!(&done.item, item);
                    assert_eq!(done.result.unwrap().0, doubled(item));
                }
            });
        }
    });
}

/// Wakes the thread that polls.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn tickets_are_awaited_on_any_executor() {
    let engine = engine(&EngineConfig::new([500, 500]), 2);
    let outputs = block_on(async {
        let one = engine.submit(vec![1.0]).unwrap();
        let many = engine.submit_many(vectors(300)).unwrap();
        let one = one.await.unwrap().result.unwrap().0;
        let many = many.await.unwrap().into_iter();
        std::iter::once(one)
            .chain(many.map(|done| done.result.unwrap().0))
            .collect::<Vec<_>>()
    });
    let expected = vectors(300).into_iter().map(|item| doubled(&item));
    assert!(
        outputs
            .into_iter()
            .eq(std::iter::once(vec![2.0]).chain(expected))
    );
}

#[test]
fn a_wait_ends_when_its_time_is_over_and_the_ticket_stays() {
    let mut config = EngineConfig::new([500, 500]);
    (config.close, config.batch_wait) = (Close::Full, Duration::from_secs(3600));
    let engine = engine(&config, 1);
    let mut ticket = engine.submit(vec![1.0]).unwrap();
    // The batch is open, so the result cannot be there.
    assert!(
        ticket
            .wait_timeout(Duration::from_millis(5))
            .unwrap()
            .is_none()
    );
    engine.flush().unwrap();
    let done = ticket.wait_timeout(Duration::from_secs(3600)).unwrap();
    assert_eq!(done.unwrap().result.unwrap().0, [2.0]);
}

#[test]
fn a_wait_ends_when_its_time_is_over_while_a_twin_runs() {
    let (on, end) = bounded::<()>(0);
    let workload = Scale::with(2.0, move |_| {
        let _ = end.recv_timeout(Duration::from_secs(5));
    });
    let engine = engine_of(workload, &EngineConfig::new([500, 500]), 1);
    let mut ticket = engine.submit(vec![1.0]).unwrap();
    let early = ticket.wait_timeout(Duration::from_millis(5)).unwrap();
    assert!(early.is_none(), "the twin goes on");
    drop(on);
    assert_eq!(ticket.wait().unwrap().result.unwrap().0, [2.0]);
}

#[test]
fn a_wait_with_a_time_on_the_only_thread_that_computes_ends_with_the_result() {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let mut config = EngineConfig::new([500, 500]);
    (config.close, config.batch_wait) = (Close::Full, Duration::from_secs(3600));
    let engine = Engine::new(Scale::new(2.0), &[backend], Arc::clone(&pool), &config).unwrap();
    let mut ticket = engine.submit(vec![1.0]).unwrap();
    let done = pool.install(|| {
        std::thread::scope(|scope| scope.spawn(|| engine.flush()).join().unwrap()).unwrap();
        ticket.wait_timeout(Duration::from_secs(5)).unwrap()
    });
    assert_eq!(done.expect("this thread computes").result.unwrap().0, [2.0]);
}

/// A task that keeps the thread which wakes it, until the test ends.
struct Keeps {
    kept: Sender<()>,
    end: Receiver<()>,
}

impl Wake for Keeps {
    fn wake(self: Arc<Self>) {
        self.kept.send(()).unwrap();
        let _ = self.end.recv();
    }
}

#[test]
fn a_thread_that_waits_computes_what_no_other_thread_has_begun() {
    let mut config = EngineConfig::new([500, 500]);
    (config.close, config.batch_wait) = (Close::Full, Duration::from_secs(3600));
    let engine = engine(&config, 2);
    let ((kept, was_kept), (on, end)) = (bounded(1), bounded::<()>(0));
    let waker = Waker::from(Arc::new(Keeps { kept, end }));
    let mut first = pin!(engine.submit(vec![1.0]).unwrap());
    let polled = first.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending(), "the batch is open");
    engine.flush().unwrap();
    was_kept.recv().unwrap();
    // The engine's own thread is kept by now.
    let second = engine.submit(vec![3.0]).unwrap();
    engine.flush().unwrap();
    let (sent, done) = bounded(1);
    std::thread::spawn(move || sent.send(second.wait()));
    let done = done.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(done.unwrap().result.unwrap().0, [6.0]);
    drop(on);
}

#[test]
fn a_lone_item_leaves_at_its_deadline_or_on_flush() {
    let mut config = EngineConfig::new([500, 500]);
    (config.close, config.batch_wait) = (Close::Full, Duration::from_secs(3600));
    let engine = engine(&config, 1);
    let ticket = engine.submit(vec![1.0]).unwrap();
    engine.flush().unwrap();
    assert_eq!(ticket.wait().unwrap().result.unwrap().0, [2.0]);
    let options = SubmitOptions {
        urgent: true,
        deadline: Some(Instant::now()),
        ..SubmitOptions::default()
    };
    let ticket = engine.submit_with(vec![3.0], options).unwrap();
    assert_eq!(ticket.wait().unwrap().result.unwrap().0, [6.0]);
}

#[test]
fn a_lone_item_waits_for_no_others_while_a_slot_is_free() {
    let mut config = EngineConfig::new([500, 500]);
    config.batch_wait = Duration::from_secs(3600);
    let engine = engine(&config, 1);
    for value in [1.0, 2.0, 3.0] {
        let done = engine.submit(vec![value]).unwrap().wait().unwrap();
        assert_eq!(done.result.unwrap().0, [2.0 * value]);
    }
    assert_eq!(engine.counters().batches, 3);
}

#[test]
fn an_item_of_a_full_batch_waits_no_longer_than_asked() {
    let mut config = EngineConfig::new([500, 500]);
    (config.close, config.batch_wait) = (Close::Full, Duration::from_millis(20));
    let engine = engine(&config, 1);
    let first = engine.submit(vec![1.0]).unwrap();
    let second = engine.submit(vec![2.0]).unwrap();
    assert_eq!(first.wait().unwrap().result.unwrap().0, [2.0]);
    assert_eq!(second.wait().unwrap().result.unwrap().0, [4.0]);
    let mut config = config.clone();
    config.batch_wait = Duration::from_secs(3600);
    let engine = self::engine(&config, 1);
    let options = SubmitOptions {
        urgent: false,
        deadline: Some(Instant::now() + Duration::from_millis(20)),
        ..SubmitOptions::default()
    };
    let ticket = engine.submit_with(vec![3.0], options).unwrap();
    assert_eq!(ticket.wait().unwrap().result.unwrap().0, [6.0]);
}

#[test]
fn items_that_are_submitted_together_come_back_in_order() {
    for threads in [1, 4] {
        // Batches of 100 units, so that a call's items are in several of them.
        let engine = engine(&EngineConfig::new([100, 100]), threads);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let items = vectors(200);
                    let tickets = engine.submit_many(items.clone()).unwrap();
                    assert_eq!(tickets.len(), items.len());
                    let dropped = engine.submit_many(vectors(30)).unwrap();
                    assert!(engine.submit_many([]).unwrap().wait().unwrap().is_empty());
                    drop(dropped);
                    for (done, item) in tickets.wait().unwrap().into_iter().zip(&items) {
                        assert_eq!(&done.item, item);
                        assert_eq!(done.result.unwrap().0, doubled(item));
                    }
                });
            }
        });
        assert!(engine.counters().batches > 1);
    }
}

#[test]
fn a_handle_has_the_items_up_to_the_first_none() {
    let engine = engine(&EngineConfig::new([100, 100]), 1);
    let mut turns = 0;
    // As `mpsc::TryIter`, which has items again after it had none.
    let now_and_then = std::iter::from_fn(|| {
        turns += 1;
        (turns % 3 > 0 && turns < 10).then(|| vec![1.0])
    });
    assert_eq!(engine.submit_many(now_and_then).unwrap().len(), 2);
}

#[test]
fn dropping_the_engine_finishes_what_was_submitted() {
    let engine = engine(&EngineConfig::new([100, 100]), 1);
    let tickets: Vec<_> = vectors(50)
        .into_iter()
        .map(|v| engine.submit(v).unwrap())
        .collect();
    drop(engine);
    for ticket in tickets {
        let done = ticket.wait().unwrap();
        assert_eq!(done.result.unwrap().0, doubled(&done.item));
    }
}

#[test]
fn a_batch_that_fails_hands_its_items_back_and_the_engine_goes_on() {
    let mut config = EngineConfig::new([100, 1]);
    config.batch_wait = Duration::ZERO;
    let engine = engine(&config, 1);
    for round in 0..3 {
        let failing = engine.submit(vec![TWIN_PANICS]).unwrap().wait().unwrap();
        assert_eq!(failing.item, [TWIN_PANICS]);
        let error = failing.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Kernel);
        assert!(
            error.to_string().contains("kernel scale_vectors"),
            "{error}"
        );
        let next = engine.submit(vec![1.0]).unwrap().wait().unwrap();
        assert_eq!((next.item, next.result.unwrap().0), (vec![1.0], vec![2.0]));
        assert_eq!(engine.counters().batches_failed, round + 1);
    }
}

#[test]
fn a_run_goes_on_after_a_batch_that_failed() {
    let mut items = vectors(500);
    items[250][0] = TWIN_PANICS;
    let mut engine = engine(&EngineConfig::new([100, 8]), 2);
    let mut seen = 0;
    let mut failed = Vec::new();
    let mut sink = |done: Completion<Scale>| {
        assert_eq!(done.item, items[seen]);
        match done.result {
            Ok((values, _)) => assert_eq!(values, doubled(&items[seen])),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Kernel);
                failed.push(seen);
            }
        }
        seen += 1;
        Ok(())
    };
    engine.run(items.iter().cloned(), &mut sink).unwrap();
    assert_eq!(seen, 500);
    assert!(failed.contains(&250) && failed.len() <= 8, "{failed:?}");
    assert_eq!(failed.len() as u64, engine.counters().items_rejected);
}

#[test]
fn a_sink_that_fails_ends_the_run_and_leaves_the_engine_usable() {
    let mut engine = engine(&EngineConfig::new([100, 100]), 2);
    let full = |_: Completion<Scale>| Err(Error::new(ErrorKind::Io, "disk full"));
    let error = engine
        .run(vectors(5000).into_iter(), &mut { full })
        .unwrap_err();
    assert_eq!(error.message(), "disk full");
    let mut seen = 0;
    let mut count = |_: Completion<Scale>| {
        seen += 1;
        Ok(())
    };
    engine.run(vectors(10).into_iter(), &mut count).unwrap();
    assert_eq!(seen, 10);
}

#[test]
fn settings_that_cannot_work_are_named() {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let build = |config: &EngineConfig| {
        Engine::new(
            Scale::new(1.0),
            &[Arc::clone(&backend)],
            Arc::clone(&pool),
            config,
        )
        .err()
        .map_or_else(|| "built".to_owned(), |error| error.to_string())
    };
    let good = EngineConfig::new([100, 10]);
    assert_eq!(build(&good), "built");
    let slots = EngineConfig {
        slots: 0,
        ..good.clone()
    };
    assert!(build(&slots).contains("slots = 0"));
    let order = EngineConfig {
        buckets: [[100, 10], [50, 10]].map(Extent::from).to_vec(),
        batch: Extent::from([50, 10]),
        ..good.clone()
    };
    assert!(build(&order).contains("order them by size"));
    let budget = EngineConfig {
        memory_bytes_max: Some(1000),
        ..good.clone()
    };
    let message = build(&budget);
    assert!(
        message.contains("budget of 1000 bytes") && message.contains("starts"),
        "{message}"
    );
    // x and y of 100 floats, 10 starts, a header of 8 words, each from a multiple
    // of 256 bytes on; three slots.
    let aligned = 512 + 512 + 256 + 256;
    assert!(
        message.contains(&format!("{} B of memory", 3 * aligned)),
        "{message}"
    );
}

#[test]
fn the_only_thread_of_a_pool_may_take_what_the_pool_maps() {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let (own, (sender, mapped)) = (Arc::clone(&pool), std::sync::mpsc::channel());
    pool.spawn(move || {
        let all: Vec<u32> = OrderedMap::new(0..100, own, 8, |n: u32| 2 * n).collect();
        sender.send(all).unwrap();
    });
    let all = mapped.recv_timeout(Duration::from_secs(30));
    let all = all.expect("the thread waits for itself");
    assert!(all.into_iter().eq((0..100).map(|n| 2 * n)));
}
