//! *What* runs: a recording of uploads, launches and downloads, as plain data.
//!
//! A [`Recorder`] takes down the commands of one batch over named buffers, and [`Recorder::finish`]
//! checks them once: arity, types, bounds, and that nothing is read before it is written. The
//! [`Recording`] that comes out holds no device address and no device type; a backend gives it both
//! later.

mod buffer;
mod by_value;
mod check;
mod command;
mod from_cuda;
mod kernel;
mod recorder;
mod shape;
mod signature;

pub(crate) use buffer::RecordingId;
pub use buffer::{
    Buffer, BufferDecl, BufferId, DType, Element, Number, Scalar, StructType, Unit, View,
};
pub(crate) use by_value::check_struct;
pub use by_value::{
    Pointer, PointerField, STRUCT_BYTES_MAX, StructArg, Target, WORD_BYTES, pointers_of, words_of,
};
pub(crate) use check::check_grid;
pub use command::{Arg, Command, Launch};
pub use kernel::{Access, CudaSource, Image, Kernel, Param, ParamKind, Twin, TwinArg, TwinLaunch};
pub use recorder::{BUFFERS_MAX, HEADER_ITEMS, HEADER_LEN, Recorder, Recording, Uniform};
pub use shape::{Cover, Shape};

/// The most axes that an extent has.
pub const AXES_MAX: usize = 6;
