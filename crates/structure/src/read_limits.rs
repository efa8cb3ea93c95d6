//! Limits of what a file may hold.

use std::fmt::Display;
use tapeloop_error::internal::LaterFields;

use super::model::Structure;
use super::text::quoted;
use crate::{Error, ErrorKind, Result};

/// The most that a file may hold. A file that exceeds a limit is rejected while it is read, with an
/// [`ErrorKind::Capacity`] that names the field.
///
/// No entry of the Protein Data Bank reaches a default, except assemblies of the largest viruses.
/// `docs/LIMITS.md` gives the reason for each default. Later versions may add fields: end a literal with
/// `..ReadLimits::default()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadLimits {
    /// Bytes of a file, and of its unpacked text.
    pub text_bytes_max: u32,
    /// Bytes of text that a byte of packed data may unpack to, and bytes that the columns of a
    /// BinaryCIF file may decode to for each byte of the file. The first 4 MiB do not count.
    pub unpack_ratio_max: u32,
    /// Bytes of a name: an entry, a chain, an entity, a component, an accession.
    pub name_bytes_max: u32,
    /// Atoms in all models that are read, water and ligands included.
    pub atoms_max: u32,
    /// Residues in all models that are read, water and ligands included; also the links of a file
    /// whose ligands are read.
    pub residues_max: u32,
    /// Models that are read.
    pub models_max: u32,
    /// Chains of a file or of an assembly, and rows of each mmCIF category that describes chains,
    /// entities, components or references.
    pub chains_max: u32,
    /// Operators that are evaluated for an assembly, including products and their factors.
    pub operators_max: u32,
    /// Atoms of an assembly, those of ligands included.
    pub assembly_atoms_max: u32,
    /// Amino-acid residues of an assembly.
    pub assembly_residues_max: u32,
    /// Bytes of the names of all amino-acid residues that are read: of their entry, chain, entity
    /// and accession, each counted for each residue.
    pub row_names_bytes_max: u32,
    #[doc(hidden)]
    pub later: LaterFields,
}

impl Default for ReadLimits {
    fn default() -> Self {
        ReadLimits {
            text_bytes_max: 1 << 30,
            unpack_ratio_max: 32,
            name_bytes_max: 256,
            atoms_max: 20_000_000,
            residues_max: 10_000_000,
            models_max: 100_000,
            chains_max: 100_000,
            operators_max: 100_000,
            assembly_atoms_max: 8_000_000,
            assembly_residues_max: 1 << 20,
            row_names_bytes_max: 256 << 20,
            later: LaterFields::NONE,
        }
    }
}

/// Text that packed data of any size may unpack to: short files that repeat one residue compress well.
const UNPACK_FREE_BYTES: u64 = 4 << 20;

impl ReadLimits {
    /// The most text that a file of `packed` bytes may unpack to.
    pub(super) fn unpacked_bytes_max(&self, packed: usize) -> u64 {
        let by_ratio = self.unpacked_stream_max(packed as u64);
        by_ratio.min(u64::from(self.text_bytes_max))
    }

    /// The most that `packed` bytes may unpack to in a stream of many files.
    #[doc(hidden)]
    pub fn unpacked_stream_max(&self, packed: u64) -> u64 {
        let by_ratio = packed.saturating_mul(self.unpack_ratio_max.into());
        by_ratio.saturating_add(UNPACK_FREE_BYTES)
    }

    /// The error of a file that unpacks to more than [`ReadLimits::unpacked_bytes_max`].
    pub(super) fn unpacks_too_far(&self, method: &str, packed: usize) -> Error {
        let max = self.unpacked_bytes_max(packed);
        let what = format!("{packed} bytes of {method} data unpack to over {max}");
        let (field, limit) = self.unpacked_bytes_field(max);
        limit_error(field, limit, what)
    }

    /// The error of a stream that unpacks to more than [`ReadLimits::unpacked_stream_max`].
    #[doc(hidden)]
    pub fn stream_unpacks_too_far(&self) -> Error {
        let what = "the archive unpacks to too many times its size";
        limit_error("unpack_ratio_max", self.unpack_ratio_max, what)
    }

    /// The field, and its value, that a bound of [`Self::unpacked_bytes_max`] follows from.
    pub(super) fn unpacked_bytes_field(&self, bytes_max: u64) -> (&'static str, u32) {
        if bytes_max < u64::from(self.text_bytes_max) {
            ("unpack_ratio_max", self.unpack_ratio_max)
        } else {
            ("text_bytes_max", self.text_bytes_max)
        }
    }

    /// Refuses text over the limit, with an [`ErrorKind::Capacity`] error.
    #[doc(hidden)]
    pub fn check_text(&self, bytes: u64) -> Result<()> {
        let excess = || format!("the file has {bytes} bytes of text");
        check("text_bytes_max", self.text_bytes_max, bytes, excess)
    }

    /// The [`ErrorKind::Capacity`] error of a stream of unknown length that has more text than the limit.
    #[doc(hidden)]
    pub fn stream_too_long(&self) -> Error {
        let max = self.text_bytes_max;
        limit_error(
            "text_bytes_max",
            max,
            format!("the file has over {max} bytes of text"),
        )
    }

    /// Refuses a name over the limit, with an [`ErrorKind::Capacity`] error. The message calls its
    /// owner `owner`.
    #[doc(hidden)]
    pub fn check_name(&self, owner: &str, name: &[u8]) -> Result<()> {
        let (max, len) = (self.name_bytes_max, name.len());
        let excess = || format!("{owner} {} has {len} bytes", quoted(name));
        check("name_bytes_max", max, len as u64, excess)
    }

    /// Refuses the structures of a file whose names take too many bytes in tables, and those whose
    /// chains have too long sequences. The error is [`ErrorKind::Capacity`].
    #[doc(hidden)]
    pub fn check_row_names(&self, structures: &[Structure]) -> Result<()> {
        let residues = structures.iter().map(Structure::sequence_residues).sum();
        let excess = || format!("the sequences of all chains together have {residues} residues");
        check("residues_max", self.residues_max, residues, excess)?;
        let names = structures.iter().map(Structure::row_names_bytes).sum();
        let excess = || format!("the names of all residues together have {names} bytes");
        check(
            "row_names_bytes_max",
            self.row_names_bytes_max,
            names,
            excess,
        )
    }
}

/// Refuses a `count` over `max`, which is the limit `field`, with an [`ErrorKind::Capacity`] error.
/// `excess` begins the message.
#[inline]
pub fn check<T: Display>(
    field: &str,
    max: u32,
    count: u64,
    excess: impl FnOnce() -> T,
) -> Result<()> {
    if count <= u64::from(max) {
        return Ok(());
    }
    Err(limit_error(field, max, excess()))
}

/// The [`ErrorKind::Capacity`] error for exceeding `max`, which is the limit `field`. `excess`
/// begins the message.
#[cold]
pub(super) fn limit_error(field: &str, max: u32, excess: impl Display) -> Error {
    let message = format!("{excess}: limits.{field} is {max}");
    Error::new(ErrorKind::Capacity, message).fix(format!(
        "raise limits.{field} if the file is as it should be"
    ))
}

/// Makes room for `more` items.
///
/// # Errors
/// [`ErrorKind::Capacity`] if there is no memory for them.
pub(super) fn reserve<T>(items: &mut Vec<T>, more: usize) -> Result<()> {
    items.try_reserve_exact(more).map_err(|_| {
        let bytes = more.saturating_mul(size_of::<T>());
        let message = format!("there is no memory for {bytes} bytes of this file");
        Error::new(ErrorKind::Capacity, message).fix("read fewer files at once: lower threads")
    })
}
