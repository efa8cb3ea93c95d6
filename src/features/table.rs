//! Tables of results: columns that the structures of a batch share, and each structure's rows.

use super::layout::PAIR_ROOM;
use super::table_decl::TableName;
use crate::workload::Extent;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The values of a structure in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Column<'a> {
    /// Values of all kinds but reals.
    Count(&'a [i32]),
    /// Values of [`ColumnKind::Real`](super::ColumnKind::Real) and
    /// [`ColumnKind::Half`](super::ColumnKind::Half).
    Real(&'a [f32]),
}

/// The features of one structure. The structures of a batch share the memory of their columns,
/// which is free once the tables of all of them are dropped.
#[derive(Clone)]
pub struct FeatureTable {
    columns: Arc<SharedColumns>,
    /// The structure's rows of each table.
    rows: [Range<usize>; TableName::ALL.len()],
}

/// The columns of a batch, or of one structure, of each of [`TableName::ALL`].
#[derive(Debug, Default)]
pub(crate) struct SharedColumns(pub(crate) [Vec<Values>; TableName::ALL.len()]);

/// The values of a column that a table owns, as [`Column`] shows them.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Values of all kinds but reals.
    Count(Vec<i32>),
    /// Reals.
    Real(Vec<f32>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Count(values) => values.len(),
            Values::Real(values) => values.len(),
        }
    }
}

/// A structure's rows of each of [`TableName::ALL`]. Those of tables whose length follows from an axis
/// are not used.
pub(super) type SizedRows = [Range<usize>; TableName::ALL.len()];

impl FeatureTable {
    /// The rows of the structure that spans `extent` from `offset` on. `sized` has its rows of the
    /// tables whose length follows from the data.
    pub(super) fn of_batch(
        columns: Arc<SharedColumns>,
        offset: Extent,
        extent: Extent,
        sized: SizedRows,
    ) -> Self {
        let mut rows = sized;
        for table in TableName::ALL {
            let axis = table.axis();
            if axis != PAIR_ROOM {
                let start = offset[axis] as usize;
                rows[table as usize] = start..start + extent[axis] as usize;
            }
        }
        FeatureTable { columns, rows }
    }

    /// A structure's table with these columns of each of [`TableName::ALL`], such as one that was
    /// kept elsewhere.
    ///
    /// # Panics
    /// If columns of one table differ in length.
    pub fn new(columns: [Vec<Values>; TableName::ALL.len()]) -> Self {
        let rows = columns.each_ref().map(|columns| {
            let rows = columns.first().map_or(0, Values::len);
            let is_equal = columns.iter().all(|values| values.len() == rows);
            assert!(is_equal, "the columns of a table have one length");
            0..rows
        });
        let columns = Arc::new(SharedColumns(columns));
        FeatureTable { columns, rows }
    }

    /// The number of rows of a table.
    pub fn rows(&self, table: TableName) -> usize {
        self.rows[table as usize].len()
    }

    /// The columns of a table, in their order.
    pub fn columns(&self, table: TableName) -> impl ExactSizeIterator<Item = Column<'_>> {
        let columns = 0..self.columns.0[table as usize].len();
        columns.map(move |index| self.column(table, index))
    }

    /// The column at `index` of a table.
    ///
    /// # Panics
    /// If the table has fewer columns.
    pub fn column(&self, table: TableName, index: usize) -> Column<'_> {
        let rows = self.rows[table as usize].clone();
        match &self.columns.0[table as usize][index] {
            Values::Count(values) => Column::Count(&values[rows]),
            Values::Real(values) => Column::Real(&values[rows]),
        }
    }
}

impl fmt::Debug for FeatureTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = TableName::ALL.map(|table| (table, self.columns(table).collect::<Vec<_>>()));
        f.debug_map().entries(columns).finish()
    }
}

impl PartialEq for FeatureTable {
    fn eq(&self, other: &Self) -> bool {
        let same = |table: &TableName| self.columns(*table).eq(other.columns(*table));
        TableName::ALL.iter().all(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::layout::{CHAINS, RESIDUES, STRUCTURES};

    fn extent(residues: u32, chains: u32, structures: u32) -> Extent {
        let mut lengths = [0; 8];
        lengths[RESIDUES] = residues;
        lengths[CHAINS] = chains;
        lengths[STRUCTURES] = structures;
        Extent::from(lengths)
    }

    fn alone(residues: Vec<Values>, chains: &[f32], structure: f32) -> FeatureTable {
        let chains = vec![Values::Real(chains.to_vec())];
        let structure = vec![Values::Real(vec![structure])];
        let mut columns = other_columns();
        columns[TableName::Residues as usize] = residues;
        columns[TableName::Chains as usize] = chains;
        columns[TableName::Structures as usize] = structure;
        FeatureTable::new(columns)
    }

    /// Columns of the second structure of the batch in the tables whose length follows from the data.
    fn other_columns() -> [Vec<Values>; TableName::ALL.len()] {
        let mut columns = [const { Vec::new() }; TableName::ALL.len()];
        columns[TableName::Contacts as usize] = vec![Values::Count(vec![9])];
        columns[TableName::HydrogenBonds as usize] = vec![Values::Count(vec![6, 5])];
        columns[TableName::Interfaces as usize] = vec![Values::Real(vec![650.0])];
        columns
    }

    /// The residues of the second structure of the batch.
    fn residues() -> Vec<Values> {
        let reals = Values::Real(vec![0.75, 1.0]);
        vec![Values::Count(vec![3, 4]), reals]
    }

    /// Three structures of 3, 2 and 0 residues, of 1, 2 and 0 chains, with 2, 1 and 0 contacts, 0, 2
    /// and 1 hydrogen bonds, and 0, 1 and 0 interfaces.
    fn batch() -> [FeatureTable; 3] {
        let mut columns = other_columns();
        columns[TableName::Residues as usize] = vec![
            Values::Count(vec![0, 1, 2, 3, 4]),
            Values::Real(vec![0.0, 0.25, 0.5, 0.75, 1.0]),
        ];
        columns[TableName::Chains as usize] = vec![Values::Real(vec![10.0, 20.0, 30.0])];
        columns[TableName::Structures as usize] = vec![Values::Real(vec![100.0, 200.0, 300.0])];
        columns[TableName::Contacts as usize] = vec![Values::Count(vec![7, 8, 9])];
        columns[TableName::HydrogenBonds as usize] = vec![Values::Count(vec![6, 5, 4])];
        let columns = Arc::new(SharedColumns(columns));
        let rows = |contacts, bonds, interfaces| {
            let mut rows = SizedRows::default();
            rows[TableName::Contacts as usize] = contacts;
            rows[TableName::HydrogenBonds as usize] = bonds;
            rows[TableName::Interfaces as usize] = interfaces;
            rows
        };
        let (first, second, third) = (extent(3, 1, 1), extent(2, 2, 1), extent(0, 0, 1));
        [
            FeatureTable::of_batch(
                Arc::clone(&columns),
                extent(0, 0, 0),
                first,
                rows(0..2, 0..0, 0..0),
            ),
            FeatureTable::of_batch(Arc::clone(&columns), first, second, rows(2..3, 0..2, 0..1)),
            FeatureTable::of_batch(columns, extent(5, 3, 2), third, rows(3..3, 2..3, 1..1)),
        ]
    }

    #[test]
    fn a_table_has_its_structures_rows_of_each_column() {
        let [first, second, third] = batch();
        let (residues, chains) = (TableName::Residues, TableName::Chains);
        assert_eq!(first.column(residues, 0), Column::Count(&[0, 1, 2]));
        let columns = second.columns(residues);
        assert!(columns.eq([Column::Count(&[3, 4]), Column::Real(&[0.75, 1.0])]));
        assert_eq!(second.column(chains, 0), Column::Real(&[20.0, 30.0]));
        let of_structure = second.columns(TableName::Structures);
        assert!(of_structure.eq([Column::Real(&[200.0])]));
        assert_eq!(third.columns(residues).len(), 2);
        assert_eq!(third.column(residues, 1), Column::Real(&[]));
        assert_eq!(third.column(chains, 0), Column::Real(&[]));
        let pairs = |table: &FeatureTable| table.rows(TableName::Contacts);
        assert_eq!([pairs(&first), pairs(&second), pairs(&third)], [2, 1, 0]);
        let pair = second.column(TableName::Contacts, 0);
        assert_eq!(pair, Column::Count(&[9]));
        let bonds = |table: &FeatureTable| table.rows(TableName::HydrogenBonds);
        assert_eq!([bonds(&first), bonds(&second), bonds(&third)], [0, 2, 1]);
        let bond = third.column(TableName::HydrogenBonds, 0);
        assert_eq!(bond, Column::Count(&[4]));
        let interfaces = |table: &FeatureTable| table.rows(TableName::Interfaces);
        let counts = [interfaces(&first), interfaces(&second), interfaces(&third)];
        assert_eq!(counts, [0, 1, 0]);
        let area = second.column(TableName::Interfaces, 0);
        assert_eq!(area, Column::Real(&[650.0]));
    }

    #[test]
    fn tables_are_equal_if_they_have_the_same_rows() {
        let [first, second, third] = batch();
        let same = alone(residues(), &[20.0, 30.0], 200.0);
        assert_eq!(second, same);
        assert_eq!(second, second.clone());
        let mut count = residues();
        count[0] = Values::Count(vec![3, 5]);
        let mut kind = residues();
        kind[0] = Values::Real(vec![3.0, 4.0]);
        let rows = vec![Values::Count(vec![3]), Values::Real(vec![0.75])];
        let more = residues().into_iter().chain(residues()).collect();
        let others = [
            first,
            third,
            alone(count, &[20.0, 30.0], 200.0),
            alone(kind, &[20.0, 30.0], 200.0),
            alone(rows, &[20.0, 30.0], 200.0),
            alone(more, &[20.0, 30.0], 200.0),
            alone(Vec::new(), &[20.0, 30.0], 200.0),
            alone(residues(), &[20.0, 31.0], 200.0),
            alone(residues(), &[20.0], 200.0),
            alone(residues(), &[20.0, 30.0], 201.0),
        ];
        for other in others {
            assert_ne!(second, other);
            assert_ne!(other, second);
        }
    }
}
