//! The sequences of chains.

use super::*;

/// A chain of four residues by SEQRES, of which two were observed, and one without SEQRES.
const FILE: &str = "\
REMARK 465     GLY A     2 
REMARK 465     XYZ A     4 
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

/// A run's rows of residues: a list of fields each, the header first.
fn residues(input: &str, more: &[&str]) -> Vec<Vec<String>> {
    let args = [
        input,
        "-o",
        "-",
        "--format",
        "csv",
        "--features",
        "rg,torsions",
    ];
    let output = run_well(&[&args[..], more].concat());
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(&output.stdout[..]);
    let rows = reader.records().map(Result::unwrap);
    rows.map(|row| row.iter().map(str::to_owned).collect())
        .collect()
}

/// These columns of rows.
fn picked(rows: &[Vec<String>], columns: &[&str]) -> Vec<String> {
    let place = |name: &&str| rows[0].iter().position(|it| it == name).unwrap();
    let places: Vec<usize> = columns.iter().map(place).collect();
    let row = |row: &Vec<String>| {
        let fields: Vec<&str> = places.iter().map(|&at| &*row[at]).collect();
        fields.join(" ")
    };
    rows[1..].iter().map(row).collect()
}

const UNOBSERVED: [&str; 2] = ["--set", "unobserved=true"];

#[test]
fn residues_that_were_not_observed_have_rows_at_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gaps.pdb");
    fs::write(&file, FILE).unwrap();
    let rows = residues(str_of(&file), &UNOBSERVED);
    let columns = [
        "auth_asym_id",
        "auth_seq_id",
        "comp_id",
        "aa",
        "observed",
        "res_index",
        "break_before",
    ];
    let expected = [
        "A 1 MSE M true 0 true",
        "A 2 GLY G false  ",
        "A 3 TRP W true 1 true",
        "A 4 XYZ X false  ",
        "B 1 ALA A true 2 true",
        "B 2 UNK X true 3 false",
    ];
    assert_eq!(picked(&rows, &columns), expected);
    let chosen = [&UNOBSERVED[..], &["--where", "not observed and aa == 'G'"]].concat();
    let rows = residues(str_of(&file), &chosen);
    assert_eq!(picked(&rows, &["comp_id", "phi"]), ["GLY "]);
}

#[test]
fn rows_of_residues_that_were_not_observed_change_no_other_row() {
    let folder = tempfile::tempdir().unwrap();
    let annotations = folder.path().join("numbers.csv");
    let rows = "4cup,A,1856,7\n4cup,A,1972,8\n1bd2,A,1,9\n3jqh,A,1,9\n1ubi,A,1,9\n";
    fs::write(
        &annotations,
        format!("structure,chain,residue,number\n{rows}"),
    )
    .unwrap();
    let annotations = format!("annotations={:?}", str_of(&annotations));
    for name in ["4cup.cif.gz", "1bd2.pdb.gz", "3jqh.cif.gz", "1ubi.pdb"] {
        let input = format!("{SAMPLES}/{name}");
        let more = ["--set", &annotations, "--set", "coordinates=ca"];
        let without = residues(&input, &more);
        let mut with = residues(&input, &[&more[..], &UNOBSERVED].concat());
        let observed = with[0].iter().position(|it| it == "observed").unwrap();
        let unobserved = with.len() - without.len();
        with.retain(|row| row[observed] != "false");
        with.iter_mut().for_each(|row| drop(row.remove(observed)));
        assert!(with == without, "{name}");
        assert_eq!(unobserved > 0, name != "1ubi.pdb", "{name}");
    }
}

#[test]
fn residues_that_were_not_observed_are_those_that_the_entries_list() {
    let columns = ["auth_asym_id", "comp_id", "auth_seq_id", "label_seq_id"];
    let of = |name: &str| {
        let where_unobserved = ["--where", "not observed"];
        let more = [&UNOBSERVED[..], &where_unobserved].concat();
        picked(&residues(&format!("{SAMPLES}/{name}"), &more), &columns)
    };
    // `_pdbx_unobs_or_zero_occ_residues`
    assert_eq!(of("4cup.cif.gz"), ["A VAL 1971 116", "A SER 1972 117"]);
    let packed = fs::read(format!("{SAMPLES}/1bd2.pdb.gz")).unwrap();
    let mut file = String::new();
    let mut decoder = flate2::read::GzDecoder::new(&packed[..]);
    std::io::Read::read_to_string(&mut decoder, &mut file).unwrap();
    let lines = file.lines().filter(|line| line.starts_with("REMARK 465"));
    let listed = lines.filter_map(|line| {
        let number: i32 = line.get(21..26)?.trim().parse().ok()?;
        Some(format!(
            "{} {} {number} ",
            line[18..20].trim(),
            &line[15..18]
        ))
    });
    let listed: Vec<String> = listed.collect();
    assert!(listed.len() > 10);
    assert_eq!(of("1bd2.pdb.gz"), listed);
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
    let expected = "`seqres`";
    assert!(said.contains(expected), "{said}");
    assert!(!out.exists());
}
