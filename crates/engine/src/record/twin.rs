//! CPU twins of kernels, and the launches that they take.

use super::buffer::{DType, Element, Number, Scalar};
use std::sync::Arc;

/// The host function that computes what a kernel computes.
///
/// It runs inside the CPU backend's thread pool, and may use `rayon` freely.
pub type Twin = fn(&mut TwinLaunch<'_>);

/// What runs as a twin.
#[derive(Clone)]
pub(crate) enum TwinCode {
    Function(Twin),
    Closure(Arc<dyn Fn(&mut TwinLaunch<'_>) + Send + Sync>),
}

impl TwinCode {
    pub(crate) fn run(&self, launch: &mut TwinLaunch<'_>) {
        match self {
            TwinCode::Function(function) => function(launch),
            TwinCode::Closure(closure) => closure(launch),
        }
    }

    /// Whether both run the same code.
    pub(crate) fn is(&self, other: &TwinCode) -> bool {
        match (self, other) {
            (TwinCode::Function(one), TwinCode::Function(other)) => {
                std::ptr::fn_addr_eq(*one, *other)
            }
            (TwinCode::Closure(one), TwinCode::Closure(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl std::fmt::Debug for TwinCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TwinCode::Function(_) => "Function",
            TwinCode::Closure(_) => "Closure",
        })
    }
}

/// One argument of a twin, in the order of the kernel's parameters.
pub enum TwinArg<'a> {
    /// A buffer that the kernel reads.
    Read(DType, &'a [u8]),
    /// A buffer that the kernel writes, or reads and writes.
    Write(DType, &'a mut [u8]),
    /// A value.
    Scalar(Scalar),
    /// A struct's bytes. The buffers that its pointers point to are the arguments after it, in the
    /// order in which the kernel declares the pointers; the pointers in the bytes themselves are
    /// meaningless.
    Struct(Vec<u8>),
}

/// A launch as the twin sees it: the grid, and the arguments, which it takes in order.
///
/// ```
/// use tapeloop_engine::TwinLaunch;
/// use tapeloop_engine::record::{DType, TwinArg};
///
/// fn twice(launch: &mut TwinLaunch<'_>) {
///     let x = launch.read::<f32>();
///     for (y, x) in launch.write::<f32>().iter_mut().zip(x) {
///         *y = 2.0 * x;
///     }
/// }
///
/// // A test calls a twin without an engine.
/// let (x, mut y) = ([1.0_f32, 2.0], [0.0_f32; 2]);
/// let args = vec![
///     TwinArg::Read(DType::F32, bytemuck::cast_slice(&x)),
///     TwinArg::Write(DType::F32, bytemuck::cast_slice_mut(&mut y)),
/// ];
/// twice(&mut TwinLaunch::new([1, 1, 1], args));
/// assert_eq!(y, [2.0, 4.0]);
/// ```
pub struct TwinLaunch<'a> {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    args: std::vec::IntoIter<TwinArg<'a>>,
}

impl<'a> TwinLaunch<'a> {
    /// A launch of `grid` blocks over `args`.
    pub fn new(grid: [u32; 3], args: Vec<TwinArg<'a>>) -> Self {
        TwinLaunch {
            grid,
            args: args.into_iter(),
        }
    }

    /// Takes the next argument, a buffer that the kernel reads. It may be longer than recorded,
    /// because all buckets of a slot share the buffers of the largest, and an allocation goes on
    /// behind the part that a buffer is bound to.
    ///
    /// # Panics
    /// If the kernel declares another parameter here.
    pub fn read<T: Element>(&mut self) -> &'a [T] {
        match self.args.next() {
            Some(TwinArg::Read(dtype, bytes)) if dtype == T::DTYPE => {
                bytemuck::cast_slice(&bytes[..whole_bytes::<T>(bytes)])
            }
            _ => panic!("the twin reads a buffer, but its kernel declares another parameter here"),
        }
    }

    /// Takes the next argument, a buffer that the kernel writes. It may be longer than recorded.
    ///
    /// # Panics
    /// If the kernel declares another parameter here.
    pub fn write<T: Element>(&mut self) -> &'a mut [T] {
        match self.args.next() {
            Some(TwinArg::Write(dtype, bytes)) if dtype == T::DTYPE => {
                let whole = whole_bytes::<T>(bytes);
                bytemuck::cast_slice_mut(&mut bytes[..whole])
            }
            _ => panic!("the twin writes a buffer, but its kernel declares another parameter here"),
        }
    }

    /// Takes all remaining arguments, in order.
    pub fn rest(&mut self) -> impl Iterator<Item = TwinArg<'a>> {
        std::mem::take(&mut self.args)
    }

    /// Takes the next argument, a number passed by value.
    ///
    /// # Panics
    /// If the kernel declares another parameter here.
    pub fn scalar<T: Number>(&mut self) -> T {
        match self.args.next() {
            Some(TwinArg::Scalar(scalar)) => scalar.get(),
            _ => panic!("the twin takes a scalar, but its kernel declares another parameter here"),
        }
    }

    /// Takes the next argument, a struct. The buffers that its declared pointers point to are the
    /// arguments that follow; the pointers themselves are meaningless to a twin.
    ///
    /// # Panics
    /// If the kernel declares another parameter here, or a struct of another size.
    pub fn structure<T: bytemuck::AnyBitPattern>(&mut self) -> T {
        match self.args.next() {
            Some(TwinArg::Struct(bytes)) if bytes.len() == size_of::<T>() => {
                bytemuck::pod_read_unaligned(&bytes)
            }
            _ => panic!("the twin takes a struct, but its kernel declares another parameter here"),
        }
    }
}

/// The size of the whole elements in memory that may end with a part of one, in bytes.
fn whole_bytes<T>(bytes: &[u8]) -> usize {
    bytes.len() - bytes.len() % size_of::<T>().max(1)
}
