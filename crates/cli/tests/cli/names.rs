//! Files of other programs, from the file to the tables: archives, packed sets, trajectories, the
//! summary, and the column of flags.

use super::archives::tar_of;
use super::results::{read, texts};
use super::*;

/// Ubiquitin as the archive has it, and as programs write it: names of CHARMM, an atom that is there
/// twice, and one that no component has.
fn ubiquitin() -> [String; 2] {
    let text = fs::read_to_string(format!("{SAMPLES}/1ubi.pdb")).unwrap();
    let atoms: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("ATOM"))
        .collect();
    let last = atoms.len() - 1;
    let other = |(at, line): (usize, &&str)| {
        let mut line = line
            .replace(" HIS A", " HSD A")
            .replace(" CD1 ILE", " CD  ILE");
        if at == last {
            line = line.replace(" OXT ", " OT2 ");
        }
        line
    };
    let other: Vec<String> = atoms.iter().enumerate().map(other).collect();
    [atoms.join("\n") + "\nEND\n", other.join("\n") + "\nEND\n"]
}

/// The rows without `source`, `structure`, `comp_id` and `flags`, as CSV.
fn values(args: &[&str]) -> Vec<String> {
    let output = run_well(&[args, &["-o", "-", "--format", "csv"]].concat());
    let rows = text(&output.stdout);
    let mut reader = csv::Reader::from_reader(rows.as_bytes());
    let names = reader.headers().unwrap().clone();
    let is_value = |name: &str| !["source", "structure", "comp_id", "flags"].contains(&name);
    let rows = reader.records().map(|row| {
        let row = row.unwrap();
        let fields = names.iter().zip(&row).filter(|(name, _)| is_value(name));
        fields.map(|(_, field)| field).collect::<Vec<_>>().join(",")
    });
    rows.collect()
}

#[test]
fn archives_and_packed_sets_and_paint_have_the_values_of_the_standard_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let [plain, other] = ubiquitin();
    fs::write(path("plain.pdb"), &plain).unwrap();
    fs::write(path("other.pdb"), &other).unwrap();
    let tar = tar_of(&[("other.pdb".to_owned(), other.into_bytes())]);
    fs::write(
        path("other.tar.zst"),
        zstd::encode_all(&tar[..], 3).unwrap(),
    )
    .unwrap();
    let expected = values(&[str_of(&path("plain.pdb"))]);
    assert_eq!(expected.len(), 76);
    let set = path("set");
    run_well_pack(&["pack", str_of(&path("other.pdb")), "-o", str_of(&set)]);
    for input in ["other.pdb", "other.tar.zst", "set"] {
        assert_eq!(values(&[str_of(&path(input))]), expected, "{input}");
    }
    let painted = |name: &str| {
        let out = path("painted.pdb");
        let input = path(name);
        let args = ["paint", str_of(&input), "sasa", "-o", str_of(&out)];
        run_well_pack(&[&args[..], &["--overwrite"]].concat());
        let text = fs::read_to_string(out).unwrap();
        text.lines()
            .filter_map(|line| Some(line.get(60..66)?.to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(painted("other.pdb"), painted("plain.pdb"));
}

fn run_well_pack(args: &[&str]) {
    let output = tapeloop(args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_topology_of_other_names_gives_the_values_of_frames_and_counts_once() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/trajectories");
    let plain = format!("{SAMPLES}/1ubi.pdb");
    let frames = format!("{data}/1ubi.xtc");
    let folder = tempfile::tempdir().unwrap();
    let topology = folder.path().join("other.pdb");
    let text_of_other = fs::read_to_string(&plain).unwrap();
    let text_of_other = text_of_other
        .replace(" HIS A", " HSD A")
        .replace(" SD  MET", " SX  MET");
    fs::write(&topology, text_of_other).unwrap();
    let out = folder.path().join("out");
    let run = |topology: &str| {
        let args = [
            &*frames,
            "--topology",
            topology,
            "-o",
            str_of(&out),
            "--overwrite",
        ];
        run_well(&[&args[..], &["--features", "rsa"]].concat());
        record(&out)
    };
    let standard = run(&plain);
    assert_eq!(standard["checks"]["unknown_atoms"]["count"], 0);
    let found = &run(str_of(&topology))["checks"]["unknown_atoms"];
    assert_eq!(
        (&found["count"], &found["structures"]),
        (&1.into(), &1.into())
    );
    let first = found["first"].as_str().unwrap();
    assert!(first.ends_with("other.pdb, A MET 1: atom SX"), "{first}");
}

#[test]
fn what_is_unusual_is_counted_noted_and_rejected_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let [plain, _] = ubiquitin();
    let unknown = plain.replacen(" CG  MET", " CX  MET", 1);
    let dropped: Vec<String> = plain
        .lines()
        .map(|line| line.replace("MET A   1 ", "LU6 A   1 "))
        .collect();
    let input = path("in");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("a.pdb"), &plain).unwrap();
    fs::write(input.join("b.pdb"), &unknown).unwrap();
    fs::write(
        input.join("c.pdb"),
        unknown.replacen(" CB  GLN", " CB  MET", 0),
    )
    .unwrap();
    fs::write(input.join("d.pdb"), dropped.join("\n") + "\n").unwrap();
    let out = path("out");
    let args = [
        str_of(&input),
        "-o",
        str_of(&out),
        "--features",
        "rsa",
        "--overwrite",
    ];
    let said = text(&run_well(&args).stderr);
    let warning = "warning: .. peptide bond .. ligands: 1";
    assert!(
        has_parts(&said, warning) && said.contains("d.pdb, A LU6 1)"),
        "{said}"
    );
    assert!(!said.contains("side chain"), "a note: {said}");
    let said = text(&run_well(&[&args[..], &["-v"]].concat()).stderr);
    let note = "note: .. side chain: 2";
    assert!(has_parts(&said, note), "{said}");
    assert!(said.contains("b.pdb, A MET 1: atom CX, ...)"), "{said}");
    let checks = record(&out)["checks"].clone();
    assert_eq!(checks["unknown_atoms"]["count"], 2);
    assert_eq!(checks["unknown_atoms"]["structures"], 2);
    assert_eq!(checks["dropped_residues"]["count"], 1);
    for check in ["left_out_atoms", "repaired_fields", "contradictory_names"] {
        assert_eq!(checks[check]["count"], 0, "{check}");
        assert!(checks[check]["first"].is_null());
    }
    let strict = r#"strict=["unknown_atoms","dropped_residues"]"#;
    let (output, code) = run(&[&args[..], &["--set", strict]].concat());
    assert_eq!(code, 3, "{}", text(&output.stderr));
    let reasons = rejected(&out);
    assert_eq!(reasons.len(), 3);
    assert!(reasons[0].to_string().contains("A MET 1: atom CX"));
    assert_eq!(record(&out)["counts"]["structures"], 1);
    let (output, code) = run(&[&args[..], &["--set", r#"strict=["unknown"]"#]].concat());
    assert_eq!(code, 2, "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains("unknown name `unknown`"), "{said}");
}

#[test]
fn flags_name_the_rules_and_can_be_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let [_, other] = ubiquitin();
    let input = folder.path().join("other.pdb");
    // No C-beta of alanine 28, and an alternate location of one of 46.
    let lines = other
        .lines()
        .filter(|line| !line.contains(" CB  ALA A  28"));
    let lines = lines.map(|line| line.replace(" CB  ALA A  46", " CB AALA A  46"));
    fs::write(&input, lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    let out = folder.path().join("out");
    let args = [
        str_of(&input),
        "-o",
        str_of(&out),
        "--features",
        "rsa",
        "--overwrite",
    ];
    run_well(&args);
    let table = read(&out.join("residues/part-00000.parquet"));
    let (flags, names) = (texts(&table, "flags"), texts(&table, "comp_id"));
    let of = |number: usize| &*flags[number - 1];
    assert_eq!(
        [of(68), of(76), of(28), of(46), of(2)],
        [
            "simulation_name",
            "renamed_atoms",
            "cb_built",
            "alternate_chosen",
            "",
        ]
    );
    let renamed = flags
        .iter()
        .zip(&names)
        .filter(|(flags, _)| flags.contains("renamed_atoms"));
    assert!(renamed.clone().count() > 2);
    assert!(
        renamed
            .clone()
            .all(|(_, name)| name == "ILE" || name == "GLY")
    );
    run_well(
        &[
            &args[..],
            &["--where", "flags not contains 'renamed_atoms'"],
        ]
        .concat(),
    );
    let rest = read(&out.join("residues/part-00000.parquet"));
    assert_eq!(rest.num_rows(), 76 - renamed.count());
}

#[test]
fn standard_input_has_the_format_that_is_given() {
    let [plain, _] = ubiquitin();
    let odd = format!("{}{plain}", "nothing\n".repeat(1_500));
    let read = |more: &[&str]| {
        let args = [&["run", "-", "-o", "-", "--format", "csv"], more].concat();
        let (output, written) = run_piped(args, odd.as_str());
        written.unwrap();
        (text(&output.stdout).lines().count(), text(&output.stderr))
    };
    let (_, said) = read(&[]);
    assert!(said.contains("neither PDB nor mmCIF"), "{said}");
    assert!(said.contains("input_format"), "{said}");
    assert_eq!(read(&["--input-format", "pdb"]).0, 77);
}
