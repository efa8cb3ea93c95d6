//! Categories and their columns.
//!
//! Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) for what no writer of the format makes,
//! and [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) beyond a limit or without memory.

use super::column::{BinaryCifColumn, DecodedColumn};
use super::expansion::ExpansionBudget;
use super::message_pack::Cursor;
use crate::Result;
use tapeloop_error::internal::excerpt;

/// The most columns of a category. The largest categories of the PDBx/mmCIF dictionary have a few
/// hundred items.
const COLUMNS_MAX: u32 = 1_000;

/// A category of a data block.
pub(super) struct Category<'a> {
    /// With the underscore.
    pub name: &'a [u8],
    pub rows: u32,
    columns: CategoryColumns<'a>,
}

enum CategoryColumns<'a> {
    Read(Vec<BinaryCifColumn<'a>>),
    /// Columns that have not been read; the cursor is before them.
    Skipped(Cursor<'a>),
}

impl<'a> Category<'a> {
    /// Reads a category. Its columns are read at once if `is_wanted` for its name, which comes
    /// first in most files.
    pub(super) fn read(cursor: &mut Cursor<'a>, is_wanted: impl Fn(&[u8]) -> bool) -> Result<Self> {
        let start = *cursor;
        let (mut name, mut rows, mut columns) = (None, None, None);
        cursor.map(|key, value| {
            match key {
                b"name" => name = Some(value.text()?),
                b"rowCount" => rows = Some(value.size()?),
                b"columns" => {
                    columns = Some(match name.filter(|name| is_wanted(name)) {
                        Some(name) => CategoryColumns::Read(read_columns(name, value)?),
                        None => {
                            let start = *value;
                            value.skip()?;
                            CategoryColumns::Skipped(start)
                        }
                    });
                }
                _ => value.skip()?,
            }
            Ok(())
        })?;
        let (Some(name), Some(rows), Some(columns)) = (name, rows, columns) else {
            let message = "a category lacks \"name\", \"rowCount\" or \"columns\"";
            return Err(start.error(message));
        };
        Ok(Category {
            name,
            rows,
            columns,
        })
    }

    /// Takes the columns out of the category.
    pub(super) fn take_columns(&mut self) -> Result<Vec<BinaryCifColumn<'a>>> {
        match &mut self.columns {
            CategoryColumns::Read(columns) => Ok(std::mem::take(columns)),
            CategoryColumns::Skipped(cursor) => read_columns(self.name, cursor),
        }
    }

    /// Decodes one of the columns.
    pub(super) fn decode(
        &self,
        column: &BinaryCifColumn<'a>,
        expansion: &mut ExpansionBudget,
    ) -> Result<DecodedColumn<'a>> {
        let decoded = column.decode(self.rows, expansion);
        decoded.map_err(|error| {
            error.within(format!("{}.{}", excerpt(self.name), excerpt(column.name)))
        })
    }
}

/// Reads the array of columns of a category.
fn read_columns<'a>(category: &[u8], cursor: &mut Cursor<'a>) -> Result<Vec<BinaryCifColumn<'a>>> {
    let start = *cursor;
    let mut read = || {
        let count = cursor.array()?;
        if count > COLUMNS_MAX {
            let message = format!("there are more than {COLUMNS_MAX} columns");
            return Err(start.error(message));
        }
        let mut columns = Vec::with_capacity(count as usize);
        for _ in 0..count {
            columns.push(BinaryCifColumn::read(cursor)?);
        }
        Ok(columns)
    };
    let columns: Result<Vec<_>> = read();
    columns.map_err(|error| error.within(excerpt(category)))
}
