//! The rows of `_atom_site` in text.

use std::ops::Range;

use super::atom_site::{
    AtomSiteItem, CHAIN_ITEMS, ITEM_COUNT, RESIDUE_ITEMS, RunStart, element_of_name, find_columns,
    symbol_number,
};
use super::lexer::strip_prefix;
use super::not_null;
use super::rows::LoopRows;
use crate::Models;
use crate::Result;
use crate::atom_table::{AtomLine, AtomTable};
use crate::decimal::{self, OCCUPANCY_ONE, fixed8};
use crate::text::{FilePlace, at_line, quoted};
use crate::text8::Text8;

/// Whether a tag is an item of `_atom_site`.
pub(super) fn is_item(tag: &[u8]) -> bool {
    strip_prefix(tag, b"_atom_site.").is_some()
}

/// Whether a tag is the item of the B factor.
pub(super) fn is_b_factor(tag: &[u8]) -> bool {
    is_named(tag, AtomSiteItem::BFactor.name())
}

/// Whether a tag is the item `name` of `_atom_site`.
fn is_named(tag: &[u8], name: &str) -> bool {
    let item = strip_prefix(tag, b"_atom_site.");
    item.is_some_and(|item| item.eq_ignore_ascii_case(name.as_bytes()))
}

/// Start and end in the text.
type TextRange = (usize, usize);

/// Turns rows into atoms.
pub(super) struct AtomSiteRows<'a> {
    text: &'a [u8],
    table: &'a mut AtomTable,
    models: Models,
    /// For each item, the index of its start in the edges of a row.
    columns: [usize; ITEM_COUNT],
    /// The residue of the previous atom.
    last: ResidueItems,
    /// Whether there is a previous atom.
    has_last: bool,
    /// Whether the words of the previous atom's residue are its whole values, so that a row with
    /// the same words and no longer value is of that residue.
    has_whole_words: bool,
}

/// The items that all atoms of a residue share: their first eight bytes, which are nearly always
/// the whole value, and the whole value's position.
#[derive(Clone, Copy, Default)]
struct ResidueItems {
    words: [u64; RESIDUE_ITEMS],
    spans: [TextRange; RESIDUE_ITEMS],
    /// Whether a value has more than eight bytes.
    is_long: bool,
}

impl<'a> AtomSiteRows<'a> {
    /// Reads rows of the items `tags` into `table`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if the items lack a coordinate, the atom's
    /// name or the component.
    pub(super) fn new(
        text: &'a [u8],
        tags: &[&[u8]],
        models: Models,
        table: &'a mut AtomTable,
    ) -> Result<Self> {
        let column = |name: &str| tags.iter().position(|tag| is_named(tag, name));
        // Items that the file lacks take the empty range after the last column.
        let columns = find_columns(column)?;
        let columns = columns.map(|column| 2 * column.unwrap_or(tags.len()));
        Ok(AtomSiteRows {
            text,
            table,
            models,
            columns,
            last: ResidueItems::default(),
            has_last: false,
            has_whole_words: false,
        })
    }

    pub(super) fn read(&mut self, rows: &mut LoopRows) -> Result<()> {
        while rows.next()? {
            self.add_row(rows.edges())?;
        }
        Ok(())
    }

    /// Adds the atom of a row, unless its model is not wanted. `edges` is [`LoopRows::edges`]. Most
    /// rows are of the residue before, so their items are compared as words, without a branch for
    /// each.
    #[inline]
    pub(super) fn add_row(&mut self, edges: &[u32]) -> Result<()> {
        let (text, columns) = (self.text, self.columns);
        let span = |item: AtomSiteItem| span_at(edges, columns[item as usize]);
        let mut words = [0; RESIDUE_ITEMS];
        let mut is_long = false;
        for (word, &column) in words.iter_mut().zip(&columns) {
            let span = span_at(edges, column);
            *word = first8(text, span);
            is_long |= span.1 - span.0 > 8;
        }
        let pairs = words.iter().zip(&self.last.words);
        let differs = pairs.fold(0, |bits, (a, b)| bits | (a ^ b)) != 0;
        if (!self.has_whole_words | is_long | differs) && !self.enter_residue(words, edges)? {
            return Ok(());
        }
        let (xyz, rounded) = match usual_coordinates(
            text,
            [AtomSiteItem::X, AtomSiteItem::Y, AtomSiteItem::Z].map(span),
        ) {
            Some(xyz) => (xyz, false),
            None => self.any_coordinates(edges)?,
        };
        let name = padded8(text, span(AtomSiteItem::Name));
        let symbol = span(AtomSiteItem::Symbol);
        let element = match symbol_number(&text[symbol.0..symbol.1]) {
            0 => self.guess_element(name),
            number => number,
        };
        self.table.push(AtomLine {
            xyz,
            b_factor: b_factor(text, span(AtomSiteItem::BFactor)),
            occupancy: occupancy(text, span(AtomSiteItem::Occupancy)),
            name,
            element,
            altloc: self
                .value(edges, AtomSiteItem::AltId)
                .first()
                .copied()
                .unwrap_or(0),
            rounded,
        })
    }

    /// Starts a run if the row is of another residue than the last one, as the first bytes of its
    /// items suggest, or values that are longer. Returns false if the row's model is not wanted.
    #[inline(never)]
    fn enter_residue(&mut self, words: [u64; RESIDUE_ITEMS], edges: &[u32]) -> Result<bool> {
        let mut key = ResidueItems {
            words,
            ..ResidueItems::default()
        };
        for (span, &column) in key.spans.iter_mut().zip(&self.columns) {
            *span = span_at(edges, column);
            key.is_long |= span.1 - span.0 > 8;
        }
        if self.has_last && self.is_last(&key, 0..RESIDUE_ITEMS) {
            return Ok(true);
        }
        self.start_run(key, edges)
    }

    /// Whether a residue has the same `items` as the last one.
    fn is_last(&self, key: &ResidueItems, items: Range<usize>) -> bool {
        let value = |(start, end): TextRange| &self.text[start..end];
        key.words[items.clone()] == self.last.words[items.clone()]
            && key.is_long == self.last.is_long
            && (!key.is_long
                || items
                    .into_iter()
                    .all(|item| value(key.spans[item]) == value(self.last.spans[item])))
    }

    /// Starts a run of atoms with the items of this row, unless its model is not wanted. Returns
    /// whether it was started.
    fn start_run(&mut self, key: ResidueItems, edges: &[u32]) -> Result<bool> {
        let (text, columns) = (self.text, self.columns);
        let run = RunStart {
            value: |item: AtomSiteItem| {
                let (start, end) = span_at(edges, columns[item as usize]);
                &text[start..end]
            },
            integer: |_| None,
            is_same_chain: self.has_last && self.is_last(&key, CHAIN_ITEMS),
            place: FilePlace::Line(text, edges[0]),
        };
        let is_wanted = run.add(self.table, self.models)?;
        if is_wanted {
            self.has_whole_words = !key.is_long;
            (self.last, self.has_last) = (key, true);
        }
        Ok(is_wanted)
    }

    /// The value of an item, empty for null.
    fn value(&self, edges: &[u32], item: AtomSiteItem) -> &'a [u8] {
        let (start, end) = span_at(edges, self.columns[item as usize]);
        not_null(&self.text[start..end])
    }

    /// The element of an atom whose row states none that is known, by its name. Notes in the table that
    /// elements were guessed.
    #[cold]
    #[inline(never)]
    fn guess_element(&mut self, name: Text8) -> u8 {
        self.table.guesses_elements = true;
        element_of_name(name)
    }

    /// Coordinates of any form, and whether one was rounded. An
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) error with the line if one is no number or too
    /// large.
    #[inline(never)]
    fn any_coordinates(&self, edges: &[u32]) -> Result<([i32; 3], bool)> {
        let items = [AtomSiteItem::X, AtomSiteItem::Y, AtomSiteItem::Z];
        let spans = items.map(|item| span_at(edges, self.columns[item as usize]));
        let texts = spans.map(|(start, end)| &self.text[start..end]);
        decimal::coordinates(texts).map_err(|(axis, bad)| {
            let message = format!("{} {} {bad}", items[axis].name(), quoted(texts[axis]));
            at_line(self.text, spans[axis].0, message)
        })
    }
}

#[inline(always)]
fn span_at(edges: &[u32], edge: usize) -> TextRange {
    (edges[edge] as usize, edges[edge + 1] as usize)
}

/// The first eight bytes of a value, padded with zeros.
#[inline(always)]
fn first8(text: &[u8], (start, end): TextRange) -> u64 {
    let len = end - start;
    match text[start..].first_chunk() {
        Some(_) if len == 0 => 0,
        Some(bytes) => u64::from_le_bytes(*bytes) & (!0 >> (64 - 8 * len.min(8))),
        None => {
            let mut bytes = [0; 8];
            bytes[..len].copy_from_slice(&text[start..end]);
            u64::from_le_bytes(bytes)
        }
    }
}

/// The first eight bytes of a value, padded with spaces.
#[inline]
fn padded8(text: &[u8], span: TextRange) -> Text8 {
    let len = (span.1 - span.0).min(8);
    let spaces = u64::from_le_bytes(*b"        ");
    let padding = if len == 8 { 0 } else { spaces << (8 * len) };
    (first8(text, span) | padding).to_le_bytes()
}

/// A number of three to eight characters with one to three decimals, as the eight columns that
/// [`fixed8`] reads; `None` for values of another length.
#[inline(always)]
fn eight_columns(text: &[u8], (start, end): TextRange) -> Option<u64> {
    let len = end - start;
    // In a shorter value a point before the value would be taken for its own.
    if !(3..=8).contains(&len) || end < 8 {
        return None;
    }
    let bytes = text[end - 8..].first_chunk()?;
    let before = !(!0u64 << (8 * (8 - len)));
    let columns = u64::from_le_bytes(*bytes) & !before | u64::from_le_bytes(*b"        ") & before;
    // Move the point to the fifth column, with zeros after the decimals.
    Some(if bytes[5] == b'.' {
        columns >> 8 | u64::from(b'0') << 56
    } else if bytes[6] == b'.' {
        columns >> 16 | 0x3030 << 48
    } else {
        columns
    })
}

#[inline(always)]
fn thousandths(text: &[u8], span: TextRange) -> Option<i32> {
    fixed8([eight_columns(text, span)?]).map(|[value]| value)
}

#[inline(always)]
fn usual_coordinates(text: &[u8], [x, y, z]: [TextRange; 3]) -> Option<[i32; 3]> {
    fixed8([
        eight_columns(text, x)?,
        eight_columns(text, y)?,
        eight_columns(text, z)?,
    ])
}

#[inline]
fn occupancy(text: &[u8], span: TextRange) -> i32 {
    match thousandths(text, span) {
        // The fixed form goes up to 9999 only.
        Some(value) => value.saturating_mul(OCCUPANCY_ONE / 1000),
        None => decimal::occupancy(&text[span.0..span.1]),
    }
}

#[inline]
fn b_factor(text: &[u8], span: TextRange) -> f32 {
    match thousandths(text, span) {
        Some(value) => decimal::thousandths_to_f32(value),
        None => decimal::b_factor(&text[span.0..span.1]),
    }
}
