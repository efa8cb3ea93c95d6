//! The commands of a recording.

use super::buffer::{Buffer, BufferId, DType, Element, Number, Scalar};
use super::kernel::{Access, DeviceCode, Kernel, Param, ParamKind};
use super::shape::Shape;
use super::struct_arg::{StructArg, Target};
use super::twin::Twin;
use super::uniform::{Uniform, UniformId};

/// One argument of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// A buffer of the recording.
    Buffer(BufferId),
    /// A pointer to a value in the header.
    Uniform(UniformId),
    /// A value.
    Scalar(Scalar),
    /// A struct, with the targets of its pointers.
    Struct(StructArg),
}

impl<T: Element> From<Buffer<T>> for Arg {
    fn from(buffer: Buffer<T>) -> Self {
        Arg::Buffer(buffer.id())
    }
}

impl<T: Number> From<Uniform<T>> for Arg {
    fn from(uniform: Uniform<T>) -> Self {
        Arg::Uniform(uniform.id())
    }
}

impl<T: Element> From<T> for Arg {
    /// Converts a number, or a struct without pointers.
    fn from(value: T) -> Self {
        let bytes = bytemuck::bytes_of(&value);
        if let DType::Struct(_) = T::DTYPE {
            return Arg::Struct(StructArg::new(bytes));
        }
        let mut bits = [0; 8];
        bits[..bytes.len()].copy_from_slice(bytes);
        Arg::Scalar(Scalar {
            dtype: T::DTYPE,
            bits: u64::from_le_bytes(bits),
        })
    }
}

impl From<StructArg> for Arg {
    fn from(value: StructArg) -> Self {
        Arg::Struct(value)
    }
}

/// A kernel launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel. Private, because a caller could record a kernel with device code in another way
    /// than its author promised.
    pub(crate) kernel: Kernel,
    /// The number of blocks.
    pub shape: Shape,
    /// Arguments in the order of the kernel's parameters. Private, because a caller could pass the
    /// address in a struct, which is promised to be valid for this kernel, to another kernel.
    pub(crate) args: Vec<Arg>,
}

/// One operation of a batch; each covers whole buffers.
#[derive(Clone, Debug)]
pub enum Command {
    /// Copies a buffer from the host to the device.
    Upload(BufferId),
    /// Sets every byte of a device buffer to `byte`.
    Memset {
        /// The buffer to fill.
        buffer: BufferId,
        /// The value of each byte.
        byte: u8,
    },
    /// Runs a kernel.
    Launch(Launch),
    /// Copies a buffer from the device to the host.
    Download(BufferId),
}

impl Command {
    /// Calls `visit(buffer, reads, writes)` for each device buffer that the command reads or
    /// writes.
    pub fn visit_buffers(&self, mut visit: impl FnMut(BufferId, bool, bool)) {
        match self {
            Command::Upload(buffer) | Command::Memset { buffer, .. } => visit(*buffer, false, true),
            Command::Download(buffer) => visit(*buffer, true, false),
            Command::Launch(launch) => launch.visit_targets(|target, access| {
                let id = match target {
                    Target::Buffer(id) => id,
                    Target::Uniform(id) => id.header(),
                    Target::Address(_) => return,
                };
                visit(id, access.reads(), access.writes());
            }),
        }
    }

    /// Whether the command writes memory that the embedder declared to the executor; `None` if it
    /// cannot reach such memory. A kernel that follows pointers in device memory is assumed to
    /// write.
    pub fn writes_declared(&self) -> Option<bool> {
        let Command::Launch(launch) = self else {
            return None;
        };
        let mut writes = launch.kernel.follows_device_pointers.then_some(true);
        launch.visit_targets(|target, access| {
            if let Target::Address(_) = target {
                writes = Some(writes == Some(true) || access.writes());
            }
        });
        writes
    }
}

impl Launch {
    /// The kernel's name.
    pub fn kernel_name(&self) -> &str {
        self.kernel.name()
    }

    /// The kernel's parameters, in order.
    pub fn params(&self) -> &[Param] {
        self.kernel.params()
    }

    /// Threads of a block along x, y and z, as the kernel declares them.
    pub fn threads(&self) -> [u32; 3] {
        self.kernel.threads()
    }

    /// Whether the kernel has device code.
    pub fn has_code(&self) -> bool {
        self.kernel.has_code()
    }

    /// Whether the kernel is a library call.
    pub(crate) fn is_library_call(&self) -> bool {
        matches!(self.kernel.code, Some(DeviceCode::Library(_)))
    }

    /// The kernel's CPU twin.
    pub fn cpu_twin(&self) -> Option<Twin> {
        self.kernel.cpu_twin()
    }

    /// Calls `visit` for each pointer among the arguments, including those inside structs.
    pub fn visit_targets(&self, mut visit: impl FnMut(Target, Access)) {
        for (param, arg) in self.kernel.params.iter().zip(&self.args) {
            match (&param.kind, arg) {
                (ParamKind::Buffer { access, .. }, Arg::Buffer(id)) => {
                    visit(Target::Buffer(*id), *access);
                }
                (ParamKind::Buffer { access, .. }, Arg::Uniform(id)) => {
                    visit(Target::Uniform(*id), *access);
                }
                (ParamKind::Struct { pointers, .. }, Arg::Struct(passed)) => {
                    let pairs = pointers.iter().zip(&passed.targets);
                    pairs.for_each(|(field, target)| visit(*target, field.access));
                }
                _ => {}
            }
        }
    }
}
