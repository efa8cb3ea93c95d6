//! Files and bytes to structures.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use super::budget::{ReadBudget, Share};
use super::limits::{ReadLimits, check, exceeded, reserve};
use super::model::{Assembly, BFactorKind, Structure};
use super::select::Selector;
use super::table::AtomTable;
use super::{assembly, mmcif, pdb};
use crate::{Error, Result};

/// The format of a structure's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The fixed columns of the Protein Data Bank, and PDBQT.
    Pdb,
    /// mmCIF, which PDBx and ModelCIF are.
    Mmcif,
}

/// Which models of a file are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Models {
    /// The first.
    #[default]
    First,
    /// All, one [`Structure`] each.
    All,
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadOptions {
    /// Which models.
    pub models: Models,
    /// Whether the atoms of nucleotides are kept.
    pub nucleic: bool,
    /// What the B factors are. `None`: pLDDT where an mmCIF file's
    /// `_ma_qa_metric` names it or a PDB file's TITLE says ALPHAFOLD, else
    /// temperature factors.
    pub b_factor_kind: Option<BFactorKind>,
    /// The deposited chains, or those of an assembly where the file has it.
    pub assembly: Assembly,
    /// Whether a file that may be cut short ([`Structure::truncation`]) is rejected.
    pub strict: bool,
    /// How much a file may take.
    pub limits: ReadLimits,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            models: Models::First,
            nucleic: true,
            b_factor_kind: None,
            assembly: Assembly::Deposited,
            strict: false,
            limits: ReadLimits::default(),
        }
    }
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads structures, one file after the other, in memory that it keeps.
///
/// ```
/// use tapeloop::structure::{Format, ReadOptions, Reader};
///
/// let text = b"ATOM      1  CA  ALA A   1      11.104   6.134  -6.504  1.00  9.00           C";
/// let mut reader = Reader::new(ReadOptions::default());
/// let structures = reader.read_bytes(text, Format::Pdb)?;
/// assert_eq!(structures[0].xyz, [[11_104, 6_134, -6_504]]);
/// # Ok::<(), tapeloop::Error>(())
/// ```
pub struct Reader {
    options: ReadOptions,
    budget: Option<Arc<ReadBudget>>,
    file: Vec<u8>,
    text: Vec<u8>,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    table: AtomTable,
    edges: Vec<u32>,
    selector: Selector,
}

impl Format {
    /// The format that a file name's extension stands for, with or without
    /// `.gz` after it.
    pub fn from_name(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let stem = lower.strip_suffix(".gz").unwrap_or(&lower);
        match Path::new(stem).extension().and_then(OsStr::to_str)? {
            "pdb" | "ent" | "pdb1" | "pdbqt" => Some(Format::Pdb),
            "cif" | "mmcif" => Some(Format::Mmcif),
            _ => None,
        }
    }

    /// The format that text looks like.
    pub fn from_text(text: &[u8]) -> Option<Self> {
        const PDB_RECORDS: [&[u8]; 14] = [
            b"ATOM", b"HETATM", b"HEADER", b"REMARK", b"TITLE", b"COMPND", b"CRYST1", b"MODEL",
            b"OBSLTE", b"SPLIT", b"CAVEAT", b"AUTHOR", b"SEQRES", b"EXPDTA",
        ];
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let line = lines.find(|line| !line.is_empty() && line[0] != b'#')?;
        if line
            .get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"data_"))
        {
            Some(Format::Mmcif)
        } else if PDB_RECORDS.iter().any(|record| line.starts_with(record)) {
            Some(Format::Pdb)
        } else {
            None
        }
    }
}

impl Reader {
    /// A reader with empty buffers.
    pub fn new(options: ReadOptions) -> Self {
        Reader {
            options,
            budget: None,
            file: Vec::new(),
            text: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// A reader with empty buffers whose files and text come out of `budget`.
    pub fn with_budget(options: ReadOptions, budget: Arc<ReadBudget>) -> Self {
        Reader {
            budget: Some(budget),
            ..Reader::new(options)
        }
    }

    /// Reads a file, plain or gzipped. The error does not name the file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be opened or read,
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if it is no structure, and
    /// [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if it is over a limit of
    /// [`ReadOptions::limits`]. No more of a file is read than the limit and one byte, so
    /// a pipe or a device without an end is refused too.
    pub fn read_path(&mut self, path: &Path) -> Result<Vec<Structure>> {
        let budget = self.budget.clone();
        let mut share = Share::new(budget.as_deref());
        let mut bytes = std::mem::take(&mut self.file);
        let outcome = load(path, &self.options.limits, &mut bytes, &mut share)
            .and_then(|()| self.read_shared(&path.to_string_lossy(), &bytes, &mut share));
        self.file = bytes;
        outcome
    }

    /// Reads the bytes of a file, plain or gzipped: what they are decides. The
    /// format is the one that `name` stands for, unless the text starts like a
    /// CIF file, which no PDB file does; else it is the one the text looks like.
    pub fn read_auto(&mut self, name: &str, bytes: &[u8]) -> Result<Vec<Structure>> {
        let budget = self.budget.clone();
        self.read_shared(name, bytes, &mut Share::new(budget.as_deref()))
    }

    fn read_shared(
        &mut self,
        name: &str,
        bytes: &[u8],
        share: &mut Share,
    ) -> Result<Vec<Structure>> {
        if !bytes.starts_with(&GZIP_MAGIC) {
            return self.read_text(name, bytes);
        }
        let mut text = std::mem::take(&mut self.text);
        let outcome = gunzip(bytes, &self.options.limits, &mut text, share)
            .and_then(|()| self.read_text(name, &text));
        self.text = text;
        outcome
    }

    /// Reads text of a known format.
    pub fn read_bytes(&mut self, text: &[u8], format: Format) -> Result<Vec<Structure>> {
        let limits = self.options.limits;
        limits.check_text(text.len() as u64)?;
        let Scratch {
            table,
            edges,
            selector,
        } = &mut self.scratch;
        table.clear(limits);
        match format {
            Format::Pdb => pdb::read(text, self.options, table)?,
            Format::Mmcif => mmcif::read(text, self.options, table, edges)?,
        }
        if let (true, Some(truncation)) = (self.options.strict, table.truncation) {
            let message = format!("the file may be cut short: {truncation}");
            return Err(
                Error::input(message).fix("fetch the file again, or read it without strict = true")
            );
        }
        let deposited = selector.select(table, text, self.options)?;
        if table.generators.is_empty() {
            return Ok(deposited);
        }
        let (mut atoms, mut residues) = (0, 0);
        let assembly = |structure: &Structure| {
            let built = assembly::build(structure, &table.generators, &limits)?;
            atoms += built.xyz.len() as u64;
            residues += built.residues.len() as u64;
            let what = |unit| move || format!("the assemblies of all models have too many {unit}");
            check("atoms_max", limits.atoms_max, atoms, what("atoms"))?;
            check(
                "residues_max",
                limits.residues_max,
                residues,
                what("residues"),
            )?;
            Ok(built)
        };
        deposited.iter().map(assembly).collect()
    }

    fn read_text(&mut self, name: &str, text: &[u8]) -> Result<Vec<Structure>> {
        if text.trim_ascii().is_empty() {
            return Err(Error::input("the file is empty"));
        }
        self.read_bytes(text, format_of(name, text)?)
    }
}

/// The text of a file's bytes, plain or gzipped, and its format.
///
/// # Errors
/// The gzip data is damaged, the text is of no known format or over a limit.
pub fn text_of(name: &str, bytes: Vec<u8>, limits: &ReadLimits) -> Result<(Vec<u8>, Format)> {
    let text = if bytes.starts_with(&GZIP_MAGIC) {
        let mut text = Vec::new();
        gunzip(&bytes, limits, &mut text, &mut Share::new(None))?;
        text
    } else {
        bytes
    };
    let format = format_of(name, &text)?;
    Ok((text, format))
}

/// The format that a name and the text behind it say; a text that starts as a
/// CIF file does is one, whatever its name.
fn format_of(name: &str, text: &[u8]) -> Result<Format> {
    let looks_like = Format::from_text(text);
    let format = match looks_like {
        Some(Format::Mmcif) => looks_like,
        _ => Format::from_name(name).or(looks_like),
    };
    format.ok_or_else(|| {
        Error::input("neither PDB nor mmCIF, by name or content")
            .fix("give a .pdb, .ent, .cif or .mmcif file, plain or with .gz")
    })
}

/// Reads a file into `bytes`.
fn load(path: &Path, limits: &ReadLimits, bytes: &mut Vec<u8>, share: &mut Share) -> Result<()> {
    let file = std::fs::File::open(path).map_err(Error::io)?;
    // 0 for pipes and devices.
    let size = file.metadata().map_err(Error::io)?.len();
    limits.check_text(size)?;
    let max = u64::from(limits.text_bytes_max);
    let whole = fill(bytes, file, size, max, share, Error::io)?;
    match whole {
        true => Ok(()),
        false => limits.check_text(bytes.len() as u64),
    }
}

/// Unpacks all members of a gzip file into `text`.
fn gunzip(bytes: &[u8], limits: &ReadLimits, text: &mut Vec<u8>, share: &mut Share) -> Result<()> {
    let max = limits.unpacked_bytes_max(bytes.len());
    // The last four bytes are the size of the last member, usually the only one;
    // corrupt ones must not reserve gigabytes.
    let claimed = bytes
        .last_chunk::<4>()
        .map_or(0, |size| u32::from_le_bytes(*size));
    let size = u64::from(claimed).min(bytes.len() as u64 * 16);
    let refused = |error: std::io::Error| match error.kind() {
        ErrorKind::UnexpectedEof => {
            Error::input("the gzip data is cut short").fix("fetch the file again")
        }
        _ => Error::input(format!("the gzip data is damaged: {error}")).fix("fetch the file again"),
    };
    if fill(text, MultiGzDecoder::new(bytes), size, max, share, refused)? {
        return Ok(());
    }
    let what = format!("{} bytes of gzip data unpack to over {max}", bytes.len());
    let (field, limit) = match max < u64::from(limits.text_bytes_max) {
        true => ("unpack_ratio_max", limits.unpack_ratio_max),
        false => ("text_bytes_max", limits.text_bytes_max),
    };
    Err(exceeded(field, limit, what))
}

/// The least that is read at once of a source that is larger than it seemed.
const STEP_BYTES_MIN: u64 = 64 << 10;

/// Fills `bytes` with what `source` holds, which is probably `size` bytes. False if that is
/// over `max` bytes, of which one more is read then.
fn fill(
    bytes: &mut Vec<u8>,
    mut source: impl Read,
    size: u64,
    max: u64,
    share: &mut Share,
    refused: impl Fn(std::io::Error) -> Error,
) -> Result<bool> {
    bytes.clear();
    let mut step = size.min(max) + 1;
    loop {
        share.grow(step);
        reserve(bytes, step as usize)?;
        let read = source.by_ref().take(step).read_to_end(bytes);
        if (read.map_err(&refused)? as u64) < step {
            return Ok(true);
        }
        let len = bytes.len() as u64;
        if len > max {
            return Ok(false);
        }
        step = len.max(STEP_BYTES_MIN).min(max + 1 - len);
    }
}
