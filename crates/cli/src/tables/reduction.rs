//! The values of statistics of residues' columns over a chain or a structure.

use super::super::config::Statistic;
use super::nulls::with_nulls;
use super::structure_rows::{RowRange, StructureRows, row_count};
use arrow_array::ArrayRef;
use arrow_array::types::Float32Type;
use std::sync::Arc;
use tapeloop::features::{Column as Values, ColumnKind, NULL_COUNT, TableName};

/// Where the values of a reduction come from.
#[derive(Clone, Copy)]
pub(super) struct ReducedColumn {
    /// The table of the rows: chains or structures.
    pub(super) table: TableName,
    /// The column's index among the features' columns of residues.
    pub(super) index: usize,
    pub(super) kind: ColumnKind,
    pub(super) statistic: Statistic,
}

impl ReducedColumn {
    /// The values of the rows in these ranges, which are of the table of structures or of that of chains.
    pub(super) fn gather(self, ranges: &[RowRange]) -> ArrayRef {
        let mut values = Vec::with_capacity(row_count(ranges));
        for RowRange { record, rows } in ranges {
            match self.table {
                TableName::Structures => {
                    let mut all: Vec<f64> = self.numbers(record).flatten().collect();
                    values.push(self.statistic.compute(&mut all) as f32);
                }
                _ => {
                    let mut by_chain = vec![Vec::new(); record.structure.chains.len()];
                    let residues = record.structure.residues.iter();
                    for (residue, value) in residues.zip(self.numbers(record)) {
                        by_chain[residue.chain as usize].extend(value);
                    }
                    let chains = record.chains[rows.clone()].iter();
                    let reduced =
                        |index: u32| self.statistic.compute(&mut by_chain[index as usize]) as f32;
                    values.extend(chains.map(|chain| chain.index).map(reduced));
                }
            }
        }
        Arc::new(with_nulls::<Float32Type>(values, |value| value.is_nan()))
    }

    /// A structure's values, in the order of its residues; `None` for null, and for residues that
    /// are not selected.
    fn numbers(self, record: &StructureRows) -> impl Iterator<Item = Option<f64>> + '_ {
        let values = record.features.column(TableName::Residues, self.index);
        (0..record.structure.residues.len()).map(move |row| match values {
            _ if !record.is_selected(row) => None,
            Values::Count(counts) if counts[row] == NULL_COUNT => None,
            Values::Count(counts) if self.kind == ColumnKind::Flag => {
                Some(f64::from(u8::from(counts[row] > 0)))
            }
            Values::Count(counts) => Some(f64::from(counts[row])),
            Values::Real(reals) => Some(f64::from(reals[row])).filter(|value| !value.is_nan()),
        })
    }
}
