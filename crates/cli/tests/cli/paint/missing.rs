//! Atoms without a value.

use super::*;
use crate::every_feature::every_feature;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use tapeloop::features::{ColumnDecl, Cutoff, FeatureConfig, TableName};

/// The rows of the manual's table: the columns, and what a missing value of theirs is painted as.
fn rows_of_the_manual() -> Vec<(Vec<String>, f64)> {
    let path = Path::new(ROOT).join("docs/config/painting.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, table) = text
        .split_once("| columns | a missing value is |\n")
        .unwrap();
    let lines = table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let names = cells[0].split('`').skip(1).step_by(2);
        let (value, _) = cells[1].split_once(':').unwrap();
        (
            names.map(str::to_owned).collect(),
            value.trim().parse().unwrap(),
        )
    };
    lines.map(row).collect()
}

fn columns_of(config: &FeatureConfig) -> Vec<ColumnDecl> {
    config.columns(TableName::Residues)
}

#[test]
fn the_manual_lists_the_number_for_a_missing_value_of_every_column() {
    let mut listed: Vec<(String, f64)> = rows_of_the_manual()
        .into_iter()
        .flat_map(|(names, value)| names.into_iter().map(move |name| (name, value)))
        .collect();
    let columns = columns_of(&every_feature()).into_iter();
    let mut expected: Vec<(String, f64)> = columns
        .map(|column| (column.name, column.null_number))
        .collect();
    let by_name = |a: &(String, f64), b: &(String, f64)| a.0.cmp(&b.0);
    listed.sort_by(by_name);
    expected.sort_by(by_name);
    let is_listed = |column: &&(String, f64)| listed.contains(column);
    let unlisted: Vec<_> = expected
        .iter()
        .filter(|column| !is_listed(column))
        .collect();
    assert!(
        unlisted.is_empty(),
        "docs/config/painting.md lacks {unlisted:?}"
    );
    assert_eq!(
        listed, expected,
        "left: docs/config/painting.md, right: the columns"
    );
}

#[test]
fn numbers_for_missing_values_fit_into_a_b_factor_and_those_of_distances_exceed_the_reach() {
    let mut largest = every_feature();
    let cutoff = |angstrom| Cutoff::from_angstrom(angstrom).unwrap();
    largest.contact_number.ca = vec![cutoff(Cutoff::MAX_ANGSTROM)];
    largest.interface_residues.cutoff = cutoff(12.0);
    largest.ligands.cutoff = cutoff(12.0);
    largest.smooth.radius = cutoff(Cutoff::MAX_ANGSTROM);
    largest.smooth.channels = vec!["hydropathy".to_owned()];
    for config in [every_feature(), largest] {
        let mut distances = 0;
        for column in columns_of(&config) {
            let (name, null) = (&column.name, column.null_number);
            assert!(format!("{null:.1}").len() <= 6, "{name}: {null}");
            if column.unit == "A" && name.ends_with("_dmin") {
                let (_, reach) = column.about.split_once("null from ").unwrap();
                let reach: f64 = reach.split(' ').next().unwrap().parse().unwrap();
                assert!(null > reach, "{name}: {null}");
                distances += 1;
            }
        }
        assert_eq!(distances, 3);
    }
}

/// The B factors of the atoms of a PDB file, by the names of their residues.
fn b_factors(path: &Path) -> Vec<(String, f64)> {
    let text = fs::read_to_string(path).unwrap();
    let atoms = text.lines();
    let atoms = atoms.filter(|line| line.starts_with("ATOM") || line.starts_with("HETATM"));
    atoms
        .map(|line| {
            (
                line[17..20].to_owned(),
                line[60..66].trim().parse().unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_missing_value_is_painted_as_the_manual_says() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("all.toml");
    let settings =
        "ligands = \"keep\"\ncluster.select = [\"ILE\"]\nresidue_depth.chains = \"all\"\n";
    fs::write(&config, settings).unwrap();
    let input = format!("{SAMPLES}/1hvr.pdb.gz");
    for (names, expected) in rows_of_the_manual() {
        let name = &names[0];
        let out = folder.path().join(format!("{name}.pdb"));
        let paths = ["-o", str_of(&out), "--config", str_of(&config)];
        paint_well(&[&[&*input, name], &paths[..]].concat());
        let atoms = b_factors(&out);
        // The ligand has no row.
        let ligand = atoms.iter().filter(|(residue, _)| residue == "XK2");
        let ligand: Vec<f64> = ligand.map(|(_, value)| *value).collect();
        assert!(ligand.len() > 40, "{name}");
        assert!(ligand.iter().all(|value| *value == expected), "{name}");
        assert!(atoms.iter().any(|(_, value)| *value != expected), "{name}");
    }
}

#[test]
fn distances_that_are_missing_are_painted_as_far_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pdb");
    let input = format!("{SAMPLES}/1hvr.pdb.gz");
    let more = ["--set", "ligands=\"keep\"", "--verbose"];
    let args = [&[&*input, "ligand_dmin", "-o", str_of(&out)], &more[..]].concat();
    let said = paint_well(&args);
    let values: Vec<f64> = b_factors(&out)
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    let far = values.iter().filter(|value| **value == 13.0).count();
    assert!(far > 900, "{far}");
    assert!(
        values
            .iter()
            .all(|value| *value > 2.0 && (*value <= 12.0 || *value == 13.0))
    );
    let count = format!("{far} atoms .. 13\n");
    assert!(has_parts(&said, &count), "{said}");
    // The range leaves them out.
    assert!(
        said.contains("maximum=11.8\n") && said.contains(",11.8\n"),
        "{said}"
    );

    let said = paint_well(&[&args[..], &["--overwrite", "--null", "0"]].concat());
    assert!(has_parts(&said, &format!("{far} atoms .. 0\n")), "{said}");
    let zeros = b_factors(&out)
        .iter()
        .filter(|(_, value)| *value == 0.0)
        .count();
    assert_eq!(zeros, far);
}

#[test]
fn the_number_of_the_manual_takes_no_decimals_from_the_values_and_a_given_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pdb");
    let input = format!("{SAMPLES}/1hvr.pdb.gz");
    let fields = |more: &[&str]| {
        let args = [&*input, "rsa", "-o", str_of(&out), "--overwrite"];
        paint_well(&[&args, more].concat());
        let painted = fs::read_to_string(&out).unwrap();
        ["ATOM      1", "HETATM 1847"].map(|start| {
            let line = painted.lines().find(|line| line.starts_with(start));
            line.unwrap()[60..66].to_owned()
        })
    };
    // All values are below 1, and the ligand has none.
    assert_eq!(fields(&[]), ["0.5513", " -1.00"]);
    assert_eq!(fields(&["--null", "-1"]), ["  0.55", " -1.00"]);
}

/// Paints counts into a file with this text. Returns the lines of the atoms that have a count, and how
/// many have -1 instead.
fn painted(folder: &Path, name: &str, text: &[u8]) -> (Vec<String>, usize) {
    let (input, out) = (folder.join(name), folder.join(format!("out-{name}")));
    fs::write(&input, text).unwrap();
    let said = paint_well(&[str_of(&input), "cn_ca_8", "-o", str_of(&out), "--verbose"]);
    let bytes = fs::read(&out).unwrap();
    let (text, _) = text_of(str_of(&out), bytes, &ReadLimits::default()).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let is_atom = |line: &&str| line.starts_with("ATOM ") || line.starts_with("HETATM");
    let (missing, known): (Vec<&str>, Vec<&str>) = text
        .lines()
        .filter(is_atom)
        .partition(|line| line.contains(" -1.00 "));
    let count = format!("; {} atoms .. -1\n", missing.len());
    let is_counted =
        has_parts(&said, &count) || (missing.is_empty() && said.contains("; every atom"));
    assert!(is_counted, "{said}");
    (
        known.into_iter().map(str::to_owned).collect(),
        missing.len(),
    )
}

#[test]
fn atoms_after_end_are_painted_as_the_next_model_and_text_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read_to_string(format!("{SAMPLES}/1ubi.pdb")).unwrap();
    let lines = whole.lines().filter(|line| line.starts_with("ATOM"));
    let atoms: String = lines.map(|line| format!("{line}\n")).collect();
    let count = atoms.lines().count();
    let once = format!("{atoms}END\n");
    let (known, missing) = painted(folder.path(), "once.pdb", once.as_bytes());
    assert_eq!((known.len(), missing), (count, 0));
    // A text after END may start with the name of a record.
    let twice = format!("{once}ATOMS OF THE SECOND FRAME\n{atoms}END\n");
    let both = [&known[..], &known].concat();
    let found = painted(folder.path(), "twice.pdb", twice.as_bytes());
    assert_eq!(found, (both.clone(), 0));
    let text = fs::read_to_string(folder.path().join("out-twice.pdb")).unwrap();
    assert!(text.contains("\nATOMS OF THE SECOND FRAME\n"));
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(twice.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let found = painted(folder.path(), "twice.pdb.gz", &packed);
    assert_eq!(found, (both.clone(), 0));
    // Nothing reads it, so it may be damaged.
    let damaged = format!("{once}ATOM\t1\tN\tMET\n");
    let found = painted(folder.path(), "damaged.pdb", damaged.as_bytes());
    assert_eq!(found, (known.clone(), 0));
    // ENDMDL ends no file.
    let models = format!("MODEL 1\n{atoms}ENDMDL\nMODEL 2\n{atoms}ENDMDL\nEND\n");
    let found = painted(folder.path(), "models.pdb", models.as_bytes());
    assert_eq!(found, (both, 0));
}

#[test]
fn atoms_of_later_data_blocks_are_painted_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    let block = |name: &str, has_b_factors: bool| {
        let mut items = vec![
            "group_PDB",
            "label_atom_id",
            "label_comp_id",
            "label_asym_id",
        ];
        items.extend(["label_seq_id", "Cartn_x", "Cartn_y", "Cartn_z"]);
        if has_b_factors {
            items.push("B_iso_or_equiv");
        }
        let items = items.iter().map(|item| format!("_atom_site.{item}\n"));
        let b_factor = if has_b_factors { " 50.00" } else { "" };
        let atoms = (1..=3).map(|n| format!("ATOM CA ALA A {n} {n}.000 2.000 3.000{b_factor} \n"));
        let (items, atoms) = (items.collect::<String>(), atoms.collect::<String>());
        format!("data_{name}\nloop_\n{items}{atoms}#\n")
    };
    let text = block("first", true) + &block("second", true) + &block("third", false);
    let (known, missing) = painted(folder.path(), "three.cif", text.as_bytes());
    assert_eq!((known.len(), missing), (3, 6));
    assert!(
        known.iter().all(|line| line.contains(" 2.00 ")),
        "{known:?}"
    );
    // Nothing reads the second block, so it may be damaged, and is left as it is.
    let damaged = block("first", true) + &block("second", false) + "_a 'no end\n";
    let (found, missing) = painted(folder.path(), "damaged.cif", damaged.as_bytes());
    assert_eq!((&found[..3], missing), (&known[..], 0));
    let text = fs::read_to_string(folder.path().join("out-damaged.cif")).unwrap();
    assert!(text.ends_with(&(block("second", false) + "_a 'no end\n")));
    let text = fs::read_to_string(folder.path().join("out-three.cif")).unwrap();
    assert!(!text.contains("50.00"), "{text}");
    assert_eq!(
        text.matches("_atom_site.B_iso_or_equiv").count(),
        3,
        "{text}"
    );
}
