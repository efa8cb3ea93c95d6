//! Simulated devices, and the checks after a test.

use std::sync::Arc;
use tapeloop_engine::backend::Backend;
use tapeloop_sim::{Live, SimBackend, SimOptions};

/// A device without faults. Every second seed starts its memory poisoned.
pub fn device(seed: u64) -> (Arc<SimBackend>, Arc<dyn Backend>) {
    device_with(SimOptions {
        poisoned: seed % 2 == 1,
        ..SimOptions::seeded(seed)
    })
}

pub fn device_with(options: SimOptions) -> (Arc<SimBackend>, Arc<dyn Backend>) {
    let sim = Arc::new(SimBackend::new(options));
    let backend: Arc<dyn Backend> = sim.clone();
    (sim, backend)
}

/// Asserts that no rule was broken, and that all resources were released.
pub fn assert_clean(sim: &SimBackend) {
    let violations: Vec<String> = sim.violations().iter().map(|v| v.to_string()).collect();
    assert!(violations.is_empty(), "{violations:#?}");
    assert_eq!(sim.live(), Live::default());
}
