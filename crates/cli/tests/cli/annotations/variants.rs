//! Tables with many rows for a residue, which give the table of variants.

use super::tables::{annotated, rows_of};
use super::*;

const MUTATIONS: &str = "structure,chain,residue,variant,frequency,lineage\n\
                         1ubi,A,48,K48R,0.25,B.1\n\
                         1ubi,A,1,M1V,0.5,P.1\n\
                         1ubi,A,48,K48A,,B.1\n\
                         1ubi,B,48,K48R,1,none\n\
                         1ubi,A,900,X900Y,2,P.1\n";

#[test]
fn each_row_of_a_table_of_variants_has_the_features_of_its_residue() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("mutations.csv"), MUTATIONS).unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    let csv = ["--format", "csv", "--where", "residue > 40"];
    let said = annotated(&[&input], &[&at("mutations.csv")], &at("out"), &csv);
    assert!(
        said.contains("mutations.csv:5: 1ubi, chain B, residue 48"),
        "{said}"
    );
    let rows = rows_of(&at("out"), "variants");
    let column = |name: &str| -> Vec<&str> { rows.iter().map(|row| row[name].as_str()).collect() };
    assert_eq!(column("variant"), ["K48R", "M1V", "K48A", "K48R", "X900Y"]);
    assert_eq!(column("frequency"), ["0.25", "0.5", "", "1", "2"]);
    assert_eq!(column("lineage"), ["B.1", "P.1", "B.1", "none", "P.1"]);
    assert_eq!(column("auth_asym_id"), ["A", "A", "A", "B", "A"]);
    assert_eq!(column("auth_seq_id"), ["48", "1", "48", "48", "900"]);
    assert_eq!(column("res_index"), ["47", "0", "47", "", ""]);
    assert_eq!(column("aa"), ["K", "M", "K", "", ""]);
    // The residue's features, and nulls where there is no residue.
    let whole = at("whole");
    annotated(
        &[&input],
        &[&at("mutations.csv")],
        &whole,
        &["--format", "csv"],
    );
    let residues = rows_of(&whole, "residues");
    assert!(!residues[0].contains_key("variant"));
    for (row, residue) in [(0, 47), (1, 0), (2, 47)] {
        for name in ["cn_ca_8", "cn_cb_10", "ss8", "hb_nho1", "uniprot_pos"] {
            assert_eq!(rows[row][name], residues[residue][name], "{name}");
        }
    }
    assert!(!rows[0]["cn_ca_8"].is_empty());
    assert!(column("cn_ca_8")[3..].iter().all(|value| value.is_empty()));
    let record = record(&at("out"));
    assert_eq!(record["counts"]["structures"], 1, "computed once");
    assert_eq!(record["annotations"]["rows_read"], 5);
    assert_eq!(record["annotations"]["rows_matched"], 3);
    assert_eq!(record["annotations"]["rows_repeated"], 0);
    assert!(record["columns"]["variants"]["frequency"]["max"] == 2.0);
}

#[test]
fn a_row_applies_to_each_model_and_each_copy_of_its_chain() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = "structure,chain,residue,model,variant\n1a1p,A,3,,all\n1a1p,A,3,2,second\n";
    fs::write(at("models.csv"), text).unwrap();
    let input = format!("{SAMPLES}/1a1p.pdb.gz");
    let models = ["--format", "csv", "--models", "all"];
    annotated(&[&input], &[&at("models.csv")], &at("models"), &models);
    let rows = rows_of(&at("models"), "variants");
    let structures = rows_of(&at("models"), "structures").len();
    assert!(structures > 2 && rows.len() == structures + 1);
    let of_second = rows.iter().filter(|row| row["model"] == "2");
    let of_second: Vec<&str> = of_second.map(|row| row["variant"].as_str()).collect();
    assert_eq!(of_second, ["all", "second"]);
    fs::write(
        at("copies.csv"),
        "structure,chain,residue,variant\n1a8o,A,160,V\n",
    )
    .unwrap();
    let input = format!("{SAMPLES}/1a8o.cif.gz");
    let copies = ["--format", "csv", "--set", "assembly=1"];
    annotated(&[&input], &[&at("copies.csv")], &at("copies"), &copies);
    let rows = rows_of(&at("copies"), "variants");
    let chains: Vec<&str> = rows
        .iter()
        .map(|row| row["auth_asym_id"].as_str())
        .collect();
    assert_eq!(chains, ["A", "A-2"]);
}

/// Rows for all samples: for structures, residues and variants, grouped by structure or not.
fn tables_of_samples(folder: &Path, is_grouped: bool) -> Vec<PathBuf> {
    let names = ["1ubi", "1yjp", "1gbt", "1a1p", "1a8o", "1grm"];
    let mut rows = Vec::new();
    for (number, name) in names.iter().enumerate() {
        rows.extend((0..300).map(|row| (row, number, *name)));
    }
    if !is_grouped {
        rows.sort();
    }
    let mut residues = "structure,chain,residue,x,word\n".to_owned();
    let mut variants = "structure,chain,residue,variant,y\n".to_owned();
    for (row, number, name) in rows {
        writeln!(residues, "{name},A,{row},{}.5,w{}", row * number, row % 3).unwrap();
        writeln!(variants, "{name},A,{},v{row},{row}", row % 40).unwrap();
    }
    let structures = "structure,z\n1ubi,1\n1gbt,2\n".to_owned();
    let all = [
        ("s.csv", structures),
        ("r.csv", residues),
        ("v.csv", variants),
    ];
    let write = |(name, text): (&str, String)| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    all.into_iter().map(write).collect()
}

#[test]
fn the_bytes_depend_on_neither_threads_nor_batches_and_shards_have_all_rows() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let tables = tables_of_samples(folder.path(), true);
    let tables: Vec<&Path> = tables.iter().map(PathBuf::as_path).collect();
    let run = |out: &str, more: &[&str]| {
        annotated(&[SAMPLES], &tables, &at(out), more);
        parts(&at(out))
    };
    let small = [
        "--set",
        "tables.rows_per_group=50",
        "--set",
        "tables.inputs_per_part=7",
    ];
    let one = run(
        "one",
        &[&small[..], &["--threads", "1", "--slots", "1"]].concat(),
    );
    let batches = ["--threads", "4", "--set", "batch.residues=500"];
    let many = run("many", &[&small[..], &batches].concat());
    assert!(one == many);
    assert!(one.iter().any(|(name, _)| name.starts_with("variants")));
    let csv = ["--format", "csv"];
    run("whole", &csv);
    let whole = rows_of(&at("whole"), "variants");
    // The samples have 1a8o twice.
    assert_eq!(whole.len(), 7 * 300);
    let mut shards = Vec::new();
    for shard in ["1/3", "2/3", "3/3"] {
        let out = format!("of_{}", &shard[..1]);
        run(&out, &[&csv[..], &["--shard", shard]].concat());
        shards.extend(rows_of(&at(&out), "variants"));
    }
    let order = |rows: &mut Vec<std::collections::BTreeMap<String, String>>| {
        rows.sort_by_key(|row| (row["source"].clone(), row["y"].parse::<u32>().unwrap()));
    };
    let mut expected = whole;
    order(&mut expected);
    order(&mut shards);
    assert!(shards == expected);
}

#[test]
fn rows_in_any_order_give_the_same_values() {
    let values = |is_grouped: bool| {
        let folder = tempfile::tempdir().unwrap();
        let tables = tables_of_samples(folder.path(), is_grouped);
        let tables: Vec<&Path> = tables.iter().map(PathBuf::as_path).collect();
        let out = folder.path().join("out");
        annotated(&[SAMPLES], &tables, &out, &["--format", "csv"]);
        ["residues", "structures", "variants"].map(|table| rows_of(&out, table))
    };
    assert!(values(true) == values(false));
}

#[test]
fn memory_does_not_grow_with_the_variants_of_a_structure() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // Each row of the long table has nulls in the columns of the wide one.
    let mut long = "structure,chain,residue,variant\n".to_owned();
    (0..40_000).for_each(|row| writeln!(long, "1ubi,A,{},v", row % 76 + 1).unwrap());
    fs::write(at("long.csv"), long).unwrap();
    let names: String = (0..500).map(|column| format!(",c{column}")).collect();
    let values = ",1".repeat(500);
    let wide = format!("structure,chain,residue,variant{names}\n1ubi,A,1,v{values}\n");
    fs::write(at("wide.csv"), wide).unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    let small = ["--set", "tables.rows_per_group=1000"];
    let tables = [&*at("long.csv"), &*at("wide.csv")];
    annotated(&[&input], &tables, &at("out"), &small);
    let record = record(&at("out"));
    assert_eq!(record["annotations"]["rows_matched"], 40_001);
    assert_eq!(record["annotations"]["rows_read"], 40_001);
    // 40,000 rows of 500 columns with 16 bytes have 320 MB.
    if let Some(peak) = record["memory_bytes"]["process_peak"].as_u64() {
        assert!(peak < 240_000_000, "{peak} bytes");
    }
}

#[test]
fn a_run_does_not_go_on_with_other_rows() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let table = at("mutations.csv");
    fs::write(&table, MUTATIONS).unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    annotated(&[&input], &[&table], &at("out"), &[]);
    annotated(&[&input], &[&table], &at("out"), &["--resume"]);
    let fails = |tables: &[&Path], out: &str| {
        let tables: Vec<&str> = tables.iter().map(|table| str_of(table)).collect();
        let (set, out) = (format!("annotations={tables:?}"), at(out));
        let args = [
            "--features",
            "contact_number,dssp",
            "--set",
            &set,
            "--resume",
        ];
        let (output, code) = run(&[&[&input, "-o", str_of(&out)], &args[..]].concat());
        let said = text_of(&output);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("what the annotations hold differs"), "{said}");
    };
    fs::write(&table, MUTATIONS.replace("0.25", "0.75")).unwrap();
    fails(&[&table], "out");
    // The same rows under other columns of the same names.
    let later = at("later.csv");
    let names = "structure,chain,residue,variant,lineage,frequency\n";
    let row = "1ubi,A,1,V,1,2\n";
    fs::write(&later, format!("{names}{row}")).unwrap();
    annotated(&[&input], &[&table, &later], &at("both"), &[]);
    let names = names.replace("lineage,frequency", "frequency,lineage");
    fs::write(&later, format!("{names}{row}")).unwrap();
    fails(&[&table, &later], "both");
}

#[test]
fn the_table_of_variants_can_be_left_out_or_be_the_only_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("mutations.csv"), MUTATIONS).unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    let tables = at("mutations.csv");
    let run = |out: &str, more: &str| {
        annotated(&[&input], &[&tables], &at(out), &["--set", more]);
        let entries = fs::read_dir(at(out)).unwrap();
        let entries = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut folders: Vec<String> = entries.filter(|name| at(out).join(name).is_dir()).collect();
        folders.sort();
        folders
    };
    assert_eq!(run("only", "tables.written=[\"variants\"]"), ["variants"]);
    assert_eq!(run("one", "tables.written=[\"chains\"]"), ["chains"]);
    assert_eq!(run("none", "tables.annotations=[\"frequency\"]").len(), 4);
    let table = read(&at("none").join("variants/part-00000.parquet"));
    assert!(table.column_by_name("variant").is_some() && table.column_by_name("lineage").is_none());
    // Standard output has no variants, which is said.
    let set = format!("annotations=[{:?}]", str_of(&tables));
    let args = ["-i", &input, "-o", "-", "--features", "rg", "--set", &set];
    let said = text_of(&run_well(&args));
    assert!(said.contains("residues alone"), "{said}");
    // Earlier results with variants are replaced by those without.
    let out = at("only");
    let args = [
        "-i",
        &input,
        "-o",
        str_of(&out),
        "--features",
        "rg",
        "--overwrite",
    ];
    run_well(&args);
    assert!(!out.join("variants/part-00000.parquet").exists());
    refuses("rg", &["tables.written=[\"variants\"]"], &["`variant`"]);
}
