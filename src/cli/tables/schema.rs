//! The columns of a table and how Parquet stores them.

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

/// What a column holds, which determines its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Names that repeat: a dictionary.
    Text,
    /// Words from a small set, such as one-letter codes: a dictionary. No reader could skip rows by
    /// their smallest and largest value, so these are not stored.
    Word,
    /// Integers: differences, which take fewer bytes than a dictionary.
    Integer,
    /// Reals that do not repeat: byte stream split, which compresses better.
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

    fn store(&self, properties: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
        let path = ColumnPath::from(self.name.as_str());
        let plain = |properties: WriterPropertiesBuilder, encoding| {
            properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), encoding)
        };
        match self.kind {
            Kind::Text | Kind::Flag => properties,
            Kind::Word => {
                properties.set_column_statistics_enabled(path.clone(), EnabledStatistics::None)
            }
            Kind::Integer => plain(properties, Encoding::DELTA_BINARY_PACKED),
            Kind::Real | Kind::Half => plain(properties, Encoding::BYTE_STREAM_SPLIT),
        }
    }
}

/// The Arrow schema of `columns`.
pub(super) fn arrow_schema<'a>(columns: impl Iterator<Item = &'a ColumnSpec>) -> SchemaRef {
    let fields: Vec<Field> = columns.map(ColumnSpec::field).collect();
    Arc::new(Schema::new(fields))
}

/// How a file with `columns` is written. `metadata` becomes the file's key-value metadata. The
/// name of the writer is fixed, so that the same values give the same bytes.
pub(super) fn properties<'a>(
    columns: impl Iterator<Item = &'a ColumnSpec>,
    compression_level: i32,
    metadata: &[(&'static str, String)],
) -> WriterProperties {
    let level = ZstdLevel::try_new(compression_level).expect("the config checks the range");
    let pair = |(key, value): &(&'static str, String)| {
        KeyValue::new((*key).to_owned(), Some(value.clone()))
    };
    let properties = WriterProperties::builder()
        .set_created_by(concat!("tapeloop ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(level))
        // The table writer cuts row groups itself.
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(metadata.iter().map(pair).collect()));
    columns
        .fold(properties, |properties, column| column.store(properties))
        .build()
}
