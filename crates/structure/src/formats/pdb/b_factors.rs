//! Where the text of a PDB file holds its B factors.

use super::columns::{B_FACTOR, is_atom, is_word, line_end, text_start};
use super::models::next_model;
use super::shifted_line;
use crate::Result;
use crate::atom_table::{BFactorField, FieldsOfAtoms};
use crate::text::at_line;

/// Finds the B factors of the atoms that [`read`](super::read) reads from all models.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) if tabs separate the fields of an atom's line, which is named.
pub(in crate::formats) fn b_factor_fields(text: &[u8]) -> Result<FieldsOfAtoms> {
    let mut fields = FieldsOfAtoms::default();
    let mut line_start = text_start(text);
    while line_start < text.len() {
        let end = line_end(text, line_start);
        let line = &text[line_start..end];
        if is_atom(line) {
            let len = line.len() - usize::from(line.last() == Some(&b'\r'));
            let Some(shift) = shifted_line::shift(&line[..len]) else {
                let message = "tabs separate the fields, so that B factors have no columns";
                let fix = "write the fields into the columns of the format";
                return Err(at_line(text, line_start, message).fix(fix));
            };
            let (start, end) = (B_FACTOR.start + shift, B_FACTOR.end + shift);
            fields.atoms.push(BFactorField {
                bytes: line_start + start.min(len)..line_start + end.min(len),
                blanks_before: start.saturating_sub(len),
            });
        }
        line_start = end + 1;
        if is_word(line, b"END") {
            line_start = next_model(text, line_start);
        }
    }
    Ok(fields)
}
