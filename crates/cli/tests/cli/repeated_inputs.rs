//! Files that several items name.

use super::results::{read, texts};
use super::*;
use std::collections::HashSet;

#[test]
#[cfg(unix)]
fn a_file_that_is_named_again_is_read_once_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("in/deep")).unwrap();
    for name in ["in/1ubi.pdb", "in/deep/1ubi.pdb"] {
        fs::copy(format!("{SAMPLES}/1ubi.pdb"), at(name)).unwrap();
    }
    std::os::unix::fs::symlink(at("in/1ubi.pdb"), at("in/link.pdb")).unwrap();
    let list = "in/1ubi.pdb\n./in/1ubi.pdb\nin/1ubi.pdb,A\nin/1ubi.pdb,A\n";
    fs::write(at("list.txt"), list).unwrap();
    let items = ["in", "in/deep", "in/*.pdb", "in/1ubi.pdb"];
    let items = items.map(|item| str_of(&at(item)).to_owned());
    let list = format!("@{}", at("list.txt").display());
    let mut args: Vec<&str> = items.iter().map(String::as_str).collect();
    let out = at("out");
    args.extend([&list, "-o", str_of(&out), "--features", "rg", "-v"]);
    let output = run_well(&args);

    // The file, another one of its name, the link, and the file's chain A alone.
    let counts = record(&at("out"))["counts"].clone();
    assert_eq!(
        (&counts["inputs"], &counts["rejected"]),
        (&4.into(), &0.into())
    );
    assert_eq!(counts["files_repeated"], 7);
    let said = text(&output.stderr);
    let note = "note: .. once: 7 (";
    assert!(has_parts(&said, note), "{said}");
    assert!(said.contains("in/deep/1ubi.pdb, ...)"), "{said}");
    let table = read(&at("out/structures/part-00000.parquet"));
    let sources = texts(&table, "source");
    assert_eq!(sources.len(), 4);
    assert_eq!(
        sources.iter().collect::<HashSet<_>>().len(),
        3,
        "{sources:?}"
    );
}

#[test]
fn an_archive_or_a_trajectory_that_is_named_again_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let sample = fs::read(format!("{SAMPLES}/1ubi.pdb")).unwrap();
    let tar = archives::tar_of(&[("1ubi.pdb".to_owned(), sample)]);
    fs::write(at("set.tar"), tar).unwrap();
    let trajectory = Path::new(ROOT).join("tests/data/trajectories/1ubi.xtc");
    let topology = format!("{SAMPLES}/1ubi.pdb");
    let frames = |out: &str, items: &[&Path]| {
        let mut args: Vec<&str> = items.iter().map(|item| str_of(item)).collect();
        let out = at(out);
        args.extend(["-o", str_of(&out), "--features", "rg"]);
        args.extend(["--topology", &topology]);
        run_well(&args);
        record(&out)["counts"]["inputs"].as_u64().unwrap()
    };
    let once = frames("once", &[&trajectory]);
    assert!(once > 1);
    assert_eq!(frames("again", &[&trajectory, &trajectory]), once);
    let out = at("out");
    let tar = at("set.tar");
    run_well(&[
        str_of(&tar),
        str_of(&tar),
        "-o",
        str_of(&out),
        "--features",
        "rg",
    ]);
    assert_eq!(record(&out)["counts"]["inputs"], 1);
}
