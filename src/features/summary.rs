//! Summaries of residues' values: one value per chain, and one per structure.

use super::columns::TableName;
use super::cpu::rows::{ROW_THREADS, RowGroups};
use super::cpu::tree_sum;
use super::kernels::{BuiltIn, Twin, class_fractions, sum_of_rows};
use super::layout::{CHAINS, ChainSpan, STRUCTURES, StructureSpan};
use super::recorder::FeatureRecorder;
use super::results::KernelResults;
use crate::record::Buffer;

/// The residues of each chain, or of each structure, as arguments of a kernel with a block for
/// each.
#[derive(Clone, Copy)]
pub(super) struct RowArgs {
    pub(super) header: Buffer<u32>,
    pub(super) structures: Buffer<StructureSpan>,
    pub(super) chains: Buffer<ChainSpan>,
    pub(super) members: Buffer<u32>,
    /// [`CHAINS`] or [`STRUCTURES`].
    pub(super) axis: u32,
}

/// Records the mean of the first column of reals, of chains and then of structures.
pub(super) fn mean(r: &mut FeatureRecorder<'_>, name: &str, values: KernelResults<f32>) {
    sum_or_mean(r, name, values, true);
}

/// Records the sum of the first column of reals, of chains and then of structures.
pub(super) fn sum(r: &mut FeatureRecorder<'_>, name: &str, values: KernelResults<f32>) {
    sum_or_mean(r, name, values, false);
}

/// Records the launches that sum values of residues, or average them, over chains and structures.
fn sum_or_mean(r: &mut FeatureRecorder<'_>, name: &str, values: KernelResults<f32>, is_mean: bool) {
    summarise(r, name, 1, |rows, sums| sum_of_rows::Args {
        header: rows.header,
        structures: rows.structures,
        chains: rows.chains,
        members: rows.members,
        values: values.buffer,
        sums,
        axis: rows.axis,
        stride: values.values as u32,
        mean: u32::from(is_mean),
    });
}

/// Records the shares of helix, strand and coil, of chains and then of structures.
pub(super) fn fractions(r: &mut FeatureRecorder<'_>, name: &str, states: KernelResults<i32>) {
    summarise(r, name, 3, |rows, fractions| class_fractions::Args {
        header: rows.header,
        structures: rows.structures,
        chains: rows.chains,
        members: rows.members,
        states: states.buffer,
        fractions,
        axis: rows.axis,
    });
}

/// Records the launches of a kernel that computes `values` for each chain, then for each structure,
/// and a column for each value. `args` makes the arguments from the residues and the result buffer.
pub(super) fn summarise<A: BuiltIn>(
    r: &mut FeatureRecorder<'_>,
    name: &str,
    values: usize,
    args: impl Fn(RowArgs, Buffer<f32>) -> A,
) {
    for (table, axis, groups) in [
        (TableName::Chains, CHAINS, "chains"),
        (TableName::Structures, STRUCTURES, "structures"),
    ] {
        let results = r.results::<f32>(table, &format!("{name}_of_{groups}"), values);
        let rows = RowArgs {
            header: r.header(),
            structures: r.structures(),
            chains: r.chains(),
            members: r.members(),
            axis: axis as u32,
        };
        r.launch_blocks(axis, args(rows, results.buffer));
        (0..values).for_each(|i| r.column(results, i));
    }
}

/// Computes the shares of helix, strand and coil among the residues that have a secondary
/// structure.
impl Twin for class_fractions::Views<'_> {
    fn run(self) {
        let groups = RowGroups {
            header: self.header,
            structures: self.structures,
            chains: self.chains,
            members: self.members,
            axis: self.axis,
        };
        groups.for_each(self.fractions, 3, |rows, fractions| {
            let mut counts = [0u32; 3];
            for row in rows.iter() {
                // A null is negative, so it counts in no class.
                let class = usize::try_from(self.states[2 * row + 1]).ok();
                if let Some(count) = class.and_then(|class| counts.get_mut(class)) {
                    *count += 1;
                }
            }
            let all: u32 = counts.iter().sum();
            for (fraction, count) in fractions.iter_mut().zip(counts) {
                *fraction = match all {
                    0 => f32::NAN,
                    _ => (f64::from(count) / f64::from(all)) as f32,
                };
            }
        });
    }
}

/// Computes the sum or the mean of the values that are not NaN.
impl Twin for sum_of_rows::Views<'_> {
    fn run(self) {
        let groups = RowGroups {
            header: self.header,
            structures: self.structures,
            chains: self.chains,
            members: self.members,
            axis: self.axis,
        };
        let (values, stride) = (self.values, self.stride as usize);
        groups.for_each(self.sums, 1, |rows, out| {
            let mut sums = [0f64; ROW_THREADS];
            let mut count = 0.0;
            for (lane, row) in (0..ROW_THREADS).cycle().zip(rows.iter()) {
                let value = values[stride * row];
                if !value.is_nan() {
                    sums[lane] += f64::from(value);
                    count += 1.0;
                }
            }
            let sum = tree_sum(&mut sums);
            out[0] = match (count > 0.0, self.mean != 0) {
                (false, _) => f32::NAN,
                (true, true) => (sum / count) as f32,
                (true, false) => sum as f32,
            };
        });
    }
}
