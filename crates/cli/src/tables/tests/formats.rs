//! All formats have the same values, and their files are what their readers expect.

use super::*;
use arrow_array::types::Float16Type;
use arrow_ipc::reader::FileReader;
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use parquet::basic::{Compression as Codec, Encoding, Type};
use serde_json::Value as Json;
use std::path::PathBuf;

const LENGTHS: [i32; 6] = [30, 5, 200, 1, 4, 2];

/// Every compression of every format.
fn all_settings() -> Vec<TableSettings> {
    let packed = |format, compression| TableSettings {
        format,
        compression,
        ..SETTINGS
    };
    let mut all = formats().to_vec();
    for format in [TableFormat::Parquet, TableFormat::Arrow] {
        all.push(packed(format, TableCompression::Lz4));
        all.push(packed(format, TableCompression::Zstd(3)));
    }
    all
}

/// The parts of a table, in their order.
fn parts(folder: &tempfile::TempDir, table: &str) -> Vec<PathBuf> {
    let folder = folder.path().join(table);
    let names = names(&folder).into_iter();
    names.map(|name| folder.join(name)).collect()
}

fn read_arrow(path: &Path) -> (RecordBatch, Vec<usize>) {
    let reader = FileReader::try_new(fs::File::open(path).unwrap(), None).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    let rows = batches.iter().map(RecordBatch::num_rows).collect();
    (concat_batches(&schema, &batches).unwrap(), rows)
}

/// The cells of a CSV file under its header.
fn read_csv(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let owned = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
    let header = owned(reader.headers().unwrap());
    let rows = reader.records().map(|record| owned(&record.unwrap()));
    (header, rows.collect())
}

/// The cells of a file of JSON lines in the order of `names`, as [`read_csv`] returns them.
fn read_json(path: &Path, names: &[String]) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    let cells = |line: &str| {
        let object: serde_json::Map<String, Json> = serde_json::from_str(line).unwrap();
        assert_eq!(object.len(), names.len());
        let cell = |name: &String| match &object[name] {
            Json::Null => String::new(),
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        names.iter().map(cell).collect()
    };
    text.lines().map(cells).collect()
}

/// Checks that the cells of a column are the values of `array`.
fn check_cells<'a>(cells: impl Iterator<Item = &'a str>, array: &dyn Array) {
    for (row, cell) in cells.enumerate() {
        let bits = || cell.parse::<f32>().unwrap().to_bits();
        if array.is_null(row) {
            assert_eq!(cell, "");
            continue;
        }
        match array.data_type() {
            DataType::Utf8 => assert_eq!(cell, array.as_string::<i32>().value(row)),
            DataType::Boolean => assert_eq!(cell, array.as_boolean().value(row).to_string()),
            DataType::Int32 => {
                let value = array.as_primitive::<Int32Type>().value(row);
                assert_eq!(cell.parse::<i32>(), Ok(value));
            }
            DataType::Float32 => {
                let value = array.as_primitive::<Float32Type>().value(row);
                assert_eq!(bits(), value.to_bits());
            }
            DataType::Float16 => {
                let value = array.as_primitive::<Float16Type>().value(row);
                assert_eq!(bits(), value.to_f32().to_bits());
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn every_format_and_compression_has_the_same_values_and_the_same_parts() {
    let expected = write(&LENGTHS, SETTINGS, 2);
    for settings in all_settings() {
        let written = write(&LENGTHS, settings, 2);
        for table in folders() {
            let parts = parts(&written, table);
            let expected = self::parts(&expected, table);
            assert_eq!(parts.len(), expected.len());
            for (part, expected) in parts.iter().zip(&expected) {
                let of_parquet = open(expected);
                let groups = of_parquet.metadata().row_groups().iter();
                let groups: Vec<usize> = groups.map(|batch| batch.num_rows() as usize).collect();
                let expected = read(expected);
                match settings.format {
                    TableFormat::Parquet => assert_eq!(read(part), expected),
                    TableFormat::Arrow => {
                        let (found, batches) = read_arrow(part);
                        assert_eq!(batches, groups, "a record batch for each row group");
                        assert_eq!(found.schema().fields(), expected.schema().fields());
                        assert_eq!(found.columns(), expected.columns());
                    }
                    TableFormat::Csv | TableFormat::Json => {
                        let schema = expected.schema();
                        let fields = schema.fields().iter();
                        let names: Vec<String> = fields.map(|field| field.name().clone()).collect();
                        let rows = match settings.format {
                            TableFormat::Json => read_json(part, &names),
                            _ => {
                                let (header, rows) = read_csv(part);
                                assert_eq!(header, names);
                                rows
                            }
                        };
                        assert_eq!(rows.len(), expected.num_rows());
                        for (index, array) in expected.columns().iter().enumerate() {
                            check_cells(rows.iter().map(|row| &*row[index]), array);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_bytes_of_every_format_do_not_depend_on_threads() {
    for settings in all_settings() {
        let written = [1, 3].map(|threads| write(&LENGTHS, settings, threads));
        for table in folders() {
            let [one, three] = written.each_ref().map(|folder| {
                let parts = parts(folder, table).into_iter();
                parts
                    .map(|part| fs::read(part).unwrap())
                    .collect::<Vec<_>>()
            });
            assert_eq!(one.len(), 2);
            assert!(one == three, "{settings:?}");
        }
    }
}

#[test]
fn statistics_do_not_depend_on_the_format() {
    let statistics = |settings| {
        let (_, _, columns) = write_all(&LENGTHS, settings, 2);
        let all = columns.into_iter();
        all.map(|column| (column.name, column.values.json()))
            .collect::<Vec<_>>()
    };
    let [parquet, others @ ..] = formats().map(statistics);
    assert!(others.iter().all(|other| *other == parquet));
}

#[test]
fn a_compression_is_that_of_every_column_but_integers() {
    for (compression, codec) in [
        (TableCompression::None, Codec::UNCOMPRESSED),
        (TableCompression::Lz4, Codec::LZ4_RAW),
        (TableCompression::Zstd(9), Codec::ZSTD(Default::default())),
    ] {
        let settings = TableSettings {
            compression,
            ..SETTINGS
        };
        let folder = write(&LENGTHS, settings, 1);
        let part = open(&folder.path().join("chains/part-00000.parquet"));
        let columns = part.metadata().row_group(0).columns();
        for column in columns {
            // What readers of any age take: byte stream split of integers is newer than many.
            let (expected, encoding) = match column.column_type() {
                Type::INT32 => (Codec::UNCOMPRESSED, Some(Encoding::DELTA_BINARY_PACKED)),
                Type::FLOAT => (codec, Some(Encoding::BYTE_STREAM_SPLIT)),
                _ => (codec, None),
            };
            assert_eq!(column.compression(), expected, "{}", column.column_path());
            let mut encodings = column.encodings();
            assert!(encoding.is_none_or(|wanted| encodings.any(|encoding| encoding == wanted)));
        }
    }
    let bytes = |compression| {
        let settings = TableSettings {
            format: TableFormat::Arrow,
            rows_per_group: 1000,
            compression,
            ..SETTINGS
        };
        let folder = write(&LENGTHS, settings, 1);
        fs::metadata(folder.path().join("residues/part-00000.arrow"))
            .unwrap()
            .len()
    };
    let plain = bytes(TableCompression::None);
    for compression in [TableCompression::Lz4, TableCompression::Zstd(3)] {
        assert!(bytes(compression) < plain, "{compression:?}");
    }
}

#[test]
fn buffers_of_arrow_files_are_aligned_to_be_mapped() {
    let [_, settings, ..] = formats();
    let folder = write(&LENGTHS, settings, 1);
    let bytes = fs::read(folder.path().join("residues/part-00000.arrow")).unwrap();
    let (start, end) = (b"ARROW1\0\0", b"ARROW1");
    assert!(bytes.starts_with(start) && bytes.ends_with(end));
    let length_at = bytes.len() - end.len() - size_of::<i32>();
    let length = bytes[length_at..].first_chunk().unwrap();
    let length = i32::from_le_bytes(*length) as usize;
    let footer = arrow_ipc::root_as_footer(&bytes[length_at - length..length_at]).unwrap();
    let batches = footer.recordBatches().unwrap();
    assert!(batches.len() > 2);
    for batch in batches {
        let head = batch.offset() as usize;
        let body = head + batch.metaDataLength() as usize;
        assert_eq!(body % 64, 0);
        let message = arrow_ipc::root_as_message(&bytes[head + 8..body]).unwrap();
        assert_eq!(message.bodyLength(), batch.bodyLength());
        let buffers = message.header_as_record_batch().unwrap().buffers().unwrap();
        assert!(buffers.iter().all(|buffer| buffer.offset() % 64 == 0));
    }
}

#[test]
fn fields_of_parquet_and_arrow_have_description_unit_and_source() {
    let [parquet, arrow, ..] = formats();
    let [parquet, arrow] = [parquet, arrow].map(|settings| write(&[1], settings, 1));
    let parquet = read(&parquet.path().join("chains/part-00000.parquet"));
    let (arrow, _) = read_arrow(&arrow.path().join("chains/part-00000.arrow"));
    for schema in [parquet.schema(), arrow.schema()] {
        let density = schema.field_with_name("density").unwrap().metadata();
        let all: Vec<(&str, &str)> = density.iter().map(|(k, v)| (&**k, &**v)).collect();
        let expected = [
            ("description", "A value."),
            ("source", "Somebody 1999"),
            ("unit", "A"),
        ];
        assert_eq!(all, expected);
        let named = schema
            .fields()
            .iter()
            .filter(|field| field.name() != "density");
        for field in named {
            assert_eq!(field.metadata().len(), 1, "{field} has a description alone");
        }
    }
}

#[test]
fn the_schema_of_an_arrow_file_has_the_metadata_and_text_has_none() {
    let [_, arrow, csv, _] = formats();
    let folder = write(&[1], arrow, 1);
    let (batch, _) = read_arrow(&folder.path().join("chains/part-00000.arrow"));
    let schema = batch.schema();
    let metadata: Vec<(&str, &str)> = schema
        .metadata()
        .iter()
        .map(|(k, v)| (&**k, &**v))
        .collect();
    assert_eq!(metadata, [("tapeloop.version", "test")]);
    let folder = write(&[1], csv, 1);
    let text = fs::read_to_string(folder.path().join("chains/part-00000.csv")).unwrap();
    let mut lines = text.lines();
    let header = "source,structure,model,entry_id,auth_asym_id,label_asym_id,entity_id,residues,\
                  breaks,sequence,density";
    assert_eq!(lines.next(), Some(header));
    assert_eq!(lines.next(), Some("in/0.pdb,0,1,,AAA,A,,1,0,M,0.5"));
}

#[test]
fn no_input_gives_one_part_without_rows_and_a_dropped_part_gives_nothing() {
    for settings in formats() {
        let folder = write(&[], settings, 1);
        for table in folders() {
            let parts = parts(&folder, table);
            assert_eq!(parts.len(), 1);
            let rows = match settings.format {
                TableFormat::Parquet => open(&parts[0]).metadata().file_metadata().num_rows(),
                TableFormat::Arrow => read_arrow(&parts[0]).0.num_rows() as i64,
                TableFormat::Csv => read_csv(&parts[0]).1.len() as i64,
                TableFormat::Json => read_json(&parts[0], &[]).len() as i64,
            };
            assert_eq!(rows, 0);
        }
        let (folder, mut tables) = start(settings, 1);
        tables.advance(0).unwrap();
        drop(tables);
        assert!(folders().all(|table| names(&folder.path().join(table)).is_empty()));
    }
}

#[test]
fn texts_are_quoted_and_reals_are_the_shortest_of_their_bits() {
    let [_, _, settings, _] = formats();
    let (folder, mut tables) = start(settings, 1);
    tables.advance(0).unwrap();
    let mut structure = structure(8);
    let name = "A, \"x\"\r\n#";
    structure.chains[0].auth_asym_id = name.into();
    let reals = [
        0.1,
        -0.0,
        f32::MAX,
        f32::MIN_POSITIVE / 2.0,
        16_777_216.0,
        f32::INFINITY,
        -2.5e-9,
        f32::NAN,
    ];
    let mut columns = columns_of(16);
    columns[0][1] = Values::Real(reals.iter().chain(&reals).copied().collect());
    let features = FeatureTable::new(columns);
    let record = StructureRows::new("in/a\tb.pdb".into(), structure, features);
    tables.append(record).unwrap();
    tables.finish().unwrap();
    let path = folder.path().join("residues/part-00000.csv");
    let (header, rows) = read_csv(&path);
    let column = |name: &str| {
        let index = header.iter().position(|column| column == name).unwrap();
        rows.iter().map(move |row| &*row[index])
    };
    assert!(column("auth_asym_id").take(8).all(|value| value == name));
    let texts: Vec<&str> = column("real").take(8).collect();
    let expected = [
        "0.1",
        "-0",
        "3.4028235e38",
        "5.877472e-39",
        "16777216",
        "inf",
        "-2.5e-9",
        "",
    ];
    assert_eq!(texts, expected);
    for (text, real) in texts.iter().zip(&reals[..7]) {
        assert_eq!(text.parse::<f32>().unwrap().to_bits(), real.to_bits());
    }
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(",\"A, \"\"x\"\"\r\n#\","));
}

#[test]
fn without_dictionaries_a_row_group_ends_before_the_texts_of_its_rows_exceed_the_offsets() {
    for (settings, rows) in formats().into_iter().zip([16, 2, 2, 2]) {
        let settings = TableSettings {
            rows_per_group: 1000,
            ..settings
        };
        let (_folder, mut tables) = start(settings, 1);
        let table = &mut tables.tables[0];
        table.group_text_bytes_max = 10_000;
        tables.advance(0).unwrap();
        let (structure, features) = (structure(8), features(16));
        // Each text of a row is 4,000 bytes: two rows fit.
        let record = StructureRows::new("s".repeat(2000), structure, features);
        tables.append(record).unwrap();
        assert_eq!(tables.tables[0].group.rows(), rows, "{settings:?}");
    }
}
