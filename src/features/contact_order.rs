//! Contact order.

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::cpu::simd;
use super::cpu::simd::{first_lanes, in_same_chain, load, squared, vectors_of};
use super::cpu::split::{for_row_ranges_of_two, parts};
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField, choice};
use super::kernels::Cells;
use super::kernels::{Twin, contact_order, relative_contact_order};
use super::layout::{ATOMS, Atom, CHAINS, RESIDUES, StructureSpan};
use super::recorder::FeatureRecorder;
use super::summary;
use fearless_simd::dispatch;
use fearless_simd::prelude::*;
use rayon::prelude::*;
use std::ops::Range;

/// Settings of contact order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactOrder {
    /// Atoms closer than this are in contact.
    pub cutoff: Cutoff,
    /// How the separation of two residues is measured.
    pub separation: Separation,
}

/// How the separation of two residues of a chain is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Separation {
    /// The difference of their positions in the chain's sequence, which counts unobserved residues;
    /// in chains without positions ([`Structure::first_positions`]) as `ResIndex`.
    ///
    /// [`Structure::first_positions`]: crate::structure::Structure::first_positions
    #[default]
    Sequence,
    /// The difference of their rows in the structure.
    ResIndex,
}

choice!(Separation: Sequence "sequence", ResIndex "res_index");

impl Default for ContactOrder {
    /// 6 A, in the sequence.
    fn default() -> Self {
        ContactOrder {
            cutoff: Cutoff::of_angstrom(6),
            separation: Separation::Sequence,
        }
    }
}

impl Feature for ContactOrder {
    fn about(&self) -> About {
        About {
            summary: "How far apart in the chain residues in contact are.",
            formula: "co_i = mean of |s_i - s_j| over pairs of heavy atoms nearer than R, one of \
                      residue i, one of another residue j of the chain; s is label_seq_id, or the \
                      position in SEQRES that REMARK 465 leads to, and in chains without these \
                      res_index; relative: the mean over all such pairs, divided by the number \
                      of observed residues",
            source: "Plaxco et al. 1998, J Mol Biol 277:985",
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            (
                "contact_order.cutoff",
                SettingField::Length(&mut self.cutoff, Cutoff::MAX_ANGSTROM),
            ),
            (
                "contact_order.separation",
                SettingField::Choice(&mut self.separation),
            ),
        ]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let difference = match self.separation {
            Separation::Sequence => "difference in sequence",
            Separation::ResIndex => "difference of res_index",
        };
        let about = format!(
            "Mean {difference} over contacts of heavy atoms within {} A in the chain.",
            self.cutoff.angstrom()
        );
        let relative_contact_order = |table, part: &str| {
            let about = format!(
                "Relative contact order: mean {difference} over all contacts in chains, divided by the \
                 number of residues of the {part}."
            );
            // A rotation may add or remove a contact at the cutoff, which moves a mean.
            ColumnDecl::residue("co_relative", ColumnKind::Real, "", about)
                .in_table(table)
                .rotation(Tolerance::relative(1e-2))
        };
        vec![
            ColumnDecl::residue("co", ColumnKind::Real, "", about)
                .rotation(Tolerance::absolute(0.25).but_for(5)),
            relative_contact_order(TableName::Chains, "chain"),
            relative_contact_order(TableName::Structures, "structure"),
        ]
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let means = r.results::<f32>(TableName::Residues, "co", 1);
        let sums = r.device::<u64>("co_sums", RESIDUES, 2);
        let (structures, residues, atoms) = (r.structures(), r.residues(), r.atoms());
        let (cells, residue_of) = (r.cells(CellKind::Atoms), r.atom_residue());
        let positions = match self.separation {
            Separation::Sequence => r.sequence(),
            Separation::ResIndex => r.row_numbers(),
        };
        let args = contact_order::Args {
            header: r.header(),
            structures,
            residues,
            atoms,
            cells,
            residue_of,
            positions,
            means: means.buffer,
            sums,
            radius: self.cutoff.milli_angstrom(),
        };
        r.launch_warps(RESIDUES, args);
        r.column(means, 0);
        summary::summarise(r, "co_relative", 1, |rows, orders| {
            relative_contact_order::Args {
                header: rows.header,
                structures: rows.structures,
                chains: rows.chains,
                members: rows.members,
                sums,
                orders,
                axis: rows.axis,
            }
        });
    }
}

/// For each residue the mean sequence separation over its contacts, and their sum and number.
impl Twin for contact_order::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            atoms,
            cells,
            residue_of,
            positions,
            means,
            sums,
            radius,
        } = self;
        let structures = StructureSpan::live(header, structures);

        // The position of each sorted atom's residue, from 1; 0 for an atom of no residue.
        let mut numbers = vec![0; header[ATOMS] as usize];
        let structure_numbers = parts(&mut numbers, structures.iter().map(StructureSpan::atoms));
        structures
            .par_iter()
            .zip(structure_numbers)
            .for_each(|(structure, structure_numbers)| {
                for (number, &source) in structure_numbers
                    .iter_mut()
                    .zip(&cells.source[structure.atoms()])
                {
                    let residue = residue_of[source as usize] as usize;
                    *number = residue
                        .checked_sub(1)
                        .map_or(0, |residue| positions[residue]);
                }
            });
        let count = header[RESIDUES] as usize;
        let outputs = ((&mut sums[..count * 2], 2), (&mut means[..count], 1));
        for_row_ranges_of_two(outputs.0, outputs.1, |rows, sums, means| {
            dispatch!(simd::level(), simd => {
                for ((row, sums), mean) in rows.zip(sums.chunks_exact_mut(2)).zip(means) {
                    let residue = &residues[row];
                    let grid = &structures[residue.structure as usize].atom_grid;
                    let mut contacts = SeparationSum::default();
                    for atom in &atoms[residue.atoms()] {
                        let runs = cells.runs(grid, atom.position.into(), radius as i32);
                        contacts.add(simd, &cells, runs, atom, radius, &numbers, positions[row]);
                    }
                    sums.copy_from_slice(&[contacts.sum, contacts.count]);
                    *mean = contacts.mean();
                }
            });
        });
    }
}

/// Vectors of differences whose sums stay below 2^30 in each lane; a difference is at most 2^20,
/// which is how far positions of a chain may be apart, and the most residues of a structure.
const VECTORS_MAX: usize = 1024;

/// The sum of sequence separations over contacts, and their number.
#[derive(Default)]
struct SeparationSum {
    sum: u64,
    count: u64,
}

impl SeparationSum {
    fn mean(&self) -> f32 {
        match self.count {
            0 => f32::NAN,
            count => (self.sum as f64 / count as f64) as f32,
        }
    }

    /// Adds the contacts of an atom of the residue at position `position`. `numbers` has the
    /// position of each sorted atom's residue, 0 for an atom of none. No two residues of a chain
    /// have the same position, so atoms of one residue are 0 apart.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "an inner loop's state")]
    fn add<S: Simd>(
        &mut self,
        simd: S,
        cells: &Cells<'_>,
        runs: impl Iterator<Item = Range<usize>>,
        atom: &Atom,
        radius: u32,
        numbers: &[i32],
        position: i32,
    ) {
        let point = atom.position;
        let zero = S::i32s::splat(simd, 0);
        let mut sums = zero;
        for (step, (first, lanes)) in vectors_of(simd, runs).enumerate() {
            let dx = load(simd, cells.x, first, lanes) - point.x;
            let dy = load(simd, cells.y, first, lanes) - point.y;
            let dz = load(simd, cells.z, first, lanes) - point.z;
            let d2 = squared::<S>(dx, dy, dz, radius as i32);
            let number = load(simd, numbers, first, lanes);
            let apart = (number - position).abs();
            let within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
            let in_other_residue = number.simd_gt(0) & apart.simd_gt(0);
            let contacts =
                within & in_other_residue & in_same_chain(simd, cells.tag, first, lanes, atom.tag);
            sums += contacts.select(apart, zero);
            self.count += u64::from(contacts.to_bitmask().count_ones());
            if step % VECTORS_MAX == VECTORS_MAX - 1 {
                self.add_sums::<S>(sums);
                sums = zero;
            }
        }
        self.add_sums::<S>(sums);
    }

    /// Adds the lanes, none of which is negative, to the sum.
    #[inline(always)]
    fn add_sums<S: Simd>(&mut self, sums: S::i32s) {
        let sums = sums.as_slice().iter();
        self.sum += sums.map(|&sum| u64::from(sum.unsigned_abs())).sum::<u64>();
    }
}

/// Mean sequence separation over all contacts, divided by the number of residues.
impl Twin for relative_contact_order::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            chains,
            members,
            sums,
            orders,
            axis,
        } = self;
        let structures = StructureSpan::live(header, structures);
        let sums: &[[u64; 2]] = bytemuck::cast_slice(sums);

        if axis as usize == CHAINS {
            let chains = &chains[..header[CHAINS] as usize];
            for (order, chain) in orders.iter_mut().zip(chains) {
                let members = chain.members(members).iter();
                *order = relative(members.map(|&residue| sums[residue as usize]));
            }
        } else {
            for (order, structure) in orders.iter_mut().zip(structures) {
                *order = relative(sums[structure.residues()].iter().copied());
            }
        }
    }
}

/// The mean separation of contacts over the length of the chain, from each residue's sum of
/// separations and count of contacts; NaN without contacts.
fn relative(sums: impl ExactSizeIterator<Item = [u64; 2]>) -> f32 {
    let length = sums.len() as f64;
    let [sum, count] = sums.fold([0, 0], |all, one| [all[0] + one[0], all[1] + one[1]]);
    match count {
        0 => f32::NAN,
        _ => (sum as f64 / count as f64 / length) as f32,
    }
}
