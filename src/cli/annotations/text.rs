//! Tables as text: a line a row under a header, tabs or commas between.

use super::super::inputs::structure_name;
use super::header::{NAMES_COLUMNS, finite, insertion_code, is_null, residue_number, structure};
use super::{Annotations, Header, Key};
use crate::error::{Context, Error, Result};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Adds the rows of a file, and returns its columns.
///
/// # Errors
/// It cannot be read; what is wrong with a line.
pub(super) fn read(path: &Path, separator: char, all: &mut Annotations) -> Result<Vec<String>> {
    let text = text_of(path).map_err(|error| {
        Error::config(error.to_string())
            .fix("give a table that can be read: text as UTF-8, under a name with .gz packed so")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let is_row = |(_, line): &(usize, &str)| !line.trim().is_empty() && !line.starts_with('#');
    let mut lines = (1..).zip(text.lines()).filter(is_row);
    let fields = |line| str::split(line, separator).map(unquoted);
    let is_empty = || Error::config("it is empty").fix(NAMES_COLUMNS);
    let (line, names) = lines.next().ok_or_else(is_empty)?;
    let names: Vec<&str> = fields(names).collect();
    let header = Header::of(&names, &all.channels).within(|| format!("line {line}"))?;
    let columns: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    if header.channels.is_empty() {
        return Ok(columns);
    }
    let source = path.to_string_lossy();
    let of_file = structure_name(&source);
    let mut row = Vec::with_capacity(names.len());
    let mut values = vec![f32::NAN; all.channels.len()];
    for (line, text) in lines {
        row.clear();
        row.extend(fields(text));
        let key = take(&header, &row, names.len(), of_file, &mut values);
        let key = key.within(|| format!("line {line}"))?;
        all.add(key, line, &values);
    }
    Ok(columns)
}

/// The residue of a row, and its values by channel.
fn take<'a>(
    header: &Header,
    row: &[&'a str],
    columns: usize,
    of_file: &'a str,
    values: &mut [f32],
) -> Result<Key<'a>> {
    if row.len() != columns {
        let text = format!("it has {} fields, not {columns} as the header", row.len());
        return Err(Error::config(text).fix(
            "give each row all fields; a separator inside quotes is not supported, so write \
             such texts without it or the table as Parquet",
        ));
    }
    let (number, mut code) = residue_number(row[header.number])?;
    if let Some(at) = header.ins_code
        && !is_null(row[at])
    {
        code = insertion_code(row[at])?;
    }
    let model = header
        .model
        .map(|at| row[at])
        .filter(|model| !is_null(model));
    let model = model.map(|text| {
        let wrong = |_| {
            Error::config(format!("{text:?} is no model's number"))
                .fix("number models as in the file: 1; leave it empty for all models")
        };
        text.parse().map_err(wrong)
    });
    for &(at, channel) in &header.channels {
        values[channel] = real(row[at])?;
    }
    Ok(Key {
        structure: structure(header.structure.map_or(of_file, |at| row[at]))?,
        model: model.transpose()?,
        chain: row[header.chain],
        number,
        ins_code: code,
    })
}

/// A value, NaN where there is none.
fn real(text: &str) -> Result<f32> {
    if is_null(text) {
        return Ok(f32::NAN);
    }
    let wrong = |_| Error::config(format!("{text:?} is no number")).fix("leave it empty for none");
    // Straight to 32 bits: through 64 it would be rounded twice.
    let value: f32 = text.parse().map_err(wrong)?;
    finite(value, format_args!("{text:?}"))
}

fn unquoted(field: &str) -> &str {
    let field = field.trim();
    let inner = field
        .strip_prefix('"')
        .and_then(|inner| inner.strip_suffix('"'));
    inner.unwrap_or(field)
}

fn text_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut text = String::new();
    if path.extension().is_some_and(|ending| ending == "gz") {
        MultiGzDecoder::new(file).read_to_string(&mut text)?;
    } else {
        file.read_to_string(&mut text)?;
    }
    Ok(text)
}
