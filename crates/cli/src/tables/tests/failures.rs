//! What fails in a task of the pool, or in a file, ends the tables with its error, and no part of
//! the failed number has its name.

use super::super::column::TableColumn;
use super::*;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Runs `work` on a thread of its own, and panics if it does not end.
fn within_a_minute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, result) = mpsc::channel();
    thread::spawn(move || {
        let _ = sender.send(work());
    });
    let result = result.recv_timeout(Duration::from_secs(60));
    result.expect("the tables end")
}

fn append(tables: &mut Tables, length: i32) -> Result<()> {
    let structure = structure(length);
    let features = features(structure.residues.len());
    let record = StructureRows::new("in/x.pdb".into(), structure, features);
    tables.append(record).map(drop)
}

/// Appends structures, and finishes the tables.
fn write_some(mut tables: Tables) -> Result<()> {
    for ordinal in 0..3 {
        tables.advance(ordinal)?;
        append(&mut tables, 40)?;
    }
    tables.finish().map(drop)
}

/// Puts a column into a table.
fn put_column(tables: &mut Tables, table: usize, column: TableColumn) {
    let name = OutputTable::ALL[table];
    let mut columns =
        columns::columns(name, &ColumnSources::of_features(&decls), SETTINGS.optional);
    columns[2] = column;
    tables.tables[table].files.columns = columns.into();
}

/// A column whose values cannot be gathered.
fn broken() -> TableColumn {
    TableColumn::integer("broken", "", |_, _| panic!("no value"))
}

#[test]
fn a_task_that_panics_ends_the_tables_with_its_error_and_leaves_no_part() {
    // A row group that ends gathers those of the other tables, so only that of the residues may.
    let cases = [(0, 7), (0, 1000), (1, 1000), (2, 1000)];
    for (settings, (table, rows_per_group)) in formats()
        .into_iter()
        .flat_map(|settings| cases.map(|case| (settings, case)))
    {
        let settings = TableSettings {
            rows_per_group,
            ..settings
        };
        for threads in [1, 3] {
            let (folder, mut tables) = start(settings, threads);
            put_column(&mut tables, table, broken());
            let error = within_a_minute(|| write_some(tables)).unwrap_err();
            let share = match settings.format {
                TableFormat::Csv | TableFormat::Json => "rows",
                _ => "column broken",
            };
            let expected = format!("{share}: encoding panicked: no value");
            assert_eq!(error.to_string(), expected);
            for name in folders() {
                assert!(names(&folder.path().join(name)).is_empty());
            }
        }
    }
}

#[test]
fn after_a_task_that_fails_the_parts_that_were_complete_stay() {
    for settings in formats() {
        let (folder, mut tables) = start(settings, 2);
        let error = within_a_minute(move || {
            tables.advance(0).unwrap();
            append(&mut tables, 40).unwrap();
            tables.end_part().unwrap();
            tables.complete(true).unwrap();
            put_column(&mut tables, 0, broken());
            tables.advance(SETTINGS.inputs_per_part).unwrap();
            append(&mut tables, 40).and_then(|()| tables.finish().map(drop))
        });
        assert!(error.unwrap_err().to_string().contains("no value"));
        for name in folders() {
            let left = names(&folder.path().join(name));
            assert_eq!(left, [part_name(0, settings.format)]);
        }
    }
}

#[test]
fn a_part_that_fails_on_its_way_to_the_disk_says_so_once() {
    for settings in formats() {
        // Its rows are encoded when it ends.
        let settings = TableSettings {
            rows_per_group: 1000,
            ..settings
        };
        let (folder, mut tables) = start(settings, 2);
        let tables = within_a_minute(move || {
            put_column(&mut tables, 0, broken());
            tables.advance(0).unwrap();
            append(&mut tables, 40).unwrap();
            let ended = tables.advance(SETTINGS.inputs_per_part);
            let error = ended.and_then(|()| tables.complete(true)).unwrap_err();
            assert!(error.to_string().contains("no value"), "{error}");
            assert!(!tables.complete(true).unwrap());
            assert_eq!(tables.parts(), 0);
            tables
        });
        drop(tables);
        for name in folders() {
            assert!(names(&folder.path().join(name)).is_empty(), "{name}");
        }
    }
}

#[test]
fn an_error_of_a_format_ends_the_tables_and_leaves_no_part() {
    let [_, settings, ..] = formats();
    let (folder, mut tables) = start(settings, 2);
    put_column(
        &mut tables,
        0,
        TableColumn::integer("broken", "", |_, _| None),
    );
    let error = within_a_minute(|| write_some(tables)).unwrap_err();
    assert!(error.to_string().contains("non-nullable"), "{error}");
    for name in folders() {
        assert!(names(&folder.path().join(name)).is_empty());
    }
}

#[test]
fn a_folder_that_is_gone_ends_the_tables_and_leaves_no_part_of_any_table() {
    for settings in formats() {
        for gone in folders() {
            let (folder, mut tables) = start(settings, 2);
            let root = folder.path().to_owned();
            let error = within_a_minute(move || {
                tables.advance(0).unwrap();
                append(&mut tables, 40).unwrap();
                fs::remove_dir_all(root.join(gone)).unwrap();
                append(&mut tables, 40).and_then(|()| tables.finish().map(drop))
            });
            let said = error.unwrap_err().to_string();
            assert!(said.contains(gone), "{said}");
            for name in folders().filter(|name| *name != gone) {
                assert!(names(&folder.path().join(name)).is_empty(), "{name}");
            }
            // Nor can the next part be started.
            let (folder, mut tables) = start(settings, 2);
            fs::remove_dir_all(folder.path().join(gone)).unwrap();
            assert!(tables.advance(0).is_err());
        }
    }
}
