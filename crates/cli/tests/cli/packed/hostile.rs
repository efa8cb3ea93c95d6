//! Files of packed sets that other programs made, with what none of them should.

use super::damaged::{set, write};
use super::*;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray};
use arrow_ipc::reader::FileReader;
use arrow_schema::Metadata;
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset};
use std::sync::Arc;

/// The columns of the first record batch of a file, and the metadata of its schema.
fn first_batch(file: &Path) -> (Vec<(String, ArrayRef)>, Metadata) {
    let mut reader = FileReader::try_new(fs::File::open(file).unwrap(), None).unwrap();
    let batch = reader.next().unwrap().unwrap();
    let schema = batch.schema();
    let names = schema.fields().iter().map(|field| field.name().clone());
    let fields = names.zip(batch.columns().iter().map(Arc::clone));
    (fields.collect(), schema.metadata().clone())
}

/// An Arrow file without rows, with a column of 20,000 fields that share a name of 60,000 bytes.
fn shared_names() -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let name = builder.create_string(&"n".repeat(60_000));
    let children = builder.create_vector::<ForwardsUOffset<arrow_ipc::Field>>(&[]);
    let null = arrow_ipc::NullBuilder::new(&mut builder).finish();
    let mut field = arrow_ipc::FieldBuilder::new(&mut builder);
    field.add_name(name);
    field.add_type_type(arrow_ipc::Type::Null);
    field.add_type_(null.as_union_value());
    field.add_children(children);
    let field = field.finish();
    let fields = builder.create_vector(&vec![field; 20_000]);
    let mut schema = arrow_ipc::SchemaBuilder::new(&mut builder);
    schema.add_fields(fields);
    let schema = schema.finish();
    let mut footer = arrow_ipc::FooterBuilder::new(&mut builder);
    footer.add_version(arrow_ipc::MetadataVersion::V5);
    footer.add_schema(schema);
    let footer = footer.finish();
    builder.finish(footer, None);
    let footer = builder.finished_data();
    let length = footer.len() as i32;
    [b"ARROW1\0\0", footer, &length.to_le_bytes(), b"ARROW1"].concat()
}

#[test]
fn a_footer_takes_no_more_memory_than_its_size_allows() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shared.arrow");
    let bytes = shared_names();
    assert!(bytes.len() < 150_000);
    fs::write(&file, bytes).unwrap();
    let (_, code, said) = command(&["inspect", str_of(&file)]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("damaged"), "{said}");
}

#[test]
fn a_column_of_any_type_may_stand_besides() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _) = set(folder.path());
    let (mut fields, metadata) = first_batch(&file);
    let keys = DictionaryArray::<Int32Type>::from_iter(["a"; 3]);
    fields.push(("note".to_owned(), Arc::new(keys)));
    let expected = inspect(&file, &[])["atoms"].clone();
    // As in a run, the ending may be in either case.
    fs::remove_file(&file).unwrap();
    let file = file.with_file_name("OTHER.ARROW");
    write(&file, fields, metadata);
    assert_eq!(inspect(file.parent().unwrap(), &[])["atoms"], expected);
}

#[test]
fn texts_of_a_set_are_printed_without_control_characters() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _) = set(folder.path());
    let (fields, mut metadata) = first_batch(&file);
    let annotations = r#"{"channels": ["\u001b[31mred"]}"#;
    metadata.insert("tapeloop.annotations".to_owned(), annotations.to_owned());
    let reader = r#"{"\u001b[31mkey": 1}"#;
    metadata.insert("tapeloop.reader".to_owned(), reader.to_owned());
    write(&file, fields, metadata);
    let (output, code, said) = command(&["inspect", str_of(&file)]);
    let shown = text(&output.stdout);
    assert_eq!(code, 0, "{said}");
    assert!(
        shown.contains("[31mred") && shown.contains("[31mkey"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[cfg(unix)]
#[test]
fn a_fifo_is_no_file_of_a_set() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("a.arrow");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    for set in [&fifo, folder.path()] {
        let (_, code, said) = command(&["inspect", str_of(set)]);
        assert!(code == 1 && said.contains("FIFO"), "{said}");
    }
}
