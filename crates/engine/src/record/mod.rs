//! Recordings: the uploads, launches and downloads of one batch, as plain data.
//!
//! A [`Recorder`] collects the commands of one batch over named buffers. [`Recorder::finish`]
//! checks them once (number and types of arguments, grid limits, and that every buffer is written
//! before it is read) and returns a [`Recording`]. A recording holds no device addresses: a backend
//! adds them.

mod buffer;
mod check;
mod command;
pub(crate) mod device_info;
mod from_cuda;
mod kernel;
mod launch_attributes;
mod library_call;
mod recorder;
mod shape;
pub(crate) mod struct_arg;
mod twin;
mod uniform;

/// The crate of `Pod`, which elements of one's own derive.
pub use bytemuck;
/// Numbers of 16 bits.
pub use half::{bf16, f16};

pub use buffer::{
    Buffer, BufferDecl, BufferId, DType, Element, Number, Scalar, StructType, Unit, View,
};
pub(crate) use buffer::{RecordingId, check_element};
pub(crate) use check::check_grid;
pub use command::{Arg, Command, Launch};
pub(crate) use device_info::DeviceInfo;
pub(crate) use kernel::DeviceCode;
pub use kernel::{Access, CudaSource, Image, Kernel, PARAMS_MAX, Param, ParamKind};
#[cfg(any(feature = "cuda", all(feature = "supervise", target_os = "linux")))]
pub(crate) use launch_attributes::LaunchAttributes;
pub use library_call::LibraryCall;
#[cfg(feature = "cuda")]
pub(crate) use library_call::LibraryCode;
pub use recorder::{BUFFERS_MAX, Recorder, Recording};
pub use shape::{Cover, Shape};
pub(crate) use struct_arg::{Pointer, WORD_BYTES, check_struct};
pub use struct_arg::{PointerField, STRUCT_BYTES_MAX, StructArg, Target};
#[cfg(all(feature = "supervise", target_os = "linux"))]
pub(crate) use twin::TwinCode;
pub use twin::{Twin, TwinArg, TwinLaunch};
pub use uniform::{HEADER_ITEMS, HEADER_LEN, Uniform, UniformDecl, UniformId};

/// The largest number of axes of an extent. A multiple of four, so that an
/// [`Extent`](crate::workload::Extent) is two vector registers without a rest.
pub const AXES_MAX: usize = 8;
