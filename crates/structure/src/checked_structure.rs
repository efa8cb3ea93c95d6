//! [`CheckedStructure`]: a structure whose parts fit each other.

use super::AtomClass;
use super::decimal::LIMIT_MILLI;
use super::model::{Channel, Structure};
use crate::{Error, Result};
use std::ops::Deref;

/// A [`Structure`] whose columns fit each other and whose coordinates are within bounds.
///
/// Kernels rely on both. Readers guarantee them, but a program may fill the fields of a
/// [`Structure`] with anything, so the constructor checks them, and nothing changes the structure
/// afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedStructure {
    structure: Structure,
    corners: Corners,
    ligand_atom_count: usize,
}

impl CheckedStructure {
    /// The largest absolute value of a coordinate, in 0.001 A: 100,000 A.
    pub const COORDINATE_MAX: i32 = LIMIT_MILLI;

    /// The largest number of chains: kernels have 19 bits for one more.
    pub const CHAINS_MAX: usize = 524_287;

    /// Checks a structure, in time that is linear in its size.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for the first of these that applies:
    /// - An atom is farther than 100,000 A from the origin along an axis.
    /// - The columns of atoms differ in length; [`Structure::atom_name`] and
    ///   [`Structure::atom_details`] may be empty.
    /// - [`Structure::loose_residues`] do not have the loose atoms; there may be none of them.
    /// - [`Structure::chemistry`] is of another number of atoms.
    /// - The [`AtomClass`] of an atom has no radius in [`Structure::radii`].
    /// - There are ligands and no chain, a ligand of more than 65,535 atoms, or more than 524,287
    ///   chains.
    /// - A residue or a loose atom names a chain that does not exist.
    /// - The atoms are not those of the residues and then the loose ones, or a residue has more
    ///   than 65,535.
    /// - A channel does not have a value for each residue.
    pub fn new(structure: Structure) -> Result<Self> {
        let mut corners = Corners::NONE;
        corners.include(structure.xyz.iter());
        for ligand in &structure.ligands {
            corners.include(ligand.atoms.iter().map(|atom| &atom.xyz));
        }
        if !corners.are_within_bounds() {
            return Err(Error::input(
                "an atom is farther than 100000 A from the origin",
            ));
        }
        check_parts(&structure)?;
        check_channels(&structure)?;
        let ligand_atoms = structure.ligands.iter().map(|ligand| ligand.atoms.len());
        Ok(CheckedStructure {
            corners,
            ligand_atom_count: ligand_atoms.sum(),
            structure,
        })
    }

    /// The structure, to be changed. Call [`CheckedStructure::new`] again after a change.
    pub fn into_inner(self) -> Structure {
        self.structure
    }

    /// The smallest and the largest coordinate along each axis, in 0.001 A, over all atoms, those
    /// of ligands included: `[[x, y, z], [x, y, z]]`. `None` if there are no atoms.
    pub fn corners(&self) -> Option<[[i32; 3]; 2]> {
        let Corners { low, high } = self.corners;
        (self.corners != Corners::NONE).then_some([low, high])
    }

    /// Number of atoms in all of [`Structure::ligands`].
    pub fn ligand_atom_count(&self) -> usize {
        self.ligand_atom_count
    }
}

impl Deref for CheckedStructure {
    type Target = Structure;

    fn deref(&self) -> &Structure {
        &self.structure
    }
}

/// The smallest box around positions.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Corners {
    low: [i32; 3],
    high: [i32; 3],
}

impl Corners {
    /// The box around no position.
    const NONE: Corners = Corners {
        low: [i32::MAX; 3],
        high: [i32::MIN; 3],
    };

    /// Extends the box so that it holds the positions.
    fn include<'a>(&mut self, positions: impl Iterator<Item = &'a [i32; 3]>) {
        let Corners { mut low, mut high } = *self;
        for position in positions {
            for axis in 0..3 {
                low[axis] = low[axis].min(position[axis]);
                high[axis] = high[axis].max(position[axis]);
            }
        }
        *self = Corners { low, high };
    }

    fn are_within_bounds(&self) -> bool {
        let max = CheckedStructure::COORDINATE_MAX;
        self.low.iter().all(|&low| low >= -max) && self.high.iter().all(|&high| high <= max)
    }
}

/// Whether all classes have one of `count` radii.
fn have_radii<'a>(classes: impl Iterator<Item = &'a AtomClass>, count: u8) -> bool {
    // No branch for each atom, so that the loop is vectorized.
    classes.fold(true, |all, class| all & class.has_radius(count))
}

/// Whether the chains that residues name exist, and spans and columns have the lengths that kernels
/// rely on; else an [`ErrorKind::Input`](crate::ErrorKind::Input) error. It names the first part
/// that is wrong. Atoms of the backbone, such as [`Residue::ca`](super::Residue::ca), are not
/// checked: one that does not exist has no position.
fn check_parts(structure: &Structure) -> Result<()> {
    let atoms = structure.xyz.len();
    let chains = structure.chains.len();
    let starts = &structure.atom_start;
    let row_chains = structure.residues.iter().map(|residue| residue.chain);
    let loose_chains = structure.loose.iter().map(|span| span.chain);
    let loose_atoms: usize = structure
        .loose
        .iter()
        .map(|span| span.atom_count as usize)
        .sum();
    let radii = structure.radii.count();
    let message = if [
        structure.element.len(),
        structure.class.len(),
        structure.b_factor.len(),
    ] != [atoms; 3]
    {
        "the structure's columns of atoms differ in length"
    } else if ![0, atoms].contains(&structure.atom_name.len()) {
        "the structure has another number of atom names than of atoms"
    } else if ![0, atoms].contains(&structure.atom_details.len()) {
        "the structure has details of another number of atoms than it has"
    } else if !structure.has_matching_loose_residues() {
        "its residues without a row do not have its loose atoms"
    } else if structure.chemistry.as_ref().is_some_and(|chemistry| {
        chemistry.atom_count()
            != atoms
                + structure
                    .ligands
                    .iter()
                    .map(|ligand| ligand.atoms.len())
                    .sum::<usize>()
    }) {
        "its chemistry is that of another number of atoms than it has"
    } else if !have_radii(structure.class.iter(), radii)
        || !(structure.ligands.iter())
            .all(|ligand| have_radii(ligand.atoms.iter().map(|atom| &atom.class), radii))
    {
        "an atom has no class"
    } else if chains == 0 && !structure.ligands.is_empty() {
        "it has ligands, but no chain"
    } else if (structure.ligands.iter()).any(|ligand| ligand.atoms.len() > usize::from(u16::MAX)) {
        "a ligand has more than 65535 atoms"
    } else if chains > CheckedStructure::CHAINS_MAX {
        "it has more than 524287 chains"
    } else if row_chains
        .chain(loose_chains)
        .any(|chain| chain as usize >= chains)
    {
        "a residue or loose atom is of a chain that the structure does not list"
    } else if starts.len() != structure.residues.len() + 1
        || starts.first() != Some(&0)
        || !starts.is_sorted()
        || starts.last().map(|&end| end as usize + loose_atoms) != Some(atoms)
    {
        "its atoms are not its residues' and the loose ones, one after the other"
    } else if starts
        .windows(2)
        .any(|span| span[1] - span[0] > u32::from(u16::MAX))
    {
        "a residue has more than 65535 atoms"
    } else {
        return Ok(());
    };
    Err(Error::input(message))
}

/// Whether each channel has a value for each residue. Else an
/// [`ErrorKind::Input`](crate::ErrorKind::Input) error.
fn check_channels(structure: &Structure) -> Result<()> {
    let rows = structure.residues.len();
    let misfit = |channel: &&Channel| channel.values.len() != rows;
    match structure.channels.iter().find(misfit) {
        Some(Channel { name, values }) => {
            let count = values.len();
            let message = format!("channel {name} has {count} values for {rows} residues");
            Err(Error::input(message).fix("give each residue a value, NaN where there is none"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
