//! What the tables of a plan have.

use super::config::OutputTable;
use super::plan::Plan;
use super::tables::{ColumnSources, RowFilter};
use tapeloop::features::{ColumnDecl, TableName};

/// The filters of the residues' rows, and then of the atoms'.
pub fn row_filters(plan: &Plan) -> Vec<RowFilter> {
    let features = |table| plan.config.features.columns(table);
    let conditions = [
        (OutputTable::RESIDUES, &plan.config.condition),
        (OutputTable::ATOMS, &plan.config.atom_condition),
    ];
    let filters = conditions.into_iter().filter_map(|(table, condition)| {
        Some(RowFilter::new(table, condition.clone()?, &features))
    });
    filters.collect()
}

/// The sources of the columns of a plan's tables. `feature_columns` returns the feature columns of a table.
pub fn column_sources<'a>(
    plan: &'a Plan,
    feature_columns: &'a dyn Fn(TableName) -> Vec<ColumnDecl>,
) -> ColumnSources<'a> {
    ColumnSources {
        features: feature_columns,
        reductions: &plan.config.reductions,
        annotations: plan.annotation_columns(),
    }
}
