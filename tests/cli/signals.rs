//! Signals, and runs beside each other. The input is a pipe that a test feeds,
//! so nothing here depends on how fast anything is.
#![cfg(unix)]

use super::*;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};

/// More lines than the pipe holds and than the run has on the way: once they
/// are written, the run is in the middle of its work.
const LINES: usize = 5000;

fn start(out: &Path) -> (Child, ChildStdin) {
    let mut child = tapeloop(["run", "--backend", "cpu", "-i", "@-", "-o", str_of(out)])
        .args(["--features", "rg"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..LINES {
        writeln!(stdin, "{SAMPLES}/1yjp.cif").unwrap();
    }
    (child, stdin)
}

fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

/// Returns once the child has said that it heard a signal.
fn wait_until_heard(child: &mut Child) {
    let stderr = BufReader::new(child.stderr.as_mut().unwrap());
    let heard = stderr
        .lines()
        .any(|line| line.unwrap().contains("interrupted"));
    assert!(heard);
}

#[test]
fn an_interrupted_run_leaves_whole_tables_of_what_it_finished() {
    for signal in ["-INT", "-TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, mut stdin) = start(folder.path());
        send(signal, &child);
        wait_until_heard(&mut child);
        // The source stops at the next input, which must come; the pipe may be
        // closed by then.
        let _ = writeln!(stdin, "{SAMPLES}/1yjp.cif");
        assert_eq!(child.wait().unwrap().code(), Some(130));

        let record = record(folder.path());
        assert_eq!(record["interrupted"], true);
        let structures = record["counts"]["structures"].as_i64().unwrap();
        assert!((1..LINES as i64 + 1).contains(&structures), "{structures}");
        let part = folder.path().join("structures/part-00000.parquet");
        let reader = SerializedFileReader::new(fs::File::open(part).unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), structures);
    }
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("never.pdb");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let out = folder.path().join("out");
    let mut child = tapeloop(["run", "--backend", "cpu", "-q", "-i", str_of(&pipe)])
        .args(["-o", str_of(&out)])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Opens once the run opens it too; then the run waits for text that never
    // comes, and cannot end in good order.
    let _writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    send("-INT", &child);
    wait_until_heard(&mut child);
    send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!out.join("run.json").exists());
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, stdin) = start(folder.path());
    let (output, code) = run(&["-i", SAMPLES, "-o", str_of(folder.path()), "--overwrite"]);
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("another run is writing here"), "{said}");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(record(folder.path())["counts"]["structures"], LINES);
}
