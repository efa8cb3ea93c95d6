//! Values in the header of a batch, and typed handles to them.

use super::AXES_MAX;
use super::buffer::{BufferId, DType};
use std::marker::PhantomData;

/// Number of header elements before the uniforms: the batch's total along axis `a` at index `a`,
/// the number of items at [`HEADER_ITEMS`], zeros elsewhere. It has room for [`AXES_MAX`] totals
/// and that number, and makes 48 bytes, so uniforms start at a multiple of 16 as buffers do.
pub const HEADER_LEN: usize = 12;

/// Index of the number of items in the header, for any number of axes.
pub const HEADER_ITEMS: usize = AXES_MAX;
const _: () = assert!(HEADER_ITEMS < HEADER_LEN);

/// A typed handle to a value in the header of every batch, from [`Recorder::uniform`] or
/// [`Recorder::constant`].
///
/// As an argument of a launch it is a pointer to the value, for a parameter that
/// [reads](super::Kernel::reads) elements of type `T`; the kernel's twin takes it as a slice, of which
/// the first element is the value.
///
/// ```
/// # fn main() -> tapeloop_engine::Result<()> {
/// use tapeloop_engine::record::Uniform;
/// use tapeloop_engine::{Kernel, Recorder};
///
/// // extern "C" __global__ void fill(const float* value, float* y) { y[...] = *value; }
/// let fill = Kernel::new("fill").reads::<f32>("value").writes::<f32>("y").twin(|launch| {
///     let value = launch.read::<f32>()[0];
///     launch.write::<f32>().fill(value);
/// });
/// let mut recorder = Recorder::new(&[1000]);
/// let value: Uniform<f32> = recorder.uniform("value", 0.5);
/// let header = recorder.header();
/// let y = recorder.download_buffer::<f32>("y", 0, 1);
/// recorder.upload(header);
/// recorder.launch(&fill, 4, &[value.into(), y.into()]);
/// recorder.download(y);
/// recorder.finish()?;
/// # Ok(())
/// # }
/// ```
///
/// [`Recorder::uniform`]: super::Recorder::uniform
/// [`Recorder::constant`]: super::Recorder::constant
pub struct Uniform<T> {
    id: UniformId,
    value: PhantomData<fn() -> T>,
}

impl<T> Uniform<T> {
    pub(super) fn new(id: UniformId) -> Self {
        Uniform {
            id,
            value: PhantomData,
        }
    }

    /// The handle without its type.
    pub fn id(&self) -> UniformId {
        self.id
    }
}

impl<T> Clone for Uniform<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Uniform<T> {}

impl<T> std::fmt::Debug for Uniform<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Uniform({})", self.id.index)
    }
}

/// Identifies a value in the header of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UniformId {
    pub(super) header: BufferId,
    pub(super) index: u32,
    pub(super) dtype: DType,
}

impl UniformId {
    /// The index into [`Recording::uniforms`](super::Recording::uniforms).
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// The index of its four bytes among the elements of the header, for kernels that take the whole
    /// header.
    pub fn header_index(self) -> usize {
        HEADER_LEN + self.index()
    }

    /// The offset of the uniform in the header, in bytes.
    pub(crate) fn offset_bytes(self) -> usize {
        self.header_index() * size_of::<u32>()
    }

    /// The header.
    pub fn header(self) -> BufferId {
        self.header
    }
}

/// A value that is uploaded in the header of every batch, so that it may change between batches
/// without a graph update.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UniformDecl {
    /// Its name, unique in the recording.
    pub name: String,
    /// Its type, which has 4 bytes.
    pub dtype: DType,
    /// The bits of its initial value.
    pub bits: u32,
    /// Whether it never changes.
    pub is_constant: bool,
}
