//! The columns of the table of bridges of water.

use super::super::config::OutputTable;
use super::column::{TableColumn, TextOfRow};
use super::interaction_columns::side_columns;
use super::structure_rows::StructureRows;
use tapeloop::structure::{Ligand, Roles, WaterBridge};

const TABLE: OutputTable = OutputTable::WaterBridges;

/// What names the water and both sides of a bridge, with the distances and the angle; with `ligands` also
/// the index of ligands.
pub(super) fn water_bridge_columns(ligands: bool) -> Vec<TableColumn> {
    let mut columns = vec![
        TableColumn::text(
            "water_auth_asym_id",
            "The author's chain of the water; null where the file names none.",
            |r, row| Some(&*water(r, row).auth_asym_id).filter(|id| !id.is_empty()),
        )
        .nullable(),
        TableColumn::integer(
            "water_auth_seq_id",
            "The author's number of the water.",
            |r, row| water(r, row).auth_seq_id,
        )
        .nullable(),
        TableColumn::code(
            "water_ins_code",
            "The insertion code of the water.",
            |r, row| water(r, row).ins_code,
            None,
        ),
        TableColumn::flag(
            "same_chain",
            "Whether both sides are of one chain; of a ligand the author's name of the chain counts.",
            |r, row| r.is_of_one_chain(TABLE, row),
        ),
    ];
    let names = [
        ("atom", "The name of the atom."),
        (
            "role",
            "Whether it is a donor, an acceptor, or can be either.",
        ),
    ];
    let sides = [
        [atom_of::<0> as TextOfRow, role_of::<0>],
        [atom_of::<1>, role_of::<1>],
    ];
    for (side, texts) in sides.into_iter().enumerate() {
        columns.extend(side_columns(TABLE, side, ligands, names, texts));
    }
    columns.extend([
        TableColumn::real(
            "distance_1",
            "From the first atom to the oxygen of the water.",
            "A",
            |r, row| Some(bridge(r, row).distances[0]),
        ),
        TableColumn::real(
            "distance_2",
            "From the second atom to the oxygen of the water.",
            "A",
            |r, row| Some(bridge(r, row).distances[1]),
        ),
        TableColumn::real(
            "angle",
            "At the oxygen, of both atoms.",
            "degrees",
            |r, row| Some(bridge(r, row).angle),
        ),
    ]);
    columns
}

fn bridge(r: &StructureRows, row: usize) -> WaterBridge {
    let chemistry = r.structure.chemistry.as_ref();
    chemistry
        .expect("bridges are of a chemistry")
        .water_bridges()[row]
}

fn water(r: &StructureRows, row: usize) -> &Ligand {
    &r.structure.waters[bridge(r, row).water as usize]
}

fn atom_of<const SIDE: usize>(r: &StructureRows, row: usize) -> Option<&str> {
    Some(r.interaction_rows().name(r.pair(TABLE, row)[SIDE]))
}

/// What the atom of one side does to the water: it donates a hydrogen bond, accepts one, or either.
fn role_of<const SIDE: usize>(r: &StructureRows, row: usize) -> Option<&str> {
    let roles = r.structure.chemistry.as_ref()?.roles()[r.pair(TABLE, row)[SIDE]];
    let [donates, accepts] = [Roles::DONOR, Roles::ACCEPTOR].map(|role| roles.contains(role));
    Some(match (donates, accepts) {
        (true, true) => "either",
        (true, false) => "donor",
        _ => "acceptor",
    })
}
