//! Reads files and bytes into structures.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::assembly;
use super::atom_table::AtomTable;
use super::checks::Check;
use super::compression::Compression;
use super::format::Format;
use super::joined_models;
use super::model::{Assembly, Structure};
use super::polymer::PolymerSelector;
use super::read_budget::{BudgetShare, ReadBudget};
use super::read_limits::ReadLimits;
use super::read_options::{Models, ReadOptions};
use crate::{Error, Result};

/// Reads structures, one file after the other, and keeps its buffers from file to file.
///
/// # Errors
/// All methods that read return
/// - [`ErrorKind::Input`](crate::ErrorKind::Input) if the bytes are not a structure: no known
///   format, malformed, without polymer residues, or damaged compressed data; if a model holds copies of
///   its residues in one place ([`ChainSplit::Auto`](super::ChainSplit::Auto)); if models that are to
///   be joined are in one place; if an assembly cannot be built; or for a finding that
///   [`ReadOptions::strict`] does not allow,
/// - [`ErrorKind::Usage`](crate::ErrorKind::Usage) if models are to be joined, and an assembly built,
/// - [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if the file exceeds a limit of
///   [`ReadOptions::limits`], or if there is no memory for it.
///
/// ```
/// use tapeloop_structure::{Format, ReadOptions, Reader};
///
/// let text = b"ATOM      1  CA  ALA A   1      11.104   6.134  -6.504  1.00  9.00           C";
/// let mut reader = Reader::new(ReadOptions::default());
/// let structures = reader.read_bytes(text, Format::Pdb)?;
/// assert_eq!(structures[0].xyz, [[11_104, 6_134, -6_504]]);
/// # Ok::<(), tapeloop_structure::Error>(())
/// ```
pub struct Reader {
    options: ReadOptions,
    budget: Option<Arc<ReadBudget>>,
    file: Vec<u8>,
    text: Vec<u8>,
    table: AtomTable,
    selector: PolymerSelector,
}

impl Reader {
    /// A reader with empty buffers.
    pub fn new(options: ReadOptions) -> Self {
        Reader {
            options,
            budget: None,
            file: Vec::new(),
            text: Vec::new(),
            table: AtomTable::default(),
            selector: PolymerSelector::default(),
        }
    }

    /// A reader with empty buffers that takes the bytes of files and text from `budget`, for which it
    /// waits while other readers hold too much of it.
    pub fn with_budget(options: ReadOptions, budget: Arc<ReadBudget>) -> Self {
        Reader {
            budget: Some(budget),
            ..Reader::new(options)
        }
    }

    /// Whether it reads with these options, and takes bytes from this budget.
    #[doc(hidden)]
    pub fn reads_with(&self, options: &ReadOptions, budget: &Arc<ReadBudget>) -> bool {
        let own = self.budget.as_ref();
        self.options == *options && own.is_some_and(|own| Arc::ptr_eq(own, budget))
    }

    /// Bytes of the buffers for files and text, which the reader keeps.
    #[doc(hidden)]
    pub fn buffer_bytes(&self) -> usize {
        self.file.capacity() + self.text.capacity()
    }

    /// Reads a file, plain or compressed with gzip or zstd. The error does not name the file.
    ///
    /// At most one byte beyond [`ReadLimits::text_bytes_max`] is read, so a pipe or a device
    /// without an end is rejected too.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be opened or read, and those
    /// of [`Reader`].
    pub fn read_path(&mut self, path: &Path) -> Result<Vec<Structure>> {
        let file = std::fs::File::open(path).map_err(Error::io)?;
        // 0 for pipes and devices.
        let size = file.metadata().map_err(Error::io)?.len();
        self.options.limits.check_text(size)?;
        self.read_stream(&path.to_string_lossy(), file, size, None, Error::io)
    }

    /// The bytes of the file that [`Reader::read_path`] read last, as they were packed.
    #[doc(hidden)]
    pub fn last_bytes(&self) -> &[u8] {
        &self.file
    }

    pub(super) fn options(&self) -> &ReadOptions {
        &self.options
    }

    /// The atoms of the file that was read last, and the selector that has chosen among them.
    pub(super) fn last_file(&mut self) -> (&mut AtomTable, &mut PolymerSelector) {
        (&mut self.table, &mut self.selector)
    }

    /// Passes `bytes` bytes to `parse`, which `fill` has written. They are from the budget, for which it
    /// may wait.
    ///
    /// # Errors
    /// The errors of `fill` and `parse`, and
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if there is no memory for the bytes.
    #[doc(hidden)]
    pub fn with_bytes<T>(
        &mut self,
        bytes: u64,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
        parse: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let mut share = BudgetShare::new(self.budget.clone());
        share.make_room(&mut self.file, bytes)?;
        fill(&mut self.file)?;
        parse(&self.file)
    }

    /// Reads the bytes of a file called `name` from a stream. It has `size` bytes unless that is
    /// wrong. They are unpacked from `packed` bytes if that is given. `refused` makes the error if
    /// `stream` cannot be read.
    ///
    /// # Errors
    /// The errors of [`Reader`] and of `refused`.
    #[doc(hidden)]
    pub fn read_stream(
        &mut self,
        name: &str,
        stream: impl Read,
        size: u64,
        packed: Option<u64>,
        refused: impl Fn(std::io::Error) -> Error,
    ) -> Result<Vec<Structure>> {
        let limits = self.options.limits;
        let mut share = BudgetShare::new(self.budget.clone());
        let mut bytes = std::mem::take(&mut self.file);
        let max = match packed {
            Some(packed) => limits.unpacked_bytes_max(packed as usize),
            None => u64::from(limits.text_bytes_max),
        };
        let outcome = match share.fill(&mut bytes, stream, size, max, refused) {
            Ok(true) => self.read_file(name, &bytes, &mut share),
            Ok(false) => Err(match packed {
                Some(packed) => limits.unpacks_too_far("packed", packed as usize),
                None => limits.stream_too_long(),
            }),
            Err(error) => Err(error),
        };
        self.file = bytes;
        outcome
    }

    /// Reads the bytes of a file called `name`. They are unpacked if they start as gzip or zstd
    /// data does. The format is mmCIF or BinaryCIF if the text starts as theirs does, else the one
    /// of the name's ending, else the one of the text's first line.
    ///
    /// # Errors
    /// The errors of [`Reader`].
    pub fn read_auto(&mut self, name: &str, bytes: &[u8]) -> Result<Vec<Structure>> {
        let mut share = BudgetShare::new(self.budget.clone());
        self.read_file(name, bytes, &mut share)
    }

    /// Reads the bytes of a file, which may be compressed. The unpacked text takes its memory from
    /// `share`.
    fn read_file(
        &mut self,
        name: &str,
        bytes: &[u8],
        share: &mut BudgetShare,
    ) -> Result<Vec<Structure>> {
        let Some(compression) = Compression::of_bytes(bytes) else {
            return self.read_text(name, bytes, bytes.len());
        };
        let mut text = std::mem::take(&mut self.text);
        let outcome = compression
            .unpack(bytes, &self.options.limits, &mut text, share)
            .and_then(|()| self.read_text(name, &text, bytes.len()));
        self.text = text;
        outcome
    }

    /// Reads the unpacked text of a file of `file_bytes`. An
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) error if it is blank.
    fn read_text(&mut self, name: &str, text: &[u8], file_bytes: usize) -> Result<Vec<Structure>> {
        if text.trim_ascii().is_empty() {
            return Err(Error::input("the file is empty"));
        }
        let format = match self.options.format {
            Some(format) => format,
            None => format_of(name, text)?,
        };
        let is_assembly = name_ends_as_assembly(name);
        self.read_unpacked(text, format, file_bytes, is_assembly)
    }

    /// Reads plain text of a known format.
    ///
    /// # Errors
    /// The errors of [`Reader`].
    pub fn read_bytes(&mut self, text: &[u8], format: Format) -> Result<Vec<Structure>> {
        self.read_unpacked(text, format, text.len(), false)
    }

    /// Reads plain text of a known format, of a file of `file_bytes` as packed. `is_assembly` is
    /// whether the file's name says that its models are parts of an assembly. Findings that are not
    /// allowed end it before an assembly takes memory; chemistry comes last, as it is of the atoms
    /// that are left.
    fn read_unpacked(
        &mut self,
        text: &[u8],
        format: Format,
        file_bytes: usize,
        is_assembly: bool,
    ) -> Result<Vec<Structure>> {
        let ReadOptions {
            limits,
            strict,
            models,
            assembly,
            ..
        } = self.options;
        if models == Models::Joined && assembly == Assembly::First {
            let error = Error::usage("models that are joined are an assembly already");
            return Err(error.fix("read them without an assembly"));
        }
        limits.check_text(text.len() as u64)?;
        let text = &*format.with_line_feeds(text);
        let table = &mut self.table;
        table.clear(limits, file_bytes);
        table.peeks_at_second_model = is_assembly && models == Models::First;
        format.read(text, self.options, table)?;
        if let (true, Some(truncation)) = (strict.contains(Check::Truncated), table.truncation) {
            let message = format!("the file may be cut short: {truncation}");
            return Err(
                Error::input(message).fix("fetch the file again, or read it without strict")
            );
        }
        let place = |offset| format.place(text, offset);
        let mut deposited = self.selector.select(table, place, self.options)?;
        match models {
            Models::Joined => joined_models::refuse_ensemble(table)?,
            Models::First | Models::All => joined_models::note_assembly(table),
        }
        if let Some(first) = deposited.first_mut() {
            first.findings.extend(&table.findings);
        }
        for structure in &deposited {
            structure.findings.reject(strict)?;
        }
        if models == Models::Joined {
            deposited = joined_models::join(deposited, table)?;
        }
        let mut structures = if table.generators.is_empty() {
            deposited
        } else {
            assembly::build_all(&deposited, &table.generators, &limits)?
        };
        limits.check_row_names(&structures)?;
        if self.options.chemistry {
            let components = self.options.components;
            for structure in &mut structures {
                let described = self.table.described_components.clone();
                structure.find_chemistry(components, described, self.options.water_reach);
            }
        }
        Ok(structures)
    }
}

/// The plain text of a file's bytes, which may be compressed, and its format.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) if the compressed data is damaged or the format is
/// unknown, [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if the text exceeds `limits`.
pub fn text_of(name: &str, bytes: Vec<u8>, limits: &ReadLimits) -> Result<(Vec<u8>, Format)> {
    let mut text = bytes;
    if let Some(compression) = Compression::of_bytes(&text) {
        let packed = std::mem::take(&mut text);
        compression.unpack(&packed, limits, &mut text, &mut BudgetShare::new(None))?;
    }
    let format = format_of(name, &text)?;
    Ok((text, format))
}

/// Whether a file's name has the ending that assemblies of the wwPDB have: `.pdb1`.
fn name_ends_as_assembly(name: &str) -> bool {
    let name = Compression::unpacked_name(name);
    let ending = Path::new(name).extension();
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("pdb1"))
}

/// The format by the name or the content. The [`ErrorKind::Input`](crate::ErrorKind::Input) error
/// guesses what else the file is.
fn format_of(name: &str, text: &[u8]) -> Result<Format> {
    Format::of_file(name, text).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        let endings = Format::all_endings();
        Error::input(format!(
            "the file is neither {}, by its name or its content",
            names.join(" nor ")
        ))
        .fix(if name.ends_with(".txt") || name.ends_with(".lst") {
            "write @ before the name of a list of files: @list.txt".to_owned()
        } else if [".yaml", ".yml", ".json", ".ini"]
            .iter()
            .any(|ending| name.ends_with(ending))
        {
            "if this is a config, write it as TOML, with a name that ends in .toml".to_owned()
        } else {
            format!(
                "give a {endings} file, plain or with {}, or name the format with input_format",
                Compression::ENDINGS
            )
        })
    })
}
