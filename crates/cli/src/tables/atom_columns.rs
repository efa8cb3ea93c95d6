//! The columns that identify a row of the table of atoms.

use super::atom_owner::AtomOwner;
use super::atom_values::AtomValue;
use super::column::TableColumn;
use super::schema::Kind;

/// The columns that identify an atom, and what the file states of it.
pub(super) fn atom_columns(ligands: bool) -> Vec<TableColumn> {
    let of_owner = |column: TableColumn| column.of_atom_owners();
    let mut columns = vec![of_owner(TableColumn::ascending(
        "res_index",
        "The index of the atom's residue in the structure, from 0; null for an atom of a ligand.",
        |r, owner| AtomOwner::of_rows(r, owner).res_index(),
    ))];
    if ligands {
        columns.push(of_owner(TableColumn::ascending(
            "ligand_index",
            "The index of the atom's ligand in the structure, from 0; null for an atom of a residue.",
            |r, owner| AtomOwner::of_rows(r, owner).ligand_index(),
        )));
    }
    columns.extend([
        of_owner(TableColumn::text(
            "auth_asym_id",
            "The author's chain; null where the file names none.",
            |r, owner| AtomOwner::of_rows(r, owner).chain(r),
        ))
        .nullable(),
        of_owner(TableColumn::ascending(
            "auth_seq_id",
            "The author's number of the residue or ligand.",
            |r, owner| AtomOwner::of_rows(r, owner).number(r),
        )),
        of_owner(TableColumn::code(
            "ins_code",
            "The insertion code.",
            |r, owner| AtomOwner::of_rows(r, owner).ins_code(r),
            None,
        )),
        of_owner(TableColumn::padded(
            "comp_id",
            "The name of the residue or ligand.",
            |r, owner| AtomOwner::of_rows(r, owner).comp_id(r),
        )),
        TableColumn::atom(
            "name",
            Kind::Word,
            "The atom's name, as the component has it.",
            "",
            AtomValue::Name,
        ),
        TableColumn::atom(
            "altloc",
            Kind::Word,
            "The alternate location that was chosen; null for an atom without others.",
            "",
            AtomValue::Altloc,
        )
        .nullable(),
        TableColumn::atom(
            "element",
            Kind::Word,
            "The element's symbol, in capitals; null if it is unknown.",
            "",
            AtomValue::Element,
        )
        .nullable(),
        TableColumn::atom(
            "is_backbone",
            Kind::Flag,
            "Whether it is N, CA, C, O or OXT of a residue.",
            "",
            AtomValue::IsBackbone,
        ),
        TableColumn::atom(
            "class",
            Kind::Word,
            "The class of its surface: polar or apolar.",
            "",
            AtomValue::Class,
        ),
        TableColumn::atom(
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
        TableColumn::atom(name, Kind::Real, &about, "A", AtomValue::Position(axis))
    }));
    columns.extend([
        TableColumn::atom(
            "occupancy",
            Kind::Real,
            "The occupancy; 1 where the file gives none.",
            "",
            AtomValue::Occupancy,
        ),
        TableColumn::atom(
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
