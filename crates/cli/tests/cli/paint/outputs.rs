//! Where outputs may be written.

use super::*;

#[test]
fn no_output_replaces_an_input_of_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("in/x")).unwrap();
    for name in ["in/1ubi.pdb", "in/x/1ubi.pdb"] {
        fs::copy(format!("{SAMPLES}/1ubi.pdb"), at(name)).unwrap();
    }
    let before = fs::read(at("in/1ubi.pdb")).unwrap();
    let input = at("in");
    let args = [str_of(&input), "wcn", "-o", str_of(&input), "--overwrite"];
    paint_badly(&args, 1, &["in/1ubi.pdb: .. input"]);
    for name in ["in/1ubi.pdb", "in/x/1ubi.pdb"] {
        assert!(fs::read(at(name)).unwrap() == before);
    }
    // Another way to the same file.
    fs::create_dir(at("out")).unwrap();
    fs::hard_link(at("in/1ubi.pdb"), at("out/1ubi.pdb")).unwrap();
    let (inner, out) = (at("in/x/1ubi.pdb"), at("out"));
    let list = at("list");
    fs::write(&list, "in/x/1ubi.pdb\nin/1ubi.pdb\n").unwrap();
    let list = format!("@{}", list.display());
    let args = [&list, "wcn", "-o", str_of(&out), "--overwrite"];
    paint_badly(&args, 1, &["out/1ubi.pdb: .. input"]);
    assert!(fs::read(inner).unwrap() == before);
}

#[test]
#[cfg(unix)]
fn a_link_is_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious.pdb"), "precious").unwrap();
    std::os::unix::fs::symlink(at("precious.pdb"), at("out.pdb")).unwrap();
    let (input, out) = (format!("{SAMPLES}/1ubi.pdb"), at("out.pdb"));
    let args = [&input, "wcn", "-o", str_of(&out), "--overwrite"];
    paint_badly(&args, 2, &["out.pdb: .. link"]);
    assert_eq!(fs::read(at("precious.pdb")).unwrap(), b"precious");
}

#[test]
fn several_files_go_into_a_folder_and_a_bad_file_stops_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.txt");
    let broken = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/broken/truncated.cif.gz"
    );
    let files = ["1yjp.cif", "1a8o.pdb", "1a8o.cif.gz", "1ubi.pdb"];
    let files = files.map(|name| format!("{SAMPLES}/{name}\n")).concat();
    let copy = copy_of("1ubi.pdb", &folder.path().join("copies"));
    let copy = copy.display();
    fs::write(&list, format!("{broken}\n{files}{copy}\n")).unwrap();
    let out = folder.path().join("painted");
    let input = format!("@{}", list.display());
    let svg = folder.path().join("drawn");
    let args = [
        &input,
        "wcn",
        "-o",
        str_of(&out),
        "--svg",
        str_of(&svg),
        "--features",
        "rg",
    ];
    let ubi = format!("{SAMPLES}/1ubi.pdb");
    let clash = format!("{copy} .. replace .. {ubi}, {}/1ubi.pdb", out.display());
    paint_badly(&args, 3, &["cut short", &clash]);
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(
        names(&out),
        ["1a8o.cif.gz", "1a8o.pdb", "1ubi.pdb", "1yjp.cif"]
    );
    // The second drawing of 1ubi has a free name, but its painted file has none.
    let drawings = ["1a8o.cif.gz.svg", "1a8o.svg", "1ubi.svg", "1yjp.svg"];
    assert_eq!(names(&svg), drawings);
    let drawn = fs::read_to_string(svg.join("1ubi.svg")).unwrap();
    assert!(
        drawn.contains(">wcn</text>") && !drawn.contains("cn_ca"),
        "{drawn}"
    );
}

#[test]
fn two_outputs_with_the_same_path_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = format!("{SAMPLES}/1ubi.pdb");
    let refuse = |output: &str, svg: &str, code: i32| {
        let (output, svg) = (at(output), at(svg));
        let args = ["-o", str_of(&output), "--svg", str_of(&svg), "--overwrite"];
        let args = [&[&input, "wcn"][..], &args].concat();
        paint_badly(
            &args,
            code,
            &["would replace the ", "fix: give each output"],
        );
        let said = text(&paint(&args).0.stderr);
        assert!(said.contains(str_of(&svg)), "{said}");
        assert!(!at("y.pdb").exists() && !at("new").exists());
        said
    };
    let said = refuse("y.pdb", "y.pdb", 2);
    let both = format!(
        "y.pdb: .. drawing of {input} .. replace .. painted file of {input}, {}",
        at("y.pdb").display()
    );
    assert!(has_parts(&said, &both), "{said}");
    refuse("y.pdb", "new/../y.pdb", 2);
    refuse("new/y.pdb", "new/./y.pdb", 2);
    // A folder that gets a file which is named too.
    fs::create_dir(at("out")).unwrap();
    refuse("out", "out/1ubi.pdb", 1);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(at("out"), at("linked")).unwrap();
        refuse("out/y.pdb", "linked/y.pdb", 2);
    }
    assert_eq!(fs::read_dir(at("out")).unwrap().count(), 0);
}

#[test]
fn a_name_of_255_bytes_is_painted_and_no_hidden_file_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let long = at(&format!("{}.pdb", "x".repeat(251)));
    let input = format!("{SAMPLES}/1ubi.pdb");
    let mine = [".out.pdb.tmp", ".tapeloop-0.tmp"];
    for name in mine {
        fs::copy(&input, at(name)).unwrap();
    }
    paint_well(&[&input, "wcn", "-o", str_of(&long)]);
    // An input may have the name too.
    let hidden = at(mine[0]);
    paint_well(&[str_of(&hidden), "wcn", "-o", str_of(&at("out.pdb"))]);
    assert_eq!(fs::read(&long).unwrap(), fs::read(at("out.pdb")).unwrap());
    let before = fs::read(&input).unwrap();
    for name in mine {
        assert!(fs::read(at(name)).unwrap() == before, "{name}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
#[cfg(unix)]
fn a_file_that_cannot_be_written_is_rejected_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("painted");
    let list = folder.path().join("list.txt");
    let files = ["1a8o.pdb", "1yjp.cif", "1grm.pdb"];
    let lines = files.map(|name| format!("{SAMPLES}/{name}\n"));
    fs::write(&list, lines.concat()).unwrap();
    // No file may have more than 80 blocks of 512 or 1024 bytes, and the first has more.
    let limited = "trap '' XFSZ; ulimit -f 80; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, env!("CARGO_BIN_EXE_tapeloop"), "paint"]);
    shell.arg(format!("@{}", list.display()));
    shell.args(["wcn", "--backend", "cpu", "-o", str_of(&out)]);
    let output = shell.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(said.matches("error: ").count(), 1, "{said}");
    assert!(said.contains("painted/1a8o.pdb: File too large"), "{said}");
    let entries = fs::read_dir(&out).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["1grm.pdb", "1yjp.cif"]);
}
