//! Decodes the rows of a structure.

use super::columns::{Level, RowKey};
use super::joined::JoinedValues;
use super::loaded::{Layout, Loaded};
use super::loader::{take_bytes, take_cell};
use super::row_store::{take_integer, take_signed, take_text};
use super::values::{Cell, Type};
use crate::error::{Error, ErrorKind, Result};
use crate::structure::Structure;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    pub(super) key: RowKey<'a>,
    /// Index of the file.
    pub(super) file: u32,
    /// Index among the rows of the structure and the level, in the order of the tables.
    pub(super) index: usize,
    /// The line of a text file or the row of a Parquet file, from 1.
    pub(super) line: u64,
}

impl<'a> Row<'a> {
    pub(super) fn residue(&self) -> (&'a str, i32, u8) {
        (self.key.chain, self.key.number, self.key.ins_code)
    }

    /// Whether the row is for this model.
    pub(super) fn is_of(&self, structure: &Structure) -> bool {
        self.key.model.is_none_or(|of| of == structure.model)
    }
}

/// The rows of a structure in one level.
pub(super) struct Rows<'a> {
    pub(super) level: Level,
    /// Sorted by residue, those of one model before those of all models.
    pub(super) rows: Vec<Row<'a>>,
    /// `[rows, channels]` in the order of the tables, NaN for none.
    pub(super) channels: Vec<f32>,
    /// `[columns]`, each with its values in the order of the tables.
    pub(super) columns: Vec<Arc<JoinedValues>>,
    /// Which of `rows` a model has used.
    pub(super) used: Vec<bool>,
}

/// Rows that are being decoded.
struct Reader<'a> {
    level: Level,
    rows: Vec<Row<'a>>,
    channels: Vec<f32>,
    /// Each with its index among the annotations' columns.
    columns: Vec<(usize, Builder<'a>)>,
}

/// Builds the values of a column.
enum Builder<'a> {
    Flags(Vec<Option<bool>>),
    Integers(Vec<Option<i64>>),
    Reals(Vec<Option<f64>>),
    Texts {
        keys: Vec<Option<u32>>,
        texts: Vec<Box<str>>,
        known: HashMap<&'a str, u32>,
    },
}

/// Decodes rows of structures, of residues and of variants.
///
/// # Errors
/// The temporary file is damaged.
pub(super) fn read_rows<'a>(
    all: &Loaded,
    runs: &'a [(Cow<'_, [u8]>, u32)],
) -> Result<[Rows<'a>; 3]> {
    let levels = [Level::Structures, Level::Residues, Level::Variants];
    let mut readers = levels.map(|level| Reader::new(all, level));
    for (bytes, count) in runs {
        let mut rest = &**bytes;
        for _ in 0..*count {
            let read = read_row(all, &mut readers, &mut rest);
            read.ok_or_else(|| {
                let text = "the temporary file of annotations is damaged";
                Error::new(ErrorKind::Io, text).fix("run again")
            })?;
        }
    }
    Ok(readers.map(Reader::finish))
}

fn read_row<'a>(all: &Loaded, readers: &mut [Reader<'a>; 3], from: &mut &'a [u8]) -> Option<()> {
    let file = take_integer(from)?;
    let line = take_integer(from)?;
    let layout = all.layouts.get(file as usize)?;
    let reader = readers.iter_mut().find(|it| it.level == layout.level)?;
    let [has_model] = take_bytes(from)?;
    let model = match has_model {
        0 => None,
        _ => Some(take_signed(from)? as i32),
    };
    let (chain, number, ins_code) = match layout.level {
        Level::Structures => ("", 0, 0),
        Level::Residues | Level::Variants => {
            let (chain, number) = (take_text(from)?, take_signed(from)? as i32);
            let [ins_code] = take_bytes(from)?;
            (chain, number, ins_code)
        }
    };
    reader.rows.push(Row {
        key: RowKey {
            model,
            chain,
            number,
            ins_code,
        },
        file: file as u32,
        index: reader.rows.len(),
        line,
    });
    reader.take_values(layout, all.channels.len(), from)
}

impl<'a> Reader<'a> {
    fn new(all: &Loaded, level: Level) -> Self {
        let columns = all.columns.iter().enumerate();
        let own = columns.filter(|(_, column)| column.level == level);
        Reader {
            level,
            rows: Vec::new(),
            channels: Vec::new(),
            columns: own
                .map(|(at, column)| (at, Builder::new(column.kind)))
                .collect(),
        }
    }

    /// Takes the channels and the cells of a row.
    fn take_values(&mut self, layout: &Layout, channels: usize, from: &mut &'a [u8]) -> Option<()> {
        let start = self.channels.len();
        self.channels.resize(start + channels, f32::NAN);
        for &channel in &layout.channels {
            self.channels[start + channel] = f32::from_le_bytes(take_bytes(from)?);
        }
        // A column that the table lacks is null in its rows.
        for (_, column) in &mut self.columns {
            column.push(Cell::Null);
        }
        for &column in &layout.columns {
            let cell = take_cell(from)?;
            let at = self.columns.binary_search_by_key(&column, |(at, _)| *at);
            let (_, builder) = &mut self.columns[at.ok()?];
            builder.pop();
            builder.push(cell);
        }
        Some(())
    }

    fn finish(mut self) -> Rows<'a> {
        self.rows.sort_unstable_by_key(|row| {
            let model = row.key.model;
            (row.residue(), model.is_none(), model, row.index)
        });
        let columns = self.columns.into_iter();
        Rows {
            level: self.level,
            used: vec![false; self.rows.len()],
            rows: self.rows,
            channels: self.channels,
            columns: columns
                .map(|(_, builder)| Arc::new(builder.finish()))
                .collect(),
        }
    }
}

impl<'a> Builder<'a> {
    fn new(kind: Type) -> Self {
        match kind {
            Type::Flag => Builder::Flags(Vec::new()),
            Type::Integer | Type::Long => Builder::Integers(Vec::new()),
            Type::Real | Type::Double => Builder::Reals(Vec::new()),
            Type::Text => Builder::Texts {
                keys: Vec::new(),
                texts: Vec::new(),
                known: HashMap::new(),
            },
        }
    }

    fn push(&mut self, cell: Cell<'a>) {
        match self {
            Builder::Flags(values) => values.push(cell.flag()),
            Builder::Integers(values) => values.push(cell.integer()),
            Builder::Reals(values) => values.push(cell.real()),
            Builder::Texts { keys, texts, known } => keys.push(cell.text().map(|text| {
                *known.entry(text).or_insert_with(|| {
                    texts.push(text.into());
                    texts.len() as u32 - 1
                })
            })),
        }
    }

    fn pop(&mut self) {
        match self {
            Builder::Flags(values) => drop(values.pop()),
            Builder::Integers(values) => drop(values.pop()),
            Builder::Reals(values) => drop(values.pop()),
            Builder::Texts { keys, .. } => drop(keys.pop()),
        }
    }

    fn finish(self) -> JoinedValues {
        match self {
            Builder::Flags(values) => JoinedValues::Flags(values),
            Builder::Integers(values) => JoinedValues::Integers(values),
            Builder::Reals(values) => JoinedValues::Reals(values),
            Builder::Texts { keys, texts, .. } => JoinedValues::Texts(keys, texts),
        }
    }
}
