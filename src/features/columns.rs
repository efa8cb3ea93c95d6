//! Columns of results.

/// The count that stands for null in a [`Column::Count`].
pub const NULL_COUNT: i32 = -1;

/// A table of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableName {
    /// A row a residue.
    Residues,
    /// A row a chain that has residues.
    Chains,
    /// A row a structure.
    Structures,
}

/// What a column means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Counts and indices, [`NULL_COUNT`] for null.
    Count,
    /// Reals, NaN for null.
    Real,
    /// Reals of which each is one of f16, NaN for null.
    Half,
    /// 0 for no and 1 for yes, [`NULL_COUNT`] for null.
    Flag,
    /// An index into the structure's chains, [`NULL_COUNT`] for null.
    Chain,
    /// An index into these texts, [`NULL_COUNT`] for null.
    Text(&'static [&'static str]),
}

impl ColumnKind {
    /// Whether values are [`Column::Real`]; all others are [`Column::Count`].
    pub fn is_real(self) -> bool {
        matches!(self, ColumnKind::Real | ColumnKind::Half)
    }
}

/// How far values of a column may differ from the same computed in another way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The largest difference, in the column's unit.
    pub absolute: f32,
    /// The largest difference over the value; the larger of the two limits holds.
    pub relative: f32,
    /// Rows of a thousand that may differ by more.
    pub rows_per_thousand: u32,
}

impl Tolerance {
    /// No difference at all.
    pub const EXACT: Tolerance = Tolerance {
        absolute: 0.0,
        relative: 0.0,
        rows_per_thousand: 0,
    };

    /// Differences of up to `limit`, in the column's unit.
    pub(super) const fn absolute(limit: f32) -> Self {
        Tolerance {
            absolute: limit,
            ..Self::EXACT
        }
    }

    /// Differences of up to `limit` times the value.
    pub(super) const fn relative(limit: f32) -> Self {
        Tolerance {
            relative: limit,
            ..Self::EXACT
        }
    }

    /// The same, but for so many rows of a thousand.
    pub(super) const fn but_for(mut self, rows_per_thousand: u32) -> Self {
        self.rows_per_thousand = rows_per_thousand;
        self
    }
}

/// A column as the configuration fixes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDecl {
    /// The table that it is in.
    pub table: TableName,
    /// Its name: `cn_ca_8`.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
    /// The unit, empty for none: `A`, `1/A^2`.
    pub unit: &'static str,
    /// One sentence on what it is.
    pub about: String,
    /// When a whole run may have nulls or a single value here and nothing is wrong: `no predicted
    /// model was read`. Empty for never.
    pub idle_when: &'static str,
    /// How far the values may be from those of other programs.
    pub reference: Tolerance,
    /// How far a rotation of the structure may move the values: rotated positions are rounded to
    /// 0.001 A again, and test points do not turn with them.
    pub rotation: Tolerance,
}

impl ColumnDecl {
    /// A column with one value a residue.
    pub(super) fn residue(
        name: impl Into<String>,
        kind: ColumnKind,
        unit: &'static str,
        about: impl Into<String>,
    ) -> Self {
        ColumnDecl {
            table: TableName::Residues,
            name: name.into(),
            kind,
            unit,
            about: about.into(),
            idle_when: "",
            // The absolute part is for values near zero.
            reference: Tolerance {
                absolute: 1e-6,
                ..Tolerance::relative(1e-4)
            },
            // Contacts come and go.
            rotation: match kind.is_real() {
                true => Tolerance::EXACT,
                false => Tolerance::EXACT.but_for(5),
            },
        }
    }

    /// The same column with other limits on differences from other programs.
    pub(super) fn reference(mut self, tolerance: Tolerance) -> Self {
        self.reference = tolerance;
        self
    }

    /// The same column with other limits on what a rotation may change.
    pub(super) fn rotation(mut self, tolerance: Tolerance) -> Self {
        self.rotation = tolerance;
        self
    }

    /// The same column, of which a run may have nothing to tell.
    pub(super) fn idle_when(mut self, reason: &'static str) -> Self {
        self.idle_when = reason;
        self
    }

    /// The same column in another table.
    pub(super) fn of(mut self, table: TableName) -> Self {
        self.table = table;
        self
    }
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Of every kind but reals.
    Count(Vec<i32>),
    /// Of [`ColumnKind::Real`] and [`ColumnKind::Half`].
    Real(Vec<f32>),
}
