//! The columns of categories that are kept.
//!
//! Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) for what no writer of the format makes,
//! and [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) beyond a limit or without memory.

use super::column::DecodedColumn;
use super::expansion::ExpansionBudget;
use super::number_text::NumberText;
use super::values::{ColumnValues, Texts};
use crate::Result;
use crate::read_limits::reserve;

/// A column as text that outlives reading it.
pub(super) enum TextColumn<'a> {
    Strings(Texts<'a>),
    /// The text of all rows, and where that of each ends.
    Numbers {
        text: Vec<u8>,
        ends: Vec<usize>,
    },
}

impl<'a> TextColumn<'a> {
    /// Takes the bytes of strings from `expansion`: one counts for each row that has it.
    pub(super) fn new(column: DecodedColumn<'a>, expansion: &mut ExpansionBudget) -> Result<Self> {
        if let ColumnValues::Texts(texts) = column.values {
            let rows = 0..texts.index.len();
            expansion.take(rows.map(|row| texts.get(row).len() as u64).sum())?;
            return Ok(TextColumn::Strings(texts));
        }
        let rows = column.values.len();
        let (mut text, mut ends) = (Vec::new(), Vec::new());
        reserve(&mut ends, rows)?;
        let mut number = NumberText::new();
        for row in 0..rows {
            text.extend_from_slice(column.text(row, &mut number));
            ends.push(text.len());
        }
        Ok(TextColumn::Numbers { text, ends })
    }

    /// The text of a row.
    pub(super) fn get(&self, row: usize) -> &[u8] {
        match self {
            TextColumn::Strings(texts) => texts.get(row),
            TextColumn::Numbers { text, ends } => {
                let start = row.checked_sub(1).map_or(0, |before| ends[before]);
                &text[start..ends[row]]
            }
        }
    }
}
