//! Chains of kernels that start before the kernel before them has ended (programmatic dependent
//! launch), on a real device.

use crate::gpu::*;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tapeloop::backend::contract::DeviceSlot;
use tapeloop::backend::{Backend, CudaOptions};
use tapeloop::record::{Buffer, Image, Kernel, Recorder, Recording};
use tapeloop::replay::{Build, Executor, Mode, Policy, Rung, Transfer, Verify};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const KERNELS: u32 = 20;

/// Each thread reads what a thread of another block wrote in the kernel before.
const TEXT: &str = r#"
extern "C" __global__ void next(const unsigned* in, unsigned* out, unsigned add, unsigned n)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[(i + 4099) % n] * 3 + add;
}"#;

/// A chain of kernels over `n` numbers.
struct Chain {
    recording: Recording,
    x: Buffer<u32>,
    y: Buffer<u32>,
    n: u32,
}

/// The kernel, which is declared to wait or not.
fn kernel(image: &Arc<Image>, waits: bool) -> Kernel {
    let declared = Kernel::declared_in(TEXT, "next").unwrap().changeable("add");
    let declared = if waits {
        declared.waits_for_dependencies()
    } else {
        declared
    };
    with_code(declared, image)
}

fn record(kernel: &Kernel, n: u32) -> Chain {
    let mut recorder = Recorder::new(&[n]);
    let x = recorder.upload_buffer::<u32>("x", 0, 1);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    let between = ["even", "odd"].map(|name| recorder.batch_buffer::<u32>(name, n as usize));
    recorder.upload(x);
    for k in 0..KERNELS {
        let [from, to] = [(k + 1) % 2, k % 2].map(|side| between[side as usize]);
        let from = if k == 0 { x } else { from };
        let to = if k + 1 == KERNELS { y } else { to };
        let args = [from.into(), to.into(), k.into(), n.into()];
        recorder.launch(kernel, n.div_ceil(128), &args);
    }
    recorder.download(y);
    let recording = recorder.finish().unwrap();
    Chain { recording, x, y, n }
}

fn input(n: u32, round: u32) -> Vec<u32> {
    let number = |i: u32| (i + round).wrapping_mul(0x9e37_79b9);
    (0..n).map(number).collect()
}

/// The output of the kernels, of which launch `changed` adds 1,000 more.
fn expected(mut x: Vec<u32>, changed: Option<u32>) -> Vec<u32> {
    for k in 0..KERNELS {
        let add = k + 1_000 * u32::from(changed == Some(k));
        let next = |i: usize| x[(i + 4_099) % x.len()].wrapping_mul(3).wrapping_add(add);
        x = (0..x.len()).map(next).collect();
    }
    x
}

/// Replays the chain once, and compares the numbers.
fn check(
    chain: &Chain,
    device_slot: &mut dyn DeviceSlot,
    executor: &mut Executor,
    round: u32,
    changed: Option<u32>,
) {
    let x = input(chain.n, round);
    device_slot.host_mut(&[chain.x.id()])[0].copy_from_slice(bytemuck::cast_slice(&x));
    replay(device_slot, executor);
    device_slot.wait().unwrap();
    let y: &[u32] = bytemuck::cast_slice(device_slot.host(chain.y.id()));
    assert!(
        y == expected(x, changed),
        "round {round} over {} numbers",
        chain.n
    );
}

fn policies() -> Vec<Policy> {
    let ways = [
        (Mode::Graph, Build::Capture),
        (Mode::Graph, Build::Explicit),
        (Mode::Stream, Build::Capture),
        (Mode::Resident, Build::Capture),
        (Mode::Resident, Build::Explicit),
    ];
    ways.map(|(mode, build)| Policy {
        mode,
        build,
        verify: Verify::Off,
        ..Policy::default()
    })
    .to_vec()
}

/// Listens to what the backend logs of graphs on this thread.
#[derive(Clone, Default)]
struct Listener {
    /// The programmatic edges of all graphs.
    edges: Arc<AtomicUsize>,
    refusals: Arc<Mutex<Vec<String>>>,
}

impl Visit for Listener {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "programmatic_edges" {
            self.edges.fetch_add(value as usize, Relaxed);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}");
        if field.name() == "message" && value.contains("refuses programmatic") {
            self.refusals.lock().unwrap().push(value);
        }
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("tapeloop")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A device of its own context state, as a refusal holds for a whole backend.
fn backend() -> Arc<dyn Backend> {
    device_with(&CudaOptions::default())
}

fn has_programmatic_launch(backend: &Arc<dyn Backend>) -> bool {
    backend.device().compute_capability >= Some((9, 0))
}

#[test]
#[ignore = "needs a CUDA device"]
fn programmatic_chains_give_the_same_numbers_in_graphs_streams_and_loops() {
    let backend = backend();
    let image = source_image(TEXT);
    for n in [1, 2_048, 65_536, 1 << 20] {
        let chain = record(&kernel(&image, true), n);
        for policy in policies() {
            for transfer in [Transfer::Copy, Transfer::Mapped] {
                let policy = Policy { transfer, ..policy };
                let mut device_slot = one_slot(&backend, &chain.recording);
                let mut executor =
                    ready_with(&backend, &chain.recording, &mut *device_slot, &policy);
                // The host takes longer for many numbers.
                let rounds = if n > 65_536 { 4 } else { 20 };
                for round in 0..rounds {
                    check(&chain, &mut *device_slot, &mut executor, round, None);
                }
            }
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn programmatic_edges_are_between_all_kernels_of_a_chain_and_the_driver_takes_them() {
    let backend = backend();
    let count = |kernel: &Kernel, policy: &Policy| {
        let chain = record(kernel, 2_048);
        let listener = Listener::default();
        let mut device_slot = one_slot(&backend, &chain.recording);
        tracing::subscriber::with_default(listener.clone(), || {
            let mut executor = ready_with(&backend, &chain.recording, &mut *device_slot, policy);
            check(&chain, &mut *device_slot, &mut executor, 0, None);
        });
        let refusals = listener.refusals.lock().unwrap();
        assert!(refusals.is_empty(), "{:?}: {refusals:?}", policy.mode);
        listener.edges.load(Relaxed)
    };
    let image = source_image(TEXT);
    // The driver compiles it for this device from PTX without the wait.
    let old = Image::compiled("old", OLD);
    for policy in policies() {
        let has_edges = policy.mode != Mode::Stream && has_programmatic_launch(&backend);
        let edges = |count: usize| if has_edges { count } else { 0 };
        // The small copies before and after the chain are kernels, too.
        let all = KERNELS as usize + 1;
        assert_eq!(count(&kernel(&image, true), &policy), edges(all));
        assert_eq!(count(&kernel(&image, false), &policy), edges(1));
        assert_eq!(count(&kernel(&old, true), &policy), edges(1));
    }
}

/// What nvcc makes of the kernel for compute capability 7.5.
const OLD: &str = include_str!("next_75.ptx");

#[test]
#[ignore = "needs a CUDA device"]
fn programmatic_graphs_take_other_parameters_by_every_rung() {
    let backend = backend();
    let chain = record(&kernel(&source_image(TEXT), true), 65_536);
    for policy in policies() {
        for least in [Rung::Params, Rung::Update, Rung::Instantiate] {
            if policy.mode != Mode::Graph {
                continue;
            }
            let mut device_slot = one_slot(&backend, &chain.recording);
            let mut executor = ready_with(&backend, &chain.recording, &mut *device_slot, &policy);
            check(&chain, &mut *device_slot, &mut executor, 0, None);
            let mut bindings = executor.bindings(&mut *device_slot, 0).unwrap().clone();
            bindings.set_scalar(7, "add", 1_007_u32).unwrap();
            let updated = executor.update_from(&mut *device_slot, 0, bindings, least);
            assert_eq!(updated.unwrap(), least, "{:?}", policy.build);
            for round in 1..20 {
                check(&chain, &mut *device_slot, &mut executor, round, Some(7));
            }
        }
    }
}

/// Microseconds that a replay takes of many that follow each other, the median of repetitions.
fn replay_us(chain: &Chain, device_slot: &mut dyn DeviceSlot, executor: &mut Executor) -> f64 {
    const REPLAYS: u32 = 50;
    let mut times: Vec<f64> = (0..31)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..REPLAYS {
                replay(device_slot, executor);
            }
            device_slot.wait().unwrap();
            start.elapsed().as_secs_f64() * 1e6 / f64::from(REPLAYS)
        })
        .collect();
    assert_eq!(chain.recording.launches().count(), KERNELS as usize);
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
#[ignore = "needs a CUDA device"]
fn programmatic_chains_take_less_time() {
    let backend = backend();
    let image = source_image(TEXT);
    say("microseconds for a chain of 20 kernels, programmatic / full / their ratio");
    for n in [2_048, 65_536, 1 << 20, 1 << 22] {
        for policy in policies() {
            let chains = [true, false].map(|waits| record(&kernel(&image, waits), n));
            let mut ready = chains.each_ref().map(|chain| {
                let mut device_slot = one_slot(&backend, &chain.recording);
                let executor = ready_with(&backend, &chain.recording, &mut *device_slot, &policy);
                (device_slot, executor)
            });
            let mut us = [Vec::new(), Vec::new()];
            for _ in 0..3 {
                for (side, (device_slot, executor)) in ready.iter_mut().enumerate() {
                    us[side].push(replay_us(&chains[side], &mut **device_slot, executor));
                }
            }
            let [programmatic, full] = us.map(|mut us| {
                us.sort_unstable_by(f64::total_cmp);
                us[1]
            });
            let (mode, build) = (policy.mode.name(), policy.build.name());
            let ratio = programmatic / full;
            say(&format!(
                "{n} numbers, {mode}, {build}: {programmatic:.2} / {full:.2} / {ratio:.3}"
            ));
            // In streams and loops the host is part of the time.
            if has_programmatic_launch(&backend) && policy.mode == Mode::Graph {
                assert!(ratio < 1.05, "{ratio}");
            }
        }
    }
}
