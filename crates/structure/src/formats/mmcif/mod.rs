//! The reader for mmCIF files.
//!
//! It passes over the text once. The rows of `_atom_site` go straight into the table
//! ([`atom_rows`]). The few categories that describe the atoms may come before or after them, so
//! they are kept ([`data_block`]) and applied at the end. What the values mean ([`atom_site`],
//! [`data_block`]) is shared with BinaryCIF.

mod atom_rows;
pub(super) mod atom_site;
mod categories;
pub(super) mod data_block;
mod lexer;
mod local_quality;
mod oper_list;
mod rows;

pub(crate) use categories::{CifValues, each_row};
use std::ops::Range;

use self::atom_rows::AtomSiteRows;
use self::data_block::DataBlock;
use self::lexer::{CifToken, Lexer, strip_prefix};
use self::rows::LoopRows;
use crate::ReadOptions;
use crate::atom_table::{AtomTable, BFactorField, FieldsOfAtoms};
use crate::model::Assembly;
use crate::text::{FilePlace, at_line, on_line};
use crate::{Error, Result};

/// Whether a line starts a data block.
pub(super) fn starts_data_block(line: &[u8]) -> bool {
    strip_prefix(line, b"data_").is_some()
}

/// Reads the text of an mmCIF file into `table`: its first data block with atoms.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) with the line that is no mmCIF or has no value that an atom
/// needs, or for no atoms; [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) for more than a limit allows.
pub(super) fn read(text: &[u8], options: ReadOptions, table: &mut AtomTable) -> Result<()> {
    let limits = table.limits;
    let mut lexer = Lexer::new(text);
    let mut edges = Vec::new();
    let mut block = DataBlock::new(b"", options);
    let mut content = OtherContent::default();
    let mut in_block = false;
    loop {
        let (span, token) = lexer.next()?;
        match token {
            CifToken::End => break,
            CifToken::Tag(_) | CifToken::Loop | CifToken::Value(_) if !in_block => {
                return Err(
                    at_line(text, span.start, "there is no data block before this")
                        .fix("give an mmCIF file; if this is one, its start is missing"),
                );
            }
            CifToken::Data(_) if block.has_atoms => break,
            CifToken::Data(name) => {
                let checked = limits.check_name("the name of the data block", name);
                checked.map_err(|error| on_line(text, span.start, error))?;
                in_block = true;
                block = DataBlock::new(name, options);
            }
            CifToken::Tag(tag) => {
                let (value_span, CifToken::Value(value)) = lexer.next()? else {
                    return Err(at_line(text, span.start, "a tag has no value")
                        .fix("fetch the file again: it seems to be cut short"));
                };
                content.note(tag);
                let item = block.item(tag, value, [value_span.start, value_span.end], &limits);
                item.map_err(|error| on_line(text, value_span.start, error))?;
            }
            CifToken::Loop => {
                let tags = lexer.tags(span.start)?;
                content.note(tags[0]);
                let mut rows = LoopRows::new(text, lexer.pos(), tags.len(), &mut edges);
                if atom_rows::is_item(tags[0]) {
                    AtomSiteRows::new(text, &tags, options.models, table)?.read(&mut rows)?;
                    block.has_atoms = true;
                } else {
                    block.keep_rows(text, &tags, &mut rows, &limits)?;
                }
                lexer.seek(rows.pos());
            }
            CifToken::Other => {}
            CifToken::Value(_) => return Err(at_line(text, span.start, "a value has no tag")),
        }
    }
    if !block.atom.is_empty() {
        let (tags, mut edges): (Vec<_>, Vec<_>) = block.atom.iter().copied().unzip();
        // The empty range that items which the file lacks take.
        edges.push([0, 0]);
        let mut atoms = AtomSiteRows::new(text, &tags, options.models, table)?;
        atoms.add_row(edges.as_flattened())?;
    }
    if table.atoms.is_empty() {
        return Err(content.error());
    }
    block.describe_atoms(table)?;
    match options.assembly {
        Assembly::Deposited => Ok(()),
        Assembly::First => {
            let place = |_, offset| FilePlace::Line(text, offset);
            block.generators(place, &limits, &mut table.generators)
        }
    }
}

/// Finds the B factors of the atoms that [`read`] reads from all models, and of those in later data
/// blocks, up to the first one that is damaged. Fails only if the text is damaged before or in the
/// block that is read.
pub(super) fn b_factor_fields(text: &[u8]) -> Result<FieldsOfAtoms> {
    let mut fields = FieldsOfAtoms::default();
    let found = add_b_factor_fields(text, &mut fields);
    // The block that is read comes first, and nothing reads the others.
    if fields.atoms.is_empty() {
        found.map(|()| fields)
    } else {
        Ok(fields)
    }
}

/// Adds the fields of a data block at its end.
fn add_b_factor_fields(text: &[u8], fields: &mut FieldsOfAtoms) -> Result<()> {
    let mut lexer = Lexer::new(text);
    // The three lists hold the fields of the current data block.
    let mut atoms = Vec::new();
    let mut items_missing_at = Vec::new();
    let mut edges = Vec::new();
    // The end of the last value of an atom_site without a loop, and where its B factor is.
    let mut single: Option<(usize, Option<Range<usize>>)> = None;
    // A new value needs a blank before it.
    let field = |bytes: Range<usize>| BFactorField {
        blanks_before: usize::from(bytes.is_empty()),
        bytes,
    };
    loop {
        let (span, token) = lexer.next()?;
        match token {
            CifToken::Data(_) | CifToken::End => {
                if let Some((end, b_factor)) = single.take() {
                    if b_factor.is_none() {
                        items_missing_at.push(end);
                    }
                    atoms.push(field(b_factor.unwrap_or(end..end)));
                }
                fields.items_missing_at.append(&mut items_missing_at);
                // The first block with atoms is the one that is read.
                if fields.atoms.is_empty() {
                    fields.atoms.append(&mut atoms);
                } else {
                    fields.unread.append(&mut atoms);
                }
                if let CifToken::End = token {
                    return Ok(());
                }
            }
            CifToken::Tag(tag) => {
                let (value, _) = lexer.next()?;
                if atom_rows::is_item(tag) {
                    let known = single.take().and_then(|(_, b_factor)| b_factor);
                    let stated = atom_rows::is_b_factor(tag).then_some(value);
                    single = Some((lexer.pos(), stated.or(known)));
                }
            }
            CifToken::Loop => {
                let tags = lexer.tags(span.start)?;
                let mut rows = LoopRows::new(text, lexer.pos(), tags.len(), &mut edges);
                let is_atoms = atom_rows::is_item(tags[0]);
                let column = tags.iter().position(|tag| atom_rows::is_b_factor(tag));
                if is_atoms && column.is_none() {
                    items_missing_at.push(lexer.pos());
                }
                while rows.next()? {
                    if is_atoms {
                        let end = rows.row_end();
                        atoms.push(field(match column {
                            Some(column) => rows.value(column),
                            None => end..end,
                        }));
                    }
                }
                lexer.seek(rows.pos());
            }
            CifToken::Other | CifToken::Value(_) => {}
        }
    }
}

/// `value`, or nothing for the nulls `?` and `.`.
#[inline]
pub(super) fn not_null(value: &[u8]) -> &[u8] {
    match value {
        b"?" | b"." => b"",
        _ => value,
    }
}

/// Other contents that a file without atoms may have, for the error message.
#[derive(Default)]
pub(super) struct OtherContent {
    has_reflections: bool,
    is_small_molecule: bool,
    has_component: bool,
    has_spheres: bool,
}

impl OtherContent {
    /// Notes the first tag of a loop, or a tag outside of loops.
    fn note(&mut self, tag: &[u8]) {
        self.is_small_molecule |= strip_prefix(tag, b"_atom_site_").is_some();
        self.note_category(tag.split(|&byte| byte == b'.').next().unwrap_or_default());
    }

    /// Notes a category, whose name starts with an underscore.
    pub(super) fn note_category(&mut self, name: &[u8]) {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        self.has_reflections |= is(b"_refln") || is(b"_diffrn_refln");
        self.has_component |= is(b"_chem_comp_atom");
        self.has_spheres |= is(b"_ihm_sphere_obj_site");
    }

    /// The error of a file without atoms. Its fix depends on what the file has instead.
    pub(super) fn error(&self) -> Error {
        let error = Error::input("no _atom_site category with coordinates");
        if self.is_small_molecule {
            error.fix("this is a small-molecule CIF; give a macromolecular mmCIF")
        } else if self.has_reflections {
            error.fix("this file holds reflections; give the coordinate file of the entry")
        } else if self.has_spheres {
            error.fix("this is a coarse model of spheres; give one with atoms")
        } else if self.has_component {
            error.fix("this file describes a chemical component; give an entry")
        } else {
            error
        }
    }
}
