//! What the tables of a plan have.

use super::plan::Plan;
use super::tables::{ColumnSources, RowFilter};
use tapeloop::features::{ColumnDecl, TableName};

/// The filter of the residues' rows.
pub fn row_filter(plan: &Plan) -> Option<RowFilter> {
    let features = |table| plan.config.features.columns(table);
    let condition = plan.config.condition.clone()?;
    Some(RowFilter::new(condition, &features))
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
