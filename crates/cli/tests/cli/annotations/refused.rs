//! Tables that cannot be used.

use super::*;

#[test]
fn a_table_that_cannot_be_used_ends_the_program_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("x.tsv");
    let out = folder.path().join("out");
    let place = table.display().to_string();
    let fails = |settings: &[&str], expected: &[&str]| refuses("smooth", settings, expected);
    let annotations = format!("annotations={place}");
    let set = [annotations.as_str(), "smooth.channels=x"];
    let head = "structure\tchain\tresidue\tx\n";
    let tables = [
        (String::new(), "empty"),
        (
            "structure\tresidue\tx\n".to_owned(),
            "line 1 .. `auth_asym_id` or `chain`",
        ),
        (
            "chain\tresidue\tx\tx\n".to_owned(),
            "line 1 .. \"x\" .. twice",
        ),
        (
            "chain\tresidue\txx\n".to_owned(),
            "\"x\" .. did you mean `xx`",
        ),
        (
            format!("{head}1ubi\tA\t1\t1\n1ubi\tA\t2\n"),
            "line 3 .. 3 fields .. 4",
        ),
        (
            format!("{head}1ubi\tA\tone\t1\n"),
            "line 2 .. \"one\" .. residue number",
        ),
        (
            format!("{head}1ubi\tA\t5.5\t1\n"),
            "line 2 .. \"5.5\" .. residue number",
        ),
        (
            format!("{head}\n1ubi\tA\t1\thigh\n"),
            "line 3 .. \"x\" .. \"high\"",
        ),
        (
            format!("{head}1ubi\tA\t1\tNaN\n1ubi\tA\t2\tinf\n"),
            "line 3 .. \"x\" .. \"inf\" .. 32",
        ),
        (
            format!("{head}1ubi\tA\t1\t-1e300\n"),
            "line 2 .. \"x\" .. \"-1e300\" .. 32",
        ),
        (
            format!("{head}1ubi\tA\t1\t1\n\tA\t2\t1\n"),
            "line 3 .. structure .. empty",
        ),
        (
            "chain\tresidue\tmodel\tx\nA\t1\tone\t1\n".to_owned(),
            "line 2 .. \"one\" .. model",
        ),
        (
            "chain\tresidue\tins_code\tx\nA\t1\tAB\t1\n".to_owned(),
            "line 2 .. \"AB\" .. insertion code",
        ),
    ];
    for (text, expected) in tables {
        fs::write(&table, text).unwrap();
        fails(&set, &[expected, &place]);
    }
    fails(
        &["smooth.channels=x"],
        &["`smooth.channels` names \"x\"", "`annotations`"],
    );
    fails(
        &[&annotations, "tables.annotations=[]"],
        &["`smooth.channels` .. `tables.annotations`"],
    );
    let other = |name: &str| format!("annotations={}", folder.path().join(name).display());
    fails(&[&other("no.tsv"), set[1]], &["no.tsv", "No such file"]);
    fs::write(folder.path().join("x.xlsx"), "").unwrap();
    fails(&[&other("x.xlsx"), set[1]], &["x.xlsx", "table"]);
    fs::create_dir(folder.path().join("empty")).unwrap();
    fails(&[&other("empty"), set[1]], &["folder"]);
    fs::write(folder.path().join("x.parquet"), "no Parquet").unwrap();
    fails(&[&other("x.parquet"), set[1]], &["x.parquet"]);
    fs::write(folder.path().join("x.csv.gz"), "not packed").unwrap();
    fails(&[&other("x.csv.gz"), set[1]], &["x.csv.gz"]);
    run_well(&[
        "-i",
        &format!("{SAMPLES}/1ubi.pdb"),
        "-o",
        str_of(&out),
        "--features",
        "dssp",
    ]);
    let own = format!("annotations={}", out.join("residues").display());
    fails(
        &[&own, "smooth.channels=ss8"],
        &["row 2 .. \"ss8\" .. \"E\""],
    );
}

#[test]
fn errors_in_parquet_annotations_name_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("x.parquet");
    let set = format!("annotations={}", table.display());
    let words = |words: [Option<&str>; 2]| -> ArrayRef { Arc::new(StringArray::from_iter(words)) };
    let reals = |reals: [Option<f64>; 2]| -> ArrayRef { Arc::new(Float64Array::from_iter(reals)) };
    let halves: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN, f32::NEG_INFINITY]));
    let cases = [
        (
            "structure",
            words([Some("1ubi"), None]),
            "row 2 .. structure .. empty",
        ),
        (
            "structure",
            words([Some(""), None]),
            "row 1 .. structure .. empty",
        ),
        (
            "model",
            words([Some("one"), None]),
            "row 1 .. \"one\" .. model",
        ),
        ("model", reals([None, Some(1.5)]), "row 2 .. 1.5 .. model"),
        (
            "chain",
            reals([None, Some(1.0)]),
            "row 2 .. chain .. 1 .. text",
        ),
        (
            "residue",
            reals([Some(5.0), Some(5.5)]),
            "row 2 .. 5.5 .. residue number",
        ),
        (
            "residue",
            reals([Some(5.0), None]),
            "row 2 .. residue number .. missing",
        ),
        (
            "residue",
            words([Some("5A"), Some("5.5")]),
            "row 2 .. \"5.5\" .. residue number",
        ),
        (
            "ins_code",
            words([Some("A"), Some("AB")]),
            "row 2 .. \"AB\" .. insertion code",
        ),
        ("x", reals([None, Some(1e300)]), "row 2 .. \"x\" .. 1e300"),
        ("x", halves, "row 2 .. \"x\" .. -inf .. 32"),
    ];
    for (name, values, expected) in cases {
        let mut columns = two_rows();
        let own = columns.iter_mut().find(|(own, _)| *own == name);
        own.unwrap().1 = values;
        write_parquet(&table, columns, Compression::UNCOMPRESSED);
        refuses(
            "smooth",
            &[&set, "smooth.channels=x"],
            &["x.parquet", expected],
        );
    }
}

#[test]
fn columns_that_tables_cannot_have_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let table = at("x.csv");
    let set = format!("annotations={}", table.display());
    let fails = |text: &str, more: &[&str], expected: &str| {
        fs::write(&table, text).unwrap();
        refuses("smooth", &[&[set.as_str()], more].concat(), &[expected]);
    };
    let head = "structure,chain,residue";
    let row = "1ubi,A,1";
    fails(
        &format!("{head},aa\n{row},K\n"),
        &[],
        "x.csv .. \"aa\" .. residues",
    );
    fails(
        "structure,rg,atoms\n1ubi,1,2\n",
        &[],
        "\"atoms\" .. structures",
    );
    fails(
        &format!("{head},lineage\n{row},B\n"),
        &["tables.annotations=[\"linage\"]"],
        "`tables.annotations` .. \"linage\" .. did you mean `lineage`",
    );
    for (text, expected) in [
        ("structure;x\n1ubi;1\n", "line 1 .. one field .. comma"),
        (
            "structure,chain,residue,auth_seq_id,x\n",
            "line 1 .. `auth_seq_id` .. `residue`",
        ),
        (
            "structure,chain,residue,Variant\n",
            "line 1 .. \"Variant\" .. `variant` .. case",
        ),
        ("structure,chain,residue\n", "line 1 .. no column .. values"),
        ("1ubi,A,1,1\n", "line 1 .. `auth_asym_id`"),
        (
            "structure,chain,residue,ins_code,x\n1ubi,A,1A,B,1\n",
            "line 2 .. 1A .. insertion code B",
        ),
        (
            "structure,chain,residue,x\n1ubi,A,1,\"1\"2\n",
            "line 2 .. field 4 .. quote",
        ),
        ("structure,x\r1ubi,1\r", "line 1 .. carriage return"),
    ] {
        fails(text, &[], expected);
    }
    fs::write(&table, format!("{head},x\n{row},1\n")).unwrap();
    let twice = format!(
        "annotations=[{:?}, {:?}]",
        str_of(&table),
        str_of(folder.path())
    );
    refuses("rg", &[&twice], &["`annotations` .. twice"]);
    for set in [
        "smooth.channels=residue",
        "tables.annotations=[\"residue\"]",
    ] {
        let key = set.split('=').next().unwrap();
        let expected = format!("`{key}` .. column \"residue\" identifies rows");
        fails(&format!("{head},x\n{row},1\n"), &[set], &expected);
    }
    fails(
        "structure,variant\n1ubi,K48R\n",
        &[],
        "line 1 .. `auth_asym_id` or `chain`",
    );
    fails(
        &format!("{head},variant,x\n{row},V,1\n"),
        &["smooth.channels=x"],
        "\"x\" .. each residue",
    );
    fails(
        &format!("{head},x\n{row},{}\n", "y".repeat(70_000)),
        &[],
        "line 2 .. \"x\" .. 70000 bytes .. 65536",
    );
    let wide: String = (0..1001).map(|number| format!(",c{number}")).collect();
    fails(
        &format!("structure{wide}\n"),
        &[],
        "line 1 .. 1002 columns .. 1000",
    );
    let long = "n".repeat(300);
    fails(&format!("structure,{long}\n"), &[], "line 1 .. name .. nnn");
    let rows = format!("{head},x\n{}", format!("{row},1\n").repeat(100));
    fails(
        &rows,
        &["limits.annotation_bytes_max=500"],
        "more than 500 bytes",
    );
    fails(
        &format!("{head},x\n{row},\"1\n"),
        &[],
        "line 2 .. quoted .. end",
    );
    let unset = "`tables.annotations` .. `annotations` .. set";
    refuses("rg", &["tables.annotations=[\"x\"]"], &[unset]);
}

#[test]
fn a_damaged_table_ends_the_program_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("x.parquet");
    let out = folder.path().join("out");
    let input = format!("{SAMPLES}/1ubi.pdb");
    let set = format!("annotations={}", table.display());
    write_parquet(&table, two_rows(), Compression::SNAPPY);
    let whole = fs::read(&table).unwrap();
    let mut random = crate::random::Random::new(5);
    for number in 0..60 {
        let mut bytes = whole.clone();
        let at = random.below(bytes.len());
        match number % 4 {
            0 => bytes.truncate(at),
            1 => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
            2 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0),
            _ => bytes[at] ^= 1 << random.below(8),
        }
        fs::write(&table, bytes).unwrap();
        let args = [
            "-i",
            &input,
            "-o",
            str_of(&out),
            "--features",
            "rg",
            "--overwrite",
        ];
        let (output, code) = run(&[&args[..], &["--set", &set]].concat());
        let said = text_of(&output);
        assert!(
            code == 0 || code == 2 && said.contains("x.parquet"),
            "{number}: {code} {said}"
        );
    }
}

#[test]
fn a_packed_parquet_file_is_refused_with_a_fix() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("x.parquet.gz");
    fs::write(&table, b"\x1f\x8b").unwrap();
    for set in [str_of(&table), str_of(folder.path())] {
        let set = format!("annotations={set}");
        refuses(
            "rg",
            &[&set],
            &["x.parquet.gz .. packed with gzip .. gunzip"],
        );
    }
}

#[test]
fn types_that_do_not_fit_are_refused_with_the_column() {
    use arrow_array::{BinaryArray, UInt64Array};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let set = format!("annotations={}", folder.path().display());
    let fails = |values: ArrayRef, expected: &str| {
        let mut columns = two_rows();
        columns[5].1 = values;
        write_parquet(&at("1.parquet"), columns, Compression::UNCOMPRESSED);
        refuses("rg", &[&set], &[expected]);
    };
    let binary: ArrayRef = Arc::new(BinaryArray::from(vec![&b"a"[..], b"b"]));
    fails(binary, "\"x\" .. Binary");
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![1, u64::MAX]));
    fails(
        large,
        "row 2 .. \"x\" .. 18446744073709551615 .. 9223372036854775807",
    );
    fs::write(at("2.csv"), "structure,chain,residue,x\n1ubi,A,1,high\n").unwrap();
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    fails(numbers, "\"x\" .. numbers .. text");
}
