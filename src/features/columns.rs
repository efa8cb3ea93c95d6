//! Columns of results.

/// The count that stands for null in a [`Column::Count`].
pub const NULL_COUNT: i32 = -1;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Counts, [`NULL_COUNT`] for null.
    Count,
    /// Reals, NaN for null.
    Real,
}

/// A column as the configuration fixes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDecl {
    /// Its name: `cn_ca_8`.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
    /// The unit, empty for none: `A`, `1/A^2`.
    pub unit: &'static str,
    /// One sentence on what it is.
    pub about: String,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Of [`ColumnKind::Count`].
    Count(Vec<i32>),
    /// Of [`ColumnKind::Real`].
    Real(Vec<f32>),
}
