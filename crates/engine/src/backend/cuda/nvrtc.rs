//! NVRTC, CUDA's run-time compiler. It has its own loader here: that of the bindings panics if the
//! library is missing, and knows the file name of one version only.

use super::driver::OR_CPU;
use crate::error::{Error, ErrorKind, Result};
use crate::record::CudaSource;
use libloading::Library;
use std::error::Error as _;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

/// The variable that names the library's file, in preference to [`FILE_NAMES`].
pub(super) const PATH_VARIABLE: &str = "TAPELOOP_NVRTC";

/// The names that the dynamic linker looks for, newest first.
const FILE_NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

const SUCCESS: c_int = 0;

type Program = *mut c_void;

macro_rules! nvrtc {
    ($($name:ident($($arg:ty),* $(,)?);)*) => {
        #[allow(non_snake_case, reason = "the library's own names")]
        struct NvrtcFunctions {
            $($name: unsafe extern "C" fn($($arg),*) -> c_int,)*
            nvrtcGetErrorString: unsafe extern "C" fn(c_int) -> *const c_char,
        }

        impl NvrtcFunctions {
            fn resolve(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: these are the signatures of `nvrtc.h`, the same in every
                // release since 11.2; `nvrtcResult` is an enum of 4 bytes.
                unsafe {
                    Ok(NvrtcFunctions {
                        $($name: *library.get(stringify!($name))?,)*
                        nvrtcGetErrorString: *library.get("nvrtcGetErrorString")?,
                    })
                }
            }
        }
    };
}

nvrtc! {
    nvrtcVersion(*mut c_int, *mut c_int);
    nvrtcGetNumSupportedArchs(*mut c_int);
    nvrtcGetSupportedArchs(*mut c_int);
    nvrtcCreateProgram(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    );
    nvrtcCompileProgram(Program, c_int, *const *const c_char);
    nvrtcDestroyProgram(*mut Program);
    nvrtcGetProgramLogSize(Program, *mut usize);
    nvrtcGetProgramLog(Program, *mut c_char);
    nvrtcGetCUBINSize(Program, *mut usize);
    nvrtcGetCUBIN(Program, *mut c_char);
    nvrtcGetPTXSize(Program, *mut usize);
    nvrtcGetPTX(Program, *mut c_char);
}

/// The target of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompileTarget {
    /// Machine code of a device.
    Machine(u32),
    /// PTX, which the driver compiles to machine code.
    Ptx(u32),
}

impl CompileTarget {
    /// The best of `supported` for a device: its own machine code, or else the newest PTX that it
    /// can run.
    fn choose(supported: &[u32], capability: (u32, u32)) -> Option<CompileTarget> {
        let card = capability.0 * 10 + capability.1;
        if supported.contains(&card) {
            return Some(CompileTarget::Machine(card));
        }
        let below = supported.iter().filter(|&&arch| arch < card);
        below.max().map(|&arch| CompileTarget::Ptx(arch))
    }

    /// The compiler's option for it.
    pub(super) fn option(self) -> String {
        match self {
            CompileTarget::Machine(arch) => format!("--gpu-architecture=sm_{arch}"),
            CompileTarget::Ptx(arch) => format!("--gpu-architecture=compute_{arch}"),
        }
    }
}

/// The library, open.
pub(super) struct Nvrtc {
    functions: NvrtcFunctions,
    /// Major and minor version.
    pub(super) version: (i32, i32),
    /// The path or the name under which it was opened.
    pub(super) path: PathBuf,
    // Keeps `functions` valid.
    _library: Library,
    // Stays open so that NVRTC finds it.
    _builtins: Option<Library>,
}

impl Nvrtc {
    /// Opens the library at `path`, or at the path in [`PATH_VARIABLE`], or by name. A driver
    /// refuses code of a newer CUDA, so NVRTC 12 is tried first for a driver older than 13 (0 if
    /// there is none).
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`], with the reason for each file that was tried.
    pub(super) fn open(path: Option<&Path>, driver_version: u32) -> Result<Nvrtc> {
        let named = path
            .map(Path::to_owned)
            .or_else(|| std::env::var_os(PATH_VARIABLE).map(PathBuf::from))
            .filter(|path| !path.as_os_str().is_empty());
        let candidates = match named {
            Some(path) => vec![path],
            None => {
                let mut names = FILE_NAMES.map(PathBuf::from);
                if (1..13_000).contains(&driver_version) {
                    names.rotate_left(1);
                }
                names.to_vec()
            }
        };
        let mut refusals = Vec::new();
        for path in candidates {
            match Nvrtc::open_one(path) {
                Ok(nvrtc) => return Ok(nvrtc),
                Err(refusal) => refusals.push(refusal),
            }
        }
        let message = format!("NVRTC cannot be opened: {}", refusals.join("; "));
        Err(Error::new(ErrorKind::Unavailable, message).fix(format!(
            "install libnvrtc (of the CUDA toolkit, or pip install nvidia-cuda-nvrtc) and name \
             its file in {PATH_VARIABLE}, {OR_CPU}"
        )))
    }

    /// Opens one library file, and asks for its version. The error is a text for a list of all
    /// files that were tried.
    fn open_one(path: PathBuf) -> Result<Nvrtc, String> {
        // The source of the error has the message of the linker.
        let refuse = |error: libloading::Error| match error.source() {
            Some(linker) => linker.to_string(),
            None => format!("{}: {error}", path.display()),
        };
        // SAFETY: opening the library runs its initialisers alone. That the file
        // is NVRTC follows from its standard name, or the caller who named the file vouches for it.
        let library = unsafe { Library::new(OsString::from(&path)) }.map_err(refuse)?;
        let functions = NvrtcFunctions::resolve(&library).map_err(refuse)?;
        let mut version = (0, 0);
        // SAFETY: both numbers outlive the call.
        let result = unsafe { (functions.nvrtcVersion)(&mut version.0, &mut version.1) };
        if result != SUCCESS {
            return Err(format!(
                "{}: the library reports no version",
                path.display()
            ));
        }
        Ok(Nvrtc {
            functions,
            version,
            _builtins: open_builtins(&path, version),
            path,
            _library: library,
        })
    }

    pub(super) fn version_text(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// The target for a device of this compute capability.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if it compiles for newer devices only.
    pub(super) fn target(&self, capability: (u32, u32)) -> Result<CompileTarget> {
        let mut count = 0;
        // SAFETY: `count` outlives the call.
        self.check("nvrtcGetNumSupportedArchs", unsafe {
            (self.functions.nvrtcGetNumSupportedArchs)(&mut count)
        })?;
        let mut archs = vec![0; count.max(0) as usize];
        // SAFETY: the call writes as many numbers as the one before counted.
        self.check("nvrtcGetSupportedArchs", unsafe {
            (self.functions.nvrtcGetSupportedArchs)(archs.as_mut_ptr())
        })?;
        let archs: Vec<u32> = archs.into_iter().map(|arch| arch.max(0) as u32).collect();
        CompileTarget::choose(&archs, capability).ok_or_else(|| {
            let (major, minor) = self.version;
            let message = format!(
                "NVRTC {major}.{minor} no longer compiles for compute capability {}.{}",
                capability.0, capability.1
            );
            Error::new(ErrorKind::Unavailable, message)
                .fix(format!("install an older NVRTC, {OR_CPU}"))
        })
    }

    /// Compiles `source` to a cubin or, for a PTX target, to PTX.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`], with the compiler's messages.
    pub(super) fn compile(&self, source: &CudaSource, target: CompileTarget) -> Result<Vec<u8>> {
        let program = self.program(source)?;
        let mut options = vec![c_string("an option", &target.option())?];
        for option in &source.options {
            options.push(c_string("an option", option)?);
        }
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let functions = &self.functions;
        // SAFETY: the program is alive, and the options outlive the call.
        let result = unsafe {
            (functions.nvrtcCompileProgram)(program.raw, pointers.len() as c_int, pointers.as_ptr())
        };
        if result != SUCCESS {
            let log = program.bytes(
                functions.nvrtcGetProgramLogSize,
                functions.nvrtcGetProgramLog,
            )?;
            let log = String::from_utf8_lossy(&log);
            let log = log.trim_end_matches('\0').trim();
            let message = format!("{} does not compile: {log}", source.file);
            return Err(Error::new(ErrorKind::Kernel, message));
        }
        match target {
            CompileTarget::Machine(_) => {
                program.bytes(functions.nvrtcGetCUBINSize, functions.nvrtcGetCUBIN)
            }
            CompileTarget::Ptx(_) => {
                program.bytes(functions.nvrtcGetPTXSize, functions.nvrtcGetPTX)
            }
        }
    }

    /// Makes a program of a source and its headers, which is not compiled yet.
    fn program(&self, source: &CudaSource) -> Result<OpenProgram<'_>> {
        let text = c_string("the text", &source.text)?;
        let file = c_string("the file's name", &source.file)?;
        let mut names = Vec::new();
        let mut texts = Vec::new();
        for (name, text) in &source.headers {
            names.push(c_string("the name of a header", name)?);
            texts.push(c_string("the text of a header", text)?);
        }
        let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let texts: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        let mut raw = std::ptr::null_mut();
        // SAFETY: all strings outlive the call, which copies them, and there are
        // as many header names as header texts.
        self.check("nvrtcCreateProgram", unsafe {
            (self.functions.nvrtcCreateProgram)(
                &mut raw,
                text.as_ptr(),
                file.as_ptr(),
                names.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        })?;
        Ok(OpenProgram { nvrtc: self, raw })
    }

    /// Makes an error of a call's result if it is not success.
    fn check(&self, call: &str, result: c_int) -> Result<()> {
        if result == SUCCESS {
            return Ok(());
        }
        // SAFETY: the call takes any number and returns a static string.
        let text = unsafe { CStr::from_ptr((self.functions.nvrtcGetErrorString)(result)) };
        let message = format!("{call}: {} ({result})", text.to_string_lossy());
        Err(Error::new(ErrorKind::Kernel, message))
    }
}

/// Opens the library of built-in functions that NVRTC opens by its bare name when it compiles: the linker does
/// not search NVRTC's folder for it, but uses it if it is open already. `None` if there is no such file, and if
/// `nvrtc` is a bare name, as the linker then finds both; if it does not, NVRTC's log says so.
fn open_builtins(nvrtc: &Path, (major, minor): (i32, i32)) -> Option<Library> {
    let name = format!("libnvrtc-builtins.so.{major}.{minor}");
    let path = builtins_path(nvrtc, &name)?;
    // SAFETY: opening the library runs its initialisers alone, and it is the part of NVRTC that lies next
    // to it.
    unsafe { Library::new(path).ok() }
}

/// The file `name` next to `nvrtc`, or next to the file that `nvrtc` is a link to.
fn builtins_path(nvrtc: &Path, name: &str) -> Option<PathBuf> {
    let next_to = |library: &Path| {
        let folder = library.parent().filter(|folder| *folder != Path::new(""))?;
        Some(folder.join(name)).filter(|path| path.is_file())
    };
    next_to(nvrtc).or_else(|| next_to(&nvrtc.canonicalize().ok()?))
}

fn c_string(what: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| {
        let message = format!("{what} of CUDA source holds a zero byte");
        Error::new(ErrorKind::Kernel, message)
    })
}

/// A program being compiled.
struct OpenProgram<'a> {
    nvrtc: &'a Nvrtc,
    raw: Program,
}

impl OpenProgram<'_> {
    /// Reads bytes: one function returns their number, the other writes them.
    fn bytes(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        write: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>> {
        let mut len = 0;
        // SAFETY: `size` is one of NVRTC's size functions, as the callers above
        // pass it; the program is alive and `len` outlives the call.
        let result = unsafe { size(self.raw, &mut len) };
        self.nvrtc.check("reading a size", result)?;
        let mut bytes = vec![0_u8; len];
        // SAFETY: `write` is the function that belongs to `size`, and writes as
        // many bytes as that one said.
        self.nvrtc.check("reading a result", unsafe {
            write(self.raw, bytes.as_mut_ptr().cast())
        })?;
        Ok(bytes)
    }
}

impl Drop for OpenProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from nvrtcCreateProgram and is destroyed once, here.
        unsafe { (self.nvrtc.functions.nvrtcDestroyProgram)(&mut self.raw) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_gets_its_own_code_or_the_newest_ptx_below_it() {
        let supported = [75, 80, 86, 90, 100];
        assert_eq!(
            CompileTarget::choose(&supported, (9, 0)),
            Some(CompileTarget::Machine(90))
        );
        assert_eq!(
            CompileTarget::choose(&supported, (8, 9)),
            Some(CompileTarget::Ptx(86))
        );
        assert_eq!(
            CompileTarget::choose(&supported, (12, 0)),
            Some(CompileTarget::Ptx(100))
        );
        assert_eq!(CompileTarget::choose(&supported, (6, 1)), None);
    }

    #[cfg(unix)]
    #[test]
    fn the_built_in_functions_are_found_next_to_the_library_that_a_link_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let [library, builtins, links] =
            ["nvrtc.so", "builtins.so", "links"].map(|name| folder.path().join(name));
        std::fs::write(&library, "").unwrap();
        std::fs::create_dir(&links).unwrap();
        let link = links.join("nvrtc.so");
        std::os::unix::fs::symlink(&library, &link).unwrap();
        assert_eq!(builtins_path(&library, "builtins.so"), None);
        std::fs::write(&builtins, "").unwrap();
        assert_eq!(
            builtins_path(&library, "builtins.so"),
            Some(builtins.clone())
        );
        let found = builtins_path(&link, "builtins.so").unwrap();
        assert_eq!(found, builtins.canonicalize().unwrap());
        assert_eq!(builtins_path(Path::new("nvrtc.so"), "builtins.so"), None);
    }

    #[test]
    fn a_zero_byte_is_refused_with_where_it_is() {
        let error = c_string("the name of a header", "a\0b").unwrap_err();
        assert!(
            error.to_string().contains("the name of a header"),
            "{error}"
        );
        assert!(c_string("an option", "-G").is_ok());
    }

    #[test]
    fn a_library_that_is_not_there_is_named_with_what_to_do() {
        let error = Nvrtc::open(Some(Path::new("/nowhere/libnvrtc.so")), 0)
            .err()
            .unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let text = error.to_string();
        assert!(
            text.contains("/nowhere/libnvrtc.so") && text.contains(PATH_VARIABLE),
            "{text}"
        );
        assert!(text.contains("backend = \"cpu\""), "{text}");
    }
}
