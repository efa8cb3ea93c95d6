mod failures;
mod formats;
mod row_filter;

use super::super::config::{OptionalColumns, Reduction, TableCompression};
use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs;
use tapeloop::features::{
    ColumnDecl, ColumnKind, FeatureTable, NULL_COUNT, TableName, Tolerance, Values,
};
use tapeloop::structure::{Chain, MISSING, Residue, ResidueFlags, Structure, Uniprot};

const SETTINGS: TableSettings = TableSettings {
    written: TableSet::USUAL,
    inputs_per_part: 4,
    residues_per_part: 1000,
    rows_per_group: 7,
    format: TableFormat::Parquet,
    compression: TableCompression::Zstd(1),
    optional: OptionalColumns::NONE,
};

/// The folders of the tables that these tests write.
fn folders() -> impl Iterator<Item = &'static str> {
    super::folders().take(3)
}

/// The settings of each format without compression.
fn formats() -> [TableSettings; 4] {
    TableFormat::ALL.map(|format| TableSettings {
        format,
        compression: TableCompression::None,
        ..SETTINGS
    })
}

fn residue(chain: u32, number: i32) -> Residue {
    Residue {
        chain,
        auth_seq_id: number,
        ins_code: if number == 2 { b'A' } else { 0 },
        label_seq_id: (chain == 0).then_some(number + 10),
        sequence_position: None,
        comp_id: if number == 3 {
            *b"UNK     "
        } else {
            *b"MSE     "
        },
        parent_comp_id: if number == 3 {
            *b"        "
        } else {
            *b"MET     "
        },
        aa: if number == 3 { b'X' } else { b'M' },
        break_before: number == 1 || number == 4,
        n: MISSING,
        ca: MISSING,
        c: MISSING,
        o: MISSING,
        cb: MISSING,
        uniprot: (number == 1).then_some(Uniprot {
            accession: 0,
            position: 77,
        }),
        flags: match number {
            1 => ResidueFlags::SIMULATION_NAME.with(ResidueFlags::ALTERNATE_CHOSEN),
            _ => ResidueFlags::NONE,
        },
    }
}

/// Two chains of residues 1 to `length`, and one without residues between them.
fn structure(length: i32) -> Structure {
    let chain = |name: &str, label: Option<&str>| Chain {
        auth_asym_id: name.into(),
        label_asym_id: label.map(Arc::from),
        entity_id: None,
        sequence: None,
    };
    let numbers = 1..=length;
    let chains = [0, 2].into_iter();
    Structure {
        model: 1,
        xyz: vec![[0; 3]; 5],
        residues: chains
            .flat_map(|chain| numbers.clone().map(move |number| residue(chain, number)))
            .collect(),
        chains: vec![
            chain("AAA", Some("A")),
            chain("empty", None),
            chain("B", None),
        ],
        uniprot: vec!["P12345".into()],
        rounded_atoms: 2,
        ..Structure::default()
    }
}

const SIDES: &[&str] = &["left", "right"];

/// A column of every kind, and one of a structure.
fn decls(table: TableName) -> Vec<ColumnDecl> {
    let decl = |name: &str, kind| ColumnDecl {
        table,
        name: name.into(),
        kind,
        unit: "A",
        about: "A value.".to_owned(),
        null_number: -1.0,
        source: "Somebody 1999",
        idle_when: "",
        reference: Tolerance::EXACT,
        rotation: Tolerance::EXACT,
    };
    match table {
        TableName::Residues => vec![
            decl("count", ColumnKind::Count),
            decl("real", ColumnKind::Real),
            decl("half", ColumnKind::Half),
            decl("flag", ColumnKind::Flag),
            decl("partner", ColumnKind::Chain),
            decl("side", ColumnKind::Text(SIDES)),
        ],
        TableName::Chains => vec![decl("density", ColumnKind::Real)],
        TableName::Structures => vec![decl("rg", ColumnKind::Real)],
        _ => Vec::new(),
    }
}

fn features(rows: usize) -> FeatureTable {
    FeatureTable::new(columns_of(rows))
}

fn columns_of(rows: usize) -> [Vec<Values>; TableName::ALL.len()] {
    let count = |row| if row == 0 { NULL_COUNT } else { row as i32 };
    let real = |row| if row == 1 { f32::NAN } else { row as f32 };
    let bit = |row| if row == 2 { NULL_COUNT } else { row as i32 % 2 };
    let bits = || Values::Count((0..rows).map(bit).collect());
    let mut columns = [const { Vec::new() }; TableName::ALL.len()];
    columns[TableName::Residues as usize] = vec![
        Values::Count((0..rows).map(count).collect()),
        Values::Real((0..rows).map(real).collect()),
        Values::Real((0..rows).map(|row| real(row) / 8.0).collect()),
        bits(),
        bits(),
        bits(),
    ];
    columns[TableName::Chains as usize] = vec![Values::Real(vec![0.5, 1.5, 2.5])];
    columns[TableName::Structures as usize] = vec![Values::Real(vec![3.5])];
    columns
}

/// [`write_all`], without the statistics.
fn write(lengths: &[i32], settings: TableSettings, threads: usize) -> tempfile::TempDir {
    write_all(lengths, settings, threads).0
}

/// Tables without rows, in a folder of their own.
fn start(settings: TableSettings, threads: usize) -> (tempfile::TempDir, Tables) {
    start_with(settings, threads, &[])
}

/// [`start`], with statistics of residues' columns.
fn start_with(
    settings: TableSettings,
    threads: usize,
    reductions: &[Reduction],
) -> (tempfile::TempDir, Tables) {
    let folder = tempfile::tempdir().unwrap();
    for name in folders() {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    let metadata = [("tapeloop.version", "test".to_owned())];
    let tables = Tables::new(
        folder.path(),
        settings,
        &ColumnSources {
            reductions,
            ..ColumnSources::of_features(&decls)
        },
        &metadata,
        Arc::new(pool),
    );
    (folder, tables)
}

/// Writes structures of these lengths, an input each. Returns the folder, the number of parts and
/// the columns' statistics.
fn write_all(
    lengths: &[i32],
    settings: TableSettings,
    threads: usize,
) -> (tempfile::TempDir, u64, Vec<ColumnStatistics>) {
    let (folder, mut tables) = start(settings, threads);
    for (&length, ordinal) in lengths.iter().zip(0..) {
        let structure = structure(length);
        tables.advance(ordinal).unwrap();
        let features = features(structure.residues.len());
        let record = StructureRows::new(format!("in/{ordinal}.pdb"), structure, features);
        tables.append(record).unwrap();
    }
    let (parts, columns) = tables.finish().unwrap();
    (folder, parts, columns)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn open(path: &Path) -> ParquetRecordBatchReaderBuilder<fs::File> {
    ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap()
}

fn read(path: &Path) -> RecordBatch {
    let mut batches = open(path).with_batch_size(1 << 20).build().unwrap();
    let batch = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none());
    batch
}

#[test]
fn parts_end_at_ordinals_and_row_groups_at_rows() {
    let folder = write(&[3, 5, 2, 1, 4, 2], SETTINGS, 2);
    let parts = ["part-00000.parquet", "part-00001.parquet"];
    for name in folders() {
        assert_eq!(names(&folder.path().join(name)), parts);
    }
    let first = open(&folder.path().join("residues").join(parts[0]));
    let groups = first.metadata().row_groups().iter();
    assert_eq!(
        groups.map(|group| group.num_rows()).collect::<Vec<_>>(),
        [7, 7, 7, 1]
    );
    let structures = read(&folder.path().join("structures").join(parts[1]));
    assert_eq!(structures.num_rows(), 2);
}

#[test]
fn a_part_ends_with_the_input_that_brings_it_to_its_residues() {
    // Each structure has two chains of this length.
    let lengths = [3, 5, 2, 1, 4, 2];
    let parts_of = |residues_per_part, inputs_per_part| {
        let settings = TableSettings {
            inputs_per_part,
            residues_per_part,
            ..SETTINGS
        };
        let folder = write(&lengths, settings, 2);
        let parts = names(&folder.path().join("structures")).into_iter();
        let rows = parts.map(|part| read(&folder.path().join("structures").join(part)).num_rows());
        rows.collect::<Vec<_>>()
    };
    assert_eq!(parts_of(14, 100), [2, 3, 1]);
    assert_eq!(parts_of(17, 100), [3, 3]);
    assert_eq!(parts_of(1, 100), [1; 6]);
    assert_eq!(parts_of(34, 100), [6]);
    // Inputs are counted from the start of the part.
    assert_eq!(parts_of(16, 2), [2, 2, 2]);
    assert_eq!(parts_of(6, 2), [1, 1, 2, 1, 1]);
}

#[test]
fn the_structures_of_an_input_are_in_one_part() {
    let settings = TableSettings {
        residues_per_part: 5,
        ..SETTINGS
    };
    let (folder, mut tables) = start(settings, 1);
    for ordinal in [0, 0, 0, 1, 2, 2] {
        tables.advance(ordinal).unwrap();
        let structure = structure(2);
        let features = features(structure.residues.len());
        let record = StructureRows::new(format!("in/{ordinal}.pdb"), structure, features);
        tables.append(record).unwrap();
    }
    let (parts, _) = tables.finish().unwrap();
    assert_eq!(parts, 2);
    let of_part = |part: &str| read(&folder.path().join("structures").join(part)).num_rows();
    let rows = ["part-00000.parquet", "part-00001.parquet"].map(of_part);
    assert_eq!(rows, [3, 3]);
}

#[test]
fn missing_values_are_null_and_no_sentinel_is_stored() {
    let folder = write(&[4], SETTINGS, 1);
    let rows = read(&folder.path().join("residues/part-00000.parquet"));
    let text = |name: &str| -> Vec<Option<String>> {
        let column = rows.column_by_name(name).unwrap().as_string::<i32>();
        column.iter().map(|text| text.map(str::to_owned)).collect()
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(text("source")[7], some("in/0.pdb"));
    assert_eq!(text("ins_code")[..3], [None, some("A"), None]);
    assert_eq!(text("parent_comp_id")[1..3], [some("MET"), None]);
    assert_eq!(text("comp_id")[2], some("UNK"));
    assert_eq!(text("auth_asym_id")[3..5], [some("AAA"), some("B")]);
    assert_eq!(text("label_asym_id")[3..5], [some("A"), None]);
    assert_eq!(text("uniprot_acc")[..2], [some("P12345"), None]);
    assert!(text("entry_id").iter().all(Option::is_none));
    let counts = rows.column_by_name("count").unwrap();
    let counts = counts.as_primitive::<Int32Type>();
    assert!(counts.is_null(0) && counts.value(1) == 1 && counts.null_count() == 1);
    let reals = rows.column_by_name("real").unwrap();
    let reals = reals.as_primitive::<Float32Type>();
    assert!(reals.is_null(1) && reals.value(2) == 2.0 && reals.null_count() == 1);
    let flags = rows.column_by_name("flag").unwrap().as_boolean();
    assert!(flags.is_null(2) && flags.value(1) && !flags.value(4));
    assert_eq!(text("partner")[..3], [some("AAA"), some("empty"), None]);
    assert_eq!(text("side")[1..4], [some("right"), None, some("right")]);
    let index = rows.column_by_name("res_index").unwrap();
    assert!(
        index
            .as_primitive::<Int32Type>()
            .values()
            .iter()
            .copied()
            .eq(0..8)
    );
}

#[test]
fn a_structures_row_counts_breaks_inside_chains_only() {
    let folder = write(&[4], SETTINGS, 1);
    let rows = read(&folder.path().join("structures/part-00000.parquet"));
    let count = |name: &str| {
        let column = rows.column_by_name(name).unwrap();
        column.as_primitive::<Int32Type>().value(0)
    };
    let names = ["residues", "atoms", "chains", "breaks", "rounded_atoms"];
    assert_eq!(names.map(count), [8, 5, 2, 2, 2]);
}

#[test]
fn a_chain_has_a_row_if_it_has_residues_and_its_own_values() {
    let folder = write(&[4, 3], SETTINGS, 1);
    let rows = read(&folder.path().join("chains/part-00000.parquet"));
    let text = |name: &str| -> Vec<String> {
        let column = rows.column_by_name(name).unwrap().as_string::<i32>();
        column.iter().map(|text| text.unwrap().to_owned()).collect()
    };
    assert_eq!(text("auth_asym_id"), ["AAA", "B", "AAA", "B"]);
    assert_eq!(text("structure"), ["0", "0", "1", "1"]);
    let count = |name: &str| {
        let column = rows.column_by_name(name).unwrap();
        column.as_primitive::<Int32Type>().values().to_vec()
    };
    assert_eq!(count("residues"), [4, 4, 3, 3]);
    assert_eq!(count("breaks"), [1, 1, 0, 0]);
    let density = rows.column_by_name("density").unwrap();
    let density = density.as_primitive::<Float32Type>();
    assert_eq!(density.values().to_vec(), [0.5, 2.5, 0.5, 2.5]);
}

#[test]
fn every_column_has_statistics_over_all_its_row_groups_and_parts() {
    let (_folder, parts, columns) = write_all(&[3, 5, 2, 1, 4, 2], SETTINGS, 1);
    assert_eq!(parts, 2);
    let statistics_of = |table, name| {
        let mut columns = columns.iter();
        let column = columns.find(|column| (column.table, column.name.as_str()) == (table, name));
        column.unwrap().values.json()
    };
    let rows = 2.0 * (3 + 5 + 2 + 1 + 4 + 2) as f64;
    let count = statistics_of("residues", "count");
    assert_eq!(
        count["null_share"],
        6.0 / rows,
        "the first of each structure"
    );
    assert_eq!((&count["min"], &count["max"]), (&1.into(), &9.into()));
    assert_eq!(statistics_of("residues", "side")["max"], "right");
    assert_eq!(statistics_of("chains", "density")["max"], 2.5);
    assert_eq!(statistics_of("structures", "rg")["constant"], true);
    assert_eq!(statistics_of("structures", "source")["min"], "in/0.pdb");
}

#[test]
fn the_metadata_of_a_file_has_what_decides_its_values_and_nothing_else() {
    let folder = write(&[1], SETTINGS, 1);
    let part = open(&folder.path().join("residues/part-00000.parquet"));
    let file = part.metadata().file_metadata();
    let created_by = concat!("tapeloop ", env!("CARGO_PKG_VERSION"));
    assert_eq!(file.created_by(), Some(created_by));
    let pairs = file.key_value_metadata().unwrap();
    let keys: Vec<&str> = pairs.iter().map(|pair| pair.key.as_str()).collect();
    assert_eq!(keys, ["tapeloop.version", "ARROW:schema"]);
}

#[test]
fn a_row_group_ends_before_its_text_exceeds_the_offsets() {
    let settings = TableSettings {
        rows_per_group: 1000,
        ..SETTINGS
    };
    let (folder, mut tables) = start(settings, 1);
    let limit = 10_000;
    tables
        .tables
        .iter_mut()
        .for_each(|table| table.group_text_bytes_max = limit);
    tables.advance(0).unwrap();
    let mut rows = 0;
    for number in 0..20 {
        let mut structure = structure(4);
        structure.chains[0].auth_asym_id = format!("{number}{}", "x".repeat(900)).into();
        rows += structure.residues.len();
        let features = features(structure.residues.len());
        let record = StructureRows::new("in".into(), structure, features);
        assert!(record.text_bytes_max(OutputTable::RESIDUES).each_row > 1800);
        tables.append(record).unwrap();
    }
    // More than the limit in one row: a row group of its own.
    let mut large = structure(1);
    large.chains[0].auth_asym_id = "y".repeat(2 * limit).into();
    rows += large.residues.len();
    let features = features(large.residues.len());
    tables
        .append(StructureRows::new("in".into(), large, features))
        .unwrap();
    tables.finish().unwrap();
    let part = open(&folder.path().join("residues/part-00000.parquet"));
    let groups: Vec<i64> = part
        .metadata()
        .row_groups()
        .iter()
        .map(|group| group.num_rows())
        .collect();
    assert_eq!(groups.iter().sum::<i64>(), rows as i64);
    // Each row may have 1,806 bytes and a few more: five of them fit.
    assert!(
        groups[..groups.len() - 3].iter().all(|&rows| rows == 5),
        "{groups:?}"
    );
    assert_eq!(groups[groups.len() - 2..], [1, 1]);
}

#[test]
fn no_part_is_renamed_before_the_parts_of_all_tables_are_complete() {
    let (folder, mut tables) = start(SETTINGS, 1);
    tables.advance(0).unwrap();
    assert_eq!(tables.parts(), 0);
    assert!(!tables.complete(true).unwrap());
    tables.advance(SETTINGS.inputs_per_part).unwrap();
    assert_eq!(tables.parts(), 0, "it is on its way to the disk");
    assert!(tables.complete(true).unwrap());
    assert_eq!(tables.parts(), 1);
    // The last table has lost its open part, so the end of the tables fails there.
    let last = tables.tables.last_mut().unwrap();
    let part = last.part.take();
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tables.finish()));
    assert!(failed.is_err());
    drop(part);
    for name in folders() {
        assert_eq!(names(&folder.path().join(name)), ["part-00000.parquet"]);
    }
}

#[test]
fn only_names_of_parts_have_a_number_and_a_format() {
    for (name, part) in [
        ("part-00000.parquet", (0, TableFormat::Parquet)),
        ("part-00003.arrow", (3, TableFormat::Arrow)),
        (".part-00012.csv.tmp", (12, TableFormat::Csv)),
        ("part-123456.parquet", (123_456, TableFormat::Parquet)),
    ] {
        assert_eq!(part_of_name(name), Some(part), "{name}");
    }
    for name in [
        "part-0.parquet",
        "part-00000",
        "part-00000.tsv",
        "part-00000.csv.gz",
        ".part-00000.parquet",
        "part-00000.parquet.tmp",
        "part-0000a.parquet",
        "part-+0000.parquet",
        "part-99999999999999999999.parquet",
    ] {
        assert_eq!(part_of_name(name), None, "{name}");
    }
}
