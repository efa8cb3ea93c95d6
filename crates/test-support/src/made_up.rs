//! Random structures from a seed.

use crate::random::Random;
use std::f64::consts::TAU;
use tapeloop_structure::{
    AtomClass, AtomDetails, Chain, CheckedStructure, Chemistry, Ligand, LigandAtom, LigandKind,
    LooseSpan, MISSING, Residue, Roles, Structure,
};

/// A step of at most `milli` along each axis.
fn step(random: &mut Random, milli: usize) -> [i32; 3] {
    std::array::from_fn(|_| random.below(2 * milli + 1) as i32 - milli as i32)
}

pub fn moved(p: [i32; 3], by: [i32; 3]) -> [i32; 3] {
    std::array::from_fn(|axis| p[axis] + by[axis])
}

/// A random walk of residues in interleaved chains, some without C-alpha, some
/// breaks, some glycines, some atoms that belong to no residue. Steps and bonds are about as long as those of a
/// chain, and the odds such that a structure of some hundred residues has several of each oddity.
pub fn structure(residues: usize, seed: u64) -> Structure {
    let mut random = Random::new(seed);
    let mut s = Structure {
        atom_start: vec![0],
        chains: vec![Chain::default(); 3],
        ..Structure::default()
    };
    let mut centre = step(&mut random, 50_000);
    for index in 0..residues {
        centre = moved(centre, step(&mut random, 2200));
        let has_ca = random.below(17) != 0;
        let mut atom = |random: &mut Random, name: &[u8; 8], by: usize, there: bool| {
            if !there {
                return MISSING;
            }
            s.xyz.push(moved(centre, step(random, by)));
            s.element.push(6);
            s.class.push(AtomClass::of(*b"ALA     ", *name, 6));
            s.b_factor.push(random.below(10_000) as f32 / 100.0);
            s.xyz.len() as u32 - 1
        };
        let n = atom(&mut random, b"N       ", 1400, true);
        let ca = atom(&mut random, b"CA      ", 0, has_ca);
        let c = atom(&mut random, b"C       ", 1400, true);
        let has_o = random.below(23) != 0;
        let o = atom(&mut random, b"O       ", 2400, has_o);
        let has_cb = random.below(5) != 0;
        let cb = atom(&mut random, b"CB      ", 1500, has_cb);
        let glycine = random.below(9) == 0;
        let chain = random.below(3) as u32;
        s.residues.push(Residue {
            chain,
            auth_seq_id: index as i32,
            ins_code: 0,
            label_seq_id: None,
            // The second chain has gaps in its sequence, and the others have none.
            sequence_position: (chain == 1).then_some(3 * index as i32 - 7),
            comp_id: *b"ALA     ",
            parent_comp_id: if glycine { *b"GLY     " } else { *b"ALA     " },
            aa: b'A',
            break_before: index == 0 || random.below(11) == 0,
            n,
            ca,
            c,
            o,
            cb,
            uniprot: None,
            flags: Default::default(),
        });
        s.atom_start.push(s.xyz.len() as u32);
    }
    let loose = random.below(5) as u32;
    if loose > 0 {
        s.loose.push(LooseSpan {
            chain: 0,
            atom_count: loose,
        });
    }
    for _ in 0..loose {
        s.xyz.push(moved(centre, step(&mut random, 9000)));
        s.element.push(7);
        s.class.push(AtomClass::of(*b"DA      ", *b"N3      ", 7));
        s.b_factor.push(f32::NAN);
    }
    s
}

/// An atom among a ring of others that each bury little of it, with a probe of 1.4 A: a CA or CB (1.88 A)
/// reaches this N (1.64 A) up to 6.32 A. With 3, 16 or 20 slices its middle circles have 13 open arcs or more; a
/// lane of the kernel has room for `ARCS` of `kernels/lee_richards.cuh`, which are 8. Nine residues have 16 CA
/// and CB: the arcs of twice as many merge to nine. The ring is tilted by 0.2 A, so that slices differ.
pub fn ring() -> Structure {
    let mut s = structure(9, 3);
    let count = s.xyz.len() - 1;
    s.xyz[0] = [0; 3];
    for atom in 1..=count {
        let turn = TAU * atom as f64 / count as f64;
        let far = 6_240.0 + 30.0 * (atom % 3) as f64;
        s.xyz[atom] = [far * turn.cos(), far * turn.sin(), 200.0 * turn.sin()].map(|x| x as i32);
    }
    s
}

/// The structure with its residues up to thousands of A apart.
#[allow(dead_code, reason = "each test binary uses its part")]
pub fn spread(mut s: Structure) -> Structure {
    for atoms in s.atom_start.windows(2) {
        let atoms = &mut s.xyz[atoms[0] as usize..atoms[1] as usize];
        if let Some(by) = atoms
            .first()
            .map(|first| first.map(|coordinate| 700 * coordinate))
        {
            atoms.iter_mut().for_each(|atom| *atom = moved(*atom, by));
        }
    }
    s
}

/// The structure with ligands, ions and glycans at its atoms, and one far away. Two ligands have
/// the same atoms.
#[allow(dead_code, reason = "each test binary uses its part")]
pub fn with_ligands(mut s: Structure, seed: u64) -> Structure {
    // Other numbers than those that made the structure, whose seeds are below.
    let mut random = Random::new(seed + 1_000_000);
    for index in 0..9 {
        let centre = match s.xyz.len() {
            0 => [0; 3],
            atoms => s.xyz[random.below(atoms)],
        };
        // The last is 900 A away along each axis.
        let centre = moved(centre, [if index == 8 { 900_000 } else { 0 }; 3]);
        let mut atom = || {
            let element = [6, 7, 8, 16, 26, 30][random.below(6)];
            LigandAtom {
                xyz: moved(centre, step(&mut random, 6_000)),
                element,
                class: AtomClass::of(*b"LIG     ", *b"X       ", element),
                b_factor: 20.0,
                details: AtomDetails::default(),
            }
        };
        let kind = [LigandKind::Ligand, LigandKind::Ion, LigandKind::Glycan][index % 3];
        let atoms: Vec<LigandAtom> = match kind {
            _ if index == 6 => s.ligands[3].atoms.to_vec(),
            LigandKind::Ion => vec![atom()],
            _ => (0..2 + index).map(|_| atom()).collect(),
        };
        s.ligands.push(Ligand {
            auth_asym_id: "A".into(),
            label_asym_id: None,
            auth_seq_id: (index != 3).then_some(500 + index as i32),
            ins_code: 0,
            comp_id: *b"LIG     ",
            kind,
            molecule: index as u32 / 2,
            atoms: atoms.into(),
            bonds: [].into(),
        });
    }
    s
}

/// A structure with the atoms of every second aromatic ring on a line, so that those rings have no plane.
pub fn with_rings_on_lines(mut structure: Structure) -> Structure {
    let checked = CheckedStructure::new(structure.clone()).expect("a structure that was read");
    let chemistry = Chemistry::of(&checked, None);
    let is_ring = |(atom, members): &(u32, &[u32])| {
        let of_residues = (*members.iter().max().unwrap() as usize) < structure.xyz.len();
        of_residues && chemistry.roles()[*atom as usize].contains(Roles::RING)
    };
    let rings: Vec<_> = chemistry.groups().filter(is_ring).step_by(2).collect();
    for (_, members) in rings {
        let sum = |axis: usize| {
            members
                .iter()
                .map(|&atom| structure.xyz[atom as usize][axis])
                .sum::<i32>()
        };
        let centre: [i32; 3] = std::array::from_fn(|axis| sum(axis) / members.len() as i32);
        for (place, &atom) in members.iter().enumerate() {
            structure.xyz[atom as usize] = moved(centre, [10 * place as i32, 0, 0]);
        }
    }
    structure
}
