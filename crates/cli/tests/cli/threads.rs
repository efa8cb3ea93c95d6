//! Small stacks, and threads that the system does not start.
#![cfg(target_os = "linux")]

use super::*;

/// The program with `args`, after a line for the shell that sets a limit.
fn limited(limit: &str, args: &[&str]) -> (String, i32) {
    let line = format!("{limit} && exec \"$0\" \"$@\"");
    let mut shell = Command::new("bash");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_tapeloop")]);
    let output = shell.args(args).output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    (said, output.status.code().expect("not killed by a signal"))
}

#[test]
fn a_run_needs_no_larger_stacks_than_it_asks_for() {
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "run",
        &sample,
        "--backend",
        "cpu",
        "-o",
        str_of(folder.path()),
    ];
    for supervise in ["false", "true"] {
        let supervise = format!("supervise={supervise}");
        let mut command = tapeloop(args);
        command.args(["--set", &supervise, "--overwrite"]);
        // Rust's threads have such stacks unless they ask for more.
        let ran = command.env("RUST_MIN_STACK", "1000").output().unwrap();
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        let (said, code) = limited("ulimit -s 1024", &[&args[..], &["--overwrite"]].concat());
        assert_eq!(code, 0, "{said}");
    }
}

#[test]
fn a_small_stack_of_the_main_thread_is_refused() {
    for kilobytes in ["64", "256", "1023"] {
        let (said, code) = limited(&format!("ulimit -s {kilobytes}"), &["features"]);
        assert_eq!(code, 1, "{kilobytes}: {said}");
        assert!(
            has_parts(&said, "error: the stack .. ulimit -s .. fix: "),
            "{said}"
        );
    }
}

#[test]
fn a_thread_that_cannot_be_started_is_an_error_with_the_limits_that_forbid_it() {
    let sample = format!("{SAMPLES}/1ubi.pdb");
    // No system has an address space for such stacks.
    for args in [
        &["run", &sample, "--backend", "cpu", "--dry-run"][..],
        &["doctor", "--backend", "cpu"],
        &["paint", &sample, "wcn", "--backend", "cpu", "-o", "-"],
    ] {
        let mut command = tapeloop(args);
        let ran = command.env("RUST_MIN_STACK", "1000000000000000");
        let ran = ran.output().unwrap();
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{args:?}: {said}");
        let parts =
            "error: .. a thread cannot be started: .. fix: unset RUST_MIN_STACK .. ulimit -u";
        assert!(has_parts(&said, parts), "{args:?}: {said}");
    }
}

#[test]
fn a_thread_that_a_worker_process_cannot_start_is_an_error_of_the_run() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let worker = folder.path().join("worker");
    let program = env!("CARGO_BIN_EXE_tapeloop");
    let script = format!("#!/bin/sh\nRUST_MIN_STACK=1000000000000000 exec {program} \"$@\"\n");
    fs::write(&worker, script).unwrap();
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).unwrap();
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let worker = format!("worker={:?}", str_of(&worker));
    let set = ["--set", "supervise=true", "--set", &worker, "--dry-run"];
    let (output, code) = run(&[&[sample.as_str()], &set[..]].concat());
    let said = text(&output.stderr);
    assert_eq!(code, 1, "{said}");
    assert!(
        has_parts(&said, "error: .. a thread cannot be started: .. fix: "),
        "{said}"
    );
}

#[test]
fn memory_of_slots_that_batches_do_not_fill_is_warned_of_and_stated() {
    let args = ["-i", SAMPLES, "--dry-run", "--slots", "64"];
    let with =
        |more: &[&str]| text_of_run(&[&args[..], &["--set", "batch.residues=64"], more].concat());
    let said = with(&[]);
    let parts =
        "warning: 64 batches in flight take .. batch.residues_max .. closes at 64 (batch.residues)";
    assert!(has_parts(&said, parts), "{said}");
    assert!(
        said.contains("with room for 32,768 residues each"),
        "{said}"
    );
    let said = with(&["--set", "batch.residues_max=128"]);
    assert!(!said.contains("warning"), "{said}");
    assert!(said.contains("with room for 128 residues each"), "{said}");
}

/// What a run that must succeed prints, on both streams.
fn text_of_run(args: &[&str]) -> String {
    let output = run_well(args);
    text(&output.stderr) + &text(&output.stdout)
}
