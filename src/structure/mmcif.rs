//! The reader for mmCIF files: the categories around the atoms.
//!
//! One pass over the text. Atoms go straight into the table (see
//! [`super::atom_site`]); the few categories that say what the atoms are may
//! come before or after them, so they are kept aside and resolved at the end.

use std::collections::HashMap;

use super::assembly::Generators;
use super::atom_site::{self, AtomSite};
use super::cif_lexer::{Lexer, Rows, Token};
use super::components::{self, Kind};
use super::decimal::int;
use super::limits::{ReadLimits, check};
use super::oper_list::{self, GENERATOR_ITEMS, OPERATOR_ITEMS};
use super::table::{AtomTable, Entity, NO_NAME, Reference, at_line, line_of, text8};
use super::{Assembly, ReadOptions};
use crate::{Error, Result};

/// The categories that are kept, with their items.
const CATEGORIES: [(&[u8], &[&[u8]]); 10] = [
    (b"entity", &[b"id", b"type"]),
    (b"entity_poly", &[b"entity_id", b"type"]),
    (b"struct_asym", &[b"id", b"entity_id"]),
    (b"chem_comp", &[b"id", b"type"]),
    (
        b"struct_ref",
        &[b"id", b"entity_id", b"db_name", b"pdbx_db_accession"],
    ),
    (
        b"struct_ref_seq",
        &[
            b"ref_id",
            b"pdbx_strand_id",
            b"pdbx_db_accession",
            b"seq_align_beg",
            b"seq_align_end",
            b"db_align_beg",
            b"db_align_end",
        ],
    ),
    (
        b"ma_target_ref_db_details",
        &[
            b"target_entity_id",
            b"db_name",
            b"db_accession",
            b"seq_db_align_begin",
            b"seq_db_align_end",
        ],
    ),
    (b"ma_qa_metric", &[b"name", b"type"]),
    (b"pdbx_struct_assembly_gen", GENERATOR_ITEMS),
    (b"pdbx_struct_oper_list", OPERATOR_ITEMS),
];
const ENTITY: usize = 0;
const ENTITY_POLY: usize = 1;
const STRUCT_ASYM: usize = 2;
const CHEM_COMP: usize = 3;
const STRUCT_REF: usize = 4;
const STRUCT_REF_SEQ: usize = 5;
const MODEL_TARGET: usize = 6;
const QUALITY_METRIC: usize = 7;
const ASSEMBLY_GEN: usize = 8;
const OPER_LIST: usize = 9;

/// Reads the text of an mmCIF file into `table`. `edges` is scratch.
pub(super) fn read(
    text: &[u8],
    options: ReadOptions,
    table: &mut AtomTable,
    edges: &mut Vec<u32>,
) -> Result<()> {
    let limits = table.limits;
    let mut lexer = Lexer::new(text);
    let mut block = Block::default();
    let mut seen = Seen::default();
    let mut in_block = false;
    loop {
        let (span, token) = lexer.next()?;
        match token {
            Token::End => break,
            Token::Tag(_) | Token::Loop | Token::Value(_) if !in_block => {
                return Err(
                    at_line(text, span.start, "there is no data block before this")
                        .fix("give an mmCIF file; if this is one, its start is missing"),
                );
            }
            Token::Data(_) if block.has_atoms => break,
            Token::Data(name) => {
                let named = limits.check_name("the name of the data block", name);
                named.map_err(|error| on_line(text, span.start, error))?;
                in_block = true;
                block = Block {
                    name,
                    ..Block::default()
                }
            }
            Token::Tag(tag) => {
                let (value_span, Token::Value(value)) = lexer.next()? else {
                    return Err(at_line(text, span.start, "a tag has no value")
                        .fix("fetch the file again: it seems to be cut short"));
                };
                seen.note(tag);
                let item = block.item(tag, value, [value_span.start, value_span.end], &limits);
                item.map_err(|error| on_line(text, value_span.start, error))?;
            }
            Token::Loop => {
                let tags = lexer.tags(span.start)?;
                seen.note(tags[0]);
                let mut rows = Rows::new(text, lexer.pos(), tags.len(), edges);
                if atom_site::is_item(tags[0]) {
                    AtomSite::new(text, &tags, options.models, table)?.read(&mut rows)?;
                    block.has_atoms = true;
                } else {
                    block.rows(text, &tags, &mut rows, &limits)?;
                }
                lexer.seek(rows.pos());
            }
            Token::Other => {}
            Token::Value(_) => return Err(at_line(text, span.start, "a value has no tag")),
        }
    }
    if !block.atom.is_empty() {
        let (tags, mut edges): (Vec<_>, Vec<_>) = block.atom.iter().copied().unzip();
        edges.push([0, 0]);
        let mut atoms = AtomSite::new(text, &tags, options.models, table)?;
        atoms.row(edges.as_flattened())?;
    }
    table.end_run();
    if table.atoms.is_empty() {
        return Err(seen.error());
    }
    block.resolve(table);
    if options.assembly == Assembly::First {
        block.generators(text, &limits, &mut table.generators)?;
    }
    Ok(())
}

/// What a file without atoms holds instead.
#[derive(Default)]
struct Seen {
    reflections: bool,
    small_molecule: bool,
    components: bool,
}

impl Seen {
    fn note(&mut self, tag: &[u8]) {
        let is = |prefix: &[u8]| strip_prefix(tag, prefix).is_some();
        self.reflections |= is(b"_refln.") || is(b"_diffrn_refln.");
        self.small_molecule |= is(b"_atom_site_");
        self.components |= is(b"_chem_comp_atom.");
    }

    fn error(&self) -> Error {
        let error = Error::input("no _atom_site category with coordinates");
        if self.small_molecule {
            error.fix("this is a small-molecule CIF; give a macromolecular mmCIF")
        } else if self.reflections {
            error.fix("this file holds reflections; give the coordinate file of the entry")
        } else if self.components {
            error.fix("this file describes a chemical component; give an entry")
        } else {
            error
        }
    }
}

/// What is kept of a data block.
#[derive(Default)]
struct Block<'a> {
    name: &'a [u8],
    entry_id: &'a [u8],
    has_atoms: bool,
    /// The items and the place of the values of an atom_site without a loop.
    atom: Vec<(&'a [u8], [u32; 2])>,
    /// By category, the values of its items, row by row; empty for null.
    values: [Vec<&'a [u8]>; CATEGORIES.len()],
    /// By category, where each of its rows starts.
    offsets: [Vec<u32>; CATEGORIES.len()],
}

impl<'a> Block<'a> {
    fn item(
        &mut self,
        tag: &'a [u8],
        value: &'a [u8],
        span: [usize; 2],
        limits: &ReadLimits,
    ) -> Result<()> {
        let span = span.map(|at| at as u32);
        if tag.eq_ignore_ascii_case(b"_entry.id") {
            limits.check_name("_entry.id", value)?;
            self.entry_id = value;
        } else if atom_site::is_item(tag) {
            self.atom.push((tag, span));
            self.has_atoms = true;
        } else if let Some((category, Some(item))) = find_item(tag) {
            check_value(category, item, value, limits)?;
            let values = &mut self.values[category];
            values.resize(CATEGORIES[category].1.len(), b"");
            values[item] = value;
            self.offsets[category].resize(1, span[0]);
        }
        Ok(())
    }

    fn rows(
        &mut self,
        text: &'a [u8],
        tags: &[&[u8]],
        rows: &mut Rows,
        limits: &ReadLimits,
    ) -> Result<()> {
        let Some((category, _)) = find_item(tags[0]) else {
            while rows.next()? {}
            return Ok(());
        };
        let items = CATEGORIES[category].1.len();
        let columns: Vec<Option<usize>> = tags
            .iter()
            .map(|tag| find_item(tag).filter(|(of, _)| *of == category)?.1)
            .collect();
        let values = &mut self.values[category];
        while rows.next()? {
            let row = values.len();
            values.resize(row + items, b"");
            self.offsets[category].push(rows.edges()[0]);
            check_rows(category, self.offsets[category].len(), limits)?;
            for (edge, item) in rows.edges().chunks_exact(2).zip(&columns) {
                if let &Some(item) = item {
                    let value = not_null(&text[edge[0] as usize..edge[1] as usize]);
                    check_value(category, item, value, limits)
                        .map_err(|error| on_line(text, edge[0] as usize, error))?;
                    values[row + item] = value;
                }
            }
        }
        Ok(())
    }

    /// The rows of a category.
    fn table<const N: usize>(&self, category: usize) -> impl Iterator<Item = [&'a [u8]; N]> {
        assert_eq!(CATEGORIES[category].1.len(), N);
        self.values[category].as_chunks::<N>().0.iter().copied()
    }

    /// The rows of a category, and where each starts.
    fn located_table<const N: usize>(&self, category: usize) -> Vec<(u32, [&'a [u8]; N])> {
        let offsets = self.offsets[category].iter().copied();
        offsets.zip(self.table::<N>(category)).collect()
    }

    fn generators(&self, text: &[u8], limits: &ReadLimits, out: &mut Generators) -> Result<()> {
        let rows = self.located_table(ASSEMBLY_GEN);
        oper_list::generators(text, limits, &rows, &self.located_table(OPER_LIST), out)
    }

    fn resolve(&self, table: &mut AtomTable) {
        let id = if self.entry_id.is_empty() {
            self.name
        } else {
            self.entry_id
        };
        table.entry_id = (!id.is_empty()).then(|| String::from_utf8_lossy(id).into());
        self.resolve_entities(table);
        for [id, kind] in self.table::<2>(CHEM_COMP) {
            if let Some(kind) = component_kind(kind)
                && components::lookup(text8(id)).is_none()
            {
                table.components.entry(text8(id)).or_insert(kind);
            }
        }
        let mut metrics = self.table::<2>(QUALITY_METRIC).flatten();
        table.plddt = metrics.any(|text| contains(text, b"plddt"));
        // Where the atoms name their UniProt residues, nothing else is asked.
        if table.runs.iter().all(|run| run.uniprot.is_none()) {
            self.resolve_references(table);
            self.resolve_model_target(table);
        }
    }

    fn resolve_entities(&self, table: &mut AtomTable) {
        let mut types = HashMap::new();
        for [id, kind] in self.table::<2>(ENTITY) {
            let entity = match kind {
                b"" => continue,
                _ if kind.eq_ignore_ascii_case(b"polymer") => Entity::Polymer(None),
                _ => Entity::Other,
            };
            types.insert(table.names.intern(id), entity);
        }
        for [id, kind] in self.table::<2>(ENTITY_POLY) {
            let entity = types.get_mut(&table.names.intern(id));
            if let Some(Entity::Polymer(units)) = entity {
                *units = if contains(kind, b"peptide") {
                    Some(Kind::Amino)
                } else if contains(kind, b"nucleotide") {
                    Some(Kind::Nucleotide)
                } else {
                    None
                };
            }
        }
        let mut entity_of = HashMap::new();
        for [id, entity] in self.table::<2>(STRUCT_ASYM) {
            let id = table.names.intern(id);
            entity_of.insert(id, table.names.intern(entity));
        }
        for chain in &mut table.chains {
            if chain.entity == NO_NAME
                && let Some(&entity) = entity_of.get(&chain.label)
            {
                chain.entity = entity;
            }
            chain.entity_type = types.get(&chain.entity).copied().unwrap_or_default();
        }
    }

    fn resolve_references(&self, table: &mut AtomTable) {
        let mut targets = HashMap::new();
        for [id, target @ ..] in self.table::<4>(STRUCT_REF) {
            targets.entry(id).or_insert(target);
        }
        for [id, chain, accession, first, last, position, end] in self.table::<7>(STRUCT_REF_SEQ) {
            let Some(&[entity, db_name, db_accession]) = targets.get(id) else {
                continue;
            };
            let accession = if accession.is_empty() {
                db_accession
            } else {
                accession
            };
            if accession.is_empty() || !db_name.eq_ignore_ascii_case(b"UNP") {
                continue;
            }
            let numbers = [first, last, position, end].map(int);
            let [Some(first), Some(last), Some(position), Some(end)] = numbers else {
                continue;
            };
            // Ranges of unequal length leave open which residue is which.
            if i64::from(last) - i64::from(first) != i64::from(end) - i64::from(position) {
                continue;
            }
            let reference = Reference {
                chain: table.names.intern(chain),
                entity: table.names.intern(entity),
                label_numbers: true,
                first,
                last,
                accession: table.accession(accession),
                position,
            };
            table.references.push(reference);
        }
    }

    /// ModelCIF: the target's first residue is the first of the range.
    fn resolve_model_target(&self, table: &mut AtomTable) {
        for [entity, db_name, accession, begin, end] in self.table::<5>(MODEL_TARGET) {
            let (Some(position), Some(end)) = (int(begin), int(end)) else {
                continue;
            };
            if accession.is_empty() || !db_name.eq_ignore_ascii_case(b"UNP") {
                continue;
            }
            let reference = Reference {
                chain: NO_NAME,
                entity: table.names.intern(entity),
                label_numbers: true,
                first: 1,
                last: end.saturating_sub(position).saturating_add(1),
                accession: table.accession(accession),
                position,
            };
            table.references.push(reference);
        }
    }
}

/// Refuses a name that is over its limit. The lists of an assembly's generator are none.
fn check_value(category: usize, item: usize, value: &[u8], limits: &ReadLimits) -> Result<()> {
    if category == ASSEMBLY_GEN || value.len() <= limits.name_bytes_max as usize {
        return Ok(());
    }
    let (category, items) = CATEGORIES[category];
    let [category, item] = [category, items[item]].map(String::from_utf8_lossy);
    limits.check_name(&format!("_{category}.{item}"), value)
}

/// Refuses rows of a category beyond its limit.
fn check_rows(category: usize, count: usize, limits: &ReadLimits) -> Result<()> {
    let (field, max) = match category {
        ASSEMBLY_GEN | OPER_LIST => ("operators_max", limits.operators_max),
        _ => ("chains_max", limits.chains_max),
    };
    let name = || String::from_utf8_lossy(CATEGORIES[category].0);
    check(field, max, count as u64, || {
        format!("_{} has too many rows", name())
    })
}

/// Adds the line that an offset into the text is on.
pub(super) fn on_line(text: &[u8], offset: usize, error: Error) -> Error {
    error.within(format!("line {}", line_of(text, offset)))
}

/// The category of a tag that is kept, and the item if that is kept too.
fn find_item(tag: &[u8]) -> Option<(usize, Option<usize>)> {
    let dot = tag.iter().position(|&byte| byte == b'.')?;
    let (category, item) = (&tag[1..dot], &tag[dot + 1..]);
    let at = CATEGORIES
        .iter()
        .position(|(name, _)| category.eq_ignore_ascii_case(name))?;
    Some((
        at,
        CATEGORIES[at]
            .1
            .iter()
            .position(|name| item.eq_ignore_ascii_case(name)),
    ))
}

/// What `_chem_comp.type` makes of a component that is part of a polymer.
fn component_kind(kind: &[u8]) -> Option<Kind> {
    if kind.is_empty() {
        None
    } else if contains(kind, b"peptide") && !contains(kind, b"peptide-like") {
        Some(Kind::Amino)
    } else if contains(kind, b"rna ") || contains(kind, b"dna ") {
        Some(Kind::Nucleotide)
    } else {
        Some(Kind::Cap)
    }
}

/// Empty for the nulls `?` and `.`.
#[inline]
pub(super) fn not_null(value: &[u8]) -> &[u8] {
    match value {
        b"?" | b"." => b"",
        _ => value,
    }
}

/// `text` after `prefix`, in either case.
pub(super) fn strip_prefix<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Whether `text` contains `word`, in either case.
fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|part| part.eq_ignore_ascii_case(word))
}
