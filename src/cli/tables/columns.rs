//! The columns that name a row, and those of features behind them.

use super::Record;
use super::column::Column;
use crate::features::{ColumnDecl, TableName};
use crate::structure::{Chain, Residue, Structure};

/// All columns of a table.
pub(super) fn columns(table: TableName, features: &[ColumnDecl]) -> Vec<Column> {
    let mut columns = match table {
        TableName::Residues => of_residues(),
        TableName::Chains => Vec::new(),
        TableName::Structures => of_structures(),
    };
    let features = features.iter().enumerate();
    columns.extend(features.map(|(index, decl)| Column::feature(decl, index)));
    columns
}

/// Rows that a structure has in a table.
pub(super) fn row_count(table: TableName, record: &Record<'_>) -> usize {
    match table {
        TableName::Residues => record.structure.residues.len(),
        TableName::Chains => 0,
        TableName::Structures => 1,
    }
}

fn of_residues() -> Vec<Column> {
    fn residue<'a>(record: &Record<'a>, row: usize) -> &'a Residue {
        &record.structure.residues[row]
    }
    fn chain<'a>(record: &Record<'a>, row: usize) -> &'a Chain {
        &record.structure.chains[residue(record, row).chain as usize]
    }
    vec![
        Column::text("source", |r, _| Some(r.source)),
        Column::text("structure", |r, _| Some(r.name)),
        Column::count("model", |r, _| Some(r.structure.model)),
        Column::index("res_index", |_, row| Some(row as i32)),
        Column::text("entry_id", |r, _| r.structure.entry_id.as_deref()).sparse(),
        Column::text("auth_asym_id", |r, row| Some(&chain(r, row).auth_asym_id)),
        Column::index("auth_seq_id", |r, row| Some(residue(r, row).auth_seq_id)),
        Column::text("ins_code", |r, row| code(&residue(r, row).ins_code)).sparse(),
        Column::text("label_asym_id", |r, row| {
            chain(r, row).label_asym_id.as_deref()
        })
        .sparse(),
        Column::index("label_seq_id", |r, row| residue(r, row).label_seq_id).sparse(),
        Column::text("entity_id", |r, row| chain(r, row).entity_id.as_deref()).sparse(),
        Column::text("comp_id", |r, row| {
            Some(padded(&residue(r, row).comp_id).unwrap_or(""))
        }),
        Column::text("parent_comp_id", |r, row| {
            padded(&residue(r, row).parent_comp_id)
        })
        .sparse(),
        Column::text("aa", |r, row| {
            Some(code(&residue(r, row).aa).unwrap_or("X"))
        }),
        Column::flag("break_before", |r, row| residue(r, row).break_before),
        Column::text("uniprot_acc", |r, row| {
            let uniprot = residue(r, row).uniprot?;
            Some(&r.structure.uniprot[uniprot.accession as usize])
        })
        .sparse(),
        Column::index("uniprot_pos", |r, row| {
            Some(residue(r, row).uniprot?.position)
        })
        .sparse(),
    ]
}

fn of_structures() -> Vec<Column> {
    vec![
        Column::text("source", |r, _| Some(r.source)),
        Column::text("structure", |r, _| Some(r.name)),
        Column::count("model", |r, _| Some(r.structure.model)),
        Column::text("entry_id", |r, _| r.structure.entry_id.as_deref()).sparse(),
        // The batch's extent has bounded all of these to 32 bits.
        Column::count("residues", |r, _| Some(r.structure.residues.len() as i32)),
        Column::count("atoms", |r, _| Some(r.structure.xyz.len() as i32)),
        Column::count("chains", |r, _| Some(r.structure.chains.len() as i32)),
        Column::count("breaks", |r, _| Some(breaks(r.structure) as i32)),
        Column::count("rounded_atoms", |r, _| {
            Some(r.structure.rounded_atoms as i32)
        }),
    ]
}

/// Residues that do not follow on the one before them in their chain; where a
/// chain begins is no break.
fn breaks(structure: &Structure) -> usize {
    let pairs = structure.residues.windows(2);
    pairs
        .filter(|pair| pair[1].break_before && pair[0].chain == pair[1].chain)
        .count()
}

/// The text of a space-padded field, `None` where it is blank.
fn padded(field: &[u8; 8]) -> Option<&str> {
    let text = std::str::from_utf8(field).unwrap_or("?").trim_ascii_end();
    (!text.is_empty()).then_some(text)
}

/// The text of a one-byte code, `None` for 0 and blank.
fn code(byte: &u8) -> Option<&str> {
    let shown = !matches!(byte, 0 | b' ');
    shown.then(|| std::str::from_utf8(std::slice::from_ref(byte)).unwrap_or("?"))
}
