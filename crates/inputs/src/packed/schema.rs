//! The columns of a packed file.

use super::settings::SetSettings;
use arrow_schema::{DataType, Field, Fields, Schema};
use std::collections::HashMap;
use std::sync::Arc;
use tapeloop_error::{Error, Result};

/// The key of the version in the schema's metadata. A file without it is no packed file.
const VERSION_KEY: &str = "tapeloop.packed";
const VERSION: &str = "1";

/// The keys of the settings in the schema's metadata.
const READER_KEY: &str = "tapeloop.reader";
const ANNOTATIONS_KEY: &str = "tapeloop.annotations";

/// The key of the checksums in the footer's metadata, which Arrow readers ignore: the CRC-32 of
/// each record batch, metadata and body, as eight hexadecimal digits.
pub(super) const CHECKSUMS_KEY: &str = "tapeloop.crc32";

/// The key in the footer's metadata of a file after which the set goes on in another file.
pub(super) const FOLLOWED_KEY: &str = "tapeloop.followed";

/// Columns that sets of earlier programs lack. Their structures have nulls in these.
const LATER_COLUMNS: [&str; 4] = ["method", "resolution", "title", "findings"];

/// Fields of structs that sets of earlier programs lack. Their structs have nulls in these.
const LATER_FIELDS: [&str; 3] = ["sequence_position", "atom_name", "flags"];

fn required(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, false)
}

fn optional(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, false)))
}

fn structs<const N: usize>(fields: [Field; N]) -> DataType {
    DataType::Struct(Fields::from(fields.to_vec()))
}

/// The columns in the order in which they are written. A search for names reads only the start of a
/// record batch, so `source` and `input` come first.
pub(super) fn columns() -> Fields {
    use DataType::{Boolean, Float32, Int32, UInt8, UInt32, Utf8};
    let point = DataType::FixedSizeList(Arc::new(Field::new_list_field(Int32, false)), 3);
    Fields::from(vec![
        required("source", Utf8),
        required("input", UInt32),
        required("model", Int32),
        optional("entry_id", Utf8),
        optional("method", Utf8),
        optional("resolution", Float32),
        optional("title", Utf8),
        required("assembly", Utf8),
        required("b_factor_kind", Utf8),
        required("plddt_scaled", Boolean),
        required("rounded_atoms", UInt32),
        optional(
            "truncation",
            structs([
                required("kind", Utf8),
                optional("master", UInt32),
                optional("read", UInt32),
            ]),
        ),
        required(
            "findings",
            list(structs([
                required("check", Utf8),
                required("count", UInt32),
                required("first", Utf8),
            ])),
        ),
        optional(
            "error",
            structs([
                required("kind", Utf8),
                required("reason", Utf8),
                optional("fix", Utf8),
            ]),
        ),
        required(
            "chains",
            list(structs([
                required("auth_asym_id", Utf8),
                optional("label_asym_id", Utf8),
                optional("entity_id", Utf8),
            ])),
        ),
        required("uniprot", list(Utf8)),
        required(
            "residues",
            list(structs([
                required("chain", UInt32),
                required("auth_seq_id", Int32),
                optional("ins_code", Utf8),
                optional("label_seq_id", Int32),
                optional("sequence_position", Int32),
                required("comp_id", Utf8),
                required("parent_comp_id", Utf8),
                required("aa", Utf8),
                required("break_before", Boolean),
                required("atom_count", UInt32),
                optional("n", UInt32),
                optional("ca", UInt32),
                optional("c", UInt32),
                optional("o", UInt32),
                optional("cb", UInt32),
                optional("uniprot", UInt32),
                optional("uniprot_position", Int32),
                required("flags", UInt8),
            ])),
        ),
        required(
            "loose",
            list(structs([
                required("chain", UInt32),
                required("atom_count", UInt32),
            ])),
        ),
        required(
            "channels",
            list(structs([
                required("name", Utf8),
                required("values", list(Float32)),
            ])),
        ),
        required(
            "atoms",
            list(structs([
                required("xyz", point),
                required("element", UInt8),
                required("class", UInt8),
                required("atom_name", UInt8),
                required("b_factor", Float32),
            ])),
        ),
    ])
}

/// The fields of a column of structs, or of lists of structs.
pub(super) fn fields_of(data_type: &DataType) -> Fields {
    match data_type {
        DataType::Struct(fields) => fields.clone(),
        DataType::List(item) => fields_of(item.data_type()),
        _ => Fields::empty(),
    }
}

/// The schema of a file of a set with these settings.
pub(super) fn schema(settings: &SetSettings) -> Schema {
    let mut metadata = HashMap::from([(VERSION_KEY.to_owned(), VERSION.to_owned())]);
    if let Some(reader) = settings.reader_text() {
        metadata.insert(READER_KEY.to_owned(), reader);
    }
    if let Some(annotations) = &settings.annotations {
        metadata.insert(ANNOTATIONS_KEY.to_owned(), annotations.clone());
    }
    Schema::new_with_metadata(columns(), metadata)
}

/// Whether a file has this schema because it is a packed file, whatever its version.
pub(super) fn is_packed(schema: &Schema) -> bool {
    schema.metadata.contains_key(VERSION_KEY)
}

/// Checks that a file has all columns but for [`LATER_COLUMNS`], and returns its settings.
///
/// # Errors
/// Of kind `Input`: the file is no packed file, or of another version; a column is missing or of another type.
pub(super) fn check(schema: &Schema) -> Result<SetSettings> {
    match schema.metadata.get(VERSION_KEY).map(String::as_str) {
        Some(VERSION) => {}
        None => {
            let error = Error::input("this is an Arrow file, but not a file of a packed set");
            return Err(error.fix("make a set with `tapeloop pack`"));
        }
        Some(other) => {
            let message = format!(
                "the packed set is of version {other:?}, and this program reads {VERSION:?}"
            );
            return Err(Error::input(message).fix("pack the files again"));
        }
    }
    for column in &columns() {
        let found = schema.field_with_name(column.name()).ok();
        if found.is_none() && LATER_COLUMNS.contains(&column.name().as_str()) {
            continue;
        }
        if found.is_some_and(|found| is_same(found.data_type(), column.data_type())) {
            continue;
        }
        let name = column.name();
        let message = match found {
            None => format!("the packed set has no column `{name}`"),
            Some(_) => format!("column `{name}` of the packed set has another type"),
        };
        return Err(Error::input(message).fix(format!("make it {}", column.data_type())));
    }
    let metadata = &schema.metadata;
    let annotations = metadata.get(ANNOTATIONS_KEY).cloned();
    SetSettings::parse(metadata.get(READER_KEY).map(String::as_str), annotations)
}

/// Whether the type `a` of a file is `b`, but for what may be null and what the items of lists are
/// called: programs differ in both. It may lack [`LATER_FIELDS`].
fn is_same(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::List(a), DataType::List(b)) => is_same(a.data_type(), b.data_type()),
        (DataType::FixedSizeList(a, n), DataType::FixedSizeList(b, m)) => {
            n == m && is_same(a.data_type(), b.data_type())
        }
        (DataType::Struct(a), DataType::Struct(b)) => {
            let is_same_field = |(a, b): (&Arc<Field>, &&Arc<Field>)| {
                a.name() == b.name() && is_same(a.data_type(), b.data_type())
            };
            let is_expected = |b: &&Arc<Field>| {
                !LATER_FIELDS.contains(&b.name().as_str()) || a.find(b.name()).is_some()
            };
            let b: Vec<_> = b.iter().filter(is_expected).collect();
            a.len() == b.len() && a.iter().zip(&b).all(is_same_field)
        }
        (a, b) => a == b,
    }
}
