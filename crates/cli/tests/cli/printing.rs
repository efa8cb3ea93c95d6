//! Standard output that is full, and that its reader has closed.
#![cfg(unix)]

use super::*;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/1ubi.pdb");

/// The arguments of each command that prints; outputs go into `folder`.
fn printing(folder: &Path) -> Vec<Vec<String>> {
    let out = |name: &str| str_of(&folder.join(name)).to_owned();
    let cpu = ["--backend", "cpu"];
    let run = ["run", "-i", SAMPLE, "--overwrite", "-o"].map(str::to_owned);
    let run = || run.iter().cloned().chain([out("run")]);
    let cpu = || cpu.map(str::to_owned);
    let fixed = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    vec![
        fixed(&["--help"]),
        fixed(&["--version"]),
        fixed(&["run", "--help"]),
        fixed(&["features"]),
        fixed(&["features", "--markdown"]),
        fixed(&["devices"]),
        fixed(&["devices", "--json"]),
        fixed(&["doctor"]),
        fixed(&["graph", "--backend", "cpu"]),
        fixed(&["bench", "--dry-run"]),
        fixed(&["features", "--json"]),
        fixed(&["doctor", "--json"]),
        fixed(&["completions", "bash"]),
        fixed(&[SAMPLE]),
        fixed(&["run", SAMPLE, "-o", "-", "--format", "csv"]),
        run().chain(cpu()).chain(["--json".to_owned()]).collect(),
        run().chain(cpu()).chain(["--dry-run".to_owned()]).collect(),
        fixed(&["validate", SAMPLE, "--python"])
            .into_iter()
            .chain([str_of(&python(folder)).to_owned()])
            .chain(cpu())
            .collect(),
    ]
}

/// A program in place of Python that has all packages and finds that everything agrees.
fn python(folder: &Path) -> PathBuf {
    let path = folder.join("python");
    let script = "#!/bin/sh\nif [ \"$1\" = -c ]; then echo \"missing:\"; fi\n";
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn what_cannot_be_printed_is_an_error_and_a_closed_pipe_is_none() {
    let folder = tempfile::tempdir().unwrap();
    for args in printing(folder.path()) {
        let expected = tapeloop(&args).output().unwrap();
        assert!(!expected.stdout.is_empty(), "{args:?} prints");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = tapeloop(&args).stdout(full).output().unwrap();
        let said = text(&output.stderr);
        assert!(!output.status.success(), "{args:?}");
        let error = "error: standard output: ";
        assert!(said.contains(error), "{args:?}: {said}");

        let mut closed = tapeloop(&args);
        let closed = closed.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = closed.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(
            output.status.code(),
            expected.status.code(),
            "{args:?}: {said}"
        );
        assert!(!said.contains(error), "{args:?}: {said}");
    }
    // The run is complete all the same.
    assert_eq!(record(&folder.path().join("run"))["state"], "finished");
}

#[test]
fn the_log_has_the_levels_that_a_variable_names_and_a_wrong_one_is_reported() {
    let broken = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/broken/text.pdb"
    );
    let logged = |filter: &str| {
        let mut command = tapeloop([broken, "--features", "rg"]);
        command.env("TAPELOOP_LOG", filter);
        text(&command.output().unwrap().stderr)
    };
    for filter in ["debug", "tapeloop=debug,warn"] {
        let said = logged(filter);
        assert!(said.contains("DEBUG rejected"), "{said}");
    }
    for filter in ["warn", "tapeloop=info", "off"] {
        let said = logged(filter);
        assert!(!said.contains("DEBUG"), "{said}");
    }
    let said = logged("tapeloop=loud");
    let expected = "warning: .. TAPELOOP_LOG=\"tapeloop=loud\" .. fix: ";
    assert!(has_parts(&said, expected), "{said}");
}
