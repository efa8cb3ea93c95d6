//! What is one value a chain and one a structure, of values of their residues.

use super::columns::TableName;
use super::cpu;
use super::kernels::{BLOCK, kernel};
use super::layout::{CHAINS, STRUCTURES};
use super::recording::{Recording, Results, args};
use crate::record::{Arg, Kernel};

/// A kernel of which each block takes the rows of a chain or of a structure: next come
/// the rows and what is made of them, then which of the two as `axis`.
pub(super) fn of_rows(name: &str) -> Kernel {
    kernel(name)
        .block(BLOCK)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("chains")
        .reads::<u32>("members")
}

/// The sum of rows of reals that are not null, or their mean.
pub(super) fn sum_of_rows() -> Kernel {
    of_rows("sum_of_rows")
        .reads::<f32>("values")
        .writes::<f32>("sums")
        .scalar::<u32>("axis")
        .scalar::<u32>("stride")
        .scalar::<u32>("mean")
        .twin(cpu::sum_of_rows)
}

/// The shares of helix, strand and coil.
pub(super) fn class_fractions() -> Kernel {
    of_rows("class_fractions")
        .reads::<i32>("states")
        .writes::<f32>("fractions")
        .scalar::<u32>("axis")
        .twin(cpu::class_fractions)
}

/// Records the mean of the first column of reals, of chains and then of structures.
pub(super) fn mean(r: &mut Recording<'_>, name: &str, values: Results<f32>) {
    let options = args![values.values_a_row() as u32, 1u32];
    summarise(r, sum_of_rows, name, values.into(), 1, &options);
}

/// Records the sum of the first column of reals, of chains and then of structures.
pub(super) fn sum(r: &mut Recording<'_>, name: &str, values: Results<f32>) {
    let options = args![values.values_a_row() as u32, 0u32];
    summarise(r, sum_of_rows, name, values.into(), 1, &options);
}

/// Records the shares of helix, strand and coil, of chains and then of structures.
pub(super) fn fractions(r: &mut Recording<'_>, name: &str, states: Results<i32>) {
    summarise(r, class_fractions, name, states.into(), 3, &[]);
}

/// Records what a kernel [`of_rows`] makes, `values` of each chain and then of each
/// structure, as columns; `options` are its parameters after the axis.
pub(super) fn summarise(
    r: &mut Recording<'_>,
    kernel: fn() -> Kernel,
    name: &str,
    rows: Arg,
    values: usize,
    options: &[Arg],
) {
    for (table, axis, of) in [
        (TableName::Chains, CHAINS, "chains"),
        (TableName::Structures, STRUCTURES, "structures"),
    ] {
        let results = r.results::<f32>(table, &format!("{name}_of_{of}"), values);
        let (structures, chains, members) = (r.structures(), r.chains(), r.members());
        let header = r.header();
        let (of_axis, rows) = (axis as u32, rows.clone());
        let mut args = args![header, structures, chains, members, rows, results, of_axis].to_vec();
        args.extend_from_slice(options);
        r.launch_blocks(kernel(), axis, &args);
        (0..values).for_each(|at| r.column(results, at));
    }
}
