//! A decoded column, read row by row as the numbers and the text that mmCIF would have.
//!
//! Errors are [`ErrorKind::Input`](crate::ErrorKind::Input) for what no writer of the format makes,
//! and [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) beyond a limit or without memory.

use std::borrow::Cow;

use super::encodings::EncodedData;
use super::expansion::ExpansionBudget;
use super::float_decimal::{decimal_of_double, decimal_of_single};
use super::ints::{Ints, mark_differences};
use super::message_pack::{Cursor, FETCH_AGAIN};
use super::number_text::{CellText, NumberText};
use super::values::ColumnValues;
use crate::decimal::{self, BadCoordinate, Decimal, LIMIT_MILLI};
use crate::{Error, Result};
use tapeloop_error::internal::excerpt;

/// A column before it is decoded.
pub(super) struct BinaryCifColumn<'a> {
    pub name: &'a [u8],
    data: EncodedData<'a>,
    mask: Option<EncodedData<'a>>,
}

impl<'a> BinaryCifColumn<'a> {
    /// Reads a column's map. The data stay encoded until a reader asks for them.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self> {
        let start = *cursor;
        let (mut name, mut data, mut mask) = (None, None, None);
        cursor.map(|key, value| {
            match key {
                b"name" => name = Some(value.text()?),
                b"data" => {
                    let read = EncodedData::read(value);
                    data = Some(read.map_err(|error| match name {
                        Some(name) => error.within(excerpt(name)),
                        None => error,
                    })?);
                }
                b"mask" if value.take_nil() => mask = None,
                b"mask" => mask = Some(EncodedData::read(value)?),
                _ => value.skip()?,
            }
            Ok(())
        })?;
        match (name, data) {
            (Some(name), Some(data)) => Ok(BinaryCifColumn { name, data, mask }),
            (None, _) => Err(start.error("a column has no \"name\"")),
            (_, None) => Err(start.error("a column has no \"data\"")),
        }
    }

    /// Decodes the column. An [`ErrorKind::Input`](crate::ErrorKind::Input) error unless it has
    /// `rows` values, and its mask as many of 0, 1 and 2.
    pub(super) fn decode(
        &self,
        rows: u32,
        expansion: &mut ExpansionBudget,
    ) -> Result<DecodedColumn<'a>> {
        let values = self.data.decode(expansion)?;
        let check = |items: &str, len: usize| {
            if len == rows as usize {
                Ok(())
            } else {
                let message = format!("{len} {items}, but the category has {rows} rows");
                Err(Error::input(message).fix(FETCH_AGAIN))
            }
        };
        check("values", values.len())?;
        let Some(mask) = &self.mask else {
            return DecodedColumn::new(values, Ints::Same(PRESENT, 0));
        };
        let mask = mask.decode_ints(expansion);
        let mask = mask.map_err(|error| error.within("the mask"))?;
        check("values of the mask", mask.len())?;
        // Negative values become large ones.
        let most = mask.fold(0, |most, mask| mask.cast_unsigned().max(most));
        if most > 2 {
            let message = format!("the mask has the value {}, not 0, 1 or 2", most as i32);
            return Err(Error::input(message).fix(FETCH_AGAIN));
        }
        let mask = if most == 0 {
            Ints::Same(PRESENT, 0)
        } else {
            mask
        };
        DecodedColumn::new(values, mask)
    }
}

/// The values of a mask; the third is `?`.
const PRESENT: i32 = 0;
const DOT: i32 = 1;

fn null_text(mask: i32) -> &'static [u8] {
    if mask == DOT { b"." } else { b"?" }
}

/// Whether a mask has nulls. A mask that has none is replaced by the same [`PRESENT`].
fn has_nulls(mask: &Ints) -> bool {
    !matches!(mask, Ints::Same(PRESENT, _))
}

/// A decoded column.
pub(super) struct DecodedColumn<'a> {
    /// Never undecoded, packed or plain integers.
    pub values: ColumnValues<'a>,
    /// For each row of numbers 0, 1 for `.` or 2 for `?`. It is the same 0 without nulls, and in
    /// a column of strings.
    mask: Ints,
}

impl<'a> DecodedColumn<'a> {
    /// Converts integers to decimals, and the nulls of strings to the strings `.` and `?`.
    fn new(values: ColumnValues<'a>, mut mask: Ints) -> Result<Self> {
        let values = match values {
            ColumnValues::Ints(digits) => ColumnValues::Decimals { digits, places: 0 },
            ColumnValues::Texts(mut texts) if has_nulls(&mask) => {
                // Indices do not count the empty string at the front.
                let first_null = texts.strings.len() as i32 - 1;
                let nulls = [null_text(DOT), null_text(DOT + 1)];
                texts.strings.extend(nulls);
                let masked = |index: i32, mask: i32| match mask {
                    PRESENT => index,
                    null => first_null + null - DOT,
                };
                texts.index = texts.index.zip(&mask, masked)?;
                mask = Ints::Same(PRESENT, 0);
                ColumnValues::Texts(texts)
            }
            other => other,
        };
        Ok(DecodedColumn { values, mask })
    }

    /// The value of a row as text; `.` or `?` for null.
    pub(super) fn text<'t>(&'t self, row: usize, number: &'t mut NumberText) -> &'t [u8] {
        match self.null(row) {
            Some(null) => null,
            None => self.present_text(row, number),
        }
    }

    /// The value of a row as text.
    #[inline]
    pub(super) fn cell(&self, row: usize) -> CellText<'_> {
        if let ColumnValues::Texts(texts) = &self.values {
            return CellText::Borrowed(texts.get(row));
        }
        if let Some(null) = self.null(row) {
            return CellText::Borrowed(null);
        }
        let mut number = NumberText::new();
        self.present_text(row, &mut number);
        CellText::Number(number)
    }

    /// The number of a row if it is stored as an integer and is not null.
    #[inline]
    pub(super) fn integer(&self, row: usize) -> Option<i32> {
        match &self.values {
            ColumnValues::Decimals { digits, places: 0 } if self.null(row).is_none() => {
                Some(digits.get(row))
            }
            _ => None,
        }
    }

    /// `.` or `?` if the number of a row is null.
    fn null(&self, row: usize) -> Option<&'static [u8]> {
        let mask = self.mask.get(row);
        (mask != PRESENT).then(|| null_text(mask))
    }

    /// The text of a value that is not null. The text of a number is written into `number`.
    fn present_text<'t>(&'t self, row: usize, number: &'t mut NumberText) -> &'t [u8] {
        match &self.values {
            ColumnValues::Texts(texts) => texts.get(row),
            ColumnValues::Decimals { digits, places } => {
                number.set_decimal(digits.get(row), *places)
            }
            ColumnValues::Singles(values) => number.set_single(values[row]),
            ColumnValues::Doubles(values) => number.set_double(values[row]),
            ColumnValues::Undecoded(_) | ColumnValues::Packed(..) | ColumnValues::Ints(_) => b"",
        }
    }

    /// Marks with 1 each row that differs from the row before. Equal values may differ, if a
    /// string occurs twice.
    pub(super) fn mark_changes(&self, changes: &mut [u8]) {
        match &self.values {
            ColumnValues::Texts(texts) => texts.index.mark_changes(changes),
            ColumnValues::Decimals { digits, .. } => digits.mark_changes(changes),
            ColumnValues::Singles(values) => mark_differences(values, f32::to_bits, changes),
            ColumnValues::Doubles(values) => mark_differences(values, f64::to_bits, changes),
            ColumnValues::Undecoded(_) | ColumnValues::Packed(..) | ColumnValues::Ints(_) => {}
        }
        self.mask.mark_changes(changes);
    }

    /// Applies `value` to the text of each row.
    pub(super) fn table<T: Copy>(&self, value: impl Fn(&[u8]) -> T) -> Result<Vec<T>> {
        match &self.values {
            ColumnValues::Texts(texts) => {
                let values: Vec<T> = texts.strings.iter().map(|text| value(text)).collect();
                texts.index.map(|index| values[(index + 1) as usize])
            }
            other => {
                let mut number = NumberText::new();
                let rows = 0..other.len();
                Ok(rows.map(|row| value(self.text(row, &mut number))).collect())
            }
        }
    }

    /// All values as coordinates, if the column has numbers of up to six decimals without nulls, as
    /// nearly every file. This is [`Self::coordinate`] of each row. `None` for any other column,
    /// and for one with a value that is too large.
    pub(super) fn coordinates(&self) -> Option<CoordinateColumn<'_>> {
        if has_nulls(&self.mask) {
            return None;
        }
        let rows = 0..self.values.len();
        let mut rounded = Vec::new();
        let milli = match &self.values {
            ColumnValues::Decimals { digits, places: 3 } => digits.each().ok()?,
            ColumnValues::Decimals {
                digits,
                places: places @ ..3,
            } => {
                let scaled = |row| scaled(digits.get(row), *places, 3);
                rows.map(scaled).collect::<Option<_>>()?
            }
            _ => {
                let mut milli = Vec::with_capacity(rows.len());
                for row in rows {
                    let (value, is_rounded) = self.decimal(row)?.coordinate().ok()?;
                    milli.push(value);
                    rounded.push(is_rounded);
                }
                Cow::Owned(milli)
            }
        };
        let far = |value: i32| value.unsigned_abs() > LIMIT_MILLI as u32;
        let any_far = milli.iter().fold(false, |any, &value| any | far(value));
        (!any_far).then_some(CoordinateColumn { milli, rounded })
    }

    /// A coordinate in 0.001 A, and whether it was rounded.
    pub(super) fn coordinate(&self, row: usize) -> Result<(i32, bool), BadCoordinate> {
        match self.decimal(row) {
            Some(decimal) => decimal.coordinate(),
            None => decimal::coordinate(self.text(row, &mut NumberText::new())),
        }
    }

    /// The occupancies of all rows in millionths.
    pub(super) fn occupancies(&self) -> Result<Vec<i32>> {
        if let (ColumnValues::Decimals { digits, places }, false) =
            (&self.values, has_nulls(&self.mask))
        {
            let places = *places;
            return digits.map(|digits| {
                let in_millionths = scaled(digits, places, 6);
                in_millionths.unwrap_or_else(|| Decimal::new(digits.into(), places).occupancy())
            });
        }
        let rows = 0..self.values.len();
        Ok(rows.map(|row| self.occupancy(row)).collect())
    }

    /// An occupancy in millionths, as [`decimal::occupancy`].
    fn occupancy(&self, row: usize) -> i32 {
        match self.decimal(row) {
            Some(decimal) => decimal.occupancy(),
            None => decimal::occupancy(self.text(row, &mut NumberText::new())),
        }
    }

    /// The B factors of all rows, as [`decimal::b_factor`].
    pub(super) fn b_factors(&self) -> Result<Vec<f32>> {
        let mut factors: Vec<f32> = match &self.values {
            ColumnValues::Decimals { digits, places } => {
                let places = *places;
                digits.map(|digits| Decimal::new(digits.into(), places).b_factor())?
            }
            ColumnValues::Singles(values) => {
                let finite = |&value: &f32| if value.is_finite() { value } else { f32::NAN };
                values.iter().map(finite).collect()
            }
            other => {
                let mut number = NumberText::new();
                let factor = |row| match self.decimal(row) {
                    Some(decimal) => decimal.b_factor(),
                    None => decimal::b_factor(self.text(row, &mut number)),
                };
                (0..other.len()).map(factor).collect()
            }
        };
        if has_nulls(&self.mask) {
            for (factor, &mask) in factors.iter_mut().zip(&*self.mask.each()?) {
                if mask != PRESENT {
                    *factor = f32::NAN;
                }
            }
        }
        Ok(factors)
    }

    /// The decimal of a row that is not null: the digits of FixedPoint, or the number of up to
    /// six decimals that a float stands for.
    #[inline]
    fn decimal(&self, row: usize) -> Option<Decimal> {
        if self.null(row).is_some() {
            return None;
        }
        match &self.values {
            ColumnValues::Decimals { digits, places } => {
                Some(Decimal::new(digits.get(row).into(), *places))
            }
            ColumnValues::Singles(values) => decimal_of_single(values[row]),
            ColumnValues::Doubles(values) => decimal_of_double(values[row]),
            _ => None,
        }
    }
}

/// `digits` of 10^-`places` as an integer of 10^-`wanted`, if it has no more places and fits.
/// `wanted` is six at most.
#[inline]
fn scaled(digits: i32, places: u8, wanted: u8) -> Option<i32> {
    const UNITS: [i32; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
    digits.checked_mul(UNITS[usize::from(wanted.checked_sub(places)?)])
}

/// The coordinates of all rows.
pub(super) struct CoordinateColumn<'c> {
    /// In 0.001 A.
    pub milli: Cow<'c, [i32]>,
    /// Whether each was rounded; empty if none was.
    pub rounded: Vec<bool>,
}

#[cfg(test)]
mod tests {
    use super::super::values::Texts;
    use super::*;
    use crate::decimal::OCCUPANCY_ONE;

    const NO_MASK: Ints = Ints::Same(PRESENT, 0);

    fn doubles(values: &[f64]) -> DecodedColumn<'static> {
        DecodedColumn::new(ColumnValues::Doubles(values.to_vec()), NO_MASK).unwrap()
    }

    fn singles(values: &[f32]) -> DecodedColumn<'static> {
        DecodedColumn::new(ColumnValues::Singles(values.to_vec()), NO_MASK).unwrap()
    }

    fn decimals(digits: &[i32], places: u8) -> DecodedColumn<'static> {
        let digits = Ints::Each(digits.to_vec());
        DecodedColumn::new(ColumnValues::Decimals { digits, places }, NO_MASK).unwrap()
    }

    fn text(column: &DecodedColumn, row: usize) -> String {
        let mut number = NumberText::new();
        String::from_utf8(column.text(row, &mut number).to_vec()).unwrap()
    }

    #[test]
    fn numbers_become_the_text_that_a_person_would_write() {
        let column = decimals(&[0, -5, 1500, -123_450, i32::MIN, 7], 3);
        let texts: Vec<String> = (0..6).map(|row| text(&column, row)).collect();
        assert_eq!(
            texts,
            ["0", "-0.005", "1.5", "-123.45", "-2147483.648", "0.007"]
        );
        assert_eq!(text(&decimals(&[-120], 0), 0), "-120");
        assert_eq!(text(&decimals(&[5], 8), 0), "0.00000005");
        let floats = [0.1, 1.0, -2.5e-9, f64::MAX, -f64::MIN_POSITIVE, f64::NAN];
        let texts: Vec<String> = (0..6).map(|row| text(&doubles(&floats), row)).collect();
        for (text, value) in texts.iter().zip(floats) {
            assert_eq!(
                text.parse::<f64>().unwrap().to_bits(),
                value.to_bits(),
                "{text}"
            );
        }
        assert_eq!(text(&singles(&[0.1]), 0), "0.1");
        assert_eq!(text(&singles(&[f32::MIN_POSITIVE]), 0), "1.1754944e-38");
    }

    /// The reader of mmCIF is the reference: the numbers of a column are those of its text.
    #[test]
    fn numbers_are_those_of_the_text() {
        let mut columns = Vec::new();
        for places in 0..=8 {
            columns.push(decimals(
                &[0, 1, -1, 1005, -2345, 999_999, 12_345_678, i32::MAX],
                places,
            ));
        }
        let mut floats = vec![
            0.0, 0.0005, -1.2345, 8191.999, 8192.001, 99_999.999, 1e5, 1e300,
        ];
        floats.extend([
            f64::NAN,
            f64::INFINITY,
            -0.0015,
            1.0005,
            33.333_333_333_333_336,
        ]);
        floats.extend(
            (-999_999..9_999_999)
                .step_by(997)
                .map(|value| f64::from(value) / 1000.0),
        );
        floats.extend(
            (-99_999..99_999)
                .step_by(97)
                .map(|value| f64::from(value) / 10_000.0),
        );
        columns.push(doubles(&floats));
        columns.push(singles(
            &floats.iter().map(|&value| value as f32).collect::<Vec<_>>(),
        ));
        for column in &columns {
            let b_factors = column.b_factors().unwrap();
            let occupancies = column.occupancies().unwrap();
            if let Some(found) = column.coordinates() {
                for (row, &milli) in found.milli.iter().enumerate() {
                    let rounded = found.rounded.get(row) == Some(&true);
                    assert_eq!(column.coordinate(row), Ok((milli, rounded)));
                }
            }
            for (row, found) in b_factors.into_iter().enumerate() {
                let text = text(column, row);
                let bytes = text.as_bytes();
                assert_eq!(column.coordinate(row), decimal::coordinate(bytes), "{text}");
                assert_eq!(occupancies[row], decimal::occupancy(bytes), "{text}");
                let wanted = decimal::b_factor(bytes);
                let both_nan = found.is_nan() && wanted.is_nan();
                assert!(found == wanted || both_nan, "{text}: {found} {wanted}");
            }
        }
    }

    #[test]
    fn decimals_are_the_shortest_of_their_floats() {
        for value in (-999_999..8_191_999).step_by(31) {
            let single = (f64::from(value) / 1000.0) as f32;
            assert_eq!(
                singles(&[single]).coordinate(0),
                Ok((value, false)),
                "{value}"
            );
        }
    }

    #[test]
    fn rounding_errors_of_writers_do_not_count() {
        // 13.8815 as a program wrote it that adds the digits as floats.
        let column = doubles(&[-13.881_499_999_999_998, -13.881_499_999_9]);
        assert_eq!(column.coordinate(0), Ok((-13_882, true)));
        assert_eq!(column.coordinate(1), Ok((-13_881, true)));
    }

    #[test]
    fn nulls_are_text_in_every_column() {
        let mask = || Ints::Each(vec![0, 1, 2]);
        let texts = Texts {
            strings: vec![b"", b"A"],
            index: Ints::Same(0, 3),
        };
        let texts = DecodedColumn::new(ColumnValues::Texts(texts), mask()).unwrap();
        let numbers =
            DecodedColumn::new(ColumnValues::Ints(Ints::Each(vec![7, 8, 9])), mask()).unwrap();

        for (column, wanted) in [(texts, ["A", ".", "?"]), (numbers, ["7", ".", "?"])] {
            let found: Vec<String> = (0..3).map(|row| text(&column, row)).collect();
            assert_eq!(found, wanted);
            assert_eq!(column.coordinate(1), Err(BadCoordinate::NotANumber));
            assert!(column.b_factors().unwrap()[2].is_nan());
            assert_eq!(column.occupancies().unwrap()[1], OCCUPANCY_ONE);
            let mut changes = [0; 3];
            column.mark_changes(&mut changes);
            assert_eq!(changes, [0, 1, 1]);
        }
    }
}
