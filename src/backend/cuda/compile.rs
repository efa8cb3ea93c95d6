//! Compiles CUDA source for a device, through the cache.

use super::cache::Cache;
use super::nvrtc::Nvrtc;
use crate::backend::{CudaOptions, KernelCache, NvrtcLibrary};
use crate::error::Result;
use crate::record::CudaSource;
use parking_lot::Mutex;

/// NVRTC, opened at first use, and the cache of its output.
pub(super) struct Compiler {
    named: Option<NvrtcLibrary>,
    driver_version: u32,
    nvrtc: Mutex<Option<Nvrtc>>,
    cache: Cache,
}

impl Compiler {
    pub(super) fn new(options: &CudaOptions, driver_version: u32) -> Compiler {
        Compiler {
            named: options.nvrtc.clone(),
            driver_version,
            nvrtc: Mutex::new(None),
            cache: Cache::new(options.kernel_cache.as_ref().map(KernelCache::path)),
        }
    }

    /// The code of `source` for a device of this compute capability.
    pub(super) fn compile(&self, source: &CudaSource, capability: (u32, u32)) -> Result<Vec<u8>> {
        let mut nvrtc = self.nvrtc.lock();
        let nvrtc = match &mut *nvrtc {
            Some(nvrtc) => nvrtc,
            none => none.insert(Nvrtc::open(
                self.named.as_ref().map(NvrtcLibrary::path),
                self.driver_version,
            )?),
        };
        let target = nvrtc.target(capability)?;
        let version = format!("{}.{}", nvrtc.version.0, nvrtc.version.1);
        let option = target.option();
        let counts = format!("{} {}", source.headers.len(), source.options.len());
        let headers = source.headers.iter().flat_map(|(name, text)| [name, text]);
        let parts = [&version, &option, &counts, &source.file, &source.text]
            .into_iter()
            .chain(headers)
            .chain(&source.options);
        let key = Cache::key(parts.map(String::as_str));
        // The key does not cover the contents of included files.
        let is_kept = !source.options.iter().any(|option| names_files(option));
        if let Some(code) = self.cache.get(&key).filter(|_| is_kept) {
            return Ok(code);
        }
        tracing::info!(
            file = source.file,
            option,
            "compiling kernels with NVRTC {version}"
        );
        let code = nvrtc.compile(source, target)?;
        if is_kept {
            self.cache.put(&key, &code);
        }
        Ok(code)
    }
}

/// Whether this option makes NVRTC read files.
fn names_files(option: &str) -> bool {
    let names = ["I", "include-path", "include", "pre-include", "use-pch"];
    let option = option.trim_start_matches('-');
    names.iter().any(|name| option.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn source(text: &str) -> CudaSource {
        CudaSource {
            file: "scale.cu".to_owned(),
            text: text.to_owned(),
            headers: vec![("factor.cuh".to_owned(), "#define FACTOR 2.0f\n".to_owned())],
            options: vec!["--fmad=false".to_owned()],
        }
    }

    /// `None`, with a message on standard output, if NVRTC is missing.
    fn compiler(cache: &std::path::Path) -> Option<Compiler> {
        let mut compiler = Compiler::new(&CudaOptions::default(), 0);
        compiler.cache = Cache::new(Some(cache));
        match Nvrtc::open(None, 0) {
            Ok(_) => Some(compiler),
            Err(error) => {
                println!("skipped: no NVRTC: {error}");
                None
            }
        }
    }

    #[test]
    fn options_that_name_files_are_known() {
        for option in [
            "-I",
            "-Ikernels",
            "--include-path=kernels",
            "-include",
            "--pre-include=a.h",
        ] {
            assert!(names_files(option), "{option}");
        }
        for option in [
            "--fmad=false",
            "-DINCLUDE=1",
            "--std=c++17",
            "-lineinfo",
            "kernels",
        ] {
            assert!(!names_files(option), "{option}");
        }
    }

    #[test]
    fn text_compiles_once_and_comes_from_the_cache_then() {
        let dir = tempfile::tempdir().unwrap();
        let Some(compiler) = compiler(dir.path()) else {
            return;
        };
        let source = source(
            "#include \"factor.cuh\"\nextern \"C\" __global__ void scale(float *x) { *x *= FACTOR; }",
        );
        let code = compiler.compile(&source, (9, 0)).unwrap();
        assert!(code.starts_with(b"\x7FELF"), "machine code of a known card");
        let ptx = compiler.compile(&source, (99, 0)).unwrap();
        assert!(
            String::from_utf8_lossy(&ptx).contains(".version"),
            "PTX for a newer card"
        );
        let files = || std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(files(), 2);
        assert_eq!(compiler.compile(&source, (9, 0)).unwrap(), code);
        assert_eq!(files(), 2);
    }

    #[test]
    fn text_that_does_not_compile_names_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        let Some(compiler) = compiler(dir.path()) else {
            return;
        };
        let error = compiler
            .compile(&source("\n\n__global__ void f() { nonsense; }"), (9, 0))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Kernel);
        assert!(error.message().contains("scale.cu(3)"), "{error}");
        assert!(error.message().contains("nonsense"), "{error}");
    }
}
