//! Kernels as declarations: name, parameters, block shape, device code, and the CPU twin that
//! computes the same.

use super::buffer::{DType, Element, Number};
use super::launch_attributes::LaunchAttributes;
use super::library_call::LibraryCode;
use super::struct_arg::PointerField;
use super::twin::{Twin, TwinCode, TwinLaunch};
use std::sync::Arc;

/// CUDA C++ text, which NVRTC compiles at run time if there is no binary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct CudaSource {
    /// The file name that compiler messages cite.
    pub file: String,
    /// The text.
    pub text: String,
    /// Headers that the text includes: name and text.
    pub headers: Vec<(String, String)>,
    /// Compiler options, apart from the target architecture. With an option that names files, such
    /// as `-I`, every process compiles the code anew, because the cache cannot see that such a file
    /// changed.
    pub options: Vec<String>,
}

/// Where the code of one or more kernels comes from.
///
/// ```
/// use tapeloop_engine::{Image, Kernel};
///
/// const TEXT: &str = r#"
/// extern "C" __global__ void negate(float* x, unsigned len)
/// {
///     for (unsigned i = threadIdx.x; i < len; i += blockDim.x)
///         x[i] = -x[i];
/// }"#;
///
/// let kernel = Kernel::new("negate").block(128).updates::<f32>("x").scalar::<u32>("len");
/// // SAFETY: it touches the first `len` elements of `x`, which is the length of `x`.
/// let kernel = unsafe { kernel.code(&Image::cuda("negate.cu", TEXT)) };
/// assert!(kernel.has_code());
/// ```
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
    /// The bytes of a fat binary, a cubin, or PTX text. `name` is for messages.
    pub fn compiled(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Arc<Image> {
        Arc::new(Image {
            name: name.into(),
            binary: Some(bytes.into()),
            source: None,
        })
    }

    /// CUDA C++ text that NVRTC compiles for the GPU at run time. `file` is the name that compiler
    /// messages cite.
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
    /// Writes it, and does not read the previous contents.
    Write,
    /// Reads the previous contents and writes.
    ReadWrite,
}

impl Access {
    /// Whether the kernel reads the buffer's previous contents.
    pub fn reads(self) -> bool {
        self != Access::Write
    }

    /// Whether the kernel changes the buffer's contents.
    pub fn writes(self) -> bool {
        self != Access::Read
    }
}

/// The largest number of parameters of a kernel. The list of pointers to the arguments of a launch
/// is on the stack and has room for all: 2 KiB.
pub const PARAMS_MAX: usize = 256;

/// One parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct Param {
    /// The parameter's name in the source.
    pub name: String,
    /// What the parameter takes.
    pub kind: ParamKind,
    /// Whether a recorded launch may get another value later ([`Kernel::changeable`]).
    pub changeable: bool,
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

/// A kernel: its declaration, its CPU twin, and its device code.
///
/// [`Kernel::new`] and the methods after it declare what the kernel is called and what it takes. A
/// kernel with a twin runs on the CPU and on the simulated device. [`Kernel::code`] attaches the
/// code for a GPU. That is `unsafe`, because the caller promises that the code keeps to the
/// declaration, which cannot change afterwards.
///
/// ```
/// # use tapeloop_engine::record::{Image, Kernel, TwinLaunch};
/// # fn square(_: &mut TwinLaunch<'_>) {}
/// # let source = "";
/// let kernel = Kernel::new("square")
///     .reads::<f32>("x")
///     .writes::<f32>("y")
///     .scalar::<u32>("len")
///     .twin(square);
/// // SAFETY: `square` reads `x` and writes `y` below `len`, which is the length that
/// // both have in the recording.
/// let kernel = unsafe { kernel.code(&Image::cuda("square.cu", source)) };
/// ```
///
/// Safe Rust cannot attach device code:
///
/// ```compile_fail,E0133
/// use tapeloop_engine::record::{Image, Kernel};
/// let kernel = Kernel::new("square").code(&Image::cuda("square.cu", ""));
/// ```
///
/// Nor can it change a kernel's declaration:
///
/// ```compile_fail,E0616
/// use tapeloop_engine::record::Kernel;
/// let mut kernel = Kernel::new("square");
/// kernel.params.clear();
/// ```
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    /// Threads in a block, along x, y and z.
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub(crate) shared_bytes: u32,
    pub(crate) attributes: LaunchAttributes,
    /// Whether it may access an element more than once. Zero-copy access to host memory would be
    /// slow then, so buffers are always copied to the device.
    pub(crate) revisits: bool,
    /// Whether it follows pointers that it reads from device memory, where no check sees them.
    pub(crate) follows_device_pointers: bool,
    pub(crate) twin: Option<TwinCode>,
    /// What runs on a GPU. Set by [`Kernel::code`] and [`Kernel::library_call`], and in a worker
    /// process from what the parent process sends.
    pub(crate) code: Option<DeviceCode>,
}

/// What a kernel runs on a GPU.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DeviceCode {
    Image(Arc<Image>),
    Library(LibraryCode),
}

impl Kernel {
    /// Declares a kernel without parameters, twin or device code, with 128 threads per block.
    ///
    /// `name` is the function's unmangled name in the image that [`Kernel::code`] attaches.
    pub fn new(name: impl Into<String>) -> Self {
        Kernel {
            name: name.into(),
            params: Vec::new(),
            block: [128, 1, 1],
            shared_bytes: 0,
            attributes: LaunchAttributes::NONE,
            revisits: false,
            follows_device_pointers: false,
            twin: None,
            code: None,
        }
    }

    /// Attaches the device code, which completes the declaration.
    ///
    /// A recording of the kernel then runs on a GPU, where nothing checks what the code does with
    /// the addresses that it gets. The caller promises that it keeps to the declaration.
    ///
    /// # Safety
    /// `image` is the output of nvcc or NVRTC, or CUDA C++ text for NVRTC. The function in it that
    /// has the kernel's name
    /// - reads and writes only memory behind the pointers that the declaration names, each with the
    ///   declared access, and within the length of the buffer that the recording passes there: in
    ///   every bucket, and in whatever memory of at least that length the buffer is bound to;
    /// - does so for the recorded grid and every smaller one of whole [clusters](Kernel::cluster),
    ///   also if earlier launches ran with a smaller grid (for
    ///   [`Recorder::launch_over`](super::Recorder::launch_over): for every block size up to 1024
    ///   threads along x, and every grid that covers the elements with it);
    /// - does so for the recorded values, and for every value of the parameters that the
    ///   declaration calls [`changeable`](Kernel::changeable);
    /// - does so whatever its input buffers hold that the host can write. In recordings of a
    ///   workload, which engines, pipelines and packers fill, the header's totals are within the
    ///   capacity, a [constant](super::Recorder::constant) has its value, a
    ///   [uniform](super::Recorder::uniform), which is 4 bytes, holds whatever a caller sets, and all
    ///   else is what the workload writes. In other recordings any code that has
    ///   the handles or the slot may write any input, including the header. The header's number of
    ///   items has no bound;
    /// - follows pointers that it reads from device memory only where
    ///   [`follows_device_pointers`](Kernel::follows_device_pointers) is declared, and only into
    ///   buffers that the launch passes, or, to read, into memory that is declared to the executor;
    /// - where [`waits_for_dependencies`](Kernel::waits_for_dependencies) is declared and it is
    ///   compiled for compute capability 9.0 or later, has every thread execute
    ///   `griddepcontrol.wait` before its first access to global memory and before it returns. A
    ///   compiler may move a load that it takes for constant before the wait, such as one by
    ///   `__ldg` or from a `const` pointer with `__restrict__`.
    ///
    /// The author also answers for data races between the threads of a launch.
    ///
    /// Any code that has the `Kernel` can record a launch of it, so the promise covers every such
    /// recording: give the value only to code that records it as promised. A workload whose code
    /// relies on what the workload itself writes attaches it only in recorders for its own type
    /// ([`Recorder::is_for`](super::Recorder::is_for)).
    #[must_use]
    pub unsafe fn code(mut self, image: &Arc<Image>) -> Self {
        self.code = Some(DeviceCode::Image(Arc::clone(image)));
        self
    }

    /// Panics if the device code is attached: the declaration is then part of the caller's promise.
    #[track_caller]
    pub(super) fn expect_open(&self) {
        assert!(
            self.code.is_none(),
            "kernel {} has its code already: declare everything before `Kernel::code`",
            self.name
        );
    }

    /// Sets the threads of a block along x.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn block(self, threads: u32) -> Self {
        self.block_shape([threads, 1, 1])
    }

    /// Sets the threads of a block along x, y and z.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn block_shape(mut self, threads: [u32; 3]) -> Self {
        self.expect_open();
        self.block = threads;
        self
    }

    /// Sets the dynamic shared memory of a block, in bytes.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.expect_open();
        self.shared_bytes = bytes;
        self
    }

    /// Groups the thread blocks of each launch into clusters, so many along x, y and z and at most 8
    /// in all. The blocks of a cluster run at once and can read each other's shared memory (CUDA C++
    /// Programming Guide, "Thread Block Clusters"). A GPU needs compute capability 9.0 for it; CPU
    /// twins take no notice. Launches must be made of whole clusters.
    ///
    /// A kernel whose text has `__cluster_dims__` needs no declaration.
    ///
    /// ```
    /// use tapeloop_engine::{Image, Kernel, Recorder};
    ///
    /// const TEXT: &str = r#"
    /// // Each pair of thread blocks exchanges what their first threads read.
    /// extern "C" __global__ void exchange(const unsigned* x, unsigned* y)
    /// {
    ///     __shared__ unsigned mine;
    ///     mine = x[blockIdx.x];
    ///     asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    ///     unsigned address = __cvta_generic_to_shared(&mine), value;
    ///     asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(blockIdx.x % 2 ^ 1));
    ///     asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    ///     y[blockIdx.x] = value;
    ///     asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    /// }"#;
    ///
    /// let kernel = Kernel::declared_in(TEXT, "exchange")?;
    /// let kernel = kernel.block(1).cluster([2, 1, 1]);
    /// // SAFETY: each block touches one element, and the grid has as many blocks as both have elements.
    /// let kernel = unsafe { kernel.code(&Image::cuda("exchange.cu", TEXT)) };
    /// let mut recorder = Recorder::new(&[64]);
    /// let x = recorder.upload_buffer::<u32>("x", 0, 1);
    /// let y = recorder.download_buffer::<u32>("y", 0, 1);
    /// recorder.upload(x);
    /// recorder.launch(&kernel, 64, &[x.into(), y.into()]);
    /// recorder.download(y);
    /// recorder.finish()?;
    /// # Ok::<(), tapeloop_engine::Error>(())
    /// ```
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn cluster(mut self, blocks: [u32; 3]) -> Self {
        self.expect_open();
        self.attributes.cluster = Some(blocks);
        self
    }

    /// Declares that all thread blocks of a launch have to run at once, so that they may wait for each
    /// other (CUDA C++ Programming Guide, "Grid Synchronization"). A device refuses a launch of more
    /// blocks than it runs at once; [`Recorder::launch_over`](super::Recorder::launch_over) with
    /// [`Cover::Strided`](super::Cover::Strided) never has more. CPU twins take no notice.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn cooperative(mut self) -> Self {
        self.expect_open();
        self.attributes.is_cooperative = true;
        self
    }

    /// Gives the kernel the highest priority: its thread blocks start before those of other kernels
    /// that wait for a free multiprocessor. Declare it for the kernels on the longest path of a
    /// recording that has independent kernels too. In a slot that is kept for urgent batches
    /// ([`EngineConfig::urgent_slots`](crate::pipeline::EngineConfig::urgent_slots)) every kernel has
    /// this priority. A loop on the device has no priorities:
    /// [`Mode::Resident`](crate::replay::Mode::Resident) refuses the kernel, or the host launches the
    /// batches if the policy allows that. CPU twins take no notice.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn urgent(mut self) -> Self {
        self.expect_open();
        self.attributes.is_urgent = true;
        self
    }

    /// Declares that the code waits for the work that it runs after: every thread executes
    /// `griddepcontrol.wait` (in CUDA C++ `cudaGridDependencySynchronize()`) before it first accesses
    /// global memory, and before it returns. Where the kernel runs after one other kernel alone, a GPU
    /// of compute capability 9.0 or later then starts its thread blocks before the other kernel has
    /// ended (CUDA C++ Programming Guide, "Programmatic Dependent Launch"). A chain of 20 small kernels
    /// takes 0.78 of the time.
    ///
    /// Code that is compiled for an older architecture need not wait, and runs as if this were not
    /// declared, as does a [cooperative](Kernel::cooperative) kernel. CPU twins take no notice.
    ///
    /// ```
    /// use tapeloop_engine::{Image, Kernel};
    ///
    /// const TEXT: &str = r#"
    /// extern "C" __global__ void negate(float* x /* updated */, unsigned len)
    /// {
    /// #if __CUDA_ARCH__ >= 900
    ///     asm volatile("griddepcontrol.wait;" ::: "memory");
    /// #endif
    ///     for (unsigned i = threadIdx.x; i < len; i += blockDim.x)
    ///         x[i] = -x[i];
    /// }"#;
    ///
    /// let kernel = Kernel::declared_in(TEXT, "negate")?.waits_for_dependencies();
    /// // SAFETY: it touches the first `len` elements of `x`, which is the length of `x`, and waits
    /// // before it does.
    /// let kernel = unsafe { kernel.code(&Image::cuda("negate.cu", TEXT)) };
    /// # Ok::<(), tapeloop_engine::Error>(())
    /// ```
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn waits_for_dependencies(mut self) -> Self {
        self.expect_open();
        self.attributes.waits_for_dependencies = true;
        self
    }

    /// Adds a buffer parameter that the kernel reads.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn reads<T: Element>(self, name: &str) -> Self {
        self.buffer::<T>(name, Access::Read)
    }

    /// Adds a buffer parameter that the kernel writes.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn writes<T: Element>(self, name: &str) -> Self {
        self.buffer::<T>(name, Access::Write)
    }

    /// Adds a buffer parameter that the kernel reads and writes.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn updates<T: Element>(self, name: &str) -> Self {
        self.buffer::<T>(name, Access::ReadWrite)
    }

    /// Adds a parameter for a buffer of `T`.
    fn buffer<T: Element>(self, name: &str, access: Access) -> Self {
        self.param(
            name,
            ParamKind::Buffer {
                dtype: T::DTYPE,
                access,
            },
        )
    }

    /// Adds a parameter passed by value. A launch keeps the value that it was recorded with, unless
    /// the parameter is [`changeable`](Kernel::changeable).
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn scalar<T: Number>(self, name: &str) -> Self {
        self.param(name, ParamKind::Scalar { dtype: T::DTYPE })
    }

    /// Adds a parameter whose kind is known only when the program runs, such as one of a parsed kernel. Hidden:
    /// programs declare theirs by type. Equal names and too many parameters are refused when a launch is recorded.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[doc(hidden)]
    #[must_use]
    pub fn param(mut self, name: &str, kind: ParamKind) -> Self {
        self.expect_open();
        self.params.push(Param {
            name: name.to_owned(),
            kind,
            changeable: false,
        });
        self
    }

    /// Allows `Bindings::set_scalar` or `Bindings::set_struct` to change this scalar or struct of a
    /// recorded launch. All other parameters keep the values that they were recorded with. The
    /// device code then has to stay within its buffers for every value of the parameter.
    ///
    /// # Panics
    /// After [`Kernel::code`], or if no scalar or struct of this name is declared yet.
    #[must_use]
    pub fn changeable(mut self, name: &str) -> Self {
        self.expect_open();
        let is_value = |param: &&mut Param| {
            param.name == name && !matches!(param.kind, ParamKind::Buffer { .. })
        };
        let Some(param) = self.params.iter_mut().find(is_value) else {
            panic!("kernel {} has no scalar or struct named {name}", self.name);
        };
        param.changeable = true;
        self
    }

    /// Declares that the kernel may access an element of a buffer more than once. Its buffers are
    /// then copied to the device, never accessed in host memory (zero-copy), which would be slow.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn revisits(mut self) -> Self {
        self.expect_open();
        self.revisits = true;
        self
    }

    /// Sets the CPU twin, before or after the code. A twin must not wait for an engine, nor drop
    /// its last handle: the engine waits for the twin, which would be a deadlock.
    #[must_use]
    pub fn twin(mut self, twin: Twin) -> Self {
        self.twin = Some(TwinCode::Function(twin));
        self
    }

    /// [`Kernel::twin`] with a closure, which may hold what it needs. The kernel and its clones
    /// share it; two closures are two twins, even of the same text. A worker process has functions
    /// only.
    #[must_use]
    pub fn twin_closure(
        mut self,
        twin: impl Fn(&mut TwinLaunch<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.twin = Some(TwinCode::Closure(Arc::new(twin)));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Threads of a block along x, y and z.
    pub fn threads(&self) -> [u32; 3] {
        self.block
    }

    /// Its CPU twin, if that is a function. Without a twin the kernel needs a GPU.
    pub fn cpu_twin(&self) -> Option<Twin> {
        match self.twin {
            Some(TwinCode::Function(twin)) => Some(twin),
            _ => None,
        }
    }

    /// The image of its code for a GPU.
    pub(crate) fn image(&self) -> Option<&Arc<Image>> {
        match &self.code {
            Some(DeviceCode::Image(image)) => Some(image),
            _ => None,
        }
    }

    /// Whether [`Kernel::code`] or [`Kernel::library_call`] made it one for a GPU. Otherwise only the
    /// twin can run.
    pub fn has_code(&self) -> bool {
        self.code.is_some()
    }
}
