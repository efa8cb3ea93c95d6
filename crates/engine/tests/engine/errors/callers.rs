//! Whom an engine answers and when, and callers that block, panic or drop it.

use super::*;

#[test]
fn whatever_finishes_first_is_answered_first() {
    let mut second_first = 0;
    for seed in 0..20 {
        // The seed says whose kernel runs first. Each poll is a call, and takes a time slice where
        // other programs are busy.
        let fault = Fault::Slow {
            launch: 0,
            calls: 300,
        };
        let sim = SimBackend::new(SimOptions {
            faults: vec![fault],
            ..SimOptions::seeded(seed)
        });
        let config = EngineConfig {
            wait: Wait::Spin,
            ..config()
        };
        let backend: Arc<dyn Backend> = Arc::new(sim);
        let engine = engine(&backend, &config);
        let tickets = [1, 2].map(|n| engine.submit(number(n)).unwrap());
        while !tickets.iter().any(Ticket::is_done) {
            std::thread::yield_now();
        }
        second_first += usize::from(!tickets[0].is_done());
        for (ticket, expected) in tickets.into_iter().zip([2, 3]) {
            assert_eq!(answer(ticket).unwrap(), expected);
        }
    }
    assert!(second_first > 0);
}

#[test]
fn a_device_that_is_waited_for_holds_up_no_other() {
    let config = EngineConfig {
        slots: 1,
        ..config()
    };
    let engine = Engine::new(AddOne::new(), &[cpu(), cpu()], pool(), &config).unwrap();
    let held = engine.submit(number(HELD)).unwrap();
    for n in 0..100 {
        assert_eq!(ask(&engine, number(n)).unwrap(), n + 1);
    }
    assert!(!held.is_done());
    GATE.store(1, Relaxed);
    assert_eq!(answer(held).unwrap(), HELD + 1);
}

#[test]
fn a_ring_gives_out_what_finishes_first() {
    let fault = Fault::Slow {
        launch: 0,
        calls: 2_000,
    };
    let (_, backend) = sim(vec![fault]);
    let packer =
        tapeloop_engine::pipeline::Packer::new(AddOne::new(), &[[1].into()], &backend, pool());
    let packer = packer.unwrap();
    let policy = config().policy;
    let mut ring = Ring::new(&backend, &packer.buckets(), 2, &policy, Wait::Block).unwrap();
    for n in 0..2 {
        let mut slot = ring.acquire().unwrap();
        let packed = packer.pack(&mut slot, vec![number(n)]).ok().unwrap();
        ring.submit(slot, packed.extent(), packed).unwrap();
    }
    for expected in [2, 1] {
        let done = ring.wait().unwrap().ok().unwrap();
        assert_eq!(packer.read(&done)[0].as_ref().unwrap(), &expected);
        drop(ring.release(Ok(done)));
    }
}

/// An engine whose `read` calls `after` with the engine.
fn reentrant(
    after: impl Fn(&Engine<AddOne>, &Item) -> Result<()> + Send + Sync + 'static,
    batch: u32,
) -> Arc<Engine<AddOne>> {
    engine_of(batch, |own| AddOne::with(move |item| after(&own(), item)))
}

/// An engine whose workload can get the engine itself.
fn engine_of(
    batch: u32,
    workload: impl FnOnce(Box<dyn Fn() -> Arc<Engine<AddOne>> + Send + Sync>) -> AddOne,
) -> Arc<Engine<AddOne>> {
    let own: Arc<OnceLock<Weak<Engine<AddOne>>>> = Arc::default();
    let cell = Arc::clone(&own);
    let workload = workload(Box::new(move || {
        let engine = cell.get().expect("set before the first item").upgrade();
        engine.expect("kept by the test")
    }));
    let config = EngineConfig {
        batch: Extent::from([batch]),
        buckets: vec![Extent::from([batch])],
        ..config()
    };
    let engine = Engine::new(workload, &[cpu()], pool(), &config).unwrap();
    let engine = Arc::new(engine);
    own.set(Arc::downgrade(&engine)).unwrap();
    engine
}

#[test]
fn calls_that_would_wait_for_their_own_thread_are_refused() {
    type Call = fn(&Engine<AddOne>) -> Result<()>;
    let calls: [Call; 3] = [
        |engine| engine.submit(number(1)).map(drop),
        |engine| engine.flush(),
        |engine| {
            let options = SubmitOptions::default();
            let ticket = engine.try_submit(number(0), options).map_err(|_| full())?;
            ticket.wait().map(drop)
        },
    ];
    for call in calls {
        // On the unpack thread, and on a thread of the pool.
        for (batch, length) in [(1, 1), (1 << 20, 1 << 20)] {
            let after = move |engine: &Engine<AddOne>, item: &Item| match item.number {
                7 => call(engine),
                _ => Ok(()),
            };
            let engine = reentrant(after, batch);
            let error = ask(&engine, long(7, length)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(
                error.to_string().contains("would wait for itself"),
                "{error}"
            );
            assert_eq!(ask(&engine, long(3, length)).unwrap(), 4);
        }
    }
}

#[test]
fn threads_that_help_to_write_an_item_may_not_wait_for_the_engine() {
    let submit_on_all = |engine: &Engine<AddOne>| -> Result<()> {
        let submitted = rayon::broadcast(|_| engine.submit(number(0)).map(drop));
        assert_eq!(submitted.len(), 2, "the threads that write");
        assert!(submitted.iter().all(Result::is_err), "one of them may wait");
        submitted.into_iter().collect()
    };
    // Large enough for a worker.
    let length = 20_000;
    let engine = engine_of(length, |own| AddOne {
        before: Box::new(move |item| match item.number {
            7 => submit_on_all(&own()),
            _ => Ok(()),
        }),
        ..AddOne::new()
    });
    let error = ask(&engine, long(7, length)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert_eq!(ask(&engine, number(3)).unwrap(), 4);
}

fn full() -> Error {
    Error::usage("the intake is full")
}

#[test]
fn items_may_be_submitted_while_others_are_read() {
    // Each item but the last ones has two more: 2^13 - 1 in all.
    let left: Arc<Mutex<Vec<u32>>> = Arc::default();
    let refused = Arc::clone(&left);
    let after = move |engine: &Engine<AddOne>, item: &Item| {
        for _ in 0..if item.number > 0 { 2 } else { 0 } {
            let child = number(item.number - 1);
            if let Err(error) = engine.try_submit(child, SubmitOptions::default()) {
                assert!(matches!(error, TrySubmitError::Full(_)));
                refused.lock().unwrap().push(error.into_item().number);
            }
        }
        Ok(())
    };
    let engine = reentrant(after, 1);
    drop(engine.submit(number(12)).unwrap());
    let start = Instant::now();
    while engine.counters().items_done < 8191 {
        assert!(start.elapsed() < Duration::from_secs(60), "it hangs");
        let next = left.lock().unwrap().pop();
        match next {
            Some(n) => drop(engine.submit(number(n)).unwrap()),
            None => std::thread::yield_now(),
        }
    }
}

#[test]
fn the_last_handle_may_be_dropped_by_the_engine_s_own_threads() {
    // With the item of a ticket that was dropped, by the unpack thread; and by a
    // thread of the pool while it reads.
    for on_the_pool in [false, true] {
        let (sender, dropped) = mpsc::channel();
        let workload = AddOne::with(move |item| {
            if on_the_pool {
                drop(item.held.lock().unwrap().take());
            }
            Ok(())
        });
        let length = if on_the_pool { 1 << 20 } else { 1 };
        let config = EngineConfig {
            batch: Extent::from([length]),
            buckets: vec![Extent::from([length])],
            ..config()
        };
        let (sim, backend) = sim(Vec::new());
        let engine = Arc::new(Engine::new(workload, &[backend], pool(), &config).unwrap());
        let item = Item {
            length,
            held: Mutex::new(Some(Arc::clone(&engine))),
            dropped: Some(sender),
            number: 1,
        };
        drop(engine.submit(item).unwrap());
        drop(engine);
        dropped
            .recv_timeout(Duration::from_secs(30))
            .expect("the item is dropped");
        let start = Instant::now();
        while sim.live() != Live::default() {
            assert!(start.elapsed() < Duration::from_secs(30), "the threads end");
            std::thread::yield_now();
        }
    }
}

#[test]
fn urgent_items_do_not_hold_up_the_others_for_ever() {
    let engine = Arc::new(engine(&cpu(), &config()));
    let stop = Arc::new(AtomicU32::new(0));
    let flood = || {
        let (engine, stop) = (Arc::clone(&engine), Arc::clone(&stop));
        std::thread::spawn(move || {
            let urgent = SubmitOptions {
                urgent: true,
                ..SubmitOptions::default()
            };
            while stop.load(Relaxed) == 0 {
                drop(engine.submit_with(number(1), urgent).unwrap());
            }
        })
    };
    let floods: Vec<_> = (0..3).map(|_| flood()).collect();
    for n in 0..50 {
        assert_eq!(ask(&engine, number(n)).unwrap(), n + 1);
        let ticket = engine.submit(number(n)).unwrap();
        engine.flush().unwrap();
        assert_eq!(answer(ticket).unwrap(), n + 1);
    }
    stop.store(1, Relaxed);
    floods.into_iter().for_each(|flood| flood.join().unwrap());
}

#[test]
fn a_run_gets_the_errors_of_its_batches_with_the_items() {
    let submission = Fault::Submission { submission: 20 };
    let (_, backend) = sim(vec![submission]);
    let mut engine = engine(&backend, &config());
    let mut results = Vec::new();
    let mut sink = |done: Completion<AddOne>| {
        results.push(done.result.is_ok());
        Ok(())
    };
    engine.run((0..50).map(number), &mut sink).unwrap();
    assert_eq!(results.len(), 50);
    assert_eq!(results.iter().filter(|ok| !**ok).count(), 1);
}

#[test]
fn an_item_that_panics_when_it_is_dropped_ends_nothing() {
    for submit in [0, 1] {
        let engine = engine(&cpu(), &config());
        for n in 0..20 {
            let other = engine.submit(number(n)).unwrap();
            // Nobody waits for it, so that the engine drops it.
            match submit {
                0 => drop(engine.submit(number(PANICS_WHEN_DROPPED)).unwrap()),
                _ => drop(engine.submit_with(
                    number(PANICS_WHEN_DROPPED),
                    SubmitOptions {
                        urgent: true,
                        ..SubmitOptions::default()
                    },
                )),
            }
            assert_eq!(answer(other).unwrap(), n + 1);
        }
        check_alive(&engine, &Error::usage("none"), ErrorScope::Batch);
    }
}

#[test]
fn a_run_that_ends_early_drops_its_items_one_by_one() {
    let mut engine = engine(&cpu(), &config());
    let mut taken = 0;
    let mut sink = |done: Completion<AddOne>| {
        taken += 1;
        std::mem::forget(done);
        Err(Error::usage("planted"))
    };
    let items = (0..100).map(|_| number(PANICS_WHEN_DROPPED));
    let error = engine.run(items, &mut sink).unwrap_err();
    assert_eq!((error.message(), taken), ("planted", 1));
    check_alive(&engine, &Error::usage("none"), ErrorScope::Batch);
}
