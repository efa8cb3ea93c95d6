//! The residues at interfaces between chains.

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, NULL_COUNT, TableName, Tolerance};
use super::constants;
use super::cpu::simd;
use super::cpu::simd::{first_lanes, in_same_chain, lanes_of, load, squared, vectors};
use super::cpu::split::{for_row_ranges, parts};
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField};
use super::grid::corners;
use super::kernels::Cells;
use super::kernels::{Twin, chain_range, nearest_chain};
use super::layout::{
    ATOMS, Atom, AtomTag, CELLS, CHAINS_MAX, RESIDUES, ResidueSpan, StructureSpan,
};
use super::recorder::FeatureRecorder;
use super::sasa::{AREA_ROTATION, AREA_TOLERANCE, area_deltas};
use crate::error::{Error, Result};
use crate::record::Buffer;
use fearless_simd::dispatch;
use fearless_simd::prelude::*;
use rayon::prelude::*;
use std::ops::Range;

/// The search for the nearest atom of another chain ends at this distance, in 0.001 A, from which
/// on `iface_dmin` is null (docs/METHODS.md).
pub(super) const CHAIN_REACH: u32 = constants::CHAIN_REACH as u32;
/// The distance of the first, short search, in 0.001 A, which finds the nearest atom of residues in
/// contact. The results do not depend on it.
pub(super) const CHAIN_NEARBY: u32 = constants::CHAIN_NEARBY as u32;

/// Settings of the residues at interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceResidues {
    /// A residue closer than this to another chain belongs to the interface; at most 12 A.
    pub cutoff: Cutoff,
}

impl Default for InterfaceResidues {
    /// 5 A.
    fn default() -> Self {
        InterfaceResidues {
            cutoff: Cutoff::of_angstrom(5),
        }
    }
}

impl Feature for InterfaceResidues {
    fn about(&self) -> About {
        About {
            summary: "How near another chain is, and which.",
            formula: "iface_dmin = min of d(a, b), a a heavy atom of the residue, b one of \
                      another chain, null at 12 A and beyond; iface: iface_dmin < R; \
                      iface_chain: the chain of b, of equally near ones the first; sasa_delta: \
                      the sasa of the chain alone, less that in the model",
            source: "Jones and Thornton 1996, Proc Natl Acad Sci USA 93:13 (buried areas of pairs of \
                     chains)",
            needs: &["sasa"],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![(
            "interface_residues.cutoff",
            SettingField::Length(&mut self.cutoff, Cutoff::MAX_ANGSTROM),
        )]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let near = format!(
            "Whether a heavy atom of another chain is within {} A.",
            self.cutoff.angstrom()
        );
        let distance = "Distance from the residue to the nearest heavy atom of another chain, \
                        null from 12 A on.";
        let chain = "The chain of the nearest heavy atom of another chain within 12 A: the author's, or \
                     label_asym_id where chains share the author's.";
        let delta = "Solvent-accessible area with nothing but the own chain, less that in the \
                     model.";
        let columns = [
            ColumnDecl::residue("iface_dmin", ColumnKind::Real, "A", distance)
                .null_from(CHAIN_REACH)
                // Rounding moves both atoms by up to 0.0009 A.
                .rotation(Tolerance::absolute(0.002).but_for(5)),
            ColumnDecl::residue("iface", ColumnKind::Flag, "", near),
            ColumnDecl::residue("iface_chain", ColumnKind::Chain, "", chain),
            ColumnDecl::residue("sasa_delta", ColumnKind::Real, "A^2", delta)
                .reference(AREA_TOLERANCE)
                .rotation(AREA_ROTATION),
        ];
        let idle = |column: ColumnDecl| column.idle_when("no two chains near each other were read");
        columns.map(idle).to_vec()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let ranges = chain_ranges(r);
        let (structures, residues, atoms) = (r.structures(), r.residues(), r.atoms());
        let distances = r.results::<f32>(TableName::Residues, "iface_dmin", 1);
        let contacts = r.results::<i32>(TableName::Residues, "iface", 2);
        let args = nearest_chain::Args {
            header: r.header(),
            structures,
            residues,
            atoms,
            cells: r.cells(CellKind::Atoms),
            ranges,
            distances: distances.buffer,
            contacts: contacts.buffer,
            cutoff: self.cutoff.milli_angstrom(),
        };
        r.launch_warps(RESIDUES, args);
        r.column(distances, 0);
        r.column(contacts, 0);
        r.column(contacts, 1);
        let deltas = area_deltas(r);
        r.column(deltas, 0);
    }

    fn check(&self) -> Result<()> {
        if self.cutoff.milli_angstrom() > CHAIN_REACH {
            return Err(Error::config("interface_residues.cutoff is more than 12 A"));
        }
        Ok(())
    }
}

/// The buffer of [`chain_ranges`], which features share.
#[derive(Clone, Copy)]
struct ChainRanges(Buffer<u32>);

/// The lowest and the highest chain among the atoms of each cell, `[cells, 2]`, of structures with
/// several chains: [`CHAINS_MAX`] less the one, and the other plus one, so that both are maxima, and
/// 0 where there is no atom. Records the launch that computes them at the first call.
pub(super) fn chain_ranges(r: &mut FeatureRecorder<'_>) -> Buffer<u32> {
    if let Some(ChainRanges(ranges)) = r.shared() {
        return ranges;
    }
    let ranges = r.zeros("iface_chain_ranges", CELLS, 2);
    let args = chain_range::Args {
        header: r.header(),
        structures: r.structures(),
        chains: r.chains(),
        atoms: r.atoms(),
        ranges,
    };
    r.launch_threads(ATOMS, args);
    r.share(ChainRanges(ranges)).0
}

/// The sorted atoms of a run of cells, from the first to the last cell that holds other chains than
/// `own_chain`; `None` if none does. `ranges` are those of [`chain_ranges`].
#[inline(always)]
pub(super) fn other_chain_atoms(
    cells: &Cells<'_>,
    ranges: &[[u32; 2]],
    own_chain: u32,
    run: Range<usize>,
) -> Option<Range<usize>> {
    let only_own = [CHAINS_MAX - own_chain, own_chain + 1];
    let others = |range: &[u32; 2]| *range != [0, 0] && *range != only_own;
    let first = ranges[run.clone()].iter().position(others)?;
    let last = ranges[run.clone()].iter().rposition(others)?;
    let end = cells.start[run.start + last + 1] as usize;
    Some(cells.start[run.start + first] as usize..end)
}

/// Finds the lowest and the highest chain among the atoms of each cell.
impl Twin for chain_range::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            atoms,
            ranges,
            ..
        } = self;
        let structures = StructureSpan::live(header, structures);
        let ranges: &mut [[u32; 2]] = bytemuck::cast_slice_mut(ranges);

        let cells = structures
            .iter()
            .map(|structure| structure.atom_grid.cells());
        let ranges = parts(ranges, cells);
        let work = structures.par_iter().zip(ranges);
        let with_several_chains = work.filter(|(structure, _)| structure.chain_count > 1);
        with_several_chains.for_each(|(structure, ranges)| {
            let grid = &structure.atom_grid;
            let atoms_of_structure = &atoms[structure.atoms()];
            for atom in atoms_of_structure.iter().filter(|atom| atom.is_present()) {
                let chain = atom.tag.chain();
                let cell = grid.cell_of(atom.position.into()) - grid.first as usize;
                let [low, high] = &mut ranges[cell];
                *low = (CHAINS_MAX - chain).max(*low);
                *high = (chain + 1).max(*high);
            }
        });
    }
}

/// The squared distance of an atom, in units of (0.001 A)^2, and its chain. The least of these pairs is the
/// nearest atom, and of atoms at the same distance that of the lower chain.
type NearestAtom = (u32, u32);
const NO_ATOM: NearestAtom = (u32::MAX, 0);

/// Writes the distance of the nearest atom of another chain, whether it is a contact, and its
/// chain; null, no and null if there is none within reach.
impl Twin for nearest_chain::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            atoms,
            cells,
            ranges,
            distances,
            contacts,
            cutoff,
        } = self;
        let structures = StructureSpan::live(header, structures);
        let ranges: &[[u32; 2]] = bytemuck::cast_slice(ranges);
        let contacts: &mut [[i32; 2]] = bytemuck::cast_slice_mut(contacts);

        let mut nearest = vec![NO_ATOM; header[RESIDUES] as usize];
        for_row_ranges(&mut nearest, 1, |rows, nearest| {
            dispatch!(simd::level(), simd => {
                for (row, nearest) in rows.zip(nearest) {
                    let residue = &residues[row];
                    let structure = &structures[residue.structure as usize];
                    if structure.chain_count > 1 && residue.atom_count > 0 {
                        *nearest = search(simd, &cells, ranges, structure, residue, atoms);
                    }
                }
            });
        });
        let results = distances.par_iter_mut().zip(contacts).zip(nearest);
        let results = results.zip(residues);
        results.for_each(|(((distance, contact), (d2, chain)), residue)| {
            let found = d2 < CHAIN_REACH.pow(2);
            let first = structures[residue.structure as usize].chain_start;
            (*distance, *contact) = if found {
                let is_contact = d2 < cutoff * cutoff;
                let angstrom = f64::from(d2).sqrt() * 0.001;
                (
                    angstrom as f32,
                    [i32::from(is_contact), (chain - first) as i32],
                )
            } else {
                (f32::NAN, [0, NULL_COUNT])
            };
        });
    }
}

/// Finds the nearest atom of another chain: first with a short search, then with a long one. What
/// is found beyond a search's reach is no result, as a nearer atom may lie outside of its box.
#[inline(always)]
fn search<S: Simd>(
    simd: S,
    cells: &Cells<'_>,
    ranges: &[[u32; 2]],
    structure: &StructureSpan,
    residue: &ResidueSpan,
    atoms: &[Atom],
) -> NearestAtom {
    let atoms = &atoms[residue.atoms()];
    let (low, high) = corners(atoms.iter().map(|atom| atom.position.into()));
    let mut nearest = NO_ATOM;
    for reach in [CHAIN_NEARBY, CHAIN_REACH] {
        let (low, high) = (
            low.map(|c| c - reach as i32),
            high.map(|c| c + reach as i32),
        );
        for run in structure.atom_grid.runs_between(low, high) {
            if let Some(candidates) = other_chain_atoms(cells, ranges, residue.chain, run) {
                nearest = nearest_of(simd, cells, candidates, atoms, nearest);
            }
        }
        if nearest.0 < reach * reach {
            break;
        }
    }
    nearest
}

/// The nearest of `nearest` and of the candidates of other chains than that of `atoms`, which are a
/// residue's, at least one.
#[inline(always)]
fn nearest_of<S: Simd>(
    simd: S,
    cells: &Cells<'_>,
    candidates: Range<usize>,
    atoms: &[Atom],
    mut nearest: NearestAtom,
) -> NearestAtom {
    let tag: AtomTag = atoms[0].tag;
    for (first, lanes) in vectors(simd, candidates) {
        let others = first_lanes(simd, lanes) & !in_same_chain(simd, cells.tag, first, lanes, tag);
        if others.all_false() {
            continue;
        }
        let x = load(simd, cells.x, first, lanes);
        let y = load(simd, cells.y, first, lanes);
        let z = load(simd, cells.z, first, lanes);
        let mut d2 = S::u32s::splat(simd, u32::MAX);
        for atom in atoms {
            let point = atom.position;
            let (dx, dy, dz) = (x - point.x, y - point.y, z - point.z);
            d2 = d2.min(squared::<S>(dx, dy, dz, CHAIN_REACH as i32));
        }
        let nearer = d2.simd_le(nearest.0) & others;
        for lane in lanes_of(nearer.to_bitmask()) {
            nearest = nearest.min((d2[lane], cells.tag[first + lane].chain()));
        }
    }
    nearest
}
