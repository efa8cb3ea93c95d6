//! Columns of coordinates.

use super::*;

/// A glycine, and an alanine without O.
const FILE: &str = "\
ATOM      1  N   GLY A   1      -1.500   0.000   0.001  1.00  9.00           N
ATOM      2  CA  GLY A   1       0.000   0.000   0.000  1.00  9.00           C
ATOM      3  C   GLY A   1       0.600   1.400   0.000  1.00  9.00           C
ATOM      4  O   GLY A   1       0.100   2.400   9.999  1.00  9.00           O
ATOM      5  N   ALA A   2       1.900   1.500   0.000  1.00  9.00           N
ATOM      6  CA  ALA A   2    9999.999   2.800   0.000  1.00  9.00           C
ATOM      7  C   ALA A   2       3.900   2.900   0.000  1.00  9.00           C
ATOM      8  CB  ALA A   2       2.100   3.700   1.234  1.00  9.00           C
END
";

/// A run's rows of residues, without those of columns that come before `first`.
fn rows(file: &Path, more: &[&str], first: &str) -> Vec<String> {
    let args = [str_of(file), "-o", "-", "--format", "csv", "--features"];
    let output = run_well(&[&args[..], &["rg"], more].concat());
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(&output.stdout[..]);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let first = rows[0].iter().position(|name| name == first).unwrap();
    let row = |row: &csv::StringRecord| row.iter().skip(first).collect::<Vec<_>>().join(",");
    rows.iter().map(row).collect()
}

#[test]
fn coordinates_are_those_of_the_file_and_null_where_it_lacks_the_atom() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.pdb");
    fs::write(&file, FILE).unwrap();
    let all = rows(
        &file,
        &["--set", r#"coordinates=["cb","backbone","ca"]"#],
        "n_x",
    );
    let expected = [
        "n_x,n_y,n_z,ca_x,ca_y,ca_z,c_x,c_y,c_z,o_x,o_y,o_z,cb_x,cb_y,cb_z",
        "-1.5,0,0.001,0,0,0,0.6,1.4,0,0.1,2.4,9.999,,,",
        "1.9,1.5,0,9999.999,2.8,0,3.9,2.9,0,,,,2.1,3.7,1.234",
    ];
    assert_eq!(all, expected);
    let ca = ["--set", "coordinates=ca"];
    assert_eq!(rows(&file, &ca, "ca_x")[0], "ca_x,ca_y,ca_z");
    let chosen = rows(&file, &[&ca[..], &["--where", "ca_x > 1"]].concat(), "ca_x");
    assert_eq!(chosen[1..], ["9999.999,2.8,0"]);
    let chosen = rows(
        &file,
        &["--set", "coordinates=cb", "--where", "cb_z is null"],
        "cb_x",
    );
    assert_eq!(chosen[1..], [",,"]);
}

#[test]
fn other_columns_and_values_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let input = format!("{SAMPLES}/1ubi.pdb");
    let [with, without] = ["with", "without"].map(|name| folder.path().join(name));
    let start = [&input, "--features", "rg", "--format", "csv", "-o"];
    run_well(&[&start[..], &[str_of(&without)]].concat());
    let coordinates = ["--set", r#"coordinates=["backbone"]"#];
    run_well(&[&start[..], &[str_of(&with)], &coordinates].concat());
    let both = [&with, &without].map(|folder| parts(folder));
    for ((name, with), (_, without)) in both[0].iter().zip(&both[1]) {
        let [with, without] = [with, without].map(|bytes| text(bytes));
        for (with, without) in with.lines().zip(without.lines()) {
            assert!(with.starts_with(without), "{name:?}: {with}\n{without}");
            let more = with.split(',').count() - without.split(',').count();
            let is_of_residues = name.starts_with("residues");
            assert_eq!(more, if is_of_residues { 12 } else { 0 });
        }
    }
}

#[test]
fn a_packed_set_has_the_coordinates_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let (input, packed) = (format!("{SAMPLES}/1ubi.pdb"), folder.path().join("packed"));
    let output = tapeloop(["pack", &input, "-o", str_of(&packed)]).output();
    assert!(output.unwrap().status.success());
    let all = ["--set", r#"coordinates=["backbone","cb"]"#];
    let of = |path: &Path| rows(path, &all, "n_x");
    assert_eq!(of(&packed), of(Path::new(&input)));
}

#[test]
fn a_word_that_is_no_atom_is_an_error() {
    let (output, code) = run(&["x.pdb", "--set", r#"coordinates=["ca","cg"]"#, "--dry-run"]);
    assert_eq!(code, 2);
    let said = text(&output.stderr);
    let expected = r#"coordinates: "cg" is not one of "ca", "cb", "backbone""#;
    assert!(said.contains("\"cg\""), "{said} lacks {expected}");
}
