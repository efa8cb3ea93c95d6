//! The first commands of a new user, as they are typed: each does the obvious thing, or says in one
//! line what to type instead.

mod commands;

use super::*;
use commands::COMMANDS;
use std::env;

#[test]
fn each_first_command_does_the_obvious_thing_or_says_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("structures")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    for (name, to) in [
        ("1ubi.pdb", "1ubi.pdb"),
        ("1yjp.cif", "structures/1yjp.cif"),
        ("1a8o.cif.gz", "structures/1a8o.cif.gz"),
    ] {
        fs::copy(Path::new(SAMPLES).join(name), at(to)).unwrap();
    }
    for folder in ["samples", "configs"] {
        fs::create_dir(at(folder)).unwrap();
        let from = Path::new(ROOT).join(folder);
        // The largest sample takes as long as all others.
        let files = fs::read_dir(from).unwrap().map(Result::unwrap);
        for file in files.filter(|file| file.file_name() != LARGEST) {
            fs::copy(file.path(), at(folder).join(file.file_name())).unwrap();
        }
    }
    for (name, text) in [
        ("structures/notes.txt", "a note"),
        ("junk.pdb", "junk"),
        ("1ubi.mmtf", "\u{83}junk"),
        ("set.tar.gz", "junk"),
        ("job.toml", "input = \"1ubi.pdb\"\noutput = \"from-job\"\n"),
        ("other.toml", ""),
    ] {
        fs::write(at(name), text).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_tapeloop"));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Path::to_owned).into_iter();
    let path = env::join_paths(folders.chain(env::split_paths(&path))).unwrap();
    let mut wrong = String::new();
    for (line, expected_code, expected) in COMMANDS {
        let output = Command::new("sh")
            .arg("-c")
            .arg(line)
            .current_dir(folder.path())
            .env("PATH", &path)
            // On machines with a GPU too.
            .env("CUDA_VISIBLE_DEVICES", "")
            .env_remove("TAPELOOP_LOG")
            .env_remove("RUST_LOG")
            .output()
            .unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let is_good = *expected_code == 0;
        let (printed, other) = if is_good { (&out, &err) } else { (&err, &out) };
        // Standard error is no terminal, so a command that succeeds says nothing there.
        let is_silent = other.is_empty() || line.contains("--max-rejects");
        let has_code = output.status.code() == Some(*expected_code);
        if !has_code || !has_parts(printed, expected) || !is_silent {
            wrong += &format!("$ {line}\n{out}{err}[{}]\n", output.status);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn rows_on_standard_output_have_the_bytes_of_the_file_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let samples = small_samples(folder.path());
    let samples = str_of(&samples);
    for format in ["parquet", "arrow", "csv", "json"] {
        let out = folder.path().join(format);
        let features = ["--features", "b_factor,contact_number,dssp,torsions"];
        let run = |to: &str| {
            run_well(&[&[samples, "-o", to, "--format", format], &features[..]].concat())
        };
        run(str_of(&out));
        let part = fs::read(out.join(format!("residues/part-00000.{format}"))).unwrap();
        assert!(run("-").stdout == part, "{format}");
    }
}

#[test]
fn a_reader_that_closes_standard_output_ends_the_run_in_order() {
    let line = "\"$0\" run --backend cpu -o - \"$1\" | true";
    let input = format!("{SAMPLES}/1ubi.pdb");
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", line])
        .args([env!("CARGO_BIN_EXE_tapeloop"), &input])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}
