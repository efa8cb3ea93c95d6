//! The categories of a data block that describe its atoms.
//!
//! Errors are [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) for a name or a number of rows
//! over its limit.

use std::collections::HashMap;
use std::sync::Arc;

use super::atom_rows;
use super::atom_site::{self, author_number};
use super::lexer::{contains, strip_prefix};
use super::local_quality;
use super::not_null;
use super::oper_list::{self, GENERATOR_ITEMS, OPERATOR_ITEMS};
use super::rows::LoopRows;
use crate::ReadOptions;
use crate::Result;
use crate::assembly::Generators;
use crate::atom_table::{AtomTable, Entity, NO_NAME, NameId, PolymerKind};
use crate::component_text::{ATOM_ITEMS, BOND_ITEMS, ComponentRows};
use crate::components;
use crate::decimal::int;
use crate::entry_header::{self, EntryHeader};
use crate::model::{BFactorKind, SequenceResidue};
use crate::read_limits::{ReadLimits, check};
use crate::text::FilePlace;
use crate::text8::text8;

/// Declares the categories that are kept: the enum, and for each its name and its items.
macro_rules! categories {
    ($($(#[$doc:meta])* $category:ident = $name:literal: $items:expr,)+) => {
        /// A category of a data block that is kept, because it describes the atoms.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(in crate::formats) enum BlockCategory {
            $($(#[$doc])* $category,)+
        }

        /// Each category with its name, without the underscore, and the items that are kept.
        const CATEGORIES: &[(BlockCategory, &str, &[&str])] =
            &[$((BlockCategory::$category, $name, $items),)+];
    };
}

categories! {
    Entity = "entity": &["id", "type"],
    EntityPoly = "entity_poly": &["entity_id", "type"],
    StructAsym = "struct_asym": &["id", "entity_id"],
    ChemComp = "chem_comp": &["id", "type"],
    ChemCompAtom = "chem_comp_atom": &ATOM_ITEMS,
    ChemCompBond = "chem_comp_bond": &BOND_ITEMS,
    StructRef = "struct_ref": &["id", "entity_id", "db_name", "pdbx_db_accession"],
    StructRefSeq = "struct_ref_seq": &[
        "ref_id",
        "pdbx_strand_id",
        "pdbx_db_accession",
        "seq_align_beg",
        "seq_align_end",
        "db_align_beg",
        "db_align_end",
    ],
    ModelTarget = "ma_target_ref_db_details": &[
        "target_entity_id",
        "db_name",
        "db_accession",
        "seq_db_align_begin",
        "seq_db_align_end",
    ],
    QualityMetric = "ma_qa_metric": &["id", "name", "type", "mode"],
    AssemblyGen = "pdbx_struct_assembly_gen": GENERATOR_ITEMS,
    OperList = "pdbx_struct_oper_list": OPERATOR_ITEMS,
    Experiment = "exptl": &["method"],
    Struct = "struct": &["title", "pdbx_structure_determination_methodology"],
    Refinement = "refine": &["ls_d_res_high"],
    Reconstruction = "em_3d_reconstruction": &["resolution"],
    PolySeq = "entity_poly_seq": &["entity_id", "num", "mon_id"],
    PolySeqScheme = "pdbx_poly_seq_scheme": &["asym_id", "seq_id", "pdb_seq_num", "pdb_ins_code"],
    /// Rows of other types than covalent links are not kept.
    StructConn = "struct_conn": &[
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
    LocalQuality = "ma_qa_metric_local": &[
        "label_asym_id",
        "label_seq_id",
        "metric_id",
        "metric_value",
        "model_id",
    ],
}

impl BlockCategory {
    /// The category called `name`, which has no underscore before it, if it is kept with these options.
    pub(in crate::formats) fn find(name: &[u8], options: ReadOptions) -> Option<Self> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let &(category, ..) = CATEGORIES.iter().find(|(_, known, _)| is(known))?;
        let is_kept = match category {
            Self::PolySeq | Self::PolySeqScheme => options.sequences,
            Self::StructConn => options.ligands,
            Self::ChemCompAtom | Self::ChemCompBond => options.chemistry,
            Self::LocalQuality => options.b_factor_kind != Some(BFactorKind::Temperature),
            _ => true,
        };
        is_kept.then_some(category)
    }

    /// The name, without the underscore.
    pub(in crate::formats) fn name(self) -> &'static str {
        CATEGORIES[self as usize].1
    }

    /// The names of the items that are kept.
    fn items(self) -> &'static [&'static str] {
        CATEGORIES[self as usize].2
    }

    /// The index of an item that is kept.
    pub(in crate::formats) fn find_item(self, name: &[u8]) -> Option<usize> {
        let is = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
        self.items().iter().position(is)
    }

    /// Refuses more rows than the limit of the category: a hostile file could have any number.
    /// Categories that are not named here have a few rows for each chain.
    pub(in crate::formats) fn check_rows(self, count: usize, limits: &ReadLimits) -> Result<()> {
        let (field, max) = match self {
            Self::AssemblyGen | Self::OperList => ("operators_max", limits.operators_max),
            Self::PolySeq | Self::PolySeqScheme | Self::StructConn => {
                ("residues_max", limits.residues_max)
            }
            // A value for each residue of each model, and perhaps of another metric. Components have
            // atoms that are not observed.
            Self::LocalQuality | Self::ChemCompAtom | Self::ChemCompBond => {
                ("atoms_max", limits.atoms_max)
            }
            _ => ("chains_max", limits.chains_max),
        };
        let what = || format!("_{} has too many rows", self.name());
        check(field, max, count as u64, what)
    }

    /// Refuses a name over its limit. The lists of an assembly's generators are not names, and
    /// [`EntryHeader`] cuts methods and titles.
    fn check_value(self, item: usize, value: &[u8], limits: &ReadLimits) -> Result<()> {
        let is_name = !matches!(self, Self::AssemblyGen | Self::Experiment | Self::Struct);
        if !is_name || value.len() <= limits.name_bytes_max as usize {
            return Ok(());
        }
        limits.check_name(&format!("_{}.{}", self.name(), self.items()[item]), value)
    }
}

/// What is kept of a data block.
#[derive(Default)]
pub(in crate::formats) struct DataBlock<'a> {
    name: &'a [u8],
    pub has_atoms: bool,
    /// The options that decide which categories are kept.
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

    /// Keeps an item outside of loops, as one row of its category; `span` is the start and end of
    /// its value.
    pub(super) fn item(
        &mut self,
        tag: &'a [u8],
        value: &'a [u8],
        span: [usize; 2],
        limits: &ReadLimits,
    ) -> Result<()> {
        let span = span.map(|offset| offset as u32);
        if tag.eq_ignore_ascii_case(b"_entry.id") {
            self.set_entry_id(value, limits)?;
        } else if atom_rows::is_item(tag) {
            self.atom.push((tag, span));
            self.has_atoms = true;
        } else if let Some((category, Some(item))) = self.find_item(tag) {
            category.check_value(item, value, limits)?;
            let values = &mut self.values[category as usize];
            values.resize(category.items().len(), b"");
            values[item] = value;
            self.offsets[category as usize].resize(1, span[0]);
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

    /// Keeps the rows of a loop if the category of its first item is kept.
    pub(super) fn keep_rows(
        &mut self,
        text: &'a [u8],
        tags: &[&[u8]],
        rows: &mut LoopRows,
        limits: &ReadLimits,
    ) -> Result<()> {
        let Some((category, _)) = self.find_item(tags[0]) else {
            while rows.next()? {}
            return Ok(());
        };
        let item_of = |tag: &&[u8]| {
            self.find_item(tag)
                .filter(|(found, _)| *found == category)?
                .1
        };
        let columns = tags.iter().map(item_of).enumerate();
        let columns: Vec<(usize, usize)> = columns
            .filter_map(|(column, item)| Some((column, item?)))
            .collect();
        while rows.next()? {
            let values = columns.iter().map(|&(column, item)| {
                let span = rows.value(column);
                let place = FilePlace::Line(text, span.start as u32);
                (item, &text[span], place)
            });
            self.keep_row(category, rows.edges()[0], values, limits)?;
        }
        Ok(())
    }

    /// Keeps a row of a category, which starts at `offset`: its values, each after its item and
    /// before its place.
    pub(in crate::formats) fn keep_row<'p>(
        &mut self,
        category: BlockCategory,
        offset: u32,
        values: impl Iterator<Item = (usize, &'a [u8], FilePlace<'p>)>,
        limits: &ReadLimits,
    ) -> Result<()> {
        let kept = &mut self.values[category as usize];
        let offsets = &mut self.offsets[category as usize];
        let row = kept.len();
        kept.resize(row + category.items().len(), b"");
        offsets.push(offset);
        category.check_rows(offsets.len(), limits)?;
        for (item, value, place) in values {
            let value = not_null(value);
            let checked = category.check_value(item, value, limits);
            checked.map_err(|error| place.locate(error))?;
            kept[row + item] = value;
        }
        if category == BlockCategory::StructConn && !is_covalent(kept[row]) {
            kept.truncate(row);
            offsets.pop();
        }
        Ok(())
    }

    /// The category of a tag if it is kept, and the item if that is kept too.
    fn find_item(&self, tag: &[u8]) -> Option<(BlockCategory, Option<usize>)> {
        let dot = tag.iter().position(|&byte| byte == b'.')?;
        let category = BlockCategory::find(&tag[1..dot], self.options)?;
        Some((category, category.find_item(&tag[dot + 1..])))
    }

    /// The rows of a category.
    fn table<const N: usize>(
        &self,
        category: BlockCategory,
    ) -> impl Iterator<Item = [&'a [u8]; N]> {
        assert_eq!(category.items().len(), N);
        let values = &self.values[category as usize];
        values.as_chunks::<N>().0.iter().copied()
    }

    /// The rows of a category, each after its place.
    fn located_table<'p, const N: usize>(
        &self,
        category: BlockCategory,
        place: impl Fn(&'static str, u32) -> FilePlace<'p>,
    ) -> Vec<(FilePlace<'p>, [&'a [u8]; N])> {
        let offsets = self.offsets[category as usize].iter();
        let places = offsets.map(|&offset| place(category.name(), offset));
        places.zip(self.table::<N>(category)).collect()
    }

    /// Adds the generators of assembly 1 to `out`. `place` is where a row of a category starts.
    pub(in crate::formats) fn generators<'p>(
        &self,
        place: impl Fn(&'static str, u32) -> FilePlace<'p>,
        limits: &ReadLimits,
        out: &mut Generators,
    ) -> Result<()> {
        let generators = self.located_table(BlockCategory::AssemblyGen, &place);
        let operators = self.located_table(BlockCategory::OperList, &place);
        oper_list::generators(limits, &generators, &operators, out)
    }

    /// Adds to the table what the categories state about its atoms. Entities come first, as those
    /// of chains decide about waters and sequences.
    pub(in crate::formats) fn describe_atoms(&self, table: &mut AtomTable) -> Result<()> {
        table.set_entry_id(match self.entry_id {
            b"" => self.name,
            id => id,
        });
        self.set_entities(table);
        atom_site::unmark_numbered_waters(table);
        for [id, kind] in self.table::<2>(BlockCategory::ChemComp) {
            if let Some(kind) = component_kind(kind)
                && components::lookup(text8(id)).is_none()
            {
                table.components.entry(text8(id)).or_insert(kind);
            }
        }
        self.set_components(table);
        self.set_sequences(table);
        self.set_header(&mut table.header);
        let metrics = self.table::<4>(BlockCategory::QualityMetric);
        local_quality::set_plddt(metrics, self.table::<5>(BlockCategory::LocalQuality), table);
        // The UniProt residues that atoms themselves name take precedence over references.
        if table.runs.iter().all(|run| run.uniprot.is_none()) {
            self.add_references(table);
            self.add_model_target(table);
        }
        self.add_links(table)
    }

    /// `_struct_conn`: covalent links within the atoms that the file lists. A link of two symmetry
    /// operators is to a copy in the crystal.
    fn add_links(&self, table: &mut AtomTable) -> Result<()> {
        for [kind, ends @ ..] in self.table::<17>(BlockCategory::StructConn) {
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

    /// The atoms and bonds of components, if they are wanted.
    fn set_components(&self, table: &mut AtomTable) {
        let mut rows = ComponentRows::default();
        let atoms = self.table::<3>(BlockCategory::ChemCompAtom);
        atoms.for_each(|atom| rows.add_atom(atom));
        let bonds = self.table::<5>(BlockCategory::ChemCompBond);
        bonds.for_each(|bond| rows.add_bond(bond));
        let components = rows.of_structure_file();
        table.described_components = (!components.is_empty()).then(|| Arc::new(components));
    }

    /// Sets the method, title and resolution of the entry, and whether its B factors are pLDDT.
    fn set_header(&self, header: &mut EntryHeader) {
        for [method] in self.table::<1>(BlockCategory::Experiment) {
            header.method.add_value(not_null(method));
        }
        for [title, methodology] in self.table::<2>(BlockCategory::Struct) {
            header.title.add_words(not_null(title));
            header.is_experimental |= methodology.eq_ignore_ascii_case(b"experimental");
        }
        let refined = self.table::<1>(BlockCategory::Refinement);
        let mut stated = refined.chain(self.table::<1>(BlockCategory::Reconstruction));
        header.resolution = stated.find_map(|[text]| entry_header::resolution(text));
        let mut metrics = self.table::<4>(BlockCategory::QualityMetric);
        header.has_plddt_metric = metrics.any(|metric| local_quality::is_plddt(&metric));
    }

    /// Sets the kind of each chain's entity, and the entity of chains whose atoms name none.
    fn set_entities(&self, table: &mut AtomTable) {
        let mut types = HashMap::new();
        for [id, kind] in self.table::<2>(BlockCategory::Entity) {
            let entity = match kind {
                b"" => continue,
                _ if kind.eq_ignore_ascii_case(b"polymer") => Entity::Polymer(None),
                _ => Entity::Other,
            };
            types.insert(table.names.intern(id), entity);
        }
        for [id, kind] in self.table::<2>(BlockCategory::EntityPoly) {
            let id = table.names.intern(id);
            let entity = types.entry(id).or_insert(Entity::Polymer(None));
            if let Entity::Polymer(units) = entity {
                *units = match kind {
                    _ if contains(kind, b"peptide") => Some(PolymerKind::Amino),
                    _ if contains(kind, b"nucleotide") => Some(PolymerKind::Nucleotide),
                    _ => None,
                };
            }
        }
        let mut entity_of = HashMap::new();
        for [id, entity] in self.table::<2>(BlockCategory::StructAsym) {
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
    /// on is ignored.
    fn set_sequences(&self, table: &mut AtomTable) {
        let mut by_entity: HashMap<&[u8], Option<Vec<SequenceResidue>>> = HashMap::new();
        for [entity, number, component] in self.table::<3>(BlockCategory::PolySeq) {
            let known = by_entity.entry(entity).or_insert_with(|| Some(Vec::new()));
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
        for [asym, number @ ..] in self.table::<4>(BlockCategory::PolySeqScheme) {
            let chain = numbers.entry(table.names.intern(asym)).or_default();
            chain.push(number);
        }
        let sequences = by_entity.into_iter().filter_map(|(entity, sequence)| {
            let sequence: Arc<[SequenceResidue]> = sequence?.into();
            Some((table.names.intern(entity), sequence))
        });
        let sequences: HashMap<NameId, Arc<[SequenceResidue]>> = sequences.collect();
        for (chain, raw) in (0..).zip(&table.chains) {
            let known = sequences.get(&raw.entity).filter(|_| raw.entity != NO_NAME);
            let Some(sequence) = known else {
                continue;
            };
            // A list must number all positions. It is taken out, so that each list is copied once at most.
            let chain_numbers = numbers.remove(&raw.label);
            let chain_numbers = chain_numbers.filter(|numbers| numbers.len() >= sequence.len());
            let sequence = match chain_numbers {
                Some(numbers) => numbered(sequence, &numbers),
                None => Arc::clone(sequence),
            };
            table.whole_sequences.insert(chain, sequence);
        }
    }

    /// `_struct_ref` and `_struct_ref_seq`, of entries of the Protein Data Bank.
    fn add_references(&self, table: &mut AtomTable) {
        let mut targets = HashMap::new();
        for [id, target @ ..] in self.table::<4>(BlockCategory::StructRef) {
            targets.entry(id).or_insert(target);
        }
        for [id, chain, accession, numbers @ ..] in self.table::<7>(BlockCategory::StructRefSeq) {
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
        for [entity, db_name, accession, begin, end] in self.table::<5>(BlockCategory::ModelTarget)
        {
            if let (Some(position), Some(end)) = (int(begin), int(end))
                && db_name.eq_ignore_ascii_case(b"UNP")
            {
                let names = [NO_NAME, table.names.intern(entity)];
                // Saturating, as a file may have any numbers; ranges of unlike lengths are left
                // out.
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
        let place =
            int(position).and_then(|position| usize::try_from(position.checked_sub(1)?).ok());
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

/// Whether a type of `_struct_conn` is a covalent link: `covale`, `covale_base` and others.
fn is_covalent(kind: &[u8]) -> bool {
    strip_prefix(kind, b"covale").is_some()
}

/// The kind that `_chem_comp.type` gives to a component of a polymer; `None` for a type that is not one of
/// polymers. Of a component without a kind, `_entity_poly.type` of its polymer decides.
fn component_kind(kind: &[u8]) -> Option<PolymerKind> {
    // `peptide-like` is the type of whole molecules, such as inhibitors.
    if contains(kind, b"peptide") && !contains(kind, b"peptide-like") {
        Some(PolymerKind::Amino)
    // As words: `RNA linking`, `DNA OH 3 prime terminus`.
    } else if contains(kind, b"rna ") || contains(kind, b"dna ") {
        Some(PolymerKind::Nucleotide)
    } else {
        None
    }
}
