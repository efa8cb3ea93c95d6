//! Mistakes and failures, and the messages about them.

use super::*;

fn fails_with(args: &[&str], expected_code: i32, parts: &[&str]) {
    let (output, code) = run(args);
    let said = text(&output.stderr);
    assert_eq!(code, expected_code, "{said}");
    for part in parts {
        assert!(has_parts(&said, part), "{said:?} lacks {part:?}");
    }
}

#[test]
fn a_mistake_in_the_config_is_named_with_its_line_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("job.toml");
    let out = folder.path().join("out");
    let mistakes = [
        (
            "slots = 3\n\nslot = 4",
            ":3: .. `slot` .. did you mean `slots`?",
        ),
        ("slots = 3\nslots = 4", ":2: duplicate key"),
        (
            "\nslots = \"3\"",
            ":2: `slots`: must be an integer, not a string",
        ),
        (
            "[batch]\nresidues = 0",
            ":2: `batch.residues`: must be 1 to",
        ),
        ("mode = \"garph\"", ":1: .. `mode` .. \"garph\""),
        ("mode = ", ":1: "),
    ];
    for (mistake, expected) in mistakes {
        fs::write(&config, mistake).unwrap();
        let expected = format!("error: {}{expected}", config.display());
        let args = [str_of(&config), "-i", SAMPLES, "-o", str_of(&out)];
        fails_with(&args, 2, &[&expected]);
        assert!(!out.exists());
    }
}

#[test]
fn a_missing_key_is_named_with_its_option() {
    let out = tempfile::tempdir().unwrap();
    let out = str_of(out.path());
    fails_with(&["-o", out], 2, &["input", "tapeloop run structures/"]);
    fails_with(&["no-such-file.toml"], 2, &["no-such-file.toml"]);
    let no_cutoff = [
        "--set",
        "contact_number.ca=[]",
        "--set",
        "contact_number.cb=[]",
    ];
    let args = [&["-i", SAMPLES, "-o", out][..], &no_cutoff].concat();
    fails_with(&args, 2, &["contact_number"]);
    fails_with(&["--sloots", "4"], 2, &["--slots"]);
}

#[test]
fn a_run_beyond_memory_bytes_max_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let budget = ["--set", "memory_bytes_max=1000"];
    let args = [&["-i", SAMPLES, "-o", str_of(&out)][..], &budget].concat();
    fails_with(&args, 1, &["1000 bytes", "memory_bytes_max"]);
    assert!(!out.exists());
}

#[test]
fn bad_inputs_are_listed_with_reasons_and_change_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let args = ["-i", SAMPLES, "-o", str_of(&out)];
        let (output, code) = run(&[&args[..], more].concat());
        (out, text(&output.stderr), code)
    };
    let (good, _, code) = write("good", &[]);
    assert_eq!(code, 0);
    let broken = as_named(Path::new(ROOT).join("tests/data/broken"));
    let truncated = format!("{broken}/truncated.cif.gz");
    let junk = format!("{broken}/no-atom-site.cif");
    // A file that a list names; a missing file that the user names ends the program.
    let missing = format!("{broken}/no such file.pdb");
    let list = folder.path().join("list");
    fs::write(&list, format!("{missing}\n")).unwrap();
    let list = format!("@{}", list.display());
    let more = ["-i", &truncated, &junk, &list];
    let (bad, summary, code) = write("bad", &more);
    assert_eq!(code, 3);
    assert!(
        parts(&good) == parts(&bad),
        "the good ones are the same bytes"
    );
    let lines = rejected(&bad);
    let sources: Vec<&str> = lines
        .iter()
        .map(|l| l["source"].as_str().unwrap())
        .collect();
    assert_eq!(sources, [&truncated, &junk, &missing]);
    assert_eq!(lines[0]["kind"], "input");
    assert_eq!(lines[0]["ordinal"], 24);
    assert!(lines[0]["reason"].as_str().unwrap().contains("cut short"));
    assert_eq!(lines[2]["kind"], "io");
    assert!(summary.contains("rejected: 3"), "{summary}");
    assert!(summary.contains("no such file.pdb"), "{summary}");
}

#[test]
fn a_structure_beyond_the_limit_is_rejected_with_its_model() {
    let out = tempfile::tempdir().unwrap();
    let small = ["--set", "limits.structure_residues_max=100"];
    let inputs = [
        format!("{SAMPLES}/1ubi.pdb"),
        format!("{SAMPLES}/1gbt.cif.gz"),
    ];
    let args = ["-i", &inputs[0], "-i", &inputs[1], "-o", str_of(out.path())];
    let (_, code) = run(&[&args[..], &small].concat());
    assert_eq!(code, 3);
    let lines = rejected(out.path());
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["kind"], "capacity");
    assert_eq!(lines[0]["model"], 1);
    let reason = lines[0]["reason"].as_str().unwrap();
    assert!(reason.ends_with("residues, over 100: limits.structure_residues_max is 100"));
    let counts = &record(out.path())["counts"];
    assert_eq!(
        (&counts["structures"], &counts["alone"]),
        (&1.into(), &0.into())
    );
    // No batch may have more residues than one structure may.
    let set = "batch.residues_max=200";
    fails_with(
        &[&args[..], &small, &["--set", set]].concat(),
        2,
        &["200 .. limits.structure_residues_max = 100"],
    );
}

#[test]
fn a_run_without_any_structure_fails_and_does_not_block_the_corrected_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("junk.pdb"), "junk").unwrap();
    let out = at("out");
    let args = |input: &str| [input, "-o", str_of(&out), "-q"].map(str::to_owned);
    let run_of = |input: &str| run(&args(input).each_ref().map(String::as_str));
    let (output, code) = run_of(str_of(&at("junk.pdb")));
    assert_eq!(code, 1);
    let said = text(&output.stderr);
    assert!(
        said.contains("rejected: 1") && said.contains("nothing"),
        "{said}"
    );
    assert_eq!(parts(&out).len(), TABLES.len(), "tables without rows");
    assert_eq!(rejected(&out).len(), 1);
    assert_eq!(run_of(&format!("{SAMPLES}/1ubi.pdb")).1, 0);
    assert_eq!(record(&out)["counts"]["structures"], 1);
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let out = file.join("out");
    fails_with(&["-i", SAMPLES, "-o", str_of(&out)], 1, &[str_of(&out)]);
}

/// A limit on the size of files acts as a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_fails_the_run_and_leaves_no_incomplete_part() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let line = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", line, env!("CARGO_BIN_EXE_tapeloop"), "run"])
        .args(["--backend", "cpu", "-i", SAMPLES, "-o", str_of(&out)])
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(".part-00000.parquet.tmp"), "{said}");
    assert!(said.contains("too large"), "{said}");
    assert!(parts(&out).is_empty(), "no part, whole or half");
    let error = record(&out)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("part-00000"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_that_is_no_worker_is_an_error_before_anything_is_written() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("out");
    let common = [
        "-i",
        SAMPLES,
        "-o",
        str_of(&folder),
        "--set",
        "supervise=true",
    ];
    for (worker, said) in [
        ("/nowhere/tapeloop", "started"),
        ("/bin/true", "exit status"),
    ] {
        let set = format!("worker={worker:?}");
        let (output, code) = run(&[&common[..], &["--set", &set]].concat());
        let text = text(&output.stderr);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains(said) && text.contains("fix:"), "{text}");
        assert!(!folder.exists());
    }
    // Started by the user, without the process that it serves.
    let output = tapeloop(["worker"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = text(&output.stderr);
    assert!(text.contains("another process"), "{text}");
}
