//! Graphs on a real device, where only CUDA shows a behaviour, and changes while long kernels run.
//! The other tests of graphs are scenarios of `tapeloop-conformance`.

use crate::give::Give;
use crate::gpu::*;
use std::sync::Arc;
use tapeloop::backend::contract::{Built, DeviceSlot, Op};
use tapeloop::backend::{AllocationView, Backend, Space};
use tapeloop::record::Kernel;
use tapeloop::replay::{Bindings, Build, Executor, Policy, Rung, Verify};

const BUILDS: [Build; 2] = [Build::Capture, Build::Explicit];
const FLOATS: usize = LEN * size_of::<f32>();

fn policy(build: Build) -> Policy {
    Policy {
        build,
        // Launches are meant to be in flight when they were given.
        verify: Verify::Off,
        ..Policy::default()
    }
}

struct Ladder {
    saxpy: Saxpy,
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
}

impl Ladder {
    fn new(backend: &Arc<dyn Backend>, build: Build) -> Self {
        let saxpy = saxpy();
        let mut device_slot = one_slot(backend, &saxpy.recording);
        let executor = ready_with(backend, &saxpy.recording, &mut *device_slot, &policy(build));
        Ladder {
            saxpy,
            device_slot,
            executor,
        }
    }

    /// Changes the bindings by no cheaper rung than `least`.
    fn change(&mut self, least: Rung, change: impl FnOnce(&Saxpy, &mut Bindings)) -> Rung {
        let mut bindings = self
            .executor
            .bindings(&mut *self.device_slot, 0)
            .unwrap()
            .clone();
        change(&self.saxpy, &mut bindings);
        self.executor
            .update_from(&mut *self.device_slot, 0, bindings, least)
            .unwrap()
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn mapping_a_buffer_updates_the_graph() {
    let backend = device();
    for build in BUILDS {
        let mut ladder = Ladder::new(&backend, build);
        for mapped in [true, false, true] {
            let rung = ladder.change(Rung::Unchanged, |saxpy, b| {
                b.set_mapped(saxpy.x, mapped).unwrap();
            });
            // The remaining copies and memsets are still done by the same launches.
            assert_eq!(rung, Rung::Update);
            let (x, wanted) = expected(1, 1);
            fill(&ladder.saxpy, &mut *ladder.device_slot, &x);
            replay(&mut *ladder.device_slot, &mut ladder.executor);
            ladder.device_slot.wait().unwrap();
            assert!(out(&ladder.saxpy, &*ladder.device_slot) == wanted);
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn rebinding_to_blocks_and_back_gives_each_its_own_bytes() {
    let backend = device();
    for build in BUILDS {
        for least in [Rung::Params, Rung::Update, Rung::Instantiate] {
            let mut ladder = Ladder::new(&backend, build);
            let device = backend.allocate(Space::Device, FLOATS + 512).unwrap();
            let pinned = backend.allocate(Space::Pinned, 2 * FLOATS + 64).unwrap();
            let rung = ladder.change(least, |saxpy, b| {
                let view = AllocationView::new(&device, 512, FLOATS).unwrap();
                b.bind_device(saxpy.x, view).unwrap();
                let view = AllocationView::new(&pinned, 0, FLOATS).unwrap();
                b.bind_host(saxpy.x, view).unwrap();
                let view = AllocationView::new(&pinned, FLOATS + 64, FLOATS).unwrap();
                b.bind_host(saxpy.out, view).unwrap();
            });
            assert_eq!(rung, least);
            for round in 0..5 {
                let (x, wanted) = expected(2, round);
                pinned.write().unwrap()[..FLOATS].copy_from_slice(bytemuck::cast_slice(&x));
                replay(&mut *ladder.device_slot, &mut ladder.executor);
                assert!(pinned.read().is_err(), "the device's turn");
                ladder.device_slot.wait().unwrap();
                let bytes = pinned.read().unwrap();
                assert!(bytes[FLOATS + 64..] == *bytemuck::cast_slice::<f32, u8>(&wanted));
                let mut copied = vec![0; FLOATS];
                backend.read(&device, 512, &mut copied).unwrap();
                assert!(copied == bytemuck::cast_slice::<f32, u8>(&x));
                assert!(
                    out(&ladder.saxpy, &*ladder.device_slot)
                        .iter()
                        .all(|v| *v == 0.0)
                );
            }
            // Binds the slot's own memory again.
            let recording = Arc::clone(
                ladder
                    .executor
                    .bindings(&mut *ladder.device_slot, 0)
                    .unwrap()
                    .recording(),
            );
            let changes =
                Bindings::new(&recording, &*backend, &*ladder.device_slot, &policy(build)).unwrap();
            ladder
                .executor
                .update(&mut *ladder.device_slot, 0, changes)
                .unwrap();
            let Ladder {
                saxpy,
                device_slot,
                executor,
            } = &mut ladder;
            round(saxpy, &mut **device_slot, executor, 3, 1);
        }
    }
}

/// A change affects only later launches, also if it replaces the graph.
#[test]
#[ignore = "needs a CUDA device"]
fn launches_in_flight_keep_their_parameters() {
    let backend = device();
    let slow = Kernel::new("slow").writes::<f32>("out").scalar::<u32>("n");
    let slow = with_code(slow, &source_image(SAXPY));
    for build in BUILDS {
        for least in [Rung::Params, Rung::Update, Rung::Instantiate] {
            let mut ladder = Ladder::new(&backend, build);
            let function = backend.load(&slow).unwrap();
            let blocks = [0, 1].map(|_| backend.allocate(Space::Pinned, FLOATS).unwrap());
            let (x, _) = expected(0, 0);
            fill(&ladder.saxpy, &mut *ladder.device_slot, &x);
            let hold = Op::Launch {
                function,
                grid: [80, 1, 1],
                block: [128, 1, 1],
                shared_bytes: 0,
                args: Box::new([
                    ladder.device_slot.addresses(ladder.saxpy.out.id()).device,
                    LEN as u64,
                ]),
            };
            let mut first = true;
            for (block, a) in blocks.iter().zip([2.0_f32, 5.0]) {
                ladder.change(least, |saxpy, b| {
                    b.set_scalar(0, "a", a).unwrap();
                    let view = AllocationView::new(block, 0, FLOATS).unwrap();
                    b.bind_host(saxpy.out, view).unwrap();
                });
                if std::mem::take(&mut first) {
                    ladder.device_slot.give(&hold).unwrap();
                } else if ladder.device_slot.is_done().unwrap() {
                    // As the driver may where it makes a graph anew, and tools may
                    // anywhere; then this round shows less.
                    say(&format!("a change by {least:?} waited for work in flight"));
                }
                replay(&mut *ladder.device_slot, &mut ladder.executor);
            }
            ladder.device_slot.wait().unwrap();
            for (block, a) in blocks.iter().zip([2.0_f32, 5.0]) {
                let wanted: Vec<f32> = x.iter().map(|x| a * x + 0x0101_0101 as f32).collect();
                assert!(*block.read().unwrap() == *bytemuck::cast_slice::<f32, u8>(&wanted));
            }
        }
    }
}

fn memset(device_slot: &dyn DeviceSlot, saxpy: &Saxpy, byte: u8) -> Op {
    Op::Memset {
        device: device_slot.addresses(saxpy.out.id()).device,
        byte,
        bytes: FLOATS,
    }
}

fn download(device_slot: &dyn DeviceSlot, saxpy: &Saxpy) -> Op {
    let addresses = device_slot.addresses(saxpy.out.id());
    Op::Download {
        device: addresses.device,
        host: addresses.host.unwrap(),
        bytes: FLOATS,
    }
}

fn upload(device_slot: &dyn DeviceSlot, saxpy: &Saxpy) -> Op {
    let addresses = device_slot.addresses(saxpy.x.id());
    Op::Upload {
        device: addresses.device,
        host: addresses.host.unwrap(),
        bytes: FLOATS,
    }
}

/// Another kind of operation is another topology, and so is a copy that goes the other way, which
/// is a node of the same type.
#[test]
#[ignore = "needs a CUDA device"]
fn the_driver_names_where_a_topology_differs() {
    let backend = device();
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let one = memset(&*device_slot, &saxpy, 1);
    let (up, down) = (
        upload(&*device_slot, &saxpy),
        download(&*device_slot, &saxpy),
    );
    let cases = [
        (&one, vec![&down], "NODE_TYPE_CHANGED"),
        (&up, vec![&down], "PARAMETERS_CHANGED"),
        (&one, vec![&one, &down], "TOPOLOGY_CHANGED"),
    ];
    for (before, after, why) in cases {
        let (graph, _) = device_slot.capture(&[before], None).unwrap();
        let (_, built) = device_slot.capture(&after, Some(graph)).unwrap();
        let Built::Reinstantiated { reason } = built else {
            panic!("{built:?}");
        };
        say(&format!("another topology: {reason}"));
        assert!(reason.contains(why), "{reason}");
    }
}
