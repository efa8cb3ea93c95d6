//! The sequences of chains.

use super::*;

/// A chain of four residues by SEQRES, of which two were observed, and one without SEQRES.
const FILE: &str = "\
REMARK 465     GLY A   2
REMARK 465     XYZ A   4
SEQRES   1 A    4  MSE GLY TRP XYZ
HETATM    1  CA  MSE A   1       0.000   0.000   0.000  1.00  9.00           C
ATOM      2  CA  TRP A   3       8.000   0.000   0.000  1.00  9.00           C
ATOM      3  CA  ALA B   1      30.000   0.000   0.000  1.00  9.00           C
ATOM      4  CA  UNK B   2      34.000   0.000   0.000  1.00  9.00           C
END
";

/// The values of a run's columns of chains, by chain.
fn chains(inputs: &[&str], more: &[&str], columns: &[&str]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let start = ["-o", str_of(&out), "--format", "csv", "--features", "rg"];
    run_well(&[inputs, &start, more].concat());
    let mut reader = csv::Reader::from_path(out.join("chains/part-00000.csv")).unwrap();
    let header = reader.headers().unwrap().clone();
    let place = |name: &&str| header.iter().position(|it| it == *name);
    let places: Vec<usize> = columns.iter().filter_map(place).collect();
    let rows = reader.records().map(Result::unwrap);
    rows.map(|row| places.iter().map(|&at| row[at].to_owned()).collect())
        .collect()
}

const BOTH: [&str; 2] = ["sequence", "seqres"];
const SEQRES: [&str; 2] = ["--set", "seqres=true"];

#[test]
fn a_chain_has_the_letters_of_its_rows_and_of_its_whole_sequence() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gaps.pdb");
    fs::write(&file, FILE).unwrap();
    let file = [str_of(&file)];
    let of_chains = chains(&file, &SEQRES, &BOTH);
    assert_eq!(of_chains, [["MW", "MGWX"], ["AX", ""]]);
    // Without the key there is no column.
    assert_eq!(chains(&file, &[], &BOTH), [["MW"], ["AX"]]);
}

#[test]
fn whole_sequences_are_those_that_the_entries_state_in_letters() {
    let of = |name: &str| {
        let path = format!("{SAMPLES}/{name}");
        chains(&[&path], &SEQRES, &BOTH)
    };
    // `_entity_poly.pdbx_seq_one_letter_code_can`
    let capsid = "MDIRQGPKEPFRDYVDRFYKTLRAEQASQEVKNWMTETLLVQNANPDCKTILKALGPGATLEEMMTACQG";
    assert_eq!(of("1a8o.cif.gz"), [[capsid, capsid]]);
    assert_eq!(of("1a8o.pdb"), [[capsid, capsid]]);
    let trypsin_inhibitor = "RPDFCLEPPYTGPCKARIIRYFYNAKAGLCQTFVYGGCRAKRNNFKSAEDCMRTCGGA";
    assert_eq!(of("5pti.cif.gz"), [[trypsin_inhibitor; 2]]);
    let bromodomain = "SMSVKKPKRDDSKDLALCSMILTEMETHEDAWPFLLPVNLKLVPGYKKVIKKPMDFSTIREKLSSGQYPNLETFALDVRL\
                       VFDNCETFNEDDSDIGRAGHNMRKYFEKKWTDTFKVS";
    let of_file = of("4cup.cif.gz");
    assert_eq!(of_file[0][1], bromodomain);
    assert!(bromodomain.contains(&of_file[0][0]) && of_file[0][0] != bromodomain);
}

#[test]
fn a_sequence_is_as_long_as_its_chain_has_residues() {
    let rows = chains(&[SAMPLES], &[], &["residues", "sequence"]);
    assert!(rows.len() > 30);
    for row in &rows {
        assert_eq!(row[0], row[1].len().to_string(), "{row:?}");
    }
}

#[test]
fn a_sequence_whose_positions_have_gaps_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let of = |positions: [&str; 3]| {
        let file = folder.path().join("numbers.cif");
        let atoms = "loop_\n_atom_site.group_PDB\n_atom_site.type_symbol\n_atom_site.label_atom_id\n\
                     _atom_site.label_comp_id\n_atom_site.label_asym_id\n_atom_site.label_entity_id\n\
                     _atom_site.label_seq_id\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n\
                     ATOM C CA GLY A 1 1 0.0 0.0 0.0\n";
        let [one, two, three] = positions;
        let sequence = format!(
            "loop_\n_entity_poly_seq.entity_id\n_entity_poly_seq.num\n_entity_poly_seq.mon_id\n\
             1 {one} GLY\n1 {two} ALA\n1 {three} SER\n"
        );
        fs::write(&file, format!("data_x\n{sequence}{atoms}")).unwrap();
        chains(&[str_of(&file)], &SEQRES, &["seqres"])[0][0].clone()
    };
    assert_eq!(of(["1", "2", "3"]), "GAS");
    // Two components share a position: the first one.
    assert_eq!(of(["1", "2", "2"]), "GA");
    assert_eq!(of(["1", "2", "4"]), "");
    assert_eq!(of(["0", "1", "2"]), "");
    assert_eq!(of(["2", "1", "2"]), "");
    assert_eq!(of(["1", "x", "2"]), "");
}

#[test]
fn packed_sets_have_no_whole_sequences() {
    let folder = tempfile::tempdir().unwrap();
    let (input, set) = (format!("{SAMPLES}/1ubi.pdb"), folder.path().join("set"));
    let output = tapeloop(["pack", &input, "-o", str_of(&set)]).output();
    assert!(output.unwrap().status.success());
    let out = folder.path().join("out");
    let (output, code) = run(&[&[str_of(&set), "-o", str_of(&out)], &SEQRES[..]].concat());
    assert_eq!(code, 2);
    let said = text(&output.stderr);
    let expected = "`seqres` is true, and packed sets have no whole sequences";
    assert!(said.contains(expected), "{said}");
    assert!(!out.exists());
}
