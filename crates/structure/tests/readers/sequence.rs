//! The position of each residue in its chain's sequence.

use tapeloop_structure::{Format, Models, ReadOptions, Reader, Structure};
use tapeloop_test_support::repository;

/// A PDB file with these lines before its atoms: a C-alpha for each residue, given as component,
/// chain, and number with insertion code (`"GLY A  12 "`). The residues are far apart.
fn text_of(before: &str, residues: &[&str]) -> String {
    let atom = |(index, residue): (usize, &&str)| {
        let x = 10.0 * index as f64;
        format!(
            "ATOM  {index:5}  CA  {residue}   {x:8.3}   0.000   0.000  1.00 20.00           C\n"
        )
    };
    let atoms: String = residues.iter().enumerate().map(atom).collect();
    format!("{before}{atoms}")
}

fn read_all(text: &str, format: Format) -> Vec<Structure> {
    let options = ReadOptions {
        models: Models::All,
        ..ReadOptions::default()
    };
    Reader::new(options)
        .read_bytes(text.as_bytes(), format)
        .unwrap()
}

/// The positions of the residues of the first model.
fn positions(before: &str, residues: &[&str]) -> Vec<Option<i32>> {
    let text = text_of(before, residues) + "END\n";
    let structure = read_all(&text, Format::Pdb).swap_remove(0);
    let residues = structure.residues.iter();
    residues.map(|residue| residue.sequence_position).collect()
}

const SEQRES: &str = "SEQRES   1 A    7  MET ALA GLY GLY SER TRP ALA\n";
const HEADING: &str = "\
REMARK 465 MISSING RESIDUES
REMARK 465 THE FOLLOWING RESIDUES WERE NOT LOCATED IN THE
REMARK 465 EXPERIMENT. (M=MODEL NUMBER; RES=RESIDUE NAME; C=CHAIN
REMARK 465 IDENTIFIER; SSSEQ=SEQUENCE NUMBER; I=INSERTION CODE.)
REMARK 465
REMARK 465   M RES C SSSEQI
";

fn missing(residues: &[&str]) -> String {
    let line = |residue: &&str| format!("REMARK 465     {residue}\n");
    let lines: String = residues.iter().map(line).collect();
    format!("{HEADING}{lines}{SEQRES}")
}

fn some<const N: usize>(positions: [i32; N]) -> Vec<Option<i32>> {
    positions.map(Some).to_vec()
}

#[test]
fn unobserved_residues_count() {
    let before = missing(&["MET A     1 ", "GLY A     3 ", "SER A     5 "]);
    let atoms = ["ALA A   2 ", "GLY A   4 ", "TRP A   6 ", "ALA A   7 "];
    assert_eq!(positions(&before, &atoms), some([2, 4, 6, 7]));
    // Of two glycines the one with the lower number is first.
    let before = missing(&["MET A     1 ", "GLY A     4 ", "SER A     5 "]);
    let atoms = ["ALA A   2 ", "GLY A   3 ", "TRP A   6 ", "ALA A   7 "];
    assert_eq!(positions(&before, &atoms), some([2, 3, 6, 7]));
    let before = missing(&["MET A     1 ", "GLY A     3A", "SER A     5 "]);
    assert_eq!(positions(&before, &atoms), some([2, 3, 6, 7]));
    let all = [
        "MET A  11 ",
        "ALA A  12 ",
        "GLY A  13 ",
        "GLY A  14 ",
        "SER A  15 ",
        "TRP A  16 ",
        "ALA A  17 ",
    ];
    assert_eq!(positions(SEQRES, &all), some([1, 2, 3, 4, 5, 6, 7]));
}

#[test]
fn components_of_the_sequence_need_not_be_in_their_columns() {
    let before = "SEQRES   1 A    4   MET  ALA  GLY TRP\n";
    let atoms = ["MET A   1 ", "ALA A   2 ", "GLY A   3 ", "TRP A   4 "];
    assert_eq!(positions(before, &atoms), some([1, 2, 3, 4]));
}

#[test]
fn numbers_may_jump_back() {
    // A fused protein in the middle has numbers of its own.
    let before = missing(&["GLY A   804 ", "SER A     3 "]);
    let atoms = [
        "MET A   1 ",
        "ALA A   2 ",
        "GLY A 803 ",
        "TRP A   4 ",
        "ALA A   5 ",
    ];
    assert_eq!(positions(&before, &atoms), some([1, 2, 3, 6, 7]));
}

#[test]
fn water_ligands_and_other_components_at_a_site_are_no_obstacle() {
    let before = missing(&["MET A     1 ", "GLY A     3 ", "SER A     5 "]);
    let atoms = [
        "ALA A   2 ",
        "GLY A   4 ",
        "TRP A   6 ",
        "ALA A   7 ",
        "HOH A 201 ",
        "GLY A 202 ",
    ];
    let expected: Vec<_> = some([2, 4, 6, 7]).into_iter().chain([None]).collect();
    assert_eq!(positions(&before, &atoms), expected);
    let mut text = text_of(&before, &["ALA A   2 ", "GLY A   4 "]);
    text += "\
ATOM     20  CA AGLN A   6      40.000   0.000   0.000  0.60 20.00           C
ATOM     21  CA BTRP A   6      40.000   0.000   0.000  0.40 20.00           C
ATOM     22  CA  ALA A   7      50.000   0.000   0.000  1.00 20.00           C
END
";
    let structure = read_all(&text, Format::Pdb).swap_remove(0);
    let found = structure
        .residues
        .iter()
        .map(|residue| (residue.aa, residue.sequence_position));
    let expected = [(b'A', 2), (b'G', 4), (b'Q', 6), (b'A', 7)];
    assert!(found.eq(expected.map(|(aa, position)| (aa, Some(position)))));
}

#[test]
fn without_a_sequence_that_fits_there_are_no_positions() {
    let atoms = ["ALA A   2 ", "GLY A   4 ", "TRP A   6 ", "ALA A   7 "];
    let none = vec![None; 4];
    let remark = missing(&["MET A     1 ", "GLY A     3 ", "SER A     5 "]);
    let only_remark = remark.replace(SEQRES, "");
    let of_other_chain = remark.replace("SEQRES   1 A", "SEQRES   1 B");
    let too_few = missing(&["MET A     1 ", "GLY A     3 "]);
    let others = missing(&["MET A     1 ", "GLY A     3 ", "LEU A     5 "]);
    for before in [
        "",
        SEQRES,
        &only_remark,
        &of_other_chain,
        &too_few,
        &others,
        "SEQRES\n",
        "SEQRES   1 A\n",
    ] {
        assert_eq!(positions(before, &atoms), none, "{before}");
    }
}

#[test]
fn remarks_of_a_model_are_for_that_model() {
    let before = "\
REMARK 465   MODELS 1-2
REMARK 465   1 MET A     1
REMARK 465   2 ALA A     2
SEQRES   1 A    3  MET ALA GLY
";
    let model = |number: u32, residues: &[&str]| {
        format!("MODEL     {number:4}\n{}ENDMDL\n", text_of("", residues))
    };
    let text = before.to_owned()
        + &model(1, &["ALA A   2 ", "GLY A   3 "])
        + &model(2, &["MET A   1 ", "GLY A   3 "]);
    let structures = read_all(&text, Format::Pdb);
    let positions = |structure: &Structure| -> Vec<_> {
        let residues = structure.residues.iter();
        residues.map(|residue| residue.sequence_position).collect()
    };
    assert_eq!(positions(&structures[0]), some([2, 3]));
    assert_eq!(positions(&structures[1]), some([1, 3]));
}

#[test]
fn positions_are_not_searched_for_in_many_models_of_one_long_sequence() {
    const COUNT: usize = 6_000;
    let sequence = ["GLY "; 13].concat();
    let lines = COUNT.div_ceil(13);
    let mut text = format!("SEQRES   1 A{COUNT:5}  {sequence}\n").repeat(lines);
    let unobserved = 13 * lines - 1;
    for number in 1..=unobserved {
        text += &format!("REMARK 465     GLY A {number:5} \n");
    }
    text += &format!("{}END\n", text_of("", &["GLY A   0 "])).repeat(COUNT);
    let models = read_all(&text, Format::Pdb);
    let position = |model: &Structure| model.residues[0].sequence_position;
    assert_eq!(models.len(), COUNT);
    assert_eq!(position(&models[0]), Some(1));
    assert_eq!(models.last().map(position), Some(None));
}

#[test]
fn the_first_of_models_that_number_a_sequence_differently_counts() {
    let model = |number: i32| {
        let residues = [("MET", 10 * number), ("ALA", 10 * number + 1)];
        let residues = residues.map(|(comp, number)| format!("{comp} A{number:4} "));
        let atoms = text_of("", &residues.each_ref().map(String::as_str));
        format!("MODEL     {number:4}\n{atoms}ENDMDL\n")
    };
    let models: String = (1..=40).map(model).collect();
    let mut reader = Reader::new(ReadOptions {
        models: Models::All,
        sequences: true,
        ..ReadOptions::default()
    });
    let text = format!("SEQRES   1 A    2  MET ALA\n{models}END\n");
    let structures = reader.read_bytes(text.as_bytes(), Format::Pdb).unwrap();
    let sequence = structures[0].chains[0].sequence.as_ref().unwrap();
    let numbers = sequence.iter().map(|residue| residue.auth_seq_id);
    assert_eq!(numbers.collect::<Vec<_>>(), some([10, 11]));
}

#[test]
fn positions_number_a_chain_where_they_increase() {
    let before = "SEQRES   1 A    2  ALA GLY\nSEQRES   1 B    2  GLY GLY\n";
    let residues = ["ALA A   1 ", "GLY A   2 ", "GLY B   1 "];
    let text = text_of(before, &residues) + "END\n";
    let mut structure = read_all(&text, Format::Pdb).swap_remove(0);
    assert_eq!(structure.first_positions(), [Some(1), None]);
    let mut with = |positions: [i32; 2]| {
        for (residue, position) in structure.residues.iter_mut().zip(positions) {
            residue.sequence_position = Some(position);
        }
        structure.first_positions()[0]
    };
    assert_eq!(with([-3, 5]), Some(-3));
    assert_eq!(with([7, 7]), None, "two residues at one position");
    assert_eq!(with([7, 6]), None);
    assert_eq!(with([0, 1 << 20]), Some(0));
    assert_eq!(with([0, (1 << 20) + 1]), None);
    assert_eq!(with([i32::MIN, i32::MAX]), None);
}

#[test]
fn mmcif_has_label_seq_id() {
    let path = repository("samples/7etn.cif.gz");
    let mut reader = Reader::new(ReadOptions::default());
    let structure = reader.read_path(&path).unwrap().swap_remove(0);
    assert!(!structure.residues.is_empty());
    let is_label =
        |residue: &tapeloop_structure::Residue| residue.sequence_position == residue.label_seq_id;
    assert!(structure.residues.iter().all(is_label));
    assert!(structure.residues[0].label_seq_id.is_some());
}

/// Entries whose PDB and mmCIF files are both among the samples.
#[test]
fn the_two_formats_of_an_entry_agree() {
    let mut reader = Reader::new(ReadOptions::default());
    let mut positions_in = |name: &str| {
        let path = repository("samples").join(name);
        let structure = reader.read_path(&path).unwrap().swap_remove(0);
        let residues = structure.residues.iter();
        let positions: Vec<_> = residues.map(|residue| residue.sequence_position).collect();
        positions
    };
    let positions = positions_in("1a8o.pdb");
    assert!(positions.iter().all(Option::is_some));
    assert_eq!(positions, positions_in("1a8o.cif.gz"));
}
