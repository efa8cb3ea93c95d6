//! Categories and their columns.

use super::column::{Column, EncodedColumn};
use super::expansion::Expansion;
use super::message_pack::Cursor;
use crate::Result;
use crate::error::excerpt;

/// The most columns of a category. The largest categories of the PDBx/mmCIF dictionary have a few
/// hundred items.
const COLUMNS_MAX: u32 = 1_000;

/// A category of a data block.
pub(super) struct Category<'a> {
    /// With the underscore.
    pub name: &'a [u8],
    pub rows: u32,
    /// Before the array of columns.
    columns: Cursor<'a>,
}

impl<'a> Category<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self> {
        let start = *cursor;
        let (mut name, mut rows, mut columns) = (None, None, None);
        cursor.map(|key, value| {
            match key {
                b"name" => name = Some(value.text()?),
                b"rowCount" => rows = Some(value.size()?),
                b"columns" => {
                    columns = Some(*value);
                    value.skip()?;
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

    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    pub(super) fn columns(&self) -> Result<Vec<EncodedColumn<'a>>> {
        let mut cursor = self.columns;
        let mut read = || {
            let count = cursor.array()?;
            if count > COLUMNS_MAX {
                let message = format!("there are more than {COLUMNS_MAX} columns");
                return Err(self.columns.error(message));
            }
            let mut columns = Vec::with_capacity(count as usize);
            for _ in 0..count {
                columns.push(EncodedColumn::read(&mut cursor)?);
            }
            Ok(columns)
        };
        let columns: Result<Vec<_>> = read();
        columns.map_err(|error| error.within(excerpt(self.name)))
    }

    /// Decodes one of the columns.
    pub(super) fn decode(
        &self,
        column: &EncodedColumn<'a>,
        expansion: &mut Expansion,
    ) -> Result<Column<'a>> {
        let decoded = column.decode(self.rows, expansion);
        decoded.map_err(|error| {
            error.within(format!("{}.{}", excerpt(self.name), excerpt(column.name)))
        })
    }
}
