//! Names of records, and the texts of some.

use super::columns::{COORDINATES_END, coordinate_fields, is_atom};
use super::shifted_line;
use crate::{decimal, entry_header};

/// Records that a PDB file may start with, without the digit at their end: those of the format, of
/// earlier versions of it, of PDBQT, and of CASP, and what MolProbity's programs write (USER).
#[rustfmt::skip]
const RECORDS: [&[u8]; 62] = [
    b"ANISOU", b"ATOM", b"AUTHOR", b"BRANCH", b"CAVEAT", b"CISPEP", b"COMPND", b"CONECT", b"CRYST",
    b"DBREF", b"END", b"ENDMDL", b"EXPDTA", b"FORMUL", b"FTNOTE", b"HEADER", b"HELIX", b"HET",
    b"HETATM", b"HETNAM", b"HETSYN", b"HYDBND", b"JRNL", b"KEYWDS", b"LINK", b"LINKR", b"MASTER",
    b"MDLTYP", b"METHOD", b"MODEL", b"MODRES", b"MTRIX", b"NUMMDL", b"OBSLTE", b"ORIGX", b"PARENT",
    b"PFRMAT", b"REMARK", b"REVDAT", b"ROOT", b"SCALE", b"SCORE", b"SEQADV", b"SEQRES", b"SHEET",
    b"SIGATM", b"SIGUIJ", b"SITE", b"SLTBRG", b"SOURCE", b"SPLIT", b"SPRSDE", b"SSBOND", b"STOICH",
    b"TARGET", b"TER", b"TITLE", b"TORSDOF", b"TURN", b"TVECT", b"USER", b"COMMNT",
];

/// Whether a line is a record that a PDB file may start with.
pub(in crate::formats) fn is_record(line: &[u8]) -> bool {
    let word = line.split(u8::is_ascii_whitespace).next();
    let word = word.unwrap_or_default();
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let name = &word[..word.len() - usize::from(word.last().is_some_and(is_digit))];
    is_atom(line) || RECORDS.contains(&name)
}

/// Whether a line is an atom with coordinates. A line with tabs counts without a look at them.
pub(in crate::formats) fn is_atom_line(line: &[u8]) -> bool {
    let is_plain =
        || line.len() >= COORDINATES_END && decimal::coordinates(coordinate_fields(line)).is_ok();
    is_atom(line) && (is_plain() || shifted_line::shift(line) != Some(0))
}

/// Whether a line that starts as an atom is read where it follows END: other programs' text may stand
/// there.
pub(super) fn is_atom_after_end(line: &[u8]) -> bool {
    !line.contains(&b'\t') && is_atom_line(line)
}

/// The text of a TITLE or EXPDTA line, of six bytes at least: what follows column 10, or the name of the record where
/// text starts earlier, as some programs write it.
pub(super) fn header_text(line: &[u8]) -> &[u8] {
    let is_continuation = |text: &[u8]| text.iter().all(|byte| matches!(byte, b' ' | b'0'..=b'9'));
    match line.split_at_checked(10) {
        Some((start, text)) if is_continuation(&start[6..]) => text,
        _ => &line[6..],
    }
}

/// The resolution in A in the first word after `label`; `None` if the text does not begin with the
/// label, or no resolution follows it.
pub(super) fn resolution_after(text: &[u8], label: &[u8]) -> Option<f32> {
    // Other labels end with these words too, such as that of a shell, so the text has to begin with them.
    let value = text.trim_ascii_start().strip_prefix(label)?.trim_ascii();
    entry_header::resolution(value.split(u8::is_ascii_whitespace).next()?)
}
