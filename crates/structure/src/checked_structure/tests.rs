use super::*;
use crate::{
    AtomDetails, Chain, Ligand, LigandAtom, LigandKind, LooseSpan, MISSING, Residue, ResidueFlags,
};
use std::sync::Arc;

const MAX: i32 = CheckedStructure::COORDINATE_MAX;

fn residue() -> Residue {
    Residue {
        chain: 0,
        auth_seq_id: 1,
        ins_code: 0,
        label_seq_id: None,
        sequence_position: None,
        comp_id: *b"ALA     ",
        parent_comp_id: *b"ALA     ",
        aa: b'A',
        break_before: true,
        n: MISSING,
        ca: MISSING,
        c: MISSING,
        o: MISSING,
        cb: MISSING,
        uniprot: None,
        flags: ResidueFlags::NONE,
    }
}

fn ligand(atoms: &[[i32; 3]]) -> Ligand {
    let atom = |&xyz: &[i32; 3]| LigandAtom {
        xyz,
        element: 6,
        class: AtomClass::of(*b"ALA     ", *b"CB      ", 6),
        b_factor: 0.0,
        details: AtomDetails::default(),
    };
    Ligand {
        auth_asym_id: Arc::from("A"),
        label_asym_id: None,
        auth_seq_id: None,
        ins_code: 0,
        comp_id: *b"HEM     ",
        kind: LigandKind::Ligand,
        molecule: 0,
        atoms: atoms.iter().map(atom).collect(),
        bonds: Arc::default(),
    }
}

/// Residues of these numbers of atoms and one loose atom, all in one point of one chain.
fn polymer(atoms: &[u32]) -> Structure {
    let mut starts = vec![0];
    starts.extend(atoms.iter().scan(0, |end, count| {
        *end += count;
        Some(*end)
    }));
    let count = *starts.last().unwrap() as usize + 1;
    Structure {
        xyz: vec![[0; 3]; count],
        element: vec![6; count],
        class: vec![AtomClass::of(*b"ALA     ", *b"CB      ", 6); count],
        b_factor: vec![0.0; count],
        residues: vec![residue(); atoms.len()],
        atom_start: starts,
        loose: vec![LooseSpan {
            chain: 0,
            atom_count: 1,
        }],
        chains: vec![Chain::default()],
        ..Structure::default()
    }
}

/// A structure with each part that is checked.
fn structure() -> Structure {
    let mut structure = polymer(&[2, 2]);
    structure.ligands = vec![ligand(&[[1, 2, 3]]), ligand(&[[4, 5, 6], [7, 8, 9]])];
    structure.channels = vec![Channel {
        name: "x".to_owned(),
        values: vec![0.0; 2],
    }];
    structure
}

fn refusal(change: impl FnOnce(&mut Structure)) -> Option<String> {
    let mut structure = structure();
    change(&mut structure);
    let refused = CheckedStructure::new(structure).err()?;
    assert_eq!(refused.kind(), crate::ErrorKind::Input);
    Some(refused.to_string())
}

#[test]
fn a_structure_whose_parts_fit_is_accepted_unchanged() {
    let checked = CheckedStructure::new(structure()).unwrap();
    assert_eq!(*checked, structure());
    assert_eq!(checked.ligand_atom_count(), 3);
    assert_eq!(checked.into_inner(), structure());
    let mut at_limits = polymer(&[65_535, 0]);
    at_limits.xyz[3] = [MAX, -MAX, MAX];
    at_limits.ligands = vec![ligand(&vec![[-MAX, MAX, -MAX]; 65_535])];
    at_limits.chains = vec![Chain::default(); CheckedStructure::CHAINS_MAX];
    at_limits.atom_name = vec![Default::default(); at_limits.xyz.len()];
    let checked = CheckedStructure::new(at_limits).unwrap();
    assert_eq!(checked.corners(), Some([[-MAX; 3], [MAX; 3]]));
}

#[test]
fn corners_include_every_atom_and_no_other_point() {
    let corners = |change: &dyn Fn(&mut Structure)| {
        let mut structure = structure();
        structure.xyz.fill([2, 4, 6]);
        change(&mut structure);
        CheckedStructure::new(structure).unwrap().corners()
    };
    assert_eq!(corners(&|_| {}), Some([[1, 2, 3], [7, 8, 9]]));
    let without_ligands = corners(&|structure| structure.ligands.clear());
    assert_eq!(without_ligands, Some([[2, 4, 6], [2, 4, 6]]));
    for atom in 0..5 {
        for axis in 0..3 {
            for value in [-70, 70] {
                let [mut low, mut high] = [[1, 2, 3], [7, 8, 9]];
                low[axis] = low[axis].min(value);
                high[axis] = high[axis].max(value);
                let found = corners(&|structure| structure.xyz[atom][axis] = value);
                assert_eq!(found, Some([low, high]));
            }
        }
    }
    let empty = Structure {
        atom_start: vec![0],
        ..Structure::default()
    };
    let empty = CheckedStructure::new(empty).unwrap();
    assert_eq!((empty.corners(), empty.ligand_atom_count()), (None, 0));
}

#[test]
fn atoms_beyond_the_bounds_are_refused() {
    let far = Some("an atom is farther than 100000 A from the origin".to_owned());
    for value in [MAX + 1, -MAX - 1, i32::MAX, i32::MIN] {
        for axis in 0..3 {
            for atom in [0, 4] {
                assert_eq!(refusal(|structure| structure.xyz[atom][axis] = value), far);
            }
            let mut place = [0; 3];
            place[axis] = value;
            assert_eq!(
                refusal(|structure| structure.ligands[1] = ligand(&[[0; 3], place])),
                far
            );
        }
    }
    // Bounds come before the columns' lengths.
    let both = refusal(|structure| {
        structure.xyz[0][0] = MAX + 1;
        structure.element.clear();
    });
    assert_eq!(both, far);
}

type Change = fn(&mut Structure);

#[test]
fn columns_of_atoms_that_do_not_fit_are_refused() {
    let changes: [(Change, &str); 7] = [
        (
            |structure| structure.element.truncate(4),
            "columns of atoms differ",
        ),
        (
            |structure| structure.class.truncate(4),
            "columns of atoms differ",
        ),
        (
            |structure| structure.b_factor.push(0.0),
            "columns of atoms differ",
        ),
        (
            |structure| structure.atom_name = vec![Default::default(); 4],
            "another number of atom names",
        ),
        (
            |structure| structure.atom_details = vec![AtomDetails::default(); 4],
            "details of another number of atoms",
        ),
        (
            |structure| structure.class[4] = AtomClass::default(),
            "has no class",
        ),
        // 11 is the first index without a radius.
        (
            |structure| structure.class[0] = bytemuck::cast(0x3b_u8),
            "an atom has no class",
        ),
    ];
    for (change, part) in changes {
        let message = refusal(change).unwrap();
        assert!(message.contains(part), "{message}");
    }
    let ligand_refusal = refusal(|structure| {
        let mut atoms = structure.ligands[1].atoms.to_vec();
        atoms[1].class = AtomClass::default();
        structure.ligands[1].atoms = atoms.into();
    });
    assert_eq!(ligand_refusal.unwrap(), "an atom has no class");
}

#[test]
fn ligands_and_chains_beyond_a_limit_are_refused() {
    let changes: [(Change, &str); 3] = [
        (
            |structure| {
                *structure = Structure {
                    ligands: std::mem::take(&mut structure.ligands),
                    atom_start: vec![0],
                    ..Structure::default()
                }
            },
            "it has ligands, but no chain",
        ),
        (
            |structure| structure.ligands[0] = ligand(&vec![[0; 3]; 65_536]),
            "a ligand has more than 65535 atoms",
        ),
        (
            |structure| structure.chains = vec![Chain::default(); 524_288],
            "it has more than 524287 chains",
        ),
    ];
    for (change, message) in changes {
        assert_eq!(refusal(change).unwrap(), message);
    }
}

#[test]
fn residues_whose_chain_or_atoms_do_not_exist_are_refused() {
    let changes: [(Change, &str); 8] = [
        (|structure| structure.residues[1].chain = 1, "a chain that"),
        (|structure| structure.loose[0].chain = 1, "a chain that"),
        (
            |structure| structure.residues.truncate(1),
            "one after the other",
        ),
        (
            |structure| structure.atom_start[0] = 1,
            "one after the other",
        ),
        (
            |structure| structure.atom_start[1] = 5,
            "one after the other",
        ),
        (
            |structure| structure.atom_start[2] = 3,
            "one after the other",
        ),
        (
            |structure| structure.loose[0].atom_count = 2,
            "one after the other",
        ),
        (
            |structure| structure.atom_start.clear(),
            "one after the other",
        ),
    ];
    for (change, part) in changes {
        let message = refusal(change).unwrap();
        assert!(message.contains(part), "{message}");
    }
    let large = CheckedStructure::new(polymer(&[1, 65_536])).unwrap_err();
    assert_eq!(large.message(), "a residue has more than 65535 atoms");
}

#[test]
fn channels_without_a_value_for_each_residue_are_refused() {
    assert_eq!(
        refusal(|structure| structure.channels[0].values.push(1.0)).unwrap(),
        "channel x has 3 values for 2 residues (fix: give each residue a value, NaN where there \
         is none)"
    );
}

#[test]
fn an_input_has_the_number_of_a_model_that_is_refused() {
    let mut refused = structure();
    refused.model = 7;
    refused.xyz[0] = [MAX + 1; 3];
    let input = crate::Input::new("x.pdb", 3, Ok(refused));
    assert_eq!((input.source.as_str(), input.ordinal), ("x.pdb", 3));
    assert_eq!(input.model, Some(7));
    assert!(input.structure.is_err());
    let unread = crate::Input::new("x.pdb", 3, Err(Error::input("no atoms")));
    assert_eq!(unread.model, None);
    assert_eq!(unread.structure.unwrap_err().message(), "no atoms");
}
