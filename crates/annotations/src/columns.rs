//! The columns of a table of annotations, and what identifies its rows, whichever format the
//! table has.

use super::values::{AnnotationCell, is_null};
use tapeloop_error::internal::excerpt;
use tapeloop_error::{Error, Result};

/// Names of the columns that identify rows: the name in the table of residues, and a shorter one.
const STRUCTURE: &[&str] = &["structure"];
const MODEL: &[&str] = &["model"];
const CHAIN: &[&str] = &["auth_asym_id", "chain"];
const NUMBER: &[&str] = &["auth_seq_id", "residue"];
const INS_CODE: &[&str] = &["ins_code"];

/// The fix where a table does not name the columns.
pub(super) const NAME_COLUMNS: &str = "the first line names the columns: structure, chain and residue, or structure alone, and annotations";

/// The column that makes a table one of variants.
pub(super) const VARIANT: &str = "variant";

/// All names of columns that identify rows.
const IDENTIFYING: [&[&str]; 6] = [STRUCTURE, MODEL, CHAIN, NUMBER, INS_CODE, &[VARIANT]];

/// The most columns of a table, and of all tables by name: each takes memory in every structure.
const COLUMNS_MAX: usize = 1_000;

/// The most bytes of a column's name.
const NAME_BYTES_MAX: usize = 256;

/// The most bytes of a text in a cell: Arrow files and CSV repeat it in each row.
const TEXT_BYTES_MAX: usize = 1 << 16;

/// What each row of a table describes. The columns that identify rows decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Structures.
    Structures,
    /// Residues.
    Residues,
    /// Mutations of residues. A residue may have many.
    Variants,
}

/// The indices of a table's columns.
#[derive(Debug)]
pub(super) struct TableColumns {
    pub(super) level: Level,
    /// `None` if the file's name is the structure's.
    structure: Option<usize>,
    model: Option<usize>,
    /// The chain and the number; `None` in tables of structures.
    residue: Option<(usize, usize)>,
    ins_code: Option<usize>,
    /// The other columns, in the order of the table.
    pub(super) others: Vec<usize>,
}

/// The residue or the structure of a row, as the table names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RowKey<'a> {
    /// `None` stands for all models.
    pub(super) model: Option<i32>,
    /// Empty in tables of structures, as are the number and the code.
    pub(super) chain: &'a str,
    pub(super) number: i32,
    /// 0 for none.
    pub(super) ins_code: u8,
}

impl TableColumns {
    /// Finds the columns by name.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop_error::ErrorKind::Config): a column that identifies residues is missing or
    /// not distinct, a name is there twice or is too long, no column has values, or there are too many columns.
    pub(super) fn find(names: &[&str]) -> Result<Self> {
        check_count(names.len(), "the table has")?;
        if let Some(name) = names.iter().find(|name| name.len() > NAME_BYTES_MAX) {
            let name = excerpt(*name);
            let text = format!("the name of column {name} has more than {NAME_BYTES_MAX} bytes");
            return Err(Error::config(text).fix(NAME_COLUMNS));
        }
        check_case(names)?;
        let position = |name: &str| names.iter().position(|known| *known == name);
        let find = |known: &[&str]| known.iter().find_map(|name| position(name));
        let require = |known: &[&str]| {
            find(known).ok_or_else(|| {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                let text = format!("there is no column {}", known.join(" or "));
                Error::config(text).fix(NAME_COLUMNS)
            })
        };
        let structure = find(STRUCTURE);
        let names_residues = [CHAIN, NUMBER]
            .into_iter()
            .any(|names| find(names).is_some());
        let (level, residue) = match find(&[VARIANT]) {
            None if !names_residues && structure.is_some() => (Level::Structures, None),
            variant => {
                let level = variant.map_or(Level::Residues, |_| Level::Variants);
                (level, Some((require(CHAIN)?, require(NUMBER)?)))
            }
        };
        // Missing columns are reported before repeated names: the line may be no header.
        let is_again =
            |&index: &usize| !names[index].is_empty() && names[..index].contains(&names[index]);
        if let Some(index) = (1..names.len()).find(is_again) {
            let text = format!("the table has column {} twice", quoted(names[index]));
            return Err(Error::config(text).fix("give each column a name of its own"));
        }
        for known in [CHAIN, NUMBER] {
            if residue.is_some() && known.iter().all(|name| position(name).is_some()) {
                let text = format!(
                    "columns `{}` and `{}` are two names of the same column",
                    known[0], known[1]
                );
                return Err(Error::config(text).fix("leave one out, or give it another name"));
            }
        }
        let mut columns = TableColumns {
            level,
            structure,
            model: find(MODEL),
            residue,
            ins_code: residue.and_then(|_| find(INS_CODE)),
            others: Vec::new(),
        };
        let keys = columns.keys();
        let is_other = |index: &usize| !keys.contains(index) && !names[*index].is_empty();
        columns.others = (0..names.len()).filter(is_other).collect();
        if columns.others.is_empty() {
            let error =
                Error::config("no column has values: each column identifies rows or has no name");
            return Err(error.fix("add a column with values, or leave the table out"));
        }
        Ok(columns)
    }

    /// The indices of the columns that identify a row.
    pub(super) fn keys(&self) -> Vec<usize> {
        let mut keys: Vec<usize> = [self.structure, self.model, self.ins_code]
            .into_iter()
            .flatten()
            .collect();
        keys.extend(
            self.residue
                .into_iter()
                .flat_map(|(chain, number)| [chain, number]),
        );
        keys
    }

    /// The structure of a row. `file_name` is its name if no column has it.
    ///
    /// # Errors
    /// Of kind `Config`: the cell is no text, or empty.
    pub(super) fn structure<'a>(
        &self,
        row: &[AnnotationCell<'a>],
        file_name: &'a str,
    ) -> Result<&'a str> {
        let structure = match self.structure {
            Some(column) => text(row[column], "structure")?,
            None => file_name,
        };
        if structure.is_empty() {
            return Err(Error::config("the structure's name is empty").fix(
                "name the structure in each row, or leave the column out and name the file by it",
            ));
        }
        check_length(structure)?;
        Ok(structure)
    }

    /// What a row describes.
    ///
    /// # Errors
    /// Of kind `Config`: a cell does not hold what its column needs.
    pub(super) fn key<'a>(&self, row: &[AnnotationCell<'a>]) -> Result<RowKey<'a>> {
        let model = self.model.map_or(Ok(None), |column| model(row[column]))?;
        let Some((chain, number)) = self.residue else {
            let (chain, number, ins_code) = ("", 0, 0);
            return Ok(RowKey {
                model,
                chain,
                number,
                ins_code,
            });
        };
        let (shown, (number, mut ins_code)) = (row[number], residue_number(row[number])?);
        if let Some(column) = self.ins_code {
            let code = text(row[column], "insertion code")?;
            if !is_null(code) {
                let stated = insertion_code(code)?;
                if ![0, stated].contains(&ins_code) {
                    let text = format!(
                        "residue {} and its column of insertion codes differ: insertion code {code}",
                        shown.shown()
                    );
                    return Err(Error::config(text).fix("write the code once: 52 and A, or 52A"));
                }
                ins_code = stated;
            }
        }
        let chain = text(row[chain], "chain")?;
        check_length(chain)?;
        Ok(RowKey {
            model,
            chain,
            number,
            ins_code,
        })
    }
}

/// Whether a column of this name identifies rows.
pub(super) fn identifies_rows(name: &str) -> bool {
    IDENTIFYING.iter().any(|names| names.contains(&name))
}

/// An error of kind `Config` for `Variant` and `Chain`, which would be columns with values and change what a
/// table describes.
fn check_case(names: &[&str]) -> Result<()> {
    for name in names.iter().filter(|name| !identifies_rows(name)) {
        let mut known = IDENTIFYING.into_iter().flatten();
        if let Some(known) = known.find(|known| known.eq_ignore_ascii_case(name)) {
            let text = format!("column {name:?} differs from `{known}` in case alone");
            return Err(Error::config(text).fix(format!(
                "write {known} if it identifies rows, or give it another name"
            )));
        }
    }
    Ok(())
}

/// A text of the user's in a message.
fn quoted(text: &str) -> String {
    format!("\"{}\"", excerpt(text))
}

/// Checks the number of columns, of one table or of all; `have` begins the message.
///
/// # Errors
/// Of kind `Config` for more than [`COLUMNS_MAX`] columns.
pub(super) fn check_count(columns: usize, have: &str) -> Result<()> {
    if columns <= COLUMNS_MAX {
        return Ok(());
    }
    let error = Error::config(format!(
        "{have} at least {columns} columns, and the most is {COLUMNS_MAX}"
    ));
    Err(error.fix("write tables with fewer columns"))
}

/// Checks the length of a text in a cell.
///
/// # Errors
/// Of kind `Config` for a text of more than [`TEXT_BYTES_MAX`] bytes.
pub(super) fn check_length(text: &str) -> Result<()> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let text = format!(
        "a text has {} bytes, and the most is {TEXT_BYTES_MAX}",
        text.len()
    );
    Err(Error::config(text).fix("shorten it, or leave the column out of tables.annotations"))
}

/// The text of a cell, empty if there is none.
fn text<'a>(cell: AnnotationCell<'a>, column: &str) -> Result<&'a str> {
    match cell {
        AnnotationCell::Text(text) => Ok(text),
        AnnotationCell::Null => Ok(""),
        AnnotationCell::Integer(_) | AnnotationCell::Real(_) => {
            let text = format!("the {column} is the number {}, not text", cell.shown());
            Err(Error::config(text).fix("write the column as text"))
        }
        AnnotationCell::Flag(flag) => {
            let text = format!("the {column} is {flag}, not text");
            Err(Error::config(text).fix("write the column as text"))
        }
    }
}

/// A number of the key, which must be whole and fit 32 bits.
fn whole(cell: AnnotationCell<'_>, column: &str) -> Result<i32> {
    let number = cell.real().unwrap_or(f64::NAN);
    if number.fract() != 0.0 || number.abs() > f64::from(i32::MAX) {
        let error = Error::config(format!("{} is not a {column}", cell.shown()));
        return Err(error.fix("write whole numbers, as the structure's file does"));
    }
    Ok(number as i32)
}

/// A residue number, and the insertion code that may follow it, 0 for none: `52A`. An error of kind `Config` for
/// anything else.
fn residue_number(cell: AnnotationCell<'_>) -> Result<(i32, u8)> {
    let text = match cell {
        AnnotationCell::Integer(_) | AnnotationCell::Real(_) => {
            return Ok((whole(cell, "residue number")?, 0));
        }
        AnnotationCell::Text(text) if !text.is_empty() => text,
        AnnotationCell::Text(_) | AnnotationCell::Null | AnnotationCell::Flag(_) => {
            let error = Error::config("the residue number is missing");
            return Err(error.fix("write it as in the structure's file"));
        }
    };
    let (digits, code) = match text.as_bytes().last() {
        Some(code) if code.is_ascii_alphabetic() => (&text[..text.len() - 1], *code),
        _ => (text, 0),
    };
    let number = digits.parse().map_err(|_| {
        Error::config(format!("{} is not a residue number", quoted(text)))
            .fix("number residues as in the file, with the insertion code: 52 or 52A")
    })?;
    Ok((number, code))
}

/// The insertion code in a cell; 0 for a blank.
fn insertion_code(text: &str) -> Result<u8> {
    match text.as_bytes() {
        [b' '] => Ok(0),
        [code] => Ok(*code),
        _ => {
            let text = format!("{} is not an insertion code", quoted(text));
            Err(Error::config(text).fix("give one letter"))
        }
    }
}

/// A model's number; `None` stands for all models.
fn model(cell: AnnotationCell<'_>) -> Result<Option<i32>> {
    match cell {
        AnnotationCell::Null => Ok(None),
        // pandas writes a missing integer as NaN.
        AnnotationCell::Real(number) if number.is_nan() => Ok(None),
        AnnotationCell::Integer(_) | AnnotationCell::Real(_) | AnnotationCell::Flag(_) => {
            whole(cell, "model's number").map(Some)
        }
        AnnotationCell::Text(text) if is_null(text) => Ok(None),
        AnnotationCell::Text(text) => text.parse().map(Some).map_err(|_| {
            Error::config(format!("{} is not a model's number", quoted(text)))
                .fix("number models as in the file: 1; leave it empty for all models")
        }),
    }
}

/// A channel's value, NaN for none.
///
/// # Errors
/// Of kind `Config`: the cell is not a number of 32 bits.
pub(super) fn channel_value(cell: AnnotationCell<'_>) -> Result<f32> {
    let value = match cell {
        AnnotationCell::Null => return Ok(f32::NAN),
        AnnotationCell::Flag(flag) => f32::from(u8::from(flag)),
        AnnotationCell::Integer(number) => number as f32,
        AnnotationCell::Real(number) => number as f32,
        AnnotationCell::Text(text) if is_null(text) => return Ok(f32::NAN),
        // Parsed as 32 bits, since a value of 64 bits would be rounded twice.
        AnnotationCell::Text(text) => text.parse().map_err(|_| {
            Error::config(format!("{} is not a number", quoted(text)))
                .fix("leave it empty for none, or the column out of `smooth.channels` and kernels")
        })?,
    };
    if value.is_infinite() {
        let shown = match cell {
            AnnotationCell::Text(text) => quoted(text),
            cell => cell.shown().into_owned(),
        };
        return Err(
            Error::config(format!("{shown} is out of the range of a 32-bit float"))
                .fix("give a finite number below 3.4e38, or none where there is no value"),
        );
    }
    Ok(value)
}
