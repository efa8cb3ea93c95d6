//! The tables of contacts and of hydrogen bonds.

use super::*;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_ipc::reader::FileReader;
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::HashMap;

/// The rows of a CSV file by their columns.
fn rows(part: &Path) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(part).unwrap();
    let mut lines = text.lines().map(|line| line.split(','));
    let header: Vec<&str> = lines.next().unwrap().collect();
    let row = |line: std::str::Split<'_, char>| {
        let fields = header.iter().zip(line);
        fields
            .map(|(name, field)| ((*name).into(), field.into()))
            .collect()
    };
    lines.map(row).collect()
}

fn integer(row: &HashMap<String, String>, name: &str) -> i64 {
    row[name].parse().unwrap()
}

fn run_into(out: &Path, more: &[&str]) {
    run_as("csv", out, more);
}

fn run_as(format: &str, out: &Path, more: &[&str]) {
    let input = format!("{SAMPLES}/1ubi.pdb");
    let complex = format!("{SAMPLES}/1hvr.pdb.gz");
    let start = [&complex, &input, "-o", str_of(out), "--format", format];
    let features = r#"features=["contact_number","contacts"]"#;
    let start = [&start[..], &["--set", features]].concat();
    run_well(&[&start[..], more].concat());
}

const CA: [&str; 2] = ["--set", r#"contacts.atom="ca""#];

#[test]
fn pairs_add_up_to_the_contact_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    run_into(&out, &CA);
    let pairs = rows(&out.join("contacts/part-00000.csv"));
    let residues = rows(&out.join("residues/part-00000.csv"));
    let mut near: HashMap<(String, i64), i64> = HashMap::new();
    let mut order = Vec::new();
    for pair in &pairs {
        let [i, j] = ["res_index_i", "res_index_j"].map(|name| integer(pair, name));
        order.push((pair["structure"].clone(), i, j));
        for residue in [i, j] {
            *near
                .entry((pair["structure"].clone(), residue))
                .or_default() += 1;
        }
        let [distance, least] =
            ["distance", "min_distance"].map(|name| pair[name].parse::<f64>().unwrap());
        assert!(
            least <= distance && distance < 10.0 && least > 0.5,
            "{pair:?}"
        );
        let separation = pair["separation"].as_str();
        match pair["same_chain"].as_str() {
            "true" => assert_eq!(separation, (j - i).to_string()),
            _ => assert_eq!(separation, ""),
        }
    }
    assert!(order.is_sorted(), "by structure, i and j");
    assert!(pairs.iter().any(|pair| pair["same_chain"] == "false"));
    for residue in residues {
        let key = (residue["structure"].clone(), integer(&residue, "res_index"));
        let expected = integer(&residue, "cn_ca_10");
        assert_eq!(near.get(&key).copied().unwrap_or(0), expected, "{key:?}");
    }
}

/// The names of both residues are those of their rows of residues.
fn has_names(
    pairs: &[HashMap<String, String>],
    residues: &[HashMap<String, String>],
    sides: [&str; 2],
) {
    let key =
        |row: &HashMap<String, String>, index: &str| (row["structure"].clone(), row[index].clone());
    let residues: HashMap<_, _> = residues
        .iter()
        .map(|row| (key(row, "res_index"), row))
        .collect();
    assert!(!pairs.is_empty());
    for pair in pairs {
        for side in sides {
            let residue = residues[&key(pair, &format!("res_index_{side}"))];
            for name in ["auth_asym_id", "auth_seq_id", "ins_code", "comp_id"] {
                assert_eq!(pair[&format!("{name}_{side}")], residue[name], "{pair:?}");
            }
        }
    }
}

#[test]
fn both_residues_of_a_pair_are_named_unless_a_key_leaves_the_names_out() {
    let folder = tempfile::tempdir().unwrap();
    let [named, unnamed] = ["named", "unnamed"].map(|name| folder.path().join(name));
    let input = format!("{SAMPLES}/1hvr.pdb.gz");
    let start = [
        &*input,
        "--format",
        "csv",
        "--features",
        "contacts,hydrogen_bonds",
    ];
    let start = [&start[..], &CA].concat();
    run_well(&[&start[..], &["-o", str_of(&named)]].concat());
    let leaves_out = ["--set", "tables.pair_names=false", "-o", str_of(&unnamed)];
    run_well(&[&start[..], &leaves_out].concat());
    let of = |out: &Path, table: &str| rows(&out.join(table).join("part-00000.csv"));
    let residues = of(&named, "residues");
    for (table, sides) in [
        ("contacts", ["i", "j"]),
        ("hydrogen_bonds", ["donor", "acceptor"]),
    ] {
        let mut pairs = of(&named, table);
        has_names(&pairs, &residues, sides);
        for pair in &mut pairs {
            pair.retain(|column, _| {
                let is_name = |name: &str| column.starts_with(name);
                !["auth_", "ins_code", "comp_id"].into_iter().any(is_name)
            });
        }
        assert_eq!(pairs, of(&unnamed, table));
    }
}

#[test]
fn the_table_does_not_depend_on_batches_and_is_there_only_if_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let [large, small, none, chosen] =
        ["large", "small", "none", "chosen"].map(|name| folder.path().join(name));
    run_into(&large, &CA);
    // All structures run alone.
    let few = [
        &CA[..],
        &[
            "--set",
            "batch.residues=16",
            "--set",
            "batch.residues_max=16",
        ],
    ];
    run_into(&small, &few.concat());
    let [one, other] =
        [&large, &small].map(|out| fs::read(out.join("contacts/part-00000.csv")).unwrap());
    assert!(one == other);
    let input = format!("{SAMPLES}/1ubi.pdb");
    run_well(&[&input, "-o", str_of(&none), "--set", r#"features=["rg"]"#]);
    assert!(!none.join("contacts").exists());
    // Pairs of residues that both have rows.
    run_into(
        &chosen,
        &[&CA[..], &["--where", "aa in ('L', 'I')"]].concat(),
    );
    let residues = rows(&chosen.join("residues/part-00000.csv"));
    let has_row: Vec<_> = residues
        .iter()
        .map(|row| (row["structure"].clone(), row["res_index"].clone()))
        .collect();
    let all = rows(&large.join("contacts/part-00000.csv"));
    let both = |row: &&HashMap<String, String>| {
        ["res_index_i", "res_index_j"]
            .iter()
            .all(|name| has_row.contains(&(row["structure"].clone(), row[*name].clone())))
    };
    let expected: Vec<_> = all.iter().filter(both).cloned().collect();
    assert!(!expected.is_empty());
    assert_eq!(rows(&chosen.join("contacts/part-00000.csv")), expected);
}

/// The record batches of an Arrow file.
fn batches(part: &Path) -> Vec<RecordBatch> {
    let reader = FileReader::try_new(fs::File::open(part).unwrap(), None).unwrap();
    reader.map(Result::unwrap).collect()
}

#[test]
fn the_texts_of_an_arrow_file_are_one_dictionary_of_all_its_row_groups() {
    let folder = tempfile::tempdir().unwrap();
    let [csv, arrow, again] = ["csv", "arrow", "again"].map(|name| folder.path().join(name));
    run_into(&csv, &CA);
    let expected = rows(&csv.join("contacts/part-00000.csv"));
    let small = ["--set", "tables.rows_per_group=300"];
    run_as("arrow", &arrow, &[&CA[..], &small].concat());
    let more = ["--threads", "1", "--set", "batch.residues=100"];
    run_as("arrow", &again, &[&CA[..], &small, &more].concat());
    let part = |out: &Path| out.join("contacts/part-00000.arrow");
    assert!(fs::read(part(&arrow)).unwrap() == fs::read(part(&again)).unwrap());
    let batches = batches(&part(&arrow));
    assert!(batches.len() > 3);
    let dictionary = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
    let mut found = 0;
    for batch in &batches {
        let sources = ["1hvr.pdb.gz", "1ubi.pdb"].map(|name| as_named(format!("{SAMPLES}/{name}")));
        for (name, expected_texts) in [
            ("structure", ["1hvr", "1ubi"]),
            ("source", sources.each_ref().map(|source| source.as_str())),
        ] {
            let column = batch.column_by_name(name).unwrap();
            assert_eq!(*column.data_type(), dictionary, "{name}");
            let column = column.as_dictionary::<Int32Type>();
            let texts: Vec<_> = column
                .values()
                .as_string::<i32>()
                .iter()
                .flatten()
                .collect();
            assert_eq!(texts, expected_texts, "in the order of the rows");
            for (row, key) in column.keys().iter().enumerate() {
                assert_eq!(expected[found + row][name], texts[key.unwrap() as usize]);
            }
        }
        let second = batch.column_by_name("res_index_j").unwrap();
        for (row, second) in second
            .as_primitive::<Int32Type>()
            .values()
            .iter()
            .enumerate()
        {
            assert_eq!(
                integer(&expected[found + row], "res_index_j"),
                i64::from(*second)
            );
        }
        found += batch.num_rows();
    }
    assert_eq!(found, expected.len());
    // Other tables have plain strings.
    let chains = self::batches(&arrow.join("chains/part-00000.arrow"));
    let column = chains[0].column_by_name("structure").unwrap();
    assert_eq!(*column.data_type(), DataType::Utf8);
}

#[test]
fn tables_that_settings_leave_out_say_what_to_set() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (format!("{SAMPLES}/1ubi.pdb"), folder.path().join("out"));
    let start = [&input, "-o", str_of(&out), "--set"];
    for (more, expected) in [
        (r#"features=["contacts"]"#, "set contacts.atom"),
        (r#"tables.written=["contacts"]"#, "contacts.atom"),
        (
            r#"tables.written=["hydrogen_bonds"]"#,
            "`hydrogen_bonds` is true",
        ),
        ("contacts.nearest=65", "0 to 64"),
    ] {
        let (output, code) = run(&[&start[..], &[more]].concat());
        assert_eq!(code, 2);
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{said}");
        assert!(!out.exists());
    }
}

/// Runs over the samples into tables of pairs of a format.
fn run_pairs(format: &str, out: &Path, more: &[&str]) {
    let features = r#"features=["dssp","contacts","hydrogen_bonds"]"#;
    let start = [
        "--set",
        features,
        "--set",
        r#"contacts.atom="any""#,
        "--set",
        "contacts.nearest=7",
        "--set",
        "hydrogen_bonds=true",
    ];
    run_as(format, out, &[&start[..], more].concat());
}

const PAIRS: [&str; 2] = ["contacts", "hydrogen_bonds"];

#[test]
fn each_residue_has_its_nearest_residues_in_the_order_of_their_distances() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    run_pairs("csv", &out, &[]);
    let pairs = rows(&out.join("contacts/part-00000.csv"));
    let residues = rows(&out.join("residues/part-00000.csv"));
    assert_eq!(pairs.len(), 7 * residues.len());
    for (residue, pairs) in residues.iter().zip(pairs.chunks(7)) {
        let of = |name: &str| {
            pairs
                .iter()
                .map(|pair| pair[name].clone())
                .collect::<Vec<_>>()
        };
        assert!(
            of("structure")
                .iter()
                .all(|name| *name == residue["structure"])
        );
        assert!(
            of("res_index_i")
                .iter()
                .all(|index| *index == residue["res_index"])
        );
        assert_eq!(of("distance"), of("min_distance"));
        let ranks = pairs.iter().map(|pair| {
            let distance: f64 = pair["distance"].parse().unwrap();
            (distance, integer(pair, "res_index_j"))
        });
        assert!(ranks.is_sorted_by(|one, other| one < other), "{residue:?}");
    }
    let separations = pairs.iter().map(|pair| pair["separation"].clone());
    let separations: Vec<String> = separations.collect();
    assert!(
        ["-1", "1", ""]
            .iter()
            .all(|one| separations.iter().any(|it| it == one))
    );
}

#[test]
fn hydrogen_bonds_are_those_of_the_residues() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    run_pairs("csv", &out, &[]);
    let bonds = rows(&out.join("hydrogen_bonds/part-00000.csv"));
    let key = |row: &HashMap<String, String>, donor: &str, acceptor: &str, energy: &str| {
        [&row["structure"], &row[donor], &row[acceptor], &row[energy]].map(String::clone)
    };
    let of_bonds: Vec<_> = bonds
        .iter()
        .map(|row| key(row, "res_index_donor", "res_index_acceptor", "energy"))
        .collect();
    let residues = rows(&out.join("residues/part-00000.csv"));
    let of_residues = residues.iter().flat_map(|row| {
        ["hb_nho1", "hb_nho2"].map(|name| key(row, "res_index", name, &format!("{name}_energy")))
    });
    let is_bond = |key: &[String; 4]| key[3].parse::<f64>().is_ok_and(|energy| energy < -0.5);
    let mut of_residues: Vec<_> = of_residues.filter(is_bond).collect();
    assert!(of_residues.len() > 150);
    let number = |key: &[String; 4]| {
        let [donor, acceptor] = [1, 2].map(|at| key[at].parse::<i32>().unwrap());
        (key[0].clone(), donor, acceptor)
    };
    of_residues.sort_by_key(number);
    // No N-H of the samples has three bonds.
    assert_eq!(of_bonds, of_residues);
    for bond in &bonds {
        let [donor, acceptor] =
            ["res_index_donor", "res_index_acceptor"].map(|name| integer(bond, name));
        match bond["same_chain"].as_str() {
            "true" => assert_eq!(integer(bond, "separation"), acceptor - donor),
            _ => assert_eq!(bond["separation"], ""),
        }
    }
    assert!(bonds.iter().any(|bond| bond["separation"] == "-4"));
    // Bonds of residues that both have rows.
    let chosen = folder.path().join("chosen");
    run_pairs("csv", &chosen, &["--where", "ss3 == 'E'"]);
    let chosen_rows = rows(&chosen.join("hydrogen_bonds/part-00000.csv"));
    let strands: Vec<_> = residues.iter().filter(|row| row["ss3"] == "E").collect();
    let has_row = |bond: &HashMap<String, String>, name: &str| {
        let mut rows = strands.iter();
        rows.any(|row| row["structure"] == bond["structure"] && row["res_index"] == bond[name])
    };
    let both = |bond: &&HashMap<String, String>| {
        has_row(bond, "res_index_donor") && has_row(bond, "res_index_acceptor")
    };
    let expected: Vec<_> = bonds.iter().filter(both).cloned().collect();
    assert!(!expected.is_empty() && expected.len() < bonds.len());
    assert_eq!(chosen_rows, expected);
}

#[test]
fn tables_of_pairs_do_not_depend_on_batches_nor_on_residues_that_were_not_observed() {
    let folder = tempfile::tempdir().unwrap();
    let [usual, small, more] = ["usual", "small", "more"].map(|name| folder.path().join(name));
    let gaps = format!("{SAMPLES}/4cup.cif.gz");
    run_pairs("csv", &usual, &[&gaps]);
    let few = ["batch.residues=16", "batch.residues_max=16", "threads=1"];
    let few = few.map(|setting| ["--set", setting]);
    run_pairs(
        "csv",
        &small,
        &[&[gaps.as_str()], &few.concat()[..]].concat(),
    );
    run_pairs("csv", &more, &[&gaps, "--set", "unobserved=true"]);
    for table in PAIRS {
        let part = |out: &Path| fs::read(out.join(table).join("part-00000.csv")).unwrap();
        assert!(part(&usual) == part(&small), "{table}");
        assert!(part(&usual) == part(&more), "{table}");
    }
    let count = |out: &Path| rows(&out.join("residues/part-00000.csv")).len();
    assert!(count(&more) > count(&usual));
}

#[test]
fn all_formats_have_the_same_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let [csv, json, arrow, parquet] =
        ["csv", "json", "arrow", "parquet"].map(|name| folder.path().join(name));
    let indices = [
        ["res_index_i", "res_index_j"],
        ["res_index_donor", "res_index_acceptor"],
    ];
    for out in [&csv, &json, &arrow, &parquet] {
        run_pairs(out.file_name().unwrap().to_str().unwrap(), out, &[]);
    }
    for (table, names) in PAIRS.into_iter().zip(indices) {
        let part = |out: &Path, ending: &str| out.join(table).join(format!("part-00000.{ending}"));
        let expected = rows(&part(&csv, "csv"));
        let expected: Vec<_> = expected
            .iter()
            .map(|row| names.map(|name| integer(row, name)))
            .collect();
        let text = fs::read_to_string(part(&json, "json")).unwrap();
        let of_json: Vec<_> = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|row| names.map(|name| row[name].as_i64().unwrap()))
            .collect();
        assert_eq!(of_json, expected, "{table}");
        let parquet = fs::File::open(part(&parquet, "parquet")).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap();
        let of_parquet: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
        for batches in [batches(&part(&arrow, "arrow")), of_parquet] {
            let mut found = Vec::new();
            for batch in &batches {
                let columns = names.map(|name| {
                    let column = batch.column_by_name(name).unwrap();
                    column.as_primitive::<Int32Type>().clone()
                });
                found.extend((0..batch.num_rows()).map(|row| {
                    columns
                        .each_ref()
                        .map(|column| i64::from(column.value(row)))
                }));
            }
            assert_eq!(found, expected, "{table}");
        }
    }
    let bonds = batches(&arrow.join("hydrogen_bonds/part-00000.arrow"));
    let column = bonds[0].column_by_name("structure").unwrap();
    let dictionary = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
    assert_eq!(*column.data_type(), dictionary);
}
