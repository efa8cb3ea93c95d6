//! The columns that identify a row of the table of atoms.

use super::atom_values::AtomValue;
use super::column::{Column, TextOfRow};
use super::schema::Kind;
use super::structure_rows::StructureRows;

/// What an atom belongs to, by its index: residues come first, and ligands follow.
enum AtomOwner {
    Residue(usize),
    Ligand(usize),
}

impl AtomOwner {
    fn new(record: &StructureRows, index: usize) -> Self {
        match index.checked_sub(record.structure.residues.len()) {
            None => AtomOwner::Residue(index),
            Some(ligand) => AtomOwner::Ligand(ligand),
        }
    }
}

/// The columns that identify an atom, and what the file states of it.
pub(super) fn atom_columns(ligands: bool) -> Vec<Column> {
    let of_owner = |column: Column| column.of_atom_owners();
    let author: TextOfRow = |r, owner| {
        let id = match AtomOwner::new(r, owner) {
            AtomOwner::Residue(residue) => &r.chain_of(residue).auth_asym_id,
            AtomOwner::Ligand(ligand) => &r.ligand(ligand).auth_asym_id,
        };
        (!id.is_empty()).then_some(&**id)
    };
    let mut columns = vec![of_owner(Column::ascending(
        "res_index",
        "The index of the atom's residue in the structure, from 0; null for an atom of a ligand.",
        |r, owner| match AtomOwner::new(r, owner) {
            AtomOwner::Residue(residue) => Some(residue as i32),
            AtomOwner::Ligand(_) => None,
        },
    ))];
    if ligands {
        columns.push(of_owner(Column::ascending(
            "ligand_index",
            "The index of the atom's ligand in the structure, from 0; null for an atom of a residue.",
            |r, owner| match AtomOwner::new(r, owner) {
                AtomOwner::Residue(_) => None,
                AtomOwner::Ligand(ligand) => Some(ligand as i32),
            },
        )));
    }
    columns.extend([
        of_owner(Column::text(
            "auth_asym_id",
            "The author's chain; null where the file names none.",
            author,
        ))
        .nullable(),
        of_owner(Column::ascending(
            "auth_seq_id",
            "The author's number of the residue or ligand.",
            |r, owner| match AtomOwner::new(r, owner) {
                AtomOwner::Residue(residue) => r.number(residue),
                AtomOwner::Ligand(ligand) => r.ligand(ligand).auth_seq_id,
            },
        )),
        of_owner(Column::code(
            "ins_code",
            "The insertion code.",
            |r, owner| match AtomOwner::new(r, owner) {
                AtomOwner::Residue(residue) => r.residue(residue).ins_code,
                AtomOwner::Ligand(ligand) => r.ligand(ligand).ins_code,
            },
            None,
        )),
        of_owner(Column::padded(
            "comp_id",
            "The name of the residue or ligand.",
            |r, owner| match AtomOwner::new(r, owner) {
                AtomOwner::Residue(residue) => &r.residue(residue).comp_id,
                AtomOwner::Ligand(ligand) => &r.ligand(ligand).comp_id,
            },
        )),
        Column::atom(
            "name",
            Kind::Word,
            "The atom's name, as the component has it.",
            "",
            AtomValue::Name,
        ),
        Column::atom(
            "altloc",
            Kind::Word,
            "The alternate location that was chosen; null for an atom without others.",
            "",
            AtomValue::Altloc,
        )
        .nullable(),
        Column::atom(
            "element",
            Kind::Word,
            "The element's symbol, in capitals; null if it is unknown.",
            "",
            AtomValue::Element,
        )
        .nullable(),
        Column::atom(
            "is_backbone",
            Kind::Flag,
            "Whether it is N, CA, C, O or OXT of a residue.",
            "",
            AtomValue::IsBackbone,
        ),
        Column::atom(
            "class",
            Kind::Word,
            "The class of its surface: polar or apolar.",
            "",
            AtomValue::Class,
        ),
        Column::atom(
            "radius",
            Kind::Real,
            "The radius without the probe.",
            "A",
            AtomValue::Radius,
        ),
    ]);
    let axes = ["x", "y", "z"].into_iter().enumerate();
    columns.extend(axes.map(|(axis, name)| {
        let about = format!("The {name} coordinate.");
        Column::atom(name, Kind::Real, &about, "A", AtomValue::Position(axis))
    }));
    columns.extend([
        Column::atom(
            "occupancy",
            Kind::Real,
            "The occupancy; 1 where the file gives none.",
            "",
            AtomValue::Occupancy,
        ),
        Column::atom(
            "b_factor",
            Kind::Real,
            "The B factor in A^2, or the pLDDT of a predicted model from 0 to 100; null where the file \
             gives none.",
            "",
            AtomValue::BFactor,
        )
        .nullable(),
    ]);
    columns
}
