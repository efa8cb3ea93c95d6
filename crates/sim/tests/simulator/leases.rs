//! Results that borrow their slot, and what they keep of the device.

use crate::leasing::Leasing;
use crate::scale::Scale;
use crate::seeds::simulated::{assert_clean, device};
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop_engine::pipeline::{Engine, EngineConfig};

#[test]
fn a_result_keeps_its_slot_after_the_engine_and_nothing_else() {
    let (sim, backend) = device(2);
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let config = EngineConfig::new([64, 8]);
    let engine = Engine::new(Leasing(Scale::new(2.0)), &[backend], pool, &config).unwrap();
    let done = engine.submit(vec![1.0, 2.0]).unwrap().wait().unwrap();
    let leased = done.result.unwrap();
    assert_eq!(engine.counters().results_leased, 1);
    assert_eq!(sim.live().slots, config.slots);
    drop(engine);
    assert_eq!(sim.live().slots, 1);
    assert_eq!(leased[..], [2.0, 4.0]);
    drop(leased);
    assert_clean(&sim);
}
