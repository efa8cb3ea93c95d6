//! The file formats: one row of a table each. `docs/CONTRIBUTING.md` shows how to add one.

mod binary_cif;
pub(super) mod mmcif;
mod pdb;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

use super::ReadOptions;
use super::atom_table::{AtomTable, FieldsOfAtoms};
use super::compression::Compression;
use super::format::Format;
use super::ions;
use super::text::{FilePlace, without_byte_order_mark};
use crate::Result;

/// The properties and functions of a format.
struct FormatRow {
    /// The name in messages.
    name: &'static str,
    /// Endings of file names, in lower case and without the dot; the usual one first.
    endings: &'static [&'static str],
    /// Whether text is of this format, by its first line that is neither blank nor a comment
    /// (`#`). The line comes without the blanks around it.
    has_first_line: fn(&[u8]) -> bool,
    /// Whether such a first line counts more than the ending of the file's name.
    overrides_name: bool,
    /// Whether a later line shows that text is of this format, if no first line does.
    has_line: fn(&[u8]) -> bool,
    /// Reads text into an empty table.
    read: fn(&[u8], ReadOptions, &mut AtomTable) -> Result<()>,
    /// Where a run of [`AtomRun::offset`](super::atom_table::AtomRun::offset) starts.
    place: fn(&[u8], u32) -> FilePlace<'_>,
    /// Where text of this format holds B factors; `None` for a binary format.
    b_factors: Option<BFactorColumn>,
}

/// How a format writes B factors.
struct BFactorColumn {
    /// Finds the B factors of the atoms that `read` reads.
    find: fn(&[u8]) -> Result<FieldsOfAtoms>,
    /// Characters of a value; `None` where values may have any length.
    width: Option<usize>,
}

/// Lines of text that are searched for one that shows its format, if the first does not: a file of another
/// kind is not searched to its end.
const LINES_SEARCHED: usize = 1_000;

/// Makes the table of all formats, of one row each.
macro_rules! formats {
    ($($variant:ident: $row:expr,)+) => {
        impl Format {
            fn row(self) -> &'static FormatRow {
                match self {
                    $(Format::$variant => const { &$row }),+
                }
            }
        }
    };
}

formats! {
    Pdb: FormatRow {
        name: "PDB",
        endings: &["pdb", "ent", "pdb1", "pdbqt"],
        has_first_line: pdb::is_record,
        overrides_name: false,
        has_line: pdb::is_atom_line,
        read: pdb::read,
        place: |text, offset| FilePlace::Line(text, offset),
        b_factors: Some(BFactorColumn {
            find: pdb::b_factor_fields,
            width: Some(pdb::B_FACTOR.end - pdb::B_FACTOR.start),
        }),
    },
    Mmcif: FormatRow {
        name: "mmCIF",
        endings: &["cif", "mmcif"],
        has_first_line: mmcif::starts_data_block,
        overrides_name: true,
        has_line: |_| false,
        read: mmcif::read,
        place: |text, offset| FilePlace::Line(text, offset),
        b_factors: Some(BFactorColumn { find: mmcif::b_factor_fields, width: None }),
    },
    BinaryCif: FormatRow {
        name: "BinaryCIF",
        endings: &["bcif"],
        has_first_line: binary_cif::starts_file,
        overrides_name: true,
        has_line: |_| false,
        read: binary_cif::read,
        place: binary_cif::place,
        b_factors: None,
    },
}

impl Format {
    /// The name in messages: `PDB`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Endings of file names, in lower case and without the dot; the usual one first.
    pub fn endings(self) -> &'static [&'static str] {
        self.row().endings
    }

    /// The endings of all formats, for messages: `.pdb, .ent or .cif`.
    pub fn all_endings() -> String {
        let endings = Self::ALL.iter().flat_map(|format| format.endings());
        let mut endings: Vec<String> = endings.map(|ending| format!(".{ending}")).collect();
        let last = endings.pop().unwrap_or_default();
        format!("{} or {last}", endings.join(", "))
    }

    /// The format with the ending of a file name, in either case and with or without `.gz` or
    /// `.zst` after it.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = Compression::unpacked_name(name);
        let ending = Path::new(name).extension().and_then(OsStr::to_str)?;
        let is = |known: &&str| known.eq_ignore_ascii_case(ending);
        Self::find(|format| format.endings().iter().any(&is))
    }

    /// The format that text has by its first line that is neither blank nor a comment (`#`), else by
    /// one of its first lines: an atom of a PDB file.
    pub fn from_text(text: &[u8]) -> Option<Self> {
        let text = without_byte_order_mark(text);
        let mut start = 0;
        // `memchr`, as the first line of a binary file may be long.
        let ends = memchr::memchr2_iter(b'\n', b'\r', text).chain([text.len()]);
        let lines = ends.map(|end| {
            let line = &text[start..end];
            start = end + 1;
            line
        });
        let mut lines = lines.filter(|line| !matches!(line.trim_ascii_start(), [] | [b'#', ..]));
        let first = lines.next()?;
        Self::find(|format| (format.row().has_first_line)(first.trim_ascii())).or_else(|| {
            let mut lines = lines.take(LINES_SEARCHED);
            lines.find_map(|line| Self::find(|format| (format.row().has_line)(line)))
        })
    }

    /// The format of a file: its text's if that overrides the name, else its name's, else its
    /// text's. The first line of mmCIF is certain; a word such as `END` of a PDB file may begin any
    /// text.
    pub(super) fn of_file(name: &str, text: &[u8]) -> Option<Self> {
        let by_text = Self::from_text(text);
        let certain = by_text.filter(|format| format.row().overrides_name);
        certain.or_else(|| Self::from_name(name)).or(by_text)
    }

    fn find(is: impl Fn(Self) -> bool) -> Option<Self> {
        Self::ALL.iter().copied().find(|&format| is(format))
    }

    /// Text whose lines end with line feeds. If a carriage return alone ends the first line, all carriage
    /// returns become line feeds. Offsets stay valid.
    pub(super) fn with_line_feeds(self, text: &[u8]) -> Cow<'_, [u8]> {
        let is_text = self.row().b_factors.is_some();
        let first_end = memchr::memchr2(b'\n', b'\r', text).filter(|_| is_text);
        match first_end {
            Some(end) if text[end] == b'\r' && text.get(end + 1) != Some(&b'\n') => {
                let feed = |&byte: &u8| if byte == b'\r' { b'\n' } else { byte };
                text.iter().map(feed).collect()
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// Reads text of this format into an empty table, ends its last run, and corrects elements that
    /// the reader took from names.
    pub(super) fn read(
        self,
        text: &[u8],
        options: ReadOptions,
        table: &mut AtomTable,
    ) -> Result<()> {
        (self.row().read)(text, options, table)?;
        table.end_run();
        if table.guesses_elements {
            ions::set_elements(table);
        }
        Ok(())
    }

    /// Where a run of [`AtomRun::offset`](super::atom_table::AtomRun::offset) starts, for messages.
    pub(super) fn place(self, text: &[u8], offset: u32) -> FilePlace<'_> {
        (self.row().place)(text, offset)
    }

    /// Finds the B factors of the atoms that [`Format::read`] reads from all models; `None`
    /// for a binary format.
    pub(super) fn b_factors(self, text: &[u8]) -> Option<Result<FieldsOfAtoms>> {
        self.row()
            .b_factors
            .as_ref()
            .map(|column| (column.find)(text))
    }

    /// Characters that a B factor has in this format; `None` where it may have any number.
    pub fn b_factor_width(self) -> Option<usize> {
        self.row().b_factors.as_ref()?.width
    }
}
