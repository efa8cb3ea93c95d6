//! The columns of `_atom_site`.

use std::ops::Range;

use super::category::Category;
use super::column::{Column, RowTable};
use super::expansion::Expansion;
use super::number_text::CellText;
use crate::Result;
use crate::structure::Models;
use crate::structure::atom_table::{Atom, AtomTable};
use crate::structure::decimal::OCCUPANCY_ONE;
use crate::structure::formats::mmcif::atom_site::{
    CHAIN_ITEMS, ITEM_COUNT, Item, RESIDUE_ITEMS, RunStart, element, find_columns, symbol_number,
};
use crate::structure::formats::mmcif::not_null;
use crate::structure::read_limits::reserve;
use crate::structure::text::{Place, quoted};
use crate::structure::text8::text8;

/// The columns of the items that are read.
struct AtomColumns<'a> {
    items: [Option<Column<'a>>; ITEM_COUNT],
    rows: u32,
}

/// Turns the rows of `_atom_site` into atoms.
pub(super) fn read(
    category: &Category,
    models: Models,
    expansion: &mut Expansion,
    table: &mut AtomTable,
) -> Result<()> {
    let columns = category.columns()?;
    let position = |name: &str| {
        let mut names = columns.iter().map(|column| column.name);
        names.position(|other| other.eq_ignore_ascii_case(name.as_bytes()))
    };
    let found = find_columns(position)?;
    let mut items = [const { None }; ITEM_COUNT];
    for (item, column) in items.iter_mut().zip(found) {
        if let Some(column) = column {
            *item = Some(category.decode(&columns[column], expansion)?);
        }
    }
    let atoms = AtomColumns {
        items,
        rows: category.rows,
    };
    atoms.add(models, table)
}

impl AtomColumns<'_> {
    fn add(&self, models: Models, table: &mut AtomTable) -> Result<()> {
        let rows = self.rows as usize;
        let names = self.table(Item::Name, text8);
        let symbols = self.table(Item::Symbol, symbol_number);
        let altlocs = self.table(Item::AltId, |text| {
            not_null(text).first().copied().unwrap_or(0)
        });
        let b_factors = match self.column(Item::BFactor) {
            Some(column) => column.b_factors(),
            None => vec![f32::NAN; rows],
        };
        let occupancies = match self.column(Item::Occupancy) {
            Some(column) => column.occupancies(),
            None => vec![OCCUPANCY_ONE; rows],
        };
        let usual = [Item::X, Item::Y, Item::Z].map(|item| {
            let column = self.column(item);
            column.and_then(Column::coordinates)
        });
        let chain_changes = self.changes(CHAIN_ITEMS, Vec::new())?;
        let changes = self.changes(0..RESIDUE_ITEMS, chain_changes.clone())?;
        // Whether the chain is that of the last run.
        let mut same_chain = false;
        let mut start = 0;
        while start < rows {
            let next = memchr::memchr(1, &changes[start + 1..]);
            let end = next.map_or(rows, |len| start + 1 + len);
            same_chain &= chain_changes[start] == 0;
            let run = RunStart {
                value: |item| self.text(item, start),
                integer: |item| self.column(item)?.integer(start),
                same_chain,
                place: place(start),
            };
            if run.add(table, models)? {
                same_chain = true;

                for row in start..end {
                    let (xyz, rounded) = match &usual {
                        [Some(x), Some(y), Some(z)] => (
                            [x.milli[row], y.milli[row], z.milli[row]],
                            [x, y, z].iter().any(|of| of.is_rounded(row)),
                        ),
                        _ => self.coordinates(row)?,
                    };
                    let name = names.get(row);
                    table.push(Atom {
                        xyz,
                        b_factor: b_factors[row],
                        occupancy: occupancies[row],
                        name,
                        element: element(symbols.get(row), name),
                        altloc: altlocs.get(row),
                        rounded,
                    })?;
                }
            }
            start = end;
        }
        Ok(())
    }

    /// The text of an item in a row; empty if the file lacks the item.
    #[inline]
    fn text(&self, item: Item, row: usize) -> CellText<'_> {
        match self.column(item) {
            Some(column) => column.cell(row),
            None => CellText::Borrowed(b""),
        }
    }

    fn column(&self, item: Item) -> Option<&Column<'_>> {
        self.items[item as usize].as_ref()
    }

    /// What `value` makes of an item's text in each row.
    fn table<T: Copy>(&self, item: Item, value: impl Fn(&[u8]) -> T) -> RowTable<'_, T> {
        match self.column(item) {
            Some(column) => column.table(value),
            None => RowTable::same(value(b""), self.rows as usize),
        }
    }

    /// Sets to 1 the rows in which one of `items` may differ from the row before. Rows that
    /// `changes` lacks are 0 first.
    fn changes(&self, items: Range<usize>, mut changes: Vec<u8>) -> Result<Vec<u8>> {
        let rows = self.rows as usize;
        let more = rows - changes.len();
        reserve(&mut changes, more)?;
        changes.resize(rows, 0);
        for column in self.items[items].iter().flatten() {
            column.mark_changes(&mut changes);
        }
        Ok(changes)
    }

    /// Coordinates in 0.001 A, and whether one was rounded.
    #[inline(never)]
    fn coordinates(&self, row: usize) -> Result<([i32; 3], bool)> {
        let (mut xyz, mut any_rounded) = ([0; 3], false);
        for (value, item) in xyz.iter_mut().zip([Item::X, Item::Y, Item::Z]) {
            let Some(column) = self.column(item) else {
                continue;
            };
            let rounded;
            (*value, rounded) = column.coordinate(row).map_err(|bad| {
                let text = quoted(&column.cell(row));
                place(row).error(format!("{} {text} {bad}", item.name()))
            })?;
            any_rounded |= rounded;
        }
        Ok((xyz, any_rounded))
    }
}

fn place(row: usize) -> Place<'static> {
    Place::Row("atom_site", row as u32)
}
