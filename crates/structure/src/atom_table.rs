//! The atoms of a file as its reader found them, before polymers and conformers are chosen.
//!
//! The reader of every format fills one [`AtomTable`], and [`super::polymer`] turns the table
//! into structures. Atoms come in *runs*: a run is a stretch of atom lines that name the same
//! residue. What all atoms of a run share is stored, and decoded, once.

use std::collections::{HashMap, HashSet};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use super::assembly::Generators;
use super::checks::Findings;
use super::chemistry::ComponentMap;
use super::decimal::OCCUPANCY_ONE;
use super::element::is_heavy;
use super::entry_header::EntryHeader;
use super::model::{AtomDetails, Chain, SequenceResidue, Truncation};
use super::read_limits::{ReadLimits, check, limit_error, reserve};
use super::stated_bonds::StatedBonds;
use super::text8::{Text8, text8};
use crate::Result;

/// One atom line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AtomLine {
    /// In 0.001 A.
    pub xyz: [i32; 3],
    /// In A^2, or pLDDT; NaN if the file gives none.
    pub b_factor: f32,
    /// In millionths.
    pub occupancy: i32,
    pub name: Text8,
    /// Atomic number; 0 if unknown.
    pub element: u8,
    /// 0 for none.
    pub altloc: u8,
    /// Whether a coordinate had more than three decimals and was rounded to 0.001 A.
    pub rounded: bool,
}

impl Default for AtomLine {
    fn default() -> Self {
        AtomLine {
            xyz: [0; 3],
            b_factor: f32::NAN,
            occupancy: OCCUPANCY_ONE,
            name: text8(b""),
            element: 0,
            altloc: 0,
            rounded: false,
        }
    }
}

impl AtomLine {
    /// What a structure keeps of the atom if it is asked to.
    pub(super) fn details(&self) -> AtomDetails {
        AtomDetails {
            name: self.name,
            occupancy: (f64::from(self.occupancy) / f64::from(OCCUPANCY_ONE)) as f32,
            altloc: self.altloc,
        }
    }
}

/// A stretch of atoms of one residue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AtomRun {
    /// Index into [`AtomTable::models`].
    pub model: u32,
    /// Index into [`AtomTable::chains`].
    pub chain: u32,
    /// The author's residue number, else the label's; `None` if the file has neither.
    pub seq: Option<i32>,
    pub label_seq: Option<i32>,
    /// The position in SEQRES, from 1.
    pub seqres: Option<i32>,
    /// 0 for none.
    pub ins_code: u8,
    pub comp: Text8,
    /// Whether the atoms are HETATM. False for a residue that MODRES of a PDB file names.
    pub is_hetero: bool,
    /// Whether the file marks the residue as one of a polymer, although nothing says what it is:
    /// MODRES of a PDB file, `label_seq_id` of an mmCIF file.
    pub is_marked: bool,
    /// How often the chain had ended before the run, in this model: TER records of a PDB file.
    pub segment: u32,
    /// The segment id of a PDB file, columns 73 to 76; blanks for none. Zeros in other formats.
    pub segid: [u8; 4],
    /// The UniProt residue that the atom lines themselves name: an index into
    /// [`AtomTable::accessions`] and the position in the sequence.
    pub uniprot: Option<(u32, i32)>,
    /// Where the run starts: an offset into text, or the row of a binary file.
    pub offset: u32,
    /// Indices into [`AtomTable::atoms`], which the table sets.
    pub atoms: Range<u32>,
    /// Whether no atom is a hydrogen or a virtual site, or has an altloc, so that all atoms are kept. The table
    /// sets it when the run ends.
    pub is_plain: bool,
}

/// The kind of a polymer component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolymerKind {
    /// Has a row in the output.
    Amino,
    /// Atoms only; dropped if nucleic acids are not wanted.
    Nucleotide,
    /// Blocks an end of a peptide (ACE, NH2): atoms only.
    Cap,
}

/// What the file states about an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Entity {
    /// The file states nothing: the component decides what is polymer.
    #[default]
    Unknown,
    /// A polymer; the kind of those of its components that the component table lacks.
    Polymer(Option<PolymerKind>),
    /// Water, a ligand or a chain of sugars.
    Other,
}

/// The components of each chain's sequence.
#[derive(Default)]
pub(super) struct Sequences {
    /// Each with the author's chain id.
    components: HashSet<(NameId, Text8)>,
    /// The kind of the first component of a chain that the component table has.
    kinds: HashMap<NameId, PolymerKind>,
}

impl Sequences {
    /// Adds a component to the sequence of a chain; `kind` is what the component table says of it.
    pub(super) fn add(&mut self, chain: NameId, comp: Text8, kind: Option<PolymerKind>) {
        self.components.insert((chain, comp));
        if let Some(kind) = kind.filter(|kind| *kind != PolymerKind::Cap) {
            self.kinds.entry(chain).or_insert(kind);
        }
    }

    /// Whether a component occurs in the sequence of a chain.
    pub(super) fn has(&self, chain: NameId, comp: Text8) -> bool {
        !self.components.is_empty() && self.components.contains(&(chain, comp))
    }

    /// The kind of a chain's components, from those that the component table has.
    pub(super) fn kind(&self, chain: NameId) -> Option<PolymerKind> {
        self.kinds.get(&chain).copied()
    }
}

/// A chain of a file: atoms that agree in all three names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawChain {
    pub auth: NameId,
    pub label: NameId,
    pub entity: NameId,
    pub entity_type: Entity,
}

/// A range of a chain that is a range of a UniProt sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SequenceReference {
    /// The author's chain id; [`NO_NAME`] for any.
    pub chain: NameId,
    /// The entity; [`NO_NAME`] for any.
    pub entity: NameId,
    /// Whether `first..=last` are label numbers, else the author's. All references of a file
    /// agree in this.
    pub label_numbers: bool,
    pub first: i32,
    pub last: i32,
    /// Index into [`AtomTable::accessions`].
    pub accession: u32,
    /// The position of residue `first` in the sequence.
    pub position: i32,
}

/// The author's chain, residue number, insertion code (0 for none) and component.
pub(super) type ResidueName = (NameId, Option<i32>, u8, Text8);

/// A link that the file states: two residues, each with the name of its atom.
pub(super) type StatedLink = [(ResidueName, Text8); 2];

/// The most links of a residue that are read: each model looks at those of its ligands, and a file may
/// have many models.
const LINKS_MAX: usize = 1_000;

/// Index of a text in [`NameTable`].
pub(super) type NameId = u32;

/// The empty text.
pub(super) const NO_NAME: NameId = 0;

/// The distinct texts of a file by number; number 0 is the empty one.
#[derive(Default)]
pub(super) struct NameTable {
    text: Vec<Arc<str>>,
    index: HashMap<Box<[u8]>, NameId>,
}

impl NameTable {
    /// The number of `text`, which is added if it is new.
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

    /// The text, with a replacement character for bytes that are not UTF-8. All structures of a
    /// file share it.
    pub(super) fn get(&self, id: NameId) -> Arc<str> {
        match id.checked_sub(1) {
            Some(index) => Arc::clone(&self.text[index as usize]),
            None => Arc::default(),
        }
    }
}

/// What a reader takes from one file.
#[derive(Default)]
pub(super) struct AtomTable {
    pub limits: ReadLimits,
    /// Bytes of the file, as packed, which bound what its columns may decode to.
    pub file_bytes: usize,
    pub entry_id: Option<Arc<str>>,
    /// Model numbers in order of first appearance.
    pub models: Vec<i32>,
    pub atoms: Vec<AtomLine>,
    /// In file order. The runs of several models may alternate.
    pub runs: Vec<AtomRun>,
    pub chains: Vec<RawChain>,
    pub names: NameTable,
    /// UniProt accessions.
    pub accessions: Vec<NameId>,
    pub references: Vec<SequenceReference>,
    /// Kinds that the file itself gives to components.
    pub components: HashMap<Text8, PolymerKind>,
    /// The components of chains whose sequence the file states without entities (SEQRES).
    pub sequences: Sequences,
    /// Chains' whole sequences by chain, if they are wanted.
    pub whole_sequences: HashMap<u32, Arc<[SequenceResidue]>>,
    /// The covalent links that the file states, if ligands are kept. Those with a metal may be among
    /// them.
    pub links: Vec<StatedLink>,
    /// For each residue the indices of its links, of at most [`LINKS_MAX`].
    pub links_of: HashMap<ResidueName, Vec<u32>>,
    /// The components whose atoms and bonds the file lists, if they are wanted.
    pub described_components: Option<Arc<ComponentMap>>,
    /// The bonds that CONECT records of a PDB file state, if they are wanted.
    pub stated_bonds: StatedBonds,
    /// What the file states about its entry as a whole.
    pub header: EntryHeader,
    /// The generators of assembly 1, if it is wanted and the file has it.
    pub generators: Generators,
    /// Why the file may be cut short, if it may.
    pub truncation: Option<Truncation>,
    /// Whether chains may hold several molecules, as chain ids are all that names them.
    pub may_split_chains: bool,
    /// Set by the caller: whether the reader of a PDB file sets [`AtomTable::second_model`].
    pub peeks_at_second_model: bool,
    /// The first atoms of the second model of a file of which the first model alone is read.
    pub second_model: Option<Box<AtomTable>>,
    /// Whether elements of some atoms were taken from their names, as the file does not state them.
    pub guesses_elements: bool,
    /// What was found while the file was read.
    pub findings: Findings,
    model_index: HashMap<i32, u32>,
    chain_index: HashMap<[NameId; 3], u32>,
    accession_index: HashMap<NameId, u32>,
    /// Whether the atoms of the last run so far have any altloc (not 0), and any hydrogen or virtual site.
    altlocs: u8,
    hydrogens: bool,
}

impl AtomTable {
    /// Empties the table for the next file, which is read within `limits`, and keeps the memory
    /// of atoms and runs. `file_bytes` is the size of the file.
    pub(super) fn clear(&mut self, limits: ReadLimits, file_bytes: usize) {
        let (mut atoms, mut runs) = (
            std::mem::take(&mut self.atoms),
            std::mem::take(&mut self.runs),
        );
        atoms.clear();
        runs.clear();
        *self = AtomTable {
            limits,
            file_bytes,
            atoms,
            runs,
            ..AtomTable::default()
        };
    }

    /// Sets the entry's id; `None` if `id` is empty.
    pub(super) fn set_entry_id(&mut self, id: &[u8]) {
        self.entry_id = (!id.is_empty()).then(|| String::from_utf8_lossy(id).into());
    }

    /// The index of the chain of three names, which is added if it is new. Names that the
    /// format does not have are empty.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if the chain would be one too many.
    pub(super) fn chain(&mut self, auth: &[u8], label: &[u8], entity: &[u8]) -> Result<u32> {
        let names = [auth, label, entity].map(|text| self.names.intern(text));
        self.chain_of_names(names)
    }

    /// The index of part `number`, from 1, of a chain that is split. The label id of part 2 of `A` is
    /// `A_2`.
    pub(super) fn chain_part(&mut self, chain: u32, number: usize) -> Result<u32> {
        let auth = self.chains[chain as usize].auth;
        let label = format!("{}_{number}", self.names.get(auth));
        let label = self.names.intern(label.as_bytes());
        self.chain_of_names([auth, label, NO_NAME])
    }

    /// The index of the chain with these names: author, label and entity. Adds the chain if it is
    /// new.
    fn chain_of_names(&mut self, names: [NameId; 3]) -> Result<u32> {
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

    /// The names of a chain, for a structure.
    pub(super) fn chain_names(&self, chain: u32) -> Chain {
        let RawChain {
            auth,
            label,
            entity,
            ..
        } = self.chains[chain as usize];
        let given = |name| (name != NO_NAME).then(|| self.names.get(name));
        Chain {
            auth_asym_id: self.names.get(auth),
            label_asym_id: given(label),
            entity_id: given(entity),
            sequence: self.whole_sequences.get(&chain).cloned(),
        }
    }

    /// The index of the model that the file numbers `number`, if it has been added.
    pub(super) fn model(&self, number: i32) -> Option<u32> {
        match self.models.last() {
            Some(&last) if last == number => Some(self.models.len() as u32 - 1),
            _ => self.model_index.get(&number).copied(),
        }
    }

    /// Adds a model, whose number no other has, and returns its index.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if the model is one too many.
    pub(super) fn add_model(&mut self, number: i32) -> Result<u32> {
        let (max, count) = (self.limits.models_max, self.models.len() as u64 + 1);
        check("models_max", max, count, || "the file has too many models")?;
        self.models.push(number);
        let model = self.models.len() as u32 - 1;
        self.model_index.insert(number, model);
        Ok(model)
    }

    /// The index of a UniProt accession, which is added if it is new.
    pub(super) fn accession(&mut self, accession: &[u8]) -> u32 {
        let name = self.names.intern(accession);
        *self.accession_index.entry(name).or_insert_with(|| {
            self.accessions.push(name);
            self.accessions.len() as u32 - 1
        })
    }

    /// Adds a link that the file states.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if the link is one too many.
    pub(super) fn add_link(&mut self, link: StatedLink) -> Result<()> {
        let (max, count) = (self.limits.residues_max, self.links.len() as u64 + 1);
        check("residues_max", max, count, || "the file has too many links")?;
        for (residue, _) in &link {
            let known = self.links_of.entry(*residue).or_default();
            if known.len() < LINKS_MAX {
                known.push(self.links.len() as u32);
            }
        }
        self.links.push(link);
        Ok(())
    }

    /// Adds a reference from residues `numbers` of a chain or entity to `positions` of a UniProt
    /// sequence. References whose ranges differ in length are left out: gaps and insertions make
    /// it unknown which residue is which.
    pub(super) fn add_reference(
        &mut self,
        [chain, entity]: [NameId; 2],
        label_numbers: bool,
        numbers: RangeInclusive<i32>,
        accession: &[u8],
        positions: RangeInclusive<i32>,
    ) {
        let length =
            |range: &RangeInclusive<i32>| i64::from(*range.end()) - i64::from(*range.start());
        if accession.is_empty() || length(&numbers) != length(&positions) {
            return;
        }
        let accession = self.accession(accession);
        self.references.push(SequenceReference {
            chain,
            entity,
            label_numbers,
            first: *numbers.start(),
            last: *numbers.end(),
            accession,
            position: *positions.start(),
        });
    }

    /// Starts a run. The atoms pushed from now on belong to it.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if the run is one too many.
    pub(super) fn start_run(&mut self, run: AtomRun) -> Result<()> {
        self.end_run();
        if self.runs.len() == self.runs.capacity() {
            let max = self.limits.residues_max;
            grow(&mut self.runs, 1, "residues_max", max, "residues")?;
        }
        let atoms = self.atoms.len() as u32..0;
        self.runs.push(AtomRun { atoms, ..run });
        Ok(())
    }

    /// Adds an atom to the last run.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if the atom is one too many.
    #[inline(always)]
    pub(super) fn push(&mut self, atom: AtomLine) -> Result<()> {
        self.altlocs |= atom.altloc;
        self.hydrogens |= !is_heavy(atom.element);
        if self.atoms.len() == self.atoms.capacity() {
            grow(
                &mut self.atoms,
                1,
                "atoms_max",
                self.limits.atoms_max,
                "atoms",
            )?;
        }
        self.atoms.push(atom);
        Ok(())
    }

    /// Adds atoms to the last run.
    ///
    /// # Errors
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if the atoms are too many.
    #[inline]
    pub(super) fn extend(&mut self, atoms: impl ExactSizeIterator<Item = AtomLine>) -> Result<()> {
        let more = atoms.len();
        if self.atoms.capacity() - self.atoms.len() < more {
            let max = self.limits.atoms_max;
            grow(&mut self.atoms, more, "atoms_max", max, "atoms")?;
        }
        let (mut altlocs, mut hydrogens) = (self.altlocs, self.hydrogens);
        self.atoms.extend(atoms.inspect(|atom| {
            altlocs |= atom.altloc;
            hydrogens |= !is_heavy(atom.element);
        }));
        (self.altlocs, self.hydrogens) = (altlocs, hydrogens);
        Ok(())
    }

    /// Closes the last run, if there is one.
    pub(super) fn end_run(&mut self) {
        if let Some(run) = self.runs.last_mut() {
            run.atoms.end = self.atoms.len() as u32;
            run.is_plain = self.altlocs == 0 && !self.hydrogens;
        }
        (self.altlocs, self.hydrogens) = (0, false);
    }

    /// A run's chain, component and number, for messages: `A LYS 33`.
    pub(super) fn residue_text(&self, run: &AtomRun) -> String {
        let chain = self.names.get(self.chains[run.chain as usize].auth);
        let comp = String::from_utf8_lossy(run.comp.trim_ascii_end()).into_owned();
        let number = run.seq.map(|seq| seq.to_string()).unwrap_or_default();
        let ins_code = (run.ins_code != 0).then(|| char::from(run.ins_code));
        let code = ins_code.map(String::from).unwrap_or_default();
        format!("{chain} {comp} {number}{code}")
            .trim_start()
            .to_owned()
    }

    /// The atoms of a run.
    #[inline]
    pub(super) fn atoms_of(&self, run: &AtomRun) -> &[AtomLine] {
        &self.atoms[run.atoms.start as usize..run.atoms.end as usize]
    }
}

/// Where the B factor of an atom is, or is to be inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BFactorField {
    /// Bytes of the text; empty if the atom has no B factor.
    pub bytes: Range<usize>,
    /// Blanks to insert before a new value, because the line is too short or to separate values.
    pub blanks_before: usize,
}

/// Where the B factors are in the text of a file: a field for each atom that is read, in file order, and
/// for each that is not.
#[derive(Default)]
pub(super) struct FieldsOfAtoms {
    pub atoms: Vec<BFactorField>,
    /// Like [`BFactorFields::unread`](super::BFactorFields::unread).
    pub unread: Vec<BFactorField>,
    /// Like [`BFactorFields::items_missing_at`](super::BFactorFields::items_missing_at).
    pub items_missing_at: Vec<usize>,
}

/// Makes room for `more` items, and doubles the memory of `items` at least, up to the limit `max` of
/// the field `field`. The limit is checked here only, so that adding an item does not check it. An
/// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) error beyond the limit, and without memory.
#[cold]
#[inline(never)]
fn grow<T>(items: &mut Vec<T>, more: usize, field: &str, max: u32, noun: &str) -> Result<()> {
    // The atoms of a small protein, so that its table grows once.
    const LEAST: usize = 1 << 10;
    let len = items.len();
    let wanted = more.max(len).max(LEAST);
    let room = wanted.min((max as usize).saturating_sub(len));
    if room < more {
        let excess = format_args!("the file has too many {noun}");
        return Err(limit_error(field, max, excess));
    }
    reserve(items, room)
}
