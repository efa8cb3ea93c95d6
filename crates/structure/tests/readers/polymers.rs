//! What is polymer, which conformer is there, what is linked: one small file
//! each.

use tapeloop_structure::{Chain, Format, Radii, ReadOptions, Reader, Structure};

fn try_read(
    options: ReadOptions,
    text: &str,
    format: Format,
) -> tapeloop_structure::Result<Structure> {
    Reader::new(options)
        .read_bytes(text.as_bytes(), format)
        .map(|mut all| all.remove(0))
}

fn pdb(lines: &[String]) -> Structure {
    try_read(ReadOptions::default(), &lines.concat(), Format::Pdb).unwrap()
}

/// An atom line; `id` is columns 13 to 27, `x` in A.
fn line(record: &str, id: &str, x: f64, occupancy: f64) -> String {
    format!(
        "{record:<6}    1 {id:<15}   {x:8.3}{:8.3}{:8.3}{occupancy:6.2} 10.00\n",
        0.0, 0.0
    )
}

fn atom(id: &str, x: f64) -> String {
    line("ATOM", id, x, 1.0)
}

fn hetatm(id: &str, x: f64) -> String {
    line("HETATM", id, x, 1.0)
}

fn comps(structure: &Structure) -> Vec<String> {
    let text = |comp: &[u8; 8]| String::from_utf8_lossy(comp).trim_end().to_string();
    structure
        .residues
        .iter()
        .map(|residue| text(&residue.comp_id))
        .collect()
}

fn xs(structure: &Structure) -> Vec<i32> {
    structure.xyz.iter().map(|xyz| xyz[0]).collect()
}

#[test]
fn waters_ligands_and_ions_are_dropped() {
    let structure = pdb(&[
        atom(" CA  ALA A   1 ", 0.0),
        atom(" O   HOH A   2 ", 1.0),
        atom("CA    CA A   3 ", 2.0),
        hetatm(" C1  HEM A   4 ", 3.0),
        atom(" CA  HSD A   5 ", 4.0),
    ]);
    assert_eq!(
        comps(&structure),
        ["ALA", "HSD"],
        "HSD is histidine to simulation programs"
    );
    assert_eq!(&structure.residues[1].parent_comp_id, b"HIS     ");
}

#[test]
fn a_hetatm_must_be_linked_marked_or_selenomethionine() {
    let chain = |modres: &str, x: f64| {
        [
            modres.to_string(),
            atom(" C   ALA A   1 ", 0.0),
            hetatm(" N   SEP A   2 ", x),
            hetatm(" CA  MSE A   9 ", 50.0),
        ]
    };
    assert_eq!(comps(&pdb(&chain("", 1.999))), ["ALA", "SEP", "MSE"]);
    assert_eq!(comps(&pdb(&chain("", 2.0))), ["ALA", "MSE"]);
    let modres = "MODRES 1ABC SEP A    2  SER  PHOSPHOSERINE\n";
    assert_eq!(comps(&pdb(&chain(modres, 9.0))), ["ALA", "SEP", "MSE"]);
    let other = "MODRES 1ABC SEP A    3  SER  PHOSPHOSERINE\n";
    assert_eq!(comps(&pdb(&chain(other, 9.0))), ["ALA", "MSE"]);
}

#[test]
fn links_reach_forward_across_alternatives_and_only_within_a_chain() {
    let forward = [hetatm(" C   SEP A   1 ", 0.0), atom(" N   ALA A   2 ", 1.3)];
    assert_eq!(comps(&pdb(&forward)), ["SEP", "ALA"]);
    let second = [
        atom(" C  AALA A   1 ", 9.0),
        atom(" C  BGLY A   1 ", 0.0),
        hetatm(" N   SEP A   2 ", 1.3),
    ];
    assert_eq!(comps(&pdb(&second)), ["ALA", "SEP"]);
    let other_chain = [atom(" C   ALA A   1 ", 0.0), hetatm(" N   SEP B   2 ", 1.3)];
    assert_eq!(comps(&pdb(&other_chain)), ["ALA"]);
    let free = [
        hetatm(" N   GLU A   1 ", 0.0),
        hetatm(" C   GLU A   1 ", 2.4),
        atom(" N   ALA A   2 ", 9.0),
    ];
    assert_eq!(comps(&pdb(&free)), ["ALA"], "free glutamate is a ligand");
}

#[test]
fn nucleotides_and_caps_are_atoms_without_rows() {
    let lines = [
        atom(" CH3 ACE A   0 ", 1.0),
        atom(" CA  ALA A   1 ", 2.0),
        atom(" O3'  DA B   1 ", 5.0),
        hetatm(" P    DG B   2 ", 6.0),
        hetatm(" O3'  DG B   2 ", 9.0),
        hetatm(" P   PSU B   3 ", 10.5),
        atom(" N   NH2 A   2 ", 3.0),
    ];
    let structure = pdb(&lines);
    assert_eq!(
        (
            comps(&structure).as_slice(),
            structure.atom_start.as_slice()
        ),
        (&["ALA".to_string()][..], &[0, 1][..])
    );
    assert_eq!(
        xs(&structure),
        [2_000, 1_000, 5_000, 6_000, 9_000, 10_500, 3_000]
    );
    let options = ReadOptions {
        nucleic: false,
        ..ReadOptions::default()
    };
    let without = try_read(options, &lines.concat(), Format::Pdb).unwrap();
    assert_eq!(xs(&without), [2_000, 1_000, 3_000]);
    let dna = try_read(ReadOptions::default(), &lines[2], Format::Pdb).unwrap();
    assert_eq!((dna.chains.len(), dna.row_chains().len()), (1, 0));
    assert_eq!(
        (dna.residues.len(), dna.xyz.len(), dna.atom_start),
        (0, 1, vec![0])
    );
}

#[test]
fn atoms_without_a_row_know_their_chain() {
    let structure = pdb(&[
        atom(" P    DA B   1 ", 0.0),
        atom(" P    DA C   1 ", 1.0),
        atom(" CH3 ACE A   0 ", 2.0),
        atom(" CA  ALA A   1 ", 3.0),
        atom(" N   NH2 A   2 ", 4.0),
        atom(" P    DG C   2 ", 5.0),
        atom(" CA  GLY D   2 ", 6.0),
    ]);
    assert_eq!(
        xs(&structure),
        [3_000, 6_000, 0, 1_000, 2_000, 4_000, 5_000]
    );
    let spans = structure.loose.iter().map(|span| {
        let chain = &structure.chains[span.chain as usize];
        (&*chain.auth_asym_id, span.atom_count)
    });
    let expected = [("B", 1), ("C", 1), ("A", 2), ("C", 1)];
    assert_eq!(spans.collect::<Vec<_>>(), expected);
    let names = |chains: &[Chain]| -> Vec<String> {
        chains.iter().map(|c| c.auth_asym_id.to_string()).collect()
    };
    assert_eq!(names(&structure.chains), ["A", "D", "B", "C"]);
    assert_eq!(names(structure.row_chains()), ["A", "D"]);
}

#[test]
fn an_atom_has_the_radius_of_its_name_in_the_parent() {
    let structure = pdb(&[
        hetatm(" CH3 ACE A   0 ", 0.0),
        hetatm(" C   ACE A   0 ", 1.0),
        atom(" N   PHE A   1 ", 2.0),
        atom(" O   PHE A   1 ", 3.0),
        atom(" CZ  PHE A   1 ", 4.0),
        hetatm("SE   MSE A   2 ", 5.0),
        hetatm(" CE  MSE A   2 ", 6.0),
        atom(" OP1  DA B   1 ", 7.0),
        atom(" C8   DA B   1 ", 8.0),
        atom(" O3*  DA B   1 ", 9.0),
    ]);
    let classes = structure.class.iter().map(|class| {
        (
            Radii::default().milli_angstrom(*class),
            class.is_side(),
            class.is_polar(),
        )
    });
    let expected = [
        (1640, false, true),
        (1420, false, true),
        (1760, true, false),
        (1900, true, true),
        (1880, true, false),
        (1880, true, false),
        (1760, false, false),
        (1420, true, true),
        (1760, true, false),
        (1460, true, true),
    ];
    assert_eq!(classes.collect::<Vec<_>>(), expected);
}

#[test]
fn one_conformer_a_residue() {
    let structure = pdb(&[
        line("ATOM", " N   ALA A   1 ", 0.0, 1.0),
        line("ATOM", " CA AALA A   1 ", 1.0, 0.2),
        line("ATOM", " CA BALA A   1 ", 2.0, 0.6),
        line("ATOM", " CB AALA A   1 ", 3.0, 0.2),
        line("ATOM", " CA AGLY A   2 ", 4.0, 0.5),
        line("ATOM", " CA BGLY A   2 ", 5.0, 0.5),
        line("ATOM", " CA AGLY A   3 ", 6.0, 0.0),
    ]);
    assert_eq!(xs(&structure), [0, 2_000, 3_000, 4_000, 6_000]);
}

#[test]
fn microheterogeneity_is_one_row_in_any_line_order() {
    let grouped = [
        line("ATOM", " N  ASER A   1 ", 0.0, 0.4),
        line("ATOM", " CA ASER A   1 ", 1.0, 0.4),
        line("ATOM", " N  BTHR A   1 ", 2.0, 0.6),
        line("ATOM", " CA BTHR A   1 ", 3.0, 0.6),
        line("ATOM", " CA  ALA A   2 ", 4.0, 1.0),
    ];
    let structure = pdb(&grouped);
    assert_eq!(
        (comps(&structure).join(" "), xs(&structure)),
        ("THR ALA".into(), vec![2_000, 3_000, 4_000])
    );
    let mut mixed = grouped;
    mixed.swap(1, 2);
    assert_eq!(pdb(&mixed), structure);
}

#[test]
fn residues_of_one_number_without_altlocs_are_two() {
    let structure = pdb(&[
        atom(" CA  ALA A   1 ", 0.0),
        atom(" CA  GLY A   1 ", 1.0),
        atom(" CA  GLY A   1A", 2.0),
    ]);
    assert_eq!(comps(&structure), ["ALA", "GLY", "GLY"]);
}

#[test]
fn lines_that_come_later_join_their_residue() {
    let structure = pdb(&[
        atom(" N   ALA A   1 ", 0.0),
        atom(" N   GLY A   2 ", 1.0),
        atom(" CA  ALA A   1 ", 2.0),
        atom(" CA  GLY A   2 ", 3.0),
    ]);
    assert_eq!(
        (comps(&structure).len(), xs(&structure)),
        (2, vec![0, 2_000, 1_000, 3_000])
    );
}

#[test]
fn numbers_used_twice_are_two_residues() {
    let structure = pdb(&[
        atom(" CA  ALA A   1 ", 0.0),
        atom(" CA  GLY B   1 ", 1.0),
        atom(" CA  ALA A   1 ", 2.0),
    ]);
    assert_eq!((comps(&structure).len(), structure.chains.len()), (3, 2));
    assert_eq!(structure.residues[2].chain, 0);
}

#[test]
fn breaks_follow_the_links() {
    let structure = pdb(&[
        atom(" N   ALA A   1 ", 0.0),
        atom(" C   ALA A   1 ", 2.0),
        atom(" N   ALA A   2 ", 3.999),
        atom(" C   ALA A   2 ", 5.0),
        atom(" N   ALA A   3 ", 7.0),
        atom(" CA  ALA A   3 ", 8.0),
        atom(" CA  ALA A   4 ", 12.299),
        atom(" CA  ALA A   5 ", 16.599),
        atom(" CA  ALA B   6 ", 16.7),
        atom(" N   ALA B   7 ", 16.8),
    ]);
    let breaks: Vec<bool> = structure
        .residues
        .iter()
        .map(|residue| residue.break_before)
        .collect();
    assert_eq!(breaks, [true, false, true, false, true, true, true]);
}

const ATOM_SITE: &str = "loop_\n_atom_site.group_PDB\n_atom_site.label_atom_id\n_atom_site.label_comp_id\n\
    _atom_site.label_asym_id\n_atom_site.auth_asym_id\n_atom_site.label_entity_id\n_atom_site.label_seq_id\n\
    _atom_site.auth_seq_id\n_atom_site.B_iso_or_equiv\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n";

fn mmcif(text: &str) -> Structure {
    try_read(
        ReadOptions::default(),
        &format!("data_x\n{text}"),
        Format::Mmcif,
    )
    .unwrap()
}

#[test]
fn the_entity_decides_where_the_file_has_it() {
    let rows = "HETATM CA XYZ A A 1 1 1 9 0 0 0\nATOM CA ALA B A 2 . 2 9 1 0 0\nHETATM O HOH C A 3 . 3 9 2 0 0\n";
    let entities = "loop_\n_entity.id\n_entity.type\n1 polymer\n2 non-polymer\n3 water\n";
    let poly = "_entity_poly.entity_id 1\n_entity_poly.type 'polypeptide(L)'\n";
    let before = mmcif(&format!("{entities}{poly}{ATOM_SITE}{rows}"));
    assert_eq!(comps(&before), ["XYZ"]);
    assert_eq!(
        (before.residues[0].aa, &before.residues[0].parent_comp_id),
        (b'X', b"        ")
    );
    assert_eq!(
        mmcif(&format!("{ATOM_SITE}{rows}{poly}{entities}")),
        before,
        "in any order"
    );
    let chem_comp = "_chem_comp.id XYZ\n_chem_comp.type 'RNA linking'\n";
    assert_eq!(
        mmcif(&format!("{entities}{poly}{ATOM_SITE}{rows}{chem_comp}")).residues,
        []
    );
    assert_eq!(
        comps(&mmcif(&format!("{ATOM_SITE}{rows}"))),
        ["ALA"],
        "else the component"
    );
}

#[test]
fn the_entity_comes_from_struct_asym_where_the_atoms_lack_it() {
    let text = format!(
        "{ATOM_SITE}ATOM CA ALA A A ? . 1 9 0 0 0\nATOM CA GLY B A ? . 2 9 1 0 0\n\
         loop_\n_struct_asym.id\n_struct_asym.entity_id\nA 1\nB 2\n\
         loop_\n_entity.id\n_entity.type\n1 polymer\n2 non-polymer\n"
    );
    let structure = mmcif(&text);
    assert_eq!(comps(&structure), ["ALA"]);
    assert_eq!(structure.chains[0].entity_id.as_deref(), Some("1"));
}

#[test]
fn label_seq_id_does_not_decide() {
    let rows = "ATOM CA ALA A A . . 1 9 0 0 0\nHETATM C1 HEM A A . 2 2 9 0 0 0\n";
    assert_eq!(comps(&mmcif(&format!("{ATOM_SITE}{rows}"))), ["ALA"]);
}

#[test]
fn chains_differ_in_either_id() {
    let chains = |rows: &str| mmcif(&format!("{ATOM_SITE}{rows}")).chains.len();
    assert_eq!(
        chains("ATOM CA ALA . A . 1 1 9 0 0 0\nATOM CA ALA . B . 1 1 9 0 0 0\n"),
        2
    );
    assert_eq!(
        chains("ATOM CA ALA A . . 1 1 9 0 0 0\nATOM CA ALA B . . 1 1 9 0 0 0\n"),
        2
    );
    let structure = mmcif(&format!("{ATOM_SITE}ATOM CA ALA A . . 1 ? 9 0 0 0\n"));
    let chain = &structure.chains[0];
    assert_eq!(
        (&*chain.auth_asym_id, chain.label_asym_id.as_deref()),
        ("A", Some("A"))
    );
    assert_eq!(structure.residues[0].auth_seq_id, 1, "the label stands in");
    let none = mmcif(&format!("{ATOM_SITE}ATOM CA ALA . . . 1 ? 9 0 0 0\n"));
    assert_eq!(
        (
            &*none.chains[0].auth_asym_id,
            none.chains[0].label_asym_id.as_deref()
        ),
        ("", None)
    );
}

#[test]
fn ter_ends_the_chain_for_hetatm_residues() {
    let chain = |ter: &str| {
        pdb(&[
            atom(" CA  GLY A   1 ", 0.0),
            atom(" C   ALA A   2 ", 1.0),
            ter.to_string(),
            hetatm(" N   SEP A   3 ", 2.3),
        ])
    };
    assert_eq!(comps(&chain("")), ["GLY", "ALA", "SEP"]);
    for ter in ["TER\n", "TER       3      ALA A   2\n"] {
        assert_eq!(comps(&chain(ter)), ["GLY", "ALA"], "{ter:?}");
    }
    let next_molecule = pdb(&[
        atom(" CA  GLY     1 ", 0.0),
        "TER\n".to_string(),
        hetatm(" C   SEP     2 ", 5.0),
        atom(" N   ALA     3 ", 6.3),
        "TER\n".to_string(),
        hetatm(" C   GLY     4 ", 9.0),
        hetatm(" N   GLY     5 ", 10.3),
        hetatm(" CA  MSE     9 ", 50.0),
    ]);
    assert_eq!(
        comps(&next_molecule),
        ["GLY", "SEP", "ALA", "MSE"],
        "molecules may share an id; selenomethionine is no ligand"
    );
}

#[test]
fn links_must_lead_to_the_chain() {
    let residues = |record: &str, x: f64| {
        [
            atom(" C   ALA A   1 ", 0.0),
            line(record, " N   SEP A   2 ", x, 1.0),
            line(record, " C   SEP A   2 ", x + 2.4, 1.0),
            line(record, " N   TPO A   3 ", x + 3.7, 1.0),
        ]
    };
    assert_eq!(comps(&pdb(&residues("HETATM", 1.3))), ["ALA", "SEP", "TPO"]);
    assert_eq!(comps(&pdb(&residues("HETATM", 9.0))), ["ALA"]);
    assert_eq!(comps(&pdb(&residues("ATOM", 9.0))), ["ALA", "SEP", "TPO"]);
    let seqres = "SEQRES   1 A    3  ALA SEP TPO\n".to_string();
    let mut listed = vec![seqres];
    listed.extend(residues("HETATM", 9.0));
    assert_eq!(comps(&pdb(&listed)), ["ALA", "SEP", "TPO"]);
    let alone = &residues("HETATM", 9.0)[1..];
    assert_eq!(
        comps(&pdb(alone)),
        ["SEP", "TPO"],
        "a chain of linked amino acids without other records"
    );
}

#[test]
fn a_component_of_seqres_is_polymer_in_its_chain_before_ter() {
    let structure = pdb(&[
        "SEQRES   1 A    3  ALA XYZ ALA\n".to_string(),
        "SEQRES   1 B    2   DA XYZ\n".to_string(),
        atom(" CA  ALA A   1 ", 0.0),
        hetatm(" CA  XYZ A   2 ", 9.0),
        "TER\n".to_string(),
        atom(" P    DA B   1 ", 20.0),
        hetatm(" P   XYZ B   2 ", 21.0),
        "TER\n".to_string(),
        hetatm(" CA  XYZ A 301 ", 30.0),
        hetatm(" CA  XYZ C   1 ", 40.0),
    ]);
    assert_eq!(comps(&structure), ["ALA", "XYZ"]);
    assert_eq!(xs(&structure), [0, 9_000, 20_000, 21_000]);
}

#[test]
fn an_entity_of_entity_poly_alone_is_polymer() {
    let poly = "_entity_poly.entity_id 1\n_entity_poly.type 'polypeptide(L)'\n";
    let chem_comp = "_chem_comp.id XYZ\n_chem_comp.type non-polymer\n";
    let rows = "HETATM CA XYZ A A 1 1 1 9 0 0 0\nHETATM CA GLY B A 2 . 2 9 1 0 0\n";
    let structure = mmcif(&format!("{poly}{chem_comp}{ATOM_SITE}{rows}"));
    assert_eq!(comps(&structure), ["XYZ"]);
}

#[test]
fn scattered_lines_are_of_one_residue_up_to_1000_atoms() {
    let residues = |count: u32| {
        let first = (0..count).map(|i| atom(&format!("C{i:03} ALA A   1"), 1.0));
        let rest = [atom(" CA  ALA A   2", 4.8), atom(" CA  ALA A   1", 1.0)];
        pdb(&first.chain(rest).collect::<Vec<_>>()).residues.len()
    };
    assert_eq!(residues(999), 2);
    assert_eq!(residues(1000), 3);
}
