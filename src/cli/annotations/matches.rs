//! Counts of the rows that have met a structure, and of those that have not.

use serde::{Deserialize, Serialize};

/// How many residues and rows of some inputs have matched.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::cli) struct Matches {
    /// Residues that have a value.
    pub(in crate::cli) residues: u64,
    /// Rows whose structure was read.
    pub(in crate::cli) rows_read: u64,
    /// Those of them that name a residue that none of the models has.
    pub(in crate::cli) rows_unmatched: u64,
    /// The first such row.
    pub(super) first_unmatched: Option<String>,
    /// Rows that give a residue or a structure a value again.
    pub(in crate::cli) rows_repeated: u64,
    pub(super) first_repeated: Option<String>,
    /// Structures without any row.
    pub(in crate::cli) structures_without: u64,
    pub(super) first_without: Option<String>,
}

impl Matches {
    /// Adds those of later inputs.
    pub(in crate::cli) fn add(&mut self, later: Matches) {
        self.residues += later.residues;
        self.rows_read += later.rows_read;
        self.rows_unmatched += later.rows_unmatched;
        self.rows_repeated += later.rows_repeated;
        self.structures_without += later.structures_without;
        let keep_first = |first: &mut Option<String>, later| *first = first.take().or(later);
        keep_first(&mut self.first_unmatched, later.first_unmatched);
        keep_first(&mut self.first_repeated, later.first_repeated);
        keep_first(&mut self.first_without, later.first_without);
    }

    /// Logs a warning about each probable mistake.
    pub(in crate::cli) fn log(&self) {
        if let Some(first) = &self.first_unmatched {
            let rows = self.rows_unmatched;
            tracing::warn!(
                rows,
                first,
                "annotations name residues that their structure lacks"
            );
        }
        if let Some(first) = &self.first_repeated {
            let rows = self.rows_repeated;
            tracing::warn!(
                rows,
                first,
                "annotations give a residue or a structure several values; the first is used"
            );
        }
        if let Some(first) = &self.first_without {
            let structures = self.structures_without;
            tracing::warn!(structures, first, "structures without annotations");
        }
    }
}
