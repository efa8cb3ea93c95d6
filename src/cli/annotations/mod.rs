//! Annotations of residues: values of any kind, in tables beside the structures,
//! which `smooth.channels` names by their columns.
//!
//! `text` and `parquet` read the tables, `header` knows their columns. All rows are
//! held, by structure, and each structure gets its own when it has been read.

mod header;
mod parquet;
mod text;

use super::config::did_you_mean;
use super::path_text::shown;
use crate::error::{Context, Error, Result};
use crate::structure::{Assembly, Channel, Structure};
use header::Header;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The annotations of a run.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    /// The columns that are wanted.
    channels: Vec<String>,
    files: Vec<PathBuf>,
    /// The rows of each structure, sorted by residue.
    structures: HashMap<Box<str>, Vec<Entry>>,
    chains: HashMap<Box<str>, u32>,
    /// A value a channel for each row, NaN where it has none.
    values: Vec<f32>,
    /// Of all rows, as they were read.
    digest: Digest,
    matches: Mutex<Matches>,
}

/// A row.
#[derive(Clone, Copy, Debug)]
struct Entry {
    chain: u32,
    number: i32,
    /// 0 for none.
    ins_code: u8,
    /// `None` is of all models.
    model: Option<i32>,
    row: usize,
    file: u32,
    /// Of a text, from 1, the header among them; of Parquet the row, from 1.
    line: u32,
}

impl Entry {
    fn residue(&self) -> (u32, i32, u8) {
        (self.chain, self.number, self.ins_code)
    }
}

/// Which residue a row is of, as it is written.
#[derive(Clone, Copy, Debug)]
struct Key<'a> {
    structure: &'a str,
    model: Option<i32>,
    chain: &'a str,
    number: i32,
    ins_code: u8,
}

/// How annotations and structures have met so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Matches {
    /// Residues with a value.
    pub(super) residues: u64,
    /// Rows of structures that were read, without a residue in any of their models.
    pub(super) rows_unmatched: u64,
    /// The first of them, by the order of the structures.
    first_unmatched: Option<(u64, String)>,
    /// Structures that no row is of.
    pub(super) structures_without: u64,
    first_without: Option<(u64, String)>,
}

impl Annotations {
    /// Reads the columns `channels` of tables: files, and folders of files.
    ///
    /// # Errors
    /// A table that cannot be read, with its line; a channel that none of them has.
    pub(super) fn load(paths: &[PathBuf], channels: Vec<String>) -> Result<Self> {
        let start = Instant::now();
        let mut all = Annotations {
            channels,
            ..Annotations::default()
        };
        let mut columns = Vec::new();
        for path in paths {
            for file in files_of(path).within(|| shown(path))? {
                let place = shown(&file);
                columns.extend(all.read(file).within(|| place)?);
            }
        }
        let place = || paths.iter().map(|path| shown(path));
        all.check_channels(&columns)
            .within(|| place().collect::<Vec<_>>().join(", "))?;
        let repeated = all.sort();
        if let Some((rows, first)) = repeated {
            tracing::warn!(
                rows,
                first,
                "annotations have a residue again; what comes first holds"
            );
        }
        tracing::info!(
            rows = all.row_count(),
            structures = all.structures.len(),
            seconds = start.elapsed().as_secs_f32(),
            "read annotations"
        );
        Ok(all)
    }

    /// Reads a file, and says which columns it has.
    fn read(&mut self, path: PathBuf) -> Result<Vec<String>> {
        let kind = Kind::of(&path)?;
        self.files.push(path.clone());
        match kind {
            Kind::Parquet => parquet::read(&path, self),
            Kind::Text { separator } => text::read(&path, separator, self),
        }
    }

    /// The tables that were read.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    fn check_channels(&self, columns: &[String]) -> Result<()> {
        let is_missing = |channel: &&String| !columns.contains(channel);
        let Some(channel) = self.channels.iter().find(is_missing) else {
            return Ok(());
        };
        let known: Vec<&str> = columns.iter().map(String::as_str).collect();
        let hint = did_you_mean(channel, &known);
        let text = format!("`smooth.channels`: no table has a column {channel:?}{hint}");
        let fix = "name columns of `annotations`, or b_ca, which every structure has";
        Err(Error::config(text).fix(fix))
    }

    /// Adds a row of the last file.
    fn add(&mut self, key: Key<'_>, line: usize, values: &[f32]) {
        self.digest.add(&key, values);
        let next = self.chains.len() as u32;
        let chain = match self.chains.get(key.chain) {
            Some(&chain) => chain,
            None => *self.chains.entry(key.chain.into()).or_insert(next),
        };
        let entry = Entry {
            chain,
            number: key.number,
            ins_code: key.ins_code,
            model: key.model,
            row: self.row_count(),
            file: self.files.len() as u32 - 1,
            line: line as u32,
        };
        self.values.extend_from_slice(values);
        match self.structures.get_mut(key.structure) {
            Some(entries) => entries.push(entry),
            None => {
                self.structures.insert(key.structure.into(), vec![entry]);
            }
        }
    }

    fn row_count(&self) -> usize {
        self.values.len() / self.channels.len().max(1)
    }

    fn values_of(&self, entry: &Entry) -> &[f32] {
        let width = self.channels.len();
        &self.values[entry.row * width..][..width]
    }

    /// Sorts each structure's rows by residue, those of one model before those of
    /// all, and says how many give a value that a row before gives, and the first.
    fn sort(&mut self) -> Option<(usize, String)> {
        for entries in self.structures.values_mut() {
            let of_all = |entry: &Entry| entry.model.is_none();
            entries.sort_unstable_by_key(|e| (e.residue(), of_all(e), e.model, e.row));
            entries.shrink_to_fit();
        }
        let mut count = 0;
        let mut first: Option<(&str, &Entry)> = None;
        for (name, entries) in &self.structures {
            let same = |a: &Entry, b: &Entry| (a.residue(), a.model) == (b.residue(), b.model);
            for rows in entries.chunk_by(same).filter(|rows| rows.len() > 1) {
                for entry in self.repeated(rows) {
                    count += 1;
                    if first.is_none_or(|(_, known)| entry.row < known.row) {
                        first = Some((name, entry));
                    }
                }
            }
        }
        first.map(|(name, entry)| (count, self.describe(name, entry)))
    }

    /// Of the rows of one residue those with a value that a row before gives.
    fn repeated<'a>(&self, rows: &'a [Entry]) -> impl Iterator<Item = &'a Entry> {
        let mut given = vec![false; self.channels.len()];
        rows.iter().filter(move |entry| {
            let mut is_again = false;
            for (given, value) in given.iter_mut().zip(self.values_of(entry)) {
                is_again |= *given && !value.is_nan();
                *given |= !value.is_nan();
            }
            is_again
        })
    }

    /// `conservation.tsv:57: 1abc, chain A, residue 52A`.
    fn describe(&self, structure: &str, entry: &Entry) -> String {
        let mut chains = self.chains.iter();
        let chain = chains.find(|(_, id)| **id == entry.chain);
        let chain = chain.map_or("?", |(name, _)| name);
        let file = shown(&self.files[entry.file as usize]);
        let code = match entry.ins_code {
            0 => String::new(),
            code => char::from(code).to_string(),
        };
        let (line, number) = (entry.line, entry.number);
        format!("{file}:{line}: {structure}, chain {chain}, residue {number}{code}")
    }

    /// Gives the models that were read of the structure `name`, the `ordinal`-th
    /// input, their annotations. A row counts as unmatched if it is of one of them
    /// or of all, and none has its residue.
    pub(super) fn attach(&self, name: &str, ordinal: u64, models: &mut [Structure]) {
        let Some(entries) = self.structures.get(name) else {
            let mut matches = self.lock();
            matches.structures_without += 1;
            keep_first(&mut matches.first_without, ordinal, || name.to_owned());
            return;
        };
        let mut used = vec![false; entries.len()];
        let mut annotated = 0;
        for structure in models.iter_mut() {
            annotated += self.annotate(structure, entries, &mut used);
        }
        let is_read = |entry: &Entry| {
            let mut models = models.iter();
            entry
                .model
                .is_none_or(|of| models.any(|structure| structure.model == of))
        };
        let unused = entries.iter().zip(&used);
        let mut unmatched = unused.filter(|(entry, used)| !**used && is_read(entry));
        let first = unmatched.next();
        let mut matches = self.lock();
        matches.residues += annotated;
        if let Some((entry, _)) = first {
            matches.rows_unmatched += 1 + unmatched.count() as u64;
            let describe = || self.describe(name, entry);
            keep_first(&mut matches.first_unmatched, ordinal, describe);
        }
    }

    /// Gives a model its annotations, marks the rows that it uses, and counts its
    /// residues with a value.
    fn annotate(&self, structure: &mut Structure, entries: &[Entry], used: &mut [bool]) -> u64 {
        let is_of_model = |entry: &Entry| entry.model.is_none_or(|of| of == structure.model);
        let chains = self.chains_of(structure, entries);
        let width = self.channels.len();
        let mut found = vec![f32::NAN; width * structure.residues.len()];
        let rows = found.chunks_exact_mut(width);
        for (residue, found) in structure.residues.iter().zip(rows) {
            let Some(chain) = chains[residue.chain as usize] else {
                continue;
            };
            let key = (chain, residue.auth_seq_id, ins_code(residue.ins_code));
            let start = entries.partition_point(|entry| entry.residue() < key);
            let own = entries[start..].iter().zip(&mut used[start..]);
            for (entry, used) in own.take_while(|(entry, _)| entry.residue() == key) {
                if !is_of_model(entry) {
                    continue;
                }
                *used = true;
                for (found, &value) in found.iter_mut().zip(self.values_of(entry)) {
                    if found.is_nan() {
                        *found = value;
                    }
                }
            }
        }
        let annotated = found.chunks_exact(width);
        let annotated = annotated.filter(|row| row.iter().any(|value| !value.is_nan()));
        let annotated = annotated.count() as u64;
        let named = self.channels.iter().enumerate();
        structure.channels = named
            .map(|(at, name)| Channel {
                name: name.clone(),
                values: found.iter().skip(at).step_by(width).copied().collect(),
            })
            .collect();
        annotated
    }

    /// Each chain by the number that it has here. Copies in an assembly have the
    /// rows of their chain, unless they have their own.
    fn chains_of(&self, structure: &Structure, entries: &[Entry]) -> Vec<Option<u32>> {
        let has_rows = |chain: &u32| {
            let start = entries.partition_point(|entry| entry.chain < *chain);
            entries
                .get(start)
                .is_some_and(|entry| entry.chain == *chain)
        };
        let number = |name: &str| self.chains.get(name).copied().filter(has_rows);
        let of_chain = |name: &str| match structure.assembly {
            Assembly::First => number(name.rsplit_once('-')?.0),
            Assembly::Deposited => None,
        };
        let chains = structure.chains.iter().map(|chain| &chain.auth_asym_id);
        chains
            .map(|name| number(name).or_else(|| of_chain(name)))
            .collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Matches> {
        self.matches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How annotations and structures have met so far.
    pub(super) fn matches(&self) -> Matches {
        self.lock().clone()
    }

    /// What the values follow from: the columns, and a hash of all rows.
    pub(super) fn provenance(&self) -> String {
        let (channels, rows) = (&self.channels, self.row_count());
        let hash = format!("{:016x}", self.digest.0);
        serde_json::json!({"channels": channels, "rows": rows, "fnv1a": hash}).to_string()
    }
}

impl Matches {
    /// Logs what nobody may expect.
    pub(super) fn note(&self) {
        if let Some((_, first)) = &self.first_unmatched {
            let rows = self.rows_unmatched;
            tracing::warn!(rows, first, "annotations of no residue of their structure");
        }
        if let Some((_, first)) = &self.first_without {
            let structures = self.structures_without;
            tracing::warn!(structures, first, "structures without annotations");
        }
    }
}

/// Keeps the example of the lowest ordinal: threads come in any order.
fn keep_first(kept: &mut Option<(u64, String)>, ordinal: u64, example: impl FnOnce() -> String) {
    if kept.as_ref().is_none_or(|(known, _)| ordinal < *known) {
        *kept = Some((ordinal, example()));
    }
}

/// An insertion code, 0 for none.
fn ins_code(byte: u8) -> u8 {
    if byte == b' ' { 0 } else { byte }
}

/// How a table is written.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Parquet,
    Text { separator: char },
}

impl Kind {
    fn of(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("parquet") => Ok(Kind::Parquet),
            Some("tsv") => Ok(Kind::Text { separator: '\t' }),
            Some("csv") => Ok(Kind::Text { separator: ',' }),
            _ => Err(Error::config("it is no table by its name")
                .fix("name it .tsv, .csv, either with .gz, or .parquet")),
        }
    }
}

/// The file, or the tables in the folder, by name.
fn files_of(path: &Path) -> Result<Vec<PathBuf>> {
    let from_io = |error: std::io::Error| {
        Error::config(error.to_string()).fix("give `annotations` a table, or a folder of tables")
    };
    if !path.metadata().map_err(from_io)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir().map_err(from_io)? {
        let file = entry.map_err(from_io)?.path();
        let is_hidden = file
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && file.is_file() && Kind::of(&file).is_ok() {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(Error::config("the folder has no table")
            .fix("tables are named .tsv, .csv, either with .gz, or .parquet"));
    }
    files.sort();
    Ok(files)
}

/// FNV-1a, 64 bits.
#[derive(Clone, Copy, Debug)]
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, key: &Key<'_>, values: &[f32]) {
        self.bytes(key.structure.as_bytes());
        self.bytes(&[0]);
        self.bytes(key.chain.as_bytes());
        self.bytes(&[0, key.ins_code, u8::from(key.model.is_some())]);
        self.bytes(&key.model.unwrap_or_default().to_le_bytes());
        self.bytes(&key.number.to_le_bytes());
        for value in values {
            self.bytes(&value.to_bits().to_le_bytes());
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
