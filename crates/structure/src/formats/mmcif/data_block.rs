//! The categories of a data block that describe its atoms.

use std::collections::HashMap;
use std::sync::Arc;

use super::atom_rows;
use super::atom_site::{self, author_number};
use super::lexer::{contains, strip_prefix};
use super::local_quality;
use super::not_null;
use super::oper_list::{self, GENERATOR_ITEMS, OPERATOR_ITEMS};
use super::rows::Rows;
use crate::ReadOptions;
use crate::Result;
use crate::assembly::Generators;
use crate::atom_table::{AtomTable, Entity, Kind, NO_NAME, NameId};
use crate::components;
use crate::decimal::int;
use crate::entry_header::{self, EntryHeader};
use crate::model::{BFactorKind, SequenceResidue};
use crate::read_limits::{ReadLimits, check};
use crate::text::Place;
use crate::text8::text8;

/// The categories that are kept, with their items.
const CATEGORIES: [(&str, &[&str]); 18] = [
    ("entity", &["id", "type"]),
    ("entity_poly", &["entity_id", "type"]),
    ("struct_asym", &["id", "entity_id"]),
    ("chem_comp", &["id", "type"]),
    (
        "struct_ref",
        &["id", "entity_id", "db_name", "pdbx_db_accession"],
    ),
    (
        "struct_ref_seq",
        &[
            "ref_id",
            "pdbx_strand_id",
            "pdbx_db_accession",
            "seq_align_beg",
            "seq_align_end",
            "db_align_beg",
            "db_align_end",
        ],
    ),
    (
        "ma_target_ref_db_details",
        &[
            "target_entity_id",
            "db_name",
            "db_accession",
            "seq_db_align_begin",
            "seq_db_align_end",
        ],
    ),
    ("ma_qa_metric", &["id", "name", "type", "mode"]),
    ("pdbx_struct_assembly_gen", GENERATOR_ITEMS),
    ("pdbx_struct_oper_list", OPERATOR_ITEMS),
    ("exptl", &["method"]),
    (
        "struct",
        &["title", "pdbx_structure_determination_methodology"],
    ),
    ("refine", &["ls_d_res_high"]),
    ("em_3d_reconstruction", &["resolution"]),
    ("entity_poly_seq", &["entity_id", "num", "mon_id"]),
    (
        "pdbx_poly_seq_scheme",
        &["asym_id", "seq_id", "pdb_seq_num", "pdb_ins_code"],
    ),
    (
        "struct_conn",
        &[
            "conn_type_id",
            "ptnr1_auth_asym_id",
            "ptnr1_label_asym_id",
            "ptnr1_auth_seq_id",
            "ptnr1_label_seq_id",
            "pdbx_ptnr1_PDB_ins_code",
            "ptnr1_label_comp_id",
            "ptnr1_label_atom_id",
            "ptnr1_symmetry",
            "ptnr2_auth_asym_id",
            "ptnr2_label_asym_id",
            "ptnr2_auth_seq_id",
            "ptnr2_label_seq_id",
            "pdbx_ptnr2_PDB_ins_code",
            "ptnr2_label_comp_id",
            "ptnr2_label_atom_id",
            "ptnr2_symmetry",
        ],
    ),
    (
        "ma_qa_metric_local",
        &[
            "label_asym_id",
            "label_seq_id",
            "metric_id",
            "metric_value",
            "model_id",
        ],
    ),
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
const EXPERIMENT: usize = 10;
const STRUCT: usize = 11;
const REFINEMENT: usize = 12;
const RECONSTRUCTION: usize = 13;
const SEQUENCE: usize = 14;
const SEQUENCE_NUMBERS: usize = 15;
/// Rows of other types than covalent links are not kept.
const LINKS: usize = 16;
const LOCAL_QUALITY: usize = 17;

/// What is kept of a data block.
#[derive(Default)]
pub(in crate::formats) struct DataBlock<'a> {
    name: &'a [u8],
    pub has_atoms: bool,
    /// What is kept depends on them.
    options: ReadOptions,
    /// The items of an `_atom_site` without a loop, each with the start and end of its value.
    pub atom: Vec<(&'a [u8], [u32; 2])>,
    entry_id: &'a [u8],
    /// By category, the values of its items, row by row; empty for null.
    values: [Vec<&'a [u8]>; CATEGORIES.len()],
    /// By category, where each of its rows starts in the text.
    offsets: [Vec<u32>; CATEGORIES.len()],
}

impl<'a> DataBlock<'a> {
    pub(in crate::formats) fn new(name: &'a [u8], options: ReadOptions) -> Self {
        DataBlock {
            name,
            options,
            ..DataBlock::default()
        }
    }

    /// Keeps an item outside of loops; `span` is the start and end of its value.
    pub(super) fn item(
        &mut self,
        tag: &'a [u8],
        value: &'a [u8],
        span: [usize; 2],
        limits: &ReadLimits,
    ) -> Result<()> {
        let span = span.map(|at| at as u32);
        if tag.eq_ignore_ascii_case(b"_entry.id") {
            self.set_entry_id(value, limits)?;
        } else if atom_rows::is_item(tag) {
            self.atom.push((tag, span));
            self.has_atoms = true;
        } else if let Some((category, Some(item))) = self.find_item(tag) {
            check_value(category, item, value, limits)?;
            let values = &mut self.values[category];
            values.resize(CATEGORIES[category].1.len(), b"");
            values[item] = value;
            self.offsets[category].resize(1, span[0]);
        }
        Ok(())
    }

    /// Keeps the id of the entry.
    pub(in crate::formats) fn set_entry_id(
        &mut self,
        value: &'a [u8],
        limits: &ReadLimits,
    ) -> Result<()> {
        limits.check_name("_entry.id", value)?;
        self.entry_id = not_null(value);
        Ok(())
    }

    /// Keeps the rows of a loop if its first item is of a category that is kept.
    pub(super) fn rows(
        &mut self,
        text: &'a [u8],
        tags: &[&[u8]],
        rows: &mut Rows,
        limits: &ReadLimits,
    ) -> Result<()> {
        let Some((category, _)) = self.find_item(tags[0]) else {
            while rows.next()? {}
            return Ok(());
        };
        let item_of = |tag: &&[u8]| self.find_item(tag).filter(|(of, _)| *of == category)?.1;
        let columns = tags.iter().map(item_of).enumerate();
        let columns: Vec<(usize, usize)> = columns
            .filter_map(|(column, item)| Some((column, item?)))
            .collect();
        while rows.next()? {
            let values = columns.iter().map(|&(column, item)| {
                let span = rows.value(column);
                let place = Place::Line(text, span.start as u32);
                (item, &text[span], place)
            });
            self.row(category, rows.edges()[0], values, limits)?;
        }
        Ok(())
    }

    /// Keeps a row of a category, which starts at `offset`: its values, each after its item and
    /// before its place.
    pub(in crate::formats) fn row<'p>(
        &mut self,
        category: usize,
        offset: u32,
        values: impl Iterator<Item = (usize, &'a [u8], Place<'p>)>,
        limits: &ReadLimits,
    ) -> Result<()> {
        let row = self.values[category].len();
        self.values[category].resize(row + CATEGORIES[category].1.len(), b"");
        self.offsets[category].push(offset);
        check_rows(category, self.offsets[category].len(), limits)?;
        for (item, value, place) in values {
            let value = not_null(value);
            check_value(category, item, value, limits).map_err(|error| place.locate(error))?;
            self.values[category][row + item] = value;
        }
        if category == LINKS && !is_covalent(self.values[LINKS][row]) {
            self.values[LINKS].truncate(row);
            self.offsets[LINKS].pop();
        }
        Ok(())
    }

    /// The category of a tag if it is kept, and the item if that is kept too.
    fn find_item(&self, tag: &[u8]) -> Option<(usize, Option<usize>)> {
        let dot = tag.iter().position(|&byte| byte == b'.')?;
        let category = find_category(&tag[1..dot])?;
        is_kept(category, self.options).then(|| (category, find_item_of(category, &tag[dot + 1..])))
    }

    /// The name of a category that is kept, without the underscore.
    pub(in crate::formats) fn category_name(category: usize) -> &'static str {
        CATEGORIES[category].0
    }

    /// The rows of a category.
    fn table<const N: usize>(&self, category: usize) -> impl Iterator<Item = [&'a [u8]; N]> {
        assert_eq!(CATEGORIES[category].1.len(), N);
        self.values[category].as_chunks::<N>().0.iter().copied()
    }

    /// The rows of a category, each after its place.
    fn located_table<'p, const N: usize>(
        &self,
        category: usize,
        place: impl Fn(&'static str, u32) -> Place<'p>,
    ) -> Vec<(Place<'p>, [&'a [u8]; N])> {
        let name = CATEGORIES[category].0;
        let places = self.offsets[category].iter().map(|&at| place(name, at));
        places.zip(self.table::<N>(category)).collect()
    }

    /// Adds the generators of assembly 1 to `out`. `place` is where a row of a category starts.
    pub(in crate::formats) fn generators<'p>(
        &self,
        place: impl Fn(&'static str, u32) -> Place<'p>,
        limits: &ReadLimits,
        out: &mut Generators,
    ) -> Result<()> {
        let generators = self.located_table(ASSEMBLY_GEN, &place);
        let operators = self.located_table(OPER_LIST, &place);
        oper_list::generators(limits, &generators, &operators, out)
    }

    /// Adds to the table what the categories state about its atoms.
    pub(in crate::formats) fn describe_atoms(&self, table: &mut AtomTable) -> Result<()> {
        table.set_entry_id(match self.entry_id {
            b"" => self.name,
            id => id,
        });
        self.set_entities(table);
        atom_site::unmark_numbered_waters(table);
        for [id, kind] in self.table::<2>(CHEM_COMP) {
            if let Some(kind) = component_kind(kind)
                && components::lookup(text8(id)).is_none()
            {
                table.components.entry(text8(id)).or_insert(kind);
            }
        }
        self.set_sequences(table);
        self.set_header(&mut table.header);
        let metrics = self.table::<4>(QUALITY_METRIC);
        local_quality::set_plddt(metrics, self.table::<5>(LOCAL_QUALITY), table);
        // The UniProt residues that atoms themselves name take precedence over references.
        if table.runs.iter().all(|run| run.uniprot.is_none()) {
            self.add_references(table);
            self.add_model_target(table);
        }
        self.add_links(table)
    }

    /// `_struct_conn`: covalent links within the atoms that the file lists.
    fn add_links(&self, table: &mut AtomTable) -> Result<()> {
        for [kind, ends @ ..] in self.table::<17>(LINKS) {
            let ([one, other], _) = ends.as_chunks::<8>() else {
                continue;
            };
            if is_covalent(kind) && one[7] == other[7] {
                let ends =
                    [one, other].map(|&[auth, label, auth_seq, label_seq, code, comp, atom, _]| {
                        let chain = table
                            .names
                            .intern(if auth.is_empty() { label } else { auth });
                        let (seq, letter) = author_number(auth_seq);
                        let ins_code = code.first().copied().unwrap_or(letter);
                        let seq = seq.or_else(|| int(label_seq));
                        ((chain, seq, ins_code, text8(comp)), text8(atom))
                    });
                table.add_link(ends)?;
            }
        }
        Ok(())
    }

    fn set_header(&self, header: &mut EntryHeader) {
        for [method] in self.table::<1>(EXPERIMENT) {
            header.method.add_value(not_null(method));
        }
        for [title, methodology] in self.table::<2>(STRUCT) {
            header.title.add_words(not_null(title));
            header.is_experimental |= methodology.eq_ignore_ascii_case(b"experimental");
        }
        let refined = self.table::<1>(REFINEMENT);
        let mut stated = refined.chain(self.table::<1>(RECONSTRUCTION));
        header.resolution = stated.find_map(|[text]| entry_header::resolution(text));
        let mut metrics = self.table::<4>(QUALITY_METRIC);
        header.has_plddt_metric = metrics.any(|metric| local_quality::is_plddt(&metric));
    }

    fn set_entities(&self, table: &mut AtomTable) {
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
            let id = table.names.intern(id);
            let entity = types.entry(id).or_insert(Entity::Polymer(None));
            if let Entity::Polymer(units) = entity {
                *units = match kind {
                    _ if contains(kind, b"peptide") => Some(Kind::Amino),
                    _ if contains(kind, b"nucleotide") => Some(Kind::Nucleotide),
                    _ => None,
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

    /// Gives each chain the sequence of its entity. A sequence whose positions are not 1, 2, 3 and so
    /// on is none.
    fn set_sequences(&self, table: &mut AtomTable) {
        let mut of_entity: HashMap<&[u8], Option<Vec<SequenceResidue>>> = HashMap::new();
        for [entity, number, component] in self.table::<3>(SEQUENCE) {
            let known = of_entity.entry(entity).or_insert_with(|| Some(Vec::new()));
            let Some(sequence) = known else {
                continue;
            };
            let last = sequence.len() as i32;
            match int(number) {
                Some(number) if number == last + 1 => {
                    sequence.push(SequenceResidue::unnumbered(text8(component)));
                }
                // Another component at the position of the last one.
                Some(number) if number == last && last > 0 => {}
                _ => *known = None,
            }
        }
        let mut numbers: HashMap<NameId, Vec<[&[u8]; 3]>> = HashMap::new();
        for [asym, number @ ..] in self.table::<4>(SEQUENCE_NUMBERS) {
            let of_chain = numbers.entry(table.names.intern(asym)).or_default();
            of_chain.push(number);
        }
        let sequences = of_entity.into_iter().filter_map(|(entity, sequence)| {
            let sequence: Arc<[SequenceResidue]> = sequence?.into();
            Some((table.names.intern(entity), sequence))
        });
        let sequences: HashMap<NameId, Arc<[SequenceResidue]>> = sequences.collect();
        for (chain, raw) in (0..).zip(&table.chains) {
            let known = sequences.get(&raw.entity).filter(|_| raw.entity != NO_NAME);
            let Some(sequence) = known else {
                continue;
            };
            // A list is of all positions, and taken once, so that copies take no more than the file.
            let own = numbers.remove(&raw.label);
            let own = own.filter(|numbers| numbers.len() >= sequence.len());
            let sequence = match own {
                Some(numbers) => numbered(sequence, &numbers),
                None => Arc::clone(sequence),
            };
            table.whole_sequences.insert(chain, sequence);
        }
    }

    /// `_struct_ref` and `_struct_ref_seq`, of entries of the Protein Data Bank.
    fn add_references(&self, table: &mut AtomTable) {
        let mut targets = HashMap::new();
        for [id, target @ ..] in self.table::<4>(STRUCT_REF) {
            targets.entry(id).or_insert(target);
        }
        for [id, chain, accession, numbers @ ..] in self.table::<7>(STRUCT_REF_SEQ) {
            let numbers = numbers.map(int);
            if let Some(&[entity, db_name, db_accession]) = targets.get(id)
                && db_name.eq_ignore_ascii_case(b"UNP")
                && let [Some(first), Some(last), Some(position), Some(end)] = numbers
            {
                let names = [chain, entity].map(|name| table.names.intern(name));
                let accession = match accession {
                    b"" => db_accession,
                    _ => accession,
                };
                table.add_reference(names, true, first..=last, accession, position..=end);
            }
        }
    }

    /// ModelCIF's `_ma_target_ref_db_details`: residue 1 of the target is the first of the range.
    fn add_model_target(&self, table: &mut AtomTable) {
        for [entity, db_name, accession, begin, end] in self.table::<5>(MODEL_TARGET) {
            if let (Some(position), Some(end)) = (int(begin), int(end))
                && db_name.eq_ignore_ascii_case(b"UNP")
            {
                let names = [NO_NAME, table.names.intern(entity)];
                let last = end.saturating_sub(position).saturating_add(1);
                table.add_reference(names, true, 1..=last, accession, position..=end);
            }
        }
    }
}

/// A sequence with the author's numbers: for each the position, from 1, the number and the insertion
/// code. The first number of a position counts.
fn numbered(sequence: &[SequenceResidue], numbers: &[[&[u8]; 3]]) -> Arc<[SequenceResidue]> {
    let mut sequence = sequence.to_vec();
    for [position, number, ins_code] in numbers {
        let place = int(position).and_then(|it| usize::try_from(it.checked_sub(1)?).ok());
        let residue = place.and_then(|place| sequence.get_mut(place));
        if let (Some(residue), Some(number)) = (residue, int(number))
            && residue.auth_seq_id.is_none()
        {
            residue.auth_seq_id = Some(number);
            residue.ins_code = ins_code.first().copied().unwrap_or(0);
        }
    }
    sequence.into()
}

/// Refuses a name over its limit. The lists of an assembly's generators are not names, and
/// [`EntryHeader`] cuts methods and titles.
fn check_value(category: usize, item: usize, value: &[u8], limits: &ReadLimits) -> Result<()> {
    let is_name = !matches!(category, ASSEMBLY_GEN | EXPERIMENT | STRUCT);
    if !is_name || value.len() <= limits.name_bytes_max as usize {
        return Ok(());
    }
    let (category, items) = CATEGORIES[category];
    limits.check_name(&format!("_{category}.{}", items[item]), value)
}

/// Refuses rows of a category beyond its limit.
pub(in crate::formats) fn check_rows(
    category: usize,
    count: usize,
    limits: &ReadLimits,
) -> Result<()> {
    let (field, max) = match category {
        ASSEMBLY_GEN | OPER_LIST => ("operators_max", limits.operators_max),
        SEQUENCE | SEQUENCE_NUMBERS | LINKS => ("residues_max", limits.residues_max),
        // A value for each residue of each model, and perhaps of another metric.
        LOCAL_QUALITY => ("atoms_max", limits.atoms_max),
        _ => ("chains_max", limits.chains_max),
    };
    let what = || format!("_{} has too many rows", CATEGORIES[category].0);
    check(field, max, count as u64, what)
}

/// Whether a category is kept with these options.
pub(in crate::formats) fn is_kept(category: usize, options: ReadOptions) -> bool {
    match category {
        SEQUENCE | SEQUENCE_NUMBERS => options.sequences,
        LINKS => options.ligands,
        LOCAL_QUALITY => options.b_factor_kind != Some(BFactorKind::Temperature),
        _ => true,
    }
}

/// The number of a category that is kept.
pub(in crate::formats) fn find_category(name: &[u8]) -> Option<usize> {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    CATEGORIES.iter().position(|(known, _)| is(known))
}

/// The number of an item of a category that is kept.
pub(in crate::formats) fn find_item_of(category: usize, name: &[u8]) -> Option<usize> {
    let is = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
    CATEGORIES[category].1.iter().position(is)
}

/// Whether a type of `_struct_conn` is a covalent link: `covale`, `covale_base` and others.
fn is_covalent(kind: &[u8]) -> bool {
    strip_prefix(kind, b"covale").is_some()
}

/// The kind that `_chem_comp.type` gives to a component of a polymer; `None` for types of
/// components that are not made for polymers, which are what the polymer's other components are.
fn component_kind(kind: &[u8]) -> Option<Kind> {
    if contains(kind, b"peptide") && !contains(kind, b"peptide-like") {
        Some(Kind::Amino)
    } else if contains(kind, b"rna ") || contains(kind, b"dna ") {
        Some(Kind::Nucleotide)
    } else {
        None
    }
}
