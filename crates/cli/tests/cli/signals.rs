//! Signals, and two runs at once. The input is a pipe that the test writes to, so no test depends
//! on timing.
#![cfg(unix)]

use super::*;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};

/// More lines than the pipe and the run in flight hold: once all are written, the run has finished
/// some and not others.
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
    let inputs = out.join("inputs");
    fs::create_dir_all(&inputs).unwrap();
    for link in links_to("1yjp.cif", &inputs, LINES) {
        writeln!(stdin, "{}", link.display()).unwrap();
    }
    (child, stdin)
}

fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

/// Waits until the child has printed that it received the signal.
fn wait_until_heard(child: &mut Child) {
    let stderr = BufReader::new(child.stderr.as_mut().unwrap());
    let heard = stderr
        .lines()
        .any(|line| line.unwrap().contains("interrupted"));
    assert!(heard);
}

#[test]
fn progress_for_programs_is_json_on_standard_error() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["run", "--backend", "cpu", "-i", "@-", "--features", "rg"];
    let mut child = tapeloop(args)
        .args(["--progress-json", "-o", str_of(folder.path())])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{SAMPLES}/1yjp.cif").unwrap();
    // The list stays open until the first line is there.
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    drop(stdin);
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let progress = line["progress"].as_object().unwrap();
    let keys: Vec<_> = progress.keys().map(String::as_str).collect();
    let all = "inputs inputs_total rejected residues seconds structures";
    assert_eq!(keys.join(" "), all);
    assert!(
        progress["inputs_total"].is_null(),
        "a pipe cannot be counted"
    );
    assert!(progress["seconds"].as_f64().unwrap() >= 0.5);
    for line in stderr.lines() {
        assert!(line.unwrap().starts_with("{\"progress\":"));
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(record(folder.path())["counts"]["structures"], 1);
}

#[test]
fn an_interrupted_run_leaves_complete_tables_of_its_finished_inputs() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, stdin) = start(folder.path());
        send(signal, &child);
        // The list stays open and idle.
        wait_until_heard(&mut child);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        drop(stdin);

        let record = record(folder.path());
        assert_eq!(record["interrupted"], true);
        assert_eq!(record["state"], "interrupted");
        let structures = record["counts"]["structures"].as_i64().unwrap();
        assert!((1..LINES as i64 + 1).contains(&structures), "{structures}");
        let part = folder.path().join("structures/part-00000.parquet");
        let reader = SerializedFileReader::new(fs::File::open(part).unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), structures);
    }
}

#[test]
fn an_interrupted_run_with_a_closed_stderr_ends_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, stdin) = start(folder.path());
    drop(child.stderr.take());
    send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(record(folder.path())["state"], "interrupted");
    drop(stdin);
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut child = tapeloop(["run", "--backend", "cpu", "-i", "@-", "-o", str_of(&out)])
        .args(["--threads", "1", "--set", "sasa.points=1024"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Long lines of a large file: once the pipe, the buffer of the list and the sources ahead
    // of the run have taken all they hold (16, 3 and 64 lines), the rest is being read, and the
    // run has seconds to go.
    let mut stdin = child.stdin.take().unwrap();
    for link in links_to("6wg6.cif.gz", folder.path(), 90) {
        let name = link.file_name().unwrap().to_str().unwrap();
        let long = folder.path().display().to_string() + &"/.".repeat(1950);
        writeln!(stdin, "{long}/{name}").unwrap();
    }
    send("-INT", &child);
    wait_until_heard(&mut child);
    send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(record(&out)["state"], "running");
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, stdin) = start(folder.path());
    let (output, code) = run(&["-i", SAMPLES, "-o", str_of(folder.path()), "--overwrite"]);
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("another run"), "{said}");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(record(folder.path())["counts"]["structures"], LINES);
}
