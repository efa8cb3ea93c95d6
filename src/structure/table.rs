//! What a reader takes from a file, before anything is chosen.
//!
//! Every reader fills one [`AtomTable`]; [`super::select`] turns it into
//! structures. Atoms come in *runs*: stretches of lines that name the same
//! residue. What all atoms of a run share is stored, and decoded, once.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::assembly::Generators;
use super::components::Kind;
use super::element::HYDROGEN;
use super::limits::{ReadLimits, check, exceeded, reserve};
use super::model::Truncation;
use crate::error::excerpt;
use crate::{Error, Result};

/// Short text, padded with spaces: names of atoms and components.
pub(super) type Text8 = [u8; 8];

/// Pads `text` to eight bytes. What is longer is cut: the dictionaries know no
/// polymer component, and no atom of one, with such a name.
#[inline]
pub(super) fn text8(text: &[u8]) -> Text8 {
    let mut out = *b"        ";
    let len = text.len().min(8);
    out[..len].copy_from_slice(&text[..len]);
    out
}

/// One atom line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Atom {
    pub xyz: [i32; 3],
    /// NaN where the file gives none.
    pub b_factor: f32,
    /// In millionths.
    pub occupancy: i32,
    pub name: Text8,
    pub element: u8,
    /// 0 for none.
    pub altloc: u8,
    /// Whether a coordinate had to be rounded to 0.001 A.
    pub rounded: bool,
}

/// A stretch of atoms of one residue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub atoms: Range<u32>,
    /// Index into [`AtomTable::models`].
    pub model: u32,
    /// Index into [`AtomTable::chains`].
    pub chain: u32,
    /// The author's number, else the label's; `None` where neither is one.
    pub seq: Option<i32>,
    pub label_seq: Option<i32>,
    /// 0 for none.
    pub ins_code: u8,
    pub comp: Text8,
    /// A HETATM that nothing else in the file marks as part of a polymer.
    pub hetero: bool,
    /// The UniProt residue that the atom lines themselves name: an index into
    /// [`AtomTable::accessions`] and the position.
    pub uniprot: Option<(u32, i32)>,
    /// Where the run starts in the text.
    pub offset: u32,
    /// Whether no atom is a hydrogen or has an altloc: all are taken as they
    /// are. Set when the run ends.
    pub plain: bool,
}

/// What the file says about an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Entity {
    /// Nothing: the component decides.
    #[default]
    Unknown,
    /// A polymer; the kind of its units where they are not in the table.
    Polymer(Option<Kind>),
    /// Water, ligands, sugars.
    Other,
}

/// A chain of a file: atoms that agree in all three names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawChain {
    pub auth: NameId,
    pub label: NameId,
    pub entity: NameId,
    pub entity_type: Entity,
}

/// A stretch of a chain that is a stretch of a UniProt sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// The author's chain id; [`NO_NAME`] for any.
    pub chain: NameId,
    /// The entity; [`NO_NAME`] for any.
    pub entity: NameId,
    /// Whether `first..=last` are label numbers, else the author's. All references of a
    /// file agree in this.
    pub label_numbers: bool,
    pub first: i32,
    pub last: i32,
    /// Index into [`AtomTable::accessions`].
    pub accession: u32,
    /// The position of `first` in the sequence.
    pub position: i32,
}

/// Index of a text in [`Names`].
pub(super) type NameId = u32;

/// The empty text.
pub(super) const NO_NAME: NameId = 0;

/// The distinct texts of a file, numbered; number 0 is the empty one.
#[derive(Default)]
pub(super) struct Names {
    text: Vec<Arc<str>>,
    index: HashMap<Box<[u8]>, NameId>,
}

impl Names {
    /// The number of `text`, new if it has none yet.
    pub(super) fn intern(&mut self, text: &[u8]) -> NameId {
        if text.is_empty() {
            return NO_NAME;
        }
        if let Some(&id) = self.index.get(text) {
            return id;
        }
        self.text.push(String::from_utf8_lossy(text).into());
        let id = self.text.len() as NameId;
        self.index.insert(text.into(), id);
        id
    }

    /// The text, with a replacement character for what is not UTF-8. All structures of a
    /// file share it.
    pub(super) fn get(&self, id: NameId) -> Arc<str> {
        match id.checked_sub(1) {
            Some(at) => Arc::clone(&self.text[at as usize]),
            None => Arc::default(),
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.index.clear();
    }
}

/// Everything that the readers take from one file.
#[derive(Default)]
pub(super) struct AtomTable {
    pub limits: ReadLimits,
    pub entry_id: Option<Arc<str>>,
    /// Model numbers in order of first appearance.
    pub models: Vec<i32>,
    pub atoms: Vec<Atom>,
    /// In file order; one model's runs may stand between another's.
    pub runs: Vec<Run>,
    pub chains: Vec<RawChain>,
    pub names: Names,
    /// UniProt accessions.
    pub accessions: Vec<NameId>,
    pub references: Vec<Reference>,
    /// Kinds that the file itself gives to components.
    pub components: HashMap<Text8, Kind>,
    /// Whether the file says that its B factors are pLDDT.
    pub plddt: bool,
    /// What makes assembly 1, where it is asked for and the file has it.
    pub generators: Generators,
    /// Why the file may be cut short, if it may.
    pub truncation: Option<Truncation>,
    model_index: HashMap<i32, u32>,
    chain_index: HashMap<[NameId; 3], u32>,
    accession_index: HashMap<NameId, u32>,
    /// Of the last run's atoms so far: any altloc, any hydrogen.
    altlocs: u8,
    hydrogens: bool,
}

impl AtomTable {
    /// Forgets the file and keeps the memory. The next file is read within `limits`.
    pub(super) fn clear(&mut self, limits: ReadLimits) {
        self.limits = limits;
        self.entry_id = None;
        self.models.clear();
        self.atoms.clear();
        self.runs.clear();
        self.chains.clear();
        self.names.clear();
        self.accessions.clear();
        self.references.clear();
        self.components.clear();
        self.plddt = false;
        self.generators.clear();
        self.truncation = None;
        self.model_index.clear();
        self.chain_index.clear();
        self.accession_index.clear();
        (self.altlocs, self.hydrogens) = (0, false);
    }

    /// The chain of three names, new if there is none yet.
    pub(super) fn chain(&mut self, auth: &[u8], label: &[u8], entity: &[u8]) -> Result<u32> {
        let names = [auth, label, entity].map(|text| self.names.intern(text));
        if let Some(&chain) = self.chain_index.get(&names) {
            return Ok(chain);
        }
        let (max, count) = (self.limits.chains_max, self.chains.len() as u64 + 1);
        check("chains_max", max, count, || "the file has too many chains")?;
        let [auth, label, entity] = names;
        self.chains.push(RawChain {
            auth,
            label,
            entity,
            entity_type: Entity::Unknown,
        });
        let chain = self.chains.len() as u32 - 1;
        self.chain_index.insert(names, chain);
        Ok(chain)
    }

    /// The index of the model that the file numbers `number`, if it has been added.
    pub(super) fn model(&self, number: i32) -> Option<u32> {
        match self.models.last() {
            Some(&last) if last == number => Some(self.models.len() as u32 - 1),
            _ => self.model_index.get(&number).copied(),
        }
    }

    /// Adds a model, and returns its index.
    pub(super) fn add_model(&mut self, number: i32) -> Result<u32> {
        let (max, count) = (self.limits.models_max, self.models.len() as u64 + 1);
        check("models_max", max, count, || "the file has too many models")?;
        self.models.push(number);
        let model = self.models.len() as u32 - 1;
        self.model_index.insert(number, model);
        Ok(model)
    }

    /// The index of a UniProt accession, new if there is none yet.
    pub(super) fn accession(&mut self, accession: &[u8]) -> u32 {
        let name = self.names.intern(accession);
        *self.accession_index.entry(name).or_insert_with(|| {
            self.accessions.push(name);
            self.accessions.len() as u32 - 1
        })
    }

    /// Starts a run; the atoms pushed from now on are its.
    pub(super) fn start_run(&mut self, run: Run) -> Result<()> {
        self.end_run();
        if self.runs.len() == self.runs.capacity() {
            let max = self.limits.residues_max;
            grow(&mut self.runs, "residues_max", max, "residues")?;
        }
        self.runs.push(run);
        Ok(())
    }

    /// Adds an atom to the last run.
    #[inline(always)]
    pub(super) fn push(&mut self, atom: Atom) -> Result<()> {
        self.altlocs |= atom.altloc;
        self.hydrogens |= atom.element == HYDROGEN;
        if self.atoms.len() == self.atoms.capacity() {
            grow(&mut self.atoms, "atoms_max", self.limits.atoms_max, "atoms")?;
        }
        self.atoms.push(atom);
        Ok(())
    }

    /// Closes the last run, if there is one.
    pub(super) fn end_run(&mut self) {
        if let Some(run) = self.runs.last_mut() {
            run.atoms.end = self.atoms.len() as u32;
            run.plain = self.altlocs == 0 && !self.hydrogens;
        }
        (self.altlocs, self.hydrogens) = (0, false);
    }

    /// The atoms of a run.
    #[inline]
    pub(super) fn atoms_of(&self, run: &Run) -> &[Atom] {
        &self.atoms[run.atoms.start as usize..run.atoms.end as usize]
    }
}

/// Doubles the memory of `items` up to `max` of them, the limit of the field `field`: so
/// the limit is looked at only where memory has run out.
#[cold]
#[inline(never)]
fn grow<T>(items: &mut Vec<T>, field: &str, max: u32, what: &str) -> Result<()> {
    const LEAST: usize = 1 << 10;
    let len = items.len();
    let room = (max as usize).saturating_sub(len).min(len.max(LEAST));
    if room == 0 {
        return Err(exceeded(
            field,
            max,
            format_args!("the file has too many {what}"),
        ));
    }
    reserve(items, room)
}

/// Text of the file in quotes, for a message.
pub(super) fn quoted(text: &[u8]) -> String {
    format!("\"{}\"", excerpt(text))
}

/// The line, from 1, that an offset into the text is on.
pub(super) fn line_of(text: &[u8], offset: usize) -> usize {
    memchr::memchr_iter(b'\n', &text[..offset.min(text.len())]).count() + 1
}

/// An input error that names a line.
pub(super) fn at_line(text: &[u8], offset: usize, message: &str) -> Error {
    Error::input(format!("line {}: {message}", line_of(text, offset)))
}
