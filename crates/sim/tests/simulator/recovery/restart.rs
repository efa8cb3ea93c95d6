//! What runs while a device is restarted and just after it, and in which order.

use super::watched::Watched;
use super::*;
use std::sync::mpsc::channel;
use tapeloop_engine::pipeline::SubmitOptions;

/// Batches of 64 elements that close when they are full. Nothing runs before the first of them.
fn full_batches(slots: usize) -> EngineConfig {
    let mut config = EngineConfig::new([64, 8]);
    (config.slots, config.wait) = (slots, Wait::Spin);
    (config.close, config.batch_wait) = (Close::Full, Duration::MAX);
    config.policy.verify = Verify::Off;
    config
}

/// The first vector stays where it is written for the second time, so the restart lasts until the
/// others were submitted.
#[test]
fn a_device_gets_no_batch_while_it_is_restarted() {
    let (sim, backend) = supervised(3, vec![Fault::Kernel { launch: 0 }]);
    let ((begin, began), (go_on, gone_on)) = (channel(), channel::<()>());
    let gone_on = Mutex::new(gone_on);
    let written = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&written);
    let before_write = move |item: &[f32]| {
        let mut written = log.lock().unwrap();
        written.push(item[0]);
        if *written == [1.0, 1.0] {
            drop(written);
            begin.send(()).unwrap();
            // Ends when the test drops the other end.
            let _ = gone_on.lock().unwrap().recv();
        }
        Ok(())
    };
    let workload = Watched {
        scale: Scale::new(2.0),
        before_write,
    };
    let mut config = full_batches(4);
    config.urgent_slots = 1;
    let engine = Engine::new(workload, &[backend], pool(), &config).unwrap();
    let urgent = SubmitOptions {
        urgent: true,
        ..SubmitOptions::default()
    };
    let first = engine.submit(vec![1.0; 64]).unwrap();
    began.recv_timeout(Duration::from_secs(60)).unwrap();
    let second = engine.submit(vec![2.0; 64]).unwrap();
    let third = engine.submit_with(vec![3.0; 64], urgent).unwrap();
    let meanwhile = written.lock().unwrap().clone();
    drop(go_on);
    assert_eq!(
        meanwhile,
        [1.0, 1.0],
        "the others wait, though slots are free"
    );
    for (ticket, value) in [(first, 1.0), (second, 2.0), (third, 3.0)] {
        let (values, _) = ticket.wait().unwrap().result.unwrap();
        assert_eq!(values, [2.0 * value; 64]);
    }
    assert_eq!(engine.counters().restarts, 1);
    drop(engine);
    assert_clean(&sim);
}

#[test]
fn batches_that_are_lost_together_run_again_in_the_order_of_their_submission() {
    let mut lost_together = 0;
    for seed in 0..20 {
        let (sim, backend) = supervised(seed, vec![Fault::Kernel { launch: 0 }]);
        let ran = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&ran);
        // No batch ran before the loss.
        let scale = Scale::with(2.0, move |elements| log.lock().unwrap().push(elements[0]));
        let config = full_batches(3);
        let mut pipeline = Pipeline::new(scale, &[backend], pool(), &config).unwrap();
        for value in [1.0, 2.0, 3.0] {
            pipeline.submit(vec![value; 64]).unwrap();
        }
        while let Some((_, done)) = pipeline.wait() {
            done.result.unwrap();
        }
        assert_eq!(*ran.lock().unwrap(), [1.0, 2.0, 3.0], "seed {seed}");
        lost_together += u32::from(pipeline.counters().reruns == 3);
        drop(pipeline);
        assert_clean(&sim);
    }
    assert!(lost_together > 0, "all three were in flight");
}
