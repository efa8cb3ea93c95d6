//! Mode auto on the card. Without a device this says "skipped: no device".

use crate::gpu::*;
use crate::target::turn;
use tapeloop::backend::Streams;
use tapeloop::backend::contract::Priority;
use tapeloop::replay::{Build, Mode, Policy, Transfer, Verify, Way};

fn policies() -> Vec<Policy> {
    let mut policies = Vec::new();
    for &build in Build::ALL {
        for (streams, transfer) in [
            (Streams::PerSlot, Transfer::Copy),
            (Streams::PerSlot, Transfer::Mapped),
            (Streams::PerStage, Transfer::Copy),
        ] {
            policies.push(Policy {
                build,
                streams,
                transfer,
                ..Policy::of(Mode::Auto)
            });
        }
    }
    policies
}

#[test]
fn what_is_chosen_gives_the_results_and_makes_the_calls_of_its_way() {
    let _turn = turn();
    let Some(backend) = device() else { return };
    let saxpy = saxpy();
    for policy in policies() {
        let open = || {
            let buffers = saxpy.recording.buffers();
            let device_slots = backend.open_slots(buffers, 1, policy.streams, Priority::Normal);
            device_slots.unwrap().remove(0)
        };
        let mut device_slot = open();
        let mut executor = ready_with(&backend, &saxpy.recording, &mut *device_slot, &policy);
        for index in 0..4 {
            round(&saxpy, &mut *device_slot, &mut executor, 0, index);
        }
        let chosen = executor.chosen().remove(0);
        say(&format!(
            "{:?} {:?}: {chosen}",
            policy.streams, policy.transfer
        ));
        let ways = match policy.streams {
            Streams::PerSlot => 5,
            Streams::PerStage => 2,
        };
        assert_eq!(chosen.tried.len(), ways);
        let sane = |ns: u64| (1_000..1_000_000_000).contains(&ns);
        let mut times = chosen.tried.iter().map(|tried| tried.period_ns);
        assert!(times.all(|ns| ns.is_some_and(sane)), "{chosen}");

        let Way { mode, scope } = chosen.way;
        let fixed = Policy {
            mode,
            scope,
            verify: Verify::Off,
            ..policy
        };
        // In stream mode there is no graph to build.
        let build = match mode {
            Mode::Stream => Build::Capture,
            _ => policy.build,
        };
        let mut other = open();
        let fixed = Policy { build, ..fixed };
        let mut expected = ready_with(&backend, &saxpy.recording, &mut *other, &fixed);
        let wanted = replay(&mut *other, &mut expected);
        other.wait().unwrap();
        let before = backend.driver_calls();
        for _ in 0..100 {
            assert_eq!(replay(&mut *device_slot, &mut executor).calls, wanted.calls);
            device_slot.wait().unwrap();
        }
        let after = backend.driver_calls();
        let given = after.submissions - before.submissions;
        match mode {
            // A launch of the loop and its event, now and then.
            Mode::Resident => assert!(given <= 20, "{given} calls"),
            _ => assert_eq!(given, 100 * wanted.calls as u64),
        }
        assert_eq!(after.allocations, before.allocations);
        assert_eq!(after.graph_edits, before.graph_edits);
    }
}
