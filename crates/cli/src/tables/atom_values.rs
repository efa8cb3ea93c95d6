//! The arrays of the columns of the table of atoms.

use super::atom_rows::AtomRows;
use super::dictionary::DictionaryRows;
use super::nulls::with_nulls;
use super::structure_rows::{RowRange, row_count};
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, cast::AsArray};
use arrow_buffer::NullBuffer;
use std::sync::Arc;
use tapeloop::structure::AtomClass;
use tapeloop_structure::internal::element_symbol;

/// What a file states of an atom, or follows from that.
#[derive(Clone, Copy)]
pub(super) enum AtomValue {
    Name,
    Element,
    Class,
    IsBackbone,
    Radius,
    /// The coordinate along an axis.
    Position(usize),
    Occupancy,
    BFactor,
    Altloc,
}

/// The atoms of a range's structure, and the `values` of those in the range.
fn of_range<'a, T>(
    range: &'a RowRange,
    values: fn(&'a AtomRows) -> &'a [T],
) -> (&'a AtomRows, &'a [T]) {
    let atoms = range.record.atom_rows();
    (atoms, &values(atoms)[range.rows.clone()])
}

/// Reals of the rows in all ranges.
fn reals<'a, T: 'a>(
    ranges: &'a [RowRange],
    values: fn(&'a AtomRows) -> &'a [T],
    real: impl Fn(&'a AtomRows, &T) -> f32,
) -> Vec<f32> {
    let mut reals = Vec::with_capacity(row_count(ranges));
    for range in ranges {
        let (atoms, values) = of_range(range, values);
        reals.extend(values.iter().map(|value| real(atoms, value)));
    }
    reals
}

fn array(reals: Vec<f32>) -> ArrayRef {
    Arc::new(PrimitiveArray::<Float32Type>::new(reals.into(), None))
}

impl AtomValue {
    /// The array of the rows in these ranges, each of which is of residues or of one ligand.
    pub(super) fn gather(self, ranges: &[RowRange]) -> ArrayRef {
        let bytes = |byte: fn(&AtomClass) -> u8, text: fn(u8) -> Option<&'static str>| {
            DictionaryRows::gather(ranges, |keys, range| {
                let (_, classes) = of_range(range, |atoms| &atoms.class);
                keys.extend_bytes(classes.iter().map(byte), text);
            })
        };
        match self {
            AtomValue::Name => DictionaryRows::gather(ranges, |keys, range| {
                let (_, details) = of_range(range, |atoms| &atoms.details);
                keys.extend_padded(details.iter().map(|atom| &atom.name), false);
            }),
            AtomValue::Element => DictionaryRows::gather(ranges, |keys, range| {
                let (_, elements) = of_range(range, |atoms| &atoms.element);
                keys.extend_bytes(elements.iter().copied(), |element| {
                    Some(element_symbol(element)).filter(|symbol| !symbol.is_empty())
                });
            }),
            AtomValue::Class => bytes(
                |class| u8::from(class.is_polar()),
                |polar| Some(["apolar", "polar"][usize::from(polar)]),
            ),
            AtomValue::Altloc => DictionaryRows::gather(ranges, |keys, range| {
                let (_, details) = of_range(range, |atoms| &atoms.details);
                keys.extend_codes(details.iter().map(|atom| atom.altloc), None);
            }),
            AtomValue::IsBackbone => {
                let mut flags: Vec<bool> = Vec::with_capacity(row_count(ranges));
                for range in ranges {
                    let (atoms, classes) = of_range(range, |atoms| &atoms.class);
                    let of_residues = atoms.is_of_residue(range.rows.start);
                    flags.extend(classes.iter().map(|class| of_residues && !class.is_side()));
                }
                Arc::new(BooleanArray::from(flags))
            }
            AtomValue::Radius => array(reals(
                ranges,
                |atoms| &atoms.class,
                |atoms, class| (f64::from(atoms.radii.milli_angstrom(*class)) / 1000.0) as f32,
            )),
            AtomValue::Position(axis) => array(reals(
                ranges,
                |atoms| &atoms.xyz,
                |_, position| (f64::from(position[axis]) / 1000.0) as f32,
            )),
            AtomValue::Occupancy => array(reals(
                ranges,
                |atoms| &atoms.details,
                |_, details| details.occupancy,
            )),
            AtomValue::BFactor => {
                let values = reals(ranges, |atoms| &atoms.b_factor, |_, b_factor| *b_factor);
                Arc::new(with_nulls::<Float32Type>(values, |value| value.is_nan()))
            }
        }
    }
}

/// Ranges of atoms as ranges of their residues and ligands, and how many of the atoms each of these has.
pub(super) fn owners_of(ranges: &[RowRange]) -> (Vec<RowRange>, Vec<usize>) {
    let mut owners = Vec::with_capacity(ranges.len());
    let mut lengths = Vec::new();
    for RowRange { record, rows } in ranges {
        let (range, of_range) = record.atom_rows().owners(rows.clone());
        owners.push(RowRange {
            record: Arc::clone(record),
            rows: range,
        });
        lengths.extend(of_range);
    }
    (owners, lengths)
}

/// The array in which each value of `array` is repeated as often as `lengths` says.
///
/// # Panics
/// If the values are neither integers nor texts of a dictionary.
pub(super) fn repeated(array: &ArrayRef, lengths: &[usize]) -> ArrayRef {
    match array.as_any_dictionary_opt() {
        Some(dictionary) => {
            let keys = repeated_integers(array.as_dictionary::<Int32Type>().keys(), lengths);
            Arc::new(DictionaryArray::new(keys, Arc::clone(dictionary.values())))
        }
        None => Arc::new(repeated_integers(array.as_primitive(), lengths)),
    }
}

/// Each value of `array` as often as `lengths` says.
fn repeated_integers(
    array: &PrimitiveArray<Int32Type>,
    lengths: &[usize],
) -> PrimitiveArray<Int32Type> {
    let rows = lengths.iter().sum();
    let mut values = Vec::with_capacity(rows);
    for (value, &length) in array.values().iter().zip(lengths) {
        values.resize(values.len() + length, *value);
    }
    let nulls = array.nulls().map(|nulls| {
        let mut valid = Vec::with_capacity(rows);
        for (is_valid, &length) in nulls.iter().zip(lengths) {
            valid.resize(valid.len() + length, is_valid);
        }
        NullBuffer::from(valid)
    });
    PrimitiveArray::new(values.into(), nulls)
}
