//! The exposed points of atoms: those that no other atom buries.

use super::super::cell_kind::CellKind;
use super::super::cpu::simd;
use super::super::cpu::split::for_row_ranges;
use super::super::kernels::{Twin, exposed_points};
use super::super::layout::{ATOMS, Atom};
use super::super::recorder::FeatureRecorder;
use super::neighbours::{AtomGroup, Neighbours};
use super::others::NoneOfChain;
use super::shrake_rupley::{GROUP_EDGE, Sphere};
use super::{Sasa, test_points};
use crate::record::Buffer;
use fearless_simd::dispatch;
use std::ops::Range;

/// The exposed points of all atoms.
#[derive(Clone, Copy)]
pub(in super::super) struct ExposedBits {
    /// A bit for each test point, `[atoms, words]`.
    pub(in super::super) bits: Buffer<u32>,
    pub(in super::super) words: usize,
    /// Index of the test points in the header: x of all points, then y, then z.
    pub(in super::super) points: usize,
}

/// Records the launch that finds the exposed points of all atoms, of the model or of their chains
/// alone. The test points and the probe are those of [`Sasa`].
pub(in super::super) fn exposed_bits(r: &mut FeatureRecorder<'_>, own_chain: bool) -> ExposedBits {
    let settings: &Sasa = r.settings();
    let cells = r.cells(CellKind::Atoms);
    let points = test_points(r);
    let words = settings.points.div_ceil(32) as usize;
    let bits = r.device("exposed_bits", ATOMS, words);
    let args = exposed_points::Args {
        header: r.header(),
        structures: r.structures(),
        chains: r.chains(),
        atoms: r.atoms(),
        cells,
        bits,
        words: words as u32,
        first: points as u32,
        points: settings.points,
        probe: settings.kernel_probe(),
        own_chain: u32::from(own_chain),
    };
    r.launch_warps(ATOMS, args);
    ExposedBits {
        bits,
        words,
        points,
    }
}

/// Marks the exposed points of each atom.
impl Twin for exposed_points::Views<'_> {
    fn run(self) {
        let sphere = Sphere::in_header(self.header, self.first, self.points, self.probe);
        let words = self.words as usize;
        let count = self.header[ATOMS] as usize;
        let atoms = &self.atoms[..count];
        for_row_ranges(&mut self.bits[..count * words], words, |rows, bits| {
            let first = rows.start;
            let mut scratch = Neighbours::new();
            for run in runs_of_chains(atoms, rows) {
                let chain = atoms[run.start].tag.chain();
                let structure = self.chains[chain as usize].structure as usize;
                let grid = &self.structures[structure].atom_grid;
                let others = NoneOfChain {
                    chain: (self.own_chain != 0).then_some(chain),
                };
                dispatch!(simd::level(), simd => {
                    let mut rest = run;
                    while !rest.is_empty() {
                        let group = AtomGroup::first_of(&atoms[rest.clone()], GROUP_EDGE);
                        scratch.gather(simd, &self.cells, grid, &group, &sphere, others);
                        for index in rest.start..rest.start + group.len {
                            let bits = &mut bits[(index - first) * words..][..words];
                            scratch.mark_open(simd, index, &atoms[index], &sphere, others, bits);
                        }
                        rest.start += group.len;
                    }
                });
            }
        });
    }
}

/// Cuts a range into runs of atoms of one chain, without the absent ones.
fn runs_of_chains(atoms: &[Atom], range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut rest = range;
    std::iter::from_fn(move || {
        rest.start += atoms[rest.clone()].iter().position(Atom::is_present)?;
        let chain = atoms[rest.start].tag.chain();
        let same = |atom: &&Atom| atom.is_present() && atom.tag.chain() == chain;
        let length = atoms[rest.clone()].iter().take_while(same).count();
        let run = rest.start..rest.start + length;
        rest.start = run.end;
        Some(run)
    })
}
