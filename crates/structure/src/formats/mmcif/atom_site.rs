//! The items of mmCIF's `_atom_site` category, and what those mean that the atoms of a residue share.
//!
//! Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) for items that are missing or
//! malformed, and [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) over a limit.

use std::ops::{Deref, Range};

use super::not_null;
use crate::atom_table::{AtomRun, AtomTable, Entity};
use crate::decimal::int;
use crate::ligands::is_water;
use crate::text::{FilePlace, quoted};
use crate::text8::{Text8, text8};
use crate::{Error, Result};
use crate::{Models, element};

/// Declares the items that are read: the enum, and the names of each.
macro_rules! items {
    ($($item:ident: $names:expr,)+) => {
        /// The items that are read, first those that all atoms of a residue share.
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(in crate::formats) enum AtomSiteItem {
            $($item,)+
        }

        /// The names of each item; the first that a file has counts.
        const NAMES: &[(AtomSiteItem, &[&str])] = &[$((AtomSiteItem::$item, $names),)+];
    };
}

items! {
    Comp: &["label_comp_id", "auth_comp_id"],
    Label: &["label_asym_id"],
    Auth: &["auth_asym_id"],
    Entity: &["label_entity_id"],
    LabelSeq: &["label_seq_id"],
    AuthSeq: &["auth_seq_id"],
    InsCode: &["pdbx_PDB_ins_code"],
    Model: &["pdbx_PDB_model_num"],
    Group: &["group_PDB"],
    Symbol: &["type_symbol"],
    Name: &["label_atom_id", "auth_atom_id"],
    AltId: &["label_alt_id"],
    X: &["Cartn_x"],
    Y: &["Cartn_y"],
    Z: &["Cartn_z"],
    Occupancy: &["occupancy"],
    BFactor: &["B_iso_or_equiv"],
    DbName: &["pdbx_sifts_xref_db_name"],
    DbAccession: &["pdbx_sifts_xref_db_acc"],
    DbNumber: &["pdbx_sifts_xref_db_num"],
}

/// How many items all atoms of a residue share.
pub(in crate::formats) const RESIDUE_ITEMS: usize = AtomSiteItem::Model as usize + 1;
/// The items that all atoms of a chain share.
pub(in crate::formats) const CHAIN_ITEMS: Range<usize> =
    AtomSiteItem::Label as usize..AtomSiteItem::Entity as usize + 1;
pub(in crate::formats) const ITEM_COUNT: usize = NAMES.len();

impl AtomSiteItem {
    /// The first name of the item.
    pub(in crate::formats) fn name(self) -> &'static str {
        NAMES[self as usize].1[0]
    }
}

/// For each item, the column that holds it; `column` finds one by its name.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) if the file lacks the column of a coordinate, of
/// the atom's name or of the component.
pub(in crate::formats) fn find_columns(
    column: impl Fn(&str) -> Option<usize>,
) -> Result<[Option<usize>; ITEM_COUNT]> {
    let mut columns = [None; ITEM_COUNT];
    for &(item, names) in NAMES {
        let found = names.iter().find_map(|name| column(name));
        if found.is_none()
            && matches!(
                item,
                AtomSiteItem::X
                    | AtomSiteItem::Y
                    | AtomSiteItem::Z
                    | AtomSiteItem::Name
                    | AtomSiteItem::Comp
            )
        {
            return Err(Error::input(format!("_atom_site has no {}", names[0])));
        }
        columns[item as usize] = found;
    }
    Ok(columns)
}

/// The first row of a run.
pub(in crate::formats) struct RunStart<'p, F, G> {
    /// The value of an item as the file has it; empty if the file lacks the item.
    pub value: F,
    /// The number of an item, if the file stores it as an integer.
    pub integer: G,
    /// Whether the row has the chain of the last run.
    pub is_same_chain: bool,
    pub place: FilePlace<'p>,
}

impl<V, F, G> RunStart<'_, F, G>
where
    V: Deref<Target = [u8]>,
    F: Fn(AtomSiteItem) -> V,
    G: Fn(AtomSiteItem) -> Option<i32>,
{
    /// Starts the run, and adds its model and chain if they are new. Returns false if the row's
    /// model is not wanted.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for a model number that is none,
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) for more than a limit allows.
    pub(in crate::formats) fn add(&self, table: &mut AtomTable, models: Models) -> Result<bool> {
        let Some(model) = self.model(table, models)? else {
            return Ok(false);
        };
        let last_chain = table.runs.last().map(|run| run.chain);
        let chain = match last_chain {
            Some(chain) if self.is_same_chain => chain,
            _ => {
                let values = [
                    AtomSiteItem::Auth,
                    AtomSiteItem::Label,
                    AtomSiteItem::Entity,
                ]
                .map(&self.value);
                let [auth, label, entity] = values.each_ref().map(|value| not_null(value));
                let auth = if auth.is_empty() { label } else { auth };
                self.check_name(table, AtomSiteItem::Label, label)?;
                self.check_name(table, AtomSiteItem::Auth, auth)?;
                self.check_name(table, AtomSiteItem::Entity, entity)?;
                table.chain(auth, label, entity)?
            }
        };
        let label_seq = self.int(AtomSiteItem::LabelSeq);
        let (seq, letter) = match (self.integer)(AtomSiteItem::AuthSeq) {
            None => author_number(&(self.value)(AtomSiteItem::AuthSeq)),
            seq => (seq, 0),
        };
        let ins_code = (self.value)(AtomSiteItem::InsCode);
        let group = (self.value)(AtomSiteItem::Group).first().copied();
        let run = AtomRun {
            model,
            chain,
            seq: seq.or(label_seq),
            label_seq,
            ins_code: not_null(&ins_code).first().copied().unwrap_or(letter),
            comp: text8(&(self.value)(AtomSiteItem::Comp)),
            is_hetero: group.is_some_and(|group| group.eq_ignore_ascii_case(&b'H')),
            is_marked: label_seq.is_some(),
            uniprot: self.uniprot(table)?,
            offset: self.place.start(),
            ..AtomRun::default()
        };
        table.start_run(run)?;
        Ok(true)
    }

    /// The index of the row's model, which is added if it is new; `None` if the model is not
    /// wanted. A file without model numbers has model 1.
    fn model(&self, table: &mut AtomTable, models: Models) -> Result<Option<u32>> {
        let number = match (self.integer)(AtomSiteItem::Model) {
            Some(number) => number,
            None => match not_null(&(self.value)(AtomSiteItem::Model)) {
                b"" => 1,
                text => int(text).ok_or_else(|| {
                    let message = format!("model number {} is not a number", quoted(text));
                    self.place.error(message)
                })?,
            },
        };
        if let Some(known) = table.model(number) {
            return Ok(Some(known));
        }
        if models == Models::First && !table.models.is_empty() {
            return Ok(None);
        }
        table.add_model(number).map(Some)
    }

    /// The UniProt residue that the row names.
    fn uniprot(&self, table: &mut AtomTable) -> Result<Option<(u32, i32)>> {
        if !(self.value)(AtomSiteItem::DbName).eq_ignore_ascii_case(b"UNP") {
            return Ok(None);
        }
        let accession = (self.value)(AtomSiteItem::DbAccession);
        let accession = not_null(&accession);
        match self.int(AtomSiteItem::DbNumber) {
            Some(position) if !accession.is_empty() => {
                self.check_name(table, AtomSiteItem::DbAccession, accession)?;
                Ok(Some((table.accession(accession), position)))
            }
            _ => Ok(None),
        }
    }

    fn int(&self, item: AtomSiteItem) -> Option<i32> {
        (self.integer)(item).or_else(|| int(&(self.value)(item)))
    }

    /// Refuses a name that is over its limit.
    fn check_name(&self, table: &AtomTable, item: AtomSiteItem, name: &[u8]) -> Result<()> {
        let checked = table.limits.check_name(item.name(), name);
        checked.map_err(|error| self.place.locate(error))
    }
}

/// The atomic number of a symbol; 0 if it is not known.
#[inline]
pub(in crate::formats) fn symbol_number(symbol: &[u8]) -> u8 {
    match *symbol {
        [first] => element::from_symbol([first, b' ']),
        [first, second] => element::from_symbol([first, second]),
        _ => 0,
    }
}

/// The atomic number of an atom: that of its symbol or, if that is not known, of its name.
#[inline]
pub(in crate::formats) fn element(symbol_number: u8, name: Text8) -> u8 {
    match symbol_number {
        0 => element_of_name(name),
        number => number,
    }
}

/// The atomic number that an atom's name implies; 0 for none.
#[cold]
#[inline(never)]
pub(super) fn element_of_name(name: Text8) -> u8 {
    if element::is_virtual_site(&name, false) {
        element::VIRTUAL_SITE
    } else {
        element::from_name(name)
    }
}

/// The author's residue number, and the insertion code that old files append to it (`15A`); 0 for
/// none.
pub(super) fn author_number(text: &[u8]) -> (Option<i32>, u8) {
    match text {
        [number @ .., letter] if letter.is_ascii_alphabetic() => (int(number), *letter),
        _ => (int(text), 0),
    }
}

/// Unmarks all residues if a file without entities gives waters a `label_seq_id` too: the item then does not
/// tell residues of polymers from others.
pub(super) fn unmark_numbered_waters(table: &mut AtomTable) {
    let has_unknown = table
        .chains
        .iter()
        .any(|chain| chain.entity_type == Entity::Unknown);
    let is_numbered_water = |run: &AtomRun| run.is_marked && is_water(run.comp);
    if has_unknown && table.runs.iter().any(is_numbered_water) {
        table.runs.iter_mut().for_each(|run| run.is_marked = false);
    }
}
