//! Chooses the residues that have rows by the condition of `tables.where`, and the atoms by that of
//! `tables.where_atoms`, a column at a time.

use super::super::config::{
    Condition, ConditionNode, ConditionValue, OptionalColumns, OutputTable, Test,
};
use super::column::TableColumn;
use super::columns::{self, ColumnSources};
use super::structure_rows::{RowRange, StructureRows};
use super::text_file::TypedColumn;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use std::ops::Range;
use std::sync::Arc;
use tapeloop::features::{ColumnDecl, TableName};

/// A condition on the rows of a table, with the columns that it names.
pub struct RowFilter {
    table: OutputTable,
    condition: Condition,
    /// In the order of [`Condition::columns`].
    columns: Vec<TableColumn>,
}

/// The rows for which a condition holds, and those for which it does not. For the others, in which
/// it meets a null, it is unknown.
struct Truth {
    holds: BooleanBuffer,
    fails: BooleanBuffer,
}

impl RowFilter {
    /// The filter of the table of residues or of that of atoms, with these columns of features.
    ///
    /// # Panics
    /// If the condition names a column that the table has not.
    pub fn new(
        table: OutputTable,
        condition: Condition,
        features: &dyn Fn(TableName) -> Vec<ColumnDecl>,
    ) -> Self {
        let mut all = columns::columns(
            table,
            &ColumnSources::of_features(features),
            OptionalColumns::ALL,
        );
        let take = |name: &String| {
            let found = all.iter().position(|column| column.spec.name == *name);
            all.swap_remove(found.expect("the condition was checked against the columns"))
        };
        RowFilter {
            table,
            columns: condition.columns.iter().map(take).collect(),
            condition,
        }
    }

    /// Selects the residues or atoms for which the condition holds. Atoms are chosen after residues, and
    /// among those of the residues that are selected.
    pub fn select(&self, record: StructureRows) -> StructureRows {
        let record = Arc::new(record);
        let is_of_residues = self.table == OutputTable::RESIDUES;
        let ranges = if is_of_residues {
            std::iter::once(0..record.all_residues()).collect()
        } else {
            record.rows(self.table)
        };
        // Columns gather from shared rows, so these are shared until the arrays are there.
        let range = |rows: &Range<usize>| RowRange {
            record: Arc::clone(&record),
            rows: rows.clone(),
        };
        let all: Vec<RowRange> = ranges.iter().map(range).collect();
        let columns = self.columns.iter();
        let arrays: Vec<ArrayRef> = columns.map(|column| column.gather(&all)).collect();
        let selected = truth(&self.condition.root, &arrays).holds;
        drop(all);
        let mut record = Arc::into_inner(record).expect("arrays have copies of the values");
        if is_of_residues {
            record.selected = Some(selected);
        } else {
            record.select_atoms(&ranges, &selected);
        }
        record
    }
}

/// Makes all columns of all tables of a structure, for the fuzz targets.
#[cfg(any(fuzzing, test))]
pub fn gather_all(
    record: StructureRows,
    features: &dyn Fn(TableName) -> Vec<ColumnDecl>,
) -> StructureRows {
    let record = Arc::new(record);
    for table in OutputTable::ALL {
        let ranges = record.rows(table).into_iter().map(|rows| RowRange {
            record: Arc::clone(&record),
            rows,
        });
        let ranges: Vec<RowRange> = ranges.collect();
        let sources = ColumnSources::of_features(features);
        for column in columns::columns(table, &sources, OptionalColumns::ALL) {
            column.gather(&ranges);
        }
    }
    Arc::into_inner(record).expect("arrays have copies of the values")
}

/// Where a condition holds, and where it fails. It does neither in rows where a null decides, as in
/// SQL.
fn truth(node: &ConditionNode, arrays: &[ArrayRef]) -> Truth {
    let truth_of = |node: &ConditionNode| truth(node, arrays);
    let join = |nodes: &[ConditionNode], join: fn(&mut Truth, Truth)| {
        let (first, others) = nodes.split_first().expect("a condition has parts");
        let mut all = truth_of(first);
        others
            .iter()
            .for_each(|node| join(&mut all, truth_of(node)));
        all
    };
    match node {
        ConditionNode::All(nodes) => join(nodes, |all, next| {
            all.holds &= &next.holds;
            all.fails |= &next.fails;
        }),
        ConditionNode::Any(nodes) => join(nodes, |any, next| {
            any.holds |= &next.holds;
            any.fails &= &next.fails;
        }),
        ConditionNode::Not(node) => {
            let Truth { holds, fails } = truth_of(node);
            Truth {
                holds: fails,
                fails: holds,
            }
        }
        ConditionNode::Test(column, test) => truth_of_test(test, &arrays[*column]),
    }
}

/// Where a test holds, and where it fails; a null does neither.
fn truth_of_test(test: &Test, array: &ArrayRef) -> Truth {
    let valid = array.nulls().map(NullBuffer::inner).cloned();
    let valid = valid.unwrap_or_else(|| BooleanBuffer::new_set(array.len()));
    if *test == Test::IsNull {
        return Truth {
            holds: !&valid,
            fails: valid,
        };
    }
    let of_rows = |passes: &dyn Fn(usize) -> bool| BooleanBuffer::collect_bool(array.len(), passes);
    let number = |number: f64| test.passes(ConditionValue::Number(number));
    let passed = match TypedColumn::new(array) {
        TypedColumn::Text(keys, texts) => {
            let of_text = |text: Option<&str>| {
                text.is_some_and(|text| test.passes(ConditionValue::Text(text)))
            };
            // Each text once, however many rows have it.
            let of_texts: Vec<bool> = texts.iter().map(of_text).collect();
            // The key of null is no index.
            let of_key = |key: i32| of_texts.get(key as usize).copied().unwrap_or(false);
            of_rows(&|row| of_key(keys.value(row)))
        }
        TypedColumn::Integer(values) => of_rows(&|row| number(f64::from(values.value(row)))),
        TypedColumn::Long(values) => of_rows(&|row| number(values.value(row) as f64)),
        TypedColumn::Real(values) => of_rows(&|row| number(f64::from(values.value(row)))),
        TypedColumn::Double(values) => of_rows(&|row| number(values.value(row))),
        TypedColumn::Half(values) => of_rows(&|row| number(values.value(row).to_f64())),
        TypedColumn::Flag(values) => {
            of_rows(&|row| test.passes(ConditionValue::Flag(values.value(row))))
        }
    };
    Truth {
        holds: &passed & &valid,
        fails: &!&passed & &valid,
    }
}
