//! Annotations from tables.

use super::results::{integers, numbers, read, texts};
use super::*;
use std::fmt::Write as _;

/// The values of a column that two runs share, as bits.
fn column(out: &Path, name: &str) -> Vec<Option<u64>> {
    let table = read(&out.join("residues/part-00000.parquet"));
    let values = numbers(&table, name).into_iter();
    values.map(|value| value.map(f64::to_bits)).collect()
}

/// Runs with annotations, one channel and nothing but what smooths it.
fn smooth(input: &str, annotations: &Path, channel: &str, out: &Path) -> Output {
    let set = [
        format!("annotations={}", annotations.display()),
        format!("smooth.channels=[\"b_ca\", \"{channel}\"]"),
    ];
    run_well(&[
        "-i",
        input,
        "-o",
        str_of(out),
        "--features",
        "smooth",
        "--set",
        &set[0],
        "--set",
        &set[1],
    ])
}

fn matched(out: &Path) -> serde_json::Value {
    record(out)["annotations"].clone()
}

#[test]
fn a_runs_own_table_and_the_same_as_text_smooth_alike() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = format!("{SAMPLES}/1gbt.cif.gz");
    run_well(&[
        "-i",
        &input,
        "-o",
        str_of(&at("first")),
        "--features",
        "b_factor,sasa",
    ]);
    let table = read(&at("first").join("residues/part-00000.parquet"));
    let (chains, codes) = (texts(&table, "auth_asym_id"), texts(&table, "ins_code"));
    let (residues, b) = (integers(&table, "auth_seq_id"), numbers(&table, "b_ca"));
    assert!(
        codes.iter().any(|code| code != "null"),
        "some have insertion codes"
    );

    // The same B factors under another name are smoothed to the same bits.
    let mut text = "# of a run\nchain\tresidue\tcopy\n".to_owned();
    for row in 0..chains.len() {
        let code = codes[row].replace("null", "");
        let b = b[row].map_or("NA".to_owned(), |b| (b as f32).to_string());
        writeln!(text, "{}\t{}{code}\t{b}", chains[row], residues[row]).unwrap();
    }
    fs::create_dir(at("text")).unwrap();
    fs::write(at("text/1gbt.tsv"), &text).unwrap();
    smooth(&input, &at("text"), "copy", &at("out"));
    let known = column(&at("out"), "smooth_b_ca");
    assert!(known.iter().any(Option::is_some));
    assert_eq!(column(&at("out"), "smooth_copy"), known);
    assert_eq!(matched(&at("out"))["residues"], chains.len());
    assert_eq!(matched(&at("out"))["rows_unmatched"], 0);

    // The run's table is one as it is, and so is its text as CSV.
    let mut text = "structure,model,chain,residue,ins_code,sasa\r\n".to_owned();
    for (row, area) in numbers(&table, "sasa").into_iter().enumerate() {
        let (chain, residue, code) = (&chains[row], residues[row], &codes[row]);
        let area = area.unwrap() as f32;
        write!(text, "\"1gbt\",1,{chain},{residue},{code},{area}\r\n").unwrap();
    }
    fs::write(at("areas.csv"), &text).unwrap();
    smooth(&input, &at("first/residues"), "sasa", &at("of_parquet"));
    smooth(&input, &at("areas.csv"), "sasa", &at("of_csv"));
    let of_csv = parts(&at("of_csv"));
    assert!(
        parts(&at("of_parquet")) == of_csv,
        "the same rows make the same bytes"
    );
    assert_ne!(column(&at("of_csv"), "smooth_sasa"), known);
}

#[test]
fn an_insertion_code_names_one_residue_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = format!("{SAMPLES}/1gbt.cif.gz");
    let tables = [
        ("structure\tchain\tresidue\tx\n1gbt\tA\t184A\t5\n", 5.0),
        (
            "structure\tchain\tresidue\tins_code\tx\n1gbt\tA\t184\tA\t5\n",
            5.0,
        ),
        ("structure\tchain\tresidue\tx\n1gbt\tA\t184\t7\n", 7.0),
    ];
    let mut columns = Vec::new();
    for (text, value) in tables {
        fs::write(at("x.tsv"), text).unwrap();
        let out = tempfile::tempdir().unwrap();
        smooth(&input, &at("x.tsv"), "x", out.path());
        assert_eq!(matched(out.path())["residues"], 1);
        let column = column(out.path(), "smooth_x");
        let near: Vec<f64> = column
            .iter()
            .flatten()
            .map(|&bits| f64::from_bits(bits))
            .collect();
        assert!(
            !near.is_empty() && near.len() < 60,
            "those around one residue"
        );
        assert!(near.iter().all(|mean| *mean == value));
        columns.push(column);
    }
    assert_eq!(columns[0], columns[1]);
    assert_ne!(columns[0], columns[2]);
}

#[test]
fn rows_are_of_one_model_or_of_all_and_copies_in_an_assembly_have_those_of_their_chain() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(
        at("x.csv"),
        "structure,chain,residue,x\n1a1p,A,3,1\n1a1p,A,4,2\n",
    )
    .unwrap();
    let text = "structure,chain,residue,model,x\n1a1p,A,3,2,9\n1a1p,A,4,,1\n";
    fs::write(at("models.csv"), text).unwrap();
    let counts = |table: &str, input: &str, more: &str, out: &str| {
        let set = [
            format!("annotations={}", at(table).display()),
            "smooth.channels=x".to_owned(),
        ];
        run_well(&[
            "-i",
            input,
            "-o",
            str_of(&at(out)),
            "--features",
            "smooth",
            "--set",
            &set[0],
            "--set",
            &set[1],
            "--set",
            more,
        ]);
        matched(&at(out))["residues"].as_u64().unwrap()
    };
    let input = format!("{SAMPLES}/1a1p.pdb.gz");
    let models = counts("x.csv", &input, "models=all", "all") / 2;
    assert!(models > 2, "the file has several");
    assert_eq!(
        counts("models.csv", &input, "models=all", "models"),
        models + 1
    );
    assert_eq!(counts("models.csv", &input, "models=first", "first"), 1);
    assert_eq!(
        matched(&at("first"))["rows_unmatched"],
        0,
        "of other models"
    );

    fs::write(
        at("copies.csv"),
        "structure,chain,residue,x\n1a8o,A,160,1\n",
    )
    .unwrap();
    let input = format!("{SAMPLES}/1a8o.cif.gz");
    assert_eq!(counts("copies.csv", &input, "assembly=deposited", "one"), 1);
    assert_eq!(counts("copies.csv", &input, "assembly=1", "two"), 2);
}

#[test]
fn what_is_likely_wrong_is_said_with_its_line_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("x.tsv");
    let out = folder.path().join("out");
    let text = "structure\tchain\tresidue\tx\n1ubi\tA\t5\t1\n1ubi\tA\t999\t1\n\n\
                1ubi\tB\t5\t1\n1ubi\tA\t5\t2\n1abc\tA\t1\t1\n";
    fs::write(&table, text).unwrap();
    let output = smooth(SAMPLES, &table, "x", &out);
    let said = text_of(&output);
    let place = table.display();
    for expected in [
        format!("{place}:3: 1ubi, chain A, residue 999"),
        format!("{place}:6: 1ubi, chain A, residue 5"),
        "rows=2".to_owned(),
        "first=\"1a1p\"".to_owned(),
    ] {
        assert!(said.contains(&expected), "{said} lacks {expected}");
    }
    let matched = matched(&out);
    assert_eq!(matched["residues"], 1);
    assert_eq!(matched["rows_unmatched"], 2);
    assert_eq!(matched["structures_without"], 23);
}

fn text_of(output: &Output) -> String {
    text(&output.stderr)
}

#[test]
fn a_table_that_cannot_be_used_ends_the_program_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("x.tsv");
    let out = folder.path().join("out");
    let place = table.display().to_string();
    let fails = |settings: &[&str], expected: &[&str]| {
        let input = format!("{SAMPLES}/1ubi.pdb");
        let mut args = vec!["-i", &input, "-o", str_of(&out), "--features", "smooth"];
        settings.iter().for_each(|set| args.extend(["--set", set]));
        let (output, code) = run(&args);
        let said = text_of(&output);
        assert_eq!(code, 2, "{said}");
        for part in expected {
            assert!(said.contains(part), "{said:?} lacks {part:?}");
        }
        assert!(!out.exists());
    };
    let annotations = format!("annotations={place}");
    let set = [annotations.as_str(), "smooth.channels=x"];
    let head = "structure\tchain\tresidue\tx\n";
    let tables = [
        (String::new(), "it is empty"),
        (
            "structure\tresidue\tx\n".to_owned(),
            "line 1: there is no column `auth_asym_id` or `chain`",
        ),
        (
            "chain\tresidue\tx\tx\n".to_owned(),
            "line 1: column \"x\" is there twice",
        ),
        (
            "chain\tresidue\txx\n".to_owned(),
            "no table has a column \"x\" (did you mean \"xx\"?)",
        ),
        (
            format!("{head}1ubi\tA\t1\t1\n1ubi\tA\t2\n"),
            "line 3: it has 3 fields, not 4",
        ),
        (
            format!("{head}1ubi\tA\tone\t1\n"),
            "line 2: \"one\" is no residue number",
        ),
        (
            format!("{head}\n1ubi\tA\t1\thigh\n"),
            "line 3: \"high\" is no number",
        ),
    ];
    for (text, expected) in tables {
        fs::write(&table, text).unwrap();
        fails(&set, &[expected, &place]);
    }
    fails(
        &["smooth.channels=x"],
        &["`smooth.channels` names \"x\"", "`annotations` is not set"],
    );
    fails(
        &[&annotations],
        &["`smooth.channels` names none of its columns"],
    );
    let other = |name: &str| format!("annotations={}", folder.path().join(name).display());
    fails(&[&other("no.tsv"), set[1]], &["no.tsv", "No such file"]);
    fs::write(folder.path().join("x.xlsx"), "").unwrap();
    fails(
        &[&other("x.xlsx"), set[1]],
        &["x.xlsx", "no table by its name"],
    );
    fs::create_dir(folder.path().join("empty")).unwrap();
    fails(&[&other("empty"), set[1]], &["the folder has no table"]);
    fs::write(folder.path().join("x.parquet"), "no Parquet").unwrap();
    fails(&[&other("x.parquet"), set[1]], &["x.parquet"]);
    run_well(&[
        "-i",
        &format!("{SAMPLES}/1ubi.pdb"),
        "-o",
        str_of(&out),
        "--features",
        "dssp",
    ]);
    let own = format!("annotations={}", out.join("residues").display());
    let again = folder.path().join("again");
    let (output, code) = run(&[
        "-i",
        SAMPLES,
        "-o",
        str_of(&again),
        "--features",
        "smooth",
        "--set",
        &own,
        "--set",
        "smooth.channels=ss8",
    ]);
    assert_eq!(code, 2);
    assert!(text_of(&output).contains("column \"ss8\" holds text and no numbers"));
}
