//! What names and numbers residues: chains without a name, several parents, and positions in the
//! sequence, which contact order counts by.

use super::results::{numbers, read, texts};
use super::*;

/// C-alphas 3.8 A apart, with a break of five residues after the third; 5 A lie between its ends.
const BROKEN: &str = "\
ATOM      1  CA  ALA A   1       0.000   0.000   0.000  1.00 20.00           C
ATOM      2  CA  ALA A   2       3.800   0.000   0.000  1.00 20.00           C
ATOM      3  CA  ALA A   3       7.600   0.000   0.000  1.00 20.00           C
ATOM      4  CA  GLY A   9       7.600   5.000   0.000  1.00 20.00           C
ATOM      5  CA  GLY A  10       3.800   5.000   0.000  1.00 20.00           C
END
";
const SEQUENCE: &str = "\
REMARK 465     SER A     4
REMARK 465     SER A     5
REMARK 465     SER A     6
REMARK 465     SER A     7
REMARK 465     SER A     8
SEQRES   1 A   10  ALA ALA ALA SER SER SER SER SER GLY GLY
";

#[test]
fn contact_order_counts_unobserved_residues_and_a_note_says_where_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let with = file("with.pdb", format!("{SEQUENCE}{BROKEN}"));
    let without = file("without.pdb", BROKEN.to_owned());
    let whole: Vec<&str> = BROKEN.lines().take(3).collect();
    let whole = file("whole.pdb", whole.join("\n") + "\nEND\n");
    let set = folder.path().join("set");
    let pack = ["pack", str_of(&with), "-o", str_of(&set)];
    assert!(tapeloop(pack).output().unwrap().status.success());

    let out = folder.path().join("out");
    // Contact order, how many chains are counted, and whether a note says so.
    let run = |input: &Path, more: &[&str]| {
        let args = [str_of(input), "-v", "-o", str_of(&out), "--overwrite"];
        let feature = ["--features", "contact_order"];
        let said = text(&run_well(&[&args[..], &feature, more].concat()).stderr);
        let table = read(&out.join("residues/part-00000.parquet"));
        let co: Vec<f64> = numbers(&table, "co").into_iter().flatten().collect();
        let counted = record(&out)["counts"]["unnumbered_chains"].clone();
        let note = "chains with breaks";
        (co, counted.as_u64().unwrap(), said.contains(note))
    };
    // Residue 3 is near 2 and 9: 1 and 6 in sequence, 1 and 1 by rows.
    let in_sequence = [1.0, 3.0, 3.5, 3.5, 4.5];
    let (co, counted, is_noted) = run(&with, &[]);
    assert_eq!((co[2], counted, is_noted), (in_sequence[2], 0, false));
    assert_eq!(run(&set, &[]).0, co);
    let by_rows = ["--set", "contact_order.separation=res_index"];
    let (old, _, _) = run(&with, &by_rows);
    assert_eq!(old[2], 1.0);
    assert_eq!(run(&without, &[]), (old.clone(), 1, true));
    assert_eq!(run(&without, &by_rows), (old, 1, false));
    assert_eq!(run(&whole, &[]), (vec![1.0, 1.0, 1.0], 0, false));
}

#[test]
fn a_chain_without_a_name_is_null() {
    let folder = tempfile::tempdir().unwrap();
    let unnamed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/small/blank-chain.pdb"
    );
    let out = folder.path().join("out");
    let run = |features: &str, more: &[&str]| {
        let args = [unnamed, "-o", str_of(&out), "--overwrite"];
        run_well(&[&args[..], &["--features", features], more].concat());
    };
    run("b_factor", &[]);
    for table in ["residues", "chains"] {
        let table = read(&out.join(table).join("part-00000.parquet"));
        assert!(table.num_rows() > 0);
        assert!(texts(&table, "auth_asym_id").iter().all(|it| it == "null"));
    }
    let count = read(&out.join("residues/part-00000.parquet")).num_rows();
    run("b_factor", &["--where", "chain is null"]);
    assert_eq!(
        read(&out.join("residues/part-00000.parquet")).num_rows(),
        count
    );

    // A table of the run is one of annotations, where an empty chain is the same.
    let annotations = folder.path().join("residues");
    fs::rename(out.join("residues"), &annotations).unwrap();
    let file = annotations.join("part-00000.parquet");
    let config = folder.path().join("job.toml");
    let keys = format!("annotations = {file:?}\ntables.annotations = []\n");
    fs::write(&config, keys).unwrap();
    let channel = "smooth.channels=[\"b_mean\"]";
    run("smooth", &["--config", str_of(&config), "--set", channel]);
    let matched = &record(&out)["annotations"]["residues"];
    assert_eq!(*matched, count, "{}", record(&out)["annotations"]);
}

#[test]
fn a_chromophore_has_the_parents_that_it_was_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("red.pdb");
    let atoms = "\
SEQRES   1 A    3  PHE NRQ SER
MODRES 1ABC NRQ A   66  MET
ATOM      1  CA  PHE A  65       0.000   0.000   0.000  1.00 20.00           C
HETATM    2  CA1 NRQ A  66       3.800   0.000   0.000  1.00 20.00           C
ATOM      3  CA  SER A  69       7.600   0.000   0.000  1.00 20.00           C
END
";
    fs::write(&file, atoms).unwrap();
    let out = folder.path().join("out");
    run_well(&[str_of(&file), "-o", str_of(&out), "--features", "rg"]);
    let table = read(&out.join("residues/part-00000.parquet"));
    assert_eq!(
        texts(&table, "parent_comp_id"),
        ["PHE", "MET,TYR,GLY", "SER"]
    );
    assert_eq!(texts(&table, "aa"), ["F", "M", "S"]);
}
