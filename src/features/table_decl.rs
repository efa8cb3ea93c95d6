//! The declarations of the tables. Each place that treats tables differently follows from them.

use super::layout::{ATOMS, CHAINS, LIGANDS, PAIR_ROOM, RESIDUES, STRUCTURES};

/// A table of results, which [`TableName::decl`] describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableName {
    /// One row per residue.
    Residues,
    /// One row per chain that has residues.
    Chains,
    /// One row per structure.
    Structures,
    /// One row per pair of residues in contact.
    Contacts,
    /// One row per backbone hydrogen bond.
    HydrogenBonds,
    /// One row per non-polymer residue.
    Ligands,
    /// One row per pair of chains whose residues are in contact.
    Interfaces,
    /// One row per heavy atom of a residue or of a ligand.
    Atoms,
    /// One row per interaction of two atoms, or of two groups of atoms.
    Interactions,
}

/// The declaration of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDecl {
    /// The table that is declared.
    pub table: TableName,
    /// The name of the table and of its folder: `hydrogen_bonds`.
    pub name: &'static str,
    /// What a row describes.
    pub rows: RowKind,
    /// What has a row, in a few words: `pair of residues in contact`.
    pub about: &'static str,
    /// The key that switches the table on: the first setting of its feature. `None` if every run has
    /// the table.
    pub key: Option<&'static str>,
}

/// What a row of a table describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// A residue.
    Residue,
    /// A chain.
    Chain,
    /// A structure.
    Structure,
    /// A pair of residues. The first two columns are the indices of the residues in their structure.
    /// The names of the columns of the first and of the second residue have these endings:
    /// `["donor", "acceptor"]` for `res_index_donor` and `res_index_acceptor`.
    ResiduePair([&'static str; 2]),
    /// A residue that is no polymer.
    Ligand,
    /// A pair of chains. The first two columns are the indices of the chains in their structure.
    ChainPair,
    /// A heavy atom of a residue or of a ligand. The rows of a structure are those of its residues'
    /// atoms, those of its atoms without a residue (nucleotides and caps), and those of ligands'
    /// atoms, glycans first. Results of atoms without a residue are null.
    Atom,
    /// A pair of atoms, each of which may stand for a group. The first two columns are the indices of
    /// the atoms in the structure, in the order of [`RowKind::Atom`].
    AtomPair,
}

/// All tables, in the order of their variants, in which the program writes them.
const DECLS: &[TableDecl] = &[
    TableDecl {
        table: TableName::Residues,
        name: "residues",
        rows: RowKind::Residue,
        about: "residue",
        key: None,
    },
    TableDecl {
        table: TableName::Chains,
        name: "chains",
        rows: RowKind::Chain,
        about: "chain that has residues",
        key: None,
    },
    TableDecl {
        table: TableName::Structures,
        name: "structures",
        rows: RowKind::Structure,
        about: "structure",
        key: None,
    },
    TableDecl {
        table: TableName::Contacts,
        name: "contacts",
        rows: RowKind::ResiduePair(["i", "j"]),
        about: "pair of residues in contact",
        key: Some("contacts.atom"),
    },
    TableDecl {
        table: TableName::HydrogenBonds,
        name: "hydrogen_bonds",
        rows: RowKind::ResiduePair(["donor", "acceptor"]),
        about: "hydrogen bond of the backbone",
        key: Some("hydrogen_bonds"),
    },
    TableDecl {
        table: TableName::Ligands,
        name: "ligands",
        rows: RowKind::Ligand,
        about: "residue that is no polymer",
        key: Some("ligands"),
    },
    TableDecl {
        table: TableName::Interfaces,
        name: "interfaces",
        rows: RowKind::ChainPair,
        about: "pair of chains whose residues are in contact",
        key: Some("interfaces"),
    },
    TableDecl {
        table: TableName::Atoms,
        name: "atoms",
        rows: RowKind::Atom,
        about: "heavy atom of a residue or ligand",
        key: Some("atoms"),
    },
    TableDecl {
        table: TableName::Interactions,
        name: "interactions",
        rows: RowKind::AtomPair,
        about: "interaction of two residues or ligands",
        key: Some("interactions"),
    },
];

impl TableName {
    /// All tables.
    pub const ALL: [TableName; DECLS.len()] = {
        let mut all = [TableName::Residues; DECLS.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = DECLS[index].table;
            assert!(all[index] as usize == index, "the order of the variants");
            index += 1;
        }
        all
    };

    /// The table's declaration.
    pub const fn decl(self) -> &'static TableDecl {
        &DECLS[self as usize]
    }

    /// The axis that has a unit for each row, or [`PAIR_ROOM`] if the number of rows follows from
    /// the data.
    pub(super) fn axis(self) -> usize {
        match self.decl().rows {
            RowKind::Residue => RESIDUES,
            RowKind::Chain => CHAINS,
            RowKind::Structure => STRUCTURES,
            RowKind::ResiduePair(_) | RowKind::ChainPair | RowKind::AtomPair => PAIR_ROOM,
            RowKind::Ligand => LIGANDS,
            RowKind::Atom => ATOMS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{ColumnKind, FeatureConfig, FeatureName};

    #[test]
    fn the_key_of_a_table_gives_it_columns_that_fit_the_rows() {
        let mut config = FeatureConfig::default();
        for table in TableName::ALL {
            let decl = table.decl();
            if let Some(key) = decl.key {
                let feature = FeatureName::of_key(key).expect("a feature has the key");
                assert!(config.columns(table).is_empty(), "{}", decl.name);
                assert!(config.let_compute(feature).is_some(), "{}", decl.name);
            }
            let columns = config.columns(table);
            assert!(!columns.is_empty(), "{}", decl.name);
            match decl.rows {
                RowKind::ResiduePair(endings) => {
                    let names = [&columns[0].name, &columns[1].name];
                    assert_eq!(
                        names,
                        endings
                            .map(|ending| format!("res_index_{ending}"))
                            .each_ref()
                    );
                }
                RowKind::ChainPair => {
                    assert!(
                        columns[..2]
                            .iter()
                            .all(|column| column.kind == ColumnKind::Chain)
                    );
                }
                RowKind::Residue
                | RowKind::Chain
                | RowKind::Structure
                | RowKind::Ligand
                | RowKind::Atom => {}
                RowKind::AtomPair => {
                    let names = [&columns[0].name, &columns[1].name];
                    assert_eq!(names, ["atom_index_1", "atom_index_2"]);
                }
            }
        }
    }
}
