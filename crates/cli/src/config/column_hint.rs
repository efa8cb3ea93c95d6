//! What a wrong name of a column might mean.

use super::features::feature_of_column;
use tapeloop_files::did_you_mean;

/// Columns that had another name, each with the one that it has now.
const RENAMED_COLUMNS: [(&str, &str); 1] = [("hydrogen_bonds", "backbone_hydrogen_bonds")];

/// Names of columns in other programs and files, each with the one that it has here.
const NAMES_ELSEWHERE: [(&str, &str); 18] = [
    ("resname", "comp_id"),
    ("resn", "comp_id"),
    ("resid", "auth_seq_id"),
    ("resi", "auth_seq_id"),
    ("resseq", "auth_seq_id"),
    ("resnum", "auth_seq_id"),
    ("residue_number", "auth_seq_id"),
    ("residue_name", "comp_id"),
    ("residue", "comp_id"),
    ("chain", "auth_asym_id"),
    ("chain_id", "auth_asym_id"),
    ("icode", "ins_code"),
    ("bfactor", "b_ca"),
    ("b_factor", "b_ca"),
    ("ss", "ss8"),
    ("dssp", "ss8"),
    ("asa", "sasa"),
    ("acc", "sasa"),
];

/// What the column `name`, which is none of the `known` ones, is named now, or else might be meant by it;
/// to follow a message, or empty.
pub fn column_hint(name: &str, known: &[&str]) -> String {
    match RENAMED_COLUMNS.iter().find(|(old, _)| *old == name) {
        Some((_, new)) => format!(" (the table `interfaces` names it `{new}` now)"),
        None => {
            let lower = name.to_lowercase();
            let elsewhere = NAMES_ELSEWHERE.iter().find(|(other, _)| *other == lower);
            let here = elsewhere.filter(|(_, here)| known.contains(here));
            did_you_mean(here.map_or(name, |(_, here)| here), known)
        }
    }
}

/// [`column_hint`] for a table that has the `known` columns. If its rows are residues, a column that a feature
/// computes has a hint that says how to compute it.
pub fn table_column_hint(name: &str, known: &[&str]) -> String {
    let is_of_residues = known.contains(&"break_before");
    match feature_of_column(name) {
        Some(place) if is_of_residues && place.is_of_residues() => {
            format!(" ({})", place.how_to_compute())
        }
        _ => column_hint(name, known),
    }
}
