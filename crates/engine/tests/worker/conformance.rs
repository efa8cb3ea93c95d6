//! The scenarios of every backend, on the CPU of a worker process.

fn on_a_worker(scenario: tapeloop_conformance::Scenario) {
    let (worker, backend) = super::open();
    scenario(&backend);
    assert!(worker.process_id().is_some(), "a worker runs at the end");
}

tapeloop_conformance::tests!(on_a_worker);
