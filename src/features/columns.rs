//! Columns of results.

pub(super) use super::table_decl::TableName;

/// The count that stands for null in a [`Column::Count`](super::Column::Count).
pub const NULL_COUNT: i32 = -1;

/// The meaning of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Counts and indices, [`NULL_COUNT`] for null.
    Count,
    /// Reals, NaN for null.
    Real,
    /// Reals that f16 represents exactly, NaN for null.
    Half,
    /// 0 for no and 1 for yes, [`NULL_COUNT`] for null.
    Flag,
    /// An index into the structure's chains, [`NULL_COUNT`] for null.
    Chain,
    /// The component of a ligand: an index into the structure's ligands, [`NULL_COUNT`] for null.
    LigandComponent,
    /// The author's number of a ligand: an index into the structure's ligands, [`NULL_COUNT`] for
    /// null.
    LigandNumber,
    /// An index into these texts, [`NULL_COUNT`] for null.
    Text(&'static [&'static str]),
}

impl ColumnKind {
    /// Whether values are [`Column::Real`](super::Column::Real); all others are
    /// [`Column::Count`](super::Column::Count).
    pub fn is_real(self) -> bool {
        matches!(self, ColumnKind::Real | ColumnKind::Half)
    }
}

/// How far a column's values may differ from the same values computed in another way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The largest difference, in the column's unit.
    pub absolute: f32,
    /// The largest difference divided by the value. The larger of the two limits applies.
    pub relative: f32,
    /// The number of rows per thousand that may differ by more.
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

    /// The same tolerance, but `rows_per_thousand` rows of a thousand may differ by more.
    pub(super) const fn but_for(mut self, rows_per_thousand: u32) -> Self {
        self.rows_per_thousand = rows_per_thousand;
        self
    }
}

/// The declaration of a column. It follows from the configuration alone.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDecl {
    /// The table that it is in.
    pub table: TableName,
    /// Its name: `cn_ca_8`.
    pub name: String,
    /// The meaning of its values.
    pub kind: ColumnKind,
    /// The unit: `A`, `1/A^2`; empty if it has none.
    pub unit: &'static str,
    /// A description of one sentence.
    pub about: String,
    /// The number that stands for null where a file needs a number. No value equals it if the values
    /// have a known bound, else it is 0.
    pub null_number: f64,
    /// The publication that defines it; empty if there is none.
    pub source: &'static str,
    /// When it is normal that all values of a run are null or equal: `no predicted model was read`.
    /// Empty if it never is.
    pub idle_when: &'static str,
    /// How far the values may differ from those of other programs, of which
    /// `tests/features/golden.rs` has tables, and which `docs/VALIDATION.md` lists.
    pub reference: Tolerance,
    /// How far a rotation of the structure may change the values: rotated positions are rounded to
    /// 0.001 A again, and test points of areas do not rotate. Limits leave room for what
    /// `tests/features/properties.rs` finds in the samples. Tables of pairs of residues or atoms
    /// are not compared: rows come and go near the limits of distances.
    pub rotation: Tolerance,
}

impl ColumnDecl {
    /// A column of the residues' table.
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
            null_number: match unit {
                // Angles are at most 180, energies of hydrogen bonds below 0, and nearly all other
                // values not negative.
                "degrees" => 360.0,
                "kcal/mol" => 0.0,
                _ => f64::from(NULL_COUNT),
            },
            source: "",
            idle_when: "",
            // Other programs print fewer digits than f32 has. The absolute part is for values near
            // zero.
            reference: Tolerance {
                absolute: 1e-6,
                ..Tolerance::relative(1e-4)
            },
            // Rounded positions may change contacts near the cutoff, and with them counts, but no
            // real that declares no limit of its own.
            rotation: if kind.is_real() {
                Tolerance::EXACT
            } else {
                Tolerance::EXACT.but_for(5)
            },
        }
    }

    /// The same column with other limits on differences from other programs, which
    /// `docs/VALIDATION.md` lists.
    pub(super) fn reference(mut self, tolerance: Tolerance) -> Self {
        self.reference = tolerance;
        self
    }

    /// The same column with other limits on what a rotation may change, with room for what the
    /// samples show.
    pub(super) fn rotation(mut self, tolerance: Tolerance) -> Self {
        self.rotation = tolerance;
        self
    }

    /// The same column with another number for null.
    pub(super) fn null_number(mut self, number: f64) -> Self {
        self.null_number = number;
        self
    }

    /// The same column of distances, which are null from `reach` on, in 0.001 A. The number for null
    /// is 1 A more, as a distance just below `reach` may round to it.
    pub(super) fn null_from(self, reach: u32) -> Self {
        self.null_number(f64::from(reach) / 1000.0 + 1.0)
    }

    /// The same column with a reason why all values of a run may be null or equal.
    pub(super) fn idle_when(mut self, reason: &'static str) -> Self {
        self.idle_when = reason;
        self
    }

    /// The same column in another table.
    pub(super) fn in_table(mut self, table: TableName) -> Self {
        self.table = table;
        self
    }
}
