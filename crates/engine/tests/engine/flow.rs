//! Flow control: tasks that wait for room, the closed batches that may wait, items that expire in time,
//! and tickets that cancel when they are dropped.

use crate::gate::{Gate, config, engine};
use crate::scale::Scale;
use crate::threads::block_on;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tapeloop_engine::pipeline::{
    Engine, EngineConfig, Pipeline, SubmitOptions, Submitting, TrySubmitError,
};
use tapeloop_engine::{Completion, ErrorKind};

const LONG: Duration = Duration::from_secs(60);

fn plain() -> SubmitOptions {
    SubmitOptions::default()
}

/// An engine whose slot is taken, and as many full batches behind it as may wait.
fn full(config: &EngineConfig) -> (Engine<Scale>, Gate) {
    let (engine, gate) = engine(config);
    drop(gate.occupy(&engine, 10));
    for _ in 0..config.waiting_batches_max {
        drop(engine.submit(vec![1.0; 10]).unwrap());
    }
    (engine, gate)
}

/// How often a task was woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(SeqCst)
    }

    /// Waits until the task was woken so often.
    fn reaches(&self, count: usize) {
        let start = Instant::now();
        while self.get() < count {
            assert!(start.elapsed() < LONG, "the task is not woken");
            std::thread::yield_now();
        }
    }
}

fn task() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

fn is_pending(submitting: &mut Submitting<'_, Scale>, waker: &Waker) -> bool {
    pin!(submitting)
        .poll(&mut Context::from_waker(waker))
        .is_pending()
}

#[test]
fn a_setting_says_how_many_closed_batches_wait() {
    for waiting_batches_max in [1, 2, 7] {
        let config = EngineConfig {
            waiting_batches_max,
            ..config()
        };
        let (engine, gate) = full(&config);
        let refused = engine.try_submit(vec![2.0], plain());
        assert!(matches!(refused, Err(TrySubmitError::Full(_))));
        gate.open();
        let ticket = engine.submit(vec![2.0]).unwrap();
        engine.flush().unwrap();
        assert_eq!(ticket.wait().unwrap().result.unwrap().0, [4.0]);
    }
    let none = EngineConfig {
        waiting_batches_max: 0,
        ..config()
    };
    let error = Engine::auto(Scale::new(2.0), &none).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("waiting_batches_max"), "{error}");
}

#[test]
fn tasks_wait_for_room_and_are_served_in_turn() {
    let (engine, gate) = full(&config());
    let mut tasks: Vec<_> = (0..30)
        .map(|n| (engine.submit_async(vec![n as f32; 10], plain()), task()))
        .collect();
    for (submitting, (_, waker)) in &mut tasks {
        assert!(is_pending(submitting, waker));
        assert!(is_pending(submitting, waker), "polled twice");
    }
    assert!(tasks.iter().all(|(_, (count, _))| count.get() == 0));
    gate.open();
    let mut order = Vec::new();
    for (n, (submitting, (count, _))) in tasks.into_iter().enumerate() {
        // Each is woken once room is left and those before it were served.
        count.reaches(1);
        let ticket = block_on(submitting).unwrap();
        order.push((n, ticket));
    }
    for (n, ticket) in order {
        let done = ticket.wait().unwrap();
        assert_eq!(done.item, vec![n as f32; 10]);
        assert!(done.result.is_ok());
    }
}

#[test]
fn a_task_that_gives_up_leaves_its_turn_to_the_next() {
    let (engine, gate) = full(&config());
    let (first_count, first_waker) = task();
    let (second_count, second_waker) = task();
    let (third_count, third_waker) = task();
    let mut first = engine.submit_async(vec![1.0; 10], plain());
    let mut second = engine.submit_async(vec![2.0; 10], plain());
    let mut third = engine.submit_async(vec![3.0; 10], plain());
    assert!(is_pending(&mut first, &first_waker));
    assert!(is_pending(&mut second, &second_waker));
    assert!(is_pending(&mut third, &third_waker));
    // One before it was woken, and one after.
    drop(second);
    gate.open();
    first_count.reaches(1);
    drop(first);
    third_count.reaches(1);
    assert_eq!(second_count.get(), 0);
    let ticket = block_on(third).unwrap();
    assert_eq!(ticket.wait().unwrap().item, [3.0; 10]);
}

#[test]
fn items_that_wait_are_taken_before_others_and_without_their_tasks() {
    let (engine, gate) = engine(&config());
    let held = gate.occupy(&engine, 10);
    let first = engine.submit(vec![1.0; 10]).unwrap();
    let second = engine.submit(vec![2.0; 10]).unwrap();
    let tasks = [3.0, 4.0].map(|value| {
        let mut submitting = engine.submit_async(vec![value; 10], plain());
        let (count, waker) = task();
        assert!(is_pending(&mut submitting, &waker));
        (submitting, count)
    });
    // Each makes room for a batch, which the item that waits is.
    for (ticket, (_, count)) in [first, second].into_iter().zip(&tasks) {
        assert!(ticket.cancel().is_ok());
        assert_eq!(count.get(), 1, "it is taken although no task was polled");
        let refused = engine.try_submit(vec![5.0], plain());
        assert!(matches!(refused, Err(TrySubmitError::Full(_))));
    }
    gate.open();
    for ((submitting, _), value) in tasks.into_iter().zip([3.0, 4.0]) {
        let ticket = block_on(submitting).unwrap();
        assert_eq!(ticket.wait().unwrap().result.unwrap().0, [2.0 * value; 10]);
    }
    held.wait().unwrap();
}

#[test]
fn threads_and_tasks_that_wait_are_both_served() {
    let config = EngineConfig {
        waiting_batches_max: 1,
        ..config()
    };
    let (engine, _gate) = engine(&config);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let engine = &engine;
            scope.spawn(move || {
                for _ in 0..200 {
                    let item = vec![1.0; 10];
                    let ticket = match thread % 2 {
                        0 => engine.submit(item),
                        _ => block_on(engine.submit_async(item, plain())),
                    };
                    drop(ticket.unwrap());
                }
            });
        }
    });
}

#[test]
fn an_item_expires_while_it_waits_for_room() {
    let (engine, gate) = full(&config());
    let expires_at = Instant::now() + Duration::from_millis(30);
    let options = SubmitOptions {
        expires_at: Some(expires_at),
        ..plain()
    };
    let check = |ticket: tapeloop_engine::Ticket<Scale>| {
        assert!(Instant::now() >= expires_at);
        let done = ticket.wait().unwrap();
        assert_eq!(done.item, [7.0; 3]);
        assert_eq!(done.result.unwrap_err().kind(), ErrorKind::Expired);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| check(engine.submit_with(vec![7.0; 3], options).unwrap()));
        check(block_on(engine.submit_async(vec![7.0; 3], options)).unwrap());
    });
    let counters = engine.counters();
    assert_eq!((counters.items_expired, counters.items_rejected), (2, 2));
    gate.open();
}

#[test]
fn an_engine_that_is_closed_refuses_items_and_answers_those_it_has() {
    let (engine, gate) = engine(&config());
    let held = gate.occupy(&engine, 10);
    let waiting = [1.0, 2.0].map(|value| engine.submit(vec![value; 10]).unwrap());
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| engine.submit(vec![3.0; 10]).err().unwrap());
        let task = scope.spawn(|| {
            let submitting = engine.submit_async(vec![4.0; 10], plain());
            block_on(submitting).err().unwrap()
        });
        std::thread::sleep(Duration::from_millis(20));
        engine.close();
        for refused in [thread, task] {
            assert_eq!(refused.join().unwrap().kind(), ErrorKind::Closed);
        }
    });
    assert_eq!(engine.flush().unwrap_err().kind(), ErrorKind::Closed);
    assert!(engine.ended().is_none(), "no error has ended it");
    gate.open();
    for ticket in waiting {
        assert!(ticket.wait().unwrap().result.is_ok());
    }
    assert!(held.wait().unwrap().result.is_ok());
    engine.shutdown(LONG).unwrap();
}

#[test]
fn many_tasks_of_several_threads_are_all_served() {
    let config = EngineConfig {
        slots: 2,
        waiting_batches_max: 1,
        ..config()
    };
    let (engine, _gate) = engine(&config);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                for n in 0..300 {
                    let item = vec![(300 * thread + n) as f32; 1 + n % 10];
                    // Some give up, and some use the other ways in.
                    match n % 7 {
                        0 => {
                            let mut given_up = engine.submit_async(item, plain());
                            let _ = is_pending(&mut given_up, Waker::noop());
                        }
                        1 => drop(engine.try_submit(item, plain()).ok()),
                        2 => drop(engine.submit(item).unwrap()),
                        _ => drop(block_on(engine.submit_async(item, plain())).unwrap()),
                    }
                }
                engine.flush().unwrap();
            });
        }
    });
}

#[test]
fn a_task_that_waits_for_room_hears_that_the_engine_has_ended() {
    use crate::scale::TWIN_PANICS;
    use tapeloop_sim::{SimBackend, SimOptions};
    let backend = Arc::new(SimBackend::new(SimOptions::seeded(3)));
    let pool = Arc::new(
        rayon::ThreadPoolBuilder::new()
            .num_threads(2)
            .build()
            .unwrap(),
    );
    let engine = Engine::new(Scale::new(2.0), &[backend], pool, &config()).unwrap();
    drop(engine.submit(vec![TWIN_PANICS; 10]).unwrap());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut served = 0;
                loop {
                    match block_on(engine.submit_async(vec![1.0; 10], plain())) {
                        Ok(_) => served += 1,
                        Err(error) => return assert_eq!(error.kind(), ErrorKind::Closed),
                    }
                    assert!(served < 1_000_000, "the engine has ended");
                }
            });
        }
    });
}

#[test]
fn an_item_without_a_slot_is_answered_when_it_expires() {
    // Its batch is open and closes when it is full, or waits for a slot; it is alone there, or not.
    for (closes, others) in [(false, 0), (false, 2), (true, 0), (true, 2)] {
        let (engine, gate) = engine(&config());
        let held = gate.occupy(&engine, 10);
        let others: Vec<_> = (0..others)
            .map(|_| engine.submit(vec![1.0; 2]).unwrap())
            .collect();
        let expires_at = Instant::now() + Duration::from_millis(30);
        let options = SubmitOptions {
            expires_at: Some(expires_at),
            ..plain()
        };
        let mut expired: Vec<_> = (0..3)
            .map(|_| engine.submit_with(vec![2.0; 2], options).unwrap())
            .collect();
        if closes {
            engine.flush().unwrap();
        }
        drop(expired.pop());
        let awaited = expired.pop().unwrap();
        let Completion { item, result } = block_on(awaited).unwrap();
        assert!(Instant::now() >= expires_at);
        assert_eq!(
            (item, result.unwrap_err().kind()),
            (vec![2.0; 2], ErrorKind::Expired)
        );
        let mut waited = expired.pop().unwrap();
        let done = waited.wait_timeout(LONG).unwrap().expect("it has expired");
        assert_eq!(done.result.unwrap_err().kind(), ErrorKind::Expired);
        assert!(
            waited.wait_timeout(Duration::ZERO).is_err(),
            "its result was taken"
        );
        assert!(!held.is_done() && others.iter().all(|other| !other.is_done()));
        let counters = engine.counters();
        assert_eq!((counters.items_expired, counters.items_rejected), (3, 3));
        gate.open();
        engine.flush().unwrap();
        for other in others {
            assert_eq!(other.wait().unwrap().result.unwrap().0, [2.0; 2]);
        }
        held.wait().unwrap();
        drop(waited);
        assert_eq!(engine.counters().items_rejected, 3, "counted once");
    }
}

#[test]
fn a_later_item_that_expires_first_is_answered_first() {
    let (engine, gate) = engine(&config());
    let held = gate.occupy(&engine, 10);
    let submit = |ms| {
        let options = SubmitOptions {
            expires_at: Some(Instant::now() + Duration::from_millis(ms)),
            ..plain()
        };
        engine.submit_with(vec![1.0], options).unwrap()
    };
    let (late, early) = (submit(3_600_000), submit(10));
    let done = early.wait().unwrap();
    assert_eq!(done.result.unwrap_err().kind(), ErrorKind::Expired);
    assert!(!late.is_done());
    // Nor is it cancelled by the ticket of one that has expired.
    let gone = submit(1);
    let start = Instant::now();
    while !gone.is_done() {
        assert!(start.elapsed() < LONG);
        std::thread::yield_now();
    }
    let gone = gone.cancel().unwrap_err();
    assert_eq!(gone.wait().unwrap().item, [1.0]);
    assert_eq!(late.cancel().unwrap(), [1.0]);
    gate.open();
    held.wait().unwrap();
}

#[test]
fn an_item_of_a_pipeline_expires_when_it_is_polled() {
    let config = config();
    let backend = Arc::new(tapeloop_engine::backend::cpu::CpuBackend::inline());
    let pool = Arc::new(
        rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap(),
    );
    let mut pipeline = Pipeline::new(Scale::new(2.0), &[backend], pool, &config).unwrap();
    let now = Instant::now();
    let options = SubmitOptions {
        expires_at: Some(now + Duration::from_millis(5)),
        ..plain()
    };
    pipeline.submit(vec![1.0]).unwrap();
    pipeline.submit_at(vec![2.0], options, now).unwrap();
    let (number, done) = loop {
        if let Some(done) = pipeline.poll() {
            break done;
        }
    };
    assert_eq!((number, done.item), (1, vec![2.0]));
    assert_eq!(done.result.unwrap_err().kind(), ErrorKind::Expired);
    let (number, done) = pipeline.wait().unwrap();
    assert_eq!((number, done.result.unwrap().0), (0, vec![2.0]));
    assert!(pipeline.wait().is_none());
    let counters = pipeline.counters();
    assert_eq!((counters.items_expired, counters.items_rejected), (1, 1));
}

#[test]
fn a_ticket_cancels_its_item_when_it_is_dropped() {
    let (engine, gate) = engine(&config());
    let held = gate.occupy(&engine, 10).cancel_on_drop();
    let taken_back = engine.submit(vec![1.0; 3]).unwrap().cancel_on_drop();
    let many = engine.submit_many([vec![1.0], vec![2.0]]).unwrap();
    let kept = engine.submit(vec![4.0]).unwrap().cancel_on_drop();
    drop(taken_back);
    drop(many.cancel_on_drop());
    // A task that is dropped while it awaits the ticket.
    let mut awaited = engine.submit(vec![3.0]).unwrap().cancel_on_drop();
    let polled = pin!(&mut awaited).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending));
    drop(awaited);
    assert_eq!(engine.counters().items_cancelled, 4);
    gate.open();
    engine.flush().unwrap();
    assert_eq!(kept.wait().unwrap().result.unwrap(), (vec![8.0], 0));
    assert!(held.wait().is_ok());
    let counters = engine.counters();
    assert_eq!((counters.items_cancelled, counters.items_done), (4, 2));
}
