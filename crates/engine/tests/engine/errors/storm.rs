//! Calls in every order that safe code can make, from callers and from the engine's own code.

use super::*;
use crate::random::Random;
use tapeloop_engine::pipeline::Close;

/// More than a batch holds, less, and large enough for a worker.
const LENGTHS: [u32; 4] = [1, 40, 18_000, 50_000];
const BATCH: u32 = 20_000;

/// What a callback does with the engine, by its turn. Returns the item's error.
fn meddle(engine: &Engine<AddOne>, turn: u32, item: &Item) -> Result<()> {
    let again = || number(item.number);
    let urgent = SubmitOptions {
        urgent: true,
        ..SubmitOptions::default()
    };
    match turn.wrapping_mul(2_654_435_761) >> 16 & 63 {
        0 => drop(engine.try_submit(again(), SubmitOptions::default())),
        1 => drop(engine.try_submit(again(), urgent)),
        2 => assert_eq!(
            engine.submit(again()).err().unwrap().kind(),
            ErrorKind::Usage
        ),
        3 => assert_eq!(engine.flush().unwrap_err().kind(), ErrorKind::Usage),
        4 => drop(engine.statistics()),
        5 => {
            let ticket = engine.try_submit(again(), urgent);
            drop(ticket.map(Ticket::wait));
        }
        6 => return Err(Error::input("planted")),
        7 => panic!("planted"),
        _ => {}
    }
    Ok(())
}

/// Right, rejected, or with the error of a callback.
fn check(completion: &Completion<AddOne>) {
    let too_long = completion.item.length == LENGTHS[3];
    match &completion.result {
        Ok(result) => assert!(!too_long && *result == completion.item.number + 1),
        Err(error) => assert!(too_long || error.to_string().contains("planted"), "{error}"),
    }
}

fn submit_and_wait(engine: &Engine<AddOne>, seed: u64, rounds: u32) {
    let mut random = Random::new(seed);
    let mut kept = Vec::new();
    for round in 0..rounds {
        let item = |random: &mut Random| {
            let length = *random.pick(&LENGTHS);
            long(round, length)
        };
        let options = SubmitOptions {
            urgent: random.below(4) == 0,
            deadline: Some(Instant::now() + Duration::from_micros(random.below(300) as u64)),
            ..SubmitOptions::default()
        };
        match random.below(8) {
            0 => drop(engine.submit(item(&mut random)).unwrap()),
            1 => drop(engine.submit(number(PANICS_WHEN_DROPPED)).unwrap()),
            2 => kept.extend(engine.try_submit(item(&mut random), options).ok()),
            3 => kept.push(engine.submit_with(item(&mut random), options).unwrap()),
            4 => {
                let many = engine.submit_many((0..100).map(number)).unwrap();
                engine.flush().unwrap();
                many.wait().unwrap().iter().for_each(check);
            }
            5 => std::mem::forget(engine.submit(item(&mut random)).unwrap()),
            6 => engine.flush().unwrap(),
            _ => {
                for ticket in kept.drain(..) {
                    check(&ticket.wait().unwrap());
                }
            }
        }
    }
    engine.flush().unwrap();
    for ticket in kept {
        check(&ticket.wait().unwrap());
    }
}

fn storm(seed: u64, close: Close, backends: &[Arc<dyn Backend>]) {
    let own: Arc<OnceLock<Weak<Engine<AddOne>>>> = Arc::default();
    let hook = |first: u32| -> Box<Hook> {
        let (own, turn) = (Arc::clone(&own), AtomicU32::new(first));
        Box::new(move |item| {
            let engine = own.get().and_then(Weak::upgrade);
            let turn = turn.fetch_add(1, Relaxed);
            engine.map_or(Ok(()), |engine| meddle(&engine, turn, item))
        })
    };
    let workload = AddOne {
        before: hook(seed as u32),
        after: hook(1000 + seed as u32),
        ..AddOne::new()
    };
    let config = EngineConfig {
        batch: Extent::from([BATCH]),
        buckets: vec![Extent::from([BATCH]), Extent::from([2 * BATCH])],
        close,
        batch_wait: Duration::from_micros(300),
        ..config()
    };
    let engine = Arc::new(Engine::new(workload, backends, pool(), &config).unwrap());
    own.set(Arc::downgrade(&engine)).unwrap();
    let (sender, ended) = mpsc::channel();
    for thread in 0..3 {
        let (engine, sender) = (Arc::clone(&engine), sender.clone());
        std::thread::spawn(move || {
            submit_and_wait(&engine, 10 * seed + thread, 150);
            drop(engine);
            sender.send(()).unwrap();
        });
    }
    drop((engine, sender));
    for _ in 0..3 {
        let thread = ended.recv_timeout(Duration::from_secs(60));
        thread.expect("no call hangs, and no result is wrong");
    }
}

#[test]
fn calls_from_everywhere_at_once_answer_every_item() {
    for (seed, close) in [(1, Close::Idle), (2, Close::Full)] {
        storm(seed, close, &[cpu()]);
        storm(seed, close, &[cpu(), cpu()]);
        // Every 40th launch or so takes the device with it.
        let faults = |device: u64| (0..50).map(move |n| 40 + 37 * n + 5 * device);
        let lost = |device| {
            let faults = faults(device).map(|launch| Fault::Kernel { launch });
            supervised(faults.collect())
        };
        storm(seed, close, &[lost(0), lost(1)]);
    }
}
