//! Twin of `kernels/amide_hydrogens.cu`.

use super::super::cpu::split::for_row_ranges;
use super::super::kernels::{Twin, amide_hydrogens};
use super::super::layout::{Backbone, RESIDUES, ResidueSpan};
use super::bonds::{DONOR, FIRST, Hydrogen, INCOMPLETE, JOINED};

/// Computes the amide hydrogen of each residue.
impl Twin for amide_hydrogens::Views<'_> {
    fn run(self) {
        let Self {
            header,
            residues,
            backbone,
            hydrogens,
        } = self;
        let count = header[RESIDUES] as usize;
        let residues: &[ResidueSpan] = &residues[..count];
        let backbone: &[Backbone] = &backbone[..count];

        for_row_ranges(&mut hydrogens[..count], 1, |rows, hydrogens| {
            for (residue, hydrogen) in rows.zip(hydrogens) {
                *hydrogen = hydrogen_of(residue, residues, backbone);
            }
        });
    }
}

/// The direction of a residue's N-H, of length 1 A, which is opposite to C=O of the residue before
/// it; or the kind of residue that has none, such as proline, whose N has no hydrogen.
fn hydrogen_of(residue: usize, residues: &[ResidueSpan], backbone: &[Backbone]) -> Hydrogen {
    let is_complete = |index: usize| {
        let Backbone { n, ca, c, o } = backbone[index];
        [n, ca, c, o].iter().all(|atom| atom.is_present())
    };
    if !residues[residue].is(ResidueSpan::PRESENT) || !is_complete(residue) {
        return [0.0, 0.0, 0.0, INCOMPLETE];
    }
    if !ResidueSpan::is_linked(residues, residue) || !is_complete(residue - 1) {
        return [0.0, 0.0, 0.0, FIRST];
    }
    let Backbone { c, o, .. } = backbone[residue - 1];
    let [x, y, z] = [c.x - o.x, c.y - o.y, c.z - o.z].map(|d| d as f32);
    let d2 = x * x + y * y + z * z;
    if residues[residue].aa == b'P' || d2 <= 0.0 {
        return [0.0, 0.0, 0.0, JOINED];
    }
    // The hydrogen is 1 A from N.
    let scale = 1000.0 / d2.sqrt();
    [x * scale, y * scale, z * scale, DONOR]
}
