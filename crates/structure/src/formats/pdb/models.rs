//! Where models of a PDB file start and end: MODEL, ENDMDL and END.

use super::PdbReader;
use super::columns::{is_atom, is_word, line_end};
use super::records::is_atom_after_end;
use crate::atom_table::AtomTable;
use crate::joined_models::COMPARED_ATOMS;
use crate::read_limits::ReadLimits;
use crate::{Models, ReadOptions};

impl PdbReader<'_> {
    /// The number of a model that the file does not number, or numbers as another one: its place among the
    /// models, or a number above all others if its place is the number of one.
    pub(super) fn next_model_number(&self) -> i32 {
        let ordinal = self.table.models.len() as i32 + 1;
        // Saturating, as a file may have any number.
        match self.table.model(ordinal) {
            Some(_) => self.highest_model.saturating_add(1),
            None => ordinal,
        }
    }

    /// The next atom starts a model.
    pub(super) fn end_model(&mut self) {
        (self.is_in_model, self.key, self.model_number) = (false, None, None);
        self.segments.clear();
    }

    /// Whether the models that are wanted have been read, at the end of one.
    pub(super) fn is_complete(&self) -> bool {
        self.models == Models::First && !self.table.atoms.is_empty()
    }
}

/// Whether a line is a record that ends the model before it.
pub(super) fn ends_model(line: &[u8]) -> bool {
    [&b"MODEL"[..], b"ENDMDL", b"END"]
        .iter()
        .any(|record| is_word(line, record))
}

/// The first line of the model that follows END, which ends before `start`: MODEL, or an atom. Other
/// programs' text may stand between, and the headers of another entry. The end of the text if no model
/// follows.
#[cold]
pub(super) fn next_model(text: &[u8], start: usize) -> usize {
    let mut line_start = start;
    while line_start < text.len() {
        let end = line_end(text, line_start);
        let line = &text[line_start..end];
        if is_word(line, b"MODEL") || (is_atom(line) && is_atom_after_end(line)) {
            return line_start;
        }
        line_start = end + 1;
    }
    text.len()
}

/// The first atoms of `text`, which follows the first model; `None` if there are none that can be read.
/// Errors in it are ignored, because the caller asked for the first model only.
pub(super) fn read_first_atoms(text: &[u8], limits: ReadLimits) -> Option<Box<AtomTable>> {
    let mut table = Box::<AtomTable>::default();
    table.clear(limits, text.len());
    super::read(first_atoms(text), ReadOptions::default(), &mut table).ok()?;
    table.end_run();
    Some(table)
}

/// The lines up to that of the last atom that is compared, or to the end of the model.
fn first_atoms(text: &[u8]) -> &[u8] {
    let mut atoms = 0;
    let mut line_start = 0;
    while line_start < text.len() && atoms < COMPARED_ATOMS {
        let end = line_end(text, line_start);
        let line = &text[line_start..end];
        atoms += usize::from(is_atom(line));
        line_start = end + 1;
        if atoms > 0 && ends_model(line) {
            break;
        }
    }
    &text[..line_start.min(text.len())]
}
