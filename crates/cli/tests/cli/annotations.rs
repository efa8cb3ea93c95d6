//! Annotations from tables.

mod refused;
mod tables;
mod unmatched;
mod variants;

use super::results::{integers, numbers, read, texts};
use super::*;
use arrow_array::{ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fmt::Write as _;
use std::sync::Arc;

/// The values of a column that two runs share, as bits.
fn column(out: &Path, name: &str) -> Vec<Option<u64>> {
    let table = read(&out.join("residues/part-00000.parquet"));
    let values = numbers(&table, name).into_iter();
    values.map(|value| value.map(f64::to_bits)).collect()
}

/// Runs the feature `smooth` alone, with annotations and one channel.
fn smooth(input: &str, annotations: &Path, channel: &str, out: &Path) -> Output {
    let set = [
        format!("annotations={}", annotations.display()),
        format!("smooth.channels=[\"b_ca\", \"{channel}\"]"),
    ];
    // The tables get no columns, so that a run's own table is one of annotations.
    run_well(&[
        "--set",
        "tables.annotations=[]",
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

/// Number of rows whose structure was read and lacks their residue.
fn rows_without_residue(out: &Path) -> u64 {
    let matched = matched(out);
    let count = |name: &str| matched[name].as_u64().unwrap();
    count("rows_read") - count("rows_matched")
}

/// Writes columns as Parquet.
fn write_parquet(path: &Path, columns: Vec<(&str, ArrayRef)>, packed: Compression) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    );
    let batch = batch.unwrap();
    let properties = WriterProperties::builder().set_compression(packed).build();
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// A table of two residues of ubiquitin, with all columns.
fn two_rows() -> Vec<(&'static str, ArrayRef)> {
    vec![
        (
            "structure",
            Arc::new(StringArray::from(vec!["1ubi", "1ubi"])),
        ),
        ("model", Arc::new(Int32Array::from(vec![Some(1), None]))),
        ("chain", Arc::new(StringArray::from(vec!["A", "A"]))),
        ("residue", Arc::new(Int32Array::from(vec![5, 40]))),
        (
            "ins_code",
            Arc::new(StringArray::from(vec![None, Some("")])),
        ),
        ("x", Arc::new(Float64Array::from(vec![3.0, 4.5]))),
    ]
}

/// Runs on ubiquitin with settings that must end the program, with a fix, before
/// it writes anything.
fn refuses(features: &str, settings: &[&str], expected: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let input = format!("{SAMPLES}/1ubi.pdb");
    let mut args = vec!["-i", &input, "-o", str_of(&out), "--features", features];
    settings.iter().for_each(|set| args.extend(["--set", set]));
    let (output, code) = run(&args);
    let said = text_of(&output);
    assert_eq!(code, 2, "{said}");
    for part in expected.iter().chain(&["fix: "]) {
        assert!(has_parts(&said, part), "{said:?} lacks {part:?}");
    }
    assert!(!out.exists());
}

#[test]
fn parquet_text_and_csv_annotations_give_the_same_values() {
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
    assert_eq!(rows_without_residue(&at("out")), 0);

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
fn rows_apply_to_one_model_or_all_and_assembly_copies_have_the_rows_of_their_chain() {
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
    assert_eq!(rows_without_residue(&at("first")), 0, "of other models");

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
fn rows_and_structures_count_once_however_many_models_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = format!("{SAMPLES}/1a1p.pdb.gz");
    let run_with = |text: &str, models: &str, out: &str| {
        fs::write(at("x.csv"), text).unwrap();
        let set = format!("annotations={}", at("x.csv").display());
        let mut args = vec!["-i", &input, "-o", out, "--features", "smooth"];
        args.extend(["--set", &set, "--set", "smooth.channels=x", "--set", models]);
        let said = text_of(&run_well(&args));
        (rows_without_residue(Path::new(out)), said)
    };
    let text = "structure,chain,residue,model,x\n1a1p,A,999,,1\n1a1p,A,3,2,1\n\
                1a1p,A,998,2,1\n1a1p,A,997,99,1\n";
    let (all, said) = run_with(text, "models=all", str_of(&at("all")));
    assert_eq!(matched(&at("all"))["residues"], 1);
    assert_eq!(all, 2, "of no model that the file has");
    assert!(
        said.contains("x.csv:2: 1a1p, chain A, residue 999"),
        "{said}"
    );
    let text = text.replace("997,99", "3,1");
    let (first, _) = run_with(&text, "models=first", str_of(&at("first")));
    assert_eq!(first, 1, "of models that are not read");
}

#[test]
fn a_parquet_table_packed_with_snappy_is_read_as_the_same_text() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = format!("{SAMPLES}/1ubi.pdb");
    let text = "structure\tchain\tresidue\tx\n1ubi\tA\t5\t3\n1ubi\tA\t40\t4.5\n";
    fs::write(at("x.tsv"), text).unwrap();
    write_parquet(&at("x.parquet"), two_rows(), Compression::SNAPPY);
    smooth(&input, &at("x.tsv"), "x", &at("of_text"));
    smooth(&input, &at("x.parquet"), "x", &at("of_parquet"));
    assert_eq!(matched(&at("of_parquet"))["residues"], 2);
    assert_eq!(
        column(&at("of_parquet"), "smooth_x"),
        column(&at("of_text"), "smooth_x")
    );
}

#[test]
fn a_quoted_field_of_a_csv_file_may_hold_separators_and_line_breaks() {
    let folder = tempfile::tempdir().unwrap();
    let (table, out) = (folder.path().join("1ubi.csv"), folder.path().join("out"));
    let text = "# notes\nchain, residue, \"note\", x\n\n\
                A,5,\"a, b\",1\n\"A\",6,\"two\nlines\", \"2\"\nA,999,,3\n";
    fs::write(&table, text).unwrap();
    let said = text_of(&smooth(&format!("{SAMPLES}/1ubi.pdb"), &table, "x", &out));
    assert_eq!(matched(&out)["residues"], 2);
    assert!(
        said.contains("1ubi.csv:7: 1ubi, chain A, residue 999"),
        "{said}"
    );
}

#[test]
fn an_empty_chain_matches_a_file_without_chain_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let named = fs::read_to_string(format!("{SAMPLES}/1ubi.pdb")).unwrap();
    let is_atom = |line: &&str| line.starts_with("ATOM");
    let lines = named.lines().filter(is_atom);
    let unnamed: String = lines
        .map(|line| format!("{} {}\n", &line[..21], &line[22..]))
        .collect();
    fs::write(at("1ubi.pdb"), unnamed).unwrap();
    fs::write(at("x.tsv"), "structure\tchain\tresidue\tx\n1ubi\t\t5\t3\n").unwrap();
    let mut columns = two_rows();
    columns[2].1 = Arc::new(StringArray::from(vec![None, Some("")]));
    write_parquet(&at("x.parquet"), columns, Compression::UNCOMPRESSED);
    for (table, residues) in [("x.tsv", 1), ("x.parquet", 2)] {
        let out = tempfile::tempdir().unwrap();
        smooth(str_of(&at("1ubi.pdb")), &at(table), "x", out.path());
        assert_eq!(matched(out.path())["residues"], residues, "{table}");
    }
}

#[test]
fn a_repeated_value_is_logged_and_rows_without_a_value_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("x.csv");
    let rows = ["1", "NA", "2", ""].map(|x| format!("1ubi,A,5,{x}\n"));
    let text = format!(
        "structure,chain,residue,x\n{}1ubi,A,6,1\n1ubi,A,6,\n",
        rows.concat()
    );
    fs::write(&table, text).unwrap();
    let out = folder.path().join("out");
    let said = text_of(&smooth(&format!("{SAMPLES}/1ubi.pdb"), &table, "x", &out));
    let again = said.lines().find(|line| line.contains("several rows"));
    let again = again.expect("a warning");
    assert!(again.contains("rows=1"), "{again}");
    assert!(
        again.contains("x.csv:4: 1ubi, chain A, residue 5"),
        "{again}"
    );
}

fn text_of(output: &Output) -> String {
    text(&output.stderr)
}

#[test]
fn probable_mistakes_are_logged_with_their_line_and_the_run_goes_on() {
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
    ] {
        assert!(said.contains(&expected), "{said} lacks {expected}");
    }
    let matched = matched(&out);
    assert_eq!(matched["residues"], 1);
    assert_eq!(matched["structures_without"], 23);
    assert_eq!(rows_without_residue(&out), 2);
}
