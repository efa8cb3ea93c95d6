//! What is a ligand, an ion or a glycan: one small file each.

use tapeloop_structure::{
    Assembly, Format, LigandKind, Models, Radii, ReadLimits, ReadOptions, Reader, Structure,
};
use tapeloop_test_support::repository;

fn keep() -> ReadOptions {
    ReadOptions {
        ligands: true,
        ..ReadOptions::default()
    }
}

fn read(text: &str, format: Format) -> Structure {
    let structures = Reader::new(keep()).read_bytes(text.as_bytes(), format);
    structures.unwrap().remove(0)
}

/// An atom line; `id` is columns 13 to 27, `x` in A.
fn line(record: &str, id: &str, x: f64, element: &str) -> String {
    format!(
        "{record:<6}    1 {id:<15}   {x:8.3}   0.000   0.000  1.00 10.00          {element:>2}\n"
    )
}

/// Component, number, kind and number of atoms of each ligand.
fn ligands(structure: &Structure) -> Vec<String> {
    let text = |ligand: &tapeloop_structure::Ligand| {
        let number = ligand.auth_seq_id.unwrap_or_default();
        let atoms = ligand.atoms.len();
        format!("{} {number} {:?} {atoms}", ligand.component(), ligand.kind)
    };
    structure.ligands.iter().map(text).collect()
}

fn pdb(lines: &[String]) -> Structure {
    read(&lines.concat(), Format::Pdb)
}

#[test]
fn ligands_and_ions_are_what_is_left_without_water_and_agents() {
    let lines = [
        line("ATOM", " CA  ALA A   1 ", 0.0, "C"),
        line("HETATM", " C1  HEM A 201 ", 5.0, "C"),
        line("HETATM", "FE   HEM A 201 ", 6.5, "FE"),
        line("HETATM", " H1  HEM A 201 ", 6.9, "H"),
        line("HETATM", "ZN    ZN A 202 ", 20.0, "ZN"),
        line("HETATM", " O   HOH A 301 ", 30.0, "O"),
        line("HETATM", " C1  GOL A 302 ", 40.0, "C"),
        line("HETATM", " C1 AATP B 401 ", 50.0, "C"),
        line("HETATM", " C1 BATP B 401 ", 51.0, "C"),
        line("HETATM", " C2  ATP B 401 ", 52.0, "C"),
    ];
    let structure = pdb(&lines);
    let expected = ["HEM 201 Ligand 2", "ZN 202 Ion 1", "ATP 401 Ligand 2"];
    assert_eq!(ligands(&structure), expected);
    let hem = &structure.ligands[0];
    assert_eq!(&*hem.auth_asym_id, "A");
    let atoms: Vec<_> = hem
        .atoms
        .iter()
        .map(|atom| (atom.xyz[0], atom.is_metal()))
        .collect();
    assert_eq!(atoms, [(5_000, false), (6_500, true)]);
    assert_eq!(Radii::default().milli_angstrom(hem.atoms[0].class), 1880);
    assert_eq!(
        structure.ligands[2].atoms[0].xyz[0], 50_000,
        "the first of equals"
    );
    assert_eq!((structure.xyz.len(), structure.chains.len()), (1, 1));
    let dropped = Reader::new(ReadOptions::default())
        .read_bytes(lines.concat().as_bytes(), Format::Pdb)
        .unwrap()
        .remove(0);
    assert_eq!(
        dropped,
        Structure {
            ligands: Vec::new(),
            ..structure
        }
    );
}

#[test]
fn agents_are_of_a_kind_of_their_own_if_they_are_kept() {
    let lines = [
        line("ATOM", " CA  ALA A   1 ", 0.0, "C"),
        line("HETATM", " C1  HEM A 201 ", 5.0, "C"),
        line("HETATM", " C2  HEM A 201 ", 6.5, "C"),
        line("HETATM", " C1  GOL A 202 ", 40.0, "C"),
        line("HETATM", " C2  GOL A 202 ", 41.5, "C"),
        line("HETATM", "CL    CL A 203 ", 50.0, "CL"),
        line("HETATM", " O   HOH A 301 ", 60.0, "O"),
    ];
    let kept = ReadOptions {
        agents: true,
        ..keep()
    };
    let read = |options| {
        let structures = Reader::new(options).read_bytes(lines.concat().as_bytes(), Format::Pdb);
        ligands(&structures.unwrap()[0])
    };
    let expected = ["HEM 201 Ligand 2", "GOL 202 Agent 2", "CL 203 Agent 1"];
    assert_eq!(read(kept), expected);
    assert_eq!(read(keep()), expected[..1]);
    let alone = ReadOptions {
        ligands: false,
        ..kept
    };
    assert_eq!(read(alone), [""; 0], "agents are kept with ligands alone");
}

#[test]
fn sugars_that_links_join_to_the_polymer_are_glycans() {
    let structure = pdb(&[
        line("ATOM", " CA  ASN A   1 ", 0.0, "C"),
        line("ATOM", " ND2 ASN A   1 ", 3.0, "N"),
        line("HETATM", " C1  NAG A 201 ", 4.45, "C"),
        line("HETATM", " O4  NAG A 201 ", 8.0, "O"),
        line("HETATM", " C1  NAG A 202 ", 9.4, "C"),
        line("HETATM", " C1  MAN A 203 ", 5.6, "C"),
        line("HETATM", " O1  MAN A 203 ", 12.0, "O"),
        line("HETATM", " O2  NAG B 301 ", 3.2, "O"),
        line("HETATM", " C1  NAG B 301 ", 30.0, "C"),
        line("HETATM", " C1  LIG B 302 ", 31.4, "C"),
        line("HETATM", " C2  LIG B 302 ", 32.4, "C"),
    ]);
    let expected = [
        "NAG 201 Glycan 2",
        "NAG 202 Glycan 1",
        // Within 1.7 A of NAG 201, so linked to a glycan.
        "MAN 203 Glycan 2",
        "NAG 301 Glycan 2",
        "LIG 302 Ligand 2",
    ];
    // O2 of NAG 301 is within 1.7 A of C1 of NAG 201 too.
    assert_eq!(ligands(&structure), expected);
    let apart = pdb(&[
        line("ATOM", " ND2 ASN A   1 ", 3.0, "N"),
        line("HETATM", " C1  NAG A 201 ", 4.7, "C"),
        line("HETATM", " C2  NAG A 201 ", 5.7, "C"),
        line("ATOM", " CB  ASN A   2 ", 19.0, "C"),
        line("HETATM", " C1  NAG A 202 ", 20.5, "C"),
        line("HETATM", " C2  NAG A 202 ", 21.9, "C"),
    ]);
    let expected = ["NAG 201 Ligand 2", "NAG 202 Ligand 2"];
    assert_eq!(
        ligands(&apart),
        expected,
        "1.7 A is too far, and carbon no link"
    );
}

#[test]
fn sugars_of_branched_entities_are_glycans_only_where_a_link_joins_them_to_the_polymer() {
    let text = |kind: &str| {
        format!(
            "data_x\nloop_\n_entity.id\n_entity.type\n1 polymer\n2 {kind}\n3 non-polymer\n\
             loop_\n_atom_site.group_PDB\n_atom_site.type_symbol\n_atom_site.label_atom_id\n\
             _atom_site.label_comp_id\n_atom_site.label_asym_id\n_atom_site.auth_asym_id\n\
             _atom_site.label_entity_id\n_atom_site.auth_seq_id\n_atom_site.Cartn_x\n\
             _atom_site.Cartn_y\n_atom_site.Cartn_z\n\
             ATOM N ND2 ASN A A 1 1 18.6 0 0\nATOM C CA ASN A A 1 1 0 0 0\nHETATM C C1 GLC B B 2 1 20 0 0\n\
             HETATM C C2 GLC B B 2 1 21 0 0\nHETATM C C1 GLC C C 2 9 30 0 0\n\
             HETATM C C2 GLC C C 2 9 31 0 0\n"
        )
    };
    for kind in ["branched", "non-polymer"] {
        let read = read(&text(kind), Format::Mmcif);
        assert_eq!(
            ligands(&read),
            ["GLC 1 Glycan 2", "GLC 9 Ligand 2"],
            "{kind}"
        );
    }
}

#[test]
fn peptides_that_are_not_of_the_chain_are_ligands() {
    let folder = repository("tests/data/small");
    let read = |file: &str| {
        Reader::new(keep())
            .read_path(&folder.join(file))
            .unwrap()
            .remove(0)
    };
    let peptide = read("peptide-ligand.pdb");
    assert_eq!(ligands(&peptide), ["SER 401 Ligand 6", "THR 402 Ligand 8"]);
    let capped = read("capped-peptide-ligand.pdb");
    assert_eq!(capped.ligands.len(), 3, "{:?}", ligands(&capped));
    for file in ["seqres-non-polymer.pdb", "seqres-non-polymer.cif"] {
        assert_eq!(ligands(&read(file)), ["CU1 101 Ion 1"], "{file}");
    }
}

#[test]
fn a_chosen_chain_keeps_its_ligands_and_frames_have_none() {
    let lines = [
        line("ATOM", " CA  ALA A   1 ", 0.0, "C"),
        line("ATOM", " CA  ALA B   1 ", 9.0, "C"),
        line("HETATM", "ZN    ZN A 201 ", 20.0, "ZN"),
        line("HETATM", "MG    MG B 202 ", 30.0, "MG"),
    ];
    let mut chosen = pdb(&lines);
    chosen.keep_chain("B").unwrap();
    assert_eq!(ligands(&chosen), ["MG 202 Ion 1"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("top.pdb");
    std::fs::write(&path, lines.concat()).unwrap();
    let topology = Reader::new(keep()).read_topology(&path).unwrap();
    assert_eq!(topology.structure().ligands, []);
}

#[test]
fn an_assembly_has_copies_of_the_ligands_of_its_chains() {
    let remark = "\
REMARK 350 BIOMOLECULE: 1
REMARK 350 APPLY THE FOLLOWING TO CHAINS: A
REMARK 350   BIOMT1   1  1.000000  0.000000  0.000000        0.00000
REMARK 350   BIOMT2   1  0.000000  1.000000  0.000000        0.00000
REMARK 350   BIOMT3   1  0.000000  0.000000  1.000000        0.00000
REMARK 350   BIOMT1   2 -1.000000  0.000000  0.000000        0.00000
REMARK 350   BIOMT2   2  0.000000 -1.000000  0.000000        0.00000
REMARK 350   BIOMT3   2  0.000000  0.000000  1.000000       50.00000
";
    let lines = [
        line("ATOM", " CA  ALA A   1 ", 0.0, "C"),
        line("ATOM", " CA  ALA B   1 ", 9.0, "C"),
        line("HETATM", " C1  LIG A 201 ", 20.0, "C"),
        line("HETATM", " C2  LIG A 201 ", 21.5, "C"),
        line("HETATM", "MG    MG B 202 ", 30.0, "MG"),
        line("HETATM", " C1  LIG A 203 ", 23.0, "C"),
        line("HETATM", "ZN    ZN A 204 ", 40.0, "ZN"),
    ];
    let read = |text: String, atoms_max: u32| {
        let options = ReadOptions {
            assembly: Assembly::First,
            limits: ReadLimits {
                assembly_atoms_max: atoms_max,
                ..ReadLimits::default()
            },
            ..keep()
        };
        let structures = Reader::new(options).read_bytes(text.as_bytes(), Format::Pdb);
        structures.map(|mut structures| structures.remove(0))
    };
    let text = remark.to_owned() + &lines.concat();
    let assembly = read(text.clone(), 10).unwrap();
    let found: Vec<_> = assembly
        .ligands
        .iter()
        .map(|ligand| {
            let number = ligand.auth_seq_id.unwrap();
            let xyz = ligand.atoms[0].xyz;
            (&*ligand.auth_asym_id, number, ligand.molecule, xyz)
        })
        .collect();
    let expected = [
        ("A", 201, 0, [20_000, 0, 0]),
        ("A", 203, 0, [23_000, 0, 0]),
        ("A", 204, 1, [40_000, 0, 0]),
        ("A-2", 201, 2, [-20_000, 0, 50_000]),
        ("A-2", 203, 2, [-23_000, 0, 50_000]),
        ("A-2", 204, 3, [-40_000, 0, 50_000]),
    ];
    assert_eq!(found, expected);
    assert_eq!(assembly.residues.len(), 2);
    let error = read(text, 9).unwrap_err().to_string();
    assert!(error.contains("10 atoms"), "{error}");
    let deposited = read(lines.concat(), 10).unwrap();
    assert_eq!(deposited.ligands.len(), 4, "the file has no assembly");
}

#[test]
fn each_model_has_its_own_ligands() {
    let model = |x: f64| {
        format!(
            "MODEL\n{}{}ENDMDL\n",
            line("ATOM", " CA  ALA A   1 ", 0.0, "C"),
            line("HETATM", "ZN    ZN A 201 ", x, "ZN")
        )
    };
    let options = ReadOptions {
        models: Models::All,
        ..keep()
    };
    let text = model(5.0) + &model(6.0);
    let models = Reader::new(options).read_bytes(text.as_bytes(), Format::Pdb);
    let models = models.unwrap();
    let xs: Vec<i32> = models
        .iter()
        .map(|s| s.ligands[0].atoms[0].xyz[0])
        .collect();
    assert_eq!(xs, [5_000, 6_000]);
    assert!(models.iter().all(|s| s.ligands[0].kind == LigandKind::Ion));
}
