//! The values of a column as numbers, and their text in a structure file.

use tapeloop::features::{Column, ColumnDecl, ColumnKind, NULL_COUNT};
use tapeloop::structure::{Format, Structure};
use tapeloop_cli::strip::{Meaning, words};

/// A column's values as numbers: flags are 0 and 1, words and chains their index.
pub(super) fn numbers(column: Column<'_>) -> Vec<Option<f64>> {
    match column {
        Column::Count(values) => values
            .iter()
            .map(|&value| (value != NULL_COUNT).then_some(f64::from(value)))
            .collect(),
        Column::Real(values) => values
            .iter()
            .map(|&value| (!value.is_nan()).then_some(f64::from(value)))
            .collect(),
    }
}

/// The numbers of a column of residues or atoms of `structure`: for ligands' numbers those, not their indices.
pub(super) fn numbers_of(
    decl: &ColumnDecl,
    column: Column<'_>,
    structure: &Structure,
) -> Vec<Option<f64>> {
    let mut values = numbers(column);
    if decl.kind == ColumnKind::LigandNumber {
        let number = |index: f64| structure.ligands.get(index as usize)?.auth_seq_id;
        for value in &mut values {
            *value = value.and_then(number).map(f64::from);
        }
    }
    values
}

/// The number format of a file's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Writing {
    width: usize,
    decimals: usize,
    /// The range that fits.
    min: f64,
    max: f64,
}

/// Decimals of a B factor, and of values below 1.
const DECIMALS: usize = 2;
const SMALL_DECIMALS: usize = 4;

impl Writing {
    /// The format of values from `min` to `max`: two decimals, four if all values are below 1, and
    /// fewer if the values would exceed the columns of the file format.
    pub(super) fn new(format: Format, (min, max): (f64, f64)) -> Self {
        let is_small = min > -1.0 && max < 1.0 && (min, max) != (0.0, 0.0);
        let wanted = if is_small { SMALL_DECIMALS } else { DECIMALS };
        let Some(width) = format.b_factor_width() else {
            return Writing {
                width: 0,
                decimals: wanted,
                min: f64::MIN,
                max: f64::MAX,
            };
        };
        let with = |decimals: usize| {
            let step = 10f64.powi(-(decimals as i32));
            let digits = width - decimals - usize::from(decimals > 0);
            // A sign takes the place of a digit, and one digit must remain.
            let below = if digits > 1 {
                10f64.powi(digits as i32 - 1)
            } else {
                step
            };
            Writing {
                width,
                decimals,
                min: step - below,
                max: 10f64.powi(digits as i32) - step,
            }
        };
        let fits = |writing: &Writing| {
            let half = 0.5 * 10f64.powi(-(writing.decimals as i32));
            min > writing.min - half && max < writing.max + half
        };
        let writings = (0..=wanted).rev().map(with);
        writings.clone().find(fits).unwrap_or_else(|| with(0))
    }

    /// A value, clamped to what fits.
    pub(super) fn text(&self, value: f64) -> String {
        let (width, decimals) = (self.width, self.decimals);
        let text = format!("{:.decimals$}", value.clamp(self.min, self.max));
        // Minus zero is written as zero.
        let is_zero = text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
        let text = if is_zero {
            text.trim_start_matches('-')
        } else {
            &text
        };
        format!("{text:>width$}")
    }

    /// Whether a value is clamped.
    pub(super) fn clamps(&self, (min, max): (f64, f64)) -> bool {
        let half = 0.5 * 10f64.powi(-(self.decimals as i32));
        min <= self.min - half || max >= self.max + half
    }

    /// A note where the values are clamped or do not have two decimals.
    pub(super) fn note(&self, range: (f64, f64)) -> Option<String> {
        if self.clamps(range) {
            return Some(format!("clamped to {} to {}", self.min, self.max));
        }
        (self.decimals != DECIMALS).then(|| format!("written with {} decimals", self.decimals))
    }
}

/// What the values of a column of `structure` stand for.
pub(super) fn meaning_of(decl: &ColumnDecl, structure: &Structure) -> Meaning {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match decl.kind {
        ColumnKind::Chain => Meaning::Chains(owned(&structure.distinct_chain_names())),
        ColumnKind::LigandComponent => {
            let ligands = structure.ligands.iter();
            Meaning::Words(
                ligands
                    .map(|ligand| ligand.component().to_owned())
                    .collect(),
            )
        }
        ColumnKind::LigandNumber => Meaning::Indices,
        kind => match words(kind) {
            [] => Meaning::Numbers,
            words => Meaning::Words(owned(words)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format, range: (f64, f64), value: f64) -> String {
        Writing::new(format, range).text(value)
    }

    #[test]
    fn values_take_six_columns_with_as_many_decimals_as_their_range_leaves() {
        let pdb = |range, value| written(Format::Pdb, range, value);
        assert_eq!(pdb((0.0, 210.0), 7.125), "  7.12");
        assert_eq!(pdb((-99.99, 999.99), -99.99), "-99.99");
        assert_eq!(pdb((-180.0, 180.0), -179.96), "-180.0");
        assert_eq!(pdb((-180.0, 180.0), 60.0), "  60.0");
        assert_eq!(pdb((0.0, 99_999.0), 12_345.6), " 12346");
        assert_eq!(pdb((0.01, 0.2), 0.0123), "0.0123");
        assert_eq!(pdb((-0.5, 0.2), -0.1234), "-0.123");
        assert_eq!(pdb((-0.5, 12.0), -0.001), "  0.00", "no minus zero");
        assert_eq!(pdb((0.0, 1e7), 1e7), "999999", "clamped");
        // 999.996 would round to seven columns.
        assert_eq!(pdb((0.0, 999.996), 999.996), "1000.0");
        assert_eq!(written(Format::Mmcif, (-1800.0, 1e7), 1e7), "10000000.00");
        assert_eq!(written(Format::Mmcif, (0.0, 0.2), 0.01234), "0.0123");
    }

    #[test]
    fn unusual_number_formats_are_noted() {
        let note = |range| Writing::new(Format::Pdb, range).note(range);
        assert_eq!(note((0.0, 210.0)), None);
        assert_eq!(note((-180.0, 10.0)).unwrap(), "written with 1 decimals");
        assert_eq!(note((0.0, 1e6)).unwrap(), "clamped to -99999 to 999999");
    }

    #[test]
    fn nulls_are_no_numbers() {
        let count = Column::Count(&[3, NULL_COUNT]);
        assert_eq!(numbers(count), [Some(3.0), None]);
        let real = Column::Real(&[f32::NAN, 0.5]);
        assert_eq!(numbers(real), [None, Some(0.5)]);
    }
}
