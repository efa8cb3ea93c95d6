//! The scenarios of every backend, on a card of this process and on one of a worker process.

mod on_the_card {
    fn on_the_card(scenario: tapeloop_conformance::Scenario) {
        let target = crate::target::card();
        scenario(&target.backend);
        target.finish();
    }

    tapeloop_conformance::tests!(
        #[ignore = "needs a CUDA device"]
        on_the_card
    );
}

#[cfg(all(feature = "supervise", target_os = "linux"))]
mod on_the_supervised_card {
    fn on_the_supervised_card(scenario: tapeloop_conformance::Scenario) {
        let target = crate::target::supervised_card();
        scenario(&target.backend);
        target.finish();
    }

    tapeloop_conformance::tests!(
        #[ignore = "needs a CUDA device"]
        on_the_supervised_card
    );
}
