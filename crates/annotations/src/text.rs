//! Tables in text: a header line, then a line for each row, with tabs or commas between the fields.

use super::columns::NAME_COLUMNS;
use super::loader::Loader;
use super::records::TextRecords;
use super::values::AnnotationCell;
use std::io::{BufRead, BufReader};
use std::path::Path;
use tapeloop_error::{Context, Error, Result};
use tapeloop_files::open_stream;
use tapeloop_structure::internal::Compression;

/// Adds the rows of a file. `file_name` is the structure of rows that do not name one.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config): the file cannot be read, or a line is wrong.
pub(super) fn read(
    path: &Path,
    separator: u8,
    file_name: &str,
    all: &mut Loader<'_>,
) -> Result<()> {
    let reader = open(path).map_err(|error| {
        Error::config(error.to_string())
            .fix("give a readable table in UTF-8, packed with gzip if its name ends in .gz")
    })?;
    let mut records = TextRecords::new(reader, separator);
    let empty = || Error::config("the table is empty").fix(NAME_COLUMNS);
    let (line, header) = records.next()?.ok_or_else(empty)?;
    let names: Vec<&str> = header.iter().collect();
    let columns = names.len();
    if let [name] = names[..]
        && name.contains([',', ';', '\t', '|'])
    {
        let error = Error::config("the header is one field");
        return Err(error
            .fix("put commas between the fields of a .csv file, and tabs between those of a .tsv")
            .within(format!("line {line}")));
    }
    let begun = all.begin(&names, &[]).within(|| format!("line {line}"))?;
    let Some(mut table) = begun else {
        return Ok(());
    };
    while let Some((line, fields)) = records.next()? {
        let place = || format!("line {line}");
        if fields.len() != columns {
            let fields = fields.len();
            let error = Error::config(format!(
                "the row has {fields} fields, and the header has {columns}"
            ));
            return Err(error
                .fix("give each row all fields, and quote texts that hold a separator")
                .within(place()));
        }
        let cells: Vec<AnnotationCell<'_>> = fields.iter().map(AnnotationCell::Text).collect();
        all.add(&mut table, &cells, file_name, line).within(place)?;
    }
    Ok(())
}

/// Opens a table, and unpacks it while it is read if its name ends in .gz.
fn open(path: &Path) -> std::io::Result<Box<dyn BufRead>> {
    // Eight times the default, for fewer reads.
    const BUFFER_BYTES: usize = 64 << 10;
    let file = BufReader::with_capacity(BUFFER_BYTES, open_stream(path)?);
    Ok(if path.extension().is_some_and(|ending| ending == "gz") {
        Box::new(BufReader::with_capacity(
            BUFFER_BYTES,
            Compression::Gzip.reader(file)?,
        ))
    } else {
        Box::new(file)
    })
}
