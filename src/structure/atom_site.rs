//! The rows of mmCIF's `_atom_site`.

use super::cif_lexer::Rows;
use super::decimal::{self, OCCUPANCY_ONE, fixed8, int};
use super::mmcif::{not_null, on_line, strip_prefix};
use super::table::{Atom, AtomTable, Run, Text8, at_line, quoted};
use super::{Models, element};
use crate::{Error, Result};

/// The items that are read. What all atoms of a residue share comes first.
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

const RESIDUE_ITEMS: usize = Item::Model as usize + 1;
/// Those of the chain.
const CHAIN_ITEMS: std::ops::Range<usize> = Item::Label as usize..Item::Entity as usize + 1;
const ITEM_COUNT: usize = Item::DbNumber as usize + 1;

/// Each item's names; where a file has several, the earliest.
const NAMES: [(Item, &[&[u8]]); ITEM_COUNT] = [
    (Item::Comp, &[b"label_comp_id", b"auth_comp_id"]),
    (Item::Label, &[b"label_asym_id"]),
    (Item::Auth, &[b"auth_asym_id"]),
    (Item::Entity, &[b"label_entity_id"]),
    (Item::LabelSeq, &[b"label_seq_id"]),
    (Item::AuthSeq, &[b"auth_seq_id"]),
    (Item::InsCode, &[b"pdbx_PDB_ins_code"]),
    (Item::Model, &[b"pdbx_PDB_model_num"]),
    (Item::Group, &[b"group_PDB"]),
    (Item::Symbol, &[b"type_symbol"]),
    (Item::Name, &[b"label_atom_id", b"auth_atom_id"]),
    (Item::AltId, &[b"label_alt_id"]),
    (Item::X, &[b"Cartn_x"]),
    (Item::Y, &[b"Cartn_y"]),
    (Item::Z, &[b"Cartn_z"]),
    (Item::Occupancy, &[b"occupancy"]),
    (Item::BFactor, &[b"B_iso_or_equiv"]),
    (Item::DbName, &[b"pdbx_sifts_xref_db_name"]),
    (Item::DbAccession, &[b"pdbx_sifts_xref_db_acc"]),
    (Item::DbNumber, &[b"pdbx_sifts_xref_db_num"]),
];

/// Whether a tag belongs to `_atom_site`.
pub(super) fn is_item(tag: &[u8]) -> bool {
    strip_prefix(tag, b"_atom_site.").is_some()
}

/// Whether a tag is the B factor's.
pub(super) fn is_b_factor(tag: &[u8]) -> bool {
    let name = NAMES[Item::BFactor as usize].1[0];
    strip_prefix(tag, b"_atom_site.").is_some_and(|item| item.eq_ignore_ascii_case(name))
}

/// Start and end in the text.
type Span = (usize, usize);

/// Turns rows into atoms.
pub(super) struct AtomSite<'a> {
    text: &'a [u8],
    table: &'a mut AtomTable,
    models: Models,
    /// By item, where in a row its edges start.
    columns: [usize; ITEM_COUNT],
    /// The residue of the atom before.
    last: Key,
    /// Whether there is one.
    has_last: bool,
}

/// What tells residues apart: the first bytes of their items, which nearly
/// always is all, and where the items are, for those that are longer.
#[derive(Clone, Copy, Default)]
struct Key {
    words: [u64; RESIDUE_ITEMS],
    spans: [Span; RESIDUE_ITEMS],
    is_long: bool,
}

impl<'a> AtomSite<'a> {
    /// For rows of the items `tags`.
    pub(super) fn new(
        text: &'a [u8],
        tags: &[&[u8]],
        models: Models,
        table: &'a mut AtomTable,
    ) -> Result<Self> {
        let column = |name: &[u8]| {
            let is = |tag: &&[u8]| {
                strip_prefix(tag, b"_atom_site.")
                    .is_some_and(|item| item.eq_ignore_ascii_case(name))
            };
            tags.iter().position(is)
        };
        // The range after the last column is always empty.
        let mut columns = [2 * tags.len(); ITEM_COUNT];
        for (item, names) in NAMES {
            if let Some(at) = names.iter().find_map(|name| column(name)) {
                columns[item as usize] = 2 * at;
            } else if matches!(item, Item::X | Item::Y | Item::Z | Item::Name | Item::Comp) {
                let name = String::from_utf8_lossy(names[0]);
                return Err(Error::input(format!("_atom_site has no {name}")));
            }
        }
        Ok(AtomSite {
            text,
            table,
            models,
            columns,
            last: Key::default(),
            has_last: false,
        })
    }

    pub(super) fn read(&mut self, rows: &mut Rows) -> Result<()> {
        while rows.next()? {
            self.row(rows.edges())?;
        }
        Ok(())
    }

    /// Adds the atom of a row: `edges` holds start and end of each value, and
    /// one empty range.
    #[inline]
    pub(super) fn row(&mut self, edges: &[u32]) -> Result<()> {
        let (text, columns) = (self.text, self.columns);
        let span = |item: Item| {
            let at = columns[item as usize];
            (edges[at] as usize, edges[at + 1] as usize)
        };
        let mut words = [0; RESIDUE_ITEMS];
        let mut is_long = false;
        for (word, &at) in words.iter_mut().zip(&columns) {
            let span = (edges[at] as usize, edges[at + 1] as usize);
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
            None => self.odd_coordinates(edges)?,
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

    /// Goes to the residue of a row that seems to be another than the last;
    /// false when the row is of a model that is not wanted.
    #[inline(never)]
    fn enter_residue(&mut self, words: [u64; RESIDUE_ITEMS], edges: &[u32]) -> Result<bool> {
        let mut key = Key {
            words,
            ..Key::default()
        };
        for (span, &at) in key.spans.iter_mut().zip(&self.columns) {
            *span = (edges[at] as usize, edges[at + 1] as usize);
            key.is_long |= span.1 - span.0 > 8;
        }
        if self.has_last && self.is_last(&key, 0..RESIDUE_ITEMS) {
            return Ok(true);
        }
        self.start_run(key, edges)
    }

    /// Whether the items `items` of a residue are those of the last.
    fn is_last(&self, key: &Key, items: std::ops::Range<usize>) -> bool {
        let value = |(start, end): Span| &self.text[start..end];
        key.words[items.clone()] == self.last.words[items.clone()]
            && key.is_long == self.last.is_long
            && (!key.is_long
                || items
                    .into_iter()
                    .all(|item| value(key.spans[item]) == value(self.last.spans[item])))
    }

    fn start_run(&mut self, key: Key, edges: &[u32]) -> Result<bool> {
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
                for (item, name) in [
                    (Item::Label, label),
                    (Item::Auth, auth),
                    (Item::Entity, entity),
                ] {
                    self.check_name(item, name, edges)?;
                }
                self.table.chain(auth, label, entity)?
            }
        };
        let label_seq = int(self.value(edges, Item::LabelSeq));
        let (seq, letter) = author_number(self.value(edges, Item::AuthSeq));
        let ins_code = self.value(edges, Item::InsCode).first();
        let group = self.value(edges, Item::Group).first();
        let run = Run {
            atoms: self.table.atoms.len() as u32..0,
            model,
            chain,
            seq: seq.or(label_seq),
            label_seq,
            ins_code: ins_code.copied().unwrap_or(letter),
            comp: padded8(self.text, key.spans[Item::Comp as usize]),
            hetero: group.is_some_and(|group| group.eq_ignore_ascii_case(&b'H')),
            uniprot: self.uniprot(edges)?,
            offset: edges[0],
            plain: false,
        };
        self.table.start_run(run)?;
        (self.last, self.has_last) = (key, true);
        Ok(true)
    }

    /// The index of a row's model, `None` where it is not wanted.
    fn model(&mut self, edges: &[u32]) -> Result<Option<u32>> {
        let number = match self.value(edges, Item::Model) {
            b"" => 1,
            text => int(text).ok_or_else(|| {
                let message = format!("model number {} is not a number", quoted(text));
                at_line(self.text, edges[0] as usize, &message)
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
        let what = String::from_utf8_lossy(NAMES[item as usize].1[0]);
        let checked = self.table.limits.check_name(&what, name);
        checked.map_err(|error| on_line(self.text, edges[0] as usize, error))
    }

    /// The value of an item, empty for null.
    fn value(&self, edges: &[u32], item: Item) -> &'a [u8] {
        let at = self.columns[item as usize];
        not_null(&self.text[edges[at] as usize..edges[at + 1] as usize])
    }

    /// Coordinates that are not all of the usual form, and whether one was
    /// rounded.
    #[inline(never)]
    fn odd_coordinates(&self, edges: &[u32]) -> Result<([i32; 3], bool)> {
        let (mut xyz, mut rounded) = ([0; 3], false);
        for (axis, item) in [Item::X, Item::Y, Item::Z].into_iter().enumerate() {
            let at = self.columns[item as usize];
            let text = &self.text[edges[at] as usize..edges[at + 1] as usize];
            let (value, changed) = decimal::milli(text).map_err(|bad| {
                let name = String::from_utf8_lossy(NAMES[item as usize].1[0]);
                let message = format!("{name} {} {bad}", quoted(text));
                at_line(self.text, edges[at] as usize, &message)
            })?;
            xyz[axis] = value;
            rounded |= changed;
        }
        Ok((xyz, rounded))
    }
}

/// The first eight bytes of a value, zeros where it is shorter.
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

/// The first eight bytes of a value, spaces where it is shorter.
#[inline]
fn padded8(text: &[u8], span: Span) -> Text8 {
    let len = (span.1 - span.0).min(8);
    let spaces = u64::from_le_bytes(*b"        ");
    let padding = if len == 8 { 0 } else { spaces << (8 * len) };
    (first8(text, span) | padding).to_le_bytes()
}

/// A short decimal with one to three decimals, as the eight columns that
/// [`fixed8`] reads; `None` where it is of another form.
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

/// The element of the symbol or, where there is none, of the atom's name.
#[inline]
fn element(text: &[u8], (start, end): Span, name: Text8) -> u8 {
    let number = match text[start..end] {
        [first] => element::from_symbol([first, b' ']),
        [first, second] => element::from_symbol([first, second]),
        _ => 0,
    };
    if number == 0 {
        element::from_name([name[0], name[1], name[2], name[3]])
    } else {
        number
    }
}

/// The author's residue number, and the insertion code that old files write
/// behind it (`15A`), 0 for none.
fn author_number(text: &[u8]) -> (Option<i32>, u8) {
    match text {
        [number @ .., letter] if letter.is_ascii_alphabetic() => (int(number), *letter),
        _ => (int(text), 0),
    }
}
