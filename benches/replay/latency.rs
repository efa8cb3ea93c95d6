//! One batch, from its submission to its result, on one slot.

use crate::Bench;
use crate::period::policies;
use crate::report::Line;
use crate::slots::{Slot, Slots};
use crate::work::{Buffers, Shape};
use std::time::Instant;
use tapeloop::Result;
use tapeloop::replay::Policy;

/// So often a latency's slot is opened anew. Where the driver happens to put a
/// stream's commands moves all latencies of that stream by up to 2 us, so one
/// opening is one draw.
const OPENINGS: usize = 9;

/// By each policy, waiting by a wait or by looking over and over, without host
/// copies and with them.
pub(crate) fn latency(bench: &Bench) -> Result<()> {
    let wait = |slot: &mut Slot| slot.device_slot.wait();
    let poll = |slot: &mut Slot| -> Result<()> {
        while !slot.device_slot.is_done()? {}
        Ok(())
    };
    for (policy_name, policy) in policies() {
        let case = format!("latency_{policy_name}");
        bench.attempt(&case, || {
            one_batch(bench, &case, &policy, false, wait)?;
            if matches!(policy_name, "graph" | "mapped") {
                one_batch(bench, &case, &policy, true, wait)?;
                one_batch(bench, &format!("{case}_poll"), &policy, false, poll)?;
            }
            Ok(())
        });
    }
    Ok(())
}

/// The samples of all openings, as a line.
pub(crate) fn openings(
    bench: &Bench,
    line: Line,
    mut samples: impl FnMut(usize) -> Result<Vec<f64>>,
) -> Result<()> {
    let each = (bench.samples / OPENINGS).max(10);
    let mut medians = Vec::new();
    let mut all = Vec::new();
    for _ in 0..OPENINGS {
        let mut opening = samples(each)?;
        all.extend_from_slice(&opening);
        opening.sort_unstable_by(f64::total_cmp);
        medians.push(opening[opening.len() / 2]);
    }
    medians.sort_unstable_by(f64::total_cmp);
    line.times("", all)
        .number("opening_least_ns", format!("{:.0}", medians[0]))
        .number("opening_most_ns", format!("{:.0}", medians[OPENINGS - 1]))
        .print();
    Ok(())
}

fn one_batch(
    bench: &Bench,
    case: &str,
    policy: &Policy,
    host_copies: bool,
    wait: impl Fn(&mut Slot) -> Result<()>,
) -> Result<()> {
    let shape = Shape::small(12);
    openings(bench, shape.line(case, 1, host_copies), |count| {
        let mut slots = Slots::open(bench, shape, 1, policy)?;
        sample_slot(count, case, &mut slots, host_copies, &wait)
    })
}

fn sample_slot(
    count: usize,
    case: &str,
    slots: &mut Slots,
    host_copies: bool,
    wait: impl Fn(&mut Slot) -> Result<()>,
) -> Result<Vec<f64>> {
    slots.check(case)?;
    let (shape, buffers) = (slots.shape, slots.buffers);
    let slot = slots.first();
    let samples = sample(count, || {
        if host_copies {
            slot.put_in(buffers);
        }
        slot.executor
            .replay(&mut *slot.device_slot, 0, shape.extent())?;
        wait(slot)?;
        if host_copies {
            slot.take_out(buffers);
        }
        Ok(())
    })?;
    slots.check_left(case)?;
    Ok(samples)
}

/// Nanoseconds of each of `count` calls, after some that do not count.
pub(crate) fn sample(count: usize, mut call: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    let warm = count / 10;
    let mut samples = Vec::with_capacity(count);
    for round in 0..warm + count {
        let start = Instant::now();
        call()?;
        let took = start.elapsed();
        if round >= warm {
            samples.push(took.as_nanos() as f64);
        }
    }
    Ok(samples)
}

/// Copies against mapped buffers, each way, by size: where the copy begins to pay.
pub(crate) fn sweep(bench: &Bench) -> Result<()> {
    const KERNELS: usize = 3;
    let variants = [
        ("copy", false, false),
        ("mapped_up", true, false),
        ("mapped_down", false, true),
        ("mapped", true, true),
    ];
    for kib in (0..=10).map(|power| 1_usize << power) {
        let shape = Shape::flat(kib * 1024 / size_of::<f32>(), KERNELS);
        let mut slots = Slots::open(bench, shape, 1, &Policy::default())?;
        for (variant, up, down) in variants {
            map(&mut slots, up, down)?;
            let name = format!("sweep_{variant}");
            slots.check(&name)?;
            let slot = slots.first();
            let samples = sample((bench.samples / 10).max(10), || {
                slot.executor
                    .replay(&mut *slot.device_slot, 0, shape.extent())?;
                slot.device_slot.wait()
            })?;
            slots.check_left(&name)?;
            shape.line(&name, 1, false).times("", samples).print();
        }
    }
    Ok(())
}

fn map(slots: &mut Slots, up: bool, down: bool) -> Result<()> {
    let Buffers { x, y } = slots.buffers;
    let slot = slots.first();
    let mut bindings = slot.executor.bindings(&mut *slot.device_slot, 0)?.clone();
    bindings.set_mapped(x, up)?;
    bindings.set_mapped(y, down)?;
    slot.executor.update(&mut *slot.device_slot, 0, bindings)?;
    Ok(())
}
