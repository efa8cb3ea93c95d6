//! Several molecules of one chain id, and models that are parts of an assembly.

use super::results::{numbers, read, texts};
use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use tapeloop::structure::{ReadLimits, text_of};

/// The atoms of HIV-1 protease, two chains with equal numbers, and the TER behind each.
fn dimer() -> String {
    let path = format!("{SAMPLES}/1hvr.pdb.gz");
    let bytes = fs::read(&path).unwrap();
    let (text, _) = text_of(&path, bytes, &ReadLimits::default()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let records = ["ATOM", "HETATM", "TER"];
    let lines = text
        .lines()
        .filter(|line| records.iter().any(|it| line.starts_with(it)));
    // The inhibitor behind the chains is in another chain in this test.
    let lines = lines.map(|line| match &line[17..20] {
        "XK2" => format!("{}C{}\n", &line[..21], &line[22..]),
        _ => format!("{line}\n"),
    });
    lines.collect::<String>() + "END\n"
}

/// The dimer with both chains under one id, or without one.
fn one_chain(id: char) -> String {
    let lines = dimer();
    let lines = lines.lines().map(|line| match line.get(21..22) {
        Some("A" | "B") => format!("{}{id}{}\n", &line[..21], &line[22..]),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

fn without_ter(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("TER"));
    lines.map(|line| format!("{line}\n")).collect()
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// A run over `input`, and the table of residues.
fn residues(input: &Path, out: &Path, more: &[&str]) -> arrow_array::RecordBatch {
    let args = [str_of(input), "-o", str_of(out), "--overwrite"];
    run_well(&[&args[..], more].concat());
    read(&out.join("residues/part-00000.parquet"))
}

/// The residues of each chain by both names.
fn chains(table: &arrow_array::RecordBatch) -> Vec<(String, String, usize)> {
    let names = texts(table, "auth_asym_id")
        .into_iter()
        .zip(texts(table, "label_asym_id"));
    let names: Vec<(String, String)> = names.collect();
    let chains = names.chunk_by(|a, b| a == b);
    chains
        .map(|of| (of[0].0.clone(), of[0].1.clone(), of.len()))
        .collect()
}

fn name(auth: &str, label: &str, residues: usize) -> (String, String, usize) {
    (auth.to_owned(), label.to_owned(), residues)
}

const FEATURES: [&str; 2] = ["--features", "interface_residues,contact_order,dssp,sasa"];
const INTERFACES: [&str; 4] = [
    "--features",
    "interface_residues,contact_order,dssp,sasa,interfaces",
    "--set",
    "interfaces=true",
];

#[test]
fn two_molecules_of_one_chain_id_have_the_values_of_two_chains() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let options = INTERFACES;
    let dimer_text = dimer();
    let dimer = write(folder.path(), "dimer.pdb", &dimer_text);
    let expected = residues(&dimer, &out, &options);
    let one = one_chain('A');
    let without_ter = without_ter(&one);
    let segids = dimer_text.replace("TER", "REMARK");
    let segids = segids.lines().map(|line| match line.get(21..22) {
        Some(chain @ ("A" | "B")) if line.len() > 76 => {
            format!(
                "{}A{}PRO{chain}{}\n",
                &line[..21],
                &line[22..72],
                &line[76..]
            )
        }
        _ => format!("{line}\n"),
    });
    let segids: String = segids.collect();
    for (file, id, text) in [
        ("ter.pdb", "A", one),
        ("blank.pdb", "", one_chain(' ')),
        ("numbers.pdb", "A", without_ter),
        ("segids.pdb", "A", segids),
    ] {
        let file = write(folder.path(), file, &text);
        let table = residues(&file, &out, &options);
        let parts = [1, 2].map(|part| format!("{id}_{part}"));
        let auth = if id.is_empty() { "null" } else { id };
        assert_eq!(
            chains(&table),
            [name(auth, &parts[0], 99), name(auth, &parts[1], 99)]
        );
        for column in expected.schema().fields() {
            let column = column.name().as_str();
            if ["source", "structure", "auth_asym_id", "label_asym_id"].contains(&column) {
                continue;
            }
            let [found, wanted] = [&table, &expected].map(|it| it.column_by_name(column).unwrap());
            if *found.data_type() != DataType::Utf8 {
                assert!(found == wanted, "{file:?}: {column}");
                continue;
            }
            let names = texts(&expected, column)
                .into_iter()
                .map(|text| match (column, &*text) {
                    ("iface_chain", "A") => parts[0].clone(),
                    ("iface_chain", "B") => parts[1].clone(),
                    _ => text,
                });
            assert_eq!(
                texts(&table, column),
                names.collect::<Vec<_>>(),
                "{file:?}: {column}"
            );
        }
        let pairs = read(&out.join("interfaces/part-00000.parquet"));
        let names = [
            "auth_asym_id_i",
            "label_asym_id_i",
            "auth_asym_id_j",
            "label_asym_id_j",
        ];
        let names = names.map(|column| texts(&pairs, column).remove(0));
        assert_eq!(names, [auth, &parts[0], auth, &parts[1]]);
        let found = &record(&out)["checks"]["split_chains"];
        assert_eq!(
            (&found["count"], &found["structures"]),
            (&1.into(), &1.into())
        );
    }
    let file = write(folder.path(), "id.pdb", &one_chain('A'));
    let whole = residues(
        &file,
        &out,
        &[&options[..], &["--set", "chains.split=id"]].concat(),
    );
    assert_eq!(chains(&whole), [name("A", "null", 198)]);
}

#[test]
fn packed_sets_and_lists_have_the_parts_of_a_chain() {
    let folder = tempfile::tempdir().unwrap();
    let [out, packed, set] = ["out", "packed", "set"].map(|name| folder.path().join(name));
    let file = write(folder.path(), "one.pdb", &one_chain('A'));
    residues(&file, &out, &FEATURES);
    let pack = ["pack", str_of(&file), "-o", str_of(&set)];
    assert!(tapeloop(pack).output().unwrap().status.success());
    residues(&set, &packed, &FEATURES);
    for table in ["residues", "chains", "structures"] {
        let part = format!("{table}/part-00000.parquet");
        assert!(
            fs::read(out.join(&part)).unwrap() == fs::read(packed.join(&part)).unwrap(),
            "{table}"
        );
    }
    let (output, code) = run(&[
        str_of(&set),
        "-o",
        str_of(&packed),
        "--overwrite",
        "--set",
        "chains.split=id",
    ]);
    assert_eq!(code, 2);
    assert!(
        text(&output.stderr).contains("chains.split"),
        "{}",
        text(&output.stderr)
    );

    let chosen = |line: &str| {
        let list = write(folder.path(), "list.txt", line);
        let list = PathBuf::from(format!("@{}", str_of(&list)));
        chains(&residues(&list, &out, &FEATURES))
    };
    assert_eq!(chosen("one.pdb,A_2\n"), [name("A", "A_2", 99)]);
    assert_eq!(
        chosen("one.pdb,A\n"),
        [name("A", "A_1", 99), name("A", "A_2", 99)]
    );
    let list = write(folder.path(), "list.txt", "one.pdb,B\n");
    let none = folder.path().join("none");
    run(&[&format!("@{}", str_of(&list)), "-o", str_of(&none)]);
    let fix = rejected(&none)[0]["fix"].to_string();
    assert!(fix.contains("A_1, A_2"), "{fix}");
}

#[test]
fn annotations_name_a_chain_or_a_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let file = write(folder.path(), "one.pdb", &one_chain('A'));
    let table =
        "structure,chain,residue,score\none,A,25,1\none,A,26,2\none,A_2,26,3\none,A_2,25,4\n";
    let annotations = write(folder.path(), "scores.csv", table);
    let key = format!("annotations = {annotations:?}\n");
    let config = write(folder.path(), "job.toml", &key);
    let options = [
        "--config",
        str_of(&config),
        "--where",
        "residue in (25, 26)",
        "--features",
        "rg",
    ];
    let rows = residues(&file, &out, &options);
    assert_eq!(texts(&rows, "label_asym_id"), ["A_1", "A_1", "A_2", "A_2"]);
    let scores = rows.column_by_name("score").unwrap();
    let scores = scores.as_primitive::<Int64Type>().values();
    assert_eq!(scores[..], [1, 2, 4, 3]);
    assert_eq!(record(&out)["annotations"]["rows_matched"], 4);
}

/// Columns 61 to 66 of the alpha carbons.
fn painted(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let atoms = text.lines().filter(|line| line.get(12..16) == Some(" CA "));
    atoms.map(|line| line[60..66].to_owned()).collect()
}

#[test]
fn parts_and_joined_models_are_painted_as_the_chains_that_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let paint = |file: &Path, models: &str| {
        let target = folder.path().join("painted.pdb");
        let args = ["paint", str_of(file), "sasa_delta", "-o", str_of(&target)];
        let more = ["--overwrite", "--backend", "cpu", "--models", models];
        let output = tapeloop(args.iter().chain(&more)).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        painted(&target)
    };
    let chains = write(folder.path(), "dimer.pdb", &dimer());
    let wanted = paint(&chains, "first");
    assert!(wanted.iter().any(|value| value.trim() != "0.00"));
    let one = write(folder.path(), "one.pdb", &one_chain('A'));
    assert_eq!(paint(&one, "first"), wanted);
    let text = one_chain('A').replacen("TER", "ENDMDL\nMODEL        2\nTER", 1);
    let models = write(
        folder.path(),
        "models.pdb",
        &format!("MODEL        1\n{text}"),
    );
    assert_eq!(paint(&models, "joined"), wanted);
}

#[test]
fn models_of_an_assembly_are_noted_and_joined() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let text = one_chain('A').replacen("TER", "ENDMDL\nMODEL        2\nTER", 1);
    let file = write(
        folder.path(),
        "dimer.pdb1",
        &format!("MODEL        1\n{text}"),
    );
    let note = "models = \"joined\"";
    let run = |models: &str| {
        let args = [
            str_of(&file),
            "-v",
            "-o",
            str_of(&out),
            "--overwrite",
            "--models",
            models,
        ];
        let said = self::text(&run_well(&[&args[..], &FEATURES].concat()).stderr);
        let found = record(&out)["checks"]["models_of_assembly"]["count"].clone();
        assert_eq!(said.contains(note), found == 1, "{said}");
        (
            chains(&read(&out.join("residues/part-00000.parquet"))),
            found.as_u64().unwrap(),
        )
    };
    assert_eq!(run("first"), (vec![name("A", "null", 99)], 1));
    assert_eq!(run("all"), (vec![name("A", "null", 198)], 1));
    assert_eq!(
        run("joined"),
        (vec![name("A", "null", 99), name("A-2", "null", 99)], 0)
    );
    let joined = read(&out.join("residues/part-00000.parquet"));
    let dimer = write(folder.path(), "chains.pdb", &dimer());
    let wanted = residues(&dimer, &out, &FEATURES);
    assert_eq!(
        numbers(&joined, "sasa_delta"),
        numbers(&wanted, "sasa_delta")
    );

    let args = [
        str_of(&file),
        "-o",
        str_of(&out),
        "--overwrite",
        "--models",
        "joined",
        "--set",
        "assembly=1",
    ];
    let (output, code) = super::run(&args);
    assert_eq!(code, 2);
    let said = self::text(&output.stderr);
    assert!(
        said.contains("assembly") && said.contains("joined"),
        "{said}"
    );
}
