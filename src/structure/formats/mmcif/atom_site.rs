//! The rows of mmCIF's `_atom_site` category.

use std::ops::Range;

use super::lexer::strip_prefix;
use super::rows::{Rows, not_null};
use crate::structure::atom_table::{Atom, AtomTable, Run};
use crate::structure::decimal::{self, OCCUPANCY_ONE, fixed8, int};
use crate::structure::text::{at_line, on_line, quoted};
use crate::structure::text8::Text8;
use crate::structure::{Models, element};
use crate::{Error, Result};

/// The items that are read, first those that all atoms of a residue share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    Comp,
    Label,
    Auth,
    Entity,
    LabelSeq,
    AuthSeq,
    InsCode,
    Model,
    Group,
    Symbol,
    Name,
    AltId,
    X,
    Y,
    Z,
    Occupancy,
    BFactor,
    DbName,
    DbAccession,
    DbNumber,
}

/// How many items all atoms of a residue share.
const RESIDUE_ITEMS: usize = Item::Model as usize + 1;
/// Those that all atoms of a chain share.
const CHAIN_ITEMS: Range<usize> = Item::Label as usize..Item::Entity as usize + 1;
const ITEM_COUNT: usize = Item::DbNumber as usize + 1;

/// The names of each item; the first that a file has counts.
const NAMES: [(Item, &[&str]); ITEM_COUNT] = [
    (Item::Comp, &["label_comp_id", "auth_comp_id"]),
    (Item::Label, &["label_asym_id"]),
    (Item::Auth, &["auth_asym_id"]),
    (Item::Entity, &["label_entity_id"]),
    (Item::LabelSeq, &["label_seq_id"]),
    (Item::AuthSeq, &["auth_seq_id"]),
    (Item::InsCode, &["pdbx_PDB_ins_code"]),
    (Item::Model, &["pdbx_PDB_model_num"]),
    (Item::Group, &["group_PDB"]),
    (Item::Symbol, &["type_symbol"]),
    (Item::Name, &["label_atom_id", "auth_atom_id"]),
    (Item::AltId, &["label_alt_id"]),
    (Item::X, &["Cartn_x"]),
    (Item::Y, &["Cartn_y"]),
    (Item::Z, &["Cartn_z"]),
    (Item::Occupancy, &["occupancy"]),
    (Item::BFactor, &["B_iso_or_equiv"]),
    (Item::DbName, &["pdbx_sifts_xref_db_name"]),
    (Item::DbAccession, &["pdbx_sifts_xref_db_acc"]),
    (Item::DbNumber, &["pdbx_sifts_xref_db_num"]),
];

/// Whether a tag is an item of `_atom_site`.
pub(super) fn is_item(tag: &[u8]) -> bool {
    strip_prefix(tag, b"_atom_site.").is_some()
}

/// Whether a tag is the item of the B factor.
pub(super) fn is_b_factor(tag: &[u8]) -> bool {
    is_named(tag, Item::BFactor.name())
}

/// Whether a tag is the item `name` of `_atom_site`.
fn is_named(tag: &[u8], name: &str) -> bool {
    let item = strip_prefix(tag, b"_atom_site.");
    item.is_some_and(|item| item.eq_ignore_ascii_case(name.as_bytes()))
}

impl Item {
    /// The first of its names.
    fn name(self) -> &'static str {
        NAMES[self as usize].1[0]
    }
}

/// Start and end in the text.
type Span = (usize, usize);

/// Turns rows into atoms.
pub(super) struct AtomSite<'a> {
    text: &'a [u8],
    table: &'a mut AtomTable,
    models: Models,
    /// For each item, the index of its start in the edges of a row.
    columns: [usize; ITEM_COUNT],
    /// The residue of the previous atom.
    last: ResidueKey,
    /// Whether there is a previous atom.
    has_last: bool,
}

/// The items that all atoms of a residue share: their first eight bytes, which are nearly always
/// the whole value, and the whole value's position.
#[derive(Clone, Copy, Default)]
struct ResidueKey {
    words: [u64; RESIDUE_ITEMS],
    spans: [Span; RESIDUE_ITEMS],
    /// Whether a value has more than eight bytes.
    is_long: bool,
}

impl<'a> AtomSite<'a> {
    /// Reads rows of the items `tags` into `table`.
    ///
    /// # Errors
    /// The items lack a coordinate, the atom's name or the component.
    pub(super) fn new(
        text: &'a [u8],
        tags: &[&[u8]],
        models: Models,
        table: &'a mut AtomTable,
    ) -> Result<Self> {
        let column = |name: &&str| tags.iter().position(|tag| is_named(tag, name));
        // Items that the file lacks take the empty range after the last column.
        let mut columns = [2 * tags.len(); ITEM_COUNT];
        for (item, names) in NAMES {
            if let Some(at) = names.iter().find_map(column) {
                columns[item as usize] = 2 * at;
            } else if matches!(item, Item::X | Item::Y | Item::Z | Item::Name | Item::Comp) {
                return Err(Error::input(format!("_atom_site has no {}", names[0])));
            }
        }
        Ok(AtomSite {
            text,
            table,
            models,
            columns,
            last: ResidueKey::default(),
            has_last: false,
        })
    }

    pub(super) fn read(&mut self, rows: &mut Rows) -> Result<()> {
        while rows.next()? {
            self.row(rows.edges())?;
        }
        Ok(())
    }

    /// Adds the atom of a row. `edges` is [`Rows::edges`].
    #[inline]
    pub(super) fn row(&mut self, edges: &[u32]) -> Result<()> {
        let (text, columns) = (self.text, self.columns);
        let span = |item: Item| span_at(edges, columns[item as usize]);
        let mut words = [0; RESIDUE_ITEMS];
        let mut is_long = false;
        for (word, &at) in words.iter_mut().zip(&columns) {
            let span = span_at(edges, at);
            *word = first8(text, span);
            is_long |= span.1 - span.0 > 8;
        }
        let pairs = words.iter().zip(&self.last.words);
        let differs = pairs.fold(0, |bits, (a, b)| bits | (a ^ b)) != 0;
        if (!self.has_last | is_long | differs) && !self.enter_residue(words, edges)? {
            return Ok(());
        }
        let (xyz, rounded) = match usual_coordinates(text, [Item::X, Item::Y, Item::Z].map(span)) {
            Some(xyz) => (xyz, false),
            None => self.any_coordinates(edges)?,
        };
        let name = padded8(text, span(Item::Name));
        self.table.push(Atom {
            xyz,
            b_factor: b_factor(text, span(Item::BFactor)),
            occupancy: occupancy(text, span(Item::Occupancy)),
            name,
            element: element(text, span(Item::Symbol), name),
            altloc: self.value(edges, Item::AltId).first().copied().unwrap_or(0),
            rounded,
        })
    }

    /// Starts a run if the row is of another residue than the last one, as the first bytes of its
    /// items suggest. Returns false if the row's model is not wanted.
    #[inline(never)]
    fn enter_residue(&mut self, words: [u64; RESIDUE_ITEMS], edges: &[u32]) -> Result<bool> {
        let mut key = ResidueKey {
            words,
            ..ResidueKey::default()
        };
        for (span, &at) in key.spans.iter_mut().zip(&self.columns) {
            *span = span_at(edges, at);
            key.is_long |= span.1 - span.0 > 8;
        }
        if self.has_last && self.is_last(&key, 0..RESIDUE_ITEMS) {
            return Ok(true);
        }
        self.start_run(key, edges)
    }

    /// Whether a residue has the same `items` as the last one.
    fn is_last(&self, key: &ResidueKey, items: Range<usize>) -> bool {
        let value = |(start, end): Span| &self.text[start..end];
        key.words[items.clone()] == self.last.words[items.clone()]
            && key.is_long == self.last.is_long
            && (!key.is_long
                || items
                    .into_iter()
                    .all(|item| value(key.spans[item]) == value(self.last.spans[item])))
    }

    fn start_run(&mut self, key: ResidueKey, edges: &[u32]) -> Result<bool> {
        let Some(model) = self.model(edges)? else {
            return Ok(false);
        };
        let last_chain = self.table.runs.last().map(|run| run.chain);
        let chain = match last_chain {
            Some(chain) if self.has_last && self.is_last(&key, CHAIN_ITEMS) => chain,
            _ => {
                let label = self.value(edges, Item::Label);
                let auth = self.value(edges, Item::Auth);
                let auth = if auth.is_empty() { label } else { auth };
                let entity = self.value(edges, Item::Entity);
                self.check_name(Item::Label, label, edges)?;
                self.check_name(Item::Auth, auth, edges)?;
                self.check_name(Item::Entity, entity, edges)?;
                self.table.chain(auth, label, entity)?
            }
        };
        let label_seq = int(self.value(edges, Item::LabelSeq));
        let (seq, letter) = author_number(self.value(edges, Item::AuthSeq));
        let ins_code = self.value(edges, Item::InsCode).first();
        let group = self.value(edges, Item::Group).first();
        let run = Run {
            model,
            chain,
            seq: seq.or(label_seq),
            label_seq,
            ins_code: ins_code.copied().unwrap_or(letter),
            comp: padded8(self.text, key.spans[Item::Comp as usize]),
            hetero: group.is_some_and(|group| group.eq_ignore_ascii_case(&b'H')),
            uniprot: self.uniprot(edges)?,
            offset: edges[0],
            ..Run::default()
        };
        self.table.start_run(run)?;
        (self.last, self.has_last) = (key, true);
        Ok(true)
    }

    /// The index of a row's model; `None` if the model is not wanted.
    fn model(&mut self, edges: &[u32]) -> Result<Option<u32>> {
        let number = match self.value(edges, Item::Model) {
            b"" => 1,
            text => int(text).ok_or_else(|| {
                let message = format!("model number {} is not a number", quoted(text));
                at_line(self.text, edges[0] as usize, message)
            })?,
        };
        if let Some(known) = self.table.model(number) {
            return Ok(Some(known));
        }
        if self.models == Models::First && !self.table.models.is_empty() {
            return Ok(None);
        }
        self.table.add_model(number).map(Some)
    }

    /// The UniProt residue that a row names.
    fn uniprot(&mut self, edges: &[u32]) -> Result<Option<(u32, i32)>> {
        let accession = self.value(edges, Item::DbAccession);
        let is_uniprot = self.value(edges, Item::DbName).eq_ignore_ascii_case(b"UNP");
        match int(self.value(edges, Item::DbNumber)) {
            Some(position) if is_uniprot && !accession.is_empty() => {
                self.check_name(Item::DbAccession, accession, edges)?;
                Ok(Some((self.table.accession(accession), position)))
            }
            _ => Ok(None),
        }
    }

    /// Refuses a name that is over its limit.
    fn check_name(&self, item: Item, name: &[u8], edges: &[u32]) -> Result<()> {
        let checked = self.table.limits.check_name(item.name(), name);
        checked.map_err(|error| on_line(self.text, edges[0] as usize, error))
    }

    /// The value of an item, empty for null.
    fn value(&self, edges: &[u32], item: Item) -> &'a [u8] {
        let (start, end) = span_at(edges, self.columns[item as usize]);
        not_null(&self.text[start..end])
    }

    /// Coordinates of any form, and whether one was rounded.
    #[inline(never)]
    fn any_coordinates(&self, edges: &[u32]) -> Result<([i32; 3], bool)> {
        let items = [Item::X, Item::Y, Item::Z];
        let spans = items.map(|item| span_at(edges, self.columns[item as usize]));
        let texts = spans.map(|(start, end)| &self.text[start..end]);
        decimal::coordinates(texts).map_err(|(axis, bad)| {
            let message = format!("{} {} {bad}", items[axis].name(), quoted(texts[axis]));
            at_line(self.text, spans[axis].0, message)
        })
    }
}

#[inline(always)]
fn span_at(edges: &[u32], at: usize) -> Span {
    (edges[at] as usize, edges[at + 1] as usize)
}

/// The first eight bytes of a value, padded with zeros.
#[inline(always)]
fn first8(text: &[u8], (start, end): Span) -> u64 {
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
fn padded8(text: &[u8], span: Span) -> Text8 {
    let len = (span.1 - span.0).min(8);
    let spaces = u64::from_le_bytes(*b"        ");
    let padding = if len == 8 { 0 } else { spaces << (8 * len) };
    (first8(text, span) | padding).to_le_bytes()
}

/// A number of three to eight characters with one to three decimals, as the eight columns that
/// [`fixed8`] reads; `None` for values of another length.
#[inline(always)]
fn eight_columns(text: &[u8], (start, end): Span) -> Option<u64> {
    let len = end - start;
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
fn thousandths(text: &[u8], span: Span) -> Option<i32> {
    fixed8([eight_columns(text, span)?]).map(|[value]| value)
}

#[inline(always)]
fn usual_coordinates(text: &[u8], [x, y, z]: [Span; 3]) -> Option<[i32; 3]> {
    fixed8([
        eight_columns(text, x)?,
        eight_columns(text, y)?,
        eight_columns(text, z)?,
    ])
}

#[inline]
fn occupancy(text: &[u8], span: Span) -> i32 {
    match thousandths(text, span) {
        // The fixed form goes up to 9999 only.
        Some(value) => value.saturating_mul(OCCUPANCY_ONE / 1000),
        None => decimal::occupancy(&text[span.0..span.1]),
    }
}

#[inline]
fn b_factor(text: &[u8], span: Span) -> f32 {
    match thousandths(text, span) {
        Some(value) => decimal::thousandths_to_f32(value),
        None => decimal::b_factor(&text[span.0..span.1]),
    }
}

/// The atomic number of the symbol or, without a known symbol, of the atom's name.
#[inline]
fn element(text: &[u8], (start, end): Span, name: Text8) -> u8 {
    let number = match text[start..end] {
        [first] => element::from_symbol([first, b' ']),
        [first, second] => element::from_symbol([first, second]),
        _ => 0,
    };
    if number == 0 {
        element::from_name(name)
    } else {
        number
    }
}

/// The author's residue number, and the insertion code that old files append to it (`15A`); 0 for
/// none.
fn author_number(text: &[u8]) -> (Option<i32>, u8) {
    match text {
        [number @ .., letter] if letter.is_ascii_alphabetic() => (int(number), *letter),
        _ => (int(text), 0),
    }
}
