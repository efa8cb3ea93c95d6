//! What a wrong name of a column might mean.

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
