//! What the kernels of interactions read of each atom.

use super::super::layout::{AtomFrame, AtomRoles};
use super::CENTRE_MAX;
use crate::structure::{CheckedStructure, Chemistry, Components, Roles, Structure};
use std::sync::Arc;

/// The length of a direction, whose components are i16: the largest power of two that they hold.
const DIRECTION: f64 = 16_384.0;

/// The structure's chemistry, which a structure that was not read for it does not have yet.
pub(in super::super) fn chemistry_of(
    structure: &CheckedStructure,
    components: Option<Components>,
) -> Arc<Chemistry> {
    match &structure.chemistry {
        Some(chemistry) => Arc::clone(chemistry),
        None => Arc::new(Chemistry::of(structure, components)),
    }
}

/// Writes the roles of atoms, which include those of ligands.
pub(in super::super) fn write_roles(roles: &mut [AtomRoles], chemistry: &Chemistry) {
    let of_atoms = chemistry.owners().iter().zip(chemistry.roles());
    for (written, (&owner, of_atom)) in roles.iter_mut().zip(of_atoms) {
        *written = AtomRoles {
            owner,
            roles: u32::from(of_atom.bits()),
        };
    }
}

/// Writes the directions of donors and acceptors, and the centres of groups with the normals of
/// rings. The centre of a group with atoms farther than [`CENTRE_MAX`] stays at its atom.
pub(in super::super) fn write_frames(
    frames: &mut [AtomFrame],
    chemistry: &Chemistry,
    structure: &Structure,
) {
    let positions = ligand_positions(structure);
    let position = |atom: u32| {
        let atom = atom as usize;
        let of_ligand = || positions[atom - structure.xyz.len()];
        structure.xyz.get(atom).copied().unwrap_or_else(of_ligand)
    };
    frames.fill(AtomFrame {
        centre: [0; 4],
        direction: [0; 4],
    });
    for bonds in chemistry.bonds() {
        let atom = bonds[0][0];
        let centre = mean(bonds.iter().map(|bond| position(bond[1])));
        let here = position(atom).map(f64::from);
        let from_bonded = std::array::from_fn(|axis| here[axis] - centre[axis]);
        let direction = &mut frames[atom as usize].direction;
        *direction = self::direction(from_bonded);
        // A donor with two neighbours has its hydrogen in this direction, one with a single one on
        // a cone around it.
        direction[3] = i16::from(bonds.len() > 1);
    }
    for (atom, members) in chemistry.groups() {
        let frame = &mut frames[atom as usize];
        let centre = mean(members.iter().map(|&member| position(member)));
        let here = position(atom).map(f64::from);
        let offset: [f64; 3] = std::array::from_fn(|axis| (centre[axis] - here[axis]).round());
        if offset.iter().map(|axis| axis * axis).sum::<f64>() <= f64::from(CENTRE_MAX).powi(2) {
            frame.centre = padded(offset);
        }
        if chemistry.roles()[atom as usize].contains(Roles::RING) {
            frame.direction = direction(normal(members.iter().map(|&member| position(member))));
        }
    }
}

/// The positions of the atoms of ligands, glycans first.
fn ligand_positions(structure: &Structure) -> Vec<[i32; 3]> {
    let ligands = structure.ligands_by_atoms();
    let atoms = ligands.flat_map(|(_, ligand)| ligand.atoms.iter());
    atoms.map(|atom| atom.xyz).collect()
}

/// The mean of positions. Their sums are exact.
fn mean(positions: impl Iterator<Item = [i32; 3]>) -> [f64; 3] {
    let (mut sum, mut count) = ([0_i64; 3], 0);
    for position in positions {
        sum = std::array::from_fn(|axis| sum[axis] + i64::from(position[axis]));
        count += 1;
    }
    sum.map(|sum| sum as f64 / f64::from(count.max(1)))
}

/// The normal of a ring: the sum of the cross products of neighbours, from its first atom.
fn normal(ring: impl Iterator<Item = [i32; 3]> + Clone) -> [f64; 3] {
    let Some(origin) = ring.clone().next() else {
        return [0.0; 3];
    };
    let vectors = ring.map(|position| {
        let apart: [f64; 3] =
            std::array::from_fn(|axis| f64::from(position[axis]) - f64::from(origin[axis]));
        apart
    });
    let pairs = vectors.clone().zip(vectors.skip(1));
    pairs.fold([0.0; 3], |sum, (a, b)| {
        [
            sum[0] + a[1] * b[2] - a[2] * b[1],
            sum[1] + a[2] * b[0] - a[0] * b[2],
            sum[2] + a[0] * b[1] - a[1] * b[0],
        ]
    })
}

/// A vector at the length of directions; zero stays zero.
fn direction(vector: [f64; 3]) -> [i16; 4] {
    let length = vector.iter().map(|axis| axis * axis).sum::<f64>().sqrt();
    if length > 0.0 {
        padded(vector.map(|axis| (axis / length * DIRECTION).round()))
    } else {
        [0; 4]
    }
}

fn padded(vector: [f64; 3]) -> [i16; 4] {
    let [x, y, z] = vector.map(|axis| axis as i16);
    [x, y, z, 0]
}
