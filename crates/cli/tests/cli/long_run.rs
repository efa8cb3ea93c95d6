//! `scripts/long_run.py` over few structures: what it checks, and that it sees what it checks for.

use super::*;
use serde_json::{Value as Json, json};

/// Calls the script. Returns what it prints, and its exit code.
fn long_run(folder: &Path, count: &str, more: &[&str]) -> (String, i32) {
    let script = Path::new(ROOT).join("scripts/long_run.py");
    let mut command = Command::new("python3");
    command
        .arg(script)
        .args([env!("CARGO_BIN_EXE_tapeloop"), str_of(folder)]);
    command.args(["--count", count, "--kills", "3"]).args(more);
    command.args(["--", "--backend", "cpu", "--features", "contact_number"]);
    let output = command.output().unwrap();
    let code = output.status.code().expect("not killed by a signal");
    (text(&output.stdout) + &text(&output.stderr), code)
}

/// Writes the journal of a run anew, with other values in its last tenth.
fn change_journal(folder: &Path, change: impl Fn(&mut Json)) {
    let path = folder.join("journal.jsonl");
    let lines = fs::read_to_string(&path).unwrap();
    let lines = lines.lines().map(|line| {
        let mut line: Json = serde_json::from_str(line).unwrap();
        if line["inputs"].as_u64() >= Some(1800) {
            change(&mut line);
        }
        format!("{line}\n")
    });
    fs::write(&path, lines.collect::<String>()).unwrap();
}

#[test]
#[ignore = "needs Python"]
fn a_run_that_is_killed_again_and_again_over_all_kinds_of_inputs_has_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("long");
    let (said, code) = long_run(&out, "2000", &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("killed 3 times"), "{said}");
    assert!(said.contains("the same bytes"), "{said}");
    let written = &record(&out.join("whole"))["written"];
    assert_eq!(written["inputs"], 2000);
    assert_eq!(written["rejected"], 2);
    assert_eq!(written["structures"], 1998);

    // The same call only reports. What grows at the end of a run is found in its journal.
    let journal = fs::read(out.join("journal.jsonl")).unwrap();
    for (key, word) in [
        ("anonymous_bytes", "memory grows"),
        ("handles", "file handles grow"),
        ("threads", "threads grow"),
    ] {
        change_journal(&out, |line| {
            line[key] = json!(4 * line[key].as_u64().unwrap())
        });
        let (said, code) = long_run(&out, "2000", &[]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(&format!("wrong: {word}")), "{said}");
        fs::write(out.join("journal.jsonl"), &journal).unwrap();
    }
    let (said, code) = long_run(&out, "2000", &["--seed", "2"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("settings.json: other settings"), "{said}");

    let part = out.join("killed/residues/part-00042.parquet");
    let mut bytes = fs::read(&part).unwrap();
    bytes[100] ^= 1;
    fs::write(&part, bytes).unwrap();
    let (said, code) = long_run(&out, "2000", &[]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("residues/part-00042.parquet: its bytes differ"),
        "{said}"
    );
}

#[test]
#[ignore = "needs Python"]
fn a_long_run_goes_on_where_its_time_was_up() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("long");
    let mut calls = 0;
    loop {
        calls += 1;
        // Each call has a second more, so that the last one ends on the slowest machine.
        let minutes = (f64::from(calls) / 60.0).to_string();
        let (said, code) = long_run(&out, "400", &["--minutes", &minutes]);
        if code == 0 {
            assert!(said.contains("the same bytes"), "{said}");
            break;
        }
        assert_eq!(code, 75, "{said}");
    }
    assert!(calls > 1, "{calls} calls");
}
