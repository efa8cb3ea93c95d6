//! What atoms can take part in, by names and by geometry.

use super::perception::{Perceived, StatedLigandBonds};
use super::{Chemistry, ChemistrySource, Roles};
use crate::text8::text8;
use crate::{CheckedStructure, ReadOptions, Reader, Structure};
use std::collections::BTreeSet;

fn read(name: &str) -> Structure {
    let options = ReadOptions {
        chemistry: true,
        ligands: true,
        ..ReadOptions::default()
    };
    let path = tapeloop_test_support::repository("samples").join(name);
    Reader::new(options).read_path(&path).unwrap().remove(0)
}

fn samples() -> Vec<Structure> {
    let names = ["1ubi.pdb", "1hvr.pdb.gz", "5pti.cif.gz", "1bd2.pdb.gz"];
    names.map(read).to_vec()
}

/// What atoms can take part in by their positions alone.
fn perceive(xyz: &[[i32; 3]], element: &[u8]) -> Perceived {
    super::perceive(xyz, element, &StatedLigandBonds::default())
}

/// Elements and positions in A as what [`perceive`] takes.
fn atoms(rows: &[(u8, [f64; 3])]) -> (Vec<[i32; 3]>, Vec<u8>) {
    let milli = |position: [f64; 3]| position.map(|axis| (axis * 1000.0).round() as i32);
    let positions = rows.iter().map(|&(_, position)| milli(position)).collect();
    (
        positions,
        rows.iter().map(|&(element, _)| element).collect(),
    )
}

/// A flat ring of atoms with bonds of this length.
fn ring(elements: &[u8], bond: f64) -> Vec<(u8, [f64; 3])> {
    let turn = 2.0 * std::f64::consts::PI / elements.len() as f64;
    let radius = bond / 2.0 / (turn / 2.0).sin();
    let corner = |index: usize| {
        let angle = turn * index as f64;
        [radius * angle.cos(), radius * angle.sin(), 0.0]
    };
    let corners = elements.iter().enumerate();
    corners
        .map(|(index, &element)| (element, corner(index)))
        .collect()
}

#[test]
fn aromatic_rings_are_flat_with_short_bonds() {
    let found = |rows: &[(u8, [f64; 3])]| {
        let (xyz, element) = atoms(rows);
        perceive(&xyz, &element).groups
    };
    let benzene = ring(&[6; 6], 1.39);
    assert_eq!(found(&benzene), [(0, Roles::RING, vec![0, 1, 2, 3, 4, 5])]);
    let cyclohexane = ring(&[6; 6], 1.53);
    assert_eq!(found(&cyclohexane), []);
    let mut bent = benzene.clone();
    bent[0].1[2] = 0.5;
    assert_eq!(found(&bent), []);
    // Nitrogen has a direction of its own, so a carbon stands for the ring.
    let pyridine = ring(&[7, 6, 6, 6, 6, 6], 1.37);
    assert_eq!(found(&pyridine)[0].0, 1);
    assert_eq!(found(&ring(&[7, 6, 6, 6, 6], 1.37)).len(), 1, "pyrrole");
}

#[test]
fn charged_groups_are_found_by_their_atoms() {
    let groups = |rows: &[(u8, [f64; 3])]| {
        let (xyz, element) = atoms(rows);
        perceive(&xyz, &element).groups
    };
    let carbon = |element: u8, height: f64, lengths: [f64; 3]| {
        let arms = [0.0_f64, 120.0, 240.0].map(|turn| turn.to_radians());
        let mut rows = vec![(element, [0.0, 0.0, height])];
        rows.extend(
            arms.iter()
                .zip(lengths)
                .map(|(turn, length)| (6, [length * turn.cos(), length * turn.sin(), 0.0])),
        );
        rows
    };
    let mut acetate = carbon(6, 0.0, [1.52, 1.25, 1.25]);
    (acetate[2].0, acetate[3].0) = (8, 8);
    assert_eq!(groups(&acetate), [(0, Roles::NEGATIVE, vec![2, 3])]);
    let mut guanidine = carbon(6, 0.0, [1.33; 3]);
    guanidine[1..].iter_mut().for_each(|row| row.0 = 7);
    assert_eq!(groups(&guanidine), [(0, Roles::POSITIVE, vec![1, 2, 3])]);
    let amine = carbon(7, 0.5, [1.38; 3]);
    assert_eq!(groups(&amine), [(0, Roles::POSITIVE, vec![0])]);
    assert_eq!(
        groups(&carbon(7, 0.0, [1.47; 3])),
        [],
        "a flat one is an amide's"
    );
    let mut phosphate = carbon(15, 0.5, [1.5; 3]);
    phosphate[1..].iter_mut().for_each(|row| row.0 = 8);
    assert_eq!(groups(&phosphate), [(0, Roles::NEGATIVE, vec![0])]);
    // The oxygens of an ester are no carboxylate.
    let mut ester = acetate.clone();
    ester.push((6, [-1.2, 2.2, 0.0]));
    assert_eq!(groups(&ester), []);
}

#[test]
fn nitrogens_of_tetrahedral_carbons_are_charged() {
    let groups = |rows: &[(u8, [f64; 3])]| {
        let (xyz, element) = atoms(rows);
        perceive(&xyz, &element)
    };
    // N, and two carbons in a row with this bond and angle.
    let ethylamine = |bond: f64, degrees: f64| {
        let turn = degrees.to_radians();
        let end = [bond - 1.5 * turn.cos(), 1.5 * turn.sin(), 0.0];
        vec![(7, [0.0; 3]), (6, [bond, 0.0, 0.0]), (6, end)]
    };
    let amine = groups(&ethylamine(1.48, 111.0));
    assert_eq!(amine.groups, [(0, Roles::POSITIVE, vec![0])]);
    assert_eq!(amine.roles[0], Roles::DONOR);
    assert_eq!(groups(&ethylamine(1.34, 120.0)).groups, [], "an enamine");
    let mut aniline = ring(&[6; 6], 1.39);
    aniline.push((7, [2.83, 0.0, 0.0]));
    let rings: Vec<Roles> = groups(&aniline)
        .groups
        .iter()
        .map(|group| group.1)
        .collect();
    assert_eq!(rings, [Roles::RING]);
    assert_eq!(
        groups(&[(7, [0.0; 3])]).groups[0].1,
        Roles::POSITIVE,
        "ammonium"
    );
    // Carbon, carbon and two nitrogens at its ends.
    let arms = [0.0_f64, 120.0, 240.0].map(|turn| turn.to_radians());
    let star = |elements: [u8; 3], length: f64| {
        let ends = arms.iter().zip(elements).map(|(turn, element)| {
            let length = if element == 6 { 1.5 } else { length };
            (element, [length * turn.cos(), length * turn.sin(), 0.0])
        });
        std::iter::once((6, [0.0; 3]))
            .chain(ends)
            .collect::<Vec<_>>()
    };
    let amidine = groups(&star([6, 7, 7], 1.32)).groups;
    assert_eq!(amidine, [(0, Roles::POSITIVE, vec![2, 3])]);
    let urea = groups(&star([8, 7, 7], 1.25)).groups;
    assert_eq!(urea, []);
    // Both oxygens of a carboxylate accept, although their bonds may be as long as single ones.
    let acid = groups(&star([6, 8, 8], 1.31));
    let acceptor = Roles::ACCEPTOR.with(Roles::COORDINATES);
    assert_eq!(acid.roles[2..], [acceptor, acceptor]);
}

#[test]
fn geometry_tells_the_bases_of_nucleotides_as_names_do() {
    let structure = read("3mht.pdb.gz");
    let chemistry = structure.chemistry.as_deref().unwrap();
    let mut start = structure.atom_start.last().map_or(0, |&end| end as usize);
    let (mut compared, mut differ) = (BTreeSet::new(), Vec::new());
    for (row, residue) in structure.loose_residues.iter().enumerate() {
        let range = start..start + residue.atom_count as usize;
        start = range.end;
        assert_eq!(
            chemistry.source(structure.residues.len() + row),
            ChemistrySource::Names
        );
        let found = perceive(
            &structure.xyz[range.clone()],
            &structure.element[range.clone()],
        );
        let name = std::str::from_utf8(&residue.comp_id).unwrap().trim();
        let rings = found.groups.iter().filter(|group| group.1 == Roles::RING);
        assert_eq!(
            rings.count(),
            if "DA DG".contains(name) { 2 } else { 1 },
            "{name}"
        );
        for (index, atom) in range.enumerate() {
            let atom_name = structure.atom_details[atom].name;
            let atom_name = std::str::from_utf8(&atom_name).unwrap().trim();
            let is_of_base = !atom_name.contains("'") && !atom_name.contains("OP");
            if is_of_base && matches!(structure.element[atom], 7 | 8) {
                let by_names = chemistry.roles()[atom];
                if found.roles[index] != by_names {
                    differ.push(format!("{name} {row} {atom_name}"));
                }
                compared.insert((name.to_owned(), atom_name.to_owned()));
            }
        }
    }
    assert!(compared.len() >= 14, "{compared:?}");
    // Cytosine's N3 is next to a carbonyl, so that it may be the donor of another tautomer.
    assert!(
        differ
            .iter()
            .all(|atom| atom.starts_with("DC") && atom.ends_with("N3")),
        "{differ:?}"
    );
}

#[test]
fn the_nitrogen_of_a_peptide_bond_is_no_amine() {
    for name in ["1pfe.cif.gz", "2n0n.pdb.gz"] {
        let structure = read(name);
        let chemistry = structure.chemistry.as_deref().unwrap();
        let owners = structure.residues.len() + structure.loose_residues.len();
        let by_geometry = |&owner: &usize| chemistry.source(owner) == ChemistrySource::Geometry;
        assert!((0..owners).any(|owner| by_geometry(&owner)), "{name}");
        for (atom, _) in chemistry.groups() {
            let details = structure.atom_details.get(atom as usize);
            let is_nitrogen = details.is_some_and(|atom| atom.name == text8(b"N"));
            assert!(!is_nitrogen, "{name} {atom}");
        }
    }
}

#[test]
fn bonds_of_linked_ligands_count() {
    // Glucose is a component that is known, the others follow from positions.
    for comps in [
        ["GLC", "GLC"],
        ["QQ1", "QQ2"],
        ["GLC", "QQ2"],
        ["QQ1", "GLC"],
    ] {
        linked_oxygen_has_no_hydrogen(comps);
    }
}

fn linked_oxygen_has_no_hydrogen([first, second]: [&str; 2]) {
    let text = "\
ATOM      1  N   GLY A   1       0.000   0.000   0.000  1.00  0.00           N
ATOM      2  CA  GLY A   1       1.458   0.000   0.000  1.00  0.00           C
ATOM      3  C   GLY A   1       2.000   1.420   0.000  1.00  0.00           C
HETATM    4  C4  AAA A 101      20.000   0.000   0.000  1.00  0.00           C
HETATM    5  O4  AAA A 101      21.430   0.000   0.000  1.00  0.00           O
HETATM    6  C1  BBB A 102      22.200   1.200   0.000  1.00  0.00           C
HETATM    7  O1  BBB A 102      23.630   1.200   0.000  1.00  0.00           O
END
";
    let options = ReadOptions {
        chemistry: true,
        ligands: true,
        ..ReadOptions::default()
    };
    let file = tempfile::Builder::new().suffix(".pdb").tempfile().unwrap();
    let text = text.replace("AAA", first).replace("BBB", second);
    std::fs::write(file.path(), text).unwrap();
    let structure = Reader::new(options)
        .read_path(file.path())
        .unwrap()
        .remove(0);
    let chemistry = structure.chemistry.as_deref().unwrap();
    let [c4, o4, c1, o1] = chemistry.roles()[3..] else {
        panic!("{chemistry:?}");
    };
    let acceptor = Roles::ACCEPTOR.with(Roles::COORDINATES);
    let expected = [acceptor, acceptor.with(Roles::DONOR)];
    assert_eq!([o4, o1], expected, "{first} {second}");
    let bonds: Vec<_> = chemistry.bonds().flatten().collect();
    assert!(bonds.contains(&&[4, 5]), "{first} {second}: {bonds:?}");
    assert_eq!([c4, c1], [Roles::NONE; 2]);
}

#[test]
fn an_unknown_atom_is_no_metal() {
    let structure = read("5pti.cif.gz");
    let is_unknown = |ligand: &&crate::Ligand| ligand.comp_id == text8(b"UNX");
    assert_eq!(structure.ligands.iter().filter(is_unknown).count(), 1);
    let chemistry = structure.chemistry.as_deref().unwrap();
    let metals = chemistry.roles().iter();
    assert_eq!(
        metals.filter(|roles| roles.contains(Roles::METAL)).count(),
        0
    );
}

#[test]
fn geometry_tells_the_side_chains_of_standard_residues_as_names_do() {
    let mut compared = BTreeSet::new();
    for structure in samples() {
        let chemistry = structure.chemistry.as_deref().unwrap();
        for (row, residue) in structure.residues.iter().enumerate() {
            let range = structure.atom_start[row] as usize..structure.atom_start[row + 1] as usize;
            // The heavy atoms of a complete residue.
            let letters = b"ARNDCQEGHILKMFPSTWYV";
            let counts = [
                5, 11, 8, 8, 6, 9, 9, 4, 10, 8, 8, 9, 8, 11, 7, 6, 7, 14, 12, 7,
            ];
            let letter = letters.iter().position(|&letter| letter == residue.aa);
            let is_complete = letter.is_some_and(|letter| range.len() >= counts[letter]);
            if !is_complete || chemistry.source(row) != ChemistrySource::Names {
                continue;
            }
            let (xyz, element) = (
                &structure.xyz[range.clone()],
                &structure.element[range.clone()],
            );
            let found = perceive(xyz, element);
            let name = std::str::from_utf8(&residue.comp_id).unwrap().trim();
            for (index, atom) in range.enumerate() {
                let details = structure.atom_details[atom].name;
                let atom_name = std::str::from_utf8(&details).unwrap().trim();
                let by_names = chemistry.roles()[atom].bits();
                let by_geometry = found.roles[index].bits();
                // The bonds of backbones go to other residues, and coordinates are not exact enough
                // to tell single bonds of C and O from double ones everywhere.
                let is_backbone = ["N", "CA", "C", "O", "OXT"].contains(&atom_name);
                let groups = Roles::POSITIVE
                    .with(Roles::NEGATIVE)
                    .with(Roles::RING)
                    .bits();
                if is_backbone || (element[index] == 8 && by_names & 1 == 0) || atom_name == "SG" {
                    continue;
                }
                assert_eq!(by_geometry, by_names & !groups, "{name} {atom_name}");
                compared.insert(name.to_owned());
            }
            let rings = found.groups.iter().filter(|group| group.1 == Roles::RING);
            let expected = match residue.aa {
                b'F' | b'Y' | b'H' => 1,
                b'W' => 2,
                _ => 0,
            };
            assert_eq!(rings.count(), expected, "{name} {}", residue.auth_seq_id);
        }
    }
    assert!(compared.len() >= 18, "{compared:?}");
}

#[test]
fn chemistry_follows_a_structure_to_one_of_its_chains() {
    let mut structure = read("1bd2.pdb.gz");
    let whole = structure.chemistry.clone();
    let chain = structure.chains[0].auth_asym_id.to_string();
    structure.keep_chain(&chain).unwrap();
    let checked = CheckedStructure::new(structure.clone()).unwrap();
    assert_eq!(
        structure.chemistry.as_deref(),
        Some(&Chemistry::of(&checked, None))
    );
    assert!(whole.is_some());
    structure.chemistry = Some(Chemistry::default().into());
    assert!(
        CheckedStructure::new(structure).is_err(),
        "of another structure"
    );
}
