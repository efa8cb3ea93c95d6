//! Gives the models of a structure the rows of its name.
//!
//! Rows are decoded one at a time, so that memory depends on the structure and its encoded rows, and
//! not on the decoded rows. They are decoded twice: when the structure is read, for the channels and the
//! counts, and when it is written, for the columns of the tables.

use super::columns::{Level, RowKey};
use super::joined::{Joined, JoinedValues, JoinedVariants, VariantKey};
use super::loaded::LoadedTables;
use super::matches::Matches;
use super::row_store::StructureAnnotationRows;
use super::rows::{AnnotationRow, RowRuns, ValuesBuilder, visit_rows};
use super::values::{AnnotationCell, Type};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tapeloop_error::Result;
use tapeloop_error::internal::excerpt;
use tapeloop_files::shown;
use tapeloop_structure::{Assembly, Channel, Structure};

/// Rows of the table of variants that are decoded at once, so that memory is bounded where a structure has
/// many. So many that what a chunk costs is little next to its rows.
const VARIANTS_AT_ONCE: usize = 4096;

/// Gives `models` the channels of the structure `name`, and finds the rows that match. A structure without rows
/// counts in the matches, and is no error.
///
/// # Errors
/// Of kind `Io`: the rows cannot be read.
pub(super) fn attach(all: &LoadedTables, name: &str, models: &mut [Structure]) -> Result<Matches> {
    let StructureAnnotationRows {
        runs,
        in_other_case,
    } = all.store.find(name)?;
    let mut matches = Matches::default();
    if runs.is_empty() {
        matches.structures_without = 1;
        matches.first_without = Some(name.to_owned());
    }
    for (known, row) in in_other_case {
        let names = (known, name.to_owned());
        matches
            .in_other_case
            .entry(all.table_of(row))
            .or_insert(names);
    }
    let width = all.channels.len();
    let named = NamedChains::find(all, &runs, models)?;
    let residues = models
        .iter()
        .map(|structure| ResidueIndex::new(structure, &named));
    let residues: Vec<ResidueIndex<'_>> = residues.collect();
    let count = |structure: &Structure| structure.residues.len();
    let channels = |structure| FirstValues::new(f32::NAN, count(structure) * width);
    let mut channels: Vec<FirstValues<f32>> = models.iter().map(channels).collect();
    let mut have_value: Vec<Vec<bool>> = models
        .iter()
        .map(|structure| vec![false; count(structure)])
        .collect();
    // By level and key, the channels and columns that rows have set, as bits: a row that sets one again is
    // repeated.
    let mut values_set: HashMap<(bool, RowKey<'_>), Vec<u64>> = HashMap::new();
    visit_rows(all, &runs, |row| {
        let level = row.level();
        let has_cell = row.has_values(all);
        let has_value = has_cell || row.channels.iter().any(|value| !value.is_nan());
        let (mut is_read, mut is_used) = (false, level == Level::Structures);
        for (model, structure) in models.iter().enumerate() {
            if !row.is_of(structure) {
                continue;
            }
            is_read = true;
            for residue in residues[model].named_by(row) {
                is_used = true;
                if level == Level::Residues {
                    have_value[model][residue] |= has_value;
                    for (&channel, &value) in row.layout.channels.iter().zip(row.channels) {
                        if !value.is_nan() {
                            let index = residue * width + channel;
                            channels[model].offer(index, value, row.key.model);
                        }
                    }
                }
            }
        }
        if is_read {
            matches.read.insert(row.index);
            if is_used {
                matches.matched.insert(row.index);
            }
        }
        if is_read && is_used && level != Level::Variants && has_value {
            let bits_of_row = values_set.entry((level == Level::Residues, row.key));
            let bits = width + all.columns.len();
            let already_set = bits_of_row.or_insert_with(|| vec![0; bits.div_ceil(64)]);
            if row.repeats_value(all, already_set) {
                matches.rows_repeated += 1;
                let first = &mut matches.first_repeated;
                first.get_or_insert_with(|| describe(all, name, row));
            }
        }
        Ok(())
    })?;
    let have_value = have_value.iter().flatten();
    matches.residues = have_value.filter(|has| **has).count() as u64;
    // They borrow the models, which now change.
    drop(residues);
    if width > 0 {
        for (structure, values) in models.iter_mut().zip(channels) {
            let values = values.values;
            let channel_of = |(index, name): (usize, &String)| Channel {
                name: name.clone(),
                values: values.iter().skip(index).step_by(width).copied().collect(),
            };
            let named = all.channels.iter().enumerate().map(channel_of);
            // Without rows the structure has no channels, as a file without annotations: all their values are null.
            structure.channels = if runs.is_empty() {
                Vec::new()
            } else {
                named.collect()
            };
        }
    }
    Ok(matches)
}

/// The columns of the tables of structures and of residues of a model of the structure `name`.
///
/// # Errors
/// Of kind `Io`: the rows cannot be read.
pub(super) fn join(all: &LoadedTables, name: &str, structure: &Structure) -> Result<Joined> {
    let (slots, kinds) = slots(all, &[Level::Structures, Level::Residues]);
    let runs = if kinds.iter().all(Vec::is_empty) {
        Vec::new()
    } else {
        all.store.find(name)?.runs
    };
    if runs.is_empty() {
        return Ok(Joined::default());
    }
    let named = NamedChains::find(all, &runs, std::slice::from_ref(structure))?;
    let residues = ResidueIndex::new(structure, &named);
    let rows = [1, structure.residues.len()];
    let mut values: Vec<FirstValues<AnnotationCell<'_>>> = kinds
        .iter()
        .zip(rows)
        .map(|(kinds, rows)| FirstValues::new(AnnotationCell::Null, kinds.len() * rows))
        .collect();
    visit_rows(all, &runs, |row| {
        let table = usize::from(row.level() == Level::Residues);
        if row.level() == Level::Variants || !row.is_of(structure) {
            return Ok(());
        }
        let mut give = |row_index: usize| {
            for (&column, &cell) in row.layout.columns.iter().zip(row.cells) {
                if has_value(cell, all.columns[column].kind) {
                    let index = slots[column] * rows[table] + row_index;
                    values[table].offer(index, cell, row.key.model);
                }
            }
        };
        match row.level() {
            Level::Structures => give(0),
            _ => residues.named_by(row).for_each(give),
        }
        Ok(())
    })?;
    let columns = |table: usize| -> Vec<JoinedValues> {
        let column = |(index, kind): (usize, &Type)| {
            let mut builder = ValuesBuilder::new(*kind);
            let column_values = &values[table].values[index * rows[table]..][..rows[table]];
            column_values.iter().for_each(|cell| builder.push(*cell));
            builder.finish()
        };
        kinds[table].iter().enumerate().map(column).collect()
    };
    Ok(Joined {
        structures: columns(0),
        residues: columns(1),
        variants: JoinedVariants::default(),
    })
}

/// Passes the rows of the table of variants of a model to `take`, some at a time: one for each row
/// and each residue that the row names, in the order of the tables; one without a residue if there
/// is none.
///
/// # Errors
/// Of kind `Io`: the rows cannot be read. Or the error of `take`.
pub(super) fn variants(
    all: &LoadedTables,
    name: &str,
    structure: &Structure,
    mut take: impl FnMut(JoinedVariants) -> Result<()>,
) -> Result<()> {
    let runs = all.store.find(name)?.runs;
    let (slots, kinds) = slots(all, &[Level::Variants]);
    let kinds = &kinds[0];
    let named = NamedChains::find(all, &runs, std::slice::from_ref(structure))?;
    let residues = ResidueIndex::new(structure, &named);
    let mut chunk = VariantChunk::new(kinds);
    let mut cells = vec![AnnotationCell::Null; kinds.len()];
    visit_rows(all, &runs, |row| {
        if row.level() != Level::Variants || !row.is_of(structure) {
            return Ok(());
        }
        // A column that the table lacks is null in its rows.
        cells.fill(AnnotationCell::Null);
        for (&column, &cell) in row.layout.columns.iter().zip(row.cells) {
            cells[slots[column]] = cell;
        }
        let mut named = residues.named_by(row).peekable();
        let mut add = |residue| {
            chunk.push(row.key, residue, &cells);
            if chunk.residues.len() >= VARIANTS_AT_ONCE {
                take(std::mem::replace(&mut chunk, VariantChunk::new(kinds)).finish())
            } else {
                Ok(())
            }
        };
        if named.peek().is_none() {
            return add(None);
        }
        named.try_for_each(|residue| add(Some(residue as u32)))
    })?;
    if chunk.residues.is_empty() {
        Ok(())
    } else {
        take(chunk.finish())
    }
}

/// For each column its index in its level, 0 for one of no level here, and the types of the columns of these
/// levels.
fn slots(all: &LoadedTables, levels: &[Level]) -> (Vec<usize>, Vec<Vec<Type>>) {
    let mut kinds = vec![Vec::new(); levels.len()];
    let mut slots = Vec::with_capacity(all.columns.len());
    for column in &all.columns {
        let table = levels.iter().position(|level| *level == column.level);
        slots.push(table.map_or(0, |table| kinds[table].len()));
        if let Some(table) = table {
            kinds[table].push(column.kind);
        }
    }
    (slots, kinds)
}

/// Whether a cell is not null in a column of this type.
fn has_value(cell: AnnotationCell<'_>, kind: Type) -> bool {
    match kind {
        Type::Flag => cell.flag().is_some(),
        Type::Integer | Type::Long => cell.integer().is_some(),
        Type::Real | Type::Double => cell.real().is_some(),
        Type::Text => cell.text().is_some(),
    }
}

impl AnnotationRow<'_, '_> {
    /// Whether a column of the tables has a value in the row.
    fn has_values(&self, all: &LoadedTables) -> bool {
        let mut cells = self.layout.columns.iter().zip(self.cells);
        cells.any(|(&column, &cell)| has_value(cell, all.columns[column].kind))
    }

    /// Sets the bits of the row's values in `already_set`. Returns whether one was set already: an earlier row
    /// has that value too.
    fn repeats_value(&self, all: &LoadedTables, already_set: &mut [u64]) -> bool {
        let channels = self.layout.channels.iter().zip(self.channels);
        let channels = channels.map(|(&channel, value)| (channel, !value.is_nan()));
        let cells = self.layout.columns.iter().zip(self.cells);
        let cells = cells.map(|(&column, &cell)| {
            let has_value = has_value(cell, all.columns[column].kind);
            (all.channels.len() + column, has_value)
        });
        let mut is_repeated = false;
        for (index, _) in channels.chain(cells).filter(|(_, has_value)| *has_value) {
            let (word, bit) = (index / 64, 1 << (index % 64));
            is_repeated |= already_set[word] & bit != 0;
            already_set[word] |= bit;
        }
        is_repeated
    }
}

/// The values that are used: of each, that of the first row for this model, else of the first row for all
/// models.
struct FirstValues<T> {
    values: Vec<T>,
    /// 0 without a value, 1 for one of all models, 2 for one of this model.
    ranks: Vec<u8>,
}

impl<T: Clone> FirstValues<T> {
    fn new(none: T, count: usize) -> Self {
        FirstValues {
            values: vec![none; count],
            ranks: vec![0; count],
        }
    }

    /// Adds the value `index` of a row for `model`, or for all models if it is `None`. Rows come in the order
    /// of the tables, so an earlier one of the same rank stays.
    fn offer(&mut self, index: usize, value: T, model: Option<i32>) {
        let rank = 1 + u8::from(model.is_some());
        if rank > self.ranks[index] {
            self.ranks[index] = rank;
            self.values[index] = value;
        }
    }
}

/// The names that rows use for chains that have several names: copies in an assembly, and chains that share
/// their author's id, such as the parts of a chain that is split. Such a chain gets the rows of the first of
/// its names that a row uses.
#[derive(Default)]
struct NamedChains {
    by_residue_rows: HashSet<String>,
    by_variant_rows: HashSet<String>,
}

impl NamedChains {
    /// The chains that rows name by one of several names. Reads the rows of the structure only if a
    /// chain has several.
    fn find(all: &LoadedTables, runs: &RowRuns<'_>, models: &[Structure]) -> Result<Self> {
        let mut named = NamedChains::default();
        let chains = models.iter().flat_map(names_of_chains);
        let names: HashSet<&str> = chains.filter(|names| names.len() > 1).flatten().collect();
        if names.is_empty() {
            return Ok(named);
        }
        visit_rows(all, runs, |row| {
            let of_level = match row.level() {
                Level::Structures => return Ok(()),
                Level::Residues => &mut named.by_residue_rows,
                Level::Variants => &mut named.by_variant_rows,
            };
            let chain = row.key.chain;
            if names.contains(chain) && !of_level.contains(chain) {
                of_level.insert(chain.to_owned());
            }
            Ok(())
        })?;
        Ok(named)
    }
}

/// For each chain the names that rows may use for it, the most specific name first, and the author's id
/// last unless the chain is a copy: then the original's, as `A` of `A-2`.
fn names_of_chains(structure: &Structure) -> Vec<Vec<&str>> {
    let chains = structure.chains.iter();
    let authors: HashSet<&str> = chains.map(|chain| &*chain.auth_asym_id).collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let original = |name: &'_ str| -> Option<usize> {
        let (original, number) = name.rsplit_once('-')?;
        let is_copy = structure.assembly == Assembly::First
            || (is_number(number) && authors.contains(original));
        is_copy.then_some(original.len())
    };
    let chains = structure
        .chains
        .iter()
        .zip(structure.distinct_chain_names());
    let names = chains.map(|(chain, distinct)| {
        let author = &*chain.auth_asym_id;
        let mut names = vec![distinct];
        if distinct != author {
            names.push(author);
        }
        if let Some(len) = original(author) {
            if distinct != author
                && let Some((part, _)) = distinct.rsplit_once('-')
            {
                names.push(part);
            }
            names.push(&author[..len]);
        }
        names
    });
    names.collect()
}

/// Finds the residues of a model that a row names.
struct ResidueIndex<'a> {
    by_residue_rows: NameIndex<'a>,
    by_variant_rows: NameIndex<'a>,
}

/// The first residue of each name, and for each residue the next one of the same name.
struct NameIndex<'a> {
    first: HashMap<(&'a str, i32, u8), u32>,
    next: Vec<Option<u32>>,
}

impl<'a> ResidueIndex<'a> {
    fn new(structure: &'a Structure, named: &NamedChains) -> Self {
        ResidueIndex {
            by_residue_rows: NameIndex::new(structure, &named.by_residue_rows),
            by_variant_rows: NameIndex::new(structure, &named.by_variant_rows),
        }
    }

    /// The indices of the residues that a row names, in ascending order.
    fn named_by(&self, row: &AnnotationRow<'_, '_>) -> impl Iterator<Item = usize> {
        let RowKey {
            chain,
            number,
            ins_code,
            ..
        } = row.key;
        let table = match row.level() {
            Level::Structures => None,
            Level::Residues => Some(&self.by_residue_rows),
            Level::Variants => Some(&self.by_variant_rows),
        };
        let first = table.and_then(|index| index.first.get(&(chain, number, ins_code)).copied());
        let next = move |residue: &u32| table?.next[*residue as usize];
        std::iter::successors(first, next).map(|residue| residue as usize)
    }
}

impl<'a> NameIndex<'a> {
    /// The index of the residues of `structure`. Of the names that a chain has, the rows use the
    /// one in `named`.
    fn new(structure: &'a Structure, named: &HashSet<String>) -> Self {
        let chains = names_of_chains(structure).into_iter().map(|names| {
            let named = names.iter().find(|name| named.contains(**name));
            // A chain with one name is not looked up: all of its rows use that name.
            *named.unwrap_or(&names[0])
        });
        let chains: Vec<&str> = chains.collect();
        let mut first = HashMap::with_capacity(structure.residues.len());
        let mut next = vec![None; structure.residues.len()];
        // Backwards, so that `first` ends as the first of a name, and `next` leads on in ascending order. A blank
        // is no code, as in rows.
        for (index, residue) in structure.residues.iter().enumerate().rev() {
            let ins_code = Some(residue.ins_code).filter(|code| *code != b' ');
            let chain = chains[residue.chain as usize];
            let name = (chain, residue.auth_seq_id, ins_code.unwrap_or(0));
            next[index] = first.insert(name, index as u32);
        }
        NameIndex { first, next }
    }
}

/// Rows of the table of variants that are being decoded.
struct VariantChunk<'a> {
    columns: Vec<ValuesBuilder<'a>>,
    residues: Vec<Option<u32>>,
    keys: Vec<VariantKey>,
    chains: HashMap<&'a str, Arc<str>>,
}

impl<'a> VariantChunk<'a> {
    fn new(kinds: &[Type]) -> Self {
        VariantChunk {
            columns: kinds.iter().map(|kind| ValuesBuilder::new(*kind)).collect(),
            residues: Vec::new(),
            keys: Vec::new(),
            chains: HashMap::new(),
        }
    }

    /// Appends a row: its key, the residue that it matches, and its cells.
    fn push(&mut self, key: RowKey<'a>, residue: Option<u32>, cells: &[AnnotationCell<'a>]) {
        let chain = self.chains.entry(key.chain);
        self.keys.push(VariantKey {
            chain: Arc::clone(chain.or_insert_with(|| key.chain.into())),
            number: key.number,
            ins_code: key.ins_code,
        });
        self.residues.push(residue);
        let columns = self.columns.iter_mut().zip(cells);
        columns.for_each(|(column, cell)| column.push(*cell));
    }

    /// The rows as columns.
    fn finish(self) -> JoinedVariants {
        let columns = self.columns.into_iter();
        JoinedVariants {
            columns: columns.map(ValuesBuilder::finish).collect(),
            residues: self.residues,
            keys: self.keys,
        }
    }
}

/// Describes the rows of these indices among all rows, which ascend.
///
/// # Errors
/// Of kind `Io`: the rows cannot be read.
pub(super) fn describe_rows(all: &LoadedTables, indices: &[u32]) -> Result<Vec<String>> {
    let mut described = Vec::new();
    let runs = all.store.runs_of(indices)?;
    for (run, index) in runs.into_iter().zip(indices) {
        visit_rows(all, &[run.rows], |row| {
            if row.index == *index {
                described.push(describe(all, &run.structure, row));
            }
            Ok(())
        })?;
    }
    Ok(described)
}

/// `conservation.tsv:57: 1abc, model 2, chain A, residue 52A`.
fn describe(all: &LoadedTables, structure: &str, row: &AnnotationRow<'_, '_>) -> String {
    let file = all.files.get(row.file as usize);
    let file = file.map_or_else(String::new, |file| shown(file));
    let RowKey {
        model,
        chain,
        number,
        ins_code,
    } = row.key;
    let model = model.map_or(String::new(), |model| format!(", model {model}"));
    let (structure, chain) = (excerpt(structure), excerpt(chain));
    let residue = match (row.level(), ins_code) {
        (Level::Structures, _) => String::new(),
        (_, 0) => format!(", chain {chain}, residue {number}"),
        (_, code) => format!(", chain {chain}, residue {number}{}", char::from(code)),
    };
    format!("{file}:{}: {structure}{model}{residue}", row.line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapeloop_structure::Chain;

    #[test]
    fn a_chain_is_a_copy_only_with_a_number_behind_the_name_of_another() {
        let chains = ["A", "A-2", "A-", "B-x"].map(|name| Chain {
            auth_asym_id: name.into(),
            ..Chain::default()
        });
        let structure = Structure {
            chains: chains.into(),
            ..Structure::default()
        };
        let expected: [&[&str]; 4] = [&["A"], &["A-2", "A"], &["A-"], &["B-x"]];
        assert_eq!(names_of_chains(&structure), expected);
    }
}
