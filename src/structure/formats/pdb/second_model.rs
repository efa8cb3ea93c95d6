//! The first atoms of the second model, of a file of which the first model alone is read.

use super::columns::{is_atom, is_word, line_end};
use crate::structure::ReadOptions;
use crate::structure::atom_table::AtomTable;
use crate::structure::joined_models::COMPARED_ATOMS;
use crate::structure::read_limits::ReadLimits;

/// The first atoms of `text`, which follows the first model. `None` if there are none that can be read:
/// the text is no part of what was asked for, so an error in it is none of the file.
pub(super) fn read(text: &[u8], limits: ReadLimits) -> Option<Box<AtomTable>> {
    let mut table = Box::<AtomTable>::default();
    table.clear(limits, text.len());
    super::read(first_atoms(text), ReadOptions::default(), &mut table).ok()?;
    table.end_run();
    Some(table)
}

/// The lines up to that of the last atom that is compared.
fn first_atoms(text: &[u8]) -> &[u8] {
    let mut atoms = 0;
    let mut at = 0;
    while at < text.len() && atoms < COMPARED_ATOMS {
        let end = line_end(text, at);
        let line = &text[at..end];
        atoms += usize::from(is_atom(line));
        at = end + 1;
        if atoms > 0 && (is_word(line, b"ENDMDL") || is_word(line, b"END")) {
            break;
        }
    }
    &text[..at.min(text.len())]
}
