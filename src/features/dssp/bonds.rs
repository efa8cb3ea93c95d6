//! Hydrogen bonds and bridges, which the kernels of secondary structure pass on in buffers, as in
//! `kernels/dssp.cuh`.

use bytemuck::cast_slice;

/// The state of a residue, in the last element of its [`Hydrogen`]: a backbone atom is missing.
pub(super) const INCOMPLETE: f32 = 0.0;
/// The first of a stretch of linked, complete residues.
pub(super) const FIRST: f32 = 1.0;
/// A residue that is bonded to the one before it.
pub(super) const JOINED: f32 = 2.0;
/// A residue that is bonded to the one before it, and has an amide hydrogen.
pub(super) const DONOR: f32 = 3.0;

/// A residue's amide hydrogen: its offset from N in 0.001 A, and the state of the residue.
pub(in super::super) type Hydrogen = [f32; 4];

/// Whether residue `residue` exists and is bonded to the one before it.
pub(super) fn is_joined(hydrogens: &[Hydrogen], residue: usize) -> bool {
    hydrogens
        .get(residue)
        .is_some_and(|hydrogen| hydrogen[3] >= JOINED)
}

/// The hydrogen bonds of the batch. A residue has four partners: the two best acceptors of its N-H,
/// then the two best donors to its O. Partners are indices in the structure; energies are in
/// kcal/mol.
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

    /// The acceptors of a residue, as indices in the batch; `None` where the energy is not below
    /// the -0.5 kcal/mol of Kabsch and Sander, or NaN. Its structure starts at residue `first`.
    pub(super) fn acceptors(&self, donor: usize, first: usize) -> [Option<usize>; 2] {
        [0, 1].map(|which| {
            let is_bond = self.energies[donor][which] < -0.5;
            is_bond.then(|| first + self.partners[donor][which] as usize)
        })
    }

    /// Whether the N-H of residue `donor` is bonded to the O of residue `acceptor`.
    pub(super) fn between(&self, donor: usize, acceptor: usize, first: usize) -> bool {
        self.acceptors(donor, first).contains(&Some(acceptor))
    }
}

/// A bridge in [`Bridges`](super::super::layout::Bridges) after the residue's last.
pub(super) const NO_BRIDGE: u32 = u32::MAX;

/// A bridge to residue `partner`, as [`Bridges`](super::super::layout::Bridges) has it.
pub(super) fn bridge_to(partner: usize, is_antiparallel: bool) -> u32 {
    2 * partner as u32 + u32::from(is_antiparallel)
}

/// Bits of a residue's marks: it is part of a ladder of one bridge, or of more.
pub(super) const IN_BRIDGE: u32 = 1;
pub(super) const IN_STRAND: u32 = 2;
