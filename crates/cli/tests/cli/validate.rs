//! `tapeloop validate`. Most tests use a script in place of Python; the last one uses the installed
//! Python.
#![cfg(unix)]

use super::*;
use std::os::unix::fs::PermissionsExt;

fn validate(args: &[&str]) -> (Output, i32) {
    let args = ["validate", "--backend", "cpu"].iter().chain(args);
    let output = tapeloop(args).output().unwrap();
    let code = output.status.code().expect("not killed by a signal");
    (output, code)
}

/// A program in place of Python: it reports `missing` packages, prints its arguments, and ends a
/// comparison with `code`.
fn python(folder: &Path, missing: &str, code: i32) -> PathBuf {
    let path = folder.join("python");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = -c ]; then echo \"missing: {missing}\"; exit; fi\n\
         echo \"given: $@\"\nls $(dirname $1)\nhead -2 $2/residues.tsv\nexit {code}\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_python_that_cannot_compare_is_an_error_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("keep");
    let fails = |python: &str, parts: &[&str]| {
        let (output, code) = validate(&[SAMPLES, "--python", python, "--keep", str_of(&keep)]);
        let said = text(&output.stderr);
        assert_eq!(code, 1, "{said}");
        for part in parts {
            assert!(said.contains(part), "{said:?} lacks {part:?}");
        }
        assert!(!keep.exists());
    };
    fails("no-such-python", &["`no-such-python`", "--python"]);
    fails("true", &["`true`", "--python"]);
    let lacking = python(folder.path(), "scipy pyarrow", 0);
    fails(
        str_of(&lacking),
        &["lacks scipy, pyarrow", "-m pip install scipy pyarrow"],
    );
}

#[test]
fn python_gets_the_run_the_atoms_and_the_scripts_and_decides_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("keep");
    let input = as_named(format!("{SAMPLES}/1ubi.pdb"));
    let agrees = python(folder.path(), "", 0);
    let args = [&input, "--keep", str_of(&keep), "--python", str_of(&agrees)];
    let (output, code) = validate(&[&args[..], &["--", "--only", "wcn"]].concat());
    let said = text(&output.stdout);
    assert_eq!(code, 0, "{}", text(&output.stderr));
    let [dump, run] = ["dump", "run"].map(|name| keep.join(name).display().to_string());
    for part in [
        format!("make_tables.py {dump} --check {run} --only wcn\n"),
        "agreement.py\n".to_owned(),
        "1 structures, 76 residues on cpu".to_owned(),
        format!("{input}\t1\t0\t0\tA\t1\t1\t\tMET\tMET\tM\t1\t27343\t24294\t2683\t"),
    ] {
        assert!(said.contains(&part), "{said} lacks {part}");
    }
    assert_eq!(
        results::read(&keep.join("run/residues/part-00000.parquet")).num_rows(),
        76
    );
    let atoms = fs::read_to_string(keep.join("dump/atoms.tsv")).unwrap();
    assert_eq!(atoms.lines().count(), 602 + 1);

    let (output, code) = validate(&[&args[..], &["--features", "wcn"]].concat());
    assert_eq!(code, 2, "kept results are not replaced");
    assert!(text(&output.stderr).contains("--overwrite"));
    let disagrees = python(folder.path(), "", 1);
    let (_, code) = validate(&[&input, "--python", str_of(&disagrees)]);
    assert_eq!(code, 1);
}

#[test]
fn temporary_folders_are_removed_and_rejected_inputs_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let python = python(folder.path(), "", 0);
    let broken = &as_named(Path::new(ROOT).join("tests/data/broken/text.pdb"));
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let input = format!("{SAMPLES}/1yjp.cif");
    let output = tapeloop(["validate", "--backend", "cpu", "--python", str_of(&python)])
        .args([&input, broken])
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    let (said, rejected) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        rejected.contains("rejected: 1") && rejected.contains(broken),
        "{rejected}"
    );
    assert!(said.contains(str_of(&temporary)), "{said}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

fn installed_python() -> String {
    std::env::var("TAPELOOP_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// How many values of a column were compared, which must agree exactly.
fn compared<'a>(said: &'a str, column: &str) -> &'a str {
    let mut lines = said.lines();
    let line = lines.find(|line| line.starts_with(&format!("{column} ")));
    let line = line.unwrap_or_else(|| panic!("{said} lacks {column}"));
    let mut words = line.split_whitespace().skip_while(|word| *word != "exact");
    words.nth(1).unwrap()
}

#[test]
#[ignore = "needs Python with numpy, pyarrow and scipy"]
fn the_installed_packages_agree_with_a_sample() {
    let python = installed_python();
    let input = format!("{SAMPLES}/1ubi.pdb");
    // The references hear of the selection from the run.
    let select = ["--set", "cluster.select=[\"K\", \"ARG\"]"];
    let only = ["--", "--only", "cn_*", "wcn", "rg", "cluster"];
    let args = [&[&input, "--python", &python][..], &select, &only].concat();
    let (output, code) = validate(&args);
    let (said, why) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(code, 0, "{said}{why}");
    assert!(said.contains("cn_ca_8") && said.contains("PASS"), "{said}");
    // 7 lysines and 4 arginines.
    assert_eq!(compared(&said, "cluster"), "11", "{said}");
}

#[test]
#[ignore = "needs Python with gemmi, numpy, pyarrow and scipy"]
fn gemmi_finds_the_same_residues_without_atoms() {
    let (python, input) = (installed_python(), format!("{SAMPLES}/4cup.cif.gz"));
    let args = [&input, "--python", &python, "--features", "rg"];
    let set = ["--set", "seqres=true", "--set", "unobserved=true"];
    let only = ["--", "--only", "seqres", "before"];
    let (output, code) = validate(&[&args[..], &set, &only].concat());
    let (said, why) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(code, 0, "{said}{why}");
    assert_eq!(compared(&said, "seqres"), "1", "{said}");
    for column in ["comp_id", "aa", "auth_seq_id", "label_seq_id", "before"] {
        assert_eq!(compared(&said, column), "2", "{said}");
    }
}

#[test]
#[ignore = "needs Python with numpy, pyarrow and scipy"]
fn depths_with_radii_of_a_file_are_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (python, file) = (installed_python(), folder.path().join("mine.config"));
    fs::write(&file, "types:\nC 2.1 apolar\natoms:\nANY CA C\n").unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    let radii = format!("sasa.radii={}", str_of(&file));
    let args = [&input, "--python", &python, "--features", "residue_depth"];
    let only = ["--set", &radii, "--", "--only", "residue_depth"];
    let (output, code) = validate(&[&args[..], &only].concat());
    let (said, why) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(code, 0, "{said}{why}");
    let columns = ["residue_depth ", "ca_depth "];
    let is_row = |line: &&str| columns.iter().any(|column| line.starts_with(column));
    let rows = said.lines().filter(is_row);
    let rows: Vec<&str> = rows.collect();
    let is_left_out = |row: &&str| row.ends_with("nothing to compare");
    assert!(rows.len() >= 4 && rows.iter().all(is_left_out), "{said}");
}

/// The Python `python` as it is without a package.
fn without(folder: &Path, python: &str, package: &str) -> PathBuf {
    let path = folder.join("python");
    let run = format!(
        "import importlib.metadata as m, os, runpy, sys\n\
         of = m.version\n\
         def version(name):\n    \
             if name == \"{package}\":\n        raise m.PackageNotFoundError(name)\n    \
             return of(name)\n\
         m.version, sys.modules[\"{package}\"] = version, None\n\
         del sys.argv[0]\n\
         sys.path.insert(0, os.path.dirname(sys.argv[0]))\n\
         runpy.run_path(sys.argv[0], run_name=\"__main__\")\n"
    );
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = -c ]; then exec {python} \"$@\"; fi\n\
         exec {python} -c '{run}' \"$@\"\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
#[ignore = "needs Python with gemmi, numpy, pyarrow and scipy"]
fn what_a_missing_package_computes_is_skipped_and_the_package_named() {
    let folder = tempfile::tempdir().unwrap();
    let python = without(folder.path(), &installed_python(), "biotite");
    let input = format!("{SAMPLES}/4cup.cif.gz");
    let args = [&*input, "--python", str_of(&python)];
    let set = ["seqres=true", "unobserved=true", "ligands=keep"];
    let set = set.map(|setting| ["--set", setting]).concat();
    let only = ["--", "--only", "seqres", "before", "kind", "rg"];
    let (output, code) = validate(&[&args[..], &set, &only].concat());
    let (said, why) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(code, 0, "{said}{why}");
    assert!(!why.contains("Traceback"), "{why}");
    for part in [
        "skipped: no biotite: seqres",
        "skipped: no biotite: comp_id ",
        "skipped: no biotite: kind molecule",
        "-m pip install biotite\n",
    ] {
        assert!(said.contains(part), "{said} lacks {part}");
    }
}
