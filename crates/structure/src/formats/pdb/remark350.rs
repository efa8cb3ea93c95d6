//! The assembly of a PDB file: REMARK 350.
//!
//! A BIOMOLECULE line starts an assembly. APPLY THE FOLLOWING TO CHAINS starts a generator, whose
//! list of chains AND CHAINS continues. Three BIOMT lines are an operator. Only assembly 1 is read.
//! Lines that do not follow each other in this way are
//! [`ErrorKind::Input`](crate::ErrorKind::Input) errors with their number.

use std::borrow::Cow;

use crate::assembly::{FIX, Generators, Operator, check_operators};
use crate::decimal::float;
use crate::read_limits::ReadLimits;
use crate::text::{at_line, on_line};
use crate::{Error, Result};

/// The remarks that have been read so far.
pub(super) struct Remark350<'a> {
    text: &'a [u8],
    /// Whether the lines belong to assembly 1.
    is_wanted: bool,
    limits: ReadLimits,
    /// How many operators have been read.
    operators: usize,
    generators: Generators,
    /// Where the last generator starts.
    generator_offset: usize,
    /// The rows of the operator so far, and its number.
    rows: Vec<[f64; 4]>,
    serial: &'a [u8],
}

impl<'a> Remark350<'a> {
    /// A reader that waits for assembly 1. `text` is the whole file's, for the lines of errors.
    pub(super) fn new(text: &'a [u8], limits: ReadLimits) -> Self {
        Remark350 {
            text,
            is_wanted: false,
            limits,
            operators: 0,
            generators: Generators::by_chain_id(),
            generator_offset: 0,
            rows: Vec::new(),
            serial: b"",
        }
    }

    /// Reads `line`, which is the rest of a line after `REMARK 350`. The line starts at `offset`.
    /// Fails with [`ErrorKind::Input`](crate::ErrorKind::Input) for a line out of order or an
    /// operator that is none, and with [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) for too
    /// many operators or chains.
    pub(super) fn read_line(&mut self, line: &'a [u8], offset: usize) -> Result<()> {
        let line = line.trim_ascii();
        let mut words = line.split(u8::is_ascii_whitespace);
        if let Some(ids) = line.strip_prefix(b"BIOMOLECULE:") {
            self.end_generator()?;
            self.is_wanted = items(ids).any(|id| id == b"1");
            return Ok(());
        }
        if !self.is_wanted {
            return Ok(());
        }
        if let Some(chains) = line.strip_prefix(b"APPLY THE FOLLOWING TO CHAINS:") {
            self.end_generator()?;
            self.generator_offset = offset;
            self.generators.add(Vec::new());
            self.add_chains(chains, offset)?;
        } else if let Some(chains) = line.strip_prefix(b"AND CHAINS:") {
            self.add_chains(chains, offset)?;
        } else if let Some(row) = words.next().and_then(|word| word.strip_prefix(b"BIOMT")) {
            self.read_row(row, words.filter(|word| !word.is_empty()), offset)?;
        }
        Ok(())
    }

    /// The generators of assembly 1; none if the file does not define it.
    pub(super) fn finish(mut self) -> Result<Generators> {
        self.end_generator()?;
        Ok(self.generators)
    }

    /// Adds the chains of a list to the last generator.
    fn add_chains(&mut self, chains: &[u8], offset: usize) -> Result<()> {
        self.check_generator(offset)?;
        let listed = self
            .generators
            .add_chains(chain_ids(chains), self.limits.chains_max);
        listed.map_err(|error| on_line(self.text, offset, error))
    }

    /// Reads a row of an operator: its number, the operator's, and four more.
    fn read_row(
        &mut self,
        row: &[u8],
        mut words: impl Iterator<Item = &'a [u8]>,
        offset: usize,
    ) -> Result<()> {
        self.check_generator(offset)?;
        let serial = words.next().unwrap_or_default();
        let expected = self.rows.len() + 1;
        if row != expected.to_string().as_bytes() || (expected > 1 && serial != self.serial) {
            let message = format!("BIOMT{expected} of an operator should be here");
            return Err(self.error(offset, &message));
        }
        let values: Vec<f64> = words.map_while(float).collect();
        let Ok(values) = values.try_into() else {
            return Err(self.error(offset, "BIOMT does not have four numbers"));
        };
        self.serial = serial;
        self.rows.push(values);
        let Ok(rows) = self.rows.as_slice().try_into() else {
            return Ok(());
        };
        self.rows.clear();
        let Some(operator) = Operator::new(rows) else {
            let message = "the operator that ends here is not a rotation and a translation";
            return Err(self.error(offset, message));
        };
        self.operators += 1;
        check_operators(self.operators, &self.limits)?;
        let operators = self.generators.operators();
        operators.expect("there is a generator").push(operator);
        Ok(())
    }

    /// Refuses a line that belongs to a generator before the first one.
    fn check_generator(&self, offset: usize) -> Result<()> {
        if self.generators.is_empty() {
            Err(self.error(offset, "no APPLY THE FOLLOWING TO CHAINS before this"))
        } else {
            Ok(())
        }
    }

    /// Refuses a generator without an operator, or with a part of one.
    fn end_generator(&mut self) -> Result<()> {
        let whole = self.rows.is_empty();
        match self.generators.operators() {
            Some(operators) if !whole || operators.is_empty() => {
                let message = "the chains here lack operators: BIOMT1, BIOMT2 and BIOMT3";
                Err(self.error(self.generator_offset, message))
            }
            _ => Ok(()),
        }
    }

    fn error(&self, offset: usize, message: &str) -> Error {
        at_line(self.text, offset, message).fix(FIX)
    }
}

/// The items of a list. A comma may end the line.
fn items(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let items = list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    items.filter(|item| !item.is_empty())
}

/// Chain ids; `NULL` stands for the blank one.
fn chain_ids(list: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    items(list).map(|id| match id {
        b"NULL" => Cow::default(),
        id => String::from_utf8_lossy(id),
    })
}
