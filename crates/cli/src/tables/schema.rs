//! The columns of a table and their Arrow types.

use arrow_schema::{DataType, Field, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// What a column holds, which determines how Parquet encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Names that repeat: a dictionary.
    Text,
    /// Words from a small set, such as one-letter codes: a dictionary. No reader could skip rows by
    /// their smallest and largest value, so these are not stored.
    Word,
    /// Integers of 32 bits.
    Integer,
    /// Integers of 32 bits that ascend, or stay the same for several rows.
    Ascending,
    /// Integers of 32 bits of which neighbouring sequences are alike, such as the neighbours of
    /// successive residues.
    Repeating,
    /// Integers of 64 bits.
    Long,
    /// Reals that do not repeat.
    Real,
    /// The same with 16 bits.
    Half,
    /// The same with 64 bits.
    Double,
    /// True or false.
    Flag,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnSpec {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    /// What it holds, in a sentence.
    pub(super) about: String,
    /// Empty if it has none.
    pub(super) unit: &'static str,
    /// The publication that defines it; empty if there is none.
    pub(super) source: &'static str,
}

impl ColumnSpec {
    /// A column without nulls, unit and source.
    pub(super) fn full(name: &str, kind: Kind, about: impl Into<String>) -> Self {
        ColumnSpec {
            name: name.to_owned(),
            kind,
            nullable: false,
            about: about.into(),
            unit: "",
            source: "",
        }
    }

    /// The column's field, with its unit, description and source in the metadata.
    fn field(&self) -> Field {
        let data_type = match self.kind {
            Kind::Text | Kind::Word => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            Kind::Integer | Kind::Ascending | Kind::Repeating => DataType::Int32,
            Kind::Long => DataType::Int64,
            Kind::Real => DataType::Float32,
            Kind::Double => DataType::Float64,
            Kind::Half => DataType::Float16,
            Kind::Flag => DataType::Boolean,
        };
        let metadata = [
            ("description", &*self.about),
            ("unit", self.unit),
            ("source", self.source),
        ];
        let metadata = metadata.into_iter().filter(|(_, text)| !text.is_empty());
        let metadata = metadata.map(|(key, text)| (key.to_owned(), text.to_owned()));
        Field::new(&self.name, data_type, self.nullable)
            .with_metadata(metadata.collect::<HashMap<_, _>>())
    }
}

/// The Arrow schema of the arrays that columns gather.
pub(super) fn arrow_schema<'a>(columns: impl Iterator<Item = &'a ColumnSpec>) -> Schema {
    let fields: Vec<Field> = columns.map(ColumnSpec::field).collect();
    Schema::new(fields)
}

/// The schema with plain strings in place of dictionaries, as readers of a file should see it.
pub(super) fn plain_schema<'a>(columns: impl Iterator<Item = &'a ColumnSpec>) -> Schema {
    let gathered = arrow_schema(columns);
    let plain = |field: &Arc<Field>| match field.data_type() {
        DataType::Dictionary(_, text) => field.as_ref().clone().with_data_type((**text).clone()),
        _ => field.as_ref().clone(),
    };
    let fields: Vec<Field> = gathered.fields().iter().map(plain).collect();
    Schema::new(fields)
}
