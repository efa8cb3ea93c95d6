//! Puts the kernels into the crate: one source for NVRTC, made of all files in
//! `kernels/`, and one fat binary of it where nvcc is at hand.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CUDA_VERSIONS: [&str; 6] = ["12040", "12050", "12060", "12080", "12090", "13000"];

/// Machine code goes in for these, Turing to Blackwell, as far as nvcc knows them.
const MACHINES: [&str; 7] = [
    "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120",
];
/// PTX goes in for this, which the driver compiles for every newer card.
const PTX: &str = "compute_75";
/// The same arithmetic as the CPU twins': nothing is contracted behind their back.
const OPTIONS: [&str; 3] = ["-O3", "-std=c++17", "--fmad=false"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=kernels");
    for variable in ["NVCC", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    if let Err(message) = check_cuda_features().and_then(|()| build_kernels()) {
        for line in message.lines() {
            println!("cargo::error={line}");
        }
    }
}

fn feature(name: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

fn check_cuda_features() -> Result<(), String> {
    let chosen = CUDA_VERSIONS
        .iter()
        .filter(|v| feature(&format!("CUDA_{v}")));
    match (feature("CUDA"), chosen.count()) {
        (false, 0) | (true, 1) => Ok(()),
        (_, count) => Err(format!(
            "the feature `cuda` needs exactly one CUDA version and got {count}; choose one \
             of cuda-{} (with default-features = false, as cuda-12040 is a default)",
            CUDA_VERSIONS.join(", cuda-")
        )),
    }
}

fn build_kernels() -> Result<(), String> {
    if !feature("FEATURES") {
        return Ok(());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let unity = Unity::of_folder(Path::new("kernels"))?;
    let source = out.join("kernels.cu");
    fs::write(&source, &unity.text).map_err(|e| format!("{}: {e}", source.display()))?;
    let digest = Sha256::digest(&unity.text);
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=TAPELOOP_KERNELS_HASH={hash}");

    let fatbin = out.join("kernels.fatbin");
    let built = match feature("CUDA") {
        true => compile(&source, &fatbin)?,
        false => None,
    };
    if built.is_none() {
        fs::write(&fatbin, b"").map_err(|e| format!("{}: {e}", fatbin.display()))?;
    }
    let built = built.unwrap_or_default();
    println!("cargo::rustc-env=TAPELOOP_NVCC={}", built.version);
    println!("cargo::rustc-env=TAPELOOP_KERNEL_TARGETS={}", built.targets);
    Ok(())
}

/// Has all other kernels once more, in a namespace of its own.
const FUSED: &str = "fused.cu";

/// All kernels as one source, each header once, with `#line` directives so that
/// compilers cite the files as they are in the repository.
#[derive(Default)]
struct Unity {
    text: String,
    seen: BTreeSet<String>,
}

impl Unity {
    fn of_folder(folder: &Path) -> Result<Unity, String> {
        let mut unity = Unity::default();
        let Ok(entries) = fs::read_dir(folder) else {
            return Ok(unity);
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let names: BTreeSet<String> = names.filter_map(|name| name.into_string().ok()).collect();
        let is_kernel = |name: &&String| name.ends_with(".cu") && *name != FUSED;
        unity.text.push_str("namespace kernels {\n");
        for name in names.iter().filter(is_kernel) {
            unity.add(folder, name)?;
        }
        unity.text.push_str("}\n");
        if names.contains(FUSED) {
            unity.seen.clear();
            unity.add(folder, FUSED)?;
        }
        Ok(unity)
    }

    fn add(&mut self, folder: &Path, name: &str) -> Result<(), String> {
        self.seen.insert(name.to_owned());
        let path = folder.join(name);
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let shown = format!("kernels/{name}");
        self.line(1, &shown);
        for (index, line) in text.lines().enumerate() {
            let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
            let included = directive.and_then(|text| text.strip_prefix("include"));
            if let Some(included) = included {
                let header = included
                    .trim()
                    .strip_prefix('"')
                    .and_then(|text| text.split('"').next());
                let header = header.ok_or_else(|| {
                    format!("{shown}:{}: kernels include only headers of their folder, as NVRTC has no others", index + 1)
                })?;
                if !self.seen.contains(header) {
                    self.add(folder, header)?;
                }
                self.line(index + 2, &shown);
            } else if directive == Some("pragma once") {
                self.text.push('\n');
            } else {
                self.text.push_str(line);
                self.text.push('\n');
            }
        }
        Ok(())
    }

    fn line(&mut self, number: usize, file: &str) {
        writeln!(self.text, "#line {number} \"{file}\"").expect("writing to a string");
    }
}

/// What a fat binary was built by and for.
#[derive(Default)]
struct Built {
    version: String,
    targets: String,
}

/// Compiles with nvcc. `None`, with a warning, where there is none that works;
/// an error where a kernel is at fault, or the nvcc that was asked for by name.
fn compile(source: &Path, fatbin: &Path) -> Result<Option<Built>, String> {
    let without = "kernels are compiled with NVRTC at run time, if it is there";
    let named = env::var("NVCC").ok();
    let nvcc = match named.as_deref().map(str::trim) {
        Some("" | "none") => {
            println!("cargo::warning=NVCC is none: {without}");
            return Ok(None);
        }
        Some(path) => PathBuf::from(path),
        None => match find_nvcc() {
            Some(path) => path,
            None => {
                println!("cargo::warning=no nvcc found (set NVCC to its path): {without}");
                return Ok(None);
            }
        },
    };
    match run_nvcc(&nvcc, source, fatbin) {
        Ok(built) => Ok(Some(built)),
        Err(message) if named.is_some() || cites_a_kernel(&message) => Err(message),
        Err(message) => {
            let line = message.lines().next().unwrap_or_default();
            println!("cargo::warning=nvcc does not work ({line}): {without}");
            Ok(None)
        }
    }
}

/// Thanks to the `#line` directives, messages on a kernel begin with its file.
fn cites_a_kernel(message: &str) -> bool {
    message.lines().any(|line| line.starts_with("kernels/"))
}

fn run_nvcc(nvcc: &Path, source: &Path, fatbin: &Path) -> Result<Built, String> {
    let version = output(nvcc, &["--version"])?;
    let version = version
        .split(", V")
        .nth(1)
        .and_then(|text| text.split_whitespace().next());
    let version = version.ok_or_else(|| format!("{} tells no version", nvcc.display()))?;
    let known = output(nvcc, &["--list-gpu-code"])?;
    let known: BTreeSet<&str> = known.split_whitespace().collect();
    let machines = MACHINES.iter().filter(|machine| known.contains(**machine));
    let mut targets: Vec<&str> = machines.copied().collect();
    targets.push(PTX);

    let jobs = env::var("NUM_JOBS").unwrap_or_else(|_| "1".to_owned());
    let mut args = OPTIONS.map(str::to_owned).to_vec();
    args.extend(["--fatbin".to_owned(), format!("--threads={jobs}")]);
    for target in &targets {
        let arch = target.replace("sm_", "compute_");
        args.push(format!("--generate-code=arch={arch},code={target}"));
    }
    args.extend(["-o".to_owned(), fatbin.display().to_string()]);
    args.push(source.display().to_string());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    output(nvcc, &args)?;
    Ok(Built {
        version: version.to_owned(),
        targets: targets.join(" "),
    })
}

/// Standard output of a command that succeeds; both outputs as the error of one
/// that does not.
fn output(program: &Path, args: &[&str]) -> Result<String, String> {
    let run = Command::new(program).args(args).output();
    let run = run.map_err(|error| format!("{}: {error}", program.display()))?;
    let stdout = String::from_utf8_lossy(&run.stdout);
    if run.status.success() {
        return Ok(stdout.into_owned());
    }
    let stderr = String::from_utf8_lossy(&run.stderr);
    let text = format!("{stdout}{stderr}");
    match text.trim() {
        "" => Err(format!("{}: {}", program.display(), run.status)),
        text => Err(text.to_owned()),
    }
}

/// nvcc of the toolkit that the environment names, on the path, or of NVIDIA's
/// Python packages.
fn find_nvcc() -> Option<PathBuf> {
    let toolkits = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(env::var_os);
    let toolkits = toolkits.map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = toolkits.chain(env::split_paths(&path));
    let mut candidates = folders.map(|folder| folder.join("nvcc"));
    candidates
        .find(|candidate| candidate.is_file())
        .or_else(|| site_packages().iter().find_map(|folder| pip_nvcc(folder)))
}

fn site_packages() -> Vec<PathBuf> {
    let environment = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let libraries = environment.and_then(|home| fs::read_dir(home.join("lib")).ok());
    let mut folders: Vec<PathBuf> = libraries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("site-packages"))
        .collect();
    let script = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
    let python = output(Path::new("python3"), &["-c", script]);
    folders.extend(python.ok().map(|line| PathBuf::from(line.trim())));
    folders
}

/// Since CUDA 13 the packages share a folder `nvidia/cu13`; before, each had its own.
fn pip_nvcc(site_packages: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(site_packages.join("nvidia")).ok()?;
    let mut nvccs: Vec<PathBuf> = folders
        .flatten()
        .map(|entry| entry.path().join("bin/nvcc"))
        .filter(|nvcc| nvcc.is_file())
        .collect();
    nvccs.sort();
    nvccs.pop()
}
