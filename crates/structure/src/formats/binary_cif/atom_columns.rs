//! The columns of `_atom_site`.
//!
//! Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) for what no writer of the format makes,
//! and [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) beyond a limit or without memory.

use std::borrow::Cow;
use std::ops::Range;

use super::category::Category;
use super::column::DecodedColumn;
use super::expansion::ExpansionBudget;
use super::number_text::CellText;
use crate::Models;
use crate::Result;
use crate::atom_table::{AtomLine, AtomTable};
use crate::decimal::OCCUPANCY_ONE;
use crate::formats::mmcif::atom_site::{
    AtomSiteItem, CHAIN_ITEMS, ITEM_COUNT, RESIDUE_ITEMS, RunStart, element, find_columns,
    symbol_number,
};
use crate::formats::mmcif::not_null;
use crate::read_limits::reserve;
use crate::text::{FilePlace, quoted};
use crate::text8::{Text8, text8};

/// The coordinates of all rows by axis, in 0.001 A.
type Axes<'a> = [Cow<'a, [i32]>; 3];

/// The columns of the items that are read.
struct AtomColumns<'a> {
    items: [Option<DecodedColumn<'a>>; ITEM_COUNT],
    rows: u32,
}

/// Turns the rows of `_atom_site` into atoms. Notes in the table if a row states no element that is known.
pub(super) fn read(
    mut category: Category,
    models: Models,
    expansion: &mut ExpansionBudget,
    table: &mut AtomTable,
) -> Result<()> {
    let columns = category.take_columns()?;
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
    /// Adds the atoms of all rows. Rows in succession that agree in the items of a residue are a
    /// run, which is added at once.
    fn add(&self, models: Models, table: &mut AtomTable) -> Result<()> {
        let rows = self.rows as usize;
        let names = self.table(AtomSiteItem::Name, text8)?;
        let symbols = self.table(AtomSiteItem::Symbol, symbol_number)?;
        table.guesses_elements |= symbols.contains(&0);
        let altlocs = self.table(AtomSiteItem::AltId, |text| {
            not_null(text).first().copied().unwrap_or(0)
        })?;
        let b_factors = match self.column(AtomSiteItem::BFactor) {
            Some(column) => column.b_factors()?,
            None => vec![f32::NAN; rows],
        };
        let occupancies = match self.column(AtomSiteItem::Occupancy) {
            Some(column) => column.occupancies()?,
            None => vec![OCCUPANCY_ONE; rows],
        };
        let (axes, rounded) = self.usual_coordinates().unzip();
        let rounded = rounded.unwrap_or_else(|| vec![false; rows]);
        let atoms = AtomValues {
            names: &names,
            symbols: &symbols,
            altlocs: &altlocs,
            b_factors: &b_factors,
            occupancies: &occupancies,
            rounded: &rounded,
        };
        let chain_changes = self.changes(CHAIN_ITEMS, Vec::new())?;
        let changes = self.changes(0..RESIDUE_ITEMS, chain_changes.clone())?;
        // Whether the chain is that of the last run; those of models that are not wanted add none.
        let mut is_same_chain = false;
        let mut start = 0;
        while start < rows {
            let next = memchr::memchr(1, &changes[start + 1..]);
            let end = next.map_or(rows, |len| start + 1 + len);
            is_same_chain &= chain_changes[start] == 0;
            let run = RunStart {
                value: |item| self.text(item, start),
                integer: |item| self.column(item)?.integer(start),
                is_same_chain,
                place: place(start),
            };
            if run.add(table, models)? {
                is_same_chain = true;
                if let Some(axes) = &axes {
                    table.extend(atoms.atoms(axes, start..end))?;
                } else {
                    for row in start..end {
                        let (xyz, rounded) = self.coordinates(row)?;
                        table.push(atoms.atom(row, xyz, rounded))?;
                    }
                }
            }
            start = end;
        }
        Ok(())
    }

    /// The text of an item in a row; empty if the file lacks the item.
    #[inline]
    fn text(&self, item: AtomSiteItem, row: usize) -> CellText<'_> {
        match self.column(item) {
            Some(column) => column.cell(row),
            None => CellText::Borrowed(b""),
        }
    }

    fn column(&self, item: AtomSiteItem) -> Option<&DecodedColumn<'_>> {
        self.items[item as usize].as_ref()
    }

    /// Applies `value` to an item's text in each row.
    fn table<T: Copy>(&self, item: AtomSiteItem, value: impl Fn(&[u8]) -> T) -> Result<Vec<T>> {
        match self.column(item) {
            Some(column) => column.table(value),
            None => Ok(vec![value(b""); self.rows as usize]),
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

    /// The coordinates of all rows, if these are as in nearly every file, and whether those of each
    /// were rounded. Else [`AtomColumns::coordinates`] reads them row by row, and names a row in
    /// its error.
    fn usual_coordinates(&self) -> Option<(Axes<'_>, Vec<bool>)> {
        let [x, y, z] = [AtomSiteItem::X, AtomSiteItem::Y, AtomSiteItem::Z]
            .map(|item| self.column(item)?.coordinates());
        let axes = [x?, y?, z?];
        let mut any_rounded = vec![false; self.rows as usize];
        for axis in &axes {
            for (any, rounded) in any_rounded.iter_mut().zip(&axis.rounded) {
                *any |= rounded;
            }
        }
        Some((axes.map(|axis| axis.milli), any_rounded))
    }

    /// The coordinates of a row in 0.001 A, in columns of any form, and whether one was rounded. An
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) error if one is no number or too large.
    #[inline(never)]
    fn coordinates(&self, row: usize) -> Result<([i32; 3], bool)> {
        let (mut xyz, mut any_rounded) = ([0; 3], false);
        for (value, item) in xyz
            .iter_mut()
            .zip([AtomSiteItem::X, AtomSiteItem::Y, AtomSiteItem::Z])
        {
            // Never: a file that lacks one was refused when its columns were found.
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

/// The values of all rows next to the coordinates.
struct AtomValues<'r> {
    names: &'r [Text8],
    /// Atomic numbers; 0 if unknown.
    symbols: &'r [u8],
    altlocs: &'r [u8],
    b_factors: &'r [f32],
    occupancies: &'r [i32],
    /// Whether coordinates were rounded, where they are [`AtomColumns::usual_coordinates`].
    rounded: &'r [bool],
}

impl AtomValues<'_> {
    /// The atoms of `rows`. Slices are zipped, because each index would be bounds-checked.
    #[inline]
    fn atoms(
        &self,
        axes: &[Cow<'_, [i32]>; 3],
        rows: Range<usize>,
    ) -> impl ExactSizeIterator<Item = AtomLine> {
        let [x, y, z] = axes.each_ref().map(|axis| axis[rows.clone()].iter());
        let places = x.zip(y).zip(z).zip(&self.rounded[rows.clone()]);
        let names = self.names[rows.clone()].iter();
        let names = names.zip(&self.symbols[rows.clone()]);
        let names = names.zip(&self.altlocs[rows.clone()]);
        let values = self.b_factors[rows.clone()].iter();
        let values = values.zip(&self.occupancies[rows]);
        let all = places.zip(names).zip(values);
        all.map(
            |(((((&x, &y), &z), &rounded), ((&name, &symbol), &altloc)), (&b, &occupancy))| {
                AtomLine {
                    xyz: [x, y, z],
                    b_factor: b,
                    occupancy,
                    name,
                    element: element(symbol, name),
                    altloc,
                    rounded,
                }
            },
        )
    }

    /// The atom of a row, with its position in 0.001 A.
    fn atom(&self, row: usize, xyz: [i32; 3], rounded: bool) -> AtomLine {
        AtomLine {
            xyz,
            b_factor: self.b_factors[row],
            occupancy: self.occupancies[row],
            name: self.names[row],
            element: element(self.symbols[row], self.names[row]),
            altloc: self.altlocs[row],
            rounded,
        }
    }
}

fn place(row: usize) -> FilePlace<'static> {
    FilePlace::Row("atom_site", row as u32)
}
