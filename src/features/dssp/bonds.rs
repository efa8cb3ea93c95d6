//! Hydrogen bonds and bridges as the kernels of secondary structure hand them on:
//! `kernels/dssp.cuh`.

use bytemuck::cast_slice;

/// What a residue is, in the last place of its hydrogen: one that lacks a backbone
/// atom.
pub(super) const INCOMPLETE: f32 = 0.0;
/// The first of a stretch of linked residues that lack none.
pub(super) const FIRST: f32 = 1.0;
/// Another.
pub(super) const JOINED: f32 = 2.0;
/// Another, with a hydrogen.
pub(super) const DONOR: f32 = 3.0;

/// A residue's hydrogen: its offset from N in 0.001 A, and what the residue is.
pub(super) type Hydrogen = [f32; 4];

/// Whether residue `at` is there and continues a stretch.
pub(super) fn is_joined(hydrogens: &[Hydrogen], at: usize) -> bool {
    hydrogens
        .get(at)
        .is_some_and(|hydrogen| hydrogen[3] >= JOINED)
}

/// The hydrogen bonds of the batch. A residue has four partners, which count from
/// its structure's first residue: the two best acceptors of its N-H, then the two
/// best donors to its O; energies in kcal/mol.
#[derive(Clone, Copy)]
pub(super) struct Bonds<'a> {
    partners: &'a [[i32; 4]],
    energies: &'a [[f32; 4]],
}

impl<'a> Bonds<'a> {
    pub(super) fn new(partners: &'a [i32], energies: &'a [f32]) -> Self {
        Bonds {
            partners: cast_slice(partners),
            energies: cast_slice(energies),
        }
    }

    /// The acceptors of a residue whose structure starts at `first`, as residues of
    /// the batch.
    pub(super) fn acceptors(&self, donor: usize, first: usize) -> [Option<usize>; 2] {
        [0, 1].map(|which| {
            let is_bond = self.energies[donor][which] < -0.5;
            is_bond.then(|| first + self.partners[donor][which] as usize)
        })
    }

    /// Whether residue `donor` gives a bond to residue `acceptor`.
    pub(super) fn between(&self, donor: usize, acceptor: usize, first: usize) -> bool {
        self.acceptors(donor, first).contains(&Some(acceptor))
    }
}

pub(super) const NO_BRIDGE: u32 = u32::MAX;

pub(super) fn bridge_to(partner: usize, antiparallel: bool) -> u32 {
    2 * partner as u32 + u32::from(antiparallel)
}

/// What a residue is of the ladders, by bits.
pub(super) const IN_BRIDGE: u32 = 1;
pub(super) const IN_STRAND: u32 = 2;
