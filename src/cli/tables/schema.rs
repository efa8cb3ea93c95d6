//! The columns of a table and their Arrow types.

use arrow_schema::{DataType, Field, Schema};

/// What a column holds, which determines how Parquet encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Names that repeat: a dictionary.
    Text,
    /// Words from a small set, such as one-letter codes: a dictionary. No reader could skip rows by
    /// their smallest and largest value, so these are not stored.
    Word,
    /// Integers.
    Integer,
    /// Reals that do not repeat.
    Real,
    /// The same with 16 bits.
    Half,
    /// True or false.
    Flag,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnSpec {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) nullable: bool,
}

impl ColumnSpec {
    /// A column without nulls.
    pub(super) fn full(name: &str, kind: Kind) -> Self {
        ColumnSpec {
            name: name.to_owned(),
            kind,
            nullable: false,
        }
    }

    fn field(&self) -> Field {
        let data_type = match self.kind {
            Kind::Text | Kind::Word => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            Kind::Integer => DataType::Int32,
            Kind::Real => DataType::Float32,
            Kind::Half => DataType::Float16,
            Kind::Flag => DataType::Boolean,
        };
        Field::new(&self.name, data_type, self.nullable)
    }
}

/// The Arrow schema of the arrays that columns gather.
pub(super) fn arrow_schema<'a>(columns: impl Iterator<Item = &'a ColumnSpec>) -> Schema {
    let fields: Vec<Field> = columns.map(ColumnSpec::field).collect();
    Schema::new(fields)
}
