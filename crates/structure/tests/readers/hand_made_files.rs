//! The hand-made files of `tests/data`: each small one reads as its table says,
//! each broken one is rejected for the reason that its table gives.

use std::fs;
use std::path::PathBuf;
use tapeloop_structure::ErrorKind;
use tapeloop_structure::{Models, ReadOptions, Reader};
use tapeloop_test_support::repository;

fn folder(name: &str) -> PathBuf {
    repository("tests/data").join(name)
}

#[test]
fn small_files_read_as_expected() {
    let folder = folder("small");
    let table = fs::read_to_string(folder.join("expected.tsv")).unwrap();
    let options = ReadOptions {
        models: Models::All,
        ..ReadOptions::default()
    };
    let mut reader = Reader::new(options);
    let mut wrong = Vec::new();
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let found = match reader.read_path(&folder.join(fields[0])) {
            Err(error) => error.to_string(),
            Ok(models) => {
                let s = &models[0];
                let sequence: String = s.residues.iter().map(|r| char::from(r.aa)).collect();
                let breaks = s.residues.iter().filter(|r| r.break_before).count();
                let counts = [
                    models.len(),
                    s.row_chains().len(),
                    s.residues.len(),
                    s.xyz.len(),
                ];
                let counts = counts.map(|count| count.to_string()).join("\t");
                format!("{counts}\t{sequence}\t{breaks}")
            }
        };
        if found != fields[1..7].join("\t") {
            wrong.push(format!(
                "{}: found {found:?}, expected {:?}",
                fields[0],
                &fields[1..]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn broken_files_are_rejected_for_their_reason() {
    let folder = folder("broken");
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let rows = readme.lines().filter(|line| line.starts_with("| `"));
    let (mut seen, mut wrong) = (0, Vec::new());
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (file, reason) = (cells[1].trim_matches('`'), cells[2]);
        seen += 1;
        let found = match Reader::new(ReadOptions::default()).read_path(&folder.join(file)) {
            Ok(_) => "it was read".to_owned(),
            Err(error) if error.kind() != ErrorKind::Input => format!("{error:?}"),
            Err(error) => error.to_string(),
        };
        if !reason.split(", ").all(|part| found.contains(part)) {
            wrong.push(format!("{file}: found {found:?}, expected {reason:?}"));
        }
    }
    let files = fs::read_dir(&folder).unwrap().count() - 1;
    assert_eq!(seen, files, "every broken file is in the table");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
