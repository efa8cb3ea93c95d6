//! The rules of the PDB reader, one small file each.

use crate::has_parts;
use tapeloop_structure::ErrorKind;
use tapeloop_structure::{Format, MISSING, Models, ReadOptions, Reader, Structure};

fn read_with(options: ReadOptions, text: &str) -> tapeloop_structure::Result<Vec<Structure>> {
    Reader::new(options).read_bytes(text.as_bytes(), Format::Pdb)
}

fn all_models(text: &str) -> Vec<Structure> {
    read_with(
        ReadOptions {
            models: Models::All,
            ..ReadOptions::default()
        },
        text,
    )
    .unwrap()
}

fn read(text: &str) -> Structure {
    let mut structures = read_with(ReadOptions::default(), text).unwrap();
    assert_eq!(structures.len(), 1);
    structures.remove(0)
}

fn error(text: &str) -> String {
    let error = read_with(ReadOptions::default(), text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    error.to_string()
}

/// An atom line; `id` is columns 13 to 27 (name, altloc, component, chain,
/// number, insertion code).
fn atom(record: &str, id: &str, [x, y, z]: [f64; 3], element: &str) -> String {
    format!("{record:<6}    1 {id:<15}   {x:8.3}{y:8.3}{z:8.3}  1.00 10.00          {element:>2}\n")
}

fn ca(id: &str, x: f64) -> String {
    atom("ATOM", &format!(" CA  {id}"), [x, 0.0, 0.0], "C")
}

fn names(structure: &Structure) -> Vec<String> {
    structure
        .residues
        .iter()
        .map(|residue| {
            let chain = &structure.chains[residue.chain as usize].auth_asym_id;
            let comp = String::from_utf8_lossy(&residue.comp_id);
            let ins_code = if residue.ins_code == 0 {
                ' '
            } else {
                char::from(residue.ins_code)
            };
            format!(
                "{chain}{}{ins_code}{}",
                residue.auth_seq_id,
                comp.trim_end()
            )
        })
        .collect()
}

#[test]
fn columns_become_fields() {
    let text = "\
HEADER    HYDROLASE                               01-JAN-00   1ABC              
DBREF  1ABC A   10    12  UNP    P12345   TEST_HUMAN     110    112             
ATOM      1  N   MET A  10     -12.345   0.001 999.999  0.50 -5.25           N  
ATOM      2  CA  MET A  10     -12.000   1.500 999.000  1.00 20.00           C  
ATOM      3  CB  MET A  10A    -12.000   1.500 999.000  1.00 20.00           C  
";
    let structure = read(text);
    assert_eq!(structure.entry_id.as_deref(), Some("1ABC"));
    assert_eq!(structure.model, 1);
    assert_eq!(structure.xyz[0], [-12_345, 1, 999_999]);
    assert_eq!(structure.element, [7, 6, 6]);
    assert_eq!(structure.b_factor, [-5.25, 20.0, 20.0]);
    assert_eq!(names(&structure), ["A10 MET", "A10AMET"]);
    let residue = structure.residues[0];
    assert_eq!(
        (residue.n, residue.ca, residue.c, residue.cb),
        (0, 1, MISSING, MISSING)
    );
    assert_eq!((residue.aa, &residue.parent_comp_id), (b'M', b"MET     "));
    assert_eq!(residue.label_seq_id, None);
    let uniprot = residue.uniprot.unwrap();
    assert_eq!(
        (
            &*structure.uniprot[uniprot.accession as usize],
            uniprot.position
        ),
        ("P12345", 110)
    );
    assert_eq!(
        structure.residues[1].uniprot, None,
        "a range says nothing of insertions"
    );
    assert_eq!(structure.atom_start, [0, 2, 3]);
}

#[test]
fn long_names_of_dbref1_and_dbref2() {
    let text = format!(
        "DBREF1 6MHF A    5     9  UNP                   A0A0B4J2F2_HUMAN\n\
         DBREF2 6MHF A     A0A0B4J2F2                         27          31\n{}",
        ca("GLY A   6 ", 0.0)
    );
    let structure = read(&text);
    let uniprot = structure.residues[0].uniprot.unwrap();
    assert_eq!(
        (&*structure.uniprot[0], uniprot.position),
        ("A0A0B4J2F2", 28)
    );
}

#[test]
fn dbref_ranges_of_unequal_length_map_nothing() {
    let line = "DBREF  1ABC A   10    12  UNP    P12345   TEST_HUMAN     110    119\n";
    assert_eq!(
        read(&format!("{line}{}", ca("GLY A  10 ", 0.0))).residues[0].uniprot,
        None
    );
}

#[test]
fn residue_numbers_negative_and_hybrid_36() {
    let text = [
        ca("GLY A-999 ", 0.0),
        ca("GLY AA000 ", 1.0),
        ca("GLY AZZZZ ", 2.0),
        ca("GLY Aa000 ", 3.0),
    ];
    let numbers: Vec<i32> = read(&text.concat())
        .residues
        .iter()
        .map(|r| r.auth_seq_id)
        .collect();
    assert_eq!(
        numbers,
        [
            -999,
            10_000,
            10_000 + 26 * 36i32.pow(3) - 1,
            10_000 + 26 * 36i32.pow(3)
        ]
    );
}

#[test]
fn component_ids_of_four_letters_leave_one_for_the_chain() {
    // Lysine of a simulation, known as such; then an unknown one without chain.
    let text = ca("LYSHA   4 ", 0.0) + &ca("GLYAA   5 ", 3.8) + &ca("SYST    6 ", 7.6);
    assert_eq!(names(&read(&text)), ["A4 LYSH", "AA5 GLY"]);
}

#[test]
fn chain_ids_may_have_two_characters() {
    assert_eq!(
        names(&read(
            &[ca("GLYAB   1 ", 0.0), ca("GLY B   1 ", 0.0)].concat()
        )),
        ["AB1 GLY", "B1 GLY"]
    );
}

#[test]
fn lines_may_end_early_in_crlf_or_not_at_all() {
    let text = "ATOM      1  CA  GLY A   1       1.000   2.000   3.000\r\n\
                ATOM      2  CA  GLY A   2       1.000   2.000   3.000  0.50\r\nTER\r\n\
                ATOM      3  C   GLY A   2       1.000   2.000   3.000  1.00  5.00";
    let structure = read(text);
    assert_eq!(structure.xyz.len(), 3);
    assert!(structure.b_factor[0].is_nan() && structure.b_factor[1].is_nan());
    assert_eq!(structure.b_factor[2], 5.0);
    assert_eq!(structure.element, [6, 6, 6], "from the names");
}

#[test]
fn serial_numbers_may_be_anything() {
    for serial in ["99999", "*****", "A0000", "     ", "186a0"] {
        let line =
            format!("ATOM  {serial}  CA  GLY A   1       1.000   2.000   3.000  1.00  5.00\n");
        assert_eq!(read(&line).xyz.len(), 1, "{serial}");
    }
}

#[test]
fn models_first_or_all() {
    let text = format!(
        "MODEL        3\n{}ENDMDL\nMODEL        5\n{}ENDMDL\nEND\n{}",
        ca("GLY A   1 ", 1.0),
        ca("GLY A   1 ", 2.0),
        ca("GLY A   1 ", 3.0),
    );
    assert_eq!((read(&text).model, read(&text).xyz[0][0]), (3, 1_000));
    let models: Vec<_> = all_models(&text)
        .iter()
        .map(|s| (s.model, s.xyz[0][0]))
        .collect();
    // What follows END has no number. It is the third model, and another one is called 3.
    assert_eq!(models, [(3, 1_000), (5, 2_000), (6, 3_000)]);
}

#[test]
fn numbers_of_models_may_have_five_digits() {
    // As MDAnalysis writes them, from column 11 on.
    let text = format!(
        "MODEL     20000\n{}ENDMDL\nMODEL     20010\n{}ENDMDL\n",
        ca("GLY A   1 ", 1.0),
        ca("GLY A   1 ", 2.0),
    );
    let models: Vec<_> = all_models(&text).iter().map(|s| s.model).collect();
    assert_eq!(models, [20_000, 20_010]);
}

#[test]
fn a_number_of_five_digits_may_follow_any_number() {
    // The last four digits of the first begin with 0, so it is no chain id; gaps are at most 1,000.
    let wide = [2147480647, 2147481647, 2147482647, i32::MAX];
    let lines = wide.map(|number| {
        format!("ATOM      1  CA  GLY A{number}    1000.000   0.000   0.000  1.00 10.00\n")
    });
    let structure = read(&(lines.concat() + &ca("GLY A12345", 5.0)));
    let numbers = structure.residues.iter();
    let numbers: Vec<_> = numbers.map(|residue| residue.auth_seq_id).collect();
    assert_eq!(numbers[..4], wide);
    assert_eq!(numbers[4..], [12_345]);
}

#[test]
fn models_without_model_or_endmdl() {
    let frames = format!(
        "{}ENDMDL\n{}ENDMDL\n",
        ca("GLY A   1 ", 1.0),
        ca("GLY A   1 ", 2.0)
    );
    assert_eq!(
        all_models(&frames)
            .iter()
            .map(|s| s.model)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    let open = format!(
        "MODEL\n{}MODEL\n{}",
        ca("GLY A   1 ", 1.0),
        ca("GLY A   1 ", 2.0)
    );
    assert_eq!(
        all_models(&open)
            .iter()
            .map(|s| s.model)
            .collect::<Vec<_>>(),
        [1, 2]
    );
}

#[test]
fn alpha_carbon_is_no_calcium() {
    // Whatever the element's columns and those of the name say: no methionine has calcium.
    let with_element = atom("ATOM", "CA   MET A   1 ", [0.0; 3], "CA");
    let structure = read(&with_element);
    assert_eq!((structure.residues[0].ca, structure.element[0]), (0, 6));
    let left_aligned = atom("ATOM", "CA   MET A   1 ", [0.0; 3], "");
    let structure = read(&left_aligned);
    assert_eq!((structure.residues[0].ca, structure.element[0]), (0, 6));
}

#[test]
fn hydrogen_and_deuterium_are_dropped_with_and_without_element() {
    let text = [
        ca("ALA A   1 ", 0.0),
        atom("ATOM", " HA  ALA A   1 ", [0.0; 3], "H"),
        atom("ATOM", " DA  ALA A   1 ", [0.0; 3], "D"),
        atom("ATOM", "1HB  ALA A   1 ", [0.0; 3], ""),
        atom("ATOM", "HG11 ALA A   1 ", [0.0; 3], ""),
        atom("ATOM", "HE1  ALA A   1 ", [0.0; 3], ""),
    ];
    assert_eq!(read(&text.concat()).element, [6]);
}

#[test]
fn more_decimals_round_half_away_from_zero_and_are_counted() {
    let text = "ATOM      1  CA  GLY A   1      1.2345 -1.2345   3.000  1.00  5.00\n\
                ATOM      2  C   GLY A   1      1.2340   1.e0   +3.000  1.00  5.00\n";
    let structure = read(text);
    assert_eq!(
        structure.xyz,
        [[1_235, -1_235, 3_000], [1_234, 1_000, 3_000]]
    );
    assert_eq!(structure.rounded_atoms, 1);
}

#[test]
fn bad_lines_are_named() {
    let good = ca("GLY A   1 ", 0.0);
    let with =
        |field: &str| format!("{good}ATOM      1  CA  GLY A   2    {field:>8}   0.000   0.000\n");
    for (text, wanted) in [
        (with("nan"), "line 2: x .. \"nan\""),
        (with("-inf"), "line 2: x .. \"-inf\""),
        (with("********"), "line 2: x .. \"********\""),
        (with(""), "line 2: x .. \"\""),
        (with("1 2.000"), "line 2: x .. \"1 2.000\""),
        (with("1e9"), "line 2: x .. \"1e9\" .. 100000 A"),
        (with("100000.1"), "line 2: x .. \"100000.1\" .. 100000 A"),
        (
            format!("{good}ATOM      2  CA  GLY A   2       1.000   2.0"),
            "line 2: .. line ends",
        ),
        (format!("{good}ATOM\n"), "line 2: .. line ends"),
        (ca("GLY A**** ", 0.0), "line 1: .. number"),
    ] {
        assert!(has_parts(&error(&text), wanted), "{}", error(&text));
    }
    assert_eq!(read(&with("99999.99")).xyz[1][0], 99_999_990);
}

#[test]
fn files_without_structure_say_so() {
    for text in [
        "HEADER    X\nEND\n",
        "Dear Sir or Madam,\n",
        "REMARK ATOM\n",
    ] {
        assert!(error(text).contains("ATOM or HETATM"), "{}", error(text));
    }
    let water = atom("HETATM", " O   HOH A   1 ", [0.0; 3], "O");
    assert!(error(&water).starts_with("no polymer residues"));
    let odd_water = format!(
        "{}{}",
        ca("GLY A   1 ", 0.0),
        atom("ATOM", " O   HOH A**** ", [0.0; 3], "O")
    );
    assert_eq!(
        read(&odd_water).residues.len(),
        1,
        "numbers of what is dropped do not matter"
    );
}

#[test]
fn empty_occupancy_counts_as_one() {
    let text = "ATOM      1  CA AGLY A   1       1.000   2.000   3.000  0.60\n\
                ATOM      2  CA BGLY A   1       2.000   2.000   3.000\n";
    assert_eq!(read(text).xyz, [[2_000, 2_000, 3_000]]);
}
