//! Explains the result codes of the CUDA driver.
//!
//! The driver explains its codes too (`cuGetErrorString`), but not on a machine without a driver,
//! and never with a next step. Codes are plain numbers, as a newer driver returns codes that the
//! bindings' enum lacks.

use super::{Error, ErrorKind};
use std::ops::RangeInclusive;

/// One line for each code: number, name, `lost` if the context cannot be used after it, meaning,
/// next step.
const TABLE: &str = include_str!("codes.tsv");

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: i32 = 2;

/// The codes of captures of streams: `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` to `CUDA_ERROR_TIMEOUT`.
pub const CAPTURE_CODES: RangeInclusive<i32> = 900..=909;

/// `CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE` and `CUDA_ERROR_GRAPH_RECAPTURE_FAILURE`.
pub(super) const UPDATE_CODES: [i32; 2] = [910, 918];

/// A `CUresult` with its explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Code {
    /// The number.
    pub raw: i32,
    /// Its name in `cuda.h`.
    pub name: &'static str,
    /// Whether the context, and mostly CUDA in the whole process, cannot be used after it.
    pub loses_context: bool,
    /// The meaning.
    pub meaning: &'static str,
    /// What the reader can do.
    pub next_step: &'static str,
}

impl Code {
    /// All known codes.
    pub fn all() -> impl Iterator<Item = Code> {
        TABLE.lines().skip(1).filter_map(Code::parse)
    }

    /// The entry of a number; for an unknown number an entry that says so, and counts the context as lost: work on one
    /// that is lost would fail for other reasons.
    pub fn of(raw: i32) -> Code {
        Code::all()
            .find(|code| code.raw == raw)
            .unwrap_or(Code {
                raw,
                name: "an unknown code",
                loses_context: true,
                meaning: "the driver is newer than this program and returned a code that it does not know",
                next_step: "look the number up in the cuda.h of the driver's CUDA version",
            })
    }

    /// A row of the table.
    fn parse(line: &'static str) -> Option<Code> {
        let mut cells = line.split('\t');
        Some(Code {
            raw: cells.next()?.parse().ok()?,
            name: cells.next()?,
            loses_context: cells.next()? == "lost",
            meaning: cells.next()?,
            next_step: cells.next()?,
        })
    }

    /// The error of a driver call that returned this code.
    pub fn error(self, call: &str) -> Error {
        let kind = match self.raw {
            OUT_OF_MEMORY => ErrorKind::OutOfMemory,
            _ => ErrorKind::Device,
        };
        Error::new(
            kind,
            format!("{call}: {} ({}, {})", self.meaning, self.name, self.raw),
        )
        .with_code(self.raw)
        .fix(self.next_step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_complete_and_codes_ascend() {
        let codes: Vec<Code> = Code::all().collect();
        assert_eq!(
            codes.len(),
            TABLE.lines().count() - 1,
            "a line is malformed"
        );
        assert!(codes.is_sorted_by_key(|code| code.raw));
        for code in codes {
            assert!(
                !code.meaning.is_empty() && !code.next_step.is_empty(),
                "{code:?}"
            );
        }
    }

    #[test]
    fn an_error_names_the_call_the_code_and_the_next_step() {
        let error = Code::of(700).error("cuEventQuery");
        assert_eq!(error.code(), Some(700));
        assert_eq!(error.kind(), ErrorKind::Device);
        let text = error.to_string();
        for part in [
            "cuEventQuery",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "700",
            "compute-sanitizer",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(
            Code::of(2).error("cuMemAlloc").kind(),
            ErrorKind::OutOfMemory
        );
        assert_eq!(Code::of(12_345).error("cuInit").code(), Some(12_345));
    }
}
