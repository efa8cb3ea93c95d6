//! Kernels that may start before the kernel before them has ended, because they wait for that.

use crate::seeds::each_seed;
use crate::seeds::simulated::assert_clean;
use std::sync::Arc;
use tapeloop_engine::backend::contract::Priority;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::record::{Buffer, Kernel, Recorder, Recording, TwinLaunch};
use tapeloop_engine::replay::{Buckets, Build, Executor, Mode, Policy, Verify};
use tapeloop_engine::workload::Extent;
use tapeloop_engine::{ErrorKind, Result};
use tapeloop_sim::{Fault, SimBackend, SimOptions, ViolationKind};

const LEN: u32 = 16;
const KERNELS: u32 = 4;

fn add_one(launch: &mut TwinLaunch<'_>) {
    let (x, y): (&[u32], &mut [u32]) = (launch.read(), launch.write());
    y.iter_mut().zip(x).for_each(|(y, x)| *y = x + 1);
}

fn kernel(waits: bool) -> Kernel {
    let kernel = Kernel::new("add_one").reads::<u32>("x").writes::<u32>("y");
    let kernel = if waits {
        kernel.waits_for_dependencies()
    } else {
        kernel
    };
    kernel.twin(add_one)
}

/// A chain of kernels from an upload to a download.
fn chain(waits: bool) -> (Recording, [Buffer<u32>; 2]) {
    let kernel = kernel(waits);
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.upload_buffer::<u32>("x", 0, 1);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    let between = ["even", "odd"].map(|name| recorder.device_buffer::<u32>(name, 0, 1));
    recorder.upload(x);
    for k in 0..KERNELS {
        let [from, to] = [(k + 1) % 2, k % 2].map(|side| between[side as usize]);
        let from = if k == 0 { x } else { from };
        let to = if k + 1 == KERNELS { y } else { to };
        recorder.launch(&kernel, 1, &[from.into(), to.into()]);
    }
    recorder.download(y);
    (recorder.finish().unwrap(), [x, y])
}

/// Two batches of the chain, with their results compared.
fn run(backend: &Arc<dyn Backend>, waits: bool, (mode, build): (Mode, Build)) -> Result<()> {
    let (recording, [x, y]) = chain(waits);
    let mut slots = backend.open_slots(recording.buffers(), 1, Priority::Normal)?;
    let slot = &mut *slots[0];
    let policy = Policy {
        mode,
        build,
        // It waits for the host between launches.
        verify: Verify::Off,
        ..Policy::default()
    };
    let buckets = Arc::new(Buckets::single(recording));
    let mut executor = Executor::new(backend, slot, &buckets, &policy)?;
    for batch in 0..2 {
        let input: Vec<u32> = (0..LEN).map(|i| i + batch).collect();
        slot.host_mut(&[x.id()])[0].copy_from_slice(bytemuck::cast_slice(&input));
        executor.replay(slot, 0, Extent::from([LEN]))?;
        slot.wait()?;
        let output: &[u32] = bytemuck::cast_slice(slot.host(y.id()));
        let expected: Vec<u32> = input.iter().map(|i| i + KERNELS).collect();
        assert_eq!(output, expected);
    }
    Ok(())
}

const WAYS: [(Mode, Build); 5] = [
    (Mode::Graph, Build::Capture),
    (Mode::Graph, Build::Explicit),
    (Mode::Stream, Build::Capture),
    (Mode::Resident, Build::Capture),
    (Mode::Resident, Build::Explicit),
];

#[test]
fn a_chain_of_kernels_that_wait_is_right_and_ordered() {
    for way in WAYS {
        let cpu: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
        run(&cpu, true, way).unwrap();
        each_seed(50, |seed| {
            let sim = Arc::new(SimBackend::new(SimOptions::seeded(seed)));
            let backend: Arc<dyn Backend> = sim.clone();
            run(&backend, true, way).unwrap();
            drop(backend);
            assert_clean(&sim);
        });
    }
}

#[test]
fn a_kernel_that_does_not_wait_as_declared_is_found_on_every_seed() {
    for way in WAYS {
        each_seed(50, |seed| {
            let run_with = |waits| {
                let options = SimOptions {
                    faults: vec![Fault::NoWaits],
                    ..SimOptions::seeded(seed)
                };
                let sim = Arc::new(SimBackend::new(options));
                let backend: Arc<dyn Backend> = sim.clone();
                (run(&backend, waits, way), sim.violations())
            };
            let (ran, violations) = run_with(true);
            let error = ran.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{way:?}: {error}");
            let [violation] = &violations[..] else {
                panic!("{way:?}: {violations:?}");
            };
            assert_eq!(violation.kind, ViolationKind::Unordered);
            for access in [&violation.earlier, &violation.later] {
                assert_eq!(access.as_ref().unwrap().operation, "kernel add_one");
            }
            // Kernels without the declaration are ordered by their edges.
            let (ran, violations) = run_with(false);
            ran.unwrap();
            assert_eq!(violations, []);
        });
    }
}
