//! The commands of a recording.

use super::buffer::{Buffer, BufferId, Element, Scalar};
use super::kernel::{Kernel, ParamKind};
use super::shape::Shape;

/// One argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// A buffer of the recording.
    Buffer(BufferId),
    /// A value.
    Scalar(Scalar),
}

impl<T: Element> From<Buffer<T>> for Arg {
    fn from(buffer: Buffer<T>) -> Self {
        Arg::Buffer(buffer.id())
    }
}

impl<T: Element> From<T> for Arg {
    fn from(value: T) -> Self {
        Arg::Scalar(value.into())
    }
}

/// A kernel launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel.
    pub kernel: Kernel,
    /// Its blocks.
    pub shape: Shape,
    /// Arguments in the order of the kernel's parameters.
    pub args: Vec<Arg>,
}

/// One step of a batch, over whole buffers.
#[derive(Clone, Debug)]
pub enum Command {
    /// Copies a buffer from the host to the device.
    Upload(BufferId),
    /// Sets every byte of a device buffer.
    Memset {
        /// The buffer.
        buffer: BufferId,
        /// The byte.
        byte: u8,
    },
    /// Runs a kernel.
    Launch(Launch),
    /// Copies a buffer from the device to the host.
    Download(BufferId),
}

impl Command {
    /// Calls `visit(buffer, reads, writes)` for each device buffer touched.
    pub fn visit_buffers(&self, mut visit: impl FnMut(BufferId, bool, bool)) {
        match self {
            Command::Upload(buffer) | Command::Memset { buffer, .. } => visit(*buffer, false, true),
            Command::Download(buffer) => visit(*buffer, true, false),
            Command::Launch(launch) => {
                for (param, arg) in launch.kernel.params.iter().zip(&launch.args) {
                    if let (ParamKind::Buffer { access, .. }, Arg::Buffer(id)) = (param.kind, arg) {
                        visit(*id, access.reads(), access.writes());
                    }
                }
            }
        }
    }
}
