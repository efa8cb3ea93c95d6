//! Lowers commands to operations.

use super::Bindings;
use super::bindings::BoundLaunch;
use crate::backend::{Allocation, DeviceSlotId, FunctionId, Op};
use crate::record::{Arg, Command, Launch, Target};
use std::fmt;
use std::sync::Arc;

/// A command as an operation with addresses. Only [`lower`] makes one, so the operation comes from
/// a checked recording over bindings of one slot.
#[derive(Clone)]
pub struct Lowered {
    command: usize,
    op: Op,
    is_library_call: bool,
    warm_up: Option<FunctionId>,
    slot: DeviceSlotId,
    /// Keeps the allocations that buffers are bound to.
    _allocations: Arc<[Allocation]>,
}

impl Lowered {
    /// The index of the command in the recording.
    pub fn command(&self) -> usize {
        self.command
    }

    /// The operation.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// Whether it is a library call, which may give a graph other nodes with other arguments.
    pub(super) fn is_library_call(&self) -> bool {
        self.is_library_call
    }

    /// The launch that runs before this one is captured, if there is one.
    pub(super) fn warm_up(&self) -> Option<Self> {
        let warm_up = self.warm_up?;
        let mut lowered = self.clone();
        lowered.warm_up = None;
        if let Op::Launch { function, .. } = &mut lowered.op {
            *function = warm_up;
        }
        Some(lowered)
    }

    /// The slot whose memory it addresses.
    pub fn slot(&self) -> &DeviceSlotId {
        &self.slot
    }

    /// An operation without a recording.
    #[cfg(test)]
    pub(super) fn of_op(command: usize, op: Op) -> Self {
        Lowered {
            command,
            op,
            is_library_call: false,
            warm_up: None,
            slot: DeviceSlotId::new(crate::backend::BackendId::new()),
            _allocations: Arc::new([]),
        }
    }
}

impl fmt::Debug for Lowered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lowered { command, op, .. } = self;
        write!(f, "command {command}: {op:?}")
    }
}

/// Lowers every command of a recording: resolves addresses, sizes, grids and arguments. Copies of
/// mapped buffers are left out.
///
/// For tests of a backend, and unstable like its [contract](crate::backend::contract), as is
/// [`Lowered`].
pub fn lower(bindings: &Bindings) -> Vec<Lowered> {
    let mut launches = 0..;
    let allocations: Arc<[Allocation]> = bindings.allocations().cloned().collect();
    let lower_one = |(index, command): (usize, &Command)| {
        let mut warm_up = None;
        let op = match command {
            Command::Upload(id) | Command::Download(id) if bindings.is_mapped(*id) => return None,
            Command::Upload(id) => Op::Upload {
                host: bindings.host(*id),
                device: bindings.device(*id),
                bytes: bindings.bytes(*id),
            },
            Command::Download(id) => Op::Download {
                device: bindings.device(*id),
                host: bindings.host(*id),
                bytes: bindings.bytes(*id),
            },
            Command::Memset { buffer, byte } => Op::Memset {
                device: bindings.device(*buffer),
                byte: *byte,
                bytes: bindings.recording().buffers()[buffer.index()].size_bytes(),
            },
            Command::Launch(launch) => {
                let bound = bindings.launch(launches.next().expect("without end"));
                warm_up = bound.warm_up;
                Op::Launch {
                    function: bound.function,
                    grid: bound.grid,
                    block: bound.block,
                    shared_bytes: launch.kernel.shared_bytes,
                    args: words(bindings, launch, bound),
                }
            }
        };
        Some(Lowered {
            command: index,
            op,
            is_library_call: matches!(command, Command::Launch(launch) if launch.is_library_call()),
            warm_up,
            slot: bindings.slot().clone(),
            _allocations: Arc::clone(&allocations),
        })
    };
    let commands = bindings.recording().commands().iter().enumerate();
    commands.filter_map(lower_one).collect()
}

/// The arguments of a launch in words, with addresses in place of buffers, also in structs.
fn words(bindings: &Bindings, launch: &Launch, bound: &BoundLaunch) -> Box<[u64]> {
    let mut words = Vec::with_capacity(launch.kernel.words());
    let mut targets = Vec::new();
    for (param, recorded) in launch.args.iter().enumerate() {
        match bound.arg(param, recorded) {
            Arg::Buffer(id) => {
                targets.push(Target::Buffer(*id));
                words.push(0);
            }
            Arg::Uniform(id) => {
                targets.push(Target::Uniform(*id));
                words.push(0);
            }
            Arg::Scalar(scalar) => words.push(scalar.bits),
            Arg::Struct(passed) => {
                targets.extend(passed.targets());
                words.extend(passed.words());
            }
        }
    }
    for (pointer, target) in launch.kernel.pointers().zip(targets) {
        words[pointer.word] = match target {
            Target::Buffer(id) => bindings.device(id),
            Target::Uniform(id) => bindings.device(id.header()) + id.offset_bytes() as u64,
            Target::Address(address) => address,
        };
    }
    words.into_boxed_slice()
}
