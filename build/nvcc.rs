//! Compiles the translation units with nvcc, several at a time.

use super::units::{Sources, TranslationUnit};
use jobserver::{Acquired, Client};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The variable that names the targets, in place of [`ALL_TARGETS`].
pub(crate) const TARGETS_VARIABLE: &str = "TAPELOOP_CUDA_TARGETS";

/// Machine code for these GPUs, Turing to Blackwell, and PTX, which the driver compiles for newer
/// ones. Targets that an nvcc does not know are left out.
const ALL_TARGETS: [&str; 8] = [
    "sm_75",
    "sm_80",
    "sm_86",
    "sm_89",
    "sm_90",
    "sm_100",
    "sm_120",
    "compute_75",
];

/// The architecture whose PTX a target is compiled from. nvcc compiles a text to PTX once for each
/// of these. Of twelve kernels that were compared, the GPUs named here got the same machine code from
/// it as from their own PTX. From `compute_90` on, kernels wait for their dependencies.
fn virtual_architecture(target: &str) -> String {
    match target {
        "sm_86" | "sm_89" => "compute_80".to_owned(),
        "sm_120" => "compute_100".to_owned(),
        other => other.replace("sm_", "compute_"),
    }
}

/// The CPU twins do the same arithmetic, so multiplications and additions must not be contracted.
const OPTIONS: [&str; 3] = ["-O3", "-std=c++17", "--fmad=false"];

/// The variables that nvcc reads.
pub(crate) const READ_BY_NVCC: [&str; 3] =
    ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN"];

/// The consequence that warnings state if there is no nvcc.
const WITHOUT_NVCC: &str = "kernels are compiled with NVRTC at run time, if it is there";

/// An nvcc, and what it compiles for.
pub(crate) struct Nvcc {
    pub(crate) path: PathBuf,
    /// Whether `NVCC` names it: then it has to work.
    pub(crate) is_named: bool,
    pub(crate) version: String,
    pub(crate) targets: Vec<String>,
}

impl Nvcc {
    /// The nvcc of the environment. `None`, with a warning, if there is none that works.
    ///
    /// # Errors
    /// `NVCC` names an nvcc that does not work, or [`TARGETS_VARIABLE`] a target that it does not
    /// know.
    pub(crate) fn find() -> Result<Option<Nvcc>, String> {
        let named = env::var("NVCC").ok();
        let path = match named.as_deref().map(str::trim) {
            Some("" | "none") => {
                println!("cargo::warning=NVCC is none: {WITHOUT_NVCC}");
                return Ok(None);
            }
            Some(path) => Some(PathBuf::from(path)),
            None => find_nvcc(),
        };
        let Some(path) = path else {
            println!("cargo::warning=no nvcc found (set NVCC to its path): {WITHOUT_NVCC}");
            return Ok(None);
        };
        match version_and_machines(&path) {
            Ok((version, machines)) => {
                let targets = targets(&version, &machines)?;
                let is_named = named.is_some();
                Ok(Some(Nvcc {
                    path,
                    is_named,
                    version,
                    targets,
                }))
            }
            Err(message) => report_unusable(message, named.is_some()).map(|()| None),
        }
    }

    /// Compiles each unit to a fat binary in `folder`, unless it has that of the same text. Returns
    /// whether nvcc works; if not, it warns.
    ///
    /// # Errors
    /// A kernel does not compile, or `NVCC` names an nvcc that does not work.
    pub(crate) fn compile(
        &self,
        sources: &Sources,
        units: &[TranslationUnit],
        folder: &Path,
        jobs: &Jobs,
    ) -> Result<bool, String> {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let args = self.args();
        let key = |unit: &TranslationUnit| {
            let file = unit.file();
            let files = unit.headers.iter().map(String::as_str).chain([&*file]);
            let environment = READ_BY_NVCC.map(|name| env::var(name).unwrap_or_default());
            let context = args.iter().chain(&environment).chain([&self.version]);
            sources.digest(files, context.map(String::as_str))
        };
        let key_file = |unit: &TranslationUnit| folder.join(format!("{}.sha256", unit.name));
        let is_new = |unit: &&TranslationUnit| {
            let kept = fs::read_to_string(key_file(unit)).unwrap_or_default();
            kept != key(unit) || !fat_binary(folder, unit).is_file()
        };
        let mut new: Vec<&TranslationUnit> = units.iter().filter(is_new).collect();
        // The longest are started first, and units are taken from the end.
        new.sort_by_key(|unit| sources.text(&unit.file()).len());
        let compiled = run_jobs(jobs, new, |unit| {
            // Without a key, the output of an interrupted compilation is not used.
            fs::remove_file(key_file(unit)).ok();
            let to = fat_binary(folder, unit).display().to_string();
            let (to, file) = (["-o", &to], format!("kernels/{}", unit.file()));
            let args = args.iter().map(String::as_str).chain(to).chain([&*file]);
            output(&self.path, &args.collect::<Vec<_>>())?;
            let path = key_file(unit);
            fs::write(&path, key(unit)).map_err(|e| format!("{}: {e}", path.display()))
        });
        match compiled {
            Ok(()) => Ok(true),
            // Compiler messages about a kernel begin with its file.
            Err(message) if message.lines().any(|line| line.starts_with("kernels/")) => {
                Err(message)
            }
            Err(message) => report_unusable(message, self.is_named).map(|()| false),
        }
    }

    /// The arguments but for the files.
    fn args(&self) -> Vec<String> {
        let mut targets: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for target in &self.targets {
            let targets_of_architecture = targets.entry(virtual_architecture(target)).or_default();
            targets_of_architecture.push(target);
        }
        let mut args = OPTIONS.map(str::to_owned).to_vec();
        for (architecture, targets) in targets {
            let codes = targets.join(",");
            args.push(format!(
                "--generate-code=arch={architecture},code=[{codes}]"
            ));
        }
        args.push("--fatbin".to_owned());
        args
    }
}

/// An error for an nvcc that `NVCC` names and that does not work, and a warning for any other.
fn report_unusable(message: String, is_named: bool) -> Result<(), String> {
    if is_named {
        return Err(message);
    }
    let line = message.lines().next().unwrap_or_default();
    println!("cargo::warning=nvcc does not work ({line}): {WITHOUT_NVCC}");
    Ok(())
}

/// The version of an nvcc, and the machines that it compiles for.
fn version_and_machines(nvcc: &Path) -> Result<(String, BTreeSet<String>), String> {
    let text = output(nvcc, &["--version"])?;
    let version = text.split(", V").nth(1);
    let version = version.and_then(|text| text.split_whitespace().next());
    let version = version.ok_or_else(|| format!("{} prints no version", nvcc.display()))?;
    let machines = output(nvcc, &["--list-gpu-code"])?;
    let machines = machines.split_whitespace().map(str::to_owned).collect();
    Ok((version.to_owned(), machines))
}

/// The targets that [`TARGETS_VARIABLE`] names, or those of [`ALL_TARGETS`] that this nvcc knows.
fn targets(version: &str, machines: &BTreeSet<String>) -> Result<Vec<String>, String> {
    let is_known = |target: &&str| machines.contains(&target.replace("compute_", "sm_"));
    let named = env::var(TARGETS_VARIABLE).unwrap_or_default();
    let named: Vec<&str> = named.split_whitespace().collect();
    if let Some(unknown) = named.iter().find(|target| !is_known(target)) {
        return Err(format!(
            "{TARGETS_VARIABLE}: nvcc {version} has no target {unknown:?}; give names such as \
             \"sm_90 compute_75\""
        ));
    }
    let targets = if named.is_empty() {
        ALL_TARGETS.into_iter().filter(is_known).collect()
    } else {
        named
    };
    Ok(targets.into_iter().map(str::to_owned).collect())
}

/// Where the fat binary of a unit is.
pub(crate) fn fat_binary(folder: &Path, unit: &TranslationUnit) -> PathBuf {
    folder.join(format!("{}.fatbin", unit.name))
}

/// How many units are compiled at a time.
pub(crate) struct Jobs {
    /// Cargo's jobserver, which hands out tokens for jobs beyond the first.
    pub(crate) client: Option<Client>,
    /// The largest number of jobs at a time.
    pub(crate) max: usize,
}

impl Jobs {
    /// The jobs that cargo allows this build script.
    ///
    /// # Safety
    /// Cargo has started this process, which has opened and closed no file yet.
    pub(crate) unsafe fn from_cargo() -> Jobs {
        let jobs = env::var("NUM_JOBS").map_or(1, |jobs| jobs.parse().unwrap_or(1));
        Jobs {
            // SAFETY: the descriptors that cargo names are its jobserver's, as the caller promises.
            client: unsafe { Client::from_env() },
            max: jobs,
        }
    }

    /// A token for one more job, if one is free now; dropping it returns it to the jobserver. The
    /// inner `None` stands for a token where there is no jobserver.
    fn acquire(&self) -> Option<Option<Acquired>> {
        match &self.client {
            Some(client) => client.try_acquire().ok().flatten().map(Some),
            None => Some(None),
        }
    }
}

/// The time between two requests for a token while none is free.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Does `work` for each of `items`, the last first, on as many threads as there are tokens. After
/// an error no further item is started, and the first error is returned.
fn run_jobs<T: Send>(
    jobs: &Jobs,
    mut items: Vec<T>,
    work: impl Fn(T) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let work = &work;
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        // The process may run one job without a token.
        let mut tokens = vec![None];
        let mut running = 0;
        let mut result = Ok(());
        loop {
            while running < jobs.max && !items.is_empty() {
                let Some(token) = tokens.pop().or_else(|| jobs.acquire()) else {
                    break;
                };
                let (item, sender) = (items.pop().expect("not empty"), sender.clone());
                scope.spawn(move || {
                    // The receiver lives until all have ended.
                    let _ = sender.send((work(item), token));
                });
                running += 1;
            }
            if running == 0 {
                return result;
            }
            let Ok((outcome, token)) = ended.recv_timeout(RETRY_INTERVAL) else {
                continue;
            };
            running -= 1;
            if result.is_ok() && outcome.is_err() {
                items.clear();
                result = outcome;
            }
            if !items.is_empty() {
                tokens.push(token);
            }
        }
    })
}

/// Runs a command and returns its standard output. If it fails, the error is the text of both
/// outputs.
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

/// Finds nvcc: in the toolkit that the environment names, on the path, or in NVIDIA's Python
/// packages.
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

/// Since CUDA 13 the packages share the folder `nvidia/cu13`; before, each had its own.
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
