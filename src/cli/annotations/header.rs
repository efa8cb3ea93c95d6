//! The columns of a table of annotations.

use crate::error::{Error, Result};
use std::fmt::Display;

/// Names of the columns that say which residue a row is of: as the table of
/// residues has them, and shorter.
const STRUCTURE: &[&str] = &["structure"];
const MODEL: &[&str] = &["model"];
const CHAIN: &[&str] = &["auth_asym_id", "chain"];
const NUMBER: &[&str] = &["auth_seq_id", "residue"];
const INS_CODE: &[&str] = &["ins_code"];

/// What a table starts with.
pub(super) const NAMES_COLUMNS: &str =
    "the first line names the columns: structure, chain, residue, and those of annotations";

/// Where a table has what, by the place of the column.
#[derive(Debug)]
pub(super) struct Header {
    /// `None` where the file's name is the structure's.
    pub(super) structure: Option<usize>,
    pub(super) model: Option<usize>,
    pub(super) chain: usize,
    pub(super) number: usize,
    pub(super) ins_code: Option<usize>,
    /// The columns that are channels, each with the channel's place among those
    /// that are wanted.
    pub(super) channels: Vec<(usize, usize)>,
}

impl Header {
    /// Finds the columns by name.
    ///
    /// # Errors
    /// A column that names residues is missing, or a name is there twice.
    pub(super) fn of(names: &[&str], wanted: &[String]) -> Result<Self> {
        let twice = (1..names.len()).find(|&at| names[..at].contains(&names[at]));
        if let Some(at) = twice {
            let text = format!("column {:?} is there twice", names[at]);
            return Err(Error::config(text).fix("give each column a name of its own"));
        }
        let find = |known: &[&str]| {
            let mut known = known.iter();
            known.find_map(|known| names.iter().position(|name| name == known))
        };
        let need = |known: &[&str]| {
            find(known).ok_or_else(|| {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                let text = format!("there is no column {}", known.join(" or "));
                Error::config(text).fix(NAMES_COLUMNS)
            })
        };
        let channels = wanted.iter().enumerate();
        let channels = channels.filter_map(|(channel, name)| {
            let at = names.iter().position(|own| own == name)?;
            Some((at, channel))
        });
        Ok(Header {
            structure: find(STRUCTURE),
            model: find(MODEL),
            chain: need(CHAIN)?,
            number: need(NUMBER)?,
            ins_code: find(INS_CODE),
            channels: channels.collect(),
        })
    }

    /// All columns that are read.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        let keys = [
            self.structure,
            self.model,
            Some(self.chain),
            Some(self.number),
            self.ins_code,
        ];
        let channels = self.channels.iter().map(|(at, _)| *at);
        keys.into_iter().flatten().chain(channels)
    }
}

/// A residue number, and the insertion code that may follow it, 0 for none: `52A`.
pub(super) fn residue_number(text: &str) -> Result<(i32, u8)> {
    let wrong = || {
        Error::config(format!("{text:?} is no residue number"))
            .fix("residues are numbered as in the file, with the insertion code: 52 or 52A")
    };
    let (digits, code) = match text.as_bytes().last() {
        Some(code) if code.is_ascii_alphabetic() => (&text[..text.len() - 1], *code),
        _ => (text, 0),
    };
    Ok((digits.parse().map_err(|_| wrong())?, code))
}

/// An insertion code of its own column, 0 for none.
pub(super) fn insertion_code(text: &str) -> Result<u8> {
    match text.as_bytes() {
        [] => Ok(0),
        [code] => Ok(super::ins_code(*code)),
        _ if is_null(text) => Ok(0),
        _ => Err(Error::config(format!("{text:?} is no insertion code")).fix("give one letter")),
    }
}

/// The name of a structure, which may not be empty.
pub(super) fn structure(text: &str) -> Result<&str> {
    if text.is_empty() {
        return Err(Error::config("the structure's name is empty").fix(
            "name the structure in each row, or leave the column out and name the file by it",
        ));
    }
    Ok(text)
}

/// A value as it is held, in 32 bits, NaN for none. It was `written` so.
pub(super) fn finite(value: f32, written: impl Display) -> Result<f32> {
    if value.is_infinite() {
        return Err(
            Error::config(format!("{written} is beyond the numbers of 32 bits"))
                .fix("give a finite number below 3.4e38, or none where there is no value"),
        );
    }
    Ok(value)
}

/// Whether a field says that there is no value.
pub(super) fn is_null(text: &str) -> bool {
    let nulls = ["", "NA", "N/A", "nan", "null", "none", ".", "?", "-"];
    nulls.iter().any(|null| text.eq_ignore_ascii_case(null))
}
