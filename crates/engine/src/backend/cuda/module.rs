//! Modules and the functions in them.

use super::compile::Compiler;
use super::context::PrimaryContext;
use super::driver::{self, OR_CPU};
use super::format::ImageFormat;
use super::launch_attributes::DriverAttributes;
use super::memory::size_text;
use super::programmatic_launch;
use super::result_codes::{self, Code};
use crate::backend::edges::NodeRole;
use crate::backend::{Compilation, FunctionId};
use crate::error::{Context as _, Error, ErrorKind, Result};
use crate::record::{CudaSource, DeviceCode, Image, Kernel, LibraryCode, PARAMS_MAX, ParamKind};
use cudarc::driver::sys::{self, CUdevice_attribute, CUfunction_attribute, CUjit_option};
use parking_lot::{Mutex, RwLock};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// Dynamic shared memory in bytes that every device has without opting in.
const SHARED_BYTES_DEFAULT: u32 = 48 << 10;
/// Room for what the driver says of code that it cannot load; it cuts off a longer text.
const LOG_BYTES: usize = 16 << 10;

/// A kernel of a loaded module, or a library call, with its declaration, ready to launch.
#[derive(Clone)]
pub(super) struct Function {
    /// The kernel's name, or the library call's.
    pub(super) name: Arc<str>,
    /// Null for a library call.
    raw: sys::CUfunction,
    library: Option<LibraryCode>,
    /// The parameters. Of a kernel they are at most [`PARAMS_MAX`], with the number and sizes that its
    /// code takes.
    pub(super) params: Arc<[ParamKind]>,
    /// Whether it follows pointers in device memory.
    pub(super) follows_device_pointers: bool,
    pub(super) attributes: DriverAttributes,
    /// What it is for programmatic dependent launch on this device.
    pub(super) role: NodeRole,
}

// SAFETY: a CUfunction is a handle that the driver lets any thread use.
unsafe impl Send for Function {}
// SAFETY: as for `Send`.
unsafe impl Sync for Function {}

impl Function {
    /// The handle, valid as long as the [`LoadedFunctions`] that it came from; null for a library call.
    pub(super) fn raw(&self) -> sys::CUfunction {
        self.raw
    }

    /// The code of a library call.
    pub(super) fn library(&self) -> Option<&LibraryCode> {
        self.library.as_ref()
    }
}

/// Everything that is loaded in a context. A [`FunctionId`](crate::backend::FunctionId) is an
/// index.
pub(super) struct LoadedFunctions {
    context: Arc<PrimaryContext>,
    compiler: Compiler,
    modules: Mutex<Vec<(Arc<Image>, Module)>>,
    loaded: RwLock<Vec<Loaded>>,
}

/// A declaration of loaded code.
struct Loaded {
    code: DeviceCode,
    function: Function,
}

impl Drop for LoadedFunctions {
    fn drop(&mut self) {
        // The closures of library calls are dropped with the context current, as they may own handles
        // of a library.
        let _bound = self.context.bind_to_free();
        let mut loaded = std::mem::take(self.loaded.get_mut());
        match self.context.id.check_process() {
            Ok(()) => loaded.clear(),
            // The handles are the parent's.
            Err(_) => std::mem::forget(loaded),
        }
    }
}

impl LoadedFunctions {
    pub(super) fn new(context: &Arc<PrimaryContext>, compiler: Compiler) -> LoadedFunctions {
        LoadedFunctions {
            context: Arc::clone(context),
            compiler,
            modules: Mutex::default(),
            loaded: RwLock::default(),
        }
    }

    /// Whether a loaded function follows device pointers.
    pub(super) fn follow_device_pointers(&self) -> bool {
        let loaded = self.loaded.read();
        loaded
            .iter()
            .any(|entry| entry.function.follows_device_pointers)
    }

    /// Whether a loaded function may start before the work before it has ended.
    pub(super) fn have_waiting_kernel(&self) -> bool {
        let loaded = self.loaded.read();
        let mut roles = loaded.iter().map(|entry| entry.function.role);
        roles.any(|role| role == NodeRole::WaitingKernel)
    }

    pub(super) fn get(&self, id: FunctionId) -> Result<Function> {
        let loaded = self.loaded.read();
        let entry = loaded.get(id.0 as usize);
        entry
            .map(|entry| entry.function.clone())
            .ok_or_else(|| Error::usage("no such function is loaded"))
    }

    /// The function of a driver handle. `hint` is preferred if it has the same code, as one code
    /// may have several declarations.
    pub(super) fn find_raw(
        &self,
        raw: sys::CUfunction,
        hint: Option<FunctionId>,
    ) -> Option<(FunctionId, Function)> {
        let loaded = self.loaded.read();
        let ids = hint
            .into_iter()
            .chain((0..loaded.len() as u32).map(FunctionId));
        let mut known = ids.filter_map(|id| Some((id, &loaded.get(id.0 as usize)?.function)));
        let (id, function) = known.find(|(_, function)| function.raw == raw)?;
        Some((id, function.clone()))
    }

    /// Compiles and loads the images among these that come as source and are not loaded yet. One
    /// that fails does not keep the others from being loaded; the first error is returned.
    pub(super) fn prepare(&self, images: &[Arc<Image>]) -> Result<()> {
        self.context.check_lost()?;
        let mut modules = self.modules.lock();
        let mut new: Vec<(&Arc<Image>, &CudaSource)> = Vec::new();
        for image in images {
            let (None, Some(source)) = (binary(image), &image.source) else {
                continue;
            };
            let is_loaded = modules.iter().any(|(known, _)| known == image);
            if !is_loaded && !new.iter().any(|(known, _)| *known == image) {
                new.push((image, source));
            }
        }
        let sources: Vec<&CudaSource> = new.iter().map(|(_, source)| *source).collect();
        if sources.is_empty() {
            return Ok(());
        }
        let capability = self.context.device.capability();
        let codes = self.compiler.compile_all(&sources, capability)?;
        let mut result = Ok(());
        for ((image, _), code) in new.into_iter().zip(codes) {
            let module = code.and_then(|code| Module::load(&self.context, &code));
            match module.within(|| format!("kernel image {}", image.name)) {
                Ok(module) => modules.push((Arc::clone(image), module)),
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }

    pub(super) fn compilation(&self) -> Compilation {
        if self.context.id.check_process().is_err() {
            return Compilation::default();
        }
        self.compiler.compilation()
    }

    /// Loads a kernel, and checks that its code matches the declaration.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`] for a kernel without code, or one whose declaration its code
    /// contradicts; [`ErrorKind::Unavailable`] for what the device or the machine lacks.
    pub(super) fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        self.context.check_lost()?;
        // Stays locked, so that two callers do not load the same code.
        let mut modules = self.modules.lock();
        let code = kernel.code.as_ref().ok_or_else(|| {
            let message = format!("kernel {} has no device code", kernel.name);
            Error::new(ErrorKind::Kernel, message)
                .fix("attach its code with Kernel::code, or use the CPU, which runs its twin")
        })?;
        let kinds = || kernel.params.iter().map(|param| &param.kind);
        let known = self.loaded.read().iter().position(|entry| {
            entry.code == *code
                && *entry.function.name == *kernel.name
                && entry.function.params.iter().eq(kinds())
                && entry.function.follows_device_pointers == kernel.follows_device_pointers
                && entry.function.attributes.declared == kernel.attributes
        });
        if let Some(index) = known {
            let id = FunctionId(index as u32);
            // Block size and shared memory belong to the launch, not to the function.
            if let DeviceCode::Image(_) = code {
                self.check_block(kernel, self.get(id)?.raw)?;
            }
            return Ok(id);
        }
        let attributes = DriverAttributes::new(&self.context, kernel)?;
        let (raw, library) = match code {
            DeviceCode::Library(library) => (std::ptr::null_mut(), Some(library.clone())),
            DeviceCode::Image(image) => (self.load_function(&mut modules, kernel, image)?, None),
        };
        let role = match NodeRole::of(kernel) {
            NodeRole::WaitingKernel if !self.code_waits(raw)? => NodeRole::Kernel,
            role => role,
        };
        let mut loaded = self.loaded.write();
        loaded.push(Loaded {
            code: code.clone(),
            function: Function {
                name: kernel.name.as_str().into(),
                raw,
                library,
                params: kinds().cloned().collect(),
                follows_device_pointers: kernel.follows_device_pointers,
                attributes,
                role,
            },
        });
        Ok(FunctionId(loaded.len() as u32 - 1))
    }

    /// The function of a kernel in its image, which is loaded first if it is not yet.
    fn load_function(
        &self,
        modules: &mut Vec<(Arc<Image>, Module)>,
        kernel: &Kernel,
        image: &Arc<Image>,
    ) -> Result<sys::CUfunction> {
        let known = modules.iter().position(|(known, _)| known == image);
        let module = match known {
            Some(index) => index,
            None => {
                let module = self.load_module(image)?;
                modules.push((Arc::clone(image), module));
                modules.len() - 1
            }
        };
        let raw = self.find(&modules[module].1, &image.name, &kernel.name)?;
        self.check_declaration(kernel, raw)?;
        Ok(raw)
    }

    /// Loads an image: its binary if it has one that the device runs, or else its source, which is
    /// compiled first. [`ErrorKind::Kernel`] for an image that has neither.
    fn load_module(&self, image: &Image) -> Result<Module> {
        let place = || format!("kernel image {}", image.name);
        let compiled;
        let code = match (binary(image), &image.source) {
            (Some(binary), _) => binary,
            (None, Some(source)) => {
                let capability = self.context.device.capability();
                compiled = self.compiler.compile(source, capability).within(place)?;
                &compiled
            }
            (None, None) => {
                let message = "it has neither a binary nor a source";
                return Err(Error::new(ErrorKind::Kernel, message).within(place()));
            }
        };
        Module::load(&self.context, code).within(place)
    }

    /// Finds a kernel of a module, and loads it. [`ErrorKind::Kernel`] if the module has none of
    /// that name.
    fn find(&self, module: &Module, image: &str, kernel: &str) -> Result<sys::CUfunction> {
        let driver = self.context.bind()?;
        let missing = || {
            let message = format!("image {image} has no kernel named {kernel}");
            Error::new(ErrorKind::Kernel, message)
                .with_code(result_codes::NOT_FOUND)
                .fix("declare it extern \"C\" __global__ in the source, and check the name")
        };
        // The driver takes an empty name for a mistake of its caller.
        let name = CString::new(kernel).ok().filter(|name| !name.is_empty());
        let name = name.ok_or_else(missing)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` and `name` outlive the call, and the module is alive.
        let result = unsafe { (driver.cuModuleGetFunction)(&mut raw, module.raw, name.as_ptr()) };
        if result == result_codes::NOT_FOUND {
            return Err(missing());
        }
        self.context.check("cuModuleGetFunction", result)?;
        // Modules load lazily, and loading is not allowed during a capture.
        // SAFETY: the function came from a module that is alive.
        let result = unsafe { (driver.cuFuncLoad)(raw) };
        self.context.check("cuFuncLoad", result)?;
        Ok(raw)
    }

    /// The sizes of the parameters that the code takes. Their number is found by asking past the
    /// last one; the driver reports it only from CUDA 13.2 on.
    fn code_params(&self, function: sys::CUfunction) -> Result<Vec<usize>> {
        let mut sizes = Vec::new();
        while let Some(bytes) = self.code_param(function, sizes.len())? {
            sizes.push(bytes);
        }
        Ok(sizes)
    }

    /// The size of a parameter in bytes; `None` past the last.
    fn code_param(&self, function: sys::CUfunction, index: usize) -> Result<Option<usize>> {
        let driver = self.context.bind()?;
        let (mut offset, mut bytes) = (0, 0);
        // SAFETY: both outlive the call, and the function's module is alive.
        let result =
            unsafe { (driver.cuFuncGetParamInfo)(function, index, &mut offset, &mut bytes) };
        match result {
            result_codes::INVALID_VALUE => Ok(None),
            _ => self
                .context
                .check("cuFuncGetParamInfo", result)
                .map(|()| Some(bytes)),
        }
    }

    /// Compares the parameters of the declaration, which a launch passes, with those of the code,
    /// which the driver reads: it would read past arguments that are too few or too short. A
    /// difference is an error of [`ErrorKind::Kernel`].
    fn check_declaration(&self, kernel: &Kernel, function: sys::CUfunction) -> Result<()> {
        let taken = self.code_params(function)?;
        if kernel.params.len() != taken.len() || taken.len() > PARAMS_MAX {
            return Err(mismatch_error(
                kernel,
                format!(
                    "it is declared with {} parameters, and its code takes {} (at most {PARAMS_MAX})",
                    kernel.params.len(),
                    taken.len()
                ),
            ));
        }
        for (param, taken) in kernel.params.iter().zip(taken) {
            let declared = param.kind.size_bytes();
            if taken != declared {
                return Err(mismatch_error(
                    kernel,
                    format!(
                        "its parameter {} is declared with {declared} bytes, and the code takes {taken}",
                        param.name
                    ),
                ));
            }
        }
        self.check_block(kernel, function)
    }

    /// Checks the block size and the shared memory, and opts in to more shared memory than every
    /// device has. [`ErrorKind::Kernel`] if the code or the device allows less.
    fn check_block(&self, kernel: &Kernel, function: sys::CUfunction) -> Result<()> {
        use CUfunction_attribute as A;
        let threads_max = self.attribute(function, A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let threads: u64 = kernel.block.iter().map(|&n| u64::from(n)).product();
        if threads > u64::from(threads_max) {
            let message = format!(
                "its block has {threads} threads, and its code runs with at most {threads_max}"
            );
            return Err(mismatch_error(kernel, message));
        }
        let device = self.context.device;
        let shared_max = device
            .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
        let shared_static = self.attribute(function, A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let dynamic_max = shared_max.saturating_sub(shared_static);
        if kernel.shared_bytes > dynamic_max {
            let message = format!(
                "its block asks for {} of dynamic shared memory, and {} gives at most {}",
                size_text(kernel.shared_bytes as usize),
                device.info().name,
                size_text(dynamic_max as usize),
            );
            return Err(mismatch_error(kernel, message));
        }
        if kernel.shared_bytes + shared_static > SHARED_BYTES_DEFAULT {
            self.opt_in(function, kernel.shared_bytes)
        } else {
            Ok(())
        }
    }

    /// Lets launches of a function have `shared_bytes` bytes of dynamic shared memory, which beyond
    /// 48 KiB the driver refuses otherwise.
    fn opt_in(&self, function: sys::CUfunction, shared_bytes: u32) -> Result<()> {
        let which = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // Another declaration of the same code may have opted in to more.
        if self.attribute(function, which)? >= shared_bytes {
            return Ok(());
        }
        let driver = self.context.bind()?;
        // SAFETY: the function's module is alive.
        self.context.check("cuFuncSetAttribute", unsafe {
            (driver.cuFuncSetAttribute)(function, which, shared_bytes as i32)
        })
    }

    /// Whether the code of a kernel that is declared to wait for its dependencies does wait, and
    /// the device lets it start before they have ended. Code for older architectures lacks the
    /// instruction, also where the driver has compiled it for this device. The driver has the
    /// architecture as `10 * major + minor`.
    fn code_waits(&self, function: sys::CUfunction) -> Result<bool> {
        let (major, minor) = programmatic_launch::SINCE;
        let which = CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION;
        Ok(self.context.device.capability() >= (major, minor)
            && self.attribute(function, which)? >= 10 * major + minor)
    }

    /// Asks the driver for an attribute of a function; negative values become 0.
    fn attribute(&self, function: sys::CUfunction, which: CUfunction_attribute) -> Result<u32> {
        let driver = self.context.bind()?;
        let mut value = 0;
        // SAFETY: `value` outlives the call, and the function's module is alive.
        self.context.check("cuFuncGetAttribute", unsafe {
            (driver.cuFuncGetAttribute)(&mut value, which, function)
        })?;
        Ok(value.max(0) as u32)
    }
}

/// The binary of an image, if it has one.
fn binary(image: &Image) -> Option<&[u8]> {
    image.binary.as_deref().filter(|code| !code.is_empty())
}

/// The error of a declaration that does not match its code or the device.
fn mismatch_error(kernel: &Kernel, message: String) -> Error {
    Error::new(
        ErrorKind::Kernel,
        format!("kernel {}: {message}", kernel.name),
    )
}

/// A loaded module.
struct Module {
    context: Arc<PrimaryContext>,
    raw: sys::CUmodule,
}

// SAFETY: a CUmodule is a handle that the driver lets any thread use.
unsafe impl Send for Module {}

impl Module {
    /// Loads code into the context. The driver compiles PTX here, which may take seconds. The
    /// errors are those of [`ImageFormat::detect`] and [`load_error`]; any other result is the driver's
    /// error.
    fn load(context: &Arc<PrimaryContext>, code: &[u8]) -> Result<Module> {
        let format = ImageFormat::detect(code)?;
        let driver = context.bind()?;
        // Aligned for binaries, and terminated by a zero for PTX text.
        let mut words = vec![0_u64; code.len() / size_of::<u64>() + 1];
        bytemuck::cast_slice_mut(&mut words)[..code.len()].copy_from_slice(code);
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
        let mut raw = std::ptr::null_mut();
        // SAFETY: the options and their values are two each and outlive the
        // call, as do the log, of the size that is passed with it, and the image,
        // which `ImageFormat::detect` found to end inside its buffer.
        let result = unsafe {
            (driver.cuModuleLoadDataEx)(
                &mut raw,
                words.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if result == result_codes::SUCCESS {
            return Ok(Module {
                context: Arc::clone(context),
                raw,
            });
        }
        let log = String::from_utf8_lossy(&log);
        let log = log.trim_end_matches('\0').trim();
        context
            .check("cuModuleLoadDataEx", result)
            .map_err(|error| load_error(context, result, format, log).unwrap_or(error))?;
        unreachable!("the result is no success");
    }
}

/// The error of an image that the device or the driver refuses; `None` for a result that is not about
/// the image.
fn load_error(
    context: &PrimaryContext,
    result: i32,
    format: ImageFormat,
    log: &str,
) -> Option<Error> {
    let device = context.device;
    let (major, minor) = device.capability();
    let cuda = driver::version_text(device.driver.version);
    let (kind, fix) = match result {
        result_codes::NO_BINARY_FOR_GPU | result_codes::UNSUPPORTED_PTX_VERSION => (
            ErrorKind::Unavailable,
            format!(
                "update the NVIDIA driver, or build with an nvcc that knows sm_{major}{minor} \
                 and is no newer than CUDA {cuda}, {OR_CPU}"
            ),
        ),
        result_codes::JIT_COMPILER_NOT_FOUND | result_codes::JIT_COMPILATION_DISABLED => (
            ErrorKind::Unavailable,
            format!(
                "let the driver compile PTX (its libnvidia-ptxjitcompiler, and \
                 CUDA_DISABLE_PTX_JIT unset), or build with an nvcc that knows \
                 sm_{major}{minor}, {OR_CPU}"
            ),
        ),
        result_codes::INVALID_IMAGE | result_codes::INVALID_PTX => {
            (ErrorKind::Kernel, format!("rebuild the image, {OR_CPU}"))
        }
        _ => return None,
    };
    let code = Code::of(result);
    let log = if log.is_empty() {
        String::new()
    } else {
        format!(": {log}")
    };
    let message = format!(
        "the driver (CUDA {cuda}) refuses this {format} for {} of compute capability \
         {major}.{minor}: {} ({}, {result}){log}",
        device.info().name,
        code.meaning,
        code.name
    );
    Some(Error::new(kind, message).with_code(result).fix(fix))
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Some(driver) = self.context.bind_to_free() {
            // SAFETY: `raw` came from cuModuleLoadDataEx and is unloaded once,
            // here, when no slot holds the functions any more.
            unsafe { (driver.cuModuleUnload)(self.raw) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::device_loop::LoopArgs;
    use super::super::fake_driver::{self, FakeDriverUse};
    use super::*;
    use crate::backend::CudaOptions;

    #[test]
    fn equal_code_is_loaded_once() {
        let session = FakeDriverUse::new();
        fake_driver::state(|state| state.loops.loads_modules = true);
        let compiler = Compiler::new(&CudaOptions::default(), 0);
        let functions = LoadedFunctions::new(&session.context(), compiler);
        let load_named = |name: &str, code: &[u8]| {
            let image = Image::compiled("image", code);
            let kernel = Kernel::new(name).structure("args", size_of::<LoopArgs>(), &[]);
            // SAFETY: it is loaded and not launched.
            functions.load(&unsafe { kernel.code(&image) })
        };
        let load = |code: &[u8]| load_named("kernel", code).unwrap();
        let ptx = |name: &str| format!(".version 8.0\n// {name}\n").into_bytes();
        let [one, other] = ["one", "other"].map(ptx);
        assert_eq!(load(&one), load(&one));
        assert_ne!(load(&one), load(&other));
        assert_eq!(functions.modules.lock().len(), 2);
        for name in ["", "a\0b"] {
            let error = load_named(name, &one).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Kernel);
            assert!(
                error.to_string().contains("image has no kernel named"),
                "{error}"
            );
        }
    }
}
