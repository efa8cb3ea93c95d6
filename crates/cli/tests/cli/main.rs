//! The program, run as a user runs it.

#[cfg(target_os = "linux")]
mod disk_calls;
#[path = "../../../../tests/support/every_feature.rs"]
mod every_feature;
use tapeloop_test_support::archives as makers;
use tapeloop_test_support::messages::has_parts;
use tapeloop_test_support::random;

mod annotations;
mod archives;
mod atoms;
mod bench;
mod conditions;
mod contacts;
mod coordinates;
mod devices;
mod entries;
mod entry_headers;
#[cfg(target_os = "linux")]
mod fault_points;
#[cfg(unix)]
mod first_commands;
mod formats;
#[cfg(unix)]
mod guides;
mod hostile;
mod interactions;
mod interfaces;
mod kills;
mod ligands;
mod limits;
#[cfg(target_os = "linux")]
mod long_run;
mod methods;
mod mistakes;
mod molecules;
mod names;
mod output;
mod oversized;
mod own_kernels;
mod packed;
mod paint;
mod printing;
mod publication;
mod radii;
mod reals;
mod reduce;
#[cfg(target_os = "linux")]
mod release;
mod repeated_inputs;
mod residue_names;
mod results;
#[cfg(unix)]
mod resume;
mod sequences;
mod sheets;
mod signals;
#[cfg(unix)]
mod special_files;
#[cfg(unix)]
mod terminal;
#[cfg(target_os = "linux")]
mod threads;
mod trajectories;
mod upstream;
mod validate;
#[cfg(target_os = "linux")]
mod workers;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The folders of the tables.
const TABLES: [&str; 3] = ["residues", "chains", "structures"];

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples");

/// The program on the CPU backend, wherever the tests run.
fn tapeloop<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeloop"));
    command.args(args);
    command.env_remove("TAPELOOP_LOG").env_remove("RUST_LOG");
    command
}

/// `tapeloop run` with `args`, on the CPU backend, and its exit code.
fn run(args: &[&str]) -> (Output, i32) {
    let start = ["run", "--backend", "cpu"];
    let output = tapeloop(start.iter().chain(args)).output().unwrap();
    let code = output.status.code().expect("not killed by a signal");
    (output, code)
}

/// The program with `args` and standard input of these bytes, and whether it took all of them.
fn run_piped<S: AsRef<OsStr>>(
    args: impl IntoIterator<Item = S>,
    input: impl Into<Vec<u8>>,
) -> (Output, io::Result<()>) {
    let mut child = tapeloop(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.into());
    // On a thread, as the program may print more than a pipe holds before it reads on.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    (output, writer.join().unwrap())
}

/// As [`run`], for runs that must succeed.
fn run_well(args: &[&str]) -> Output {
    let (output, code) = run(args);
    assert_eq!(code, 0, "{}", text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn str_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A path as the tables and the program's messages name it.
fn as_named(path: impl AsRef<Path>) -> String {
    let path = fs::canonicalize(path).unwrap();
    path.into_os_string().into_string().unwrap()
}

/// A copy of a sample in `folder`, which is an input of its own: a path that is named again is read
/// once.
fn copy_of(sample: &str, folder: &Path) -> PathBuf {
    let copy = folder.join(sample);
    fs::create_dir_all(folder).unwrap();
    fs::copy(Path::new(SAMPLES).join(sample), &copy).unwrap();
    copy
}

/// Makes `count` links to a sample in `folder`, each of which is an input of its own.
#[cfg(unix)]
fn links_to(sample: &str, folder: &Path, count: usize) -> Vec<PathBuf> {
    let links = (0..count).map(|number| folder.join(format!("{number}-{sample}")));
    let links: Vec<PathBuf> = links.collect();
    for link in &links {
        std::os::unix::fs::symlink(Path::new(SAMPLES).join(sample), link).unwrap();
    }
    links
}

/// The sample that takes as long as all others.
const LARGEST: &str = "6wg6.cif.gz";

/// Makes the folder `small` with the samples but the largest: for tests that run many times.
fn small_samples(folder: &Path) -> PathBuf {
    let small = folder.join("small");
    fs::create_dir(&small).unwrap();
    for sample in fs::read_dir(SAMPLES).unwrap() {
        let name = sample.unwrap().file_name();
        if name != LARGEST {
            fs::copy(Path::new(SAMPLES).join(&name), small.join(&name)).unwrap();
        }
    }
    small
}

/// All parts of all tables, by path within the folder.
fn parts(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut parts = Vec::new();
    let is_written = |table: &&str| TABLES.contains(table) || folder.join(table).is_dir();
    for table in tapeloop_cli::tables::folders().filter(is_written) {
        for entry in fs::read_dir(folder.join(table)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            parts.push((name, fs::read(&path).unwrap()));
        }
    }
    parts.sort();
    parts
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn record(folder: &Path) -> serde_json::Value {
    json(&folder.join("run.json"))
}

/// The lines of `rejected.jsonl`.
fn rejected(folder: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(folder.join("rejected.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
