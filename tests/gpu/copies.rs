//! Copies and memsets of a graph that become one kernel.

use crate::give::Give;
use crate::gpu::*;
use tapeloop::ErrorKind;
use tapeloop::backend::contract::{Built, DeviceSlot, GraphId, Node, Op};
use tapeloop::record::{Buffer, Kernel, Recorder};

const BYTES: usize = 70_000;

/// Ranges of odd sizes, at addresses that are and are not multiples of 16: offset on the host,
/// offset on the device, and length in bytes.
const UPLOADS: [(usize, usize, usize); 5] = [
    (0, 0, 16),
    (16, 32, 40_000),
    (40_017, 40_032, 1_001),
    (42_004, 42_004, 4_096),
    (48_001, 48_003, 1),
];
const MEMSETS: [(u8, usize, usize); 2] = [(0x5a, 50_000, 3_333), (7, 60_001, 16)];
/// Offset on the device, offset on the host, and length in bytes.
const DOWNLOADS: [(usize, usize, usize); 2] = [(0, 0, 30_001), (30_001, 30_001, 39_999)];

/// The bytes that the host wrote, those of the device memory, and those that were downloaded.
struct Model {
    x: Vec<u8>,
    device: Vec<u8>,
    y: Vec<u8>,
}

struct Target {
    slot: Box<dyn DeviceSlot>,
    x: Buffer<u8>,
    y: Buffer<u8>,
}

impl Target {
    /// The operations: uploads, memsets and downloads of parts of `y`'s device memory.
    fn ops(&self) -> Vec<Op> {
        let [x, y] = [self.x, self.y].map(|buffer| self.slot.addresses(buffer.id()));
        let uploads = UPLOADS.map(|(host, device, bytes)| Op::Upload {
            host: x.host.unwrap() + host as u64,
            device: y.device + device as u64,
            bytes,
        });
        let memsets = MEMSETS.map(|(byte, device, bytes)| Op::Memset {
            device: y.device + device as u64,
            byte,
            bytes,
        });
        let downloads = DOWNLOADS.map(|(device, host, bytes)| Op::Download {
            device: y.device + device as u64,
            host: y.host.unwrap() + host as u64,
            bytes,
        });
        uploads
            .into_iter()
            .chain(memsets)
            .chain(downloads)
            .collect()
    }

    /// Does the operations one by one.
    fn apply(&self, ops: &[Op], model: &mut Model) {
        let [x, y] = [self.x, self.y].map(|buffer| self.slot.addresses(buffer.id()));
        for op in ops {
            match *op {
                Op::Upload {
                    host,
                    device,
                    bytes,
                } => {
                    let from = (host - x.host.unwrap()) as usize;
                    let to = (device - y.device) as usize;
                    model.device[to..to + bytes].copy_from_slice(&model.x[from..from + bytes]);
                }
                Op::Memset {
                    device,
                    byte,
                    bytes,
                } => {
                    let to = (device - y.device) as usize;
                    model.device[to..to + bytes].fill(byte);
                }
                Op::Download {
                    device,
                    host,
                    bytes,
                } => {
                    let from = (device - y.device) as usize;
                    let to = (host - y.host.unwrap()) as usize;
                    model.y[to..to + bytes].copy_from_slice(&model.device[from..from + bytes]);
                }
                _ => unreachable!("only copies and memsets"),
            }
        }
    }

    /// Launches the graph with other inputs, and compares all downloads.
    fn check(&mut self, graph: GraphId, ops: &[Op], model: &mut Model) {
        model.x.rotate_left(7);
        self.slot.host_mut(&[self.x.id()])[0].copy_from_slice(&model.x);
        self.slot.launch_graph(graph).unwrap();
        self.slot.fence().unwrap();
        self.slot.wait().unwrap();
        self.apply(ops, model);
        assert!(self.slot.host(self.y.id()) == model.y);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn merged_copies_move_the_bytes_that_single_ones_would() {
    let backend = device();
    for captured in [true, false] {
        let mut recorder = Recorder::new(&[BYTES as u32]);
        let x = recorder.upload_buffer::<u8>("x", 0, 1);
        let y = recorder.download_buffer::<u8>("y", 0, 1);
        recorder.upload(x);
        recorder.memset(y, 0);
        // A recording launches something; these graphs do not.
        let kernel = Kernel::new("nothing").reads::<u8>("x").updates::<u8>("y");
        recorder.launch(&kernel, 1, &[x.into(), y.into()]);
        recorder.download(y);
        let slot = one_slot(&backend, &recorder.finish().unwrap());
        let mut target = Target { slot, x, y };
        let mut model = Model {
            x: (0..BYTES).map(|i| (i * 31 % 251) as u8).collect(),
            device: vec![0; BYTES],
            y: vec![0; BYTES],
        };
        let mut ops = target.ops();
        let first = ops.len() - DOWNLOADS.len();
        let up: Vec<usize> = (0..first).collect();
        let before = backend.driver_calls().graph_edits;
        let make = |target: &mut Target, ops: &[Op], into| {
            if captured {
                target.slot.capture(&ops.iter().collect::<Vec<_>>(), into)
            } else {
                let node = |(place, op)| Node {
                    op,
                    after: if place < first { &[] } else { &up[..] },
                };
                let nodes: Vec<_> = ops.iter().enumerate().map(node).collect();
                target.slot.give_graph(&nodes, into)
            }
        };
        let (graph, _) = make(&mut target, &ops, None).unwrap();
        let edits = backend.driver_calls().graph_edits - before;
        assert!(edits < ops.len() as u64, "{edits} calls for two nodes");
        assert_eq!(target.slot.graph_ops(graph).unwrap(), ops);
        target.check(graph, &ops, &mut model);
        // Other parameters for some of the merged operations.
        let Op::Upload { bytes, .. } = &mut ops[1] else {
            unreachable!("the second upload");
        };
        *bytes = 33;
        let Op::Memset { byte, .. } = &mut ops[UPLOADS.len()] else {
            unreachable!("the first memset");
        };
        *byte = 0xff;
        for place in [1, UPLOADS.len()] {
            target.slot.give_params(graph, place, &ops[place]).unwrap();
        }
        target.check(graph, &ops, &mut model);
        let refused = target.slot.give_params(graph, 0, &ops[UPLOADS.len()]);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Usage);
        // Other parameters for all operations.
        ops[2] = ops[3].clone();
        if let Op::Upload { device, .. } = &mut ops[2] {
            *device += 20_000;
        }
        let (same, built) = make(&mut target, &ops, Some(graph)).unwrap();
        assert_eq!((same, built), (graph, Built::Updated));
        assert_eq!(target.slot.graph_ops(graph).unwrap(), ops);
        target.check(graph, &ops, &mut model);
    }
}
