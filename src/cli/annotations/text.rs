//! Tables in text: a line a row under a header, with tabs or commas between the fields.

use super::Annotations;
use super::columns::{Cell, Columns, NAME_COLUMNS};
use crate::error::{Context, Error, Result};
use crate::structure::compression::Compression;
use csv::{ReaderBuilder, StringRecord, Trim};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Adds the rows of a file, and returns the names of its columns. `file_name` is the structure
/// of rows that do not name one.
///
/// # Errors
/// The file cannot be read; a line is wrong.
pub(super) fn read(
    path: &Path,
    separator: u8,
    file_name: &str,
    all: &mut Annotations,
) -> Result<Vec<String>> {
    let text = contents(path).map_err(|error| {
        Error::config(error.to_string())
            .fix("give a readable table in UTF-8, packed with gzip if its name ends in .gz")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut reader = ReaderBuilder::new()
        .delimiter(separator)
        .comment(Some(b'#'))
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let mut record = StringRecord::new();
    let mut table: Option<(Columns, Vec<String>)> = None;
    while reader
        .read_record(&mut record)
        .map_err(|error| Error::config(error.to_string()).fix("write the table as UTF-8"))?
    {
        // Quotes that do not begin the field are left by the reader.
        let fields = || record.iter().map(|field| field.trim_matches('"'));
        if fields().all(str::is_empty) {
            continue;
        }
        let line = line_of(&record, text);
        let place = || format!("line {line}");
        let Some((columns, names)) = &table else {
            let names: Vec<&str> = fields().collect();
            let columns = Columns::find(&names, &all.channels).within(place)?;
            let names = names.into_iter().map(str::to_owned).collect();
            if columns.have_no_channel() {
                return Ok(names);
            }
            table = Some((columns, names));
            continue;
        };
        if record.len() != names.len() {
            let (fields, columns) = (record.len(), names.len());
            let error = Error::config(format!("it has {fields} fields, and the header {columns}"));
            return Err(error
                .fix("give each row all fields, and quote texts that hold a separator")
                .within(place()));
        }
        let row: Vec<Cell<'_>> = fields().map(Cell::Text).collect();
        all.add(columns, &row, file_name, line).within(place)?;
    }
    let empty = || Error::config("it is empty").fix(NAME_COLUMNS);
    table.map(|(_, names)| names).ok_or_else(empty)
}

/// The line of a record, from 1. The reader's position is before the comments and empty lines
/// in front of it.
fn line_of(record: &StringRecord, text: &str) -> usize {
    let Some(position) = record.position() else {
        return 0;
    };
    let lines = text[position.byte() as usize..].lines();
    let is_skipped = |line: &&str| line.is_empty() || line.starts_with('#');
    position.line() as usize + lines.take_while(is_skipped).count()
}

fn contents(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut text = String::new();
    if path.extension().is_some_and(|ending| ending == "gz") {
        let mut unpacked = Compression::Gzip.reader(BufReader::new(file))?;
        unpacked.read_to_string(&mut text)?;
    } else {
        file.read_to_string(&mut text)?;
    }
    Ok(text)
}
