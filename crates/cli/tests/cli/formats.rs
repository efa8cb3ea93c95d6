//! The formats of the tables, and what reads and replaces them.

use super::*;
use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

pub(super) const FORMATS: [&str; 3] = ["parquet", "arrow", "csv"];

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

/// A column of texts of a part, whose ending is its format. The part may have no rows.
pub(super) fn texts(part: &Path, column: &str) -> Vec<String> {
    let batches = match str_of(part).rsplit('.').next() {
        Some("csv") => {
            let mut rows = csv::Reader::from_path(part).unwrap();
            let mut names = rows.headers().unwrap().iter();
            let at = names.position(|name| name == column).unwrap();
            let texts = rows.records().map(|row| row.unwrap()[at].to_owned());
            return texts.collect();
        }
        Some("arrow") => read_arrow(part),
        _ => {
            let file = fs::File::open(part).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            reader.build().unwrap().map(Result::unwrap).collect()
        }
    };
    let texts = batches.iter().flat_map(|it| results::texts(it, column));
    texts.collect()
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
    let samples = small_samples(folder.path());
    let [parquet, arrow, csv] = FORMATS.map(|format| {
        let out = folder.path().join(format);
        let (output, code) = run_as(format, &[str_of(&samples)], &out, &[]);
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
    let folder = tempfile::tempdir().unwrap();
    let samples = small_samples(folder.path());
    for (format, compression) in [("arrow", "none"), ("arrow", "zstd"), ("csv", "none")] {
        let compression = format!("tables.compression={compression}");
        let cut = ["tables.inputs_per_part=7", "tables.rows_per_group=1000"];
        let write = |options: &[&str]| {
            let out = tempfile::tempdir().unwrap();
            let set = [cut[0], cut[1], &compression].map(|key| ["--set", key]);
            let more = [&set.concat()[..], options].concat();
            let (output, code) = run_as(format, &[str_of(&samples)], out.path(), &more);
            assert_eq!(code, 0, "{}", text(&output.stderr));
            parts(out.path())
        };
        let one = write(&["--threads", "1", "--slots", "1"]);
        assert_eq!(one.len(), TABLES.len() * 23usize.div_ceil(7));
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
    let copies = tempfile::tempdir().unwrap();
    let copy = copy_of("1ubi.pdb", copies.path());
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
    assert_eq!(run_as("arrow", &[&sample, str_of(&copy)], out, &two).1, 0);
    assert_eq!(names(out), of("arrow", 2));
    for (format, before) in [("csv", of("arrow", 2)), ("parquet", of("csv", 1))] {
        let (output, code) = run_as(format, &[&sample], out, &one);
        assert_eq!(code, 2);
        let said = text(&output.stderr);
        assert!(said.contains("results of another run"), "{said}");
        assert_eq!(names(out), before);
        let left = out.join(format!("chains/.part-00001.{format}.tmp"));
        fs::write(&left, "left by a kill").unwrap();
        let overwrite = [&one[..], &["--overwrite"]].concat();
        assert_eq!(run_as(format, &[&sample], out, &overwrite).1, 0);
        assert_eq!(names(out), of(format, 1));
    }
}

#[cfg(unix)]
#[test]
fn file_names_of_any_characters_are_read_back_from_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    fs::create_dir(&input).unwrap();
    let longest = format!("{}.pdb", "x".repeat(251));
    let mut files = [
        "=HYPERLINK(\"x\",1).pdb",
        "a \"b\", c.pdb",
        " blank .pdb",
        "line\r\nend\n.pdb",
        "#\u{1b}[2J\t;'\u{202e}.pdb",
        "\u{e4}\u{1f9ec}.pdb",
        &longest,
    ];
    files.sort_unstable();
    for name in files {
        fs::copy(format!("{SAMPLES}/1ubi.pdb"), input.join(name)).unwrap();
    }
    let sources = files.map(|name| input.join(name).to_str().unwrap().to_owned());
    let names = files.map(|name| name.strip_suffix(".pdb").unwrap().to_owned());
    for format in FORMATS {
        let out = folder.path().join(format);
        let (output, code) = run_as(format, &[str_of(&input)], &out, &["--features", "rg"]);
        assert_eq!(code, 0, "{}", text(&output.stderr));
        let part = |table| out.join(format!("{table}/part-00000.{format}"));
        let columns = |table| ["source", "structure"].map(|name| texts(&part(table), name));
        assert_eq!(columns("structures"), [&sources[..], &names], "{format}");
        let [of_rows, _] = columns("residues");
        let of_rows: Vec<&String> = of_rows.iter().step_by(76).collect();
        assert_eq!(of_rows, sources.each_ref());
    }
}

#[cfg(unix)]
#[test]
fn a_full_disk_fails_the_run_in_every_format_and_leaves_no_part() {
    let folder = tempfile::tempdir().unwrap();
    let samples = small_samples(folder.path());
    let command = |shell: &str, out: &Path, [format, compression]: [&str; 2], rows: usize| {
        let set = [
            format!("tables.format={format}"),
            format!("tables.compression={compression}"),
            format!("tables.rows_per_group={rows}"),
        ];
        let shell = format!("{shell}; exec \"$0\" \"$@\"");
        Command::new("sh")
            .args(["-c", &shell, env!("CARGO_BIN_EXE_tapeloop"), "run"])
            .args([
                "--backend",
                "cpu",
                "-i",
                str_of(&samples),
                "-o",
                str_of(out),
            ])
            .args(["--features", "b_factor,contact_number,dssp,torsions"])
            .args(set.iter().flat_map(|key| ["--set", key]))
            .output()
            .unwrap()
    };
    // A limit on the size of files acts as a full disk.
    let fails = |blocks: u64, kind: [&str; 2], rows: usize| {
        let out = folder.path().join("full");
        let limit = format!("trap '' XFSZ; ulimit -f {blocks}");
        let output = command(&limit, &out, kind, rows);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{kind:?}: {said}");
        let part = format!(".part-00000.{}.tmp: File too large", kind[0]);
        assert!(said.contains(&part), "{said}");
        assert!(names(&out).is_empty(), "no part, whole or half");
        assert_eq!(record(&out)["state"], "failed");
        fs::remove_dir_all(out).unwrap();
    };
    for kind in [
        ["parquet", "lz4"],
        ["arrow", "none"],
        ["arrow", "zstd"],
        ["csv", "none"],
    ] {
        // The tables reach the limit at their start, in a row group before the last, or in the
        // last block of 512 bytes of the residues.
        fails(24, kind, 1 << 17);
        fails(128, kind, 500);
        let whole = folder.path().join(kind.concat());
        let output = command("true", &whole, kind, 1 << 17);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let residues = whole.join(format!("residues/part-00000.{}", kind[0]));
        let bytes = fs::metadata(residues).unwrap().len();
        fails((bytes - 1) / 512, kind, 1 << 17);
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
        let smooth = [
            "smooth.channels=sasa",
            &annotations,
            "tables.annotations=[]",
        ];
        let smooth = smooth.map(|key| ["--set", key]);
        let args = [&["--features", "smooth"][..], &smooth.concat()].concat();
        let out = at(&format!("of_{format}"));
        let (output, code) = run_as("parquet", &[&sample], &out, &args);
        (out, text(&output.stderr), code)
    };
    let [parquet, arrow, csv] = FORMATS.map(smoothed);
    assert_eq!((parquet.2, csv.2), (0, 0), "{}{}", parquet.1, csv.1);
    assert!(parts(&parquet.0) == parts(&csv.0));
    assert_eq!(arrow.2, 2, "{}", arrow.1);
    assert!(arrow.1.contains("Arrow"), "{}", arrow.1);
    let named = at("arrow/residues/part-00000.arrow");
    let annotations = format!("annotations={}", named.display());
    let args = ["smooth.channels=sasa", &annotations].map(|key| ["--set", key]);
    let args = [&["--features", "smooth"][..], &args.concat()].concat();
    let (output, code) = run_as("parquet", &[&sample], &at("named"), &args);
    let said = text(&output.stderr);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("Arrow"), "{said}");
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
        for part in ["Parquet", "tables.format=parquet"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(!keep.exists());
    }
}

/// Copies of the files named so, each with the ending `ending`.
fn copies(folder: &Path, files: &[(PathBuf, String)], ending: &str) {
    fs::create_dir(folder).unwrap();
    for (path, name) in files {
        fs::copy(path, folder.join(format!("{name}.{ending}.gz"))).unwrap();
    }
}

#[test]
fn tables_of_binary_cif_files_are_those_of_their_mmcif_files() {
    let root = Path::new(ROOT);
    let folder = tempfile::tempdir().unwrap();
    let (mut binary, mut plain) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(root.join("tests/data/binary_cif")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        let Some(name) = file.strip_suffix(".bcif.gz") else {
            continue;
        };
        let entry = name.split('.').next().unwrap();
        let places = [
            "tests/data/small",
            "crates/structure/tests/readers/fixtures",
            "samples",
        ];
        let of_text = places.iter().find_map(|place| {
            let found = root.join(place).join(format!("{entry}.cif"));
            let packed = root.join(place).join(format!("{entry}.cif.gz"));
            [found, packed].into_iter().find(|path| path.exists())
        });
        plain.push((of_text.expect(entry), name.to_owned()));
        binary.push((path.clone(), name.to_owned()));
    }
    assert!(plain.len() > 20);
    let tables = [("bcif", &binary), ("cif", &plain)].map(|(ending, files)| {
        let (inputs, out) = (
            folder.path().join(ending),
            folder.path().join(format!("{ending}-out")),
        );
        copies(&inputs, files, ending);
        let (output, code) = run_as("csv", &[str_of(&inputs)], &out, &["--set", "models=all"]);
        assert_eq!(code, 0, "{}", text(&output.stderr));
        parts(&out)
            .into_iter()
            // The column `source` has the folder and the ending.
            .map(|(path, bytes)| (path, text(&bytes).replace("bcif", "cif")))
            .collect::<Vec<_>>()
    });
    assert_eq!(tables[0].len(), TABLES.len());
    assert_eq!(tables[0], tables[1]);
}
