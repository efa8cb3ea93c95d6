//! Runs whose device is in a worker process, and configs that name its program.

use super::*;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A program that writes a file next to it when it starts.
fn witness(folder: &Path) -> PathBuf {
    let program = folder.join("witness");
    fs::write(&program, "#!/bin/sh\ntouch \"$0.started\"\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder.join("witness.started")
}

#[test]
fn a_config_file_starts_no_program_unless_it_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let started = witness(folder.path());
    let config = "supervise = true\noutput = \"out\"\nworker = \"witness\"\n";
    fs::write(folder.path().join("job.toml"), config).unwrap();
    let tapeloop = |args: &[&str]| {
        let mut command = tapeloop(args);
        command.args(["job.toml", "--set", "backend=cpu", "--set"]);
        command.arg(format!("input={SAMPLES:?}"));
        let output = command.current_dir(folder.path()).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    for command in [&["run"][..], &["run", "--dry-run"], &["doctor"], &["graph"]] {
        let (code, said) = tapeloop(command);
        assert_eq!(code, Some(2), "{command:?}: {said}");
        let place = "job.toml:3: `worker`";
        assert!(said.contains(place), "{command:?}: {said}");
        assert!(!started.exists(), "{command:?} started the program");
    }
    // A bare name is a file in the folder of the config, and not one of the PATH.
    let (code, said) = tapeloop(&["run", "--trust-config"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("worker process"), "{said}");
    assert!(started.exists());
}

#[test]
fn a_deadline_on_the_cpu_needs_a_worker() {
    let deadline = ["--set", "batch.deadline_ms=600000", "--dry-run"];
    let common = ["-i", SAMPLES, "-o", "out"];
    let warned = |options: &[&str]| {
        let output = run_well(&[&common[..], &deadline, options].concat());
        text(&output.stderr).contains("batch.deadline_ms")
    };
    assert!(warned(&[]));
    assert!(!warned(&["--set", "supervise=true"]));
}

/// The child processes of a process.
fn children(process: u32) -> Vec<u32> {
    let parent_of = |stat: &str| -> Option<u32> {
        // The name of the program, in parentheses, may hold anything.
        let (_, fields) = stat.rsplit_once(") ")?;
        fields.split(' ').nth(1)?.parse().ok()
    };
    let processes = fs::read_dir("/proc").unwrap();
    let numbers = processes.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let is_child = |number: &u32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat"));
        stat.is_ok_and(|stat| parent_of(&stat) == Some(process))
    };
    numbers.filter(is_child).collect()
}

/// Sends a signal; the process may have ended meanwhile.
fn signal(name: &str, process: u32) {
    let arguments = [name, &process.to_string()];
    let mut kill = Command::new("kill");
    kill.args(arguments).stderr(Stdio::null()).status().unwrap();
}

/// The `source` of each row of the table of structures, sorted.
fn sources(folder: &Path) -> Vec<String> {
    let mut sources = Vec::new();
    for part in fs::read_dir(folder.join("structures")).unwrap() {
        let file = fs::File::open(part.unwrap().path()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let mut columns = row.get_column_iter();
            let source = columns.position(|(name, _)| name == "source").unwrap();
            sources.push(row.get_string(source).unwrap().clone());
        }
    }
    sources.sort();
    sources
}

#[test]
fn workers_that_are_killed_at_any_moment_cost_no_structure() {
    const KILLS: usize = 30;
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("inputs");
    fs::create_dir(&inputs).unwrap();
    for copy in 0..3000 {
        let link = inputs.join(format!("{copy:04}.pdb"));
        std::os::unix::fs::symlink(format!("{SAMPLES}/1ubi.pdb"), link).unwrap();
    }
    let out = folder.path().join("out");
    let mut child = tapeloop(["run", "--backend", "cpu", "-q", "-i", str_of(&inputs)])
        .args(["-o", str_of(&out), "--features", "hse_b"])
        .args(["--set", "supervise=true", "--set", "batch.residues=100"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The folder is made once the first worker has started: a run without one ends.
    while !out.exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let mut kills = 0;
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    while kills < KILLS && child.try_wait().unwrap().is_none() {
        // A moment of its work, or of its start.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let moment = Instant::now() + Duration::from_micros((seed >> 40) % 60_000);
        while Instant::now() < moment {
            std::thread::yield_now();
        }
        // A killed worker is a child until it is waited for.
        for worker in children(child.id()) {
            let name = ["-KILL", "-TERM"][kills % 2];
            signal(name, worker);
            kills += 1;
        }
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(kills, KILLS, "the run is too short");
    assert_eq!(rejected(&out).len(), 0);
    assert!(record(&out)["counts"]["restarts"].as_u64().unwrap() >= 1);
    let sources = sources(&out);
    let expected = (0..3000).map(|copy| format!("{copy:04}.pdb"));
    assert_eq!(sources.len(), 3000);
    assert!(
        sources
            .iter()
            .zip(expected)
            .all(|(source, name)| source.ends_with(&name))
    );
}
