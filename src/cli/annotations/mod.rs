//! Annotations of residues: values from tables that the user gives along with the structures.
//! `smooth.channels` names the tables' columns.
//!
//! `text` and `parquet` turn the rows of a table into cells, and `columns` turns the cells into
//! residues and values. All rows stay in memory, by structure, and each structure gets its own
//! after it has been read.

mod columns;
mod parquet;
mod text;

use super::config::did_you_mean;
use super::inputs::structure_name;
use super::path_text::shown;
use crate::error::{Context, Error, Result};
use crate::structure::{Assembly, Channel, Structure};
use columns::{Cell, Columns};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The annotations of a run.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    /// Names of the columns that are read.
    channels: Vec<String>,
    files: Vec<PathBuf>,
    /// The rows of each structure, sorted by residue.
    structures: HashMap<Box<str>, Vec<Row>>,
    chains: HashMap<Box<str>, u32>,
    /// `[rows, channels]`, NaN where a row has no value.
    values: Vec<f32>,
    /// Covers all rows in the order of reading.
    digest: Digest,
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
struct Row {
    chain: u32,
    number: i32,
    /// 0 for none.
    ins_code: u8,
    /// `None` stands for all models.
    model: Option<i32>,
    /// Index among the rows of all files.
    index: usize,
    /// Index of the file.
    file: u32,
    /// The line of a text file or the row of a Parquet file, from 1.
    line: u32,
}

impl Row {
    fn residue(&self) -> (u32, i32, u8) {
        (self.chain, self.number, self.ins_code)
    }
}

/// The residue of a row, as the table names it.
#[derive(Clone, Copy, Debug)]
struct ResidueKey<'a> {
    structure: &'a str,
    model: Option<i32>,
    chain: &'a str,
    number: i32,
    ins_code: u8,
}

/// How many residues and rows of some inputs have matched.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Matches {
    /// Residues that have a value.
    pub(super) residues: u64,
    /// Rows whose structure was read, but has no such residue in any model.
    pub(super) rows_unmatched: u64,
    /// The first such row.
    first_unmatched: Option<String>,
    /// Structures without any row.
    pub(super) structures_without: u64,
    first_without: Option<String>,
}

impl Annotations {
    /// Reads the columns `channels` of the tables in `paths`, which are files and folders.
    ///
    /// # Errors
    /// A table cannot be read, which names the line; no table has one of the channels.
    pub(super) fn load(paths: &[PathBuf], channels: Vec<String>) -> Result<Self> {
        let start = Instant::now();
        let mut all = Annotations {
            channels,
            ..Annotations::default()
        };
        let mut columns = Vec::new();
        for path in paths {
            for file in files_of(path).within(|| shown(path))? {
                columns.extend(all.read(&file).within(|| shown(&file))?);
                all.files.push(file);
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
                "annotations give a residue several values; the first is used"
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

    /// Reads a file, and returns the names of its columns.
    fn read(&mut self, path: &Path) -> Result<Vec<String>> {
        let source = path.to_string_lossy();
        let file_name = structure_name(&source);
        match Format::of(path)? {
            Format::Parquet => parquet::read(path, file_name, self),
            Format::Text { separator } => text::read(path, separator, file_name, self),
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
        let fix = "name columns of `annotations`, or b_ca and plddt, which files have";
        Err(Error::config(text).fix(fix))
    }

    /// Adds a row of the file that is being read.
    ///
    /// # Errors
    /// A cell that does not hold what its column needs.
    fn add(
        &mut self,
        columns: &Columns,
        cells: &[Cell<'_>],
        file_name: &str,
        line: usize,
    ) -> Result<()> {
        let key = columns.key(cells, file_name)?;
        let (index, start) = (self.row_count(), self.values.len());
        self.values.resize(start + self.channels.len(), f32::NAN);
        columns.values(cells, &self.channels, &mut self.values[start..])?;
        self.digest.add(&key, &self.values[start..]);
        let next = self.chains.len() as u32;
        let chain = match self.chains.get(key.chain) {
            Some(&chain) => chain,
            None => *self.chains.entry(key.chain.into()).or_insert(next),
        };
        let row = Row {
            chain,
            number: key.number,
            ins_code: key.ins_code,
            model: key.model,
            index,
            file: self.files.len() as u32,
            line: line as u32,
        };
        match self.structures.get_mut(key.structure) {
            Some(rows) => rows.push(row),
            None => {
                self.structures.insert(key.structure.into(), vec![row]);
            }
        }
        Ok(())
    }

    fn row_count(&self) -> usize {
        self.values.len() / self.channels.len().max(1)
    }

    fn values_of(&self, row: &Row) -> &[f32] {
        let width = self.channels.len();
        &self.values[row.index * width..][..width]
    }

    /// Sorts each structure's rows by residue, those of one model before those of all models.
    /// Returns how many rows repeat a value, with the first such row; `None` if none does.
    fn sort(&mut self) -> Option<(usize, String)> {
        for rows in self.structures.values_mut() {
            let of_all = |row: &Row| row.model.is_none();
            rows.sort_unstable_by_key(|e| (e.residue(), of_all(e), e.model, e.index));
            rows.shrink_to_fit();
        }
        let mut count = 0;
        let mut first: Option<(&str, &Row)> = None;
        for (name, rows) in &self.structures {
            let same = |a: &Row, b: &Row| (a.residue(), a.model) == (b.residue(), b.model);
            for row in rows.chunk_by(same).flat_map(|of_one| self.repeated(of_one)) {
                count += 1;
                if first.is_none_or(|(_, known)| row.index < known.index) {
                    first = Some((name, row));
                }
            }
        }
        first.map(|(name, row)| (count, self.describe(name, row)))
    }

    /// Those `rows` of one residue that give a channel a second value.
    fn repeated<'a>(&self, rows: &'a [Row]) -> impl Iterator<Item = &'a Row> {
        let mut given = vec![false; self.channels.len()];
        rows.iter().filter(move |row| {
            let mut is_again = false;
            for (given, value) in given.iter_mut().zip(self.values_of(row)) {
                is_again |= *given && !value.is_nan();
                *given |= !value.is_nan();
            }
            is_again
        })
    }

    /// `conservation.tsv:57: 1abc, chain A, residue 52A`.
    fn describe(&self, structure: &str, row: &Row) -> String {
        let mut chains = self.chains.iter();
        let chain = chains.find(|(_, id)| **id == row.chain);
        let chain = chain.map_or("?", |(name, _)| name);
        let file = shown(&self.files[row.file as usize]);
        let code = match row.ins_code {
            0 => String::new(),
            code => char::from(code).to_string(),
        };
        let (line, number) = (row.line, row.number);
        format!("{file}:{line}: {structure}, chain {chain}, residue {number}{code}")
    }

    /// Gives the `models` of the structure `name` their annotations. A row is unmatched if none of
    /// the models that it applies to has its residue.
    pub(super) fn attach(&self, name: &str, models: &mut [Structure]) -> Matches {
        let Some(rows) = self.structures.get(name) else {
            // Structures of a packed set may have annotations already, which these replace.
            models.iter_mut().for_each(|model| model.channels.clear());
            return Matches {
                structures_without: 1,
                first_without: Some(name.to_owned()),
                ..Matches::default()
            };
        };
        let mut used = vec![false; rows.len()];
        let mut annotated = 0;
        for structure in models.iter_mut() {
            annotated += self.annotate(structure, rows, &mut used);
        }
        let is_read = |row: &Row| {
            let mut models = models.iter();
            row.model
                .is_none_or(|of| models.any(|structure| structure.model == of))
        };
        let unused = rows.iter().zip(&used);
        let unmatched = unused.filter(|(row, used)| !**used && is_read(row));
        let mut unmatched = unmatched.map(|(row, _)| row);
        let first = unmatched.next();
        Matches {
            residues: annotated,
            rows_unmatched: u64::from(first.is_some()) + unmatched.count() as u64,
            first_unmatched: first.map(|row| self.describe(name, row)),
            ..Matches::default()
        }
    }

    /// Gives a model its annotations, and marks the rows that it uses. Returns the number of
    /// residues with a value.
    fn annotate(&self, structure: &mut Structure, rows: &[Row], used: &mut [bool]) -> u64 {
        let is_of_model = |row: &Row| row.model.is_none_or(|of| of == structure.model);
        let chains = self.chains_of(structure, rows);
        let width = self.channels.len();
        let mut found = vec![f32::NAN; width * structure.residues.len()];
        let of_residue = found.chunks_exact_mut(width);
        for (residue, found) in structure.residues.iter().zip(of_residue) {
            let Some(chain) = chains[residue.chain as usize] else {
                continue;
            };
            let ins_code = Some(residue.ins_code).filter(|code| *code != b' ');
            let key = (chain, residue.auth_seq_id, ins_code.unwrap_or(0));
            let start = rows.partition_point(|row| row.residue() < key);
            let own = rows[start..].iter().zip(&mut used[start..]);
            for (row, used) in own.take_while(|(row, _)| row.residue() == key) {
                if !is_of_model(row) {
                    continue;
                }
                *used = true;
                for (found, &value) in found.iter_mut().zip(self.values_of(row)) {
                    if found.is_nan() {
                        *found = value;
                    }
                }
            }
        }
        let annotated = found.chunks_exact(width);
        let annotated = annotated.filter(|values| values.iter().any(|value| !value.is_nan()));
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

    /// The numbers of a structure's chains. A copy in an assembly has the rows of the original
    /// chain, unless it has rows of its own.
    fn chains_of(&self, structure: &Structure, rows: &[Row]) -> Vec<Option<u32>> {
        let has_rows = |chain: &u32| {
            let start = rows.partition_point(|row| row.chain < *chain);
            rows.get(start).is_some_and(|row| row.chain == *chain)
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

    /// Identifies the annotations in a table's metadata: the columns, and a hash of all rows.
    pub(super) fn provenance(&self) -> String {
        let (channels, rows) = (&self.channels, self.row_count());
        let hash = format!("{:016x}", self.digest.0);
        serde_json::json!({"channels": channels, "rows": rows, "fnv1a": hash}).to_string()
    }
}

impl Matches {
    /// Adds those of later inputs.
    pub(super) fn add(&mut self, later: Matches) {
        self.residues += later.residues;
        self.rows_unmatched += later.rows_unmatched;
        self.structures_without += later.structures_without;
        let keep_first = |first: &mut Option<String>, later| *first = first.take().or(later);
        keep_first(&mut self.first_unmatched, later.first_unmatched);
        keep_first(&mut self.first_without, later.first_without);
    }

    /// Logs a warning about rows without a residue and structures without a row.
    pub(super) fn log(&self) {
        if let Some(first) = &self.first_unmatched {
            let rows = self.rows_unmatched;
            tracing::warn!(
                rows,
                first,
                "annotations name residues that their structure lacks"
            );
        }
        if let Some(first) = &self.first_without {
            let structures = self.structures_without;
            tracing::warn!(structures, first, "structures without annotations");
        }
    }
}

/// The format of a table.
#[derive(Clone, Copy, Debug)]
enum Format {
    Parquet,
    Text { separator: u8 },
}

impl Format {
    fn of(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("parquet") => Ok(Format::Parquet),
            Some("tsv") => Ok(Format::Text { separator: b'\t' }),
            Some("csv") => Ok(Format::Text { separator: b',' }),
            Some("arrow") => Err(Error::config("annotations are not read from Arrow files")
                .fix("write the table as Parquet or CSV; for a run set tables.format")),
            _ => Err(Error::config("the name is not that of a table")
                .fix("name it .tsv, .csv, either with .gz, or .parquet")),
        }
    }
}

/// The file, or the tables in the folder, sorted by name.
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
        if !is_hidden && file.is_file() && Format::of(&file).is_ok() {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(Error::config("the folder has no table").fix(
            "tables are named .tsv, .csv, either with .gz, or .parquet; Arrow files are not read",
        ));
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
    fn add(&mut self, key: &ResidueKey<'_>, values: &[f32]) {
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
