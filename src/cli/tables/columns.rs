//! Builders of the columns, a row group at a time.

use super::schema::{ColumnSpec, Kind};
use crate::features::{Column, ColumnDecl, ColumnKind, FeatureTable, NULL_COUNT};
use crate::structure::Structure;
use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float32Builder, Int32Builder, StringDictionaryBuilder,
};
use arrow_array::types::Int32Type;
use std::ops::Range;

type TextBuilder = StringDictionaryBuilder<Int32Type>;

/// A structure with its features, and what identifies it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) source: &'a str,
    /// The structure's name.
    pub(crate) name: &'a str,
    pub(crate) structure: &'a Structure,
    pub(crate) features: &'a FeatureTable,
}

/// The columns of one table.
pub(super) trait Rows {
    /// Their names and kinds.
    fn columns(&self) -> Vec<ColumnSpec>;
    /// Rows that a structure has here.
    fn count(&self, record: &Record<'_>) -> usize;
    /// Appends some of them.
    fn append(&mut self, record: &Record<'_>, rows: Range<usize>);
    /// Takes what was appended, in the order of the columns.
    fn take(&mut self) -> Vec<ArrayRef>;
}

fn feature_columns(decls: &[ColumnDecl]) -> impl Iterator<Item = ColumnSpec> {
    decls.iter().map(|decl| {
        let kind = match decl.kind {
            ColumnKind::Count => Kind::Count,
            ColumnKind::Real => Kind::Real,
        };
        ColumnSpec::sparse(&decl.name, kind)
    })
}

/// A feature's column.
enum FeatureBuilder {
    Count(Int32Builder),
    Real(Float32Builder),
}

impl FeatureBuilder {
    fn new(decl: &ColumnDecl) -> Self {
        match decl.kind {
            ColumnKind::Count => FeatureBuilder::Count(Int32Builder::new()),
            ColumnKind::Real => FeatureBuilder::Real(Float32Builder::new()),
        }
    }

    fn append(&mut self, column: &Column, rows: Range<usize>) {
        match (self, column) {
            (FeatureBuilder::Count(builder), Column::Count(values)) => {
                for &value in &values[rows] {
                    builder.append_option((value != NULL_COUNT).then_some(value));
                }
            }
            (FeatureBuilder::Real(builder), Column::Real(values)) => {
                for &value in &values[rows] {
                    builder.append_option((!value.is_nan()).then_some(value));
                }
            }
            _ => unreachable!("a feature's column is of its declared kind"),
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            FeatureBuilder::Count(builder) => ArrayBuilder::finish(builder),
            FeatureBuilder::Real(builder) => ArrayBuilder::finish(builder),
        }
    }
}

/// Appends the same string or null several times.
fn append_text(builder: &mut TextBuilder, text: Option<&str>, times: usize) {
    match text {
        Some(text) => {
            builder
                .append_n(text, times)
                .expect("a row group has fewer rows than the dictionary has keys");
        }
        None => builder.append_nulls(times),
    }
}

/// The text of a space-padded field, `None` where it is blank.
fn padded(field: &[u8; 8]) -> Option<&str> {
    let text = std::str::from_utf8(field).unwrap_or("?").trim_ascii_end();
    (!text.is_empty()).then_some(text)
}

/// The text of a one-byte code, `None` for 0 and blank.
fn code(byte: u8, buffer: &mut [u8; 4]) -> Option<&str> {
    let shown = byte != 0 && byte != b' ';
    shown.then(|| &*char::from(byte).encode_utf8(buffer))
}

/// One row a residue.
pub(super) struct ResidueRows {
    columns: Vec<ColumnSpec>,
    source: TextBuilder,
    structure: TextBuilder,
    model: Int32Builder,
    res_index: Int32Builder,
    entry_id: TextBuilder,
    auth_asym_id: TextBuilder,
    auth_seq_id: Int32Builder,
    ins_code: TextBuilder,
    label_asym_id: TextBuilder,
    label_seq_id: Int32Builder,
    entity_id: TextBuilder,
    comp_id: TextBuilder,
    parent_comp_id: TextBuilder,
    aa: TextBuilder,
    break_before: BooleanBuilder,
    uniprot_acc: TextBuilder,
    uniprot_pos: Int32Builder,
    features: Vec<FeatureBuilder>,
}

impl ResidueRows {
    pub(super) fn new(features: &[ColumnDecl]) -> Self {
        let mut columns = vec![
            ColumnSpec::full("source", Kind::Text),
            ColumnSpec::full("structure", Kind::Text),
            ColumnSpec::full("model", Kind::Count),
            ColumnSpec::full("res_index", Kind::Index),
            ColumnSpec::sparse("entry_id", Kind::Text),
            ColumnSpec::full("auth_asym_id", Kind::Text),
            ColumnSpec::full("auth_seq_id", Kind::Index),
            ColumnSpec::sparse("ins_code", Kind::Text),
            ColumnSpec::sparse("label_asym_id", Kind::Text),
            ColumnSpec::sparse("label_seq_id", Kind::Index),
            ColumnSpec::sparse("entity_id", Kind::Text),
            ColumnSpec::full("comp_id", Kind::Text),
            ColumnSpec::sparse("parent_comp_id", Kind::Text),
            ColumnSpec::full("aa", Kind::Text),
            ColumnSpec::full("break_before", Kind::Flag),
            ColumnSpec::sparse("uniprot_acc", Kind::Text),
            ColumnSpec::sparse("uniprot_pos", Kind::Index),
        ];
        columns.extend(feature_columns(features));
        ResidueRows {
            columns,
            source: TextBuilder::new(),
            structure: TextBuilder::new(),
            model: Int32Builder::new(),
            res_index: Int32Builder::new(),
            entry_id: TextBuilder::new(),
            auth_asym_id: TextBuilder::new(),
            auth_seq_id: Int32Builder::new(),
            ins_code: TextBuilder::new(),
            label_asym_id: TextBuilder::new(),
            label_seq_id: Int32Builder::new(),
            entity_id: TextBuilder::new(),
            comp_id: TextBuilder::new(),
            parent_comp_id: TextBuilder::new(),
            aa: TextBuilder::new(),
            break_before: BooleanBuilder::new(),
            uniprot_acc: TextBuilder::new(),
            uniprot_pos: Int32Builder::new(),
            features: features.iter().map(FeatureBuilder::new).collect(),
        }
    }

    fn append_residue(&mut self, structure: &Structure, index: usize) {
        let residue = &structure.residues[index];
        let mut buffer = [0; 4];
        self.res_index.append_value(index as i32);
        self.auth_seq_id.append_value(residue.auth_seq_id);
        append_text(&mut self.ins_code, code(residue.ins_code, &mut buffer), 1);
        self.label_seq_id.append_option(residue.label_seq_id);
        let comp_id = padded(&residue.comp_id).unwrap_or("");
        append_text(&mut self.comp_id, Some(comp_id), 1);
        append_text(&mut self.parent_comp_id, padded(&residue.parent_comp_id), 1);
        let aa = code(residue.aa, &mut buffer).unwrap_or("X");
        append_text(&mut self.aa, Some(aa), 1);
        self.break_before.append_value(residue.break_before);
        let accession = residue
            .uniprot
            .map(|uniprot| structure.uniprot[uniprot.accession as usize].as_str());
        append_text(&mut self.uniprot_acc, accession, 1);
        let position = residue.uniprot.map(|uniprot| uniprot.position);
        self.uniprot_pos.append_option(position);
    }
}

impl Rows for ResidueRows {
    fn columns(&self) -> Vec<ColumnSpec> {
        self.columns.clone()
    }

    fn count(&self, record: &Record<'_>) -> usize {
        record.structure.residues.len()
    }

    fn append(&mut self, record: &Record<'_>, rows: Range<usize>) {
        let structure = record.structure;
        append_text(&mut self.source, Some(record.source), rows.len());
        append_text(&mut self.structure, Some(record.name), rows.len());
        self.model.append_value_n(structure.model, rows.len());
        append_text(
            &mut self.entry_id,
            structure.entry_id.as_deref(),
            rows.len(),
        );
        // A chain's names once for each stretch of its residues.
        let residues = &structure.residues[rows.clone()];
        for stretch in residues.chunk_by(|a, b| a.chain == b.chain) {
            let chain = &structure.chains[stretch[0].chain as usize];
            let times = stretch.len();
            append_text(&mut self.auth_asym_id, Some(&chain.auth_asym_id), times);
            let label = chain.label_asym_id.as_deref();
            append_text(&mut self.label_asym_id, label, times);
            append_text(&mut self.entity_id, chain.entity_id.as_deref(), times);
        }
        for index in rows.clone() {
            self.append_residue(structure, index);
        }
        for (builder, column) in self.features.iter_mut().zip(&record.features.residues) {
            builder.append(column, rows.clone());
        }
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        let builders: [&mut dyn ArrayBuilder; 17] = [
            &mut self.source,
            &mut self.structure,
            &mut self.model,
            &mut self.res_index,
            &mut self.entry_id,
            &mut self.auth_asym_id,
            &mut self.auth_seq_id,
            &mut self.ins_code,
            &mut self.label_asym_id,
            &mut self.label_seq_id,
            &mut self.entity_id,
            &mut self.comp_id,
            &mut self.parent_comp_id,
            &mut self.aa,
            &mut self.break_before,
            &mut self.uniprot_acc,
            &mut self.uniprot_pos,
        ];
        let fixed = builders.into_iter().map(ArrayBuilder::finish);
        let features = self.features.iter_mut().map(FeatureBuilder::take);
        fixed.chain(features).collect()
    }
}

/// One row a structure.
pub(super) struct StructureRows {
    columns: Vec<ColumnSpec>,
    source: TextBuilder,
    structure: TextBuilder,
    model: Int32Builder,
    entry_id: TextBuilder,
    residues: Int32Builder,
    atoms: Int32Builder,
    chains: Int32Builder,
    breaks: Int32Builder,
    rounded_atoms: Int32Builder,
    features: Vec<FeatureBuilder>,
}

impl StructureRows {
    pub(super) fn new(features: &[ColumnDecl]) -> Self {
        let mut columns = vec![
            ColumnSpec::full("source", Kind::Text),
            ColumnSpec::full("structure", Kind::Text),
            ColumnSpec::full("model", Kind::Count),
            ColumnSpec::sparse("entry_id", Kind::Text),
            ColumnSpec::full("residues", Kind::Count),
            ColumnSpec::full("atoms", Kind::Count),
            ColumnSpec::full("chains", Kind::Count),
            ColumnSpec::full("breaks", Kind::Count),
            ColumnSpec::full("rounded_atoms", Kind::Count),
        ];
        columns.extend(feature_columns(features));
        StructureRows {
            columns,
            source: TextBuilder::new(),
            structure: TextBuilder::new(),
            model: Int32Builder::new(),
            entry_id: TextBuilder::new(),
            residues: Int32Builder::new(),
            atoms: Int32Builder::new(),
            chains: Int32Builder::new(),
            breaks: Int32Builder::new(),
            rounded_atoms: Int32Builder::new(),
            features: features.iter().map(FeatureBuilder::new).collect(),
        }
    }
}

/// Residues that do not follow on the one before them in their chain; where a
/// chain begins is no break.
fn breaks(structure: &Structure) -> usize {
    let pairs = structure.residues.windows(2);
    pairs
        .filter(|pair| pair[1].break_before && pair[0].chain == pair[1].chain)
        .count()
}

impl Rows for StructureRows {
    fn columns(&self) -> Vec<ColumnSpec> {
        self.columns.clone()
    }

    fn count(&self, _: &Record<'_>) -> usize {
        1
    }

    fn append(&mut self, record: &Record<'_>, rows: Range<usize>) {
        let structure = record.structure;
        append_text(&mut self.source, Some(record.source), 1);
        append_text(&mut self.structure, Some(record.name), 1);
        self.model.append_value(structure.model);
        append_text(&mut self.entry_id, structure.entry_id.as_deref(), 1);
        // The batch's extent has bounded all of these to 32 bits.
        self.residues.append_value(structure.residues.len() as i32);
        self.atoms.append_value(structure.xyz.len() as i32);
        self.chains
            .append_value(structure.row_chains().len() as i32);
        self.breaks.append_value(breaks(structure) as i32);
        self.rounded_atoms
            .append_value(structure.rounded_atoms as i32);
        for (builder, column) in self.features.iter_mut().zip(&record.features.structure) {
            builder.append(column, rows.clone());
        }
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        let builders: [&mut dyn ArrayBuilder; 9] = [
            &mut self.source,
            &mut self.structure,
            &mut self.model,
            &mut self.entry_id,
            &mut self.residues,
            &mut self.atoms,
            &mut self.chains,
            &mut self.breaks,
            &mut self.rounded_atoms,
        ];
        let fixed = builders.into_iter().map(ArrayBuilder::finish);
        let features = self.features.iter_mut().map(FeatureBuilder::take);
        fixed.chain(features).collect()
    }
}
