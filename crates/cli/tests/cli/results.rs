//! What a run writes.

mod timeline;

use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Int32Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tapeloop::features::{FeatureConfig, FeatureName, TableName};

pub(super) fn read(path: &Path) -> RecordBatch {
    let file = fs::File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let batches = reader.with_batch_size(1 << 20).build().unwrap();
    let mut batches: Vec<RecordBatch> = batches.map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1, "a table of one row group");
    batches.remove(0)
}

pub(super) fn texts(table: &RecordBatch, column: &str) -> Vec<String> {
    let column = table.column_by_name(column).unwrap().as_string::<i32>();
    let text = |text: Option<&str>| text.unwrap_or("null").to_owned();
    column.iter().map(text).collect()
}

pub(super) fn integers(table: &RecordBatch, column: &str) -> Vec<i32> {
    let column = table.column_by_name(column).unwrap();
    column.as_primitive::<Int32Type>().values().to_vec()
}

/// A column of integers or reals.
pub(super) fn numbers(table: &RecordBatch, column: &str) -> Vec<Option<f64>> {
    let column = table.column_by_name(column).unwrap();
    match column.data_type() {
        DataType::Int32 => {
            let values = column.as_primitive::<Int32Type>().iter();
            values.map(|value| value.map(f64::from)).collect()
        }
        DataType::Float16 => {
            let values = column.as_primitive::<Float16Type>().iter();
            values.map(|value| value.map(f64::from)).collect()
        }
        _ => {
            let values = column.as_primitive::<Float32Type>().iter();
            values.map(|value| value.map(f64::from)).collect()
        }
    }
}

#[test]
fn the_quick_start_streams_every_sample_into_all_tables() {
    let out = tempfile::tempdir().unwrap();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/quickstart.toml");
    let output = run_well(&[config, "--verbose", "--output", str_of(out.path())]);

    let structures = read(&out.path().join("structures/part-00000.parquet"));
    let names = texts(&structures, "structure");
    assert!(names.is_sorted(), "in the order of the directory");
    let ubiquitin = names.iter().position(|name| name == "1ubi").unwrap();
    assert_eq!(integers(&structures, "residues")[ubiquitin], 76);
    assert_eq!(integers(&structures, "chains")[ubiquitin], 1);
    assert_eq!(integers(&structures, "breaks")[ubiquitin], 0);

    let residues = read(&out.path().join("residues/part-00000.parquet"));
    let total: i32 = integers(&structures, "residues").iter().sum();
    assert_eq!(residues.num_rows(), total as usize);
    let expected = [
        "source",
        "structure",
        "model",
        "res_index",
        "entry_id",
        "auth_asym_id",
        "auth_seq_id",
        "ins_code",
        "label_asym_id",
        "label_seq_id",
        "entity_id",
        "comp_id",
        "parent_comp_id",
        "aa",
        "break_before",
        "uniprot_acc",
        "uniprot_pos",
        "flags",
    ];
    let schema = residues.schema();
    let columns: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let features = FeatureConfig::default().columns(TableName::Residues);
    let features = features.iter().map(|column| column.name.as_str());
    let expected: Vec<&str> = expected.into_iter().chain(features).collect();
    assert_eq!(columns, expected);

    let chains = read(&out.path().join("chains/part-00000.parquet"));
    let of_chains: i32 = integers(&chains, "residues").iter().sum();
    assert_eq!(of_chains, total);
    let breaks = |table| integers(table, "breaks").iter().sum::<i32>();
    assert_eq!(breaks(&chains), breaks(&structures));
    let chain_count: i32 = integers(&structures, "chains").iter().sum();
    assert_eq!(chains.num_rows(), chain_count as usize);

    let record = record(out.path());
    assert_eq!(record["counts"]["residues"], total);
    assert_eq!(record["counts"]["structures"], structures.num_rows());
    assert_eq!(record["backend"]["name"], "cpu");
    assert_eq!(record["interrupted"], false);
    assert!(rejected(out.path()).is_empty());
    let summary = text(&output.stderr);
    for word in ["structures", "residues", "atoms", "seconds by stage"] {
        assert!(summary.contains(word), "{summary}");
    }
}

#[test]
fn selenomethionine_has_its_parent_and_the_samples_their_nulls() {
    let out = tempfile::tempdir().unwrap();
    let sample = as_named(format!("{SAMPLES}/1a8o.cif.gz"));
    run_well(&["-i", &sample, "-o", str_of(out.path())]);
    let table = read(&out.path().join("residues/part-00000.parquet"));
    assert_eq!(texts(&table, "source")[0], sample);
    assert_eq!(texts(&table, "structure")[0], "1a8o");
    assert_eq!(texts(&table, "entry_id")[0], "1A8O");
    assert_eq!(texts(&table, "comp_id")[0], "MSE");
    assert_eq!(texts(&table, "parent_comp_id")[0], "MET");
    assert_eq!(texts(&table, "aa")[0], "M");
    assert_eq!(texts(&table, "ins_code")[0], "null");
    // The first residue has no neighbour before it, so no half spheres.
    assert!(table.column_by_name("hse_a_up").unwrap().is_null(0));
}

#[test]
fn no_sentinel_stands_for_null() {
    let out = tempfile::tempdir().unwrap();
    run_well(&["-i", SAMPLES, "-o", str_of(out.path())]);
    for table in TABLES {
        let table = read(&out.path().join(table).join("part-00000.parquet"));
        for (field, column) in table.schema().fields().iter().zip(table.columns()) {
            match field.data_type() {
                DataType::Float32 => {
                    let column = column.as_primitive::<Float32Type>();
                    assert!(column.iter().flatten().all(f32::is_finite), "{field}");
                }
                DataType::Int32 if !field.name().contains("seq_id") => {
                    let column = column.as_primitive::<Int32Type>();
                    assert!(column.iter().flatten().all(|n| n >= 0), "{field}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn the_same_bytes_whatever_the_slots_threads_batches_and_mode() {
    let cut = [
        "--set",
        "tables.inputs_per_part=7",
        "--set",
        "tables.rows_per_group=1000",
    ];
    let folder = tempfile::tempdir().unwrap();
    let small = small_samples(folder.path());
    let write = |samples: &str, options: &[&str]| {
        let out = tempfile::tempdir().unwrap();
        let common = ["-i", samples, "--models", "all", "-o", str_of(out.path())];
        run_well(&[&common[..], &cut, options].concat());
        parts(out.path())
    };
    let check = |samples: &str, inputs: usize, several: &[&[&str]]| {
        let expected = write(samples, &[]);
        assert_eq!(expected.len(), TABLES.len() * inputs.div_ceil(7));
        for options in several {
            let found = write(samples, options);
            assert!(found == expected, "other bytes with {options:?}");
        }
    };
    // The largest sample takes as long as all others, and is in these two runs alone.
    let large = [
        "--set",
        "batch.residues=1",
        "--set",
        "batch.residues_max=4096",
    ];
    check(SAMPLES, 24, &[&large]);
    let options = [
        &["--slots", "1", "--threads", "1"][..],
        &["--slots", "7", "--threads", "5", "--set", "wait=spin"],
        &["--mode", "stream"],
        &["--mode", "resident", "--set", "batch.residues=200"],
        #[cfg(target_os = "linux")]
        &[
            "--set",
            "supervise=true",
            "--set",
            "batch.deadline_ms=600000",
        ],
        // Most structures run alone, and then all of them.
        &[
            "--set",
            "batch.residues=50",
            "--set",
            "batch.residues_max=100",
        ],
        &["--set", "batch.residues=1", "--set", "batch.residues_max=1"],
        &[
            "--set",
            "batch.residues=100",
            "--mode",
            "stream",
            "--slots",
            "2",
        ],
    ];
    check(str_of(&small), 23, &options);
}

#[test]
fn all_models_are_structures_of_their_own_and_count_as_one_input() {
    let out = tempfile::tempdir().unwrap();
    let input = format!("{SAMPLES}/1a1p.pdb.gz");
    let one_a_part = "tables.inputs_per_part=1";
    let args = ["-i", &input, "--models", "all", "--set", one_a_part];
    run_well(&[&args[..], &["-o", str_of(out.path())]].concat());
    let table = read(&out.path().join("structures/part-00000.parquet"));
    let models: Vec<i32> = (1..=21).collect();
    assert_eq!(integers(&table, "model"), models);
    assert_eq!(parts(out.path()).len(), TABLES.len());
}

#[test]
fn chosen_features_alone_have_columns() {
    let out = tempfile::tempdir().unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    let features = [
        "--features",
        "rg,contact_number",
        "--set",
        "contact_number.ca=[6.5]",
    ];
    let only_ca = ["--set", "contact_number.cb=[]", "-o", str_of(out.path())];
    run_well(&[&["-i", &input][..], &features, &only_ca].concat());
    let residues = read(&out.path().join("residues/part-00000.parquet"));
    assert_eq!(residues.num_columns(), 18 + 1);
    assert!(residues.column_by_name("cn_ca_6_5").is_some());
    let structures = read(&out.path().join("structures/part-00000.parquet"));
    assert!(structures.column_by_name("rg_ca").is_some());
}

#[test]
fn presets_and_names_choose_features_and_the_metadata_has_what_decides_the_values() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("job.toml");
    let input = format!("{SAMPLES}/1ubi.pdb");
    let chosen = |features: &str| {
        let out = folder.path().join("out");
        fs::write(&config, format!("features = {features}\nhse_a.radius = 13")).unwrap();
        let args = [
            str_of(&config),
            "-i",
            &input,
            "-o",
            str_of(&out),
            "--overwrite",
        ];
        run_well(&args);
        let record = record(&out);
        let values = record["values_follow_from"]["tapeloop.features"]
            .as_str()
            .unwrap();
        (record["config"]["features"].clone(), values.to_owned())
    };
    let (names, values) = chosen("\"exposure\"");
    assert_eq!(
        chosen("[\"wcn\", \"exposure\"]"),
        (names.clone(), values.clone())
    );
    assert!(
        names.as_array().unwrap().contains(&"hse_a".into()),
        "{names}"
    );
    let values: serde_json::Value = serde_json::from_str(&values).unwrap();
    assert_eq!(
        values["hse_a"],
        serde_json::json!({ "radius": 13.0, "chains": "all" })
    );
    assert_eq!(
        values["contact_number"]["cb"],
        serde_json::json!([8.0, 10.0])
    );
    assert_eq!(values["rg"], serde_json::Value::Null, "rg is not computed");
    let (all, _) = chosen("\"all\"");
    assert_eq!(all.as_array().unwrap().len(), FeatureName::ALL.len());
}

#[test]
fn suspect_columns_are_warned_of_and_every_column_has_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let text_of = fs::read_to_string(format!("{SAMPLES}/1ubi.pdb")).unwrap();
    // One B factor for all atoms: none deviates from its chain's mean.
    let flat = text_of.lines().map(|line| match line.split_at_checked(60) {
        Some((start, rest)) if line.starts_with("ATOM") => format!("{start} 20.00{}\n", &rest[6..]),
        _ => format!("{line}\n"),
    });
    let input = folder.path().join("flat.pdb");
    fs::write(&input, flat.collect::<String>()).unwrap();
    let summary = |input: &str, name: &str| {
        let out = folder.path().join(name);
        let output = run_well(&["-i", input, "-o", str_of(&out)]);
        (text(&output.stderr), record(&out)["columns"].clone())
    };
    let (said, columns) = summary(str_of(&input), "dead");
    assert!(
        has_parts(&said, "warning: .. residues/b_z .. null .. 76 rows"),
        "{said}"
    );
    assert_eq!(columns["residues"]["b_z"]["null_share"], 1.0);
    assert_eq!(columns["residues"]["aa"]["min"], "A");
    assert_eq!(columns["residues"]["res_index"]["max"], 75);
    assert_eq!(columns["chains"]["residues"]["constant"], true);
    assert_eq!(columns["structures"]["residues"]["min"], 76);
    let (said, columns) = summary(&format!("{SAMPLES}/1ubi.pdb"), "alive");
    assert!(!said.contains("b_z"), "{said}");
    assert!(columns["residues"]["b_z"]["min"].as_f64().unwrap() < 0.0);
}

#[test]
fn with_assembly_1_the_assembly_is_read_and_the_table_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = ["4cup.cif.gz", "1lcd.pdb.gz"].map(|name| format!("{SAMPLES}/{name}"));
    let out = folder.path().join("out");
    let run = |assembly: &str| {
        let set = format!("assembly={assembly}");
        let args = [
            "-i",
            &inputs[0],
            "-i",
            &inputs[1],
            "-o",
            str_of(&out),
            "--overwrite",
            "-v",
        ];
        let output = run_well(&[&args[..], &["--set", &set, "--features", "rg"]].concat());
        let structures = read(&out.join("structures/part-00000.parquet"));
        let chains = texts(
            &read(&out.join("chains/part-00000.parquet")),
            "auth_asym_id",
        );
        let built = texts(&structures, "assembly");
        (
            text(&output.stderr),
            built,
            integers(&structures, "residues"),
            chains,
            record(&out),
        )
    };
    let (said, built, residues, chains, first) = run("deposited");
    assert!(!said.contains("deposited chains"), "{said}");
    assert_eq!(built, ["deposited", "deposited"]);
    assert_eq!(residues[0], 115);
    assert_eq!(chains, ["A", "A"]);
    assert_eq!(first["counts"]["assemblies"], 0);
    let (said, built, residues, chains, second) = run("1");
    assert!(has_parts(&said, "deposited chains .. : 1\n"), "{said}");
    assert_eq!(built, ["1", "deposited"]);
    assert_eq!(residues[0], 230);
    assert_eq!(chains, ["A", "A-2", "A"]);
    assert_eq!(second["counts"]["assemblies"], 1);
    let reader = second["values_follow_from"]["tapeloop.reader"]
        .as_str()
        .unwrap();
    assert!(reader.contains(r#""assembly":"1""#), "{reader}");
}

#[test]
fn scaled_plddt_and_rounded_atoms_are_logged_once_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let text_of = fs::read_to_string(format!("{SAMPLES}/1ubi.pdb")).unwrap();
    // Without the header, which states an experiment.
    let lines = text_of.lines().filter(|line| line.starts_with("ATOM"));
    let shares = lines.map(|line| match line.split_at_checked(60) {
        Some((start, rest)) if line.starts_with("ATOM") => format!("{start}  0.90{}\n", &rest[6..]),
        _ => format!("{line}\n"),
    });
    let title = "TITLE     ALPHAFOLD MONOMER V2.0 PREDICTION\n";
    let predicted = folder.path().join("predicted.pdb");
    fs::write(
        &predicted,
        shares.fold(title.to_owned(), |text, line| text + &line),
    )
    .unwrap();
    let again = folder.path().join("again.pdb");
    fs::copy(&predicted, &again).unwrap();
    let decimals = format!("{SAMPLES}/boltz2-p28335.cif.gz");
    let out = folder.path().join("out");
    let run = |more: &[&str]| {
        let args = [
            "-i",
            str_of(&predicted),
            "-i",
            str_of(&again),
            "-i",
            &decimals,
        ];
        let output = ["-v", "-o", str_of(&out), "--features", "rg", "--overwrite"];
        let said = text(&run_well(&[&args[..], &output, more].concat()).stderr);
        (said.matches("multiplied by 100").count(), record(&out))
    };
    let (said, first) = run(&[]);
    assert_eq!(said, 1);
    assert_eq!(first["counts"]["scaled_plddt"], 2);
    assert!(first["counts"]["rounded_atoms"].as_u64().unwrap() > 1000);
    let (said, second) = run(&["--set", "b_factor=b"]);
    assert_eq!(said, 0);
    assert_eq!(second["counts"]["scaled_plddt"], 0);
    let reader = |record: &serde_json::Value| {
        record["values_follow_from"]["tapeloop.reader"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(
        reader(&first).contains(r#""b_factor":"auto""#),
        "{}",
        reader(&first)
    );
    assert!(
        reader(&second).contains(r#""b_factor":"b""#),
        "{}",
        reader(&second)
    );
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_number_of_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.txt");
    let links = links_to("1ubi.pdb", folder.path(), 3000);
    let peak = |inputs: usize| {
        let lines = links[..inputs].iter();
        let lines: String = lines.map(|link| format!("{}\n", link.display())).collect();
        fs::write(&list, lines).unwrap();
        let out = folder.path().join("out");
        let item = format!("@{}", list.display());
        let group = ["--set", "tables.rows_per_group=4096", "--features", "rg"];
        let args = ["-i", &item, "-o", str_of(&out), "--overwrite", "-q"];
        run_well(&[&args[..], &group].concat());
        let record = record(&out);
        assert_eq!(record["counts"]["structures"], inputs);
        record["memory_bytes"]["process_peak"].as_u64().unwrap()
    };
    let (few, many) = (peak(300), peak(3000));
    assert!(many < 300 << 20, "{many} bytes");
    assert!(many < few + (32 << 20), "{few} bytes, then {many}");
}
