use super::columns::PackedColumns;
use super::rows::RowBuilders;
use super::schema::{check, fields_of, schema};
use super::*;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StringArray, StructArray, UInt32Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, Schema};
use std::sync::Arc;
use tapeloop_error::{Error, ErrorKind, Result};
use tapeloop_structure::{
    Channel, Check, LooseSpan, MISSING, ReadLimits, ReadOptions, Reader, Structure, Truncation,
    Uniprot,
};

fn sample(name: &str) -> Structure {
    let samples = tapeloop_test_support::repository("samples");
    let mut reader = Reader::new(ReadOptions::default());
    reader.read_path(&samples.join(name)).unwrap().remove(0)
}

/// What comes back of structures that were packed.
fn packed(structures: Vec<Result<Structure>>, limits: &ReadLimits) -> Vec<Result<Structure>> {
    let mut rows = RowBuilders::default();
    for (input, structure) in (0..).zip(&structures) {
        rows.add(input, "x.pdb", structure.as_ref());
    }
    let schema = Arc::new(schema(&SetSettings::default()));
    let columns = PackedColumns::new(rows.finish(&schema).unwrap()).unwrap();
    assert_eq!(columns.rows(), structures.len());
    let read = |row| match columns.error(row) {
        Some(error) => Err(error),
        None => columns
            .structures(row..row + 1, limits)
            .map(|mut all| all.remove(0)),
    };
    (0..structures.len()).map(read).collect()
}

#[test]
fn structures_and_errors_come_back_as_they_were() {
    let names = [
        "1ubi.pdb",
        "1lcd.pdb.gz",
        "1a8o.cif.gz",
        "1gbt.cif.gz",
        "7etn.cif.gz",
    ];
    let mut structures: Vec<Structure> = names.map(sample).into();
    let truncations = [
        None,
        Some(Truncation::NoEnd),
        Some(Truncation::LineBrokenOff),
        Some(Truncation::AtomsMissing { master: 9, read: 8 }),
    ];
    for (structure, truncation) in structures.iter_mut().zip(truncations) {
        structure.truncation = truncation;
        structure.rounded_atoms = 3;
        structure.residues[0].ins_code = 0xe4;
        structure.residues[1].ins_code = b'A';
    }
    assert!(
        structures
            .iter()
            .any(|structure| !structure.loose.is_empty())
    );
    assert!(
        structures
            .iter()
            .any(|structure| !structure.uniprot.is_empty())
    );
    let values = vec![0.5; structures[0].residues.len()];
    structures[0].channels.push(Channel {
        name: "x".to_owned(),
        values,
    });
    let read = packed(
        structures.iter().cloned().map(Ok).collect(),
        &ReadLimits::default(),
    );
    for (read, structure) in read.into_iter().zip(&structures) {
        assert!(read.unwrap() == *structure);
    }
    let error = Error::new(ErrorKind::Capacity, "too large")
        .fix("less")
        .within("a place");
    let plain = Error::input("no fix");
    let read = packed(
        vec![Err(error), Ok(structures.remove(0)), Err(plain)],
        &ReadLimits::default(),
    );
    let errors: Vec<_> = read.into_iter().filter_map(Result::err).collect();
    assert_eq!(errors[0].to_string(), "a place: too large (fix: less)");
    assert_eq!(
        (errors[0].kind(), errors[0].fix_text()),
        (ErrorKind::Capacity, Some("less"))
    );
    assert_eq!(
        (errors[1].kind(), errors[1].fix_text()),
        (ErrorKind::Input, None)
    );
}

#[test]
fn parts_that_do_not_fit_each_other_reject_a_structure() {
    type Change = fn(&mut Structure);
    let changes: [(Change, &str); 9] = [
        (
            |structure| structure.residues[3].chain = 7,
            "chain or an atom",
        ),
        (
            |structure| structure.residues[3].ca = 100_000,
            "chain or an atom",
        ),
        (
            |structure| structure.residues[3].cb = MISSING - 1,
            "chain or an atom",
        ),
        (|structure| structure.atom_start[1] += 1, ""),
        (
            |structure| *structure.atom_start.last_mut().unwrap() += 1,
            "its residues",
        ),
        (
            |structure| {
                structure.loose.push(LooseSpan {
                    chain: 0,
                    atom_count: u32::MAX,
                })
            },
            "its residues",
        ),
        (
            |structure| {
                structure.loose.push(LooseSpan {
                    chain: 9,
                    atom_count: 0,
                })
            },
            "a chain",
        ),
        (
            |structure| {
                structure.residues[0].uniprot = Some(Uniprot {
                    accession: 3,
                    position: 1,
                })
            },
            "accession",
        ),
        (
            |structure| {
                structure.channels.push(Channel {
                    name: "x".to_owned(),
                    values: vec![1.0],
                })
            },
            "annotation",
        ),
    ];
    for (change, said) in changes {
        let mut structure = sample("1ubi.pdb");
        change(&mut structure);
        match packed(vec![Ok(structure)], &ReadLimits::default()).remove(0) {
            Ok(_) => assert_eq!(said, ""),
            Err(error) => assert!(
                !said.is_empty() && error.message().contains(said),
                "{error}"
            ),
        }
    }
    let limits = ReadLimits {
        name_bytes_max: 3,
        ..ReadLimits::default()
    };
    let error = packed(vec![Ok(sample("1a8o.cif.gz"))], &limits)
        .remove(0)
        .unwrap_err();
    assert!(
        error.message().contains("limits.name_bytes_max is 3"),
        "{error}"
    );
}

#[test]
fn files_of_earlier_programs_have_no_method_resolution_and_title() {
    let later = ["method", "resolution", "title"];
    let settings = SetSettings::default();
    let schema = Arc::new(schema(&settings));
    let structure = sample("1a8o.cif.gz");
    assert!(structure.method.is_some() && structure.resolution.is_some());
    let mut rows = RowBuilders::default();
    rows.add(0, "x.cif", Ok(&structure));
    let batch = rows.finish(&schema).unwrap();
    let kept: Vec<usize> = (0..schema.fields().len())
        .filter(|&index| !later.contains(&schema.field(index).name().as_str()))
        .collect();
    let batch = batch.project(&kept).unwrap();
    assert_eq!(batch.num_columns() + later.len(), schema.fields().len());
    assert!(check(&batch.schema()).is_ok());
    let columns = PackedColumns::new(batch).unwrap();
    let limits = ReadLimits::default();
    let read = columns.structures(0..1, &limits).unwrap().remove(0);
    let earlier = Structure {
        method: None,
        resolution: None,
        title: None,
        ..structure
    };
    assert!(read == earlier);
}

/// The batch without a field of the structs in a column of lists.
fn without_field(batch: &RecordBatch, column: &str, field: &str) -> RecordBatch {
    let schema = batch.schema();
    let index = schema.index_of(column).unwrap();
    let list = batch.column(index).as_list::<i32>();
    let structs = list.values().as_struct();
    let fields = structs.fields().iter().zip(structs.columns());
    let kept = fields.filter(|(kept_field, _)| kept_field.name() != field);
    let (fields, arrays): (Vec<_>, Vec<_>) = kept
        .map(|(kept_field, array)| (Arc::clone(kept_field), Arc::clone(array)))
        .unzip();
    assert_eq!(fields.len() + 1, structs.num_columns());
    let items = StructArray::new(fields.into(), arrays, None);
    let item = Arc::new(Field::new_list_field(items.data_type().clone(), false));
    let list = ListArray::new(item, list.offsets().clone(), Arc::new(items), None);
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    fields[index] = Arc::new(Field::new(column, list.data_type().clone(), false));
    let mut columns = batch.columns().to_vec();
    columns[index] = Arc::new(list);
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

#[test]
fn files_of_earlier_programs_have_no_positions_in_seqres_and_no_names_of_atoms() {
    for name in ["1a8o.pdb", "1a8o.cif.gz"] {
        let structure = sample(name);
        let mut rows = RowBuilders::default();
        rows.add(0, "x", Ok(&structure));
        let batch = rows
            .finish(&Arc::new(schema(&SetSettings::default())))
            .unwrap();
        let batch = without_field(&batch, "residues", "sequence_position");
        let batch = without_field(&batch, "atoms", "atom_name");
        assert!(check(&batch.schema()).is_ok());
        let columns = PackedColumns::new(batch).unwrap();
        let limits = ReadLimits::default();
        let read = columns.structures(0..1, &limits).unwrap().remove(0);
        let mut earlier = structure.clone();
        earlier.atom_name.clear();
        for residue in &mut earlier.residues {
            assert!(residue.sequence_position.is_some());
            residue.sequence_position = residue.label_seq_id;
        }
        assert!(read == earlier && !structure.atom_name.is_empty());
    }
}

#[test]
fn findings_that_only_a_later_program_has_hide_no_others() {
    let schema = Arc::new(schema(&SetSettings::default()));
    let mut rows = RowBuilders::default();
    rows.add(0, "x.pdb", Ok(&sample("1ubi.pdb")));
    let batch = rows.finish(&schema).unwrap();
    let mut names: Vec<String> = Check::ALL
        .iter()
        .map(|check| format!("later_{}", check.name()))
        .collect();
    names.push(Check::Truncated.name().to_owned());
    let count = names.len();
    let items: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(names)),
        Arc::new(UInt32Array::from(vec![5; count])),
        Arc::new(StringArray::from(vec!["here"; count])),
    ];
    let index = schema.index_of("findings").unwrap();
    let data_type = schema.field(index).data_type();
    let items = StructArray::new(fields_of(data_type), items, None);
    let item = Arc::new(Field::new_list_field(items.data_type().clone(), false));
    let lists = OffsetBuffer::from_lengths([count]);
    let mut columns = batch.columns().to_vec();
    columns[index] = Arc::new(ListArray::new(item, lists, Arc::new(items), None));
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let columns = PackedColumns::new(batch).unwrap();
    let limits = ReadLimits::default();
    let read = columns.structures(0..1, &limits).unwrap().remove(0);
    assert_eq!(read.findings.iter().count(), 1);
    assert_eq!(read.findings.count(Check::Truncated), 5);
}

#[test]
fn methods_resolutions_and_titles_by_other_programs_are_as_readers_give_them() {
    let mut structure = sample("1ubi.pdb");
    structure.title = Some(" A  long\ttitle ".repeat(200).into());
    structure.method = Some(" ".into());
    structure.resolution = Some(f32::NAN);
    let read = packed(vec![Ok(structure)], &ReadLimits::default()).remove(0);
    let read = read.unwrap();
    let title = read.title.unwrap();
    assert!(title.starts_with("A long title A long") && title.len() <= 1024);
    assert_eq!((read.method, read.resolution), (None, None));
}
