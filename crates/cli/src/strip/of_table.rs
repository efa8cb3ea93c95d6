//! Draws rows of a table of residues.

use super::{Meaning, Sequence, StripResidue, Track, draw, words};
use crate::config::{feature_of_column, table_column_hint};
use crate::tables::{Cell, identifying_columns};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use tapeloop::error::{Error, Result};
use tapeloop::features::ColumnKind;
use tapeloop_error::internal::printable;
use tapeloop_files::did_you_mean;
use tapeloop_structure::internal::distinct_chain_names;

/// The column with the names of structures.
const NAME: &str = "structure";

/// Columns of a table of residues that a drawing needs.
const NEEDED: [&str; 5] = [NAME, "model", "auth_seq_id", "aa", "break_before"];

/// The structures that a message names, so that it stays a line.
const NAMED_MAX: usize = 5;

/// Draws columns of a table of residues along the sequence of one structure, as an SVG file. `columns` are
/// their names; without any all columns but those that identify a residue are drawn.
/// `structure` is the name of the structure, and the first model or frame of that name is drawn; it may be
/// `None` if the table has one structure.
///
/// # Errors
/// [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) for a table of other rows, for a column or a structure that
/// it does not have, if it has no rows, and if it has several structures and none is named.
pub fn draw_table(
    schema: &Schema,
    batches: &[RecordBatch],
    columns: &[String],
    structure: Option<&str>,
) -> Result<String> {
    let has = |name: &&str| schema.column_with_name(name).is_some();
    if let Some(missing) = NEEDED.iter().find(|name| !has(name)) {
        let error = Error::usage(format!("the table has no column `{missing}`"));
        return Err(error.fix("draw a table of residues"));
    }
    let fields = chosen(schema, columns)?;
    let rows = TableRows {
        rows: rows_of(batches, structure)?,
    };
    let sequence = rows.sequence();
    let tracks = fields.iter().map(|field| rows.track(field, &sequence));
    Ok(draw(&sequence, &tracks.collect::<Vec<_>>()))
}

/// The columns to draw. An [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) error for one that the
/// table does not have.
fn chosen<'a>(schema: &'a Schema, names: &[String]) -> Result<Vec<&'a Field>> {
    if names.is_empty() {
        let identifying = identifying_columns();
        let fields = schema.fields().iter().map(AsRef::as_ref);
        return Ok(fields
            .filter(|field: &&Field| !identifying.contains(field.name()))
            .collect());
    }
    let field = |name: &String| {
        schema.field_with_name(name).map_err(|_| {
            let known: Vec<&str> = schema
                .fields()
                .iter()
                .map(|field| &**field.name())
                .collect();
            let hint = table_column_hint(name, &known);
            Error::usage(format!(
                "the table has no column `{}`{hint}",
                printable(name)
            ))
        })
    };
    names.iter().map(field).collect()
}

/// A row of a batch.
type Row<'a> = (&'a RecordBatch, usize);

/// A row's value in a column; null if the table does not have the column.
fn cell<'a>((batch, row): Row<'a>, name: &str) -> Cell<'a> {
    let column = batch.column_by_name(name);
    column.map_or(Cell::Null, |column| Cell::new(column, row))
}

/// A row's text in a column; empty for null, and without the column.
fn text<'a>(row: Row<'a>, name: &str) -> &'a str {
    match cell(row, name) {
        Cell::Text(text) => text,
        _ => "",
    }
}

/// The rows of the first structure with this name, or of the only one: at least one row. They
/// follow each other. An [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) error if there is none.
fn rows_of<'a>(batches: &'a [RecordBatch], name: Option<&str>) -> Result<Vec<Row<'a>>> {
    let all = || {
        let rows = |batch: &'a RecordBatch| (0..batch.num_rows()).map(move |row| (batch, row));
        batches.iter().flat_map(rows)
    };
    let names = || {
        let mut names: Vec<&str> = all().map(|row| text(row, NAME)).collect();
        names.dedup();
        names
    };
    let wanted = match name {
        Some(name) => name,
        None => only(&names())?,
    };
    let Some(start) = all().position(|row| text(row, NAME) == wanted) else {
        let hint = did_you_mean(wanted, &names());
        let message = format!("the table has no structure `{}`{hint}", printable(wanted));
        return Err(Error::usage(message));
    };
    let key = |row: Row<'a>| ["source", NAME, "model", "frame"].map(|name| cell(row, name));
    let mut rows = all().skip(start).peekable();
    let first = rows.peek().map(|row| key(*row));
    Ok(rows.take_while(|row| Some(key(*row)) == first).collect())
}

/// The name that all rows have. An [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) error if there
/// are several, or no rows.
fn only<'a>(names: &[&'a str]) -> Result<&'a str> {
    match names {
        [] => Err(Error::usage("the table has no rows")),
        [name] => Ok(name),
        several => {
            let shown = several[..several.len().min(NAMED_MAX)].join(", ");
            let more = if several.len() > NAMED_MAX {
                ", ..."
            } else {
                ""
            };
            let count = several.len();
            let message = format!(
                "the table has {count} structures: {}{more}",
                printable(&shown)
            );
            Err(Error::usage(message).fix("name one: structure=\"...\""))
        }
    }
}

/// The rows of a structure, at least one, in the order of its residues.
struct TableRows<'a> {
    rows: Vec<Row<'a>>,
}

impl TableRows<'_> {
    /// The sequence that the rows of a structure have.
    fn sequence(&self) -> Sequence {
        let ids = |row| {
            let label = Some(text(row, "label_asym_id")).filter(|label| !label.is_empty());
            (text(row, "auth_asym_id"), label)
        };
        let mut chain_ids: Vec<(&str, Option<&str>)> = Vec::new();
        let mut residues = Vec::with_capacity(self.rows.len());
        for &row in &self.rows {
            let ids = ids(row);
            let known = chain_ids.iter().position(|known| *known == ids);
            let chain = known.unwrap_or_else(|| {
                chain_ids.push(ids);
                chain_ids.len() - 1
            });
            let letter = |name| text(row, name).bytes().next();
            residues.push(StripResidue {
                chain,
                number: match cell(row, "auth_seq_id") {
                    Cell::Integer(number) => i32::try_from(number).ok(),
                    _ => None,
                },
                ins_code: letter("ins_code").unwrap_or(0),
                aa: letter("aa").unwrap_or(b'X'),
                break_before: cell(row, "break_before") == Cell::Flag(true),
            });
        }
        // The names that the table's columns of chains have.
        let names = distinct_chain_names(&chain_ids).into_iter();
        let names = names.map(|name| printable(name).into_owned());
        let first = self.rows[0];
        Sequence {
            name: printable(text(first, NAME)).into_owned(),
            model: match cell(first, "model") {
                Cell::Integer(model) => model as i32,
                _ => 1,
            },
            chains: names.collect(),
            residues,
        }
    }

    /// The track of a column, with a value for each row.
    fn track(&self, field: &Field, sequence: &Sequence) -> Track {
        let name = field.name();
        let place = feature_of_column(name);
        let is_chains = place
            .as_ref()
            .is_some_and(|place| place.kind == ColumnKind::Chain);
        let kind = match field.data_type() {
            DataType::Boolean => Some(ColumnKind::Flag),
            _ => place.as_ref().map(|place| place.kind),
        };
        // Words that are declared have their order, which gives them their colours.
        let mut known: Vec<String> = if is_chains {
            sequence.chains.clone()
        } else {
            let declared = kind.map_or(&[][..], words);
            declared.iter().map(|word| (*word).to_owned()).collect()
        };
        let values = self.rows.iter().map(|row| match cell(*row, name) {
            Cell::Null => None,
            Cell::Integer(integer) => Some(integer as f64),
            Cell::Unsigned(integer) => Some(integer as f64),
            Cell::Real(real) => (!real.is_nan()).then_some(real),
            Cell::Flag(flag) => Some(f64::from(u8::from(flag))),
            Cell::Text(text) => {
                let word = printable(text);
                let index = known.iter().position(|known| *known == word);
                let index = index.unwrap_or_else(|| {
                    known.push(word.into_owned());
                    known.len() - 1
                });
                Some(index as f64)
            }
        });
        let values: Vec<Option<f64>> = values.collect();
        let meaning = match known {
            _ if is_chains => Meaning::Chains(known),
            _ if kind == Some(ColumnKind::LigandNumber) => Meaning::Indices,
            known if known.is_empty() => Meaning::Numbers,
            known => Meaning::Words(known),
        };
        let unit = field.metadata().get("unit").map_or("", String::as_str);
        Track::new(
            name,
            place.map(|place| place.feature),
            unit,
            values,
            meaning,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, BooleanArray, Int32Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn chains_have_the_names_that_columns_of_chains_have() {
        let rows = 3;
        let texts = |texts: [&str; 3]| -> ArrayRef { Arc::new(StringArray::from(texts.to_vec())) };
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1; rows]));
        let breaks: ArrayRef = Arc::new(BooleanArray::from(vec![false; rows]));
        let columns = |labels| {
            [
                ("structure", texts(["1abc"; 3])),
                ("model", Arc::clone(&numbers)),
                ("auth_asym_id", texts(["A", "A", "B"])),
                ("label_asym_id", texts(labels)),
                ("auth_seq_id", Arc::clone(&numbers)),
                ("aa", texts(["G"; 3])),
                ("break_before", Arc::clone(&breaks)),
            ]
        };
        // A label id that is an author's id too names no chain.
        for (labels, names) in [
            (["A", "B", "C"], ["A", "A", "B"]),
            (["A_1", "A_2", "B"], ["A_1", "A_2", "B"]),
        ] {
            let batch = [RecordBatch::try_from_iter(columns(labels)).unwrap()];
            let rows = TableRows {
                rows: rows_of(&batch, None).unwrap(),
            };
            assert_eq!(rows.sequence().chains, names);
        }
    }
}
