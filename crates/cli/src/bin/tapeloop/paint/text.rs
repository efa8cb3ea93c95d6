//! Replaces the B factors in the text of a file, and nothing else.

use super::values::Writing;
use std::collections::{HashMap, VecDeque};
use tapeloop::structure::{BFactorField, BFactorFields, Chain, Format, ResidueBFactors, Structure};
use tapeloop_cli::strip::range;

/// A painted text, and how many atoms have a value.
#[derive(Debug)]
pub(super) struct Painted {
    pub(super) text: Vec<u8>,
    /// Atoms with a value: that of their residue, or their own.
    pub(super) atoms: usize,
    /// All other atoms, which have the value for null.
    pub(super) null_atoms: usize,
    /// Whether values did not fit, and the nearest that do were written.
    pub(super) is_clamped: bool,
    /// What is unusual about the number format.
    pub(super) note: Option<String>,
}

/// A model of a file, with its values.
pub(super) struct Model {
    pub(super) structure: Structure,
    pub(super) values: ModelValues,
}

/// The values of a model.
pub(super) enum ModelValues {
    /// For each residue.
    Residues(Vec<Option<f64>>),
    /// For each atom that has a value, by its position in 0.001 A.
    Atoms(HashMap<[i32; 3], f64>),
}

impl ModelValues {
    /// The values, in any order.
    pub(super) fn numbers(&self) -> Box<dyn Iterator<Item = Option<f64>> + '_> {
        match self {
            ModelValues::Residues(values) => Box::new(values.iter().copied()),
            ModelValues::Atoms(values) => Box::new(values.values().copied().map(Some)),
        }
    }
}

/// Replaces the B factors of `text` by the values of `models`, which are the first models of the
/// file. An atom gets its own value, or that of its residue. All other atoms get `null`, those too
/// that the reader does not read. `is_given` is whether the user chose `null`.
pub(super) fn paint(
    text: &[u8],
    format: Format,
    fields: &BFactorFields,
    models: &[Model],
    null: f64,
    is_given: bool,
) -> Painted {
    let values = models.iter().flat_map(|model| model.values.numbers());
    // The column's number for null has a format of its own, so that it takes no decimals from the
    // values. A given number has the same format as the values.
    let (value_range, null_range) = if is_given {
        let all = range(values.chain([Some(null)])).unwrap_or((null, null));
        (all, all)
    } else {
        (range(values).unwrap_or((null, null)), (null, null))
    };
    let writing = Writing::new(format, value_range);
    let null_writing = Writing::new(format, null_range);
    // The label ids of a PDB file's structure name the parts of chains, which its text does not.
    let has_labels = format != Format::Pdb;
    let rows = models.iter().map(|model| rows_by_name(model, has_labels));
    let mut rows: Vec<RowsByName<'_>> = rows.collect();
    let mut edits: Vec<(&BFactorField, Option<f64>)> = Vec::new();
    for residue in &fields.residues {
        let row = rows
            .get_mut(residue.model)
            .and_then(|rows| rows.get_mut(&Name::of_text(residue)?)?.pop_front());
        let values = models.get(residue.model).map(|model| &model.values);
        let value = |position: &[i32; 3]| match values? {
            ModelValues::Residues(values) => values[row?],
            ModelValues::Atoms(values) => values.get(position).copied(),
        };
        let atoms = residue.atoms.iter().zip(&residue.positions);
        edits.extend(atoms.map(|(field, position)| (field, value(position))));
    }
    edits.extend(fields.unread.iter().map(|field| (field, None)));
    edits.sort_by_key(|(field, _)| field.bytes.start);
    let atoms = edits.iter().filter(|(_, value)| value.is_some()).count();
    let mut out = PaintedText::new(text, edits.len());
    let mut items = fields.items_missing_at.iter().peekable();
    for &(field, value) in &edits {
        while let Some(&&offset) = items.peek().filter(|&&&offset| offset <= field.bytes.start) {
            out.insert(offset, b"\n_atom_site.B_iso_or_equiv");
            items.next();
        }
        let text = match value {
            Some(value) => writing.text(value),
            None => null_writing.text(null),
        };
        out.replace(field, &text);
    }
    let clamps_null = null_writing.clamps(null_range);
    Painted {
        text: out.finish(),
        atoms,
        null_atoms: edits.len() - atoms,
        is_clamped: clamps_null || writing.clamps(value_range),
        note: if clamps_null {
            null_writing.note(null_range)
        } else {
            writing.note(value_range)
        },
    }
}

/// What identifies a residue both in a row and in the text.
#[derive(PartialEq, Eq, Hash)]
struct Name<'a> {
    /// The author's chain, the label and the entity.
    chain: (&'a str, Option<&'a str>, Option<&'a str>),
    auth_seq_id: i32,
    ins_code: u8,
    comp_id: [u8; 8],
}

impl<'a> Name<'a> {
    /// The name of a residue as the text of its atoms has it; `None` without a residue number.
    fn of_text(residue: &'a ResidueBFactors) -> Option<Self> {
        Some(Name {
            chain: names(&residue.chain, true),
            auth_seq_id: residue.auth_seq_id?,
            ins_code: residue.ins_code,
            comp_id: residue.comp_id,
        })
    }
}

/// The names of a chain in [`Name::chain`], without the label unless `has_label`.
fn names(chain: &Chain, has_label: bool) -> (&str, Option<&str>, Option<&str>) {
    let (label, entity) = (&chain.label_asym_id, &chain.entity_id);
    let label = label.as_deref().filter(|_| has_label);
    (&chain.auth_asym_id, label, entity.as_deref())
}

/// Rows by name, in order, since a file may use a residue number twice.
type RowsByName<'a> = HashMap<Name<'a>, VecDeque<usize>>;

/// The rows of a model's residues by name. Residues of one name are in the order of the rows.
fn rows_by_name(model: &Model, has_labels: bool) -> RowsByName<'_> {
    let mut rows = RowsByName::new();
    for (row, residue) in model.structure.residues.iter().enumerate() {
        let name = Name {
            chain: names(&model.structure.chains[residue.chain as usize], has_labels),
            auth_seq_id: residue.auth_seq_id,
            ins_code: residue.ins_code,
            comp_id: residue.comp_id,
        };
        rows.entry(name).or_default().push_back(row);
    }
    rows
}

/// The new text so far, and the position in the old text.
struct PaintedText<'a> {
    old: &'a [u8],
    at: usize,
    new: Vec<u8>,
}

impl<'a> PaintedText<'a> {
    fn new(old: &'a [u8], edits: usize) -> Self {
        // What a value adds where a field was empty; the vector grows for more.
        const LONGER_BYTES: usize = 8;
        PaintedText {
            old,
            at: 0,
            new: Vec::with_capacity(old.len() + LONGER_BYTES * edits),
        }
    }

    /// Copies the old text up to `place`, and adds `text`.
    fn insert(&mut self, place: usize, text: &[u8]) {
        self.new.extend_from_slice(&self.old[self.at..place]);
        self.new.extend_from_slice(text);
        self.at = place;
    }

    /// Copies the text up to a field, and writes `value` in place of the field.
    fn replace(&mut self, field: &BFactorField, value: &str) {
        self.insert(field.bytes.start, b"");
        self.at = field.bytes.end;
        self.new.resize(self.new.len() + field.blanks_before, b' ');
        self.new.extend_from_slice(value.as_bytes());
        if !field.bytes.is_empty() {
            self.align(field.bytes.len(), value.len());
        }
    }

    /// Keeps the columns of a table aligned, as far as the blanks after a value allow.
    fn align(&mut self, old_len: usize, new_len: usize) {
        let rest = &self.old[self.at..];
        let blanks = rest.iter().take_while(|&&byte| byte == b' ').count();
        let ends_line = rest
            .get(blanks)
            .is_none_or(|byte| matches!(byte, b'\n' | b'\r'));
        if blanks == 0 || ends_line {
            return;
        }
        // At least one blank separates it from the next value.
        let wanted = (blanks + old_len).saturating_sub(new_len).max(1);
        self.new.resize(self.new.len() + wanted, b' ');
        self.at += blanks;
    }

    fn finish(mut self) -> Vec<u8> {
        self.new.extend_from_slice(&self.old[self.at..]);
        self.new
    }
}
