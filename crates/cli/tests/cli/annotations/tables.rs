//! Columns of annotations in the tables of structures and of residues.

use super::*;
use arrow_array::{BooleanArray, Date32Array, Int64Array, TimestampNanosecondArray};
use arrow_schema::DataType;

/// A run with annotations and a feature that does not read them, and its standard error.
pub(super) fn annotated(inputs: &[&str], tables: &[&Path], out: &Path, more: &[&str]) -> String {
    let tables: Vec<&str> = tables.iter().map(|table| str_of(table)).collect();
    let set = format!("annotations={tables:?}");
    let args = [
        "-o",
        str_of(out),
        "--features",
        "contact_number,dssp",
        "--set",
        &set,
    ];
    text_of(&run_well(&[inputs, &args, more].concat()))
}

/// The lines of a part in CSV, as fields by the names of their columns.
pub(super) fn rows_of(out: &Path, table: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let text = fs::read_to_string(out.join(table).join("part-00000.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    lines
        .map(|line| names.iter().cloned().zip(line).collect())
        .collect()
}

#[test]
fn a_row_for_each_structure_gives_columns_of_the_structures() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = "structure,lineage,country,date,frequency,count,kept,none\n\
                1ubi,B.1.1.7,NA,2021-03-04,0.25,7,true,\n\
                1abc,P.1,BR,2021-03-05,1e-3,8,false,NA\n\
                1yjp,,,NA,NA,-,,\n";
    fs::write(at("lineages.csv"), text).unwrap();
    let inputs = ["1ubi.pdb", "1yjp.cif", "1gbt.cif.gz"].map(|name| format!("{SAMPLES}/{name}"));
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let said = annotated(&inputs, &[&at("lineages.csv")], &at("out"), &[]);
    assert!(!said.contains("without annotations"), "{said}");
    let table = read(&at("out").join("structures/part-00000.parquet"));
    assert_eq!(texts(&table, "lineage"), ["B.1.1.7", "null", "null"]);
    // In texts only an empty field is null: NA is Namibia.
    assert_eq!(texts(&table, "country"), ["NA", "null", "null"]);
    assert_eq!(texts(&table, "date"), ["2021-03-04", "NA", "null"]);
    let schema = table.schema();
    let kind = |name: &str| schema.field_with_name(name).unwrap().data_type().clone();
    assert_eq!(kind("frequency"), DataType::Float64);
    assert_eq!(kind("count"), DataType::Int64);
    assert_eq!(kind("kept"), DataType::Boolean);
    assert_eq!(kind("none"), DataType::Utf8);
    let csv = at("csv");
    annotated(&inputs, &[&at("lineages.csv")], &csv, &["--format", "csv"]);
    let rows = rows_of(&csv, "structures");
    let of = |row: usize| ["frequency", "count", "kept"].map(|name| rows[row][name].as_str());
    assert_eq!(of(0), ["0.25", "7", "true"]);
    assert_eq!(of(1), ["", "", ""]);
    // Not those of other tables.
    assert!(!rows_of(&csv, "residues")[0].contains_key("lineage"));
    let matched = matched(&at("out"));
    assert_eq!(
        (&matched["rows"], &matched["rows_read"]),
        (&3.into(), &2.into())
    );
    assert_eq!(matched["rows_matched"], 2);
    assert_eq!(matched["structures_without"], 1);
}

/// Residues 2 and 3 of ubiquitin, with a column of each type.
fn of_every_type(path: &Path) {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("structure", Arc::new(StringArray::from(vec!["1ubi"; 3]))),
        ("chain", Arc::new(StringArray::from(vec!["A"; 3]))),
        ("residue", Arc::new(Int64Array::from(vec![2, 3, 900]))),
        (
            "conservation",
            Arc::new(Float32Array::from(vec![Some(0.1), None, Some(9.0)])),
        ),
        (
            "score",
            Arc::new(Float64Array::from(vec![0.1, f64::NAN, 9.0])),
        ),
        (
            "seen",
            Arc::new(Int32Array::from(vec![Some(-5), None, Some(1)])),
        ),
        ("reads", Arc::new(Int64Array::from(vec![1 << 40, 2, 3]))),
        (
            "kept",
            Arc::new(BooleanArray::from(vec![true, false, true])),
        ),
        (
            "note",
            Arc::new(StringArray::from(vec![Some("a, b"), Some(""), None])),
        ),
        (
            "day",
            Arc::new(Date32Array::from(vec![Some(18690), None, None])),
        ),
        (
            "time",
            Arc::new(TimestampNanosecondArray::from(vec![
                Some(1_614_816_000_500_000_000),
                None,
                None,
            ])),
        ),
    ];
    write_parquet(path, columns, Compression::SNAPPY);
}

#[test]
fn a_row_for_each_residue_gives_columns_of_the_residues_with_the_types_of_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    of_every_type(&at("x.parquet"));
    let input = format!("{SAMPLES}/1ubi.pdb");
    let smooth = [
        "--set",
        "smooth.channels=[\"conservation\"]",
        "--features",
        "smooth",
    ];
    let set = format!("annotations={}", at("x.parquet").display());
    let out = at("out");
    let args = ["-i", &input, "-o", str_of(&out), "--set", &set];
    run_well(&[&args[..], &smooth].concat());
    let table = read(&out.join("residues/part-00000.parquet"));
    assert_eq!(table.num_rows(), 76);
    let schema = table.schema();
    for (name, kind) in [
        ("conservation", DataType::Float32),
        ("score", DataType::Float64),
        ("seen", DataType::Int32),
        ("reads", DataType::Int64),
        ("kept", DataType::Boolean),
        ("note", DataType::Utf8),
        ("day", DataType::Utf8),
        ("time", DataType::Utf8),
    ] {
        let field = schema.field_with_name(name).unwrap();
        assert_eq!(
            (field.data_type(), field.is_nullable()),
            (&kind, true),
            "{name}"
        );
        assert_eq!(
            field.metadata()["description"],
            "An annotation of the residue."
        );
    }
    assert_eq!(
        numbers(&table, "conservation")[..3],
        [None, Some(f64::from(0.1_f32)), None]
    );
    assert_eq!(texts(&table, "note")[..3], ["null", "a, b", "null"]);
    assert_eq!(texts(&table, "day")[1], "2021-03-04");
    assert_eq!(texts(&table, "time")[1], "2021-03-04T00:00:00.500");
    assert!(
        numbers(&table, "smooth_conservation")
            .iter()
            .any(Option::is_some)
    );
    assert_eq!(matched(&out)["residues"], 2);
    assert_eq!(rows_without_residue(&out), 1);
    // The same rows as JSON on standard output.
    let named = [
        "--set",
        "tables.annotations=[\"reads\", \"score\"]",
        "--features",
        "rg",
    ];
    let args = ["-i", &input, "-o", "-", "--format", "json", "--set", &set];
    let output = run_well(&[&args[..], &named].concat());
    let second = text(&output.stdout).lines().nth(1).unwrap().to_owned();
    let second: serde_json::Value = serde_json::from_str(&second).unwrap();
    assert_eq!(
        (&second["reads"], &second["score"]),
        (&(1_u64 << 40).into(), &0.1.into())
    );
    assert!(second.get("note").is_none());
}

#[test]
fn times_of_96_bits_are_texts() {
    use parquet::data_type::{ByteArrayType, Int96, Int96Type};
    use parquet::file::writer::SerializedFileWriter;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let schema = "message m { required binary structure (utf8); optional int96 time; }";
    let schema = parquet::schema::parser::parse_message_type(schema).unwrap();
    let file = fs::File::create(at("x.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut names = group.next_column().unwrap().unwrap();
    let structures = [b"1ubi".to_vec().into(), b"1yjp".to_vec().into()];
    let typed = names.typed::<ByteArrayType>();
    typed.write_batch(&structures, None, None).unwrap();
    names.close().unwrap();
    let mut times = group.next_column().unwrap().unwrap();
    // The Julian day of 2021-03-04, and no time of the second structure.
    let mut time = Int96::new();
    time.set_data(500_000_000, 0, 2_459_278);
    let typed = times.typed::<Int96Type>();
    typed.write_batch(&[time], Some(&[1, 0]), None).unwrap();
    times.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let inputs = ["1ubi.pdb", "1yjp.cif"].map(|name| format!("{SAMPLES}/{name}"));
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    annotated(&inputs, &[&at("x.parquet")], &at("out"), &[]);
    let table = read(&at("out").join("structures/part-00000.parquet"));
    assert_eq!(texts(&table, "time"), ["2021-03-04T00:00:00.500", "null"]);
}

#[test]
fn columns_of_several_tables_are_one_column_and_the_first_value_counts() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("all")).unwrap();
    let head = "structure,chain,residue,x,y\n";
    fs::write(
        at("all/1.csv"),
        format!("{head}1ubi,A,1,,one\n1ubi,A,1,2,two\n"),
    )
    .unwrap();
    fs::write(
        at("all/2.csv"),
        format!("{head}1ubi,A,2,0.5,\n1ubi,A,1,3,\n"),
    )
    .unwrap();
    fs::write(at("all/3.csv"), "structure,z\n1ubi,1\n").unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    let said = annotated(&[&input], &[&at("all")], &at("out"), &["--format", "csv"]);
    assert!(said.contains("1.csv:3: 1ubi, chain A, residue 1"), "{said}");
    let rows = rows_of(&at("out"), "residues");
    assert_eq!((rows[0]["x"].as_str(), rows[0]["y"].as_str()), ("2", "one"));
    assert_eq!((rows[1]["x"].as_str(), rows[1]["y"].as_str()), ("0.5", ""));
    assert_eq!(rows_of(&at("out"), "structures")[0]["z"], "1");
    assert_eq!(matched(&at("out"))["rows_repeated"], 2);
}

#[test]
fn paint_reads_annotations_for_the_column_that_it_paints_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // The table of residues has a column `aa`, and a painted file has no columns.
    let text = "structure,chain,residue,aa,x\n1ubi,A,1,M,2\n1ubi,A,2,Q,2\n";
    fs::write(at("x.csv"), text).unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    let set = format!("annotations={}", at("x.csv").display());
    let channels = "smooth.channels=[\"x\"]";
    for column in ["smooth_x", "wcn"] {
        let out = at(column).with_extension("pdb");
        let args = ["paint", &input, column, "-o", str_of(&out)];
        let more = ["--set", &set, "--set", channels, "--set", "backend=cpu"];
        let output = tapeloop(args.iter().chain(&more)).output().unwrap();
        assert!(output.status.success(), "{}", text_of(&output));
        let painted = fs::read_to_string(&out).unwrap();
        let third = painted
            .lines()
            .find(|line| line.starts_with("ATOM") && &line[22..26] == "   3");
        assert_eq!(
            third.unwrap()[60..66].trim() == "2.00",
            column == "smooth_x"
        );
    }
}
