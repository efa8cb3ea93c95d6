//! Conditions on the columns of residues, as `tables.where` has them:
//! `plddt >= 70 and chain in ('A', 'B')`; and on those of atoms, as `tables.where_atoms` has them. The logic is SQL's, with three values: a test of a null is
//! unknown, except for `is null`.

mod parser;

use super::OptionalColumns;
use tapeloop::error::Result;
use tapeloop::features::{ColumnDecl, ColumnKind};

/// A condition, whose columns and types have been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// As the config has it.
    pub text: String,
    /// The columns that it names.
    pub columns: Vec<String>,
    pub root: ConditionNode,
}

/// A part of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum ConditionNode {
    All(Vec<ConditionNode>),
    Any(Vec<ConditionNode>),
    Not(Box<ConditionNode>),
    /// A test of a column, by its index in [`Condition::columns`].
    Test(usize, Test),
}

/// A test of a value. `!=`, `<=`, `>=` and `is not null` are the opposites of these.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    IsNull,
    OneOf(Vec<Literal>),
    Less(Literal),
    Greater(Literal),
    /// The text has this one in it.
    Contains(String),
}

/// A value in a condition, of the type of the column that is compared with it.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// Rounded to the precision of the column.
    Number(f64),
    Text(String),
    Flag(bool),
}

/// A value of a column that is not null. Only values of one kind are compared.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Value<'a> {
    Number(f64),
    /// Texts have the order of their bytes.
    Text(&'a str),
    Flag(bool),
}

impl Test {
    /// Whether a value that is not null passes.
    pub fn passes(&self, value: Value<'_>) -> bool {
        match self {
            Test::IsNull => false,
            Test::OneOf(literals) => literals.iter().any(|literal| value == literal.value()),
            Test::Less(literal) => value < literal.value(),
            Test::Greater(literal) => value > literal.value(),
            Test::Contains(part) => {
                matches!(value, Value::Text(text) if text.contains(part.as_str()))
            }
        }
    }
}

impl Literal {
    fn value(&self) -> Value<'_> {
        match self {
            Literal::Number(number) => Value::Number(*number),
            Literal::Text(text) => Value::Text(text),
            Literal::Flag(flag) => Value::Flag(*flag),
        }
    }
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    Text,
    Integer,
    Real,
    /// A real of 16 bits.
    Half,
    Flag,
}

/// The columns that identify a residue. Those of features follow them in the table.
pub const RESIDUE_KEYS: [(&str, ValueType); 18] = [
    ("source", ValueType::Text),
    ("structure", ValueType::Text),
    ("model", ValueType::Integer),
    ("res_index", ValueType::Integer),
    ("entry_id", ValueType::Text),
    ("auth_asym_id", ValueType::Text),
    ("auth_seq_id", ValueType::Integer),
    ("ins_code", ValueType::Text),
    ("label_asym_id", ValueType::Text),
    ("label_seq_id", ValueType::Integer),
    ("entity_id", ValueType::Text),
    ("comp_id", ValueType::Text),
    ("parent_comp_id", ValueType::Text),
    ("aa", ValueType::Text),
    ("break_before", ValueType::Flag),
    ("uniprot_acc", ValueType::Text),
    ("uniprot_pos", ValueType::Integer),
    ("flags", ValueType::Text),
];

/// The columns that identify an atom, and what the file states of it. Those of features follow them in
/// the table.
pub const ATOM_KEYS: [(&str, ValueType); 19] = [
    ("source", ValueType::Text),
    ("structure", ValueType::Text),
    ("model", ValueType::Integer),
    ("res_index", ValueType::Integer),
    ("auth_asym_id", ValueType::Text),
    ("auth_seq_id", ValueType::Integer),
    ("ins_code", ValueType::Text),
    ("comp_id", ValueType::Text),
    ("name", ValueType::Text),
    ("altloc", ValueType::Text),
    ("element", ValueType::Text),
    ("is_backbone", ValueType::Flag),
    ("class", ValueType::Text),
    ("radius", ValueType::Real),
    ("x", ValueType::Real),
    ("y", ValueType::Real),
    ("z", ValueType::Real),
    ("occupancy", ValueType::Real),
    ("b_factor", ValueType::Real),
];

/// The column that the table of atoms has in runs with ligands.
pub const ATOM_LIGAND_KEY: (&str, ValueType) = ("ligand_index", ValueType::Integer);

/// The columns of frames, which the table has in runs with a topology.
pub const FRAME_KEYS: [(&str, ValueType); 2] =
    [("frame", ValueType::Integer), ("time_ps", ValueType::Real)];

/// Names that tables of annotations have too, each with its column.
const OTHER_NAMES: [(&str, &str); 2] = [("chain", "auth_asym_id"), ("residue", "auth_seq_id")];

impl Condition {
    /// Parses a condition on the table of residues; `features` are the features' columns of it, and
    /// `optional` adds others.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config), with the place in the text: it is no
    /// condition, names a column that the table has not, or compares values of different types.
    pub fn parse(text: &str, features: &[ColumnDecl], optional: OptionalColumns) -> Result<Self> {
        let coordinates: Vec<String> = optional
            .coordinates
            .columns()
            .map(|column| column.0)
            .collect();
        let of_unobserved = [("observed", ValueType::Flag)];
        let of_unobserved = of_unobserved.into_iter().filter(|_| optional.unobserved);
        let of_frames = FRAME_KEYS.into_iter().filter(|_| optional.has_frames);
        let of_coordinates = coordinates.iter().map(|name| (&**name, ValueType::Real));
        let keys = RESIDUE_KEYS
            .into_iter()
            .chain(of_frames)
            .chain(of_unobserved)
            .chain(of_coordinates);
        let columns: Vec<_> = keys.chain(features.iter().map(named_type)).collect();
        parser::parse(text, &columns)
    }

    /// Parses a condition on the table of atoms; the arguments and errors are those of
    /// [`Condition::parse`].
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config).
    pub fn parse_of_atoms(
        text: &str,
        features: &[ColumnDecl],
        optional: OptionalColumns,
    ) -> Result<Self> {
        let of_frames = FRAME_KEYS.into_iter().filter(|_| optional.has_frames);
        let of_ligands = optional.ligands.then_some(ATOM_LIGAND_KEY);
        let keys = ATOM_KEYS.into_iter().chain(of_frames).chain(of_ligands);
        let columns: Vec<_> = keys.chain(features.iter().map(named_type)).collect();
        parser::parse(text, &columns)
    }
}

/// The name of a feature's column, and the type of its values.
fn named_type(decl: &ColumnDecl) -> (&str, ValueType) {
    let value_type = match decl.kind {
        ColumnKind::Count | ColumnKind::LigandNumber => ValueType::Integer,
        ColumnKind::Real => ValueType::Real,
        ColumnKind::Half => ValueType::Half,
        ColumnKind::Flag => ValueType::Flag,
        ColumnKind::Chain | ColumnKind::LigandComponent | ColumnKind::Text(_) => ValueType::Text,
    };
    (&decl.name, value_type)
}

#[cfg(test)]
mod tests;
