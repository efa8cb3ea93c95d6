//! Twin of `kernels/secondary_structure.cu`.

use super::super::columns::NULL_COUNT;
use super::super::constants;
use super::super::cpu::angles::{Angle, difference, dot};
use super::super::cpu::split::{TASK_ROWS, for_row_ranges};
use super::super::kernels::{Twin, secondary_structure};
use super::super::layout::{Backbone, RESIDUES, ResidueSpan, StructureSpan};
use super::bonds::{Bonds, Hydrogen, IN_BRIDGE, IN_STRAND, INCOMPLETE, is_joined};
use bytemuck::{cast_slice, cast_slice_mut};
use std::ops::Range;

/// A residue's state depends on residues at most this far away in the sequence: a pi helix gives
/// way to 3-10 helices up to 4 residues away, these to alpha helices 2 further, and the turns of
/// those begin or end 4 further.
const HALO: usize = constants::HALO as usize;

/// A bit for each of a task's residues, and for the residues around them.
type Mask = u128;
const _: () = assert!(TASK_ROWS + 2 * HALO <= Mask::BITS as usize);

/// States in the order of the columns' texts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DsspState {
    Helix4,
    Ladder,
    Bridge,
    Helix3,
    Helix5,
    Turn,
    Bend,
    Polyproline,
    Loop,
}

/// The three classes of states.
#[derive(Clone, Copy)]
enum DsspClass {
    Helix,
    Sheet,
    Coil,
}

impl DsspState {
    fn class(self) -> DsspClass {
        match self {
            DsspState::Helix4 | DsspState::Helix3 | DsspState::Helix5 => DsspClass::Helix,
            DsspState::Ladder | DsspState::Bridge => DsspClass::Sheet,
            _ => DsspClass::Coil,
        }
    }
}

struct StateInputs<'a> {
    structures: &'a [StructureSpan],
    residues: &'a [ResidueSpan],
    backbone: &'a [Backbone],
    hydrogens: &'a [Hydrogen],
    bonds: Bonds<'a>,
    marks: &'a [u32],
    has_polyproline: bool,
}

impl StateInputs<'_> {
    fn is_joined(&self, residue: usize) -> bool {
        is_joined(self.hydrogens, residue)
    }

    /// Whether the chain turns by more than 70 degrees from C-alphas i-2 and i to i and i+2. Two
    /// C-alphas at the same position count as a turn of 90 degrees, as in DSSP.
    fn is_bend(&self, residue: usize) -> bool {
        const COS_70: f64 = 0.3420201433256687;
        // The first residue of the batch is not joined to another.
        if !(residue.saturating_sub(1)..residue + 3).all(|residue| self.is_joined(residue)) {
            return false;
        }
        let here = self.backbone[residue].ca;
        let before = difference(here, self.backbone[residue - 2].ca);
        let after = difference(self.backbone[residue + 2].ca, here);
        let lengths = (dot(before, before) * dot(after, after)).sqrt();
        dot(before, after) < COS_70 * lengths || lengths == 0.0
    }

    /// Whether phi is within 29 degrees of -75, and psi within 29 degrees of 145.
    fn is_polyproline(&self, residue: usize) -> bool {
        if !self.has_polyproline || !self.is_joined(residue) || !self.is_joined(residue + 1) {
            return false;
        }
        let Backbone { n, ca, c, .. } = self.backbone[residue];
        let phi = Angle::dihedral([self.backbone[residue - 1].c, n, ca, c]);
        let psi = Angle::dihedral([n, ca, c, self.backbone[residue + 1].n]);
        // The cosines and sines of -75 and of 145 degrees.
        is_within(phi, 0.25881904510252074, -0.9659258262890683)
            && is_within(psi, -0.8191520442889918, 0.573576436351046)
    }
}

/// Whether an angle is within 29 degrees of another, given as cosine and sine.
fn is_within(angle: Angle, cos: f64, sin: f64) -> bool {
    const COS_29: f64 = 0.8746197071393957;
    let length = (angle.cos * angle.cos + angle.sin * angle.sin).sqrt();
    length > 0.0 && angle.cos * cos + angle.sin * sin >= COS_29 * length
}

/// The set bits of a mask, and the `length` - 1 bits after each of them.
fn spread(mask: Mask, length: u32) -> Mask {
    (1..length).fold(mask, |bits, k| bits | mask << k)
}

/// The bits of a mask that are followed by `length` - 1 set bits.
fn all_set(mask: Mask, length: u32) -> Mask {
    (1..length).fold(mask, |bits, k| bits & mask >> k)
}

/// Properties of consecutive residues, a bit for each.
#[derive(Default)]
struct ResidueBits {
    complete: Mask,
    joined: Mask,
    /// Residues whose N-H bonds to the O of the residue 3, 4 or 5 before.
    bonds: [Mask; 3],
    strand: Mask,
    bridge: Mask,
    bend: Mask,
    polyproline: Mask,
}

impl ResidueBits {
    /// The properties of `residues`, the first in the lowest bit. Of hydrogen bonds only those of
    /// helices are noted, which reach over 3 residues (3-10 helix), 4 (alpha) or 5 (pi).
    fn new(inputs: &StateInputs<'_>, residues: Range<usize>) -> Self {
        let mut bits = ResidueBits::default();
        for (place, residue) in residues.enumerate() {
            let bit_of_residue = Mask::from(1u8) << place;
            let bit = |is: bool| if is { bit_of_residue } else { 0 };
            let structure = &inputs.structures[inputs.residues[residue].structure as usize];
            let acceptors = inputs
                .bonds
                .acceptors(residue, structure.residue_start as usize);
            for acceptor in acceptors.into_iter().flatten() {
                if let Some(stride @ 3..=5) = residue.checked_sub(acceptor) {
                    bits.bonds[stride - 3] |= bit_of_residue;
                }
            }
            bits.complete |= bit(inputs.hydrogens[residue][3] != INCOMPLETE);
            bits.joined |= bit(inputs.is_joined(residue));
            bits.strand |= bit(inputs.marks[residue] & IN_STRAND != 0);
            bits.bridge |= bit(inputs.marks[residue] & IN_BRIDGE != 0);
            bits.bend |= bit(inputs.is_bend(residue));
            bits.polyproline |= bit(inputs.is_polyproline(residue));
        }
        bits
    }

    /// Residues where a turn of `stride` residues begins: they accept a bond from the residue
    /// `stride` after them.
    fn turn_starts(&self, stride: u32) -> Mask {
        let bonds = self.bonds[stride as usize - 3];
        bonds >> stride & all_set(self.joined >> 1, stride)
    }

    /// The state of each residue, by DSSP's rules of which pattern gives way to which. It is valid
    /// for all but the outermost [`HALO`] residues, unless the batch ends there.
    fn states(&self) -> impl Fn(usize) -> DsspState {
        let [start3, start4, start5] = [3, 4, 5].map(|stride| self.turn_starts(stride));
        // Two consecutive turns make a helix of the residues that they share.
        let helix4 = spread(start4 & start4 << 1, 4);
        let sheet = (self.strand | self.bridge) & !helix4;
        let helix3 = spread(start3 & start3 << 1 & all_set(!(helix4 | sheet), 3), 3);
        let helix5 = spread(start5 & start5 << 1 & all_set(!(helix3 | sheet), 5), 5);
        let turn = spread(start3 << 1, 2) | spread(start4 << 1, 3) | spread(start5 << 1, 4);
        let polyproline = spread(all_set(self.polyproline, 3), 3);
        let by_priority = [
            (helix5, DsspState::Helix5),
            (helix4, DsspState::Helix4),
            (self.strand, DsspState::Ladder),
            (self.bridge, DsspState::Bridge),
            (helix3, DsspState::Helix3),
            (turn, DsspState::Turn),
            (self.bend, DsspState::Bend),
            (polyproline, DsspState::Polyproline),
        ];
        move |index| {
            let found = by_priority.iter().find(|(mask, _)| mask >> index & 1 == 1);
            found.map_or(DsspState::Loop, |(_, state)| *state)
        }
    }
}

/// Assigns the secondary structure of each residue, in eight or nine states and in three classes.
impl Twin for secondary_structure::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            backbone,
            hydrogens,
            partners,
            energies,
            marks,
            states,
            has_polyproline,
        } = self;
        let count = header[RESIDUES] as usize;
        let structures = StructureSpan::live(header, structures);
        let (backbone, hydrogens) = (backbone, hydrogens);
        let bonds = Bonds::new(partners, energies);
        let states: &mut [[i32; 2]] = cast_slice_mut(states);
        let has_polyproline = has_polyproline != 0;

        let inputs = StateInputs {
            structures,
            residues: &residues[..count],
            backbone: cast_slice(backbone),
            hydrogens: &cast_slice(hydrogens)[..count],
            bonds,
            marks,
            has_polyproline,
        };
        for_row_ranges(&mut states[..count], 1, |rows, states| {
            let first = rows.start.saturating_sub(HALO);
            let bits = ResidueBits::new(&inputs, first..count.min(rows.end + HALO));
            let state_of = bits.states();
            for (residue, states) in rows.zip(states) {
                let state = state_of(residue - first);
                *states = if bits.complete >> (residue - first) & 1 == 1 {
                    [state as i32, state.class() as i32]
                } else {
                    [NULL_COUNT; 2]
                };
            }
        });
    }
}
