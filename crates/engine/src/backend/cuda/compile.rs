//! Compiles CUDA source for a device, through the cache.

use super::cache::Cache;
use super::nvrtc::{CompileTarget, Nvrtc};
use crate::backend::{Compilation, CudaOptions, KernelCache, NvrtcLibrary};
use crate::error::Result;
use crate::record::CudaSource;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

/// The stack of a thread that compiles: what the main thread of a program has on Linux.
const STACK_BYTES: usize = 8 << 20;

/// NVRTC, opened at first use, and the cache of its output.
pub(super) struct Compiler {
    named: Option<NvrtcLibrary>,
    driver_version: u32,
    nvrtc: Mutex<Option<Arc<Nvrtc>>>,
    cache: Cache,
    progress: Mutex<CompileProgress>,
}

#[derive(Default)]
struct CompileProgress {
    /// Without the time since `since`.
    ended: Compilation,
    /// Since when there is something to compile.
    since: Option<Instant>,
}

/// A source that the cache does not have.
struct UncachedSource<'a> {
    /// Its place among all sources.
    index: usize,
    source: &'a CudaSource,
    /// The key of its code in the cache; `None` if the code is not kept.
    key: Option<String>,
}

impl Compiler {
    pub(super) fn new(options: &CudaOptions, driver_version: u32) -> Compiler {
        Compiler {
            named: options.nvrtc.clone(),
            driver_version,
            nvrtc: Mutex::default(),
            cache: Cache::new(options.kernel_cache.as_ref().map(KernelCache::path)),
            progress: Mutex::default(),
        }
    }

    /// The code of `source` for a device of this compute capability.
    pub(super) fn compile(&self, source: &CudaSource, capability: (u32, u32)) -> Result<Vec<u8>> {
        let mut codes = self.compile_all(&[source], capability)?;
        codes.pop().expect("a result for each source")
    }

    /// The code of each source for a device of this compute capability. All cores compile what the
    /// cache does not have.
    ///
    /// # Errors
    /// There is no NVRTC, or none for the device.
    pub(super) fn compile_all(
        &self,
        sources: &[&CudaSource],
        capability: (u32, u32),
    ) -> Result<Vec<Result<Vec<u8>>>> {
        let nvrtc = self.nvrtc()?;
        let target = nvrtc.target(capability)?;
        let mut codes = vec![None; sources.len()];
        let mut missing = Vec::new();
        for (index, &source) in sources.iter().enumerate() {
            // A key does not cover the contents of included files.
            let is_kept = !source.options.iter().any(|option| names_files(option));
            let key = is_kept.then(|| key(&nvrtc, target, source));
            codes[index] = key.as_ref().and_then(|key| self.cache.get(key)).map(Ok);
            if codes[index].is_none() {
                missing.push(UncachedSource { index, source, key });
            }
        }
        for (index, code) in self.compile_missing(&nvrtc, target, missing) {
            codes[index] = Some(code);
        }
        let code = |code: Option<_>| code.expect("from the cache or compiled");
        Ok(codes.into_iter().map(code).collect())
    }

    /// Compiles sources on all cores, and returns each code with the place of its source. Counts
    /// them in `progress`, and stores code that has a key in the cache. The errors are those of
    /// [`Nvrtc::compile`], one for each source.
    fn compile_missing(
        &self,
        nvrtc: &Nvrtc,
        target: CompileTarget,
        mut missing: Vec<UncachedSource<'_>>,
    ) -> Vec<(usize, Result<Vec<u8>>)> {
        let count = missing.len();
        if count == 0 {
            return Vec::new();
        }
        let started = Instant::now();
        {
            let mut progress = self.progress.lock();
            progress.ended.images += count as u64;
            progress.since = Some(started);
        }
        // A long text takes long, and started last it would keep the others waiting. The fused kernel
        // is all headers.
        missing.sort_by_key(|missing| {
            let headers = missing.source.headers.iter().map(|(_, text)| text.len());
            std::cmp::Reverse(missing.source.text.len().max(headers.sum::<usize>() / 8))
        });
        let (version, option) = (nvrtc.version_text(), target.option());
        tracing::info!(
            sources = count,
            option,
            "compiling kernels with NVRTC {version}"
        );
        let next = AtomicUsize::new(0);
        let work = || {
            let mut codes = Vec::new();
            while let Some(one) = missing.get(next.fetch_add(1, Relaxed)) {
                let code = nvrtc.compile(one.source, target);
                if let (Some(key), Ok(code)) = (&one.key, &code) {
                    self.cache.put(key, code);
                }
                self.progress.lock().ended.done += 1;
                codes.push((one.index, code));
            }
            codes
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let codes = thread::scope(|scope| {
            let builder = || thread::Builder::new().stack_size(STACK_BYTES);
            let start = |_| {
                builder()
                    .name("tapeloop-nvrtc".to_owned())
                    .spawn_scoped(scope, work)
            };
            let threads: Vec<_> = (0..cores.min(count)).map_while(|n| start(n).ok()).collect();
            // This thread may have a small stack, and compiles only if no other can be started.
            let mut codes = if threads.is_empty() {
                work()
            } else {
                Vec::new()
            };
            for thread in threads {
                match thread.join() {
                    Ok(more) => codes.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            codes
        });
        let mut progress = self.progress.lock();
        progress.ended.ns += started.elapsed().as_nanos() as u64;
        progress.since = None;
        codes
    }

    /// The code that was compiled so far.
    pub(super) fn compilation(&self) -> Compilation {
        let progress = self.progress.lock();
        let now = progress
            .since
            .map_or(0, |since| since.elapsed().as_nanos() as u64);
        Compilation {
            ns: progress.ended.ns + now,
            ..progress.ended
        }
    }

    /// The library, opened at the first call. Holds a lock meanwhile; after an error the next call
    /// tries again.
    fn nvrtc(&self) -> Result<Arc<Nvrtc>> {
        let mut nvrtc = self.nvrtc.lock();
        if nvrtc.is_none() {
            let named = self.named.as_ref().map(NvrtcLibrary::path);
            *nvrtc = Some(Arc::new(Nvrtc::open(named, self.driver_version)?));
        }
        Ok(Arc::clone(nvrtc.as_ref().expect("opened above")))
    }
}

/// The key of a source's code in the cache: everything that the code depends on. The counts show where
/// the headers end and the options begin.
fn key(nvrtc: &Nvrtc, target: CompileTarget, source: &CudaSource) -> String {
    let (version, option) = (nvrtc.version_text(), target.option());
    let counts = format!("{} {}", source.headers.len(), source.options.len());
    let headers = source.headers.iter().flat_map(|(name, text)| [name, text]);
    let parts = [&version, &option, &counts, &source.file, &source.text]
        .into_iter()
        .chain(headers)
        .chain(&source.options);
    Cache::key(parts.map(String::as_str))
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
    fn sources_compile_and_are_kept_each_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let Some(compiler) = compiler(dir.path()) else {
            return;
        };
        let text = |name: &str| format!("extern \"C\" __global__ void {name}() {{}}");
        let mut sources = ["a", "b", "c", "d", "e"].map(|name| source(&text(name)));
        sources[2].text = "nonsense".to_owned();
        let compile = |sources: &[CudaSource]| {
            let sources: Vec<&CudaSource> = sources.iter().collect();
            compiler.compile_all(&sources, (9, 0)).unwrap()
        };
        let compiled = || {
            let compilation = compiler.compilation();
            assert_eq!(compilation.images, compilation.done);
            compilation.images
        };
        let codes = compile(&sources);
        assert_eq!(compiled(), 5);
        assert!(compiler.compilation().ns > 0);
        for (index, code) in codes.iter().enumerate() {
            assert_eq!(code.is_err(), index == 2, "{code:?}");
        }
        let files = || std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(files(), 4);
        // A source that changes is compiled, and no other.
        sources[2].text = text("c");
        let mended = compile(&sources);
        assert_eq!((compiled(), files()), (6, 5));
        for index in [0, 1, 3, 4] {
            assert_eq!(
                mended[index].as_ref().unwrap(),
                codes[index].as_ref().unwrap()
            );
        }
        compile(&sources);
        assert_eq!((compiled(), files()), (6, 5));
        // The code does not depend on the sources that were compiled in the same call.
        let alone = compiler.compile(&sources[2], (9, 0)).unwrap();
        assert_eq!(mended[2].as_ref().unwrap(), &alone);
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
