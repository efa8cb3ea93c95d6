//! Contact numbers around C-alphas and C-betas.

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, NULL_COUNT, TableName};
use super::constants;
use super::cpu::simd;
use super::cpu::simd::{first_lanes, in_same_chain, load, squared, vectors_of};
use super::cpu::split::for_row_ranges;
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField, neighbours_of, own_chain};
use super::kernels::Cells;
use super::kernels::{Twin, contact_number};
use super::layout::{AtomTag, Position, RESIDUES, StructureSpan};
use super::recorder::FeatureRecorder;
use crate::error::{Error, Result};
use fearless_simd::dispatch;
use fearless_simd::prelude::*;
use std::ops::Range;

/// The largest number of cutoffs for one kind of atom: the kernel keeps a count for each.
pub(super) const CUTOFFS_MAX: usize = constants::CUTOFFS_MAX as usize;

/// Settings of contact numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactNumber {
    /// Cutoffs around C-alphas, at most eight.
    pub ca: Vec<Cutoff>,
    /// Cutoffs around C-betas, at most eight.
    pub cb: Vec<Cutoff>,
    /// Whether only residues of the same chain are counted.
    pub own_chain: bool,
}

impl Default for ContactNumber {
    /// 8, 10 and 12 A around C-alphas, 8 and 10 A around C-betas; all chains.
    fn default() -> Self {
        ContactNumber {
            ca: [8, 10, 12].map(Cutoff::of_angstrom).to_vec(),
            cb: [8, 10].map(Cutoff::of_angstrom).to_vec(),
            own_chain: false,
        }
    }
}

impl ContactNumber {
    /// The points that are counted, each with its name in columns, its name in descriptions and its
    /// cutoffs.
    fn around(&self) -> [(&'static str, &'static str, &[Cutoff]); 2] {
        [
            ("ca", "C-alphas", &self.ca),
            (
                "cb",
                "C-betas (built from N, CA and C where they are missing)",
                &self.cb,
            ),
        ]
    }
}

impl Feature for ContactNumber {
    fn about(&self) -> About {
        About {
            summary: "How many other C-alphas, or C-betas, are near.",
            formula: "cn_i = |{ j != i : d(i, j) < R }|; a C-beta that glycine lacks, or the \
                      file, lies at -0.58273431 a + 0.56802827 b - 0.54067466 c + CA, with \
                      b = CA - N, c = C - CA, a = b x c. A residue without the atom has null, and \
                      is not counted",
            source: "Nishikawa and Ooi 1980, Int J Pept Protein Res 16:19; C-beta as in Dauparas \
                     et al. 2022, Science 378:49",
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            ("contact_number.ca", SettingField::Lengths(&mut self.ca)),
            ("contact_number.cb", SettingField::Lengths(&mut self.cb)),
            ("contact_number.chains", own_chain(&mut self.own_chain)),
        ]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |atom: &str, what: &str, cutoff: &Cutoff| {
            let angstrom = cutoff.angstrom();
            let scope = neighbours_of(self.own_chain);
            let about =
                format!("Other {what} of the {scope} within {angstrom} A of the residue's own.");
            let name = format!("cn_{atom}_{}", cutoff.label());
            ColumnDecl::residue(name, ColumnKind::Count, "", about)
        };
        let columns_around =
            |(atom, what, cutoffs): (&'static str, &'static str, &[Cutoff])| -> Vec<_> {
                cutoffs
                    .iter()
                    .map(|cutoff| column(atom, what, cutoff))
                    .collect()
            };
        self.around().into_iter().flat_map(columns_around).collect()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        for (atom, _, cutoffs) in self.around() {
            if cutoffs.is_empty() {
                continue;
            }
            let (atoms, cells) = match atom {
                "ca" => (r.ca(), r.cells(CellKind::Ca)),
                _ => (r.cb(), r.cells(CellKind::Cb)),
            };
            let values = cutoffs.iter().map(|cutoff| cutoff.milli_angstrom());
            let first = r.constants(&format!("cn_{atom}"), values);
            let counts =
                r.results::<i32>(TableName::Residues, &format!("cn_{atom}"), cutoffs.len());
            let values = cutoffs.len() as u32;
            let args = contact_number::Args {
                header: r.header(),
                structures: r.structures(),
                residues: r.residues(),
                atoms,
                cells,
                counts: counts.buffer,
                values,
                first: first as u32,
                own_chain: u32::from(self.own_chain),
            };
            r.launch_warps(RESIDUES, args);
            (0..cutoffs.len()).for_each(|i| r.column(counts, i));
        }
    }

    fn check(&self) -> Result<()> {
        if self.ca.is_empty() && self.cb.is_empty() {
            return Err(Error::config("contact_number has no cutoff"));
        }
        if self.ca.len().max(self.cb.len()) > CUTOFFS_MAX {
            let message = format!("contact_number has more than {CUTOFFS_MAX} cutoffs");
            return Err(Error::config(message));
        }
        Ok(())
    }
}

/// Counts the other residues within each cutoff.
impl Twin for contact_number::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            atoms,
            cells,
            counts,
            values,
            first,
            own_chain,
        } = self;
        let structures = StructureSpan::live(header, structures);
        let values = values as usize;
        let first = first as usize;
        let own_chain = own_chain != 0;

        let cutoffs = &header[first..first + values];
        let reach = cutoffs.iter().copied().max().unwrap_or(0) as i32;
        let counts = &mut counts[..header[RESIDUES] as usize * values];
        for_row_ranges(counts, values, |rows, counts| {
            dispatch!(simd::level(), simd => {
                for (residue, counts) in rows.zip(counts.chunks_exact_mut(values)) {
                    if !atoms[residue].is_present() {
                        counts.fill(NULL_COUNT);
                        continue;
                    }
                    let grid = &structures[residues[residue].structure as usize].residue_grid;
                    let atom = atoms[residue];
                    let runs = cells.runs(grid, atom.position.into(), reach);
                    let chain = own_chain.then_some(atom.tag);
                    count(simd, &cells, runs, atom.position, chain, cutoffs, counts);
                }
            });
        });
    }
}

/// Writes the number of atoms within each cutoff of `point` to `counts`, less one, as `point` is an
/// atom itself. If `chain` is the tag of an atom, only atoms of its chain are counted.
#[inline(always)]
fn count<S: Simd>(
    simd: S,
    cells: &Cells<'_>,
    runs: impl Iterator<Item = Range<usize>>,
    point: Position,
    chain: Option<AtomTag>,
    cutoffs: &[u32],
    counts: &mut [i32],
) {
    let reach = cutoffs.iter().copied().max().unwrap_or(0) as i32;
    let mut near = [0; CUTOFFS_MAX];
    for (first, lanes) in vectors_of(simd, runs) {
        let dx = load(simd, cells.x, first, lanes) - point.x;
        let dy = load(simd, cells.y, first, lanes) - point.y;
        let dz = load(simd, cells.z, first, lanes) - point.z;
        let d2 = squared::<S>(dx, dy, dz, reach);
        let mut wanted = first_lanes(simd, lanes);
        if let Some(tag) = chain {
            wanted &= in_same_chain(simd, cells.tag, first, lanes, tag);
        }
        for (near, cutoff) in near.iter_mut().zip(cutoffs) {
            let within = d2.simd_lt(cutoff * cutoff) & wanted;
            *near += within.to_bitmask().count_ones() as i32;
        }
    }
    for (count, near) in counts.iter_mut().zip(near) {
        // Leaves out the residue itself, which is at distance 0.
        *count = near - 1;
    }
}
