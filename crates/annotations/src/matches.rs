//! Which rows of annotations have matched, and the messages about those that have not.

use super::Annotations;
use super::join::describe_rows;
use super::row_set::RowSet;
use crate::options::UnmatchedTables;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tapeloop_error::internal::excerpt;
use tapeloop_error::{Error, ErrorKind, Result};
use tapeloop_files::shown;

/// The most tables that a message or the summary names; `run.json` has all.
const TABLES_NAMED_MAX: usize = 10;

/// What the rows of the annotations have matched in some inputs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Matches {
    /// Residues that have a value.
    pub residues: u64,
    /// Rows whose structure and model were read.
    pub(super) read: RowSet,
    /// The read rows that name a residue of the structure, or the structure itself.
    pub(super) matched: RowSet,
    /// Rows that give a residue or a structure a value again.
    pub rows_repeated: u64,
    pub(super) first_repeated: Option<String>,
    /// Structures without any row.
    pub structures_without: u64,
    pub(super) first_without: Option<String>,
    /// For each table its first structure whose name differs in case alone from that of a structure
    /// that was read: the name in the table, and the other.
    pub(super) in_other_case: BTreeMap<usize, (String, String)>,
}

impl Matches {
    /// Adds the matches of later inputs. What was found first stays.
    pub fn add(&mut self, later: Matches) {
        self.residues += later.residues;
        self.read.extend(&later.read);
        self.matched.extend(&later.matched);
        self.rows_repeated += later.rows_repeated;
        self.structures_without += later.structures_without;
        let keep_first = |first: &mut Option<String>, later| *first = first.take().or(later);
        keep_first(&mut self.first_repeated, later.first_repeated);
        keep_first(&mut self.first_without, later.first_without);
        for (table, names) in later.in_other_case {
            self.in_other_case.entry(table).or_insert(names);
        }
    }

    /// A line about the structures without rows; `None` if there are none.
    pub fn without_rows(&self) -> Option<String> {
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
}

/// What the rows of a table, which is a file or a folder that `annotations` names, have matched in a run.
#[derive(Clone, Debug, Serialize)]
pub struct TableMatches {
    #[serde(rename = "path")]
    table: String,
    rows: u32,
    /// Rows whose structure and model were read.
    rows_read: u32,
    rows_matched: u32,
    rows_unmatched: u32,
    /// The place and the contents of the first row that matched nothing.
    first_unmatched: Option<String>,
    /// The name of a structure in the table, and one that was read and differs from it in case alone.
    #[serde(skip)]
    in_other_case: Option<(String, String)>,
}

impl TableMatches {
    /// Lines about the first tables that have rows.
    pub fn lines(tables: &[TableMatches]) -> Vec<String> {
        let mut with_rows = tables.iter().filter(|table| table.rows > 0);
        let mut lines: Vec<String> = with_rows
            .by_ref()
            .take(TABLES_NAMED_MAX)
            .map(TableMatches::line)
            .collect();
        match with_rows.count() {
            0 => {}
            more => lines.push(format!(
                "annotations: {more} more tables, which run.json lists"
            )),
        }
        lines
    }

    /// A line for the log: how many rows matched, and the first that did not.
    fn line(&self) -> String {
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
        format!("annotations {table}: {rows_matched} of {rows} rows match{first}")
    }

    /// Whether the table has rows of which none matched.
    fn is_unmatched(&self) -> bool {
        self.rows > 0 && self.rows_matched == 0
    }
}

/// Checks that each table with rows has one that matched, once all inputs have been read. `rejected` is
/// the number of rejected inputs.
///
/// # Errors
/// [`ErrorKind::Input`] names the tables of which no row did, unless `unmatched` lets them pass.
pub fn check_matched(
    tables: &[TableMatches],
    matches: &Matches,
    rejected: u64,
    unmatched: UnmatchedTables,
) -> Result<()> {
    let mut failed = tables.iter().filter(|table| table.is_unmatched());
    let Some(first) = failed.next() else {
        return Ok(());
    };
    let mut message = "no row of the annotations names ".to_owned();
    let fix = if first.rows_read == 0 {
        message += "a structure and model that were read";
        if let Some((row, structure)) = &first.in_other_case {
            let (row, structure) = (excerpt(row), excerpt(structure));
            message += &format!(
                "; case counts: the annotations have {row}, and the structure is {structure}"
            );
        } else if let Some(name) = &matches.first_without {
            message += &format!("; the first structure without rows is {}", excerpt(name));
        }
        "name structures as the column `structure` of the results does, and models that are read \
         (`models`)"
    } else {
        message += "a residue of its structure";
        "give the author's chains and residue numbers, `auth_asym_id` and `auth_seq_id`, of chains \
         that are read"
    };
    let first_row = first.first_unmatched.as_deref().unwrap_or_default();
    message += &format!("; the first row is {first_row}");
    if rejected > 0 {
        message += &format!("; rejected inputs, which may have matched: {rejected}");
    }
    let others: Vec<&str> = failed.map(|table| &*table.table).collect();
    if !others.is_empty() {
        let named = others.iter().take(TABLES_NAMED_MAX).copied();
        let named: Vec<&str> = named.collect();
        let more = if others.len() > named.len() {
            ", ..."
        } else {
            ""
        };
        message += &format!("; no row matches of {}{more} either", named.join(", "));
    }
    let error = Error::new(ErrorKind::Input, message);
    let error = error.fix(format!("{fix}, or set annotations_unmatched = \"allow\""));
    let error = error.within(first.table.clone());
    match unmatched {
        UnmatchedTables::Error => Err(error),
        UnmatchedTables::Warn => {
            tracing::warn!("{error}");
            Ok(())
        }
        UnmatchedTables::Allow => Ok(()),
    }
}

impl Annotations {
    /// Number of rows whose structure and model were read.
    pub fn rows_read(&self, matches: &Matches) -> u32 {
        matches.read.count_in(&(0..self.rows()))
    }

    /// Number of rows that matched.
    pub fn rows_matched(&self, matches: &Matches) -> u32 {
        matches.matched.count_in(&(0..self.rows()))
    }

    /// What the rows of each table have matched.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the temporary file of the rows cannot be read.
    pub fn by_table(&self, matches: &Matches) -> Result<Vec<TableMatches>> {
        let tables = &self.loaded.tables;
        let missing = |(_, rows): &(_, _)| matches.matched.first_missing(rows);
        let first: Vec<Option<u32>> = tables.iter().map(missing).collect();
        let indices: Vec<u32> = first.iter().copied().flatten().collect();
        let mut described = describe_rows(&self.loaded, &indices)?.into_iter();
        let mut found = Vec::with_capacity(tables.len());
        for (number, (path, rows)) in tables.iter().enumerate() {
            let matched = matches.matched.count_in(rows);
            found.push(TableMatches {
                table: shown(path),
                rows: rows.end - rows.start,
                rows_read: matches.read.count_in(rows),
                rows_matched: matched,
                rows_unmatched: rows.end - rows.start - matched,
                first_unmatched: first[number].and_then(|_| described.next()),
                in_other_case: matches.in_other_case.get(&number).cloned(),
            });
        }
        Ok(found)
    }

    /// Checks, as [`check_matched`] does, that each table with rows has one that matched.
    ///
    /// # Errors
    /// The errors of [`check_matched`], and the temporary file of the rows cannot be read.
    pub fn check_matched(
        &self,
        matches: &Matches,
        rejected: u64,
        unmatched: UnmatchedTables,
    ) -> Result<()> {
        check_matched(&self.by_table(matches)?, matches, rejected, unmatched)
    }

    /// Logs a warning about each probable mistake.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the temporary file of the rows cannot be read.
    pub fn log(&self, matches: &Matches) -> Result<()> {
        if let Some(row) = matches.read.first_without(&matches.matched) {
            let rows = self.rows_read(matches) - self.rows_matched(matches);
            let first = describe_rows(&self.loaded, &[row])?.pop();
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
                "several rows of annotations match one residue or structure; the first row is used"
            );
        }
        Ok(())
    }
}
