//! Bridges of water.

use super::{Roles, WaterBridge};
use crate::{Assembly, ReadOptions, Reader, Structure};
use std::collections::BTreeMap;

fn options(reach: u32) -> ReadOptions {
    ReadOptions {
        chemistry: true,
        ligands: true,
        water_reach: reach,
        ..ReadOptions::default()
    }
}

fn read(name: &str, options: ReadOptions) -> Structure {
    let path = tapeloop_test_support::repository("samples").join(name);
    Reader::new(options).read_path(&path).unwrap().remove(0)
}

/// A glycine and the carbonyls of two more, around a water at the origin. The oxygens are at these
/// positions in A, and the water has this name.
fn carbonyls(oxygens: [[f64; 3]; 2], water: &str) -> String {
    let mut text = String::new();
    let mut serial = 0;
    let mut line = |record: &str, name: &str, comp: &str, number: usize, [x, y, z]: [f64; 3]| {
        serial += 1;
        let element = &name[..1];
        text += &format!(
            "{record:<6}{serial:>5}  {name:<3} {comp:>3} A{number:>4}    {x:8.3}{y:8.3}{z:8.3}  1.00  0.00  \
                     {element:>2}\n"
        );
    };
    for (index, oxygen) in oxygens.into_iter().enumerate() {
        // Far apart in the sequence, and the chain runs away from the water.
        let number = 10 * index + 1;
        let length = oxygen.map(|axis| axis * axis).iter().sum::<f64>().sqrt();
        let along = |distance: f64| oxygen.map(|axis| axis * (1.0 + distance / length));
        line("ATOM", "N", "GLY", number, along(3.6));
        line("ATOM", "CA", "GLY", number, along(2.4));
        line("ATOM", "C", "GLY", number, along(1.2));
        line("ATOM", "O", "GLY", number, oxygen);
    }
    line("HETATM", "O", water, 101, [0.0; 3]);
    line("HETATM", "H1", water, 101, [0.9, 0.0, 0.0]);
    text + "END\n"
}

fn bridges(text: &str, reach: u32) -> Vec<WaterBridge> {
    let mut reader = Reader::new(options(reach));
    let structure = reader
        .read_auto("w.pdb", text.as_bytes())
        .unwrap()
        .remove(0);
    structure.chemistry.unwrap().water_bridges().to_vec()
}

/// A position at a distance and an angle from the x axis.
fn at(distance: f64, degrees: f64) -> [f64; 3] {
    let turn = degrees.to_radians();
    [distance * turn.cos(), distance * turn.sin(), 0.0]
}

#[test]
fn two_polar_atoms_around_a_water_are_a_bridge() {
    let found = bridges(&carbonyls([at(2.8, 0.0), at(3.0, 105.0)], "HOH"), 4_100);
    assert_eq!(found.len(), 1, "{found:?}");
    let WaterBridge {
        water,
        atoms,
        distances,
        angle,
    } = found[0];
    assert_eq!((water, atoms), (0, [3, 7]));
    assert!((distances[0] - 2.8).abs() < 1e-6 && (distances[1] - 3.0).abs() < 1e-3);
    assert!((angle - 105.0).abs() < 0.05, "{angle}");
    let count = |oxygens, water, reach| bridges(&carbonyls(oxygens, water), reach).len();
    assert_eq!(count([at(2.8, 0.0), at(3.0, 105.0)], "TIP3", 4_100), 1);
    assert_eq!(
        count([at(2.8, 0.0), at(3.0, 105.0)], "HOH", 0),
        0,
        "not asked for"
    );
    assert_eq!(
        count([at(2.8, 0.0), at(3.0, 105.0)], "HOH", 3_000),
        0,
        "an equal distance"
    );
    assert_eq!(count([at(2.8, 0.0), at(3.0, 105.0)], "HOH", 3_001), 1);
    assert_eq!(
        count([at(2.4, 0.0), at(3.0, 105.0)], "HOH", 4_100),
        0,
        "too near"
    );
    assert_eq!(
        count([at(2.8, 0.0), at(3.0, 70.0)], "HOH", 4_100),
        0,
        "a sharp angle"
    );
    assert_eq!(count([at(2.8, 0.0), at(3.0, 72.0)], "HOH", 4_100), 1);
    assert_eq!(
        count([at(2.8, 0.0), at(3.0, 141.0)], "HOH", 4_100),
        0,
        "a flat angle"
    );
    assert_eq!(
        count([at(2.8, 0.0), at(3.0, 105.0)], "SO3", 4_100),
        0,
        "no water"
    );
}

#[test]
fn a_water_in_a_crowd_has_no_bridges() {
    let crowd = |atoms: usize| {
        let mut text = carbonyls([at(2.8, 0.0), at(3.0, 105.0)], "HOH");
        text = text.replace("END\n", "");
        for number in 0..atoms {
            let turn = number as f64 / atoms as f64 * 360.0;
            let [y, z, _] = at(3.2, turn);
            text += &format!(
                "HETATM  900  O   OXY A{:>4}      -1.000{y:8.3}{z:8.3}  1.00  0.00           O\n",
                200 + number
            );
        }
        bridges(&text, 4_100).len()
    };
    assert!(crowd(4) > 1);
    assert_eq!(crowd(40), 0);
}

/// The bridges by the definition: all atoms are compared with all waters.
fn expected(structure: &Structure, reach: f64) -> usize {
    let chemistry = structure.chemistry.as_deref().unwrap();
    let mut xyz = structure.xyz.clone();
    for (_, ligand) in structure.ligands_by_atoms() {
        xyz.extend(ligand.atoms.iter().map(|atom| atom.xyz));
    }
    let position = |atom: u32| xyz[atom as usize].map(f64::from);
    let minus = |a: [f64; 3], b: [f64; 3]| [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    let length = |a: [f64; 3]| (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]).sqrt();
    let angle = |a: [f64; 3], b: [f64; 3]| {
        let dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        (dot / length(a) / length(b)).clamp(-1.0, 1.0).acos()
    };
    let mut bonded: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for [atom, other] in chemistry.bonds().flatten() {
        bonded.entry(*atom).or_default().push(*other);
    }
    let donates = |atom: u32, water: [f64; 3]| {
        let to_water = minus(water, position(atom));
        let others = bonded.get(&atom).map_or(&[][..], Vec::as_slice);
        let sum = others.iter().fold([0.0; 3], |sum, &other| {
            minus(sum, minus([0.0; 3], position(other)))
        });
        let away = minus(position(atom), sum.map(|axis| axis / others.len() as f64));
        let at_donor = match others.len() {
            0 => return true,
            1 => (angle(away, to_water) - (1.0_f64 / 3.0).acos()).abs(),
            _ => angle(away, to_water),
        };
        // The hydrogen in the plane of the donor and the water.
        let hydrogen = [1000.0 * at_donor.cos(), 1000.0 * at_donor.sin(), 0.0];
        let water = [length(to_water), 0.0, 0.0];
        angle(minus([0.0; 3], hydrogen), minus(water, hydrogen)) > 100.0_f64.to_radians()
    };
    let mut count = 0;
    for water in &structure.waters {
        let water = water.atoms[0].xyz.map(f64::from);
        let atoms = (0..xyz.len() as u32).filter(|&atom| {
            let distance = length(minus(position(atom), water));
            let roles = chemistry.roles()[atom as usize];
            (2_500.0..reach).contains(&distance)
                && (roles.contains(Roles::ACCEPTOR)
                    || (roles.contains(Roles::DONOR) && donates(atom, water)))
        });
        let atoms: Vec<u32> = atoms.collect();
        for (index, &one) in atoms.iter().enumerate() {
            for &other in &atoms[index + 1..] {
                let owners = [one, other].map(|atom| chemistry.owners()[atom as usize]);
                let apart = [one, other].map(|atom| minus(position(atom), water));
                let degrees = angle(apart[0], apart[1]).to_degrees();
                count += usize::from(owners[0] != owners[1] && degrees > 71.0 && degrees < 140.0);
            }
        }
    }
    count
}

#[test]
fn bridges_of_samples_are_those_of_the_definition() {
    for name in [
        "1ubi.pdb",
        "4e43.pdb.gz",
        "4cup.cif.gz",
        "3mht.pdb.gz",
        "1pfe.cif.gz",
    ] {
        for reach in [3_500, 4_100] {
            let structure = read(name, options(reach));
            let found = structure.chemistry.as_deref().unwrap().water_bridges();
            assert_eq!(
                found.len(),
                expected(&structure, reach.into()),
                "{name} {reach}"
            );
            assert!(found.is_sorted_by_key(|bridge| (bridge.atoms, bridge.water)));
            assert!(structure.waters.is_empty() == found.is_empty(), "{name}");
        }
    }
    assert!(read("1ubi.pdb", options(4_100)).waters.len() > 50);
}

#[test]
fn waters_follow_chains_and_assemblies() {
    let mut one = read("4e43.pdb.gz", options(4_100));
    let all = one.waters.len();
    let chain = one.chains[0].auth_asym_id.to_string();
    one.keep_chain(&chain).unwrap();
    assert!(!one.waters.is_empty() && one.waters.len() < all);
    assert!(one.waters.iter().all(|water| *water.auth_asym_id == *chain));
    assert_eq!(
        one.chemistry.as_deref().unwrap().water_bridges().len(),
        expected(&one, 4_100.0)
    );
    let assembly = ReadOptions {
        assembly: Assembly::First,
        ..options(4_100)
    };
    let built = read("1pfe.cif.gz", assembly);
    let deposited = read("1pfe.cif.gz", options(4_100));
    let copies = built.atom_start.last().unwrap() / deposited.atom_start.last().unwrap();
    assert_eq!(built.waters.len(), copies as usize * deposited.waters.len());
    let bridges = built.chemistry.as_deref().unwrap().water_bridges();
    assert_eq!(bridges.len(), expected(&built, 4_100.0));
}
