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

/// What the columns of a plan's tables come from; `features` are those of its config.
pub fn column_sources<'a>(
    plan: &'a Plan,
    features: &'a dyn Fn(TableName) -> Vec<ColumnDecl>,
) -> ColumnSources<'a> {
    ColumnSources {
        features,
        reductions: &plan.config.reductions,
        annotations: plan.annotation_columns(),
    }
}
