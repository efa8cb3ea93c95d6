//! The chemistry of a residue or ligand from its component.

use super::super::text8::Text8;
use super::dictionary::DictionaryComponent;
use super::perception::{ATOM_BONDS_MAX, Molecule, Perceived};
use std::collections::BTreeSet;

/// A bond of a component that is longer shows that the atoms are those of another compound, in A.
/// Two atoms of iodine, the largest, have 2.8 A.
const KNOWN_BOND_MAX: f64 = 3.0;

/// What a component states of a residue's or ligand's atoms and bonds.
pub(super) struct KnownBonds {
    /// The number of each atom's hydrogens.
    pub(super) hydrogens: Vec<u8>,
    /// The number of each atom's bonds to atoms of linked ligands.
    pub(super) links: Vec<u8>,
    /// Whether an atom has a bond that is no single one.
    pub(super) is_unsaturated: Vec<bool>,
    /// Both atoms of aromatic bonds, in either order.
    pub(super) aromatic: BTreeSet<[u32; 2]>,
}

/// Finds what the atoms of a residue or ligand can take part in by its component in a dictionary. `None`
/// if an atom is not one of the component's, is there twice or has more than [`ATOM_BONDS_MAX`] bonds, or
/// bonds are far too long: it is another compound under the same name then. `links` has the number of each atom's
/// bonds to linked ligands, whose hydrogens it lacks.
pub(super) fn perceive_known(
    xyz: &[[i32; 3]],
    element: &[u8],
    names: &[Text8],
    links: &[u8],
    component: &DictionaryComponent,
) -> Option<Perceived> {
    // For each atom of the component, the residue's.
    let mut atoms = vec![None; component.atoms.len()];
    for (index, (name, element)) in names.iter().zip(element).enumerate() {
        let mut known = component.atoms.iter();
        let place = known.position(|atom| {
            atom.name == *name && (atom.element == *element || atom.element == 0)
        })?;
        if atoms[place].replace(index as u32).is_some() {
            return None;
        }
    }
    let mut known = KnownBonds {
        hydrogens: vec![0; xyz.len()],
        links: links.to_vec(),
        is_unsaturated: vec![false; xyz.len()],
        aromatic: BTreeSet::new(),
    };
    for (atom, place) in component.atoms.iter().zip(&atoms) {
        if let Some(place) = place {
            let place = *place as usize;
            // Each link takes the place of a hydrogen, while there is one.
            known.hydrogens[place] = atom.hydrogens.saturating_sub(links[place]);
        }
    }
    let mut bonded = vec![Vec::new(); xyz.len()];
    for bond in &component.bonds {
        let [one, other] = bond.atoms.map(|atom| atoms[usize::from(atom)]);
        for atom in [one, other].into_iter().flatten() {
            known.is_unsaturated[atom as usize] |= bond.is_multiple;
        }
        if let (Some(one), Some(other)) = (one, other) {
            bonded[one as usize].push(other);
            bonded[other as usize].push(one);
            if bond.is_aromatic {
                known.aromatic.extend([[one, other], [other, one]]);
            }
        }
    }
    for bonded in &mut bonded {
        bonded.sort_unstable();
        bonded.dedup();
        if bonded.len() > ATOM_BONDS_MAX {
            return None;
        }
    }
    let molecule = Molecule {
        xyz,
        element,
        bonded,
        known: Some(known),
    };
    let bonds = (0..).zip(&molecule.bonded);
    let mut bonds = bonds.flat_map(|(one, bonded)| bonded.iter().map(move |&other| (one, other)));
    bonds
        .all(|(one, other)| molecule.distance(one, other) < KNOWN_BOND_MAX)
        .then(|| molecule.perceive())
}
