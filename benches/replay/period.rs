//! Batches in a closed loop: the period of each policy, and of each stage alone.

use crate::Bench;
use crate::host::StageLoop;
use crate::slots::{Slots, repeat};
use crate::work::Shape;
use tapeloop::Result;
use tapeloop::backend::Streams;
use tapeloop::replay::{Build, Mode, Policy, Scope, Transfer};

/// The policies that cases are named by.
pub(crate) fn policies() -> [(&'static str, Policy); 6] {
    let graph = Policy::default();
    let kernels = Policy {
        scope: Scope::Kernels,
        ..graph
    };
    [
        ("graph", graph),
        (
            "mapped",
            Policy {
                transfer: Transfer::Mapped,
                ..graph
            },
        ),
        (
            "explicit",
            Policy {
                build: Build::Explicit,
                ..graph
            },
        ),
        ("kernels_per_slot", kernels),
        ("stream", Policy::of(Mode::Stream)),
        (
            "kernels_per_stage",
            Policy {
                streams: Streams::PerStage,
                ..kernels
            },
        ),
    ]
}

/// 16 KiB up, 12 kernels, 16 KiB down, four slots.
pub(crate) fn small(bench: &Bench) -> Result<()> {
    for (case, policy) in policies() {
        bench.attempt(case, || {
            let mut slots = Slots::open(bench, Shape::small(12), 4, &policy)?;
            period(bench, case, &mut slots, false, 1)?;
            period(bench, case, &mut slots, true, 1)
        });
    }
    Ok(())
}

/// 8 MiB up, 12 kernels, 4 MiB down, three slots.
pub(crate) fn large(bench: &Bench) -> Result<()> {
    stages(bench)?;
    for (case, policy) in policies() {
        if matches!(case, "stream" | "mapped") {
            continue;
        }
        bench.attempt(case, || {
            let mut slots = Slots::open(bench, Shape::large(), 3, &policy)?;
            period(bench, case, &mut slots, false, 2)?;
            match case {
                "graph" => period(bench, case, &mut slots, true, 2),
                _ => Ok(()),
            }
        });
    }
    Ok(())
}

fn period(
    bench: &Bench,
    case: &str,
    slots: &mut Slots,
    host_copies: bool,
    longer: u32,
) -> Result<()> {
    slots.check(case)?;
    let count = slots.slots.len();
    let reps = repeat(bench, longer * bench.rep, count, |batches| {
        slots.closed_loop(batches, host_copies)
    })?;
    slots.check_left(case)?;
    let line = slots.shape.line(case, count, host_copies);
    line.period(reps).print();
    Ok(())
}

fn stages(bench: &Bench) -> Result<()> {
    let mut slots = Slots::open(bench, Shape::large(), 3, &Policy::default())?;
    let mut stages = StageLoop::new(bench, &mut slots)?;
    stages.check("stages")?;
    for (case, stage) in StageLoop::CASES {
        let reps = repeat(bench, 2 * bench.rep, 3, |batches| {
            stages.closed_loop(*stage, batches)
        })?;
        stages.check(case)?;
        Shape::large().line(case, 3, false).period(reps).print();
    }
    Ok(())
}
