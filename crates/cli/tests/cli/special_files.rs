//! Files without an end, FIFOs and links in place of files, and texts without a limit.

use super::*;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

/// Runs `command`, which has to end by itself, and returns what it prints.
fn ends(mut command: Command) -> (String, i32) {
    let start = Instant::now();
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{command:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    (said, output.status.code().expect("not killed"))
}

fn sample() -> String {
    format!("{SAMPLES}/1ubi.pdb")
}

fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn files_without_an_end_and_fifos_end_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (fifo, table, sample) = (at("fifo"), at("table.csv"), sample());
    make_fifo(Path::new(&fifo));
    make_fifo(Path::new(&table));
    fs::create_dir(at("out")).unwrap();
    make_fifo(Path::new(&at("out/run.json")));
    let run = ["run", &sample, "--backend", "cpu", "--dry-run"];
    let with = |more: &[&str]| tapeloop(run.iter().chain(more));
    let annotations = format!("annotations=\"{table}\"");
    let radii = format!("sasa.radii=\"{fifo}\"");
    let listed = format!("@{fifo}");
    let cases = [
        (with(&["--config", "/dev/zero"]), "over 16777216 bytes"),
        (
            with(&["--config", &fifo]),
            "no program has written to the FIFO",
        ),
        (
            with(&["--topology", &fifo]),
            "no program has written to the FIFO",
        ),
        (
            with(&["--set", &annotations]),
            "no program has written to the FIFO",
        ),
        (with(&["--set", &radii]), "a FIFO"),
        (
            tapeloop(["run", &listed, "--backend", "cpu", "-o", &at("listed")]),
            "no program has written to the FIFO",
        ),
        (tapeloop(["methods", &at("out")]), "a FIFO"),
        (
            tapeloop(["bench", "--compare", &fifo, "/dev/zero"]),
            "a FIFO",
        ),
        (tapeloop(["inspect", &fifo]), "a FIFO"),
    ];
    // Several wait for ten seconds.
    std::thread::scope(|scope| {
        for (command, expected) in cases {
            scope.spawn(move || {
                let shown = format!("{command:?}");
                let (said, code) = ends(command);
                assert!(code != 0 && said.contains(expected), "{shown}: {said}");
            });
        }
    });
}

#[test]
fn fifos_in_a_list_are_rejected_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["a.pdb", "b.tar.gz", "c.zip", "d.arrow"] {
        make_fifo(Path::new(&at(name)));
    }
    symlink(at("a.pdb"), at("link.cif")).unwrap();
    let lines = [
        "a.pdb", "a.pdb,A", "b.tar.gz", "c.zip", "d.arrow", "link.cif",
    ];
    fs::write(at("list"), lines.join("\n") + "\n" + &sample()).unwrap();
    let (list, out) = (format!("@{}", at("list")), at("out"));
    let (said, code) = ends(tapeloop(["run", &list, "--backend", "cpu", "-o", &out]));
    assert_eq!(code, 3, "{said}");
    let rejected = rejected(Path::new(&out));
    assert_eq!(rejected.len(), lines.len(), "{rejected:?}");
    for (line, name) in rejected
        .iter()
        .zip(lines)
        .filter(|(_, name)| *name != "a.pdb,A")
    {
        let reason = line["reason"].as_str().unwrap();
        assert!(reason.contains("a FIFO cannot be read"), "{name}: {reason}");
    }
}

#[test]
fn the_shell_passes_configs_annotations_and_lists_as_streams() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_tapeloop");
    let sample = sample();
    let script = format!(
        "{program} run --config <(sleep 0.2; echo 'slots = 2') {sample} --dry-run --backend cpu && \
         {program} run @<(echo {sample}) --dry-run --backend cpu && \
         mkfifo t.csv && {{ (exec > /dev/null 2>&1; \
         printf 'structure,chain,residue,score\\n1ubi,A,1,2.5\\n' > t.csv) & }} && \
         {program} run {sample} --set annotations=t.csv -o out --backend cpu --json"
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(folder.path());
    let (said, code) = ends(shell);
    assert!(code == 0 && said.contains("slots = 2"), "{said}");
}

#[test]
fn no_file_is_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("precious"), "precious").unwrap();
    for name in ["tapeloop.1", "own.cu", "painted.pdb"] {
        symlink(at("precious"), at(name)).unwrap();
    }
    let sample = sample();
    for args in [
        &["man", &at("")][..],
        &["kernel", "new", &at("own")],
        &[
            "paint",
            &sample,
            "wcn",
            "-o",
            &at("painted.pdb"),
            "--backend",
            "cpu",
        ],
    ] {
        let (said, code) = ends(tapeloop(args));
        assert!(code != 0, "{args:?}: {said}");
        assert_eq!(fs::read(at("precious")).unwrap(), b"precious", "{args:?}");
    }
    fs::remove_file(at("tapeloop.1")).unwrap();
    let (said, code) = ends(tapeloop(["man", &at("")]));
    assert_eq!(code, 0, "{said}");
    let pages = ["tapeloop.1", "tapeloop-run.1", "tapeloop-kernel-new.1"];
    assert!(pages.iter().all(|page| Path::new(&at(page)).is_file()));
}

#[test]
fn long_names_and_many_mistakes_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("job.toml");
    let long = "x".repeat(100_000);
    let many: String = (0..20_000)
        .map(|number| format!("kez{number} = 1\n"))
        .collect();
    let names: Vec<String> = (0..20_000)
        .map(|number| format!("\"wcm{number}\""))
        .collect();
    let texts = [
        format!("{long} = 1"),
        format!("[{long}]\ny = 1"),
        format!("batch.{long} = 1"),
        format!("mode = \"{long}\""),
        format!("features = \"{long}\""),
        format!("features = [{}]", names.join(",")),
        format!("tables.written = [{}]", names.join(",")),
        format!("reduce = [\"{long}.mean\"]"),
        format!("where = \"{long} > 1\""),
        format!("devices = [\"{long}\"]"),
        many,
    ];
    for text in texts {
        fs::write(&config, &text).unwrap();
        let start = Instant::now();
        let run = [
            "run",
            str_of(&config),
            "-i",
            SAMPLES,
            "-o",
            "out",
            "--dry-run",
        ];
        let (said, code) = ends(tapeloop(run));
        let shown = &text[..40];
        assert_eq!(code, 2, "{shown}: {said}");
        assert!(said.len() < 20_000, "{shown}: {} bytes", said.len());
        assert!(start.elapsed() < Duration::from_secs(10), "{shown}");
    }
}

#[test]
fn a_limit_of_file_sizes_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_tapeloop");
    let script = format!(
        "ulimit -f 1; {program} run {} --backend cpu -o out",
        sample()
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(folder.path());
    let (said, code) = ends(shell);
    assert!(code == 1 && said.contains("out/"), "{said}");
}

#[test]
fn threads_have_a_limit_wherever_their_number_comes_from() {
    for name in ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"] {
        let mut command = tapeloop(["doctor", "--backend", "cpu"]);
        command.env(name, "4097");
        let (said, code) = ends(command);
        assert!(
            code != 0 && said.contains(name) && said.contains("4096"),
            "{said}"
        );
        let mut command = tapeloop(["doctor", "--backend", "cpu", "--threads", "2"]);
        command.env(name, "4097");
        assert_eq!(ends(command).1, 0);
    }
}
