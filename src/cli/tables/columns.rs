//! The columns of each table: those that identify a row, then those of features.

use super::super::config::ASSEMBLIES;
use super::column::Column;
use crate::features::{ColumnDecl, TableName};
use crate::structure::Assembly;

/// All columns of a table.
pub(super) fn columns(table: TableName, features: &[ColumnDecl]) -> Vec<Column> {
    let mut columns = vec![
        Column::text("source", |r, _| Some(&r.source)),
        Column::text("structure", |r, _| Some(&r.name)),
        Column::integer("model", |r, _| Some(r.structure.model)),
    ];
    columns.extend(match table {
        TableName::Residues => of_residues(),
        TableName::Chains => of_chains(),
        TableName::Structures => of_structures(),
    });
    let features = features.iter().enumerate();
    columns.extend(features.map(|(index, decl)| Column::feature(decl, index)));
    columns
}

fn entry_id() -> Column {
    Column::text("entry_id", |r, _| r.structure.entry_id.as_deref()).nullable()
}

fn of_residues() -> Vec<Column> {
    vec![
        Column::integer("res_index", |_, row| Some(row as i32)),
        entry_id(),
        Column::text("auth_asym_id", |r, row| Some(&r.chain_of(row).auth_asym_id)),
        Column::integer("auth_seq_id", |r, row| Some(r.residue(row).auth_seq_id)),
        Column::code("ins_code", |r, row| r.residue(row).ins_code, None),
        Column::text("label_asym_id", |r, row| {
            r.chain_of(row).label_asym_id.as_deref()
        })
        .nullable(),
        Column::integer("label_seq_id", |r, row| r.residue(row).label_seq_id).nullable(),
        Column::text("entity_id", |r, row| r.chain_of(row).entity_id.as_deref()).nullable(),
        Column::padded("comp_id", |r, row| &r.residue(row).comp_id),
        Column::padded("parent_comp_id", |r, row| &r.residue(row).parent_comp_id).nullable(),
        Column::code("aa", |r, row| r.residue(row).aa, Some(b'X')),
        Column::flag("break_before", |r, row| r.residue(row).break_before),
        Column::text("uniprot_acc", |r, row| {
            let uniprot = r.residue(row).uniprot?;
            Some(&r.structure.uniprot[uniprot.accession as usize])
        })
        .nullable(),
        Column::integer("uniprot_pos", |r, row| {
            Some(r.residue(row).uniprot?.position)
        })
        .nullable(),
    ]
}

// Counts fit 32 bits, since the engine limits the size of a structure.

fn of_chains() -> Vec<Column> {
    vec![
        entry_id(),
        Column::text("auth_asym_id", |r, row| Some(&r.chain(row).auth_asym_id)),
        Column::text("label_asym_id", |r, row| {
            r.chain(row).label_asym_id.as_deref()
        })
        .nullable(),
        Column::text("entity_id", |r, row| r.chain(row).entity_id.as_deref()).nullable(),
        Column::integer("residues", |r, row| Some(r.chains[row].residues as i32)),
        Column::integer("breaks", |r, row| Some(r.chains[row].breaks as i32)),
    ]
}

fn of_structures() -> Vec<Column> {
    vec![
        entry_id(),
        Column::text("assembly", |r, _| {
            let is = |(_, assembly): &&(_, Assembly)| *assembly == r.structure.assembly;
            ASSEMBLIES.iter().find(is).map(|(name, _)| *name)
        }),
        Column::integer("residues", |r, _| Some(r.structure.residues.len() as i32)),
        Column::integer("atoms", |r, _| Some(r.atoms as i32)),
        Column::integer("chains", |r, _| Some(r.chains.len() as i32)),
        Column::integer("breaks", |r, _| Some(r.breaks() as i32)),
        Column::integer("rounded_atoms", |r, _| {
            Some(r.structure.rounded_atoms as i32)
        }),
    ]
}
