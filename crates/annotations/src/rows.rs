//! Decodes the rows of a structure, one at a time.

use super::columns::{Level, RowKey};
use super::joined::JoinedValues;
use super::loaded::{LoadedTables, RowLayout};
use super::loader::{take_bytes, take_cell};
use super::row_store::{take_integer, take_signed, take_text};
use super::values::{AnnotationCell, Type};
use std::borrow::Cow;
use std::collections::HashMap;
use tapeloop_error::{Error, ErrorKind, Result};
use tapeloop_structure::Structure;

/// The encoded rows of a structure, in the order of the tables, and the index of each run's first
/// row among all rows.
pub(super) type RowRuns<'a> = [(Cow<'a, [u8]>, u32)];

/// A row of a table; `'b` is the time until the next row is decoded.
pub(super) struct AnnotationRow<'a, 'b> {
    pub(super) key: RowKey<'a>,
    /// The row's index among the rows of all tables.
    pub(super) index: u32,
    /// Index of the file.
    pub(super) file: u32,
    /// The line of a text file or the row of a Parquet file, from 1.
    pub(super) line: u64,
    pub(super) layout: &'b RowLayout,
    /// The values of `layout.channels`, NaN for none.
    pub(super) channels: &'b [f32],
    /// The values of `layout.columns`.
    pub(super) cells: &'b [AnnotationCell<'a>],
}

impl AnnotationRow<'_, '_> {
    pub(super) fn level(&self) -> Level {
        self.layout.level
    }

    /// Whether the row is for this model.
    pub(super) fn is_of(&self, structure: &Structure) -> bool {
        self.key.model.is_none_or(|model| model == structure.model)
    }
}

/// Passes each row to `visit`, in the order of the tables.
///
/// # Errors
/// Of kind `Io`: the temporary file is damaged. Or the error of `visit`.
pub(super) fn visit_rows<'a>(
    all: &LoadedTables,
    runs: &'a RowRuns<'_>,
    mut visit: impl FnMut(&AnnotationRow<'a, '_>) -> Result<()>,
) -> Result<()> {
    let (mut channels, mut cells) = (Vec::new(), Vec::new());
    for (bytes, first_row) in runs {
        let mut rest = &**bytes;
        let mut index = *first_row;
        while !rest.is_empty() {
            let row = decode(all, &mut channels, &mut cells, index, &mut rest);
            visit(&row.ok_or_else(|| {
                let text = "the temporary file of annotations is damaged";
                Error::new(ErrorKind::Io, text).fix("run again")
            })?)?;
            // The last row's index may be `u32::MAX`.
            index = index.wrapping_add(1);
        }
    }
    Ok(())
}

/// Takes a row from the start of `from`, in the order in which the store has written its parts.
/// `channels` and `cells` are where its values go. `None` if the bytes are no row.
fn decode<'a, 'b>(
    all: &'b LoadedTables,
    channels: &'b mut Vec<f32>,
    cells: &'b mut Vec<AnnotationCell<'a>>,
    index: u32,
    from: &mut &'a [u8],
) -> Option<AnnotationRow<'a, 'b>> {
    let file = take_integer(from)?;
    let line = take_integer(from)?;
    let layout = all.layouts.get(file as usize)?;
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
    channels.clear();
    for _ in &layout.channels {
        channels.push(f32::from_le_bytes(take_bytes(from)?));
    }
    cells.clear();
    for _ in &layout.columns {
        cells.push(take_cell(from)?);
    }
    Some(AnnotationRow {
        key: RowKey {
            model,
            chain,
            number,
            ins_code,
        },
        index,
        file: file as u32,
        line,
        layout,
        channels,
        cells,
    })
}

/// Builds the values of a column.
pub(super) enum ValuesBuilder<'a> {
    Flags(Vec<Option<bool>>),
    Integers(Vec<Option<i64>>),
    Reals(Vec<Option<f64>>),
    Texts {
        keys: Vec<Option<u32>>,
        texts: Vec<Box<str>>,
        known: HashMap<&'a str, u32>,
    },
}

impl<'a> ValuesBuilder<'a> {
    pub(super) fn new(kind: Type) -> Self {
        match kind {
            Type::Flag => ValuesBuilder::Flags(Vec::new()),
            Type::Integer | Type::Long => ValuesBuilder::Integers(Vec::new()),
            Type::Real | Type::Double => ValuesBuilder::Reals(Vec::new()),
            Type::Text => ValuesBuilder::Texts {
                keys: Vec::new(),
                texts: Vec::new(),
                known: HashMap::new(),
            },
        }
    }

    /// Appends the cell's value. Equal texts are stored once.
    pub(super) fn push(&mut self, cell: AnnotationCell<'a>) {
        match self {
            ValuesBuilder::Flags(values) => values.push(cell.flag()),
            ValuesBuilder::Integers(values) => values.push(cell.integer()),
            ValuesBuilder::Reals(values) => values.push(cell.real()),
            ValuesBuilder::Texts { keys, texts, known } => keys.push(cell.text().map(|text| {
                *known.entry(text).or_insert_with(|| {
                    texts.push(text.into());
                    texts.len() as u32 - 1
                })
            })),
        }
    }

    /// The values of the column.
    pub(super) fn finish(self) -> JoinedValues {
        match self {
            ValuesBuilder::Flags(values) => JoinedValues::Flags(values),
            ValuesBuilder::Integers(values) => JoinedValues::Integers(values),
            ValuesBuilder::Reals(values) => JoinedValues::Reals(values),
            ValuesBuilder::Texts { keys, texts, .. } => JoinedValues::Texts(keys, texts),
        }
    }
}
