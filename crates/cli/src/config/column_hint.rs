//! What a wrong name of a column might mean.

use super::features::feature_of_column;
use tapeloop::features::TableName;
use tapeloop_files::did_you_mean;

/// Columns that had another name, each with the one that it has now.
const RENAMED_COLUMNS: [(&str, &str); 1] = [("hydrogen_bonds", "backbone_hydrogen_bonds")];

/// What the column `name`, which is none of the `known` ones, is named now, or else might be meant by it;
/// to follow a message, or empty.
pub fn column_hint(name: &str, known: &[&str]) -> String {
    match RENAMED_COLUMNS.iter().find(|(old, _)| *old == name) {
        Some((_, new)) => format!(" (the table `interfaces` names it `{new}` now)"),
        None => did_you_mean(name, known),
    }
}

/// [`column_hint`] for a table that has the `known` columns. If its rows are residues, a column that a feature
/// computes has a hint that says how to compute it.
pub fn table_column_hint(name: &str, known: &[&str]) -> String {
    let is_of_residues = known.contains(&"break_before");
    match feature_of_column(name) {
        Some(place) if is_of_residues && place.is_of(TableName::Residues) => {
            format!(" ({})", place.how_to_compute())
        }
        _ => column_hint(name, known),
    }
}
