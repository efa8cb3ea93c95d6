//! Named buffers with a run-time element type, and typed handles to them.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The type of a buffer's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are the documentation")]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum DType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    BF16,
    F32,
    F64,
    /// A struct, or one of CUDA's vector types such as `float4`.
    Struct(StructType),
}

/// A struct as element type: its name in the kernels' source, and its size.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct StructType {
    /// Padded with zeros, so that the type is plain data.
    name: [u8; StructType::NAME_BYTES_MAX],
    bytes: u32,
}

impl StructType {
    /// The longest name in bytes. In place and not on the heap, since [`DType`] is copied and made
    /// in constants.
    pub const NAME_BYTES_MAX: usize = 32;

    /// The struct that kernels call `name`, of `bytes` bytes.
    ///
    /// # Panics
    /// If the name is empty or longer than [`StructType::NAME_BYTES_MAX`], or the size is 0 or not
    /// below 2^32.
    pub const fn new(name: &str, bytes: usize) -> Self {
        let text = name.as_bytes();
        assert!(!text.is_empty() && text.len() <= Self::NAME_BYTES_MAX);
        assert!(bytes > 0 && bytes <= u32::MAX as usize);
        let mut name = [0; Self::NAME_BYTES_MAX];
        let mut index = 0;
        while index < text.len() {
            name[index] = text[index];
            index += 1;
        }
        StructType {
            name,
            bytes: bytes as u32,
        }
    }

    /// The name in the kernels' source.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.name)
            .trim_end_matches('\0')
            .to_owned()
    }
}

impl std::fmt::Debug for StructType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} bytes", self.name(), self.bytes)
    }
}

impl DType {
    /// The struct that kernels call `name`, as Rust's `T`.
    ///
    /// # Panics
    /// If [`StructType::new`] does.
    pub const fn of_struct<T>(name: &str) -> Self {
        DType::Struct(StructType::new(name, size_of::<T>()))
    }

    /// Size of one element in bytes.
    pub const fn size_bytes(self) -> usize {
        match self {
            DType::U8 | DType::I8 => 1,
            DType::U16 | DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 => 8,
            DType::Struct(named) => named.bytes as usize,
        }
    }

    /// The alignment that a kernel may assume of an element's address, in bytes: the size of a
    /// number; for a struct the largest power of two up to 16 that divides its size.
    pub const fn align_bytes(self) -> usize {
        let bytes = self.size_bytes();
        let power = 1 << bytes.trailing_zeros();
        if power < ALIGN_BYTES_MAX {
            power
        } else {
            ALIGN_BYTES_MAX
        }
    }

    /// The lowest compute capability with arithmetic for the type; `None` if every GPU has it (CUDA
    /// C++ Programming Guide, arithmetic instructions).
    pub const fn capability_min(self) -> Option<(u32, u32)> {
        match self {
            DType::F16 => Some((5, 3)),
            DType::BF16 => Some((8, 0)),
            _ => None,
        }
    }
}

/// A Rust type that a buffer can hold: a number, or a struct of the caller's with the same name and
/// layout (`#[repr(C)]`) as a struct in the kernels' source.
///
/// ```
/// use tapeloop_engine::record::bytemuck::{self, Pod, Zeroable};
/// use tapeloop_engine::record::{DType, Element};
///
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// #[bytemuck(crate = "tapeloop_engine::record::bytemuck")]
/// #[repr(C)]
/// struct Particle {
///     position: [f32; 3],
///     mass: f32,
/// }
/// impl Element for Particle {
///     const DTYPE: DType = DType::of_struct::<Particle>("Particle");
/// }
/// assert_eq!(Particle::DTYPE.size_bytes(), 16);
/// ```
///
/// A program that makes a buffer of a type with another size than its [`Element::DTYPE`], or with an
/// alignment above 16 bytes, does not compile:
///
/// ```compile_fail,E0080
/// # use tapeloop_engine::record::bytemuck::{self, Pod, Zeroable};
/// # use tapeloop_engine::record::{DType, Element, Recorder};
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// # #[bytemuck(crate = "tapeloop_engine::record::bytemuck")]
/// #[repr(C, align(64))]
/// struct Line([u32; 16]);
/// impl Element for Line {
///     const DTYPE: DType = DType::of_struct::<Line>("Line");
/// }
/// Recorder::new(&[100]).upload_buffer::<Line>("lines", 0, 1);
/// ```
pub trait Element: bytemuck::Pod + Send + Sync {
    /// Its run-time type, of the same size.
    const DTYPE: DType;
}

/// The largest alignment of an element in bytes, which all memory of slots has.
const ALIGN_BYTES_MAX: usize = 16;

/// Evaluated by the compiler for the type of each buffer.
pub(crate) const fn check_element<T: Element>() {
    assert!(
        size_of::<T>() == T::DTYPE.size_bytes(),
        "an element has the size of its DTYPE"
    );
    assert!(
        align_of::<T>() <= ALIGN_BYTES_MAX,
        "an element has an alignment of at most 16 bytes"
    );
}

/// An [`Element`] that is a number, of at most 8 bytes.
pub trait Number: Element {}

macro_rules! numbers {
    ($($rust:ty => $dtype:ident),* $(,)?) => {
        $(impl Element for $rust { const DTYPE: DType = DType::$dtype; }
        impl Number for $rust {})*
    };
}
numbers!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32,
         u64 => U64, i64 => I64, half::f16 => F16, half::bf16 => BF16, f32 => F32, f64 => F64);

/// CUDA's vector types.
macro_rules! vectors {
    ($($rust:ty => $name:literal),* $(,)?) => {
        $(impl Element for $rust { const DTYPE: DType = DType::of_struct::<$rust>($name); })*
    };
}
vectors!([f32; 2] => "float2", [f32; 3] => "float3", [f32; 4] => "float4",
         [i32; 2] => "int2", [i32; 3] => "int3", [i32; 4] => "int4",
         [u32; 2] => "uint2", [u32; 3] => "uint3", [u32; 4] => "uint4",
         [f64; 2] => "double2");

/// A kernel argument passed by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    /// Its type.
    pub dtype: DType,
    /// Its bytes, little-endian, in the low bytes.
    pub bits: u64,
}

impl<T: Number> From<T> for Scalar {
    fn from(value: T) -> Self {
        const { assert!(size_of::<T>() <= 8, "a number has at most 8 bytes") };
        let mut bits = [0; 8];
        bits[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        Scalar {
            dtype: T::DTYPE,
            bits: u64::from_le_bytes(bits),
        }
    }
}

impl Scalar {
    /// The value, which must be of type `T`.
    ///
    /// # Panics
    /// If it is of another type.
    pub fn get<T: Number>(self) -> T {
        assert_eq!(self.dtype, T::DTYPE, "scalar read as another type");
        bytemuck::pod_read_unaligned(&self.bits.to_le_bytes()[..size_of::<T>()])
    }
}

/// Identifies the recordings that share handles: all recorders of one ladder of buckets have the
/// same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RecordingId(u64);

impl RecordingId {
    /// An id that no other recording has.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        RecordingId(NEXT.fetch_add(1, Relaxed))
    }
}

/// Identifies a buffer of a recording. Ids of different recordings differ, unless they are buckets
/// of one ladder ([`Recorder::ladder`](super::Recorder::ladder)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId {
    pub(crate) recording: RecordingId,
    pub(crate) index: u16,
}

impl BufferId {
    /// The index into [`Recording::buffers`](super::Recording::buffers).
    pub fn index(self) -> usize {
        usize::from(self.index)
    }

    /// The id of a slot's buffer in a worker process, which knows no recording.
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    pub(crate) fn of_slot(index: u16) -> Self {
        BufferId {
            recording: RecordingId(u64::MAX),
            index,
        }
    }
}

/// A typed handle to a buffer of a recording.
///
/// ```
/// use tapeloop_engine::{Buffer, Recorder};
///
/// let mut recorder = Recorder::new(&[100, 10]);
/// // Three numbers for each of up to 100 points, and a vector for each of up to 10 sets.
/// let points: Buffer<f32> = recorder.upload_buffer("points", 0, 3);
/// let means: Buffer<[f32; 3]> = recorder.download_buffer("means", 1, 1);
/// assert_eq!([points.id().index(), means.id().index()], [0, 1]);
/// ```
pub struct Buffer<T> {
    id: BufferId,
    element: PhantomData<fn() -> T>,
}

impl<T> Buffer<T> {
    pub(super) fn new(id: BufferId) -> Self {
        Buffer {
            id,
            element: PhantomData,
        }
    }

    /// The handle without its type.
    pub fn id(&self) -> BufferId {
        self.id
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Buffer<T> {}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({})", self.id.index)
    }
}

/// How a buffer's length depends on the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Unit {
    /// `elements` for each unit of an axis of the batch's extent. Every item owns the part that its
    /// extent covers.
    PerAxis {
        /// The axis.
        axis: usize,
        /// Elements for each unit.
        elements: usize,
    },
    /// A fixed number of elements for the batch as a whole.
    PerBatch {
        /// Number of elements.
        elements: usize,
    },
}

impl Unit {
    /// Number of elements that a batch of extent `live` uses.
    pub fn live_len(self, live: &[u32]) -> usize {
        match self {
            Unit::PerBatch { elements } => elements,
            Unit::PerAxis { axis, elements } => live[axis] as usize * elements,
        }
    }
}

/// Where a buffer is visible, and how it is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum View {
    /// Items write it on the host; it is uploaded.
    Upload,
    /// It is downloaded; items read it on the host.
    Download,
    /// It stays on the device.
    Device,
    /// It stays on the device, and is filled there: see
    /// [`Recorder::input_buffer`](super::Recorder::input_buffer).
    DeviceInput,
    /// It stays on the device, where results keep it: see
    /// [`Recorder::result_buffer`](super::Recorder::result_buffer).
    DeviceResult,
    /// It stays on the device and belongs to no slot: see
    /// [`Recorder::resident_buffer`](super::Recorder::resident_buffer).
    Resident,
}

impl View {
    /// Whether a slot has a host side of the buffer.
    pub(crate) fn is_on_host(self) -> bool {
        matches!(self, View::Upload | View::Download)
    }

    /// Whether the buffer is a part of its slot's memory, and no allocation of its own.
    pub fn is_in_slot(self) -> bool {
        !matches!(self, View::DeviceResult | View::Resident)
    }
}

/// A buffer as the recording declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct BufferDecl {
    /// Its name, unique in the recording.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// How its length depends on the batch.
    pub unit: Unit,
    /// Where it is visible.
    pub view: View,
    /// Its length in elements at the recording's capacity.
    pub len: usize,
    /// Whether a program may replace its contents: see
    /// [`Recorder::replaceable_buffer`](super::Recorder::replaceable_buffer).
    pub is_replaceable: bool,
}

impl BufferDecl {
    /// Its size in bytes at the recording's capacity.
    pub fn size_bytes(&self) -> usize {
        self.len * self.dtype.size_bytes()
    }

    /// What it takes of a slot's memory in bytes; `None` if that overflows.
    pub(crate) fn slot_bytes(&self) -> Option<usize> {
        if self.view.is_in_slot() {
            self.len.checked_mul(self.dtype.size_bytes())
        } else {
            Some(0)
        }
    }
}
