//! The formats of the tables, and what reads and replaces them.

use super::*;
use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;

const FORMATS: [&str; 3] = ["parquet", "arrow", "csv"];

/// Runs over `inputs` into `out`, in a format.
fn run_as(format: &str, inputs: &[&str], out: &Path, more: &[&str]) -> (Output, i32) {
    let format = format!("tables.format={format}");
    let mut args = vec!["-o", str_of(out), "--set", &format];
    args.extend(inputs.iter().flat_map(|input| ["-i", *input]));
    run(&[&args, more].concat())
}

fn read_arrow(path: &Path) -> Vec<RecordBatch> {
    let reader = FileReader::try_new(fs::File::open(path).unwrap(), None).unwrap();
    reader.map(Result::unwrap).collect()
}

/// The names of all parts, and of temporary ones.
fn names(out: &Path) -> Vec<String> {
    let parts = parts(out).into_iter();
    let mut names: Vec<String> = parts.map(|(path, _)| str_of(&path).to_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_format_has_all_features_of_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    let [parquet, arrow, csv] = FORMATS.map(|format| {
        let out = folder.path().join(format);
        let (output, code) = run_as(format, &[SAMPLES], &out, &[]);
        assert_eq!(code, 0, "{}", text(&output.stderr));
        let record = record(&out);
        assert_eq!(record["config"]["tables.format"], format);
        (out, record["columns"].clone())
    });
    assert_eq!(parquet.1, arrow.1);
    assert_eq!(parquet.1, csv.1);
    for table in TABLES {
        let part = |out: &Path, format| out.join(table).join(format!("part-00000.{format}"));
        let expected = results::read(&part(&parquet.0, "parquet"));
        let found = read_arrow(&part(&arrow.0, "arrow"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].schema().fields(), expected.schema().fields());
        assert_eq!(found[0].columns(), expected.columns());
        let mut rows = csv::Reader::from_path(part(&csv.0, "csv")).unwrap();
        let names = rows.headers().unwrap().clone();
        let schema = expected.schema();
        assert!(
            names
                .iter()
                .eq(schema.fields().iter().map(|field| field.name()))
        );
        assert_eq!(rows.records().count(), expected.num_rows());
    }
}

#[test]
fn the_bytes_of_every_format_do_not_depend_on_threads_slots_and_batches() {
    for (format, compression) in [("arrow", "none"), ("arrow", "zstd"), ("csv", "none")] {
        let compression = format!("tables.compression={compression}");
        let cut = ["tables.inputs_per_part=7", "tables.rows_per_group=1000"];
        let write = |options: &[&str]| {
            let out = tempfile::tempdir().unwrap();
            let set = [cut[0], cut[1], &compression].map(|key| ["--set", key]);
            let more = [&set.concat()[..], options].concat();
            let (output, code) = run_as(format, &[SAMPLES], out.path(), &more);
            assert_eq!(code, 0, "{}", text(&output.stderr));
            parts(out.path())
        };
        let one = write(&["--threads", "1", "--slots", "1"]);
        assert_eq!(one.len(), TABLES.len() * 24usize.div_ceil(7));
        let other = [
            "--threads",
            "5",
            "--slots",
            "7",
            "--set",
            "batch.residues=200",
        ];
        assert!(one == write(&other), "{format}, {compression}");
    }
}

#[test]
fn results_of_another_format_are_results_and_are_replaced_whole() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path();
    let sample = format!("{SAMPLES}/1ubi.pdb");
    let two = ["--features", "rg", "--set", "tables.inputs_per_part=1"];
    let one = ["--features", "rg"];
    let of = |format: &str, count: usize| {
        let part = |table, part| format!("{table}/part-{part:05}.{format}");
        let mut parts: Vec<String> = TABLES
            .iter()
            .flat_map(|table| (0..count).map(move |number| part(*table, number)))
            .collect();
        parts.sort();
        parts
    };
    assert_eq!(run_as("arrow", &[&sample, &sample], out, &two).1, 0);
    assert_eq!(names(out), of("arrow", 2));
    for (format, before) in [("csv", of("arrow", 2)), ("parquet", of("csv", 1))] {
        let (output, code) = run_as(format, &[&sample], out, &one);
        assert_eq!(code, 2);
        let said = text(&output.stderr);
        assert!(said.contains("holds the results of a run"), "{said}");
        assert_eq!(names(out), before);
        let left = out.join(format!("chains/.part-00001.{format}.tmp"));
        fs::write(&left, "left by a kill").unwrap();
        let overwrite = [&one[..], &["--overwrite"]].concat();
        assert_eq!(run_as(format, &[&sample], out, &overwrite).1, 0);
        assert_eq!(names(out), of(format, 1));
    }
}

/// A limit on the size of files acts as a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_fails_the_run_in_every_format_and_leaves_no_part() {
    let cases = [
        ("parquet", "lz4"),
        ("arrow", "none"),
        ("arrow", "zstd"),
        ("csv", "none"),
    ];
    // The tables reach the limit at their start, or in a row group before the last.
    for (blocks, rows) in [(16, 1 << 17), (128, 500)] {
        for (format, compression) in cases {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("out");
            let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
            let set = [
                format!("tables.format={format}"),
                format!("tables.compression={compression}"),
                format!("tables.rows_per_group={rows}"),
            ];
            let output = Command::new("sh")
                .args(["-c", &line, env!("CARGO_BIN_EXE_tapeloop"), "run"])
                .args(["--backend", "cpu", "-i", SAMPLES, "-o", str_of(&out)])
                .args(set.iter().flat_map(|key| ["--set", key]))
                .output()
                .unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{format}: {said}");
            let part = format!(".part-00000.{format}.tmp: File too large");
            assert!(said.contains(&part), "{said}");
            assert!(names(&out).is_empty(), "no part, whole or half");
            assert_eq!(record(&out)["state"], "failed");
        }
    }
}

#[test]
fn a_table_of_residues_in_csv_is_one_of_annotations_and_one_in_arrow_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let sample = format!("{SAMPLES}/1gbt.cif.gz");
    let smoothed = |format: &str| {
        let first = at(format);
        let features = ["--features", "b_factor,sasa"];
        assert_eq!(run_as(format, &[&sample], &first, &features).1, 0);
        let annotations = format!("annotations={}", first.join("residues").display());
        let smooth = ["smooth.channels=sasa", &annotations].map(|key| ["--set", key]);
        let args = [&["--features", "smooth"][..], &smooth.concat()].concat();
        let out = at(&format!("of_{format}"));
        let (output, code) = run_as("parquet", &[&sample], &out, &args);
        (out, text(&output.stderr), code)
    };
    let [parquet, arrow, csv] = FORMATS.map(smoothed);
    assert_eq!((parquet.2, csv.2), (0, 0), "{}{}", parquet.1, csv.1);
    assert!(parts(&parquet.0) == parts(&csv.0));
    assert_eq!(arrow.2, 2, "{}", arrow.1);
    assert!(arrow.1.contains("Arrow files are not read"), "{}", arrow.1);
    let named = at("arrow/residues/part-00000.arrow");
    let annotations = format!("annotations={}", named.display());
    let args = ["smooth.channels=sasa", &annotations].map(|key| ["--set", key]);
    let args = [&["--features", "smooth"][..], &args.concat()].concat();
    let (output, code) = run_as("parquet", &[&sample], &at("named"), &args);
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("annotations are not read from Arrow"),
        "{said}"
    );
}

#[test]
fn a_comparison_with_python_needs_parquet_and_says_so_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("keep");
    for format in ["arrow", "csv"] {
        let set = format!("tables.format={format}");
        let args = [
            "validate",
            "--backend",
            "cpu",
            "--python",
            "true",
            "--set",
            &set,
        ];
        let mut validate = tapeloop(args);
        validate.args([SAMPLES, "--keep", str_of(&keep)]);
        let output = validate.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in ["the comparison reads Parquet", "tables.format=parquet"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(!keep.exists());
    }
}
