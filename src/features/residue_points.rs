//! The C-alpha and the C-beta of each residue as atoms, and the grid over them, from the backbones.

use super::cpu::split::TASK_ROWS;
use super::grid::{Grid, RESIDUE_CELL_SHIFT};
use super::kernels::{Twin, residue_grid, residue_points};
use super::layout::{
    Atom, AtomTag, Backbone, COORDINATE_MAX, Position, RADIUS_MAX, RESIDUES, ResidueSpan,
    STRUCTURES, StructureSpan,
};
use super::recorder::FeatureRecorder;
use super::side_chain_atoms::SharedSideChains;
use crate::record::Buffer;
use rayon::prelude::*;

/// The buffers of C-alphas and C-betas, which features share.
#[derive(Clone, Copy)]
struct ResiduePoints {
    ca: Buffer<Atom>,
    cb: Buffer<Atom>,
}

/// Shared once the launch that computes the grids of residues is recorded.
#[derive(Clone, Copy)]
struct HasResidueGrids;

impl FeatureRecorder<'_> {
    /// The C-alpha of each residue, `[residues]`. Records the launch that computes it and the
    /// C-beta at the first call.
    pub(super) fn ca(&mut self) -> Buffer<Atom> {
        self.asks_ca = true;
        self.residue_points().ca
    }

    /// The C-beta of each residue, `[residues]`; an ideal one for glycine, and if it is missing.
    /// Only C-betas of the file have the side-chain flag in their tags. Records the launch that
    /// computes it and the C-alpha at the first call.
    pub(super) fn cb(&mut self) -> Buffer<Atom> {
        self.asks_cb = true;
        self.residue_points().cb
    }

    /// The buffers of C-alphas and C-betas. Declares them and records the launch that computes them
    /// at the first call.
    fn residue_points(&mut self) -> ResiduePoints {
        if let Some(points) = self.shared() {
            return points;
        }
        let (header, residues) = (self.header(), self.residues());
        let (backbone, betas) = (self.backbone(), self.betas());
        let points = ResiduePoints {
            ca: self.device("ca", RESIDUES, 1),
            cb: self.device("cb", RESIDUES, 1),
        };
        let args = residue_points::Args {
            header,
            residues,
            backbone,
            betas,
            ca: points.ca,
            cb: points.cb,
        };
        self.launch_threads(RESIDUES, args);
        self.share(points)
    }

    /// Records that the buffers which kernels compute from residues are zeroed first. A kernel of
    /// the user's own also reads the rows of a rejected structure, which a fused launch does not
    /// write.
    pub(super) fn clear_derived(&mut self) {
        if let Some(ResiduePoints { ca, cb }) = self.shared() {
            self.recorder.memset(ca, 0);
            self.recorder.memset(cb, 0);
        }
        if let Some(SharedSideChains(sides)) = self.shared() {
            self.recorder.memset(sides, 0);
        }
    }

    /// Records the launch that computes the `residue_grid` of each structure from its C-alphas and
    /// C-betas.
    pub(super) fn residue_grids(&mut self) {
        if let Some(HasResidueGrids) = self.shared() {
            return;
        }
        let (header, structures) = (self.header(), self.structures());
        let ResiduePoints { ca, cb } = self.residue_points();
        let args = residue_grid::Args {
            header,
            structures,
            ca,
            cb,
        };
        self.launch_blocks(STRUCTURES, args);
        self.share(HasResidueGrids);
    }
}

/// Makes atoms of each residue's C-alpha and C-beta.
impl Twin for residue_points::Views<'_> {
    fn run(self) {
        let count = self.header[RESIDUES] as usize;
        let ca = self.ca[..count].par_chunks_mut(TASK_ROWS);
        let cb = self.cb[..count].par_chunks_mut(TASK_ROWS);
        let inputs = (self.residues[..count].par_chunks(TASK_ROWS))
            .zip(self.backbone[..count].par_chunks(TASK_ROWS))
            .zip(self.betas[..count].par_chunks(TASK_ROWS));
        inputs
            .zip(ca.zip(cb))
            .for_each(|(((residues, backbones), betas), (ca, cb))| {
                let inputs = residues.iter().zip(backbones).zip(betas);
                for (((residue, backbone), beta), (ca, cb)) in inputs.zip(ca.iter_mut().zip(cb)) {
                    (*ca, *cb) = if residue.is(ResidueSpan::PRESENT) {
                        points(residue, backbone, *beta)
                    } else {
                        // A backbone of zeros would have its atoms at the origin.
                        (Atom::NONE, Atom::NONE)
                    };
                }
            });
    }
}

/// The C-alpha and the C-beta of a residue, as points of a search. A missing C-beta is built from
/// the backbone.
fn points(residue: &ResidueSpan, backbone: &Backbone, beta: Position) -> (Atom, Atom) {
    let atom = |position: Position, is_side| {
        if position.is_present() {
            // Any radius but 0, which stands for no atom.
            Atom {
                position,
                tag: AtomTag::new(RADIUS_MAX, is_side, false, residue.chain),
            }
        } else {
            Atom::NONE
        }
    };
    let ca = atom(backbone.ca, false);
    if beta.is_present() {
        (ca, atom(beta, true))
    } else {
        (ca, atom(ideal_c_beta(backbone), false))
    }
}

/// The ideal C-beta of a backbone. It is missing if an atom is, or if the backbone is so broken
/// that it is beyond the bounds of coordinates.
fn ideal_c_beta(backbone: &Backbone) -> Position {
    let Backbone { n, ca, c, .. } = *backbone;
    if ![n, ca, c].into_iter().all(Position::is_present) {
        return Position::NONE;
    }
    let built = virtual_c_beta(n.into(), ca.into(), c.into());
    if built
        .iter()
        .all(|coordinate| coordinate.unsigned_abs() <= COORDINATE_MAX)
    {
        built.into()
    } else {
        Position::NONE
    }
}

/// The position of an ideal C-beta: -0.58273431 a + 0.56802827 b - 0.54067466 c + CA in A, with b =
/// CA - N, c = C - CA and a = b x c (Dauparas et al. 2022), its distance from CA along each axis
/// rounded to 0.001 A, halves away from zero. Arguments and result are in 0.001 A; a result beyond
/// 32 bits, of a broken backbone, is the nearest integer that fits.
pub fn virtual_c_beta(n: [i32; 3], ca: [i32; 3], c: [i32; 3]) -> [i32; 3] {
    let difference = |p: [i32; 3], q: [i32; 3]| {
        let apart = |axis: usize| f64::from(p[axis]) - f64::from(q[axis]);
        std::array::from_fn::<f64, 3, _>(|axis| apart(axis) / 1000.0)
    };
    let (b, c) = (difference(ca, n), difference(c, ca));
    let a = [
        b[1] * c[2] - b[2] * c[1],
        b[2] * c[0] - b[0] * c[2],
        b[0] * c[1] - b[1] * c[0],
    ];
    std::array::from_fn(|axis| {
        let angstrom = -0.58273431 * a[axis] + 0.56802827 * b[axis] - 0.54067466 * c[axis];
        ca[axis].saturating_add((angstrom * 1000.0).round() as i32)
    })
}

/// Computes the grid over each structure's C-alphas and C-betas.
impl Twin for residue_grid::Views<'_> {
    fn run(self) {
        let count = self.header[STRUCTURES] as usize;
        let (all_ca, all_cb) = (self.ca, self.cb);
        let lay = |structure: &mut StructureSpan| {
            let rows = structure.residues();
            let atoms = all_ca[rows.clone()].iter().chain(&all_cb[rows]);
            let points = atoms.filter(|atom| atom.is_present());
            let points = points.map(|atom| atom.position.into());
            // It has the cells of the atoms' grid, whose number depends on the atoms.
            structure.residue_grid = Grid {
                first: structure.atom_grid.first,
                ..Grid::over(points, structure.atom_count as usize, RESIDUE_CELL_SHIFT)
            };
        };
        let structures = self.structures[..count].par_iter_mut();
        // The span of a rejected structure is all zeros.
        structures
            .filter(|structure| structure.atom_grid.wrap[0] > 0)
            .for_each(lay);
    }
}
