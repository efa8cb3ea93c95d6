//! Gives the models of a structure the rows of its name.

use super::columns::{Level, RowKey};
use super::joined::{Joined, JoinedColumn, JoinedValues, JoinedVariants, VariantKey};
use super::loaded::Loaded;
use super::matches::Matches;
use super::rows::{Row, Rows, read_rows};
use crate::cli::path_text::shown;
use crate::error::Result;
use crate::structure::{Assembly, Channel, Structure};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Gives `models` the rows of the structure `name`.
///
/// # Errors
/// The rows cannot be read.
pub(super) fn join(
    all: &Loaded,
    name: &str,
    models: &mut [Structure],
) -> Result<(Vec<Joined>, Matches)> {
    let runs = all.store.find(name)?;
    let [mut structures, mut residues, mut variants] = read_rows(all, &runs)?;
    let mut matches = Matches::default();
    if runs.is_empty() {
        matches.structures_without = 1;
        matches.first_without = Some(name.to_owned());
    }
    let mut joined = Vec::with_capacity(models.len());
    for structure in models.iter_mut() {
        let ranges = residues.ranges(structure);
        let channels = residues.channels(structure, &ranges, all.channels.len());
        let columns = residues.first_values(structure, &ranges);
        let has_value = |residue: &usize| {
            channels.iter().any(|values| !values[*residue].is_nan())
                || columns.iter().any(|column| column.at[*residue].is_some())
        };
        matches.residues += (0..structure.residues.len()).filter(has_value).count() as u64;
        let whole = 0..structures.rows.len();
        joined.push(Joined {
            structures: structures.first_values(structure, &[whole]),
            residues: columns,
            variants: variants.of_variants(structure),
        });
        if !all.channels.is_empty() {
            let named = all.channels.iter().cloned().zip(channels);
            let named = named.map(|(name, values)| Channel { name, values });
            structure.channels = match runs.is_empty() {
                true => Vec::new(),
                false => named.collect(),
            };
        }
    }
    for rows in [&structures, &residues, &variants] {
        rows.count(all, name, models, &mut matches);
    }
    Ok((joined, matches))
}

impl Rows<'_> {
    /// For each residue the rows that name it, also those of other models.
    fn ranges(&self, structure: &Structure) -> Vec<Range<usize>> {
        let chains = self.chains_of(structure);
        let of_residue = |residue: &crate::structure::Residue| {
            let Some(chain) = chains[residue.chain as usize] else {
                return 0..0;
            };
            let ins_code = Some(residue.ins_code).filter(|code| *code != b' ');
            let key = (chain, residue.auth_seq_id, ins_code.unwrap_or(0));
            let start = self.rows.partition_point(|row| row.residue() < key);
            let own = self.rows[start..].iter();
            start..start + own.take_while(|row| row.residue() == key).count()
        };
        structure.residues.iter().map(of_residue).collect()
    }

    /// The names by which the rows call a structure's chains. A copy in an assembly has the rows of
    /// the original chain, unless it has rows of its own.
    fn chains_of<'a>(&self, structure: &'a Structure) -> Vec<Option<&'a str>> {
        let has_rows = |chain: &&str| {
            let start = self.rows.partition_point(|row| row.key.chain < *chain);
            self.rows
                .get(start)
                .is_some_and(|row| row.key.chain == *chain)
        };
        let original = |name: &'a str| match structure.assembly {
            Assembly::First => Some(name.rsplit_once('-')?.0).filter(has_rows),
            Assembly::Deposited => None,
        };
        let chains = structure.chains.iter().map(|chain| &*chain.auth_asym_id);
        chains
            .map(|name| Some(name).filter(has_rows).or_else(|| original(name)))
            .collect()
    }

    /// For each range the index of its first row of the model for which `is_there`, and marks the
    /// rows of the model as used.
    fn first(
        &mut self,
        structure: &Structure,
        ranges: &[Range<usize>],
        is_there: impl Fn(&Row<'_>) -> bool,
    ) -> Vec<Option<u32>> {
        let of_range = |range: &Range<usize>| {
            let mut first = None;
            for at in range.clone() {
                let row = &self.rows[at];
                if row.is_of(structure) {
                    self.used[at] = true;
                    if first.is_none() && is_there(row) {
                        first = Some(row.index as u32);
                    }
                }
            }
            first
        };
        ranges.iter().map(of_range).collect()
    }

    /// The channels of a model's residues, NaN for none.
    fn channels(
        &mut self,
        structure: &Structure,
        ranges: &[Range<usize>],
        width: usize,
    ) -> Vec<Vec<f32>> {
        let values = std::mem::take(&mut self.channels);
        let of_channel = |channel: usize| {
            let value = |index: usize| values[index * width + channel];
            let is_there = |row: &Row<'_>| !value(row.index).is_nan();
            let first = self.first(structure, ranges, is_there);
            let first = first.into_iter();
            first
                .map(|row| row.map_or(f32::NAN, |row| value(row as usize)))
                .collect()
        };
        let channels = (0..width).map(of_channel).collect();
        self.channels = values;
        channels
    }

    /// The columns of a model. For each range that is the value of the first row that has one.
    fn first_values(
        &mut self,
        structure: &Structure,
        ranges: &[Range<usize>],
    ) -> Vec<JoinedColumn> {
        let columns = self.columns.clone();
        let of_column = |values: Arc<JoinedValues>| JoinedColumn {
            at: self
                .first(structure, ranges, |row| !values.is_null(row.index))
                .into(),
            values,
        };
        columns.into_iter().map(of_column).collect()
    }

    /// The rows of the table of variants of a model: one for each row and each residue that the row
    /// names, in the order of the tables; one without a residue if there is none.
    fn of_variants(&mut self, structure: &Structure) -> JoinedVariants {
        let mut pairs: Vec<(usize, Option<u32>, usize)> = Vec::new();
        let mut is_matched = vec![false; self.rows.len()];
        for (residue, range) in (0..).zip(self.ranges(structure)) {
            for at in range.filter(|&at| self.rows[at].is_of(structure)) {
                pairs.push((self.rows[at].index, Some(residue), at));
                is_matched[at] = true;
                self.used[at] = true;
            }
        }
        let all = self.rows.iter().enumerate();
        let unmatched = all.filter(|(at, row)| !is_matched[*at] && row.is_of(structure));
        pairs.extend(unmatched.map(|(at, row)| (row.index, None, at)));
        pairs.sort_unstable();
        let mut chains: HashMap<&str, Arc<str>> = HashMap::new();
        let mut key = |at: usize| {
            let RowKey {
                chain,
                number,
                ins_code,
                ..
            } = self.rows[at].key;
            let chain = chains.entry(chain).or_insert_with(|| chain.into());
            VariantKey {
                chain: Arc::clone(chain),
                number,
                ins_code,
            }
        };
        let at: Arc<[Option<u32>]> = pairs.iter().map(|(row, ..)| Some(*row as u32)).collect();
        let of_column = |values: &Arc<JoinedValues>| JoinedColumn {
            values: Arc::clone(values),
            at: Arc::clone(&at),
        };
        JoinedVariants {
            columns: self.columns.iter().map(of_column).collect(),
            residues: pairs.iter().map(|(_, residue, _)| *residue).collect(),
            keys: pairs.iter().map(|(.., at)| key(*at)).collect(),
        }
    }

    /// Counts the rows, those that name no residue of the models that they are for, and those that
    /// give a value again.
    fn count(&self, all: &Loaded, name: &str, models: &[Structure], matches: &mut Matches) {
        matches.rows_read += self.rows.len() as u64;
        if self.level == Level::Structures {
            self.count_repeated(all, name, matches);
            return;
        }
        let is_read = |row: &Row<'_>| models.iter().any(|structure| row.is_of(structure));
        let unused = self.rows.iter().zip(&self.used);
        let unmatched = unused.filter(|(row, used)| !**used && is_read(row));
        let unmatched: Vec<&Row<'_>> = unmatched.map(|(row, _)| row).collect();
        matches.rows_unmatched += unmatched.len() as u64;
        if let Some(row) = unmatched.iter().min_by_key(|row| row.index) {
            let describe = || describe(all, name, row);
            matches.first_unmatched.get_or_insert_with(describe);
        }
        if self.level == Level::Residues {
            self.count_repeated(all, name, matches);
        }
    }

    /// Counts the rows that give a residue or a structure a value again.
    fn count_repeated(&self, all: &Loaded, name: &str, matches: &mut Matches) {
        let same =
            |a: &Row<'_>, b: &Row<'_>| (a.residue(), a.key.model) == (b.residue(), b.key.model);
        let width = all.channels.len();
        let mut first: Option<&Row<'_>> = None;
        for of_one in self.rows.chunk_by(same).filter(|rows| rows.len() > 1) {
            let mut given = vec![false; width + self.columns.len()];
            for row in of_one {
                let channels = self.channels.iter().skip(row.index * width).take(width);
                let channels = channels.map(|value| !value.is_nan());
                let columns = self.columns.iter().map(|column| !column.is_null(row.index));
                let mut is_again = false;
                for (given, has) in given.iter_mut().zip(channels.chain(columns)) {
                    is_again |= *given && has;
                    *given |= has;
                }
                if is_again {
                    matches.rows_repeated += 1;
                    first = first.filter(|first| first.index < row.index).or(Some(row));
                }
            }
        }
        if let Some(row) = first {
            matches
                .first_repeated
                .get_or_insert_with(|| describe(all, name, row));
        }
    }
}

/// `conservation.tsv:57: 1abc, chain A, residue 52A`.
fn describe(all: &Loaded, structure: &str, row: &Row<'_>) -> String {
    let file = all.files.get(row.file as usize);
    let file = file.map_or_else(String::new, |file| shown(file));
    let is_of_structure = all.layouts[row.file as usize].level == Level::Structures;
    let RowKey {
        chain,
        number,
        ins_code,
        ..
    } = row.key;
    let residue = match (is_of_structure, ins_code) {
        (true, _) => String::new(),
        (false, 0) => format!(", chain {chain}, residue {number}"),
        (false, code) => format!(", chain {chain}, residue {number}{}", char::from(code)),
    };
    format!("{file}:{}: {structure}{residue}", row.line)
}
