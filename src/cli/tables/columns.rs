//! The columns of each table: those that identify a row, then those of features.

use super::super::config::{ASSEMBLIES, Reduction};
use super::column::Column;
use crate::features::{ColumnDecl, TableName};
use crate::structure::Assembly;

/// All columns of a table. `features` lists the features' columns of each table, and `has_frames`
/// adds those of trajectories.
pub(super) fn columns(
    table: TableName,
    features: &dyn Fn(TableName) -> Vec<ColumnDecl>,
    reductions: &[Reduction],
    has_frames: bool,
) -> Vec<Column> {
    let mut columns = vec![
        Column::text("source", "The path of the file.", |r, _| Some(&r.source)),
        Column::text(
            "structure",
            "The name of the structure: the file's name without its endings.",
            |r, _| Some(&r.name),
        ),
        Column::integer("model", "The model's number as in the file.", |r, _| {
            Some(r.structure.model)
        }),
    ];
    if has_frames {
        columns.extend(of_frames());
    }
    columns.extend(match table {
        TableName::Residues => of_residues(),
        TableName::Chains => of_chains(),
        TableName::Structures => of_structures(),
    });
    let own = features(table);
    let own = own.iter().enumerate();
    columns.extend(own.map(|(index, decl)| Column::feature(decl, index)));
    if table != TableName::Residues {
        let of_residues = features(TableName::Residues);
        columns.extend(reductions.iter().filter_map(|reduction| {
            let mut all = of_residues.iter().enumerate();
            let found = all.find(|(_, decl)| decl.name == reduction.column)?;
            Some(Column::reduced(reduction, found, table))
        }));
    }
    columns
}

fn of_frames() -> [Column; 2] {
    [
        Column::integer(
            "frame",
            "The frame's number in its trajectory, from 0.",
            |r, _| Some(r.structure.frame?.index as i32),
        )
        .nullable(),
        Column::real("time_ps", "The time of the frame.", "ps", |r, _| {
            r.structure.frame?.time_ps
        })
        .nullable(),
    ]
}

fn entry_id() -> Column {
    Column::text("entry_id", "The entry's id as in the file.", |r, _| {
        r.structure.entry_id.as_deref()
    })
    .nullable()
}

fn of_residues() -> Vec<Column> {
    vec![
        Column::integer(
            "res_index",
            "The residue's index in the structure, from 0.",
            |_, row| Some(row as i32),
        ),
        entry_id(),
        Column::text("auth_asym_id", "The author's chain.", |r, row| {
            Some(&r.chain_of(row).auth_asym_id)
        }),
        Column::integer("auth_seq_id", "The author's residue number.", |r, row| {
            Some(r.residue(row).auth_seq_id)
        }),
        Column::code(
            "ins_code",
            "The insertion code.",
            |r, row| r.residue(row).ins_code,
            None,
        ),
        Column::text("label_asym_id", "mmCIF's own chain.", |r, row| {
            r.chain_of(row).label_asym_id.as_deref()
        })
        .nullable(),
        Column::integer("label_seq_id", "mmCIF's own residue number.", |r, row| {
            r.residue(row).label_seq_id
        })
        .nullable(),
        Column::text("entity_id", "mmCIF's entity.", |r, row| {
            r.chain_of(row).entity_id.as_deref()
        })
        .nullable(),
        Column::padded("comp_id", "The residue name.", |r, row| {
            &r.residue(row).comp_id
        }),
        Column::padded(
            "parent_comp_id",
            "The standard residue that this one is a variant of.",
            |r, row| &r.residue(row).parent_comp_id,
        )
        .nullable(),
        Column::code(
            "aa",
            "The one-letter code of the parent; X if there is none.",
            |r, row| r.residue(row).aa,
            Some(b'X'),
        ),
        Column::flag(
            "break_before",
            "Whether the residue is not linked to the residue in the row before.",
            |r, row| r.residue(row).break_before,
        ),
        Column::text("uniprot_acc", "The UniProt accession.", |r, row| {
            let uniprot = r.residue(row).uniprot?;
            Some(&r.structure.uniprot[uniprot.accession as usize])
        })
        .nullable(),
        Column::integer(
            "uniprot_pos",
            "The position in the UniProt sequence, from 1.",
            |r, row| Some(r.residue(row).uniprot?.position),
        )
        .nullable(),
    ]
}

// Counts fit 32 bits, since the engine limits the size of a structure.

fn of_chains() -> Vec<Column> {
    vec![
        entry_id(),
        Column::text("auth_asym_id", "The author's chain.", |r, row| {
            Some(&r.chain(row).auth_asym_id)
        }),
        Column::text("label_asym_id", "mmCIF's own chain.", |r, row| {
            r.chain(row).label_asym_id.as_deref()
        })
        .nullable(),
        Column::text("entity_id", "mmCIF's entity.", |r, row| {
            r.chain(row).entity_id.as_deref()
        })
        .nullable(),
        Column::integer("residues", "Number of residues.", |r, row| {
            Some(r.chains[row].residues as i32)
        }),
        Column::integer("breaks", "Number of breaks inside chains.", |r, row| {
            Some(r.chains[row].breaks as i32)
        }),
    ]
}

fn of_structures() -> Vec<Column> {
    vec![
        entry_id(),
        Column::text("assembly", "What was built: deposited or 1.", |r, _| {
            let is = |(_, assembly): &&(_, Assembly)| *assembly == r.structure.assembly;
            ASSEMBLIES.iter().find(is).map(|(name, _)| *name)
        }),
        Column::integer("residues", "Number of residues.", |r, _| {
            Some(r.structure.residues.len() as i32)
        }),
        Column::integer(
            "atoms",
            "Number of heavy polymer atoms of the chosen conformers.",
            |r, _| Some(r.atoms as i32),
        ),
        Column::integer("chains", "Number of chains with residues.", |r, _| {
            Some(r.chains.len() as i32)
        }),
        Column::integer("breaks", "Number of breaks inside chains.", |r, _| {
            Some(r.breaks() as i32)
        }),
        Column::integer(
            "rounded_atoms",
            "Number of atoms whose coordinates had more than three decimals.",
            |r, _| Some(r.structure.rounded_atoms as i32),
        ),
    ]
}
