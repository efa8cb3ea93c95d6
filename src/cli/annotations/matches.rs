//! Which rows have matched, and what the user should know of the others.

use super::Annotations;
use super::join::describe_row;
use super::row_set::RowSet;
use crate::cli::config::UnmatchedTables;
use crate::cli::path_text::shown;
use crate::error::{Error, ErrorKind, Result, excerpt};
use serde::{Deserialize, Serialize};

/// The most tables that an error names.
const TABLES_NAMED_MAX: usize = 3;

/// What the rows of the annotations have matched in some inputs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::cli) struct Matches {
    /// Residues that have a value.
    pub(in crate::cli) residues: u64,
    /// Rows whose structure and model were read.
    pub(super) read: RowSet,
    /// Those of them that name a residue of the structure, or the structure itself.
    pub(super) matched: RowSet,
    /// Rows that give a residue or a structure a value again.
    pub(in crate::cli) rows_repeated: u64,
    pub(super) first_repeated: Option<String>,
    /// Structures without any row.
    pub(in crate::cli) structures_without: u64,
    pub(super) first_without: Option<String>,
    /// The first structure without rows whose name differs in case alone from one that has rows:
    /// the name in the annotations, and the structure's.
    pub(super) other_case: Option<(String, String)>,
}

impl Matches {
    /// Adds those of later inputs.
    pub(in crate::cli) fn add(&mut self, later: Matches) {
        self.residues += later.residues;
        self.read.extend(&later.read);
        self.matched.extend(&later.matched);
        self.rows_repeated += later.rows_repeated;
        self.structures_without += later.structures_without;
        let keep_first = |first: &mut Option<String>, later| *first = first.take().or(later);
        keep_first(&mut self.first_repeated, later.first_repeated);
        keep_first(&mut self.first_without, later.first_without);
        self.other_case = self.other_case.take().or(later.other_case);
    }

    /// A line about the structures without rows; `None` if there are none.
    pub(in crate::cli) fn without_rows(&self) -> Option<String> {
        let first = self.first_without.as_ref()?;
        let more = if self.structures_without > 1 {
            ", ..."
        } else {
            ""
        };
        let count = self.structures_without;
        Some(format!(
            "structures without annotations: {count} ({}{more})",
            excerpt(first)
        ))
    }

    /// Which names differ in case, as the end of a message.
    fn case_hint(&self) -> String {
        let hint = |(row, structure): &(String, String)| {
            let (row, structure) = (excerpt(row), excerpt(structure));
            format!("; case counts: the annotations have {row}, and the structure is {structure}")
        };
        self.other_case.as_ref().map_or(String::new(), hint)
    }
}

/// What the rows of a table have matched in a run.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cli) struct TableMatches {
    #[serde(rename = "path")]
    pub(super) table: String,
    pub(super) rows: u32,
    /// Rows whose structure and model were read.
    pub(super) rows_read: u32,
    pub(super) rows_matched: u32,
    rows_unmatched: u32,
    /// The place and the contents of the first row that matched nothing.
    pub(super) first_unmatched: Option<String>,
}

impl TableMatches {
    /// A line about the table.
    pub(in crate::cli) fn line(&self) -> String {
        let TableMatches {
            table,
            rows,
            rows_matched,
            ..
        } = self;
        let first = self.first_unmatched.as_ref();
        let first = first.map_or(String::new(), |first| {
            format!("; the first other row is {first}")
        });
        format!("{table}: {rows_matched} of {rows} rows match{first}")
    }
}

impl Annotations {
    /// Number of rows whose structure and model were read.
    pub(in crate::cli) fn rows_read(&self, matches: &Matches) -> u32 {
        matches.read.count_in(&(0..self.rows()))
    }

    /// Number of rows that matched.
    pub(in crate::cli) fn rows_matched(&self, matches: &Matches) -> u32 {
        matches.matched.count_in(&(0..self.rows()))
    }

    /// What the rows of each table have matched.
    ///
    /// # Errors
    /// The temporary file of the rows cannot be read.
    pub(in crate::cli) fn by_table(&self, matches: &Matches) -> Result<Vec<TableMatches>> {
        let tables = self.loaded.files.iter().zip(&self.loaded.file_rows);
        let tables = tables.map(|(file, rows)| {
            let matched = matches.matched.count_in(rows);
            let first = matches.matched.first_missing(rows);
            Ok(TableMatches {
                table: shown(file),
                rows: rows.end - rows.start,
                rows_read: matches.read.count_in(rows),
                rows_matched: matched,
                rows_unmatched: rows.end - rows.start - matched,
                first_unmatched: first
                    .map(|row| describe_row(&self.loaded, row))
                    .transpose()?,
            })
        });
        tables.collect()
    }

    /// Logs a warning about each probable mistake.
    ///
    /// # Errors
    /// The temporary file of the rows cannot be read.
    pub(in crate::cli) fn log(&self, matches: &Matches) -> Result<()> {
        if let Some(row) = matches.read.first_without(&matches.matched) {
            let rows = self.rows_read(matches) - self.rows_matched(matches);
            let first = describe_row(&self.loaded, row)?;
            tracing::warn!(
                rows,
                first,
                "annotations name residues that their structure lacks"
            );
        }
        if let Some(first) = &matches.first_repeated {
            let rows = matches.rows_repeated;
            tracing::warn!(
                rows,
                first,
                "annotations give a residue or a structure several values; the first is used"
            );
        }
        Ok(())
    }

    /// Checks that each table with rows has one that matched, once all inputs have been read.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] names the tables of which no row did, unless `unmatched` lets them pass,
    /// and [`ErrorKind::Io`] if the temporary file of the rows cannot be read.
    pub(in crate::cli) fn check_matched(
        &self,
        matches: &Matches,
        unmatched: UnmatchedTables,
    ) -> Result<()> {
        match (self.all_tables_match(matches), unmatched) {
            (Err(error), UnmatchedTables::Warn) if error.kind() == ErrorKind::Input => {
                tracing::warn!("{error}");
                Ok(())
            }
            (Err(error), UnmatchedTables::Allow) if error.kind() == ErrorKind::Input => Ok(()),
            (checked, _) => checked,
        }
    }

    fn all_tables_match(&self, matches: &Matches) -> Result<()> {
        let mut tables = self.by_table(matches)?;
        tables.retain(|table| table.rows > 0 && table.rows_matched == 0);
        let Some(first) = tables.first() else {
            return Ok(());
        };
        let names = tables
            .iter()
            .take(TABLES_NAMED_MAX)
            .map(|table| &*table.table);
        let names: Vec<&str> = names.collect();
        let more = if tables.len() > TABLES_NAMED_MAX {
            ", ..."
        } else {
            ""
        };
        let first_row = first.first_unmatched.as_deref().unwrap_or_default();
        let (what, fix) = if first.rows_read == 0 {
            let without = matches.first_without.as_ref();
            let without = without.map_or(String::new(), |name| {
                format!("; the first structure without rows is {}", excerpt(name))
            });
            let what = format!(
                "a structure and model that were read{without}{}",
                matches.case_hint()
            );
            (
                what,
                "name structures as the column `structure` of the results does",
            )
        } else {
            let what = "a residue of its structure".to_owned();
            (
                what,
                "give the author's chains and residue numbers, `auth_asym_id` and `auth_seq_id`",
            )
        };
        let message =
            format!("no row of the annotations names {what}; the first row is {first_row}");
        let error = Error::new(ErrorKind::Input, message);
        let error = error.fix(format!("{fix}, or set annotations_unmatched = \"allow\""));
        Err(error.within(format!("{}{more}", names.join(", "))))
    }
}
