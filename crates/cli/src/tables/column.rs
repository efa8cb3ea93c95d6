//! Makes the Arrow array of a column from ranges of rows: those of a slice of a row group, or all of one
//! structure.

use super::super::config::{OutputTable, Reduction};
use super::annotation_column;
use super::atom_values::{AtomValue, owners_of, repeated};
use super::dictionary::DictionaryRows;
use super::nulls::{nulls, with_nulls};
use super::reduction::ReducedColumn;
use super::schema::{ColumnSpec, Kind};
use super::structure_rows::{PairSide, RowRange, StructureRows, row_count};
use arrow_array::types::{Float16Type, Float32Type, Int32Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::BooleanBuffer;
use half::f16;
use std::sync::Arc;
use tapeloop::features::{
    Column as Values, ColumnDecl, ColumnKind, NULL_COUNT, RowKind, TableName,
};
use tapeloop_annotations::{AnnotationColumn, Level, Type};

/// Returns a value of a structure's row, by the row's index in the structure.
pub(super) type OfRow<T> = fn(&StructureRows, usize) -> T;
pub(super) type TextOfRow = for<'a> fn(&'a StructureRows, usize) -> Option<&'a str>;
/// Returns a value of a pair of residues, by their indices in the structure.
type OfPair<T> = fn(&StructureRows, [usize; 2]) -> T;
type PaddedOfRow = for<'a> fn(&'a StructureRows, usize) -> &'a [u8; 8];

/// A column of a table.
pub(super) struct TableColumn {
    pub(super) spec: ColumnSpec,
    source: ValueSource,
    /// The residues or chains that the values are of, if not those of the rows.
    pair: Option<PairSide>,
    values_of: ValuesOf,
    /// The declaration, if the column is a feature's.
    pub(super) decl: Option<ColumnDecl>,
}

/// What has a value of its own, which its rows repeat.
#[derive(Clone, Copy)]
enum ValuesOf {
    Rows,
    Structures,
    /// The residues and ligands that the rows' atoms belong to.
    AtomOwners,
}

/// Where the values come from.
enum ValueSource {
    Text(TextOfRow),
    Padded(PaddedOfRow),
    /// The parents of residues.
    Parents,
    Code(OfRow<u8>, Option<u8>),
    Integer(OfRow<Option<i32>>),
    Real(OfRow<Option<f32>>),
    Flag(OfRow<bool>),
    FlagOrNull(OfRow<Option<bool>>),
    PairInteger(TableName, OfPair<Option<i32>>),
    PairFlag(TableName, OfPair<bool>),
    /// The coordinates of an atom of residues along an axis, both by their index.
    Coordinate(usize, usize),
    Feature(FeatureColumn),
    Reduced(ReducedColumn),
    /// The column of annotations at this index of its level.
    Annotation(Level, usize),
    Atom(AtomValue),
}

/// A feature's column, by its index among those of its table.
#[derive(Clone, Copy)]
struct FeatureColumn {
    table: OutputTable,
    index: usize,
    kind: ColumnKind,
}

impl TableColumn {
    /// Strings. Neighbouring rows with the same string return the same memory.
    pub(super) fn text(name: &str, about: &str, value: TextOfRow) -> Self {
        TableColumn::new(name, Kind::Text, about, ValueSource::Text(value))
    }

    /// The parents of residues; null if there is none.
    pub(super) fn parents(name: &str, about: &str) -> Self {
        TableColumn::new(name, Kind::Word, about, ValueSource::Parents).nullable()
    }

    /// Names padded with spaces. A blank name is null if the column is nullable, and empty if not.
    pub(super) fn padded(name: &str, about: &str, value: PaddedOfRow) -> Self {
        TableColumn::new(name, Kind::Word, about, ValueSource::Padded(value))
    }

    /// Codes of one letter. Blank and 0 stand for `blank`, or for null.
    pub(super) fn code(name: &str, about: &str, value: OfRow<u8>, blank: Option<u8>) -> Self {
        let column = TableColumn::new(name, Kind::Word, about, ValueSource::Code(value, blank));
        match blank {
            Some(_) => column,
            None => column.nullable(),
        }
    }

    /// Integers.
    pub(super) fn integer(name: &str, about: &str, value: OfRow<Option<i32>>) -> Self {
        TableColumn::new(name, Kind::Integer, about, ValueSource::Integer(value))
    }

    /// Integers that ascend, or stay the same for several rows.
    pub(super) fn ascending(name: &str, about: &str, value: OfRow<Option<i32>>) -> Self {
        TableColumn::new(name, Kind::Ascending, about, ValueSource::Integer(value)).nullable()
    }

    /// What a file states of atoms.
    pub(super) fn atom(
        name: &str,
        kind: Kind,
        about: &str,
        unit: &'static str,
        value: AtomValue,
    ) -> Self {
        let mut column = TableColumn::new(name, kind, about, ValueSource::Atom(value));
        column.spec.unit = unit;
        column
    }

    /// Reals with a unit.
    pub(super) fn real(
        name: &str,
        about: &str,
        unit: &'static str,
        value: OfRow<Option<f32>>,
    ) -> Self {
        let mut column = TableColumn::new(name, Kind::Real, about, ValueSource::Real(value));
        column.spec.unit = unit;
        column
    }

    /// The coordinates of one backbone atom of each residue along one axis. `name` is that of the column,
    /// such as `ca_x`; `atom` and `axis` are indices.
    pub(super) fn coordinate((name, atom, axis): (String, usize, usize)) -> Self {
        let (atom_name, axis_name) = name.split_once('_').unwrap_or_default();
        let (atom_name, axis_name) = (atom_name.to_uppercase(), axis_name.to_uppercase());
        let about = format!(
            "{axis_name} coordinate of the atom {atom_name}; null where the file lacks it."
        );
        let source = ValueSource::Coordinate(atom, axis);
        let mut column = TableColumn::new(&name, Kind::Real, &about, source).nullable();
        column.spec.unit = "A";
        column
    }

    /// True or false.
    pub(super) fn flag(name: &str, about: &str, value: OfRow<bool>) -> Self {
        TableColumn::new(name, Kind::Flag, about, ValueSource::Flag(value))
    }

    /// True, false or null.
    pub(super) fn flag_or_null(name: &str, about: &str, value: OfRow<Option<bool>>) -> Self {
        TableColumn::new(name, Kind::Flag, about, ValueSource::FlagOrNull(value)).nullable()
    }

    /// Integers of the pairs of residues in `table`. Neighbouring sequences of them are alike.
    pub(super) fn pair_integer(
        name: &str,
        about: &str,
        table: TableName,
        value: OfPair<Option<i32>>,
    ) -> Self {
        TableColumn::new(
            name,
            Kind::Repeating,
            about,
            ValueSource::PairInteger(table, value),
        )
    }

    /// True or false for the pairs of residues in `table`.
    pub(super) fn pair_flag(
        name: &str,
        about: &str,
        table: TableName,
        value: OfPair<bool>,
    ) -> Self {
        TableColumn::new(name, Kind::Flag, about, ValueSource::PairFlag(table, value))
    }

    /// A feature's column, the one at `index` of its table of features.
    pub(super) fn feature(decl: &ColumnDecl, index: usize, table: OutputTable) -> Self {
        let kind = match decl.kind {
            // The residues of pairs.
            ColumnKind::Count if table.is_pair() && index < 2 => kind_of_side(index),
            ColumnKind::Count => Kind::Integer,
            ColumnKind::Real => Kind::Real,
            ColumnKind::Half => Kind::Half,
            ColumnKind::Flag => Kind::Flag,
            ColumnKind::LigandNumber => Kind::Integer,
            ColumnKind::Chain => Kind::Text,
            ColumnKind::Text(_) | ColumnKind::LigandComponent => Kind::Word,
        };
        let source = ValueSource::Feature(FeatureColumn {
            table,
            index,
            kind: decl.kind,
        });
        let mut column = TableColumn::new(&decl.name, kind, &decl.about, source).nullable();
        column.spec.unit = decl.unit;
        column.spec.source = decl.source;
        column.decl = Some(decl.clone());
        column
    }

    /// A statistic of the residue column `decl`, which is the one at `index` of its table.
    pub(super) fn reduced(
        reduction: &Reduction,
        (index, decl): (usize, &ColumnDecl),
        table: TableName,
    ) -> Self {
        let source = ValueSource::Reduced(ReducedColumn {
            table,
            index,
            kind: decl.kind,
            statistic: reduction.statistic,
        });
        let rows = match table {
            TableName::Structures => "structure",
            _ => "chain",
        };
        let (name, about) = (reduction.name(), reduction.about(rows));
        let mut column = TableColumn::new(&name, Kind::Real, &about, source).nullable();
        column.spec.unit = decl.unit;
        column
    }

    /// A column of annotations, the one at `index` of its level.
    pub(super) fn annotation(column: &AnnotationColumn, index: usize) -> Self {
        let kind = match column.kind {
            Type::Flag => Kind::Flag,
            Type::Integer => Kind::Integer,
            Type::Long => Kind::Long,
            Type::Real => Kind::Real,
            Type::Double => Kind::Double,
            Type::Text => Kind::Text,
        };
        let level = match column.level {
            Level::Structures => "structure",
            Level::Residues => "residue",
            Level::Variants => "variant",
        };
        let about = format!("An annotation of the {level}.");
        let source = ValueSource::Annotation(column.level, index);
        TableColumn::new(&column.name, kind, &about, source).nullable()
    }

    /// A column of rows' own values, without nulls and unit.
    fn new(name: &str, kind: Kind, about: &str, source: ValueSource) -> Self {
        TableColumn {
            spec: ColumnSpec::full(name, kind, about),
            source,
            pair: None,
            values_of: ValuesOf::Rows,
            decl: None,
        }
    }

    /// Makes this column describe one side of each pair: a residue, chain or atom. Appends `_` and
    /// `suffix` to its name, and encodes integers for the order of pairs ([`kind_of_side`]).
    pub(super) fn of_side(mut self, side: PairSide, suffix: &str) -> Self {
        self.spec.name = format!("{}_{suffix}", self.spec.name);
        if self.spec.kind == Kind::Integer {
            self.spec.kind = kind_of_side(side.side);
        }
        self.pair = Some(side);
        self
    }

    /// This column of residues and ligands, for the rows of their atoms.
    pub(super) fn of_atom_owners(mut self) -> Self {
        self.values_of = ValuesOf::AtomOwners;
        self
    }

    /// This column, which has one value in all rows of a structure.
    pub(super) fn of_structure(mut self) -> Self {
        self.values_of = ValuesOf::Structures;
        self
    }

    /// The same column with nulls allowed.
    pub(super) fn nullable(mut self) -> Self {
        self.spec.nullable = true;
        self
    }

    /// The column's name, for messages.
    pub(super) fn place(&self) -> String {
        format!("column {}", self.spec.name)
    }

    /// The values of a column that a function computes from the rows.
    fn values<'a, T>(
        &'a self,
        ranges: &'a [RowRange],
        value: &'a OfRow<T>,
    ) -> impl Iterator<Item = T> + 'a {
        ranges.iter().flat_map(move |RowRange { record, rows }| {
            let indices = record.indices_of(self.pair, rows.clone());
            indices.map(move |index| value(record, index))
        })
    }

    /// The values of the rows in these ranges.
    pub(super) fn gather(&self, ranges: &[RowRange]) -> ArrayRef {
        let (owners, lengths) = match self.values_of {
            ValuesOf::Rows => return self.gather_rows(ranges),
            ValuesOf::Structures => first_rows_of(ranges),
            ValuesOf::AtomOwners => owners_of(ranges),
        };
        repeated(&self.gather_rows(&owners), &lengths)
    }

    /// The values of these rows, or of these residues and ligands.
    fn gather_rows(&self, ranges: &[RowRange]) -> ArrayRef {
        match &self.source {
            ValueSource::Text(value) => {
                DictionaryRows::gather(ranges, |keys, RowRange { record, rows }| {
                    let indices = record.indices_of(self.pair, rows.clone());
                    keys.extend_texts(indices.map(|index| value(record, index)));
                })
            }
            ValueSource::Padded(value) => {
                DictionaryRows::gather(ranges, |keys, RowRange { record, rows }| {
                    let indices = record.indices_of(self.pair, rows.clone());
                    let names = indices.map(|index| value(record, index));
                    keys.extend_padded(names, self.spec.nullable);
                })
            }
            ValueSource::Parents => {
                DictionaryRows::gather(ranges, |keys, RowRange { record, rows }| {
                    for row in rows.clone() {
                        let residue = record.residue(row);
                        match residue.several_parents() {
                            None => {
                                keys.extend_padded(std::iter::once(&residue.parent_comp_id), true)
                            }
                            several => keys.extend_texts(std::iter::once(several)),
                        }
                    }
                })
            }
            ValueSource::Code(value, blank) => {
                DictionaryRows::gather(ranges, |keys, RowRange { record, rows }| {
                    let indices = record.indices_of(self.pair, rows.clone());
                    keys.extend_codes(indices.map(|index| value(record, index)), *blank);
                })
            }
            ValueSource::Integer(value) => Arc::new(
                self.values(ranges, value)
                    .collect::<PrimitiveArray<Int32Type>>(),
            ),
            ValueSource::Real(value) => Arc::new(
                self.values(ranges, value)
                    .collect::<PrimitiveArray<Float32Type>>(),
            ),
            ValueSource::Flag(value) => {
                let flags: Vec<bool> = self.values(ranges, value).collect();
                Arc::new(BooleanArray::from(flags))
            }
            ValueSource::FlagOrNull(value) => {
                let flags: Vec<Option<bool>> = self.values(ranges, value).collect();
                Arc::new(BooleanArray::from(flags))
            }
            ValueSource::PairInteger(table, value) => {
                Arc::new(of_pairs(ranges, *table, *value).collect::<PrimitiveArray<Int32Type>>())
            }
            ValueSource::PairFlag(table, value) => {
                let flags: Vec<bool> = of_pairs(ranges, *table, *value).collect();
                Arc::new(BooleanArray::from(flags))
            }
            ValueSource::Coordinate(atom, axis) => {
                let of_range = |RowRange { record, rows }: &RowRange| {
                    let rows = rows.clone();
                    rows.map(|row| record.coordinates.get(*atom, *axis, row))
                        .collect::<Vec<_>>()
                };
                let values = ranges.iter().flat_map(of_range).collect();
                Arc::new(with_nulls::<Float32Type>(values, is_nan))
            }
            ValueSource::Feature(column) => column.gather(ranges),
            ValueSource::Reduced(column) => column.gather(ranges),
            ValueSource::Annotation(level, index) => {
                annotation_column::gather(ranges, *level, *index, self.spec.kind)
            }
            ValueSource::Atom(value) => value.gather(ranges),
        }
    }
}

/// The first row of each range, and how many rows the range has.
fn first_rows_of(ranges: &[RowRange]) -> (Vec<RowRange>, Vec<usize>) {
    let first = |RowRange { record, rows }: &RowRange| {
        let first = RowRange {
            record: Arc::clone(record),
            rows: rows.start..rows.start + 1,
        };
        (first, rows.len())
    };
    ranges.iter().map(first).unzip()
}

/// The values of the pairs of residues in some rows of a table.
fn of_pairs<T>(ranges: &[RowRange], table: TableName, value: OfPair<T>) -> impl Iterator<Item = T> {
    ranges.iter().flat_map(move |RowRange { record, rows }| {
        rows.clone()
            .map(move |row| value(record, record.pair(OutputTable::Features(table), row)))
    })
}

impl FeatureColumn {
    /// Gathers the column of a feature into an array of its type.
    fn gather(self, ranges: &[RowRange]) -> ArrayRef {
        match self.kind {
            ColumnKind::Count => Arc::new(with_nulls::<Int32Type>(self.counts(ranges), is_null)),
            ColumnKind::Real => Arc::new(with_nulls::<Float32Type>(self.reals(ranges), is_nan)),
            ColumnKind::Half => {
                // The values have been rounded to f16 already, so this is exact.
                let halves = self.reals(ranges).into_iter().map(f16::from_f32).collect();
                Arc::new(with_nulls::<Float16Type>(halves, |half| half.is_nan()))
            }
            ColumnKind::Flag => {
                let counts = self.counts(ranges);
                let flags = BooleanBuffer::collect_bool(counts.len(), |row| counts[row] > 0);
                Arc::new(BooleanArray::new(flags, nulls(&counts, is_null)))
            }
            ColumnKind::Chain => DictionaryRows::gather(ranges, |keys, range| {
                let structure = &range.record.structure;
                let chains = match self.table {
                    // Columns of the author's ids, next to those of label ids.
                    OutputTable::Features(name) if name.decl().rows == RowKind::ChainPair => {
                        structure.author_chain_names()
                    }
                    _ => structure.distinct_chain_names(),
                };
                let counts = self.counts(std::slice::from_ref(range));
                keys.extend_indices(&counts, |index| chains[index]);
            }),
            ColumnKind::LigandComponent => DictionaryRows::gather(ranges, |keys, range| {
                let ligands = &range.record.structure.ligands;
                let counts = self.counts(std::slice::from_ref(range));
                keys.extend_indices(&counts, |index| ligands[index].component());
            }),
            ColumnKind::LigandNumber => {
                let numbers = ranges.iter().flat_map(|range| {
                    let ligands = &range.record.structure.ligands;
                    let counts = self.counts(std::slice::from_ref(range));
                    let number = |count| ligands[usize::try_from(count).ok()?].auth_seq_id;
                    counts.into_iter().map(number)
                });
                Arc::new(numbers.collect::<PrimitiveArray<Int32Type>>())
            }
            ColumnKind::Text(texts) => DictionaryRows::gather(ranges, |keys, range| {
                let counts = self.counts(std::slice::from_ref(range));
                keys.extend_indices(&counts, |index| texts[index]);
            }),
        }
    }

    fn counts(self, ranges: &[RowRange]) -> Vec<i32> {
        self.values(ranges, NULL_COUNT, |values| match values {
            Values::Count(counts) => counts,
            Values::Real(_) => unreachable!("the column is declared as counts"),
        })
    }

    fn reals(self, ranges: &[RowRange]) -> Vec<f32> {
        self.values(ranges, f32::NAN, |values| match values {
            Values::Real(reals) => reals,
            Values::Count(_) => unreachable!("the column is declared as reals"),
        })
    }

    /// The values of a feature's column in the rows of `ranges`; `null` for rows without one.
    fn values<T: Copy>(
        self,
        ranges: &[RowRange],
        null: T,
        typed: fn(Values<'_>) -> &[T],
    ) -> Vec<T> {
        let mut values = Vec::with_capacity(row_count(ranges));
        for RowRange { record, rows } in ranges {
            let name = self
                .table
                .features()
                .expect("columns of features are of a table");
            let feature = typed(record.features.column(name, self.index));
            let table = match self.table {
                OutputTable::Features(table) => table,
                OutputTable::WaterBridges => unreachable!("bridges have no columns of features"),
                OutputTable::Variants => {
                    let residues = rows.clone().map(|row| record.variant_residue(row));
                    values.extend(
                        residues.map(|residue| residue.map_or(null, |index| feature[index])),
                    );
                    continue;
                }
            };
            match table.decl().rows {
                RowKind::Residue => {
                    // Residues that were not observed follow all others, and have no values.
                    let observed_end = feature.len().clamp(rows.start, rows.end);
                    values.extend_from_slice(
                        feature.get(rows.start..observed_end).unwrap_or_default(),
                    );
                    values.resize(values.len() + (rows.end - observed_end), null);
                }
                RowKind::Chain => {
                    let chains = record.chains[rows.clone()].iter();
                    values.extend(chains.map(|chain| feature[chain.index as usize]));
                }
                RowKind::Structure
                | RowKind::ResiduePair(_)
                | RowKind::Ligand
                | RowKind::ChainPair
                | RowKind::Atom
                | RowKind::AtomPair => {
                    values.extend_from_slice(&feature[rows.clone()]);
                }
            }
        }
        values
    }
}

/// The kind of integers that belong to the first or the second residue of pairs, which are sorted by the first.
fn kind_of_side(side: usize) -> Kind {
    if side == 0 {
        Kind::Ascending
    } else {
        Kind::Repeating
    }
}

/// Whether the count stands for null.
fn is_null(count: &i32) -> bool {
    *count == NULL_COUNT
}

fn is_nan(real: &f32) -> bool {
    real.is_nan()
}
