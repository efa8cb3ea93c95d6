//! The columns of a table of annotations, and what their cells mean, whichever format the
//! table has.

use super::ResidueKey;
use crate::error::{Context, Error, Result};

/// Names of the columns that identify a residue: the name in the table of residues, and a
/// shorter one.
const STRUCTURE: &[&str] = &["structure"];
const MODEL: &[&str] = &["model"];
const CHAIN: &[&str] = &["auth_asym_id", "chain"];
const NUMBER: &[&str] = &["auth_seq_id", "residue"];
const INS_CODE: &[&str] = &["ins_code"];

/// The fix where a table does not name the columns.
pub(super) const NAME_COLUMNS: &str =
    "the first line names the columns: structure, chain, residue, and those of annotations";

/// Texts that stand for a missing value, in any case.
const NULLS: [&str; 9] = ["", "NA", "N/A", "nan", "null", "none", ".", "?", "-"];

/// A cell as the format of the table has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    Null,
    Number(f64),
    Text(&'a str),
}

/// The indices of a table's columns.
#[derive(Debug)]
pub(super) struct Columns {
    /// `None` where the file is named for the structure.
    structure: Option<usize>,
    model: Option<usize>,
    chain: usize,
    number: usize,
    ins_code: Option<usize>,
    /// The columns that are channels, each with the channel's index.
    channels: Vec<(usize, usize)>,
}

impl Columns {
    /// Finds the columns by name.
    ///
    /// # Errors
    /// A column that identifies residues is missing, or a name is there twice.
    pub(super) fn find(names: &[&str], channels: &[String]) -> Result<Self> {
        if let Some(at) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
            let text = format!("column {:?} is there twice", names[at]);
            return Err(Error::config(text).fix("give each column a name of its own"));
        }
        let position = |name: &str| names.iter().position(|own| *own == name);
        let find = |known: &[&str]| known.iter().find_map(|name| position(name));
        let require = |known: &[&str]| {
            find(known).ok_or_else(|| {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                let text = format!("there is no column {}", known.join(" or "));
                Error::config(text).fix(NAME_COLUMNS)
            })
        };
        let channels = channels.iter().enumerate();
        let channels = channels.filter_map(|(channel, name)| Some((position(name)?, channel)));
        Ok(Columns {
            structure: find(STRUCTURE),
            model: find(MODEL),
            chain: require(CHAIN)?,
            number: require(NUMBER)?,
            ins_code: find(INS_CODE),
            channels: channels.collect(),
        })
    }

    /// Whether the table has none of the channels.
    pub(super) fn have_no_channel(&self) -> bool {
        self.channels.is_empty()
    }

    /// The indices of the columns that are read, in ascending order.
    pub(super) fn indices(&self) -> Vec<usize> {
        let keys = [self.structure, self.model, self.ins_code];
        let mut indices = vec![self.chain, self.number];
        indices.extend(keys.into_iter().flatten());
        indices.extend(self.channels.iter().map(|(at, _)| at));
        indices.sort_unstable();
        indices.dedup();
        indices
    }

    /// The residue of a row. `file_name` is the structure's name if no column has it.
    ///
    /// # Errors
    /// A cell that does not hold what its column needs.
    pub(super) fn key<'a>(&self, row: &[Cell<'a>], file_name: &'a str) -> Result<ResidueKey<'a>> {
        let structure = match self.structure {
            Some(at) => text(row[at], "structure")?,
            None => file_name,
        };
        if structure.is_empty() {
            return Err(Error::config("the structure's name is empty").fix(
                "name the structure in each row, or leave the column out and name the file by it",
            ));
        }
        let (number, mut ins_code) = residue_number(row[self.number])?;
        if let Some(at) = self.ins_code {
            let code = text(row[at], "insertion code")?;
            if !is_null(code) {
                ins_code = insertion_code(code)?;
            }
        }
        Ok(ResidueKey {
            structure,
            model: self.model.map_or(Ok(None), |at| model(row[at]))?,
            chain: text(row[self.chain], "chain")?,
            number,
            ins_code,
        })
    }

    /// Writes the values of a row, by channel; NaN stands for none.
    ///
    /// # Errors
    /// A cell that is not a number of 32 bits.
    pub(super) fn values(
        &self,
        row: &[Cell<'_>],
        channels: &[String],
        values: &mut [f32],
    ) -> Result<()> {
        for &(at, channel) in &self.channels {
            let value = value(row[at]);
            values[channel] = value.within(|| format!("column {:?}", channels[channel]))?;
        }
        Ok(())
    }
}

fn is_null(text: &str) -> bool {
    NULLS.iter().any(|null| text.eq_ignore_ascii_case(null))
}

/// The text of a cell, empty if there is none.
fn text<'a>(cell: Cell<'a>, what: &str) -> Result<&'a str> {
    match cell {
        Cell::Text(text) => Ok(text),
        Cell::Null => Ok(""),
        Cell::Number(number) => {
            let text = format!("the {what} is the number {number}, not text");
            Err(Error::config(text).fix("write the column as text"))
        }
    }
}

fn whole(number: f64, what: &str) -> Result<i32> {
    if number.fract() != 0.0 || number.abs() > f64::from(i32::MAX) {
        let error = Error::config(format!("{number} is not a {what}"));
        return Err(error.fix("write whole numbers, as the structure's file does"));
    }
    Ok(number as i32)
}

/// A residue number, and the insertion code that may follow it, 0 for none: `52A`.
fn residue_number(cell: Cell<'_>) -> Result<(i32, u8)> {
    let text = match cell {
        Cell::Number(number) => return Ok((whole(number, "residue number")?, 0)),
        Cell::Text(text) if !text.is_empty() => text,
        Cell::Text(_) | Cell::Null => {
            let error = Error::config("the residue number is missing");
            return Err(error.fix("write it as in the structure's file"));
        }
    };
    let (digits, code) = match text.as_bytes().last() {
        Some(code) if code.is_ascii_alphabetic() => (&text[..text.len() - 1], *code),
        _ => (text, 0),
    };
    let number = digits.parse().map_err(|_| {
        Error::config(format!("{text:?} is not a residue number"))
            .fix("number residues as in the file, with the insertion code: 52 or 52A")
    })?;
    Ok((number, code))
}

fn insertion_code(text: &str) -> Result<u8> {
    match text.as_bytes() {
        [b' '] => Ok(0),
        [code] => Ok(*code),
        _ => {
            Err(Error::config(format!("{text:?} is not an insertion code")).fix("give one letter"))
        }
    }
}

/// A model's number; `None` stands for all models.
fn model(cell: Cell<'_>) -> Result<Option<i32>> {
    match cell {
        Cell::Null => Ok(None),
        Cell::Number(number) => whole(number, "model's number").map(Some),
        Cell::Text(text) if is_null(text) => Ok(None),
        Cell::Text(text) => text.parse().map(Some).map_err(|_| {
            Error::config(format!("{text:?} is not a model's number"))
                .fix("number models as in the file: 1; leave it empty for all models")
        }),
    }
}

/// A channel's value, NaN for none.
fn value(cell: Cell<'_>) -> Result<f32> {
    let (value, written) = match cell {
        Cell::Null => return Ok(f32::NAN),
        Cell::Number(number) => (number as f32, format!("{number:?}")),
        Cell::Text(text) if is_null(text) => return Ok(f32::NAN),
        Cell::Text(text) => {
            // Parsed as 32 bits, since a value of 64 bits would be rounded twice.
            let value = text.parse().map_err(|_| {
                Error::config(format!("{text:?} is not a number"))
                    .fix("leave it empty for none, or the column out of `smooth.channels`")
            });
            (value?, format!("{text:?}"))
        }
    };
    if value.is_infinite() {
        return Err(
            Error::config(format!("{written} is beyond the numbers of 32 bits"))
                .fix("give a finite number below 3.4e38, or none where there is no value"),
        );
    }
    Ok(value)
}
