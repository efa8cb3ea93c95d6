//! A short table of a structure, for a reader at a terminal.

use super::cell::{Cell, decimals};
use super::column::TableColumn;
use super::structure_rows::{RowRange, StructureRows, row_count};
use crate::config::OutputTable;
use arrow_array::{Array, ArrayRef};
use std::io::Write;
use std::sync::Arc;
use tapeloop::error::{Context, Result};
use tapeloop::features::ColumnDecl;
use tapeloop_bench::internal::format;
use tapeloop_error::internal::printable;

/// Maximum width of a line, in characters. A terminal would break a longer one.
const WIDTH: usize = 100;

/// Residues of a structure that the table shows: it is a glance at the results, which files hold in
/// full.
const ROWS_MAX: usize = 40;

/// Columns that come before all others.
const FIRST: [&str; 10] = [
    "ss8", "phi", "psi", "sasa", "rsa", "cn_ca_10", "wcn", "hse_b_up", "b_ca", "plddt",
];

/// A null.
const NULL: &str = ".";

/// Prints the first residues of each structure, with the columns that fit into a line.
pub struct TerminalTable {
    /// The residues' columns of features, those of [`FIRST`] first.
    columns: Vec<TableColumn>,
    is_empty: bool,
}

/// A column as it is printed.
struct ShownColumn {
    name: String,
    cells: Vec<String>,
    width: usize,
}

impl ShownColumn {
    fn new(name: &str, cells: Vec<String>) -> Self {
        let widths = cells.iter().map(|cell| cell.chars().count());
        ShownColumn {
            width: widths.max().unwrap_or(0).max(name.len()),
            name: name.to_owned(),
            cells,
        }
    }
}

impl TerminalTable {
    /// A table of these columns of residues.
    pub fn new(features: &[ColumnDecl]) -> Self {
        let columns = features.iter().enumerate();
        let mut columns: Vec<TableColumn> = columns
            .map(|(index, decl)| TableColumn::feature(decl, index, OutputTable::RESIDUES))
            .collect();
        let place = |column: &TableColumn| FIRST.iter().position(|name| *name == column.spec.name);
        columns.sort_by_key(|column| place(column).unwrap_or(FIRST.len()));
        TerminalTable {
            columns,
            is_empty: true,
        }
    }

    /// Prints a structure to standard output.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tapeloop::ErrorKind::Io) if standard output cannot be written to.
    pub fn print(&mut self, record: StructureRows) -> Result<()> {
        let mut text = self.text(&Arc::new(record));
        if !std::mem::take(&mut self.is_empty) {
            text.insert(0, '\n');
        }
        let mut stdout = std::io::stdout();
        let written = stdout.write_all(text.as_bytes());
        written
            .and_then(|()| stdout.flush())
            .within(|| super::part_file::STDOUT)
    }

    /// The table of a structure: as many rows and columns as fit, and a line about the others.
    /// Columns without a value are left out.
    fn text(&self, record: &Arc<StructureRows>) -> String {
        let all = record.rows(OutputTable::RESIDUES);
        let range = |rows| RowRange {
            record: Arc::clone(record),
            rows,
        };
        let ranges: Vec<RowRange> = all.iter().cloned().map(range).collect();
        let rows = row_count(&ranges);
        let shown_rows = rows.min(ROWS_MAX);
        let first: Vec<usize> = all.into_iter().flatten().take(shown_rows).collect();
        let mut shown = named(record, &first);
        let mut width: usize = shown.iter().map(|column| column.width + 2).sum();
        let mut count = 0;
        for column in &self.columns {
            let array = column.gather(&ranges);
            if array.null_count() == array.len() {
                continue;
            }
            let next = ShownColumn::new(&column.spec.name, cells(&array, shown_rows));
            // Columns that do not fit are left out, and narrower ones after them as well.
            width += next.width + 2;
            if width > WIDTH && count > 0 {
                break;
            }
            count += 1;
            shown.push(next);
        }
        let mut text = title(record);
        let line = |cells: &mut dyn Iterator<Item = (&str, usize)>| {
            let cells = cells.map(|(cell, width)| format!("{cell:>width$}"));
            let line: Vec<String> = cells.collect();
            line.join("  ") + "\n"
        };
        text += &line(&mut shown.iter().map(|column| (&*column.name, column.width)));
        for row in 0..shown_rows {
            text += &line(
                &mut shown
                    .iter()
                    .map(|column| (&*column.cells[row], column.width)),
            );
        }
        let all = self.columns.len();
        text += &match (rows - shown_rows, count < all) {
            (0, false) => String::new(),
            (0, true) => format!("{count} of {all} columns; --format csv prints all\n"),
            (more, _) => format!(
                "... {} more; --format csv prints all residues, and all {all} columns\n",
                format::counted(more as u64, "residue")
            ),
        };
        text
    }
}

/// The line above a structure's table.
fn title(record: &StructureRows) -> String {
    let model = match record.structure.model {
        1 => String::new(),
        model => format!(" model {model}"),
    };
    format!(
        "{}{model}: {} in {}, {}\n",
        printable(&record.name),
        format::counted(record.structure.residues.len() as u64, "residue"),
        format::counted(record.chains.len() as u64, "chain"),
        format::counted(record.atoms.into(), "atom")
    )
}

/// The columns that identify a residue.
fn named(record: &StructureRows, rows: &[usize]) -> Vec<ShownColumn> {
    let column = |name: &str, cell: &dyn Fn(usize) -> String| {
        ShownColumn::new(name, rows.iter().copied().map(cell).collect())
    };
    let letters = |text: &[u8]| printable(text.trim_ascii()).into_owned();
    let chains = record.structure.distinct_chain_names();
    vec![
        column("chain", &|row| {
            letters(chains[record.residue(row).chain as usize].as_bytes())
        }),
        column("residue", &|row| {
            let residue = record.residue(row);
            let insertion = [residue.ins_code];
            let insertion = insertion.strip_prefix(&[0]).unwrap_or(&insertion);
            let number = record
                .number(row)
                .map_or("?".to_owned(), |text| text.to_string());
            format!("{number}{}", letters(insertion))
        }),
        column("name", &|row| letters(&record.residue(row).comp_id)),
    ]
}

/// The texts of a column's first rows, reals with as many decimals as they need.
fn cells(array: &ArrayRef, rows: usize) -> Vec<String> {
    let cells: Vec<Cell<'_>> = (0..rows).map(|row| Cell::new(array, row)).collect();
    let decimals = decimals(&cells);
    let text = |cell: &Cell<'_>| match cell {
        Cell::Null => NULL.to_owned(),
        Cell::Text(text) => printable(text).into_owned(),
        Cell::Integer(integer) => integer.to_string(),
        Cell::Unsigned(integer) => integer.to_string(),
        Cell::Real(real) => format!("{real:.decimals$}"),
        Cell::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
    };
    cells.iter().map(text).collect()
}
