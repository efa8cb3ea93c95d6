//! Bridges, ladders and sheets in tables, in conditions and painted.

use super::*;
use std::collections::BTreeMap;

const UBIQUITIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/1ubi.pdb");

/// The columns of a run over ubiquitin, from the author's number of the residue on.
fn rows(options: &[&str]) -> Vec<String> {
    let start = [UBIQUITIN, "-o", "-", "--format", "csv"];
    let output = run_well(&[&start[..], options].concat());
    let text = text(&output.stdout);
    let lines = text.lines().map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        [&fields[6..7], &fields[18..]].concat().join(",")
    });
    lines.collect()
}

/// What mkdssp 4.2.2 prints: BP1, BP2 and the letters of ladders and sheets, as numbers. Partners count
/// from 0 here.
#[test]
fn ubiquitin_has_the_bridges_of_mkdssp() {
    let found = rows(&["--features", "sheets", "--where", "sheet is not null"]);
    let expected = [
        "auth_seq_id,bridge1,bridge1_kind,ladder1,bridge2,bridge2_kind,ladder2,sheet,hb_nho_bonds,hb_ohn_bonds",
        "2,15,antiparallel,1,,,,1,0,1",
    ];
    assert_eq!(found[..2], expected);
    let row = |residue: &str| {
        let mut rows = found.iter().filter_map(|row| row.split_once(','));
        let (_, row) = rows.find(|(number, _)| *number == residue).unwrap();
        row.rsplitn(3, ',').last().unwrap()
    };
    for (residue, columns) in [
        ("4", "13,antiparallel,1,65,parallel,2,1"),
        ("7", ",,,68,parallel,2,1"),
        ("22", "54,antiparallel,5,,,,2"),
        ("45", ",,,47,antiparallel,4,1"),
        ("55", "21,antiparallel,5,,,,2"),
        ("68", "5,parallel,2,43,antiparallel,3,1"),
        ("71", ",,,40,antiparallel,3,1"),
    ] {
        assert_eq!(row(residue), columns, "residue {residue}");
    }
}

#[test]
fn the_columns_are_there_if_asked_for_and_the_others_stay_as_they_were() {
    let without = rows(&["--features", "dssp"]);
    let with = rows(&["--features", "dssp,sheets"]);
    assert!(without[0].ends_with(",hb_ohn2_energy"), "{}", without[0]);
    assert_eq!(with.len(), without.len());
    for (with, without) in with.iter().zip(&without) {
        assert!(with.starts_with(&format!("{without},")));
    }
    let all = rows(&["--features", "all"]);
    assert!(!all[0].contains(",sheet"));
}

#[test]
fn conditions_and_paint_take_numbers_and_words() {
    let parallel = "bridge1_kind == 'parallel' and sheet == 1";
    let found = rows(&["--features", "sheets", "--where", parallel]);
    let numbers: Vec<&str> = found[1..].iter().map(|row| &row[..2]).collect();
    assert_eq!(numbers, ["66", "67", "68", "69"]);

    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("painted.pdb");
    let paint = |column: &str| {
        let args = [
            "paint",
            UBIQUITIN,
            column,
            "-o",
            str_of(&out),
            "--overwrite",
        ];
        let options = ["--set", "sheets=true", "--backend", "cpu"];
        let output = tapeloop(args.iter().chain(&options)).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let file = fs::read_to_string(&out).unwrap();
        let atoms = file.lines().filter(|line| line.starts_with("ATOM"));
        let number = |line: &str| line[22..26].trim().parse::<u32>().unwrap();
        let value = |line: &str| line[60..66].trim().parse::<f64>().unwrap();
        atoms
            .map(|line| (number(line), value(line)))
            .collect::<BTreeMap<_, _>>()
    };
    let sheets = paint("sheet");
    assert_eq!([sheets[&1], sheets[&2], sheets[&22]], [-1.0, 1.0, 2.0]);
    let kinds = paint("bridge1_kind");
    assert_eq!([kinds[&1], kinds[&2], kinds[&66]], [-1.0, 1.0, 0.0]);
}
