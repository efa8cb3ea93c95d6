//! What it takes to give a graph other parameters, by each rung of the ladder.
//!
//! `set_params_*` are the device slot's calls alone; the `update_*` cases are whole
//! updates through the executor, which lowers the bindings and finds what changed.

use crate::Bench;
use crate::host::{capture, lowered};
use crate::slots::{Slot, Slots};
use crate::work::{Shape, wrong_output};
use std::time::Instant;
use tapeloop::Result;
use tapeloop::backend::Op;
use tapeloop::replay::{Bindings, Build, Lowered, Policy, Rung};

const KERNELS: usize = 12;

/// The factor of the kernels that a case changes. Exact, as the others are.
const OTHER: f32 = 0.25;

pub(crate) fn ladder(bench: &Bench) -> Result<()> {
    bench.attempt("set_params", || set_params(bench));
    let explicit = Policy {
        build: Build::Explicit,
        ..Policy::default()
    };
    for (build, policy) in [("", Policy::default()), ("_explicit", explicit)] {
        let mut slots = Slots::open(bench, Shape::small(KERNELS), 1, &policy)?;
        let one = kernels_changed(&mut slots, &[5])?;
        let all: Vec<usize> = (0..KERNELS).collect();
        let all = kernels_changed(&mut slots, &all)?;
        let copy = copy_changed(&mut slots)?;
        let cases = [
            ("update_params_kernel", &one, Rung::Params, 1),
            ("update_params_kernels", &all, Rung::Params, KERNELS),
            ("update_params_copy", &copy, Rung::Params, 1),
            ("update_whole", &one, Rung::Update, KERNELS + 2),
            ("update_instantiate", &one, Rung::Instantiate, KERNELS + 2),
        ];
        for (case, changed, rung, nodes) in cases {
            let case = format!("{case}{build}");
            bench.attempt(&case, || {
                update(bench, &case, &mut slots, changed, rung, nodes)
            });
        }
    }
    Ok(())
}

/// Other bindings, and what the chain makes of the slot's input under them.
struct Changed {
    bindings: Bindings,
    output: Option<Vec<f32>>,
}

fn kernels_changed(slots: &mut Slots, kernels: &[usize]) -> Result<Changed> {
    let shape = slots.shape;
    let slot = slots.first();
    let mut bindings = slot.executor.bindings(&mut *slot.device_slot, 0)?.clone();
    for &kernel in kernels {
        bindings.set_scalar(kernel, "a", OTHER)?;
    }
    let factor = |k: usize| match kernels.contains(&k) {
        true => OTHER,
        false => Shape::factor(k),
    };
    let output = Some(shape.output_with(slot.input(), factor));
    Ok(Changed { bindings, output })
}

fn copy_changed(slots: &mut Slots) -> Result<Changed> {
    let (x, n) = (slots.buffers.x, slots.shape.n);
    let slot = slots.first();
    let mut bindings = slot.executor.bindings(&mut *slot.device_slot, 0)?.clone();
    bindings.set_copy_len(x, n / 2)?;
    // The other half stays what the batch before uploaded, which is the same.
    let output = None;
    Ok(Changed { bindings, output })
}

/// Times updates there and back.
fn update(
    bench: &Bench,
    case: &str,
    slots: &mut Slots,
    changed: &Changed,
    rung: Rung,
    nodes: usize,
) -> Result<()> {
    slots.check(case)?;
    let (shape, buffers) = (slots.shape, slots.buffers);
    let slot = slots.first();
    let original = slot.executor.bindings(&mut *slot.device_slot, 0)?.clone();
    let mut taken = rung;
    let mut update = |slot: &mut Slot, bindings: Bindings| -> Result<f64> {
        let start = Instant::now();
        let executor = &mut slot.executor;
        taken = executor.update_from(&mut *slot.device_slot, 0, bindings, rung)?;
        Ok(start.elapsed().as_nanos() as f64)
    };
    update(slot, changed.bindings.clone())?;
    slot.reset(buffers);
    slot.executor
        .replay(&mut *slot.device_slot, 0, shape.extent())?;
    slot.device_slot.wait()?;
    if let Some(output) = &changed.output
        && slot.left(buffers) != output
    {
        return Err(wrong_output(case));
    }
    update(slot, original.clone())?;

    let mut samples = Vec::new();
    for _ in 0..(bench.samples / 20).max(1) {
        for bindings in [&changed.bindings, &original] {
            // The clone is the caller's doing, and not timed.
            samples.push(update(slot, bindings.clone())?);
        }
    }
    slots.check(case)?;
    let line = shape.line(case, 1, false).number("nodes", nodes);
    let line = line.text("rung", &format!("{taken:?}").to_lowercase());
    line.times("host_", samples).print();
    Ok(())
}

/// The device slot's own calls on a graph of the whole batch.
fn set_params(bench: &Bench) -> Result<()> {
    let shape = Shape::small(KERNELS);
    let mut slots = Slots::open(bench, shape, 1, &Policy::default())?;
    let ops = lowered(
        bench,
        &slots,
        &*slots.slots[0].device_slot,
        &Policy::default(),
    )?;
    let buffers = slots.buffers;
    let slot = slots.first();
    let graph = capture(&mut *slot.device_slot, &ops.iter().collect::<Vec<_>>())?;
    for (case, kernel) in [("set_params_kernel", true), ("set_params_copy", false)] {
        let wanted = |lowered: &&Lowered| match *lowered.op() {
            Op::Launch { .. } => kernel,
            Op::Upload { .. } => !kernel,
            _ => false,
        };
        let node = ops.iter().find(wanted).expect("there is one of each");
        // Without copies left out, a node's place is its command's.
        let (index, original) = (node.command(), node.op());
        let mut changed = original.clone();
        match &mut changed {
            Op::Launch { args, .. } => args[4] = OTHER.to_bits().into(),
            Op::Upload { bytes, .. } => *bytes /= 2,
            _ => unreachable!("not wanted"),
        }
        let mut samples = Vec::new();
        for _ in 0..(bench.samples / 20).max(1) {
            for op in [&changed, original] {
                let start = Instant::now();
                // SAFETY: the operation is the lowered one, half of its copy, or with
                // another factor, which the kernel takes any of.
                unsafe { slot.device_slot.set_params(graph, index, op)? };
                samples.push(start.elapsed().as_nanos() as f64);
            }
        }
        slot.reset(buffers);
        slot.device_slot.launch_graph(graph)?;
        slot.device_slot.fence()?;
        slot.device_slot.wait()?;
        slot.check_left(buffers, case)?;
        let line = shape.line(case, 1, false).number("nodes", 1);
        line.times("host_", samples).print();
    }
    Ok(())
}
