//! Where the roles of atoms come from, besides names and geometry.

use super::component::perceive_known;
use super::{ChemistrySource, Components, Roles};
use crate::text8::text8;
use crate::{ReadOptions, Reader, Structure};

/// A dictionary with benzoic acid, aniline as two of its atoms, and zinc, whose categories have no
/// loops.
const DICTIONARY: &str = "\
data_BZA
loop_
_chem_comp_atom.comp_id
_chem_comp_atom.atom_id
_chem_comp_atom.type_symbol
BZA C1 C
BZA C2 C
BZA C3 C
BZA C4 C
BZA C5 C
BZA C6 C
BZA C7 C
BZA O1 O
BZA O2 O
BZA HO2 H
loop_
_chem_comp_bond.comp_id
_chem_comp_bond.atom_id_1
_chem_comp_bond.atom_id_2
_chem_comp_bond.value_order
_chem_comp_bond.pdbx_aromatic_flag
BZA C1 C2 DOUB Y
BZA C2 C3 SING Y
BZA C3 C4 DOUB Y
BZA C4 C5 SING Y
BZA C5 C6 DOUB Y
BZA C6 C1 SING Y
BZA C1 C7 SING N
BZA C7 O1 DOUB N
BZA C7 O2 SING N
BZA O2 HO2 SING N
data_ANL
loop_
_chem_comp_atom.comp_id
_chem_comp_atom.atom_id
_chem_comp_atom.type_symbol
ANL N N
ANL C C
ANL C2 C
ANL H1 H
ANL H2 H
loop_
_chem_comp_bond.comp_id
_chem_comp_bond.atom_id_1
_chem_comp_bond.atom_id_2
_chem_comp_bond.value_order
_chem_comp_bond.pdbx_aromatic_flag
ANL N C SING N
ANL C C2 DOUB Y
ANL N H1 SING N
ANL N H2 SING N
data_ZN
_chem_comp_atom.comp_id ZN
_chem_comp_atom.atom_id ZN
_chem_comp_atom.type_symbol ZN
";

#[test]
fn a_dictionary_tells_what_positions_do_not() {
    let components = Components::of_text("small.cif", DICTIONARY.as_bytes()).unwrap();
    assert_eq!((components.name(), components.count()), ("small.cif", 3));
    let same = Components::of_text("small.cif", DICTIONARY.as_bytes()).unwrap();
    assert_eq!(components, same);
    let id = |name: &str| text8(name.as_bytes());
    let known = |name: &str, atoms: &[&str], element: &[u8]| {
        // The atoms are too far from each other for bonds by distances, and near enough for those of the
        // component: on the corners of cubes.
        let corner = |index: i32| [0, 1, 2].map(|axis| 1_650 * (index >> axis & 1));
        let xyz: Vec<_> = (0..atoms.len() as i32).map(corner).collect();
        let names: Vec<_> = atoms.iter().map(|atom| id(atom)).collect();
        let links = vec![0; atoms.len()];
        perceive_known(
            &xyz,
            element,
            &names,
            &links,
            components.get(&id(name)).unwrap(),
        )
    };
    let acid = ["C1", "C2", "C3", "C4", "C5", "C6", "C7", "O1", "O2"];
    let found = known("BZA", &acid, &[6, 6, 6, 6, 6, 6, 6, 8, 8]).unwrap();
    let expected = [
        (6, Roles::NEGATIVE, vec![7, 8]),
        (0, Roles::RING, vec![0, 1, 2, 3, 4, 5]),
    ];
    assert_eq!(found.groups, expected);
    // The acid has lost its hydrogen.
    let acceptor = Roles::ACCEPTOR.with(Roles::COORDINATES);
    assert_eq!(found.roles[7..], [acceptor; 2]);
    assert_eq!(found.roles[0], Roles::HYDROPHOBIC);
    assert_eq!(found.roles[6], Roles::NONE);
    let aniline = known("ANL", &["N", "C", "C2"], &[7, 6, 6]).unwrap();
    assert_eq!(
        aniline.roles[0],
        Roles::DONOR,
        "its lone pair is the ring's"
    );
    assert_eq!(aniline.bonds, [[0, 1]]);
    let zinc = known("ZN", &["ZN"], &[30]).unwrap();
    assert_eq!(zinc.roles, [Roles::METAL]);
    // Atoms that the component does not have, or has with another element, or twice.
    assert!(known("ZN", &["FE"], &[26]).is_none());
    assert!(known("ZN", &["ZN"], &[26]).is_none());
    assert!(known("ZN", &["ZN", "ZN"], &[30, 30]).is_none());
}

#[test]
fn a_component_with_a_crowd_of_bonds_is_none() {
    let component = |count: usize| {
        let mut text = DICTIONARY[..DICTIONARY.find("BZA C1").unwrap()].to_owned();
        (0..count).for_each(|atom| text += &format!("ALL C{atom} C\n"));
        let bonds = DICTIONARY.find("loop_\n_chem_comp_bond").unwrap();
        text += &DICTIONARY[bonds..DICTIONARY.find("BZA C1 C2").unwrap()];
        let pairs = (0..count).flat_map(|one| (0..one).map(move |other| (one, other)));
        pairs.for_each(|(one, other)| text += &format!("ALL C{one} C{other} DOUB Y\n"));
        Components::of_text("all.cif", text.as_bytes()).unwrap()
    };
    let found = |count: usize| {
        let names: Vec<_> = (0..count)
            .map(|atom| text8(format!("C{atom}").as_bytes()))
            .collect();
        let xyz = vec![[0; 3]; count];
        let (element, links) = (vec![6; count], vec![0; count]);
        let component = component(count);
        let component = component.get(&text8(b"ALL")).unwrap();
        perceive_known(&xyz, &element, &names, &links, component)
    };
    assert!(found(10).is_none(), "nine bonds");
    let crowd = found(9).unwrap();
    assert_eq!(crowd.groups, [], "eight bonds are none of a ring");
}

#[test]
fn broken_dictionaries_are_refused() {
    let error = |text: &str| {
        let error = Components::of_text("broken.cif", text.as_bytes()).unwrap_err();
        error.to_string()
    };
    assert!(error("data_X\n_chem_comp.id X\n").contains("no component"));
    assert!(error(&DICTIONARY.replace("ANL C C2", "ANL C C9")).contains("C9"));
    assert!(error(&DICTIONARY[..DICTIONARY.len() - 3]).contains("no value"));
    let unknown = DICTIONARY.replace("ANL C C2 DOUB", "ANL C C2 ?");
    let unknown = error(&unknown);
    assert!(unknown.contains("\"ANL\" has a bond without _chem_comp_bond.value_order"));
    assert!(unknown.contains("components.cif") && !unknown.contains("again"));
}

#[test]
fn orders_of_bonds_may_be_whole_words() {
    let words = DICTIONARY.replace("SING", "SINGLE");
    let words = words.replace("DOUB", "double");
    let words = Components::of_text("words.cif", words.as_bytes()).unwrap();
    let usual = Components::of_text("usual.cif", DICTIONARY.as_bytes()).unwrap();
    for id in ["BZA", "ANL"] {
        let id = text8(id.as_bytes());
        assert!(
            words
                .get(&id)
                .is_some_and(|words| Some(words) == usual.get(&id))
        );
    }
}

/// The structure of a file's text.
fn read(name: &str, text: &str) -> Structure {
    let options = ReadOptions {
        chemistry: true,
        ligands: true,
        agents: true,
        ..ReadOptions::default()
    };
    let mut reader = Reader::new(options);
    reader.read_auto(name, text.as_bytes()).unwrap().remove(0)
}

/// The source of the first ligand's roles.
fn source(structure: &Structure) -> ChemistrySource {
    let first = structure.residues.len() + structure.loose_residues.len();
    structure.chemistry.as_ref().unwrap().source(first)
}

/// The atoms of a ligand: names, and positions in A.
type Atoms<'a> = [(&'a str, [f64; 3])];

/// A glycine and a ligand as a PDB file, with CONECT records of pairs of the ligand's atoms, from 1.
fn pdb(comp: &str, atoms: &Atoms, bonds: &[[usize; 2]]) -> String {
    let glycine = [("N", 0.0), ("CA", 1.4), ("C", 2.8), ("O", 4.0)];
    let glycine = glycine.map(|(name, x)| ("ATOM  ", name, "GLY", 1, [x, 20.0, 0.0]));
    let ligand = atoms
        .iter()
        .map(|&(name, xyz)| ("HETATM", name, comp, 2, xyz));
    let lines = glycine.into_iter().chain(ligand).zip(1..);
    let mut text: String = lines
        .map(|((record, name, comp, number, [x, y, z]), serial)| {
            let element = &name[..1];
            format!(
                "{record}{serial:>5}  {name:<3} {comp:>3} A{number:>4}    {x:8.3}{y:8.3}{z:8.3}  1.00  \
                 0.00          {element:>2}\n"
            )
        })
        .collect();
    for bond in bonds {
        let [one, other] = bond.map(|atom| 4 + atom);
        text += &format!("CONECT{one:>5}{other:>5}\n");
    }
    text + "END\n"
}

const ACETATE: [(&str, [f64; 3]); 4] = [
    ("C", [0.0, 0.0, 0.0]),
    ("O", [0.63, 1.08, 0.0]),
    ("OXT", [0.63, -1.08, 0.0]),
    ("CH3", [-1.52, 0.0, 0.0]),
];

#[test]
fn frequent_components_are_known_by_their_names_and_distances() {
    assert_eq!(Components::frequent().count(), 185);
    let known = read("act.pdb", &pdb("ACT", &ACETATE, &[]));
    assert_eq!(source(&known), ChemistrySource::Frequent);
    let by_geometry = |atoms: &Atoms, why: &str| {
        let structure = read("act.pdb", &pdb("ACT", atoms, &[]));
        assert_eq!(source(&structure), ChemistrySource::Geometry, "{why}");
    };
    let mut atoms = ACETATE;
    atoms[3].0 = "C9";
    by_geometry(&atoms, "an atom that acetate does not have");
    atoms = ACETATE;
    atoms[3].1[0] = -3.2;
    by_geometry(&atoms, "a bond that no acetate has");
    let other = read("act.pdb", &pdb("LIG", &ACETATE, &[]));
    assert_eq!(source(&other), ChemistrySource::Geometry);
    let charges = |structure: &Structure| {
        let chemistry = structure.chemistry.clone().unwrap();
        let groups = chemistry.groups();
        groups
            .map(|(atom, members)| (atom, members.to_vec()))
            .collect::<Vec<_>>()
    };
    assert_eq!(charges(&known), [(4, vec![5, 6])]);
    assert_eq!(charges(&known), charges(&other));
}

#[test]
fn bonds_of_conect_records_are_in_place_of_those_by_distances() {
    // An amine with a bond that is too long for one by distance, and a carbon that is too near.
    let atoms = [
        ("N1", [0.0, 0.0, 0.0]),
        ("C1", [2.2, 0.0, 0.0]),
        ("C2", [3.0, 1.2, 0.0]),
        ("C3", [0.0, 1.8, 0.0]),
    ];
    let bonds = |records: &[[usize; 2]]| {
        let structure = read("lig.pdb", &pdb("LIG", &atoms, records));
        let chemistry = structure.chemistry.clone().unwrap();
        let bonds: Vec<_> = chemistry.bonds().flatten().copied().collect();
        let of_ligand = bonds.into_iter().filter(|bond| bond[0] >= 4);
        (source(&structure), of_ligand.collect::<Vec<_>>())
    };
    assert_eq!(bonds(&[]), (ChemistrySource::Geometry, vec![[4, 7]]));
    let records = [[1, 2], [2, 3], [3, 4]];
    let expected = (ChemistrySource::Conect, vec![[4, 5]]);
    assert_eq!(bonds(&records), expected);
    // An atom without a record.
    assert_eq!(bonds(&records[..2]).0, ChemistrySource::Geometry);
}

/// A glycine and a ligand as an mmCIF file, with what it states of components.
fn mmcif(components: &str) -> String {
    let mut text = "data_X\nloop_\n_atom_site.group_PDB\n_atom_site.id\n_atom_site.type_symbol\n\
        _atom_site.label_atom_id\n_atom_site.label_comp_id\n_atom_site.label_asym_id\n\
        _atom_site.label_seq_id\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n\
        ATOM 1 N N GLY A 1 0 20 0\nATOM 2 C CA GLY A 1 1.4 20 0\nATOM 3 C C GLY A 1 2.8 20 0\n\
        ATOM 4 O O GLY A 1 4 20 0\n"
        .to_owned();
    for (id, (name, [x, y, z])) in (5..).zip(ACETATE) {
        let element = &name[..1];
        text += &format!("HETATM {id} {element} {name} LIG B . {x} {y} {z}\n");
    }
    text + components
}

#[test]
fn components_that_the_file_describes_come_first() {
    let bonds = "loop_\n_chem_comp_bond.comp_id\n_chem_comp_bond.atom_id_1\n\
        _chem_comp_bond.atom_id_2\n_chem_comp_bond.value_order\n\
        _chem_comp_bond.pdbx_aromatic_flag\n\
        LIG C O doub N\nLIG C OXT sing N\nLIG C CH3 sing N\nLIG OXT HXT sing N\n";
    let atoms = "loop_\n_chem_comp_atom.comp_id\n_chem_comp_atom.atom_id\n\
        _chem_comp_atom.type_symbol\nLIG C C\nLIG O O\nLIG OXT O\nLIG CH3 C\nLIG HXT H\n";
    let source_of = |components: &str| source(&read("lig.cif", &mmcif(components)));
    assert_eq!(source_of(""), ChemistrySource::Geometry);
    assert_eq!(source_of(&format!("{atoms}{bonds}")), ChemistrySource::File);
    assert_eq!(source_of(bonds), ChemistrySource::File, "bonds alone");
    assert_eq!(source_of(atoms), ChemistrySource::Geometry, "no bonds");
    let unknown = bonds.replace("LIG C CH3", "LIG C C9");
    let source = source_of(&format!("{atoms}{unknown}"));
    assert_eq!(source, ChemistrySource::Geometry, "a bond of no atom");
    let unordered = bonds.replace(" doub ", " ? ");
    let source = source_of(&unordered);
    assert_eq!(source, ChemistrySource::Geometry, "a bond without order");
    let twice = bonds.replace("LIG C O ", "LIG C O SING N\nLIG C O ");
    assert_eq!(source_of(&twice), ChemistrySource::File, "a bond twice");
    let more_bonds = |count: usize| -> String {
        let bond = |index| format!("LIG C Q{index} SING N\n");
        (0..count).map(bond).collect()
    };
    let many = more_bonds(2_100);
    let source = source_of(&format!("{bonds}{many}"));
    assert_eq!(source, ChemistrySource::Geometry, "more atoms, unlisted");
    let many = more_bonds(4_010);
    let source = source_of(&format!("{bonds}{many}"));
    assert_eq!(
        source,
        ChemistrySource::Geometry,
        "more bonds than a component has"
    );
    // One of the chains has what the file has.
    let mut structure = read("lig.cif", &mmcif(bonds));
    let whole = structure.chemistry.clone();
    structure.keep_chain("A").unwrap();
    assert!(whole.is_some_and(|chemistry| chemistry.described.is_some()));
    assert!(
        structure
            .chemistry
            .is_some_and(|chemistry| chemistry.described.is_some())
    );
}
