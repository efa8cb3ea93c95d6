//! The one lowering.

use super::Bindings;
use crate::backend::Op;
use crate::record::{Arg, BufferId, Command, Recording};

/// Resolves every command of a recording: addresses, byte counts, grids and
/// arguments.
pub fn lower(recording: &Recording, bindings: &Bindings) -> Vec<Op> {
    let mut functions = bindings.functions.iter();
    let addresses = |id: BufferId| bindings.addresses[id.index()];
    let host = |id: BufferId| addresses(id).host.expect("a buffer that the host sees");
    let bytes = |id: BufferId| recording.buffers()[id.index()].size_bytes();
    let lower_one = |command: &Command| match command {
        Command::Upload(id) => Op::Upload {
            host: host(*id),
            device: addresses(*id).device,
            bytes: bytes(*id),
        },
        Command::Download(id) => Op::Download {
            device: addresses(*id).device,
            host: host(*id),
            bytes: bytes(*id),
        },
        Command::Memset { buffer, byte } => Op::Memset {
            device: addresses(*buffer).device,
            byte: *byte,
            bytes: bytes(*buffer),
        },
        Command::Launch(launch) => Op::Launch {
            function: *functions.next().expect("one function for each launch"),
            grid: launch.grid,
            block: launch.kernel.block,
            shared_bytes: launch.kernel.shared_bytes,
            args: launch
                .args
                .iter()
                .map(|arg| match arg {
                    Arg::Buffer(id) => addresses(*id).device,
                    Arg::Scalar(scalar) => scalar.bits,
                })
                .collect(),
        },
    };
    recording.commands().iter().map(lower_one).collect()
}
