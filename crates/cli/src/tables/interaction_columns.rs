//! The columns that identify a row of the table of interactions.

use super::super::config::OutputTable;
use super::atom_owner::AtomOwner;
use super::column::{TableColumn, TextOfRow};
use super::structure_rows::{PairSide, StructureRows};
use tapeloop::features::INTERACTION_KINDS;
use tapeloop::structure::Roles;

const TABLE: OutputTable = OutputTable::INTERACTIONS;

/// What names both sides of an interaction; with `ligands` also their index.
pub(super) fn interaction_columns(ligands: bool) -> Vec<TableColumn> {
    let mut columns = vec![TableColumn::flag(
        "same_chain",
        "Whether both sides are of one chain; of a ligand the author's name of the chain counts.",
        |r, row| r.is_of_one_chain(TABLE, row),
    )];
    let atoms =
        "The name of the atom; of a charged group or a ring the names of its atoms, with commas.";
    let role = "Which side it is: donor, acceptor or either of a hydrogen bond, positive, negative, ring, \
                metal or coordinating; null where both sides are alike.";
    for (side, texts) in [
        [atoms_of::<0> as TextOfRow, role_of::<0>],
        [atoms_of::<1>, role_of::<1>],
    ]
    .into_iter()
    .enumerate()
    {
        let names = [("atoms", atoms), ("role", role)];
        columns.extend(side_columns(TABLE, side, ligands, names, texts));
    }
    columns
}

/// What names one side of a pair of atoms, with the names and descriptions of two columns of texts.
pub(super) fn side_columns(
    table: OutputTable,
    side: usize,
    ligands: bool,
    [atoms_column, role_column]: [(&str, &str); 2],
    [atoms, role]: [TextOfRow; 2],
) -> Vec<TableColumn> {
    let ending = ["1", "2"][side];
    let of_side = |column: TableColumn| column.of_side(PairSide { table, side }, ending);
    let mut columns = vec![of_side(
        TableColumn::integer(
            "res_index",
            "The index of the residue in the structure, from 0; null for a nucleotide, a cap or a \
             ligand.",
            |r, atom| owner_of(r, atom).res_index(),
        )
        .nullable(),
    )];
    if ligands {
        let about = "The index of the ligand in the structure, from 0; null for others.";
        columns.push(of_side(
            TableColumn::integer("ligand_index", about, |r, atom| {
                owner_of(r, atom).ligand_index()
            })
            .nullable(),
        ));
    }
    columns.extend([
        of_side(
            TableColumn::text(
                "auth_asym_id",
                "The author's chain; null where the file names none.",
                |r, atom| owner_of(r, atom).chain(r),
            )
            .nullable(),
        ),
        of_side(
            TableColumn::integer("auth_seq_id", "The author's number.", |r, atom| {
                owner_of(r, atom).number(r)
            })
            .nullable(),
        ),
        of_side(TableColumn::code(
            "ins_code",
            "The insertion code.",
            |r, atom| owner_of(r, atom).ins_code(r),
            None,
        )),
        of_side(TableColumn::padded(
            "comp_id",
            "The name of the residue or ligand.",
            |r, atom| owner_of(r, atom).comp_id(r),
        )),
        TableColumn::text(&format!("{}_{ending}", atoms_column.0), atoms_column.1, atoms),
        TableColumn::text(&format!("{}_{ending}", role_column.0), role_column.1, role).nullable(),
        of_side(TableColumn::text(
            "typed_by",
            "What tells the roles of its atoms: the names of a standard residue's atoms, a component that the file, a dictionary or the program describes, CONECT records, or the geometry.",
            |r, atom| {
                let chemistry = r.structure.chemistry.as_ref()?;
                let owner = chemistry.owners()[atom];
                Some(chemistry.source(owner as usize).name())
            },
        )),
    ]);
    columns
}

fn owner_of(r: &StructureRows, atom: usize) -> AtomOwner {
    let chemistry = r.structure.chemistry.as_ref();
    let chemistry = chemistry.expect("interactions are of atoms with a chemistry");
    AtomOwner::of_chemistry(r, chemistry.owners()[atom] as usize)
}

impl StructureRows {
    /// What both sides of a pair of atoms belong to.
    pub(super) fn atom_owners(&self, table: OutputTable, row: usize) -> [AtomOwner; 2] {
        self.pair(table, row).map(|atom| owner_of(self, atom))
    }

    /// Whether both sides of a pair of atoms are of one chain.
    pub(super) fn is_of_one_chain(&self, table: OutputTable, row: usize) -> bool {
        let [one, other] = self.atom_owners(table, row);
        match (one.chain_index(self), other.chain_index(self)) {
            (Some(one), Some(other)) => one == other,
            _ => one.chain(self) == other.chain(self),
        }
    }
}

fn kind_of(r: &StructureRows, row: usize) -> &'static str {
    INTERACTION_KINDS[r.interaction_kind(row)]
}

/// Whether an interaction of a kind is that of groups of atoms.
fn is_of_groups(kind: &str) -> bool {
    matches!(
        kind,
        "salt_bridge" | "pi_stacking_face" | "pi_stacking_edge" | "cation_pi"
    )
}

/// The name of the atom of one side, or of all atoms of its group.
fn atoms_of<const SIDE: usize>(r: &StructureRows, row: usize) -> Option<&str> {
    let atom = r.pair(TABLE, row)[SIDE];
    let names = r.interaction_rows();
    let chemistry = r.structure.chemistry.as_ref()?;
    let group = chemistry.group_index(atom as u32);
    Some(match group.filter(|_| is_of_groups(kind_of(r, row))) {
        Some(group) => names.group(group),
        None => names.name(atom),
    })
}

/// What one side does in the interaction: donor or acceptor, and so on.
fn role_of<const SIDE: usize>(r: &StructureRows, row: usize) -> Option<&str> {
    let chemistry = r.structure.chemistry.as_ref()?;
    let pair = r.pair(TABLE, row);
    let [own, other] = [SIDE, 1 - SIDE].map(|side| chemistry.roles()[pair[side]]);
    let is = |roles: Roles, role: Roles| roles.contains(role);
    Some(match kind_of(r, row) {
        "hydrogen_bond" => {
            let donates = is(own, Roles::DONOR) && is(other, Roles::ACCEPTOR);
            let accepts = is(own, Roles::ACCEPTOR) && is(other, Roles::DONOR);
            match (donates, accepts) {
                (true, true) => "either",
                (true, false) => "donor",
                _ => "acceptor",
            }
        }
        "salt_bridge" | "cation_pi" if is(own, Roles::POSITIVE) => "positive",
        "salt_bridge" => "negative",
        "cation_pi" => "ring",
        "metal_coordination" if is(own, Roles::METAL) => "metal",
        "metal_coordination" => "coordinating",
        _ => return None,
    })
}
