//! Kernels as declarations: a name, a signature, a block shape, where the code
//! comes from, and the CPU twin that computes the same.

use super::buffer::{DType, Element, Scalar};
use super::by_value::PointerField;
use std::sync::Arc;

/// CUDA C++ text, compiled at run time where no binary is at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct CudaSource {
    /// The file name that compiler messages cite.
    pub file: String,
    /// The text.
    pub text: String,
    /// Headers that the text includes: name and text.
    pub headers: Vec<(String, String)>,
    /// Compiler options beside the target architecture.
    pub options: Vec<String>,
}

/// Where the code of one or more kernels comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct Image {
    /// A name for messages and for the compile cache.
    pub name: String,
    /// A fat binary, cubin or PTX text, if there is one.
    pub binary: Option<Vec<u8>>,
    /// The text to compile when there is no binary.
    pub source: Option<CudaSource>,
}

impl Image {
    /// CUDA C++ text that NVRTC compiles for the card at run time; `file` is the
    /// name that its messages cite.
    pub fn cuda(file: impl Into<String>, text: impl Into<String>) -> Arc<Image> {
        let file = file.into();
        Arc::new(Image {
            name: file.clone(),
            binary: None,
            source: Some(CudaSource {
                file,
                text: text.into(),
                headers: Vec::new(),
                options: Vec::new(),
            }),
        })
    }
}

/// What a kernel does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes it; nothing is assumed of what was there.
    Write,
    /// Reads what is there and writes.
    ReadWrite,
}

impl Access {
    /// Whether the buffer must hold something before.
    pub fn reads(self) -> bool {
        self != Access::Write
    }

    /// Whether the buffer holds something new after.
    pub fn writes(self) -> bool {
        self != Access::Read
    }
}

/// One parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct Param {
    /// Its name in the source.
    pub name: String,
    /// What is passed.
    pub kind: ParamKind,
}

/// What a parameter takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum ParamKind {
    /// A pointer to a buffer's elements.
    Buffer {
        /// Type of the elements.
        dtype: DType,
        /// What the kernel does with them.
        access: Access,
    },
    /// A value.
    Scalar {
        /// Its type.
        dtype: DType,
    },
    /// A struct, by value.
    Struct {
        /// Its size in bytes.
        bytes: usize,
        /// The pointers in it that the kernel follows.
        pointers: Vec<PointerField>,
    },
}

/// The host function that computes what a kernel computes.
///
/// It runs inside the CPU backend's thread pool, and may use `rayon` freely.
pub type Twin = fn(&mut TwinLaunch<'_>);

/// A kernel's declaration.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its unmangled name in the image.
    pub name: String,
    /// Where its code comes from.
    pub image: Arc<Image>,
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// Threads in a block, along x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Whether it may come back to what it has read or written, which is slow in
    /// memory of the host: buffers are copied for it, whatever the policy.
    pub revisits: bool,
    /// Whether it follows pointers that are in device memory, where no check sees
    /// them.
    pub follows_device_pointers: bool,
    /// Its CPU twin. Without one the kernel needs a GPU.
    pub twin: Option<Twin>,
}

impl Kernel {
    /// A kernel named `name` in `image`, without parameters, with 128 threads a
    /// block, and without a twin.
    pub fn new(name: impl Into<String>, image: &Arc<Image>) -> Self {
        Kernel {
            name: name.into(),
            image: Arc::clone(image),
            params: Vec::new(),
            block: [128, 1, 1],
            shared_bytes: 0,
            revisits: false,
            follows_device_pointers: false,
            twin: None,
        }
    }

    /// Sets the threads of a block along x.
    #[must_use]
    pub fn block(mut self, threads: u32) -> Self {
        self.block = [threads, 1, 1];
        self
    }

    /// Adds a buffer parameter that the kernel reads.
    #[must_use]
    pub fn reads<T: Element>(self, name: &str) -> Self {
        self.buffer::<T>(name, Access::Read)
    }

    /// Adds a buffer parameter that the kernel writes.
    #[must_use]
    pub fn writes<T: Element>(self, name: &str) -> Self {
        self.buffer::<T>(name, Access::Write)
    }

    /// Adds a buffer parameter that the kernel reads and writes.
    #[must_use]
    pub fn updates<T: Element>(self, name: &str) -> Self {
        self.buffer::<T>(name, Access::ReadWrite)
    }

    fn buffer<T: Element>(mut self, name: &str, access: Access) -> Self {
        self.params.push(Param {
            name: name.to_owned(),
            kind: ParamKind::Buffer {
                dtype: T::DTYPE,
                access,
            },
        });
        self
    }

    /// Adds a parameter passed by value.
    #[must_use]
    pub fn scalar<T: Element>(mut self, name: &str) -> Self {
        self.params.push(Param {
            name: name.to_owned(),
            kind: ParamKind::Scalar { dtype: T::DTYPE },
        });
        self
    }

    /// Says that it may come back to what it has read or written.
    #[must_use]
    pub fn revisits(mut self) -> Self {
        self.revisits = true;
        self
    }

    /// Sets the CPU twin.
    #[must_use]
    pub fn twin(mut self, twin: Twin) -> Self {
        self.twin = Some(twin);
        self
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
    /// A struct's bytes. What its pointers point to comes after it, in the order in
    /// which the kernel declares them; the addresses in the bytes mean nothing.
    Struct(Vec<u8>),
}

/// One launch as a twin sees it: the grid, and arguments taken in order.
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

    /// The next argument, a buffer that the kernel reads. It may be longer than
    /// recorded: a slot's buffer is that of its largest bucket.
    ///
    /// # Panics
    /// If the kernel's declaration has something else in this place.
    pub fn read<T: Element>(&mut self) -> &'a [T] {
        match self.args.next() {
            Some(TwinArg::Read(dtype, bytes)) if dtype == T::DTYPE => bytemuck::cast_slice(bytes),
            _ => panic!("the twin reads an argument that its kernel does not declare so"),
        }
    }

    /// The next argument, a buffer that the kernel writes.
    ///
    /// # Panics
    /// If the kernel's declaration has something else in this place.
    pub fn write<T: Element>(&mut self) -> &'a mut [T] {
        match self.args.next() {
            Some(TwinArg::Write(dtype, bytes)) if dtype == T::DTYPE => {
                bytemuck::cast_slice_mut(bytes)
            }
            _ => panic!("the twin writes an argument that its kernel does not declare so"),
        }
    }

    /// All arguments that are left, in order.
    pub fn rest(&mut self) -> impl Iterator<Item = TwinArg<'a>> {
        std::mem::take(&mut self.args)
    }

    /// The next argument, a value.
    ///
    /// # Panics
    /// If the kernel's declaration has something else in this place.
    pub fn scalar<T: Element>(&mut self) -> T {
        match self.args.next() {
            Some(TwinArg::Scalar(scalar)) => scalar.get(),
            _ => panic!("the twin takes a scalar that its kernel does not declare so"),
        }
    }

    /// The next argument, a struct; what its declared pointers point to are the
    /// arguments that follow. The pointers themselves mean nothing to a twin.
    ///
    /// # Panics
    /// If the kernel's declaration has something else in this place, or a struct of
    /// another size.
    pub fn structure<T: bytemuck::AnyBitPattern>(&mut self) -> T {
        match self.args.next() {
            Some(TwinArg::Struct(bytes)) if bytes.len() == size_of::<T>() => {
                bytemuck::pod_read_unaligned(&bytes)
            }
            _ => panic!("the twin takes a struct that its kernel does not declare so"),
        }
    }
}
