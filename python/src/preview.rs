//! What a reader sees of a table: its shape, and its first and last rows.

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use std::collections::HashMap;
use std::fmt::Write;
use tapeloop_cli::config::feature_of_column;
use tapeloop_cli::tables::{Cell, decimals, identifying_columns};
use tapeloop_error::internal::printable;
use tapeloop_svg::escape;

/// Gap between two columns of text.
const GAP: usize = 2;

/// Maximum width of a text in a cell, in characters: two or three such columns fit a terminal; and in one of HTML,
/// which a page breaks into lines.
pub(crate) const CELL_WIDTH: usize = 32;
const HTML_CELL_WIDTH: usize = 200;

/// Rows that are shown, half of them from the start of the table and half from its end: a glance, without scrolling.
const ROWS: usize = 10;

/// Maximum number of columns in HTML, which scrolls sideways; a terminal shows what fits its width.
const HTML_COLUMNS: usize = 20;

/// Columns that name a residue or a pair; they are shown first.
const NAMES: [&str; 8] = [
    "structure",
    "auth_asym_id",
    "auth_seq_id",
    "comp_id",
    "auth_asym_id_i",
    "auth_seq_id_i",
    "auth_asym_id_j",
    "auth_seq_id_j",
];

/// The column of paths, whose ends are shown. It names the rows of a table without structures.
const SOURCE: &str = "source";

/// What stands for rows that are left out.
const MORE: &str = "...";

const NULL: &str = "null";

/// A column as it is shown.
struct Shown<'a> {
    field: &'a Field,
    cells: Vec<String>,
    is_number: bool,
    width: usize,
}

/// The rows of a table that are shown.
pub(crate) struct Preview<'a> {
    /// The name of the class.
    class: &'a str,
    schema: &'a Schema,
    batches: &'a [RecordBatch],
}

impl<'a> Preview<'a> {
    pub(crate) fn new(class: &'a str, schema: &'a Schema, batches: &'a [RecordBatch]) -> Self {
        Preview {
            class,
            schema,
            batches,
        }
    }

    fn row_count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The rows that are shown, and how many of them come before those that are left out.
    fn rows(&self) -> (Vec<usize>, Option<usize>) {
        let count = self.row_count();
        if count <= ROWS {
            return ((0..count).collect(), None);
        }
        let start = ROWS.div_ceil(2);
        let rows = (0..start).chain(count - (ROWS - start)..count);
        (rows.collect(), Some(start))
    }

    /// A column of the preview, as wide as its cells and its name.
    fn column(&self, index: usize, rows: &[usize], cell_width: usize) -> Shown<'a> {
        let field = self.schema.field(index);
        let cell = |&row: &usize| {
            let mut row = row;
            for batch in self.batches {
                if row < batch.num_rows() {
                    return Cell::new(batch.column(index), row);
                }
                row -= batch.num_rows();
            }
            Cell::Null
        };
        let values: Vec<Cell<'_>> = rows.iter().map(cell).collect();
        let cells = texts(&values, cell_width, field.name() == SOURCE);
        let widths = cells.iter().map(|cell| cell.chars().count());
        let names = field
            .name()
            .chars()
            .count()
            .max(unit(field).chars().count());
        Shown {
            field,
            is_number: values.iter().any(Cell::is_number),
            width: widths.max().unwrap_or(0).max(names),
            cells,
        }
    }

    /// The columns that are shown, in the order of the table: those that name a residue or a pair, then the
    /// first column of each feature, the second and so on, then the others, as long as `fits` takes one
    /// of their width.
    fn columns(
        &self,
        rows: &[usize],
        cell_width: usize,
        mut fits: impl FnMut(usize) -> bool,
    ) -> Vec<Shown<'a>> {
        let identifying = identifying_columns();
        let has_structures = self.schema.column_with_name(NAMES[0]).is_some();
        let mut columns_of = HashMap::new();
        let mut rank = |name: &String| {
            if NAMES.contains(&&**name) || (name == SOURCE && !has_structures) {
                return (0, 0);
            }
            if identifying.contains(name) {
                return (2, 0);
            }
            // A column that is of no feature stands for itself.
            let Some(place) = feature_of_column(name) else {
                return (1, 0);
            };
            let count: &mut usize = columns_of.entry(place.feature).or_default();
            *count += 1;
            (1, *count - 1)
        };
        let ranks: Vec<(usize, usize)> = self
            .schema
            .fields()
            .iter()
            .map(|field| rank(field.name()))
            .collect();
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        order.sort_by_key(|index| ranks[*index]);
        let mut shown: Vec<(usize, Shown<'a>)> = Vec::new();
        for index in order {
            let column = self.column(index, rows, cell_width);
            // One column is shown however wide it is.
            if !fits(column.width) && !shown.is_empty() {
                break;
            }
            shown.push((index, column));
        }
        shown.sort_by_key(|(index, _)| *index);
        shown.into_iter().map(|(_, column)| column).collect()
    }

    /// `pytapeloop.Table: 76 rows, 30 columns (8 shown)`.
    fn title(&self, shown: usize) -> String {
        let columns = self.schema.fields().len();
        let title = format!(
            "{}, {}",
            counted(self.row_count(), "row"),
            counted(columns, "column")
        );
        if shown < columns {
            format!("{title} ({shown} shown)")
        } else {
            title
        }
    }

    /// The shape, the names with their units below, and the first and last rows, in lines of at most
    /// `line_width` characters.
    pub(crate) fn text(&self, line_width: usize) -> String {
        let (rows, rows_cut) = self.rows();
        let mut width = 0;
        let columns = self.columns(&rows, CELL_WIDTH, |column| {
            width += column + GAP;
            width - GAP <= line_width
        });
        let line = |cell: &dyn Fn(&Shown<'_>) -> String| {
            let cells = columns.iter().map(|column| {
                let (text, width) = (cell(column), column.width);
                if column.is_number {
                    format!("{text:>width$}")
                } else {
                    format!("{text:<width$}")
                }
            });
            let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
            format!("\n{}", line.trim_end())
        };
        let mut text = format!("pytapeloop.{}: {}", self.class, self.title(columns.len()));
        text += &line(&|column| printable(column.field.name()).into_owned());
        if columns.iter().any(|column| !unit(column.field).is_empty()) {
            text += &line(&|column| unit(column.field).to_owned());
        }
        for row in 0..rows.len() {
            if Some(row) == rows_cut {
                text += &format!("\n{MORE}");
            }
            text += &line(&|column| column.cells[row].clone());
        }
        text
    }

    /// The same as a table of HTML, in the colours of the page. The description of a column is its title.
    pub(crate) fn html(&self) -> String {
        let (rows, rows_cut) = self.rows();
        let mut left = HTML_COLUMNS;
        let columns = self.columns(&rows, HTML_CELL_WIDTH, |_| {
            let fits = left > 0;
            left = left.saturating_sub(1);
            fits
        });
        let quiet = "font-weight: normal; opacity: 0.7";
        let line = |cell: &dyn Fn(&Shown<'_>, &str) -> String| {
            let cells = columns.iter().map(|column| {
                let side = if column.is_number { "right" } else { "left" };
                cell(column, &format!("text-align: {side}"))
            });
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let mut html = String::from("<div style=\"overflow-x: auto\">\n<table>\n<thead>\n");
        html += &line(&|column, style| {
            let about = column.field.metadata().get("description");
            let about = escape(about.map_or("", String::as_str));
            let name = escape(&printable(column.field.name()));
            format!("<th style=\"{style}\" title=\"{about}\">{name}</th>")
        });
        if columns.iter().any(|column| !unit(column.field).is_empty()) {
            html += &line(&|column, style| {
                format!(
                    "<th style=\"{style}; {quiet}\">{}</th>",
                    escape(unit(column.field))
                )
            });
        }
        html += "</thead>\n<tbody>\n";
        for row in 0..rows.len() {
            if Some(row) == rows_cut {
                html += &line(&|_, style| format!("<td style=\"{style}\">{MORE}</td>"));
            }
            html += &line(&|column, style| match &*column.cells[row] {
                NULL => format!("<td style=\"{style}; {quiet}\">{NULL}</td>"),
                text => format!("<td style=\"{style}\">{}</td>", escape(text)),
            });
        }
        // Writing to a string cannot fail.
        let _ = write!(
            html,
            "</tbody>\n</table>\n<p>{}</p>\n</div>",
            self.title(columns.len())
        );
        html
    }
}

/// The values of a column as text, with as many decimals for all of its reals. Of a text of more than
/// `width` characters the end is shown if `keeps_end`, else the start.
pub(crate) fn texts(cells: &[Cell<'_>], width: usize, keeps_end: bool) -> Vec<String> {
    let decimals = decimals(cells);
    let text = |cell: &Cell<'_>| match cell {
        Cell::Null => NULL.to_owned(),
        Cell::Text(text) => cut(&printable(text), width, keeps_end),
        Cell::Integer(integer) => integer.to_string(),
        Cell::Unsigned(integer) => integer.to_string(),
        Cell::Real(real) => format!("{real:.decimals$}"),
        Cell::Flag(flag) => if *flag { "True" } else { "False" }.to_owned(),
    };
    cells.iter().map(text).collect()
}

/// The text with a sign in place of what is too wide, at its end or, if `keeps_end`, at its start.
fn cut(text: &str, width: usize, keeps_end: bool) -> String {
    let (length, kept) = (text.chars().count(), width - MORE.len());
    if length <= width {
        text.to_owned()
    } else if keeps_end {
        MORE.chars()
            .chain(text.chars().skip(length - kept))
            .collect()
    } else {
        text.chars().take(kept).chain(MORE.chars()).collect()
    }
}

/// The unit of a column; empty if it has none.
pub(crate) fn unit(field: &Field) -> &str {
    field.metadata().get("unit").map_or("", String::as_str)
}

/// `1 row`, `76 rows`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}
