//! B factors of experimental structures, and pLDDT of predicted models.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::cpu::split::for_row_ranges;
use super::cpu::tree_sum;
use super::feature::{About, Feature};
use super::kernels::{Twin, b_factors, plddt};
use super::layout::{CHAINS, ChainSpan, RESIDUES, StructureSpan};
use super::recorder::FeatureRecorder;
use super::summary;
use bytemuck::cast_slice_mut;
use rayon::prelude::*;

/// Why B factors may be null in all rows.
const NO_B_FACTOR: &str = "no structure with B factors was read";

/// Why pLDDT may be null in all rows.
const NO_MODEL: &str = "no predicted model was read";

/// B factors; they have no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BFactor {}

/// pLDDT; it has no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plddt {}

impl Feature for BFactor {
    fn about(&self) -> About {
        About {
            summary: "B factors of the residue, and of its C-alpha relative to its chain; null in \
                      predicted models.",
            formula: "b_mean over the residue's heavy atoms; b_z = (b_ca - mean) / sd over the \
                      chain's C-alphas, sd of the population, null where it is 0",
            source: "Parthasarathy and Murthy 1997, Protein Sci 6:2561",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |name: &str, unit, about: &str, idle_when| {
            ColumnDecl::residue(name, ColumnKind::Real, unit, about).idle_when(idle_when)
        };
        vec![
            column("b_ca", "A^2", "B factor of the C-alpha.", NO_B_FACTOR),
            column(
                "b_mean",
                "A^2",
                "Mean B factor of the residue's heavy atoms.",
                NO_B_FACTOR,
            ),
            column(
                "b_z",
                "",
                "B factor of the C-alpha less the chain's mean, over the chain's population \
                 standard deviation.",
                "",
            )
            // The mean: values have no bounds.
            .null_number(0.0),
        ]
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let factors = r.results::<f32>(TableName::Residues, "b_factors", 3);
        let (structures, residues) = (r.structures(), r.residues());
        let (chains, members) = (r.chains(), r.members());
        let (b, atom_b) = (r.b(), r.atom_b());
        let header = r.header();
        let args = b_factors::Args {
            header,
            structures,
            residues,
            chains,
            members,
            b,
            atom_b,
            factors: factors.buffer,
        };
        r.launch_blocks(CHAINS, args);
        (0..3).for_each(|i| r.column(factors, i));
    }
}

impl Feature for Plddt {
    fn about(&self) -> About {
        About {
            summary: "The confidence of a predicted model; null in structures by experiment.",
            formula: "plddt, from 0 to 100, of the C-alpha; plddt_mean over the residues of the \
                      chain, or of the structure, that have one",
            source: "Jumper et al. 2021, Nature 596:583",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let mean = |table, part: &str| {
            let about = format!("Mean plddt of the {part}'s residues.");
            ColumnDecl::residue("plddt_mean", ColumnKind::Real, "", about)
                .idle_when(NO_MODEL)
                .in_table(table)
        };
        vec![
            ColumnDecl::residue(
                "plddt",
                ColumnKind::Real,
                "",
                "pLDDT of the C-alpha, from 0 to 100.",
            )
            .idle_when(NO_MODEL),
            mean(TableName::Chains, "chain"),
            mean(TableName::Structures, "structure"),
        ]
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let values = r.results::<f32>(TableName::Residues, "plddt", 1);
        let (structures, residues, b) = (r.structures(), r.residues(), r.b());
        let args = plddt::Args {
            header: r.header(),
            structures,
            residues,
            b,
            values: values.buffer,
        };
        r.launch_threads(RESIDUES, args);
        r.column(values, 0);
        summary::mean(r, "plddt", values);
    }
}

/// Threads of the kernel's block, whose partial sums are added as a tree.
const THREADS: usize = 256;

/// For each residue the B factor of its C-alpha, the mean over its atoms, and the C-alpha's z-score
/// in the chain: (b - mean) / sd.
impl Twin for b_factors::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            chains,
            members,
            b,
            atom_b,
            factors,
        } = self;
        let structures = StructureSpan::live(header, structures);
        let chains: &[ChainSpan] = &chains[..header[CHAINS] as usize];
        let factors: &mut [[f32; 3]] = cast_slice_mut(factors);

        for_row_ranges(&mut factors[..header[RESIDUES] as usize], 1, |rows, out| {
            for (row, factors) in rows.zip(out) {
                let residue = &residues[row];
                let is_measured = structures[residue.structure as usize].predicted == 0;
                *factors = [f32::NAN; 3];
                if is_measured {
                    factors[0] = b[row];
                    factors[1] = mean(&atom_b[residue.atoms()]);
                }
            }
        });
        let rows_of = |chain: &ChainSpan| chain.members(members).iter().map(|&r| r as usize);
        let moments = |chain: &ChainSpan| moments(rows_of(chain).map(|residue| b[residue]));
        let moments: Vec<(f64, f64)> = chains.par_iter().map(moments).collect();
        // The residues of chains may interleave, so one thread stores the results of all chains.
        for (chain, (mean, sd)) in chains.iter().zip(moments) {
            for residue in rows_of(chain) {
                let value = factors[residue][0];
                if sd > 0.0 && !value.is_nan() {
                    factors[residue][2] = ((f64::from(value) - mean) / sd) as f32;
                }
            }
        }
    }
}

/// The mean of the values that are not NaN; NaN if all are.
fn mean(values: &[f32]) -> f32 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values.iter().filter(|value| !value.is_nan()) {
        sum += f64::from(*value);
        count += 1.0;
    }
    if count > 0.0 {
        (sum / count) as f32
    } else {
        f32::NAN
    }
}

/// Mean and population standard deviation of the values that are not NaN.
fn moments(values: impl Iterator<Item = f32> + Clone) -> (f64, f64) {
    let mut sums = [0f64; THREADS];
    let mut counts = [0f64; THREADS];
    let lanes = || {
        (0..THREADS)
            .cycle()
            .zip(values.clone())
            .filter(|(_, value)| !value.is_nan())
    };
    for (lane, value) in lanes() {
        sums[lane] += f64::from(value);
        counts[lane] += 1.0;
    }
    let count = tree_sum(&mut counts);
    let mean = tree_sum(&mut sums) / count;
    let mut squares = [0f64; THREADS];
    for (lane, value) in lanes() {
        let deviation = f64::from(value) - mean;
        squares[lane] += deviation * deviation;
    }
    (mean, (tree_sum(&mut squares) / count).sqrt())
}

/// The pLDDT of each residue.
impl Twin for plddt::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            b,
            values,
        } = self;
        let structures = StructureSpan::live(header, structures);

        let values = &mut values[..header[RESIDUES] as usize];
        for_row_ranges(values, 1, |rows, values| {
            for (residue, value) in rows.zip(values) {
                let structure = &structures[residues[residue].structure as usize];
                *value = if structure.predicted != 0 {
                    b[residue]
                } else {
                    f32::NAN
                };
            }
        });
    }
}
