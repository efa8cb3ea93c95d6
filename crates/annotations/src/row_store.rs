//! Keeps the rows of all tables of annotations as bytes, and finds those of a structure by its
//! name.
//!
//! The first rows stay in memory, and all are in an unnamed temporary file if there are more. In
//! memory is an index, with an entry for each run: rows of one structure that follow each other.

use rawzip::{FileReader, ReaderAt};
use std::borrow::Cow;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use tapeloop_error::{Context, Error, Result};

/// Bytes of rows that stay in memory: a million rows or so, with which most runs need no file.
const MEMORY_BYTES_MAX: usize = 64 << 20;

/// Bytes of a write to the temporary file: once there is one, the buffer only makes its writes large.
const WRITE_BYTES: usize = 1 << 20;

/// The most runs.
const RUNS_MAX: usize = 1 << 24;
const _: () = assert!(
    RUNS_MAX * size_of::<RowRun>() == 384 << 20,
    "bytes of their index"
);

/// The most bytes of the rows of one structure, which are in memory while it is read.
const STRUCTURE_BYTES_MAX: u64 = 256 << 20;
const _: () = assert!(
    STRUCTURE_BYTES_MAX <= u32::MAX as u64,
    "a run has its bytes in 32 bits"
);

/// The limits of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreLimits {
    /// Bytes of all rows.
    pub(super) bytes_max: u64,
    rows_max: u32,
    memory_bytes_max: usize,
    runs_max: usize,
    structure_bytes_max: u64,
}

impl StoreLimits {
    pub(super) fn new(bytes_max: u64) -> Self {
        StoreLimits {
            bytes_max,
            rows_max: u32::MAX,
            memory_bytes_max: MEMORY_BYTES_MAX,
            runs_max: RUNS_MAX,
            structure_bytes_max: STRUCTURE_BYTES_MAX,
        }
    }
}

/// A store that rows are added to.
pub(super) struct StoreWriter {
    limits: StoreLimits,
    /// The rows, or those that the file does not have yet.
    buffer: Vec<u8>,
    file: Option<File>,
    /// Bytes in the file.
    file_bytes: u64,
    hasher: RandomState,
    runs: Vec<RowRun>,
    rows: u32,
    /// The structure of the last run.
    structure: String,
}

/// The rows of all tables.
#[derive(Debug)]
pub(super) struct RowStore {
    storage: RowStorage,
    hasher: RandomState,
    /// Sorted by hash, and by offset where that is equal.
    runs: Vec<RowRun>,
}

/// A run of rows in a [`RowStore`].
pub(super) struct NamedRun<'a> {
    pub(super) structure: String,
    /// The bytes of the rows, and the index of the first one among all rows.
    pub(super) rows: (Cow<'a, [u8]>, u32),
}

/// The rows of a structure in a [`RowStore`].
#[derive(Default)]
pub(super) struct StructureAnnotationRows<'a> {
    /// Runs in the order of the tables: the bytes of the rows, and the index of the first one among
    /// all rows.
    pub(super) runs: Vec<(Cow<'a, [u8]>, u32)>,
    /// Runs of structures whose names differ in case alone: the name, and the index of the first row.
    pub(super) in_other_case: Vec<(String, u32)>,
}

#[derive(Debug)]
enum RowStorage {
    Memory(Vec<u8>),
    File(FileReader),
}

/// Rows of one structure that follow each other: its name, then the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowRun {
    /// The hash of the structure's name in lower case.
    hash: u64,
    offset: u64,
    bytes: u32,
    /// The index of its first row among all rows.
    first_row: u32,
}

impl StoreWriter {
    pub(super) fn new(limits: StoreLimits) -> Self {
        StoreWriter {
            limits,
            buffer: Vec::new(),
            file: None,
            file_bytes: 0,
            hasher: RandomState::new(),
            runs: Vec::new(),
            rows: 0,
            structure: String::new(),
        }
    }

    /// Adds a row of a structure; `encode` appends its bytes.
    ///
    /// # Errors
    /// Of kind `Config`: a limit is exceeded. `Io`: the temporary file cannot be written.
    pub(super) fn add(&mut self, structure: &str, encode: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        if self.rows == self.limits.rows_max {
            let text = format!(
                "all annotations have more than {} rows",
                self.limits.rows_max
            );
            return Err(Error::config(text).fix("run over parts of the tables"));
        }
        let start = self.buffer.len();
        let offset = self.file_bytes + start as u64;
        if self.runs.is_empty() || self.structure != structure {
            if self.runs.len() >= self.limits.runs_max {
                let text = format!(
                    "the rows change from one structure to another more than {} times",
                    self.limits.runs_max
                );
                return Err(Error::config(text)
                    .fix("sort the tables by structure, or run over parts of the tables"));
            }
            structure.clone_into(&mut self.structure);
            self.runs.push(RowRun {
                hash: hash_of(&self.hasher, structure),
                offset,
                bytes: 0,
                first_row: self.rows,
            });
            put_text(&mut self.buffer, structure);
        }
        encode(&mut self.buffer);
        let added = (self.buffer.len() - start) as u64;
        let run = self.runs.last_mut().expect("a run was begun");
        let bytes = u64::from(run.bytes) + added;
        // Checked first, so that they fit 32 bits.
        self.limits.check_structure(bytes, structure)?;
        run.bytes = bytes as u32;
        self.rows += 1;
        let all = offset + added;
        if all > self.limits.bytes_max {
            let text = format!(
                "all annotations have more than {} bytes",
                self.limits.bytes_max
            );
            return Err(Error::config(text).fix(
                "raise limits.annotation_bytes_max, or leave out columns with tables.annotations",
            ));
        }
        if self.buffer.len() > self.limits.memory_bytes_max
            || self.file.is_some() && self.buffer.len() >= WRITE_BYTES
        {
            self.spill()?;
        }
        Ok(())
    }

    /// Moves the rows in memory to the file, which is made if there is none. An error of kind `Io` names the
    /// folder of temporary files.
    fn spill(&mut self) -> Result<()> {
        let mut write = || {
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(tempfile::tempfile()?),
            };
            file.write_all(&self.buffer)
        };
        write().map_err(|error| {
            let folder = std::env::temp_dir();
            Error::io(error)
                .fix("set TMPDIR to a folder with as much room as the tables have in text")
                .within(format!("a temporary file in {}", folder.display()))
        })?;
        self.file_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(WRITE_BYTES);
        Ok(())
    }

    /// The store of all rows that were added.
    ///
    /// # Errors
    /// Of kind `Config`: a structure has too many rows. `Io`: the temporary file cannot be written.
    pub(super) fn finish(mut self) -> Result<RowStore> {
        if self.file.is_some() {
            self.spill()?;
        }
        self.runs.sort_unstable();
        self.runs.shrink_to_fit();
        let storage = match self.file {
            Some(file) => RowStorage::File(file.into()),
            None => {
                self.buffer.shrink_to_fit();
                RowStorage::Memory(self.buffer)
            }
        };
        let store = RowStore {
            storage,
            hasher: self.hasher,
            runs: self.runs,
        };
        // `add` has checked each run. Several runs of one hash are read together, also those of other names.
        for runs in store.runs.chunk_by(|a, b| a.hash == b.hash) {
            let bytes = runs.iter().map(|run| u64::from(run.bytes)).sum();
            if bytes > self.limits.structure_bytes_max {
                let run = store.bytes(runs[0])?;
                let name = take_text(&mut &*run).unwrap_or_default().to_owned();
                self.limits.check_structure(bytes, &name)?;
            }
        }
        Ok(store)
    }
}

impl StoreLimits {
    /// Checks the bytes of a structure's rows against the limit.
    fn check_structure(&self, bytes: u64, structure: &str) -> Result<()> {
        if bytes <= self.structure_bytes_max {
            return Ok(());
        }
        let text = format!(
            "the annotations of structure {structure:?} have more than {} bytes",
            self.structure_bytes_max
        );
        Err(Error::config(text)
            .fix("leave out columns with tables.annotations, or run over parts of the table"))
    }
}

impl RowStore {
    /// The rows of a structure.
    ///
    /// # Errors
    /// Of kind `Io`: the temporary file cannot be read.
    pub(super) fn find(&self, structure: &str) -> Result<StructureAnnotationRows<'_>> {
        let mut found = StructureAnnotationRows::default();
        for run in self.runs_like(structure) {
            let (name, rows) = self.named_rows(run)?;
            if name == structure {
                found.runs.push((rows, run.first_row));
            } else if name.to_lowercase() == structure.to_lowercase() {
                found.in_other_case.push((name, run.first_row));
            }
        }
        Ok(found)
    }

    /// For each of `rows`, which are ascending, the run that has it. Visits every run once, as runs are sorted by their
    /// hashes and not by their rows.
    ///
    /// # Errors
    /// Of kind `Io`: the temporary file cannot be read.
    pub(super) fn runs_of(&self, rows: &[u32]) -> Result<Vec<NamedRun<'_>>> {
        // By row: the last run that starts after the previous row and not after this one.
        let mut last: Vec<Option<&RowRun>> = vec![None; rows.len()];
        for run in &self.runs {
            let next = rows.partition_point(|row| *row < run.first_row);
            if let Some(last) = last.get_mut(next)
                && last.is_none_or(|last| last.first_row < run.first_row)
            {
                *last = Some(run);
            }
        }
        let mut before = None;
        let runs = last.into_iter().filter_map(|run| {
            before = run.or(before);
            before
        });
        let described = runs.map(|run| {
            let (structure, bytes) = self.named_rows(run)?;
            Ok(NamedRun {
                structure,
                rows: (bytes, run.first_row),
            })
        });
        described.collect()
    }

    /// Upper bound of the bytes of a structure's rows: runs of other names may have its hash.
    pub(super) fn bytes_of(&self, structure: &str) -> u64 {
        let runs = self.runs_like(structure).iter();
        runs.map(|run| u64::from(run.bytes)).sum()
    }

    /// The runs of this structure, and of others with the same hash.
    fn runs_like(&self, structure: &str) -> &[RowRun] {
        let hash = hash_of(&self.hasher, structure);
        let start = self.runs.partition_point(|run| run.hash < hash);
        let runs = &self.runs[start..];
        &runs[..runs.partition_point(|run| run.hash == hash)]
    }

    /// The structure of a run, and the bytes of its rows.
    fn named_rows(&self, run: &RowRun) -> Result<(String, Cow<'_, [u8]>)> {
        let mut bytes = self.bytes(*run)?;
        let mut rest = &*bytes;
        let name = take_text(&mut rest).unwrap_or_default().to_owned();
        let start = bytes.len() - rest.len();
        match &mut bytes {
            Cow::Borrowed(bytes) => *bytes = &bytes[start..],
            Cow::Owned(bytes) => drop(bytes.drain(..start)),
        }
        Ok((name, bytes))
    }

    /// The bytes of a run of rows, which are read if they are in the temporary file: an error of kind `Io` names it.
    fn bytes(&self, run: RowRun) -> Result<Cow<'_, [u8]>> {
        let length = run.bytes as usize;
        match &self.storage {
            RowStorage::Memory(rows) => Ok(Cow::Borrowed(&rows[run.offset as usize..][..length])),
            RowStorage::File(file) => {
                let mut bytes = vec![0; length];
                let read = file.read_exact_at(&mut bytes, run.offset);
                read.map_err(Error::io)
                    .within(|| "the temporary file of annotations")?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

/// The hash of a structure's name. Names that differ in case alone have the same one, so that both
/// are found.
fn hash_of(hasher: &RandomState, structure: &str) -> u64 {
    hasher.hash_one(structure.to_lowercase())
}

/// Appends an integer, seven bits a byte.
pub(super) fn put_integer(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Appends an integer that may be negative; small ones take few bytes.
pub(super) fn put_signed(to: &mut Vec<u8>, value: i64) {
    put_integer(to, (value << 1 ^ value >> 63) as u64);
}

/// Appends a text after its length.
pub(super) fn put_text(to: &mut Vec<u8>, text: &str) {
    put_integer(to, text.len() as u64);
    to.extend_from_slice(text.as_bytes());
}

/// Removes from the start of `from` an integer that [`put_integer`] has written; `None` if there is none.
pub(super) fn take_integer(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Removes from the start of `from` an integer that [`put_signed`] has written; `None` if there is none.
pub(super) fn take_signed(from: &mut &[u8]) -> Option<i64> {
    let value = take_integer(from)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// Removes from the start of `from` a text that [`put_text`] has written; `None` if there is none.
pub(super) fn take_text<'a>(from: &mut &'a [u8]) -> Option<&'a str> {
    let length = take_integer(from)? as usize;
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store with rows that are one text each.
    fn store(rows: &[(&str, &str)], limits: StoreLimits) -> Result<RowStore> {
        let mut writer = StoreWriter::new(limits);
        for (structure, row) in rows {
            writer.add(structure, |bytes| put_text(bytes, row))?;
        }
        writer.finish()
    }

    fn rows_of(store: &RowStore, structure: &str) -> Vec<String> {
        let mut rows = Vec::new();
        for (bytes, _) in store.find(structure).unwrap().runs {
            let mut rest = &*bytes;
            while !rest.is_empty() {
                rows.push(take_text(&mut rest).unwrap().to_owned());
            }
        }
        rows
    }

    fn limits() -> StoreLimits {
        StoreLimits::new(1 << 30)
    }

    #[test]
    fn rows_are_found_by_structure_in_their_order_in_memory_and_in_a_file() {
        let rows = [
            ("a", "1"),
            ("a", "2"),
            ("b", "3"),
            ("", "4"),
            ("a", "5"),
            ("b", ""),
        ];
        for memory_bytes_max in [0, 7, 1 << 20] {
            let limits = StoreLimits {
                memory_bytes_max,
                ..limits()
            };
            let store = store(&rows, limits).unwrap();
            assert_eq!(
                matches!(store.storage, RowStorage::Memory(_)),
                memory_bytes_max > 7
            );
            assert_eq!(rows_of(&store, "a"), ["1", "2", "5"]);
            assert_eq!(rows_of(&store, "b"), ["3", ""]);
            assert_eq!(rows_of(&store, ""), ["4"]);
            assert!(rows_of(&store, "c").is_empty());
        }
    }

    #[test]
    fn a_store_over_a_limit_is_refused() {
        let rows = [("a", "1"), ("b", "2"), ("a", "3")];
        let fails = |limits, expected: &str| {
            let error = store(&rows, limits).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("fix: "),
                "{error}"
            );
        };
        let runs_max = 2;
        fails(
            StoreLimits {
                runs_max,
                ..limits()
            },
            "more than 2 times (fix: sort",
        );
        fails(StoreLimits::new(11), "more than 11 bytes");
        // Each run has 4 bytes.
        let structure_bytes_max = 7;
        let of_one = StoreLimits {
            structure_bytes_max,
            ..limits()
        };
        fails(of_one, "than 7 bytes");
        let structure_bytes_max = 8;
        let enough = StoreLimits {
            structure_bytes_max,
            runs_max: 3,
            bytes_max: 12,
            ..limits()
        };
        assert_eq!(rows_of(&store(&rows, enough).unwrap(), "a"), ["1", "3"]);
    }

    #[test]
    fn integers_keep_their_value() {
        for value in [0, 1, -1, 63, 64, -64, 1 << 40, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, value);
            let mut rest = &*bytes;
            assert_eq!((take_signed(&mut rest), rest.len()), (Some(value), 0));
        }
        assert_eq!(take_integer(&mut &[0x80, 0x80][..]), None);
    }
}
