//! The scenarios of every backend, each on several orders of the device.

use crate::seeds::each_seed;
use crate::seeds::simulated::device_with;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tapeloop_conformance::Scenario;
use tapeloop_sim::{Live, SimOptions, ViolationKind};

fn run(scenario: Scenario, supervised: bool) {
    each_seed(6, |seed| {
        let (sim, backend) = device_with(SimOptions {
            supervised,
            ..SimOptions::seeded(seed)
        });
        let outcome = catch_unwind(AssertUnwindSafe(|| scenario(&backend)));
        // Scenarios name foreign memory to be refused.
        let mut broken = sim.violations();
        broken.retain(|violation| violation.kind != ViolationKind::Foreign);
        match outcome {
            Ok(()) => {
                assert_eq!(broken, []);
                assert_eq!(sim.live(), Live::default());
            }
            // Where another backend panics, this one reports that the host was too early.
            Err(_) if broken.len() == 1 && broken[0].to_string().contains("the host") => {}
            Err(panic) => resume_unwind(panic),
        }
    });
}

mod alone {
    fn on_a_simulated_device(scenario: tapeloop_conformance::Scenario) {
        super::run(scenario, false);
    }

    tapeloop_conformance::tests!(on_a_simulated_device);
}

mod supervised {
    fn on_a_simulated_device(scenario: tapeloop_conformance::Scenario) {
        super::run(scenario, true);
    }

    tapeloop_conformance::tests!(on_a_simulated_device);
}
