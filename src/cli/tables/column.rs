//! Builds a column: where its values come from, and the rows so far.

use super::schema::{ColumnSpec, Kind};
use super::statistics::{ColumnStatistics, ValueStatistics};
use super::structure_rows::StructureRows;
use crate::features::{
    Column as Values, ColumnDecl, ColumnKind, FeatureTable, NULL_COUNT, TableName,
};
use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float16Builder, Float32Builder, Int32Builder,
    StringDictionaryBuilder,
};
use arrow_array::types::Int32Type;
use half::f16;
use std::ops::Range;

type TextBuilder = StringDictionaryBuilder<Int32Type>;

/// Returns a value of a structure's row, by the row's index in the structure.
type OfRow<T> = fn(&StructureRows<'_>, usize) -> T;
type TextOfRow = for<'a> fn(&'a StructureRows<'_>, usize) -> Option<&'a str>;

/// A column of a table.
pub(super) struct Column {
    pub(super) spec: ColumnSpec,
    source: Source,
    statistics: ValueStatistics,
    /// The declaration, if the column is a feature's.
    decl: Option<ColumnDecl>,
}

/// Where the values come from, and the builder that takes them.
enum Source {
    Text(TextBuilder, TextOfRow),
    Integer(Int32Builder, OfRow<Option<i32>>),
    Flag(BooleanBuilder, OfRow<bool>),
    Feature(FeatureBuilder, FeatureIndex),
}

/// The index of a column among a table's columns of features.
#[derive(Clone, Copy)]
struct FeatureIndex {
    table: TableName,
    index: usize,
}

enum FeatureBuilder {
    Count(Int32Builder),
    Real(Float32Builder),
    Half(Float16Builder),
    Flag(BooleanBuilder),
    Chain(TextBuilder),
    Text(TextBuilder, &'static [&'static str]),
}

impl Column {
    /// Strings that repeat.
    pub(super) fn text(name: &str, of: TextOfRow) -> Self {
        Column::new(name, Kind::Text, Source::Text(TextBuilder::new(), of))
    }

    /// Small integers that repeat.
    pub(super) fn count(name: &str, of: OfRow<Option<i32>>) -> Self {
        Column::new(name, Kind::Count, Source::Integer(Int32Builder::new(), of))
    }

    /// Integers that mostly grow by one.
    pub(super) fn index(name: &str, of: OfRow<Option<i32>>) -> Self {
        Column::new(name, Kind::Index, Source::Integer(Int32Builder::new(), of))
    }

    /// True or false.
    pub(super) fn flag(name: &str, of: OfRow<bool>) -> Self {
        Column::new(name, Kind::Flag, Source::Flag(BooleanBuilder::new(), of))
    }

    /// A feature's column, the one at `index` of its table.
    pub(super) fn feature(decl: &ColumnDecl, index: usize) -> Self {
        let (kind, builder) = match decl.kind {
            ColumnKind::Count => (Kind::Count, FeatureBuilder::Count(Int32Builder::new())),
            ColumnKind::Real => (Kind::Real, FeatureBuilder::Real(Float32Builder::new())),
            ColumnKind::Half => (Kind::Half, FeatureBuilder::Half(Float16Builder::new())),
            ColumnKind::Flag => (Kind::Flag, FeatureBuilder::Flag(BooleanBuilder::new())),
            ColumnKind::Chain => (Kind::Text, FeatureBuilder::Chain(TextBuilder::new())),
            ColumnKind::Text(texts) => {
                let builder = FeatureBuilder::Text(TextBuilder::new(), texts);
                (Kind::Text, builder)
            }
        };
        let table = decl.table;
        let source = Source::Feature(builder, FeatureIndex { table, index });
        Column {
            decl: Some(decl.clone()),
            ..Column::new(&decl.name, kind, source).nullable()
        }
    }

    fn new(name: &str, kind: Kind, source: Source) -> Self {
        Column {
            spec: ColumnSpec::full(name, kind),
            source,
            statistics: ValueStatistics::default(),
            decl: None,
        }
    }

    /// The same column with nulls allowed.
    pub(super) fn nullable(mut self) -> Self {
        self.spec.nullable = true;
        self
    }

    /// Appends some of a structure's rows.
    pub(super) fn append(&mut self, record: &StructureRows<'_>, rows: Range<usize>) {
        match &mut self.source {
            Source::Text(builder, of) => append_texts(builder, rows.map(|row| of(record, row))),
            Source::Integer(builder, of) => {
                rows.for_each(|row| builder.append_option(of(record, row)));
            }
            Source::Flag(builder, of) => {
                rows.for_each(|row| builder.append_value(of(record, row)));
            }
            Source::Feature(builder, index) => {
                let values = index.values(record.features);
                let of_row = |row| record.value_index(index.table, row);
                builder.append(values, record, rows.map(of_row));
            }
        }
    }

    /// Takes the rows that were appended.
    pub(super) fn take(&mut self) -> ArrayRef {
        let array = match &mut self.source {
            Source::Text(builder, _) => ArrayBuilder::finish(builder),
            Source::Integer(builder, _) => ArrayBuilder::finish(builder),
            Source::Flag(builder, _) => ArrayBuilder::finish(builder),
            Source::Feature(builder, _) => builder.take(),
        };
        self.statistics.add(&array);
        array
    }

    /// The statistics of all rows that were taken.
    pub(super) fn into_statistics(self, table: &'static str) -> ColumnStatistics {
        ColumnStatistics {
            table,
            name: self.spec.name,
            values: self.statistics,
            idle_when: self.decl.map(|decl| decl.idle_when),
        }
    }
}

impl FeatureIndex {
    fn values(self, features: &FeatureTable) -> &Values {
        let columns = match self.table {
            TableName::Residues => &features.residues,
            TableName::Chains => &features.chains,
            TableName::Structures => &features.structure,
        };
        &columns[self.index]
    }
}

impl FeatureBuilder {
    fn append(
        &mut self,
        values: &Values,
        record: &StructureRows<'_>,
        rows: impl Iterator<Item = usize>,
    ) {
        match (self, values) {
            (FeatureBuilder::Real(builder), Values::Real(values)) => {
                let some = |value: f32| (!value.is_nan()).then_some(value);
                rows.for_each(|row| builder.append_option(some(values[row])));
            }
            (FeatureBuilder::Half(builder), Values::Real(values)) => {
                // The values have been rounded to f16 already, so this is exact.
                let some = |value: f32| (!value.is_nan()).then(|| f16::from_f32(value));
                rows.for_each(|row| builder.append_option(some(values[row])));
            }
            (FeatureBuilder::Count(builder), Values::Count(values)) => {
                rows.for_each(|row| builder.append_option(some(values[row])));
            }
            (FeatureBuilder::Flag(builder), Values::Count(values)) => {
                rows.for_each(|row| builder.append_option(some(values[row]).map(|flag| flag != 0)));
            }
            (FeatureBuilder::Chain(builder), Values::Count(values)) => {
                let chains = &record.structure.chains;
                let name = |index: i32| &*chains[index as usize].auth_asym_id;
                append_texts(builder, rows.map(|row| some(values[row]).map(name)));
            }
            (FeatureBuilder::Text(builder, texts), Values::Count(values)) => {
                let text = |index: i32| texts[index as usize];
                append_texts(builder, rows.map(|row| some(values[row]).map(text)));
            }
            _ => unreachable!("a feature's column is of its declared kind"),
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            FeatureBuilder::Count(builder) => ArrayBuilder::finish(builder),
            FeatureBuilder::Real(builder) => ArrayBuilder::finish(builder),
            FeatureBuilder::Half(builder) => ArrayBuilder::finish(builder),
            FeatureBuilder::Flag(builder) => ArrayBuilder::finish(builder),
            FeatureBuilder::Chain(builder) | FeatureBuilder::Text(builder, _) => {
                ArrayBuilder::finish(builder)
            }
        }
    }
}

/// The count, unless it stands for null.
fn some(count: i32) -> Option<i32> {
    (count != NULL_COUNT).then_some(count)
}

/// Appends texts; equal texts in a row cost one look-up in the dictionary.
fn append_texts<'a>(builder: &mut TextBuilder, texts: impl Iterator<Item = Option<&'a str>>) {
    let mut texts = texts.peekable();
    while let Some(text) = texts.next() {
        let mut times = 1;
        while texts.next_if_eq(&text).is_some() {
            times += 1;
        }
        match text {
            Some(text) => {
                builder
                    .append_n(text, times)
                    .expect("a row group has fewer rows than the dictionary has keys");
            }
            None => builder.append_nulls(times),
        }
    }
}
