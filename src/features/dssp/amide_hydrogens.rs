//! Twin of `kernels/amide_hydrogens.cu`.

use super::super::cpu::split::for_each_row;
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

        for_each_row(&mut hydrogens[..count], 1, |rows, hydrogens| {
            for (own, hydrogen) in rows.zip(hydrogens) {
                *hydrogen = hydrogen_of(own, residues, backbone);
            }
        });
    }
}

fn hydrogen_of(own: usize, residues: &[ResidueSpan], backbone: &[Backbone]) -> Hydrogen {
    let is_complete = |at: usize| {
        let Backbone { n, ca, c, o } = backbone[at];
        [n, ca, c, o].iter().all(|atom| atom.is_present())
    };
    if !residues[own].is(ResidueSpan::PRESENT) || !is_complete(own) {
        return [0.0, 0.0, 0.0, INCOMPLETE];
    }
    if !ResidueSpan::is_linked(residues, own) || !is_complete(own - 1) {
        return [0.0, 0.0, 0.0, FIRST];
    }
    let Backbone { c, o, .. } = backbone[own - 1];
    let [x, y, z] = [c.x - o.x, c.y - o.y, c.z - o.z].map(|d| d as f32);
    let d2 = x * x + y * y + z * z;
    if residues[own].aa == b'P' || d2 <= 0.0 {
        return [0.0, 0.0, 0.0, JOINED];
    }
    let scale = 1000.0 / d2.sqrt();
    [x * scale, y * scale, z * scale, DONOR]
}
