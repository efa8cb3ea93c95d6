//! Statistics of the columns over a whole run: nulls, range, and which columns hold nothing or a
//! single value.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::DataType;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use tapeloop_bench::internal::format;

/// A column with one value in more rows than this, in more than one structure, is suspect
/// (docs/config/reports.md). In fewer rows a flag or a count may be the same by chance.
const CONSTANT_ROWS_MAX: u64 = 1000;

/// The statistics of a column, with its name.
#[derive(Clone, Debug)]
pub struct ColumnStatistics {
    pub table: &'static str,
    pub name: String,
    pub values: ValueStatistics,
    /// For a feature's column, why it may be suspect although nothing is wrong; empty without such a reason.
    /// `None` for columns that are not checked.
    pub idle_when: Option<&'static str>,
}

/// Statistics of a column's values so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ValueStatistics {
    rows: u64,
    nulls: u64,
    /// The smallest and the largest value.
    range: Option<(BoundValue, BoundValue)>,
}

/// A value of any column; only those of one kind are compared.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
enum BoundValue {
    Integer(i32),
    Long(i64),
    /// Stored as its bits, since JSON has no infinity.
    #[serde(with = "bits")]
    Real(f32),
    #[serde(with = "double_bits")]
    Double(f64),
    Flag(bool),
    Text(String),
}

mod bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f32, to: S) -> Result<S::Ok, S::Error> {
        value.to_bits().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
        u32::deserialize(from).map(f32::from_bits)
    }
}

mod double_bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.to_bits().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

/// Why a column is suspect.
#[derive(Clone, Debug, PartialEq)]
enum Suspect {
    /// All rows are null; the number of rows.
    Null(u64),
    /// All rows that are not null have one value; the number of those rows, and the value.
    Constant(u64, String),
}

impl ValueStatistics {
    /// The statistics of an array, which has the rows of one slice of a row group.
    pub(super) fn from_array(array: &ArrayRef) -> Self {
        let range = match array.data_type() {
            DataType::Int32 => range_of_values::<Int32Type>(array, BoundValue::Integer),
            DataType::Int64 => range_of_values::<Int64Type>(array, BoundValue::Long),
            DataType::Float32 => range_of_values::<Float32Type>(array, BoundValue::Real),
            DataType::Float64 => range_of_values::<Float64Type>(array, BoundValue::Double),
            DataType::Float16 => {
                range_of_values::<Float16Type>(array, |value| BoundValue::Real(value.to_f32()))
            }
            DataType::Boolean => {
                let flags = array.as_boolean();
                let (yes, no) = (flags.has_true(), flags.has_false());
                (yes || no).then_some((BoundValue::Flag(!no), BoundValue::Flag(yes)))
            }
            DataType::Dictionary(..) => {
                // Each array has its own dictionary, of the values in it.
                let words = array.as_dictionary::<Int32Type>().values();
                let words: Vec<&str> = words.as_string::<i32>().iter().flatten().collect();
                range_of(&words).map(|range| both(range, |word| BoundValue::Text(word.to_owned())))
            }
            other => unreachable!("no column is stored as {other}"),
        };
        ValueStatistics {
            rows: array.len() as u64,
            nulls: array.null_count() as u64,
            range,
        }
    }

    /// Adds the statistics of other rows of the column.
    pub(super) fn add(&mut self, other: ValueStatistics) {
        // Saturating, because a resumed run adds to numbers from `run.json`, which may be any.
        self.rows = self.rows.saturating_add(other.rows);
        self.nulls = self.nulls.saturating_add(other.nulls);
        self.range = match (self.range.take(), other.range) {
            (Some((min, max)), Some((low, high))) => Some((
                if low < min { low } else { min },
                if high > max { high } else { max },
            )),
            (seen, new) => seen.or(new),
        };
    }

    /// The statistics as `run.json` has them.
    pub fn json(&self) -> Json {
        let share = (self.rows > 0).then(|| self.nulls as f64 / self.rows as f64);
        let (min, max) = match &self.range {
            Some((min, max)) => (min.json(), max.json()),
            None => (Json::Null, Json::Null),
        };
        json!({
            "null_share": share,
            "constant": self.constant().is_some(),
            "min": min,
            "max": max,
        })
    }

    /// The only value of the column.
    fn constant(&self) -> Option<&BoundValue> {
        let (min, max) = self.range.as_ref()?;
        (min == max).then_some(min)
    }

    /// Why the column is suspect in a run of `structures` structures, if it is.
    fn suspect(&self, structures: u64) -> Option<Suspect> {
        if self.rows > 0 && self.nulls == self.rows {
            return Some(Suspect::Null(self.rows));
        }
        // Saturating, as numbers from `run.json` may be any.
        let values = self.rows.saturating_sub(self.nulls);
        let only = self.constant()?;
        let counts = values > CONSTANT_ROWS_MAX && structures > 1;
        counts.then(|| Suspect::Constant(values, only.json().to_string()))
    }
}

/// A line for each suspect column of features in a run of `structures` structures, if nothing about
/// the input explains it.
pub fn warnings(columns: &[ColumnStatistics], structures: u64) -> String {
    let mut text = String::new();
    for (name, _, suspect) in
        suspects(columns, structures).filter(|(_, reason, _)| reason.is_empty())
    {
        let description = match suspect {
            Suspect::Null(rows) => format!("null in all {} rows", format::whole(rows)),
            Suspect::Constant(rows, value) => {
                format!("{value} in all {} rows with a value", format::whole(rows))
            }
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "warning: {name} is {description}");
    }
    text
}

/// A line for each reason in the input why columns of features are suspect in a run of `structures`
/// structures, with these columns.
pub fn notes(columns: &[ColumnStatistics], structures: u64) -> String {
    let mut idle: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, reason, _) in
        suspects(columns, structures).filter(|(_, reason, _)| !reason.is_empty())
    {
        let name = match name.split_once('/') {
            Some(("residues", column)) => column.to_owned(),
            Some((table, column)) => format!("{column} ({table})"),
            None => name,
        };
        idle.entry(reason).or_default().push(name);
    }
    let mut text = String::new();
    for (reason, names) in idle {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "note: {reason}, so there is nothing in {}",
            names.join(", ")
        );
    }
    text
}

/// The suspect columns of features: the name, the reason in the input, or an empty text, and why
/// the column is suspect.
fn suspects(
    columns: &[ColumnStatistics],
    structures: u64,
) -> impl Iterator<Item = (String, &'static str, Suspect)> {
    columns.iter().filter_map(move |column| {
        let reason = column.idle_when?;
        let suspect = column.values.suspect(structures)?;
        Some((format!("{}/{}", column.table, column.name), reason, suspect))
    })
}

impl BoundValue {
    /// The value as `run.json` has it.
    fn json(&self) -> Json {
        match self {
            BoundValue::Integer(value) => json!(value),
            BoundValue::Long(value) => json!(value),
            BoundValue::Double(value) => json!(value),
            // The shortest decimal of the 32 bits; as 64 bits it would have more digits.
            BoundValue::Real(value) => json!(value.to_string().parse::<f64>().ok()),
            BoundValue::Flag(value) => json!(value),
            BoundValue::Text(value) => json!(value),
        }
    }
}

/// The range of an array's values that are not null, none of which is NaN.
fn range_of_values<T: ArrowPrimitiveType<Native: PartialOrd>>(
    array: &ArrayRef,
    value: fn(T::Native) -> BoundValue,
) -> Option<(BoundValue, BoundValue)> {
    let array = array.as_primitive::<T>();
    let values = array.values();
    let range = match array.nulls() {
        None => range_of(values),
        Some(nulls) => {
            let stretches = nulls.valid_slices();
            let ranges = stretches.filter_map(|(start, end)| range_of(&values[start..end]));
            ranges.reduce(wider)
        }
    };
    range.map(|range| both(range, value))
}

/// The least and the largest value; `None` without any.
fn range_of<T: PartialOrd + Copy>(values: &[T]) -> Option<(T, T)> {
    const LANES: usize = 16;
    let first = *values.first()?;
    // Independent lanes, which the compiler turns into vectors.
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [(first, first); LANES];
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = wider(*lane, (value, value));
        }
    }
    let rest = rest.iter().map(|&value| (value, value));
    lanes.into_iter().chain(rest).reduce(wider)
}

/// The range of what either range has. No value is NaN.
fn wider<T: PartialOrd + Copy>(a: (T, T), b: (T, T)) -> (T, T) {
    (
        if b.0 < a.0 { b.0 } else { a.0 },
        if b.1 > a.1 { b.1 } else { a.1 },
    )
}

fn both<T>((min, max): (T, T), value: impl Fn(T) -> BoundValue) -> (BoundValue, BoundValue) {
    (value(min), value(max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::StringDictionaryBuilder;
    use arrow_array::{BooleanArray, Float32Array, Int32Array};
    use std::sync::Arc;

    fn statistics(groups: impl IntoIterator<Item = ArrayRef>) -> ValueStatistics {
        let mut statistics = ValueStatistics::default();
        let groups = groups.into_iter();
        groups.for_each(|array| statistics.add(ValueStatistics::from_array(&array)));
        statistics
    }

    fn integers(values: Vec<Option<i32>>) -> ArrayRef {
        Arc::new(Int32Array::from(values))
    }

    #[test]
    fn counts_of_a_damaged_record_do_not_overflow() {
        let numbers = json!({ "rows": u64::MAX, "nulls": u64::MAX, "range": null });
        let mut read: ValueStatistics = serde_json::from_value(numbers).unwrap();
        read.add(ValueStatistics::from_array(&integers(vec![None, Some(4)])));
        assert_eq!((read.rows, read.nulls), (u64::MAX, u64::MAX));
    }

    #[test]
    fn the_range_is_that_of_all_row_groups_without_their_nulls() {
        let seen = statistics([
            integers(vec![None, None]),
            integers(vec![Some(4), None]),
            integers(vec![Some(-3), Some(9), Some(0), Some(1)]),
        ]);
        let expected = json!({ "null_share": 0.375, "constant": false, "min": -3, "max": 9 });
        assert_eq!(seen.json(), expected);
        let reals: ArrayRef = Arc::new(Float32Array::from(vec![Some(0.5), None]));
        let expected = json!({ "null_share": 0.5, "constant": true, "min": 0.5, "max": 0.5 });
        assert_eq!(statistics([reals]).json(), expected);
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
        let expected = json!({ "null_share": 0.0, "constant": false, "min": false, "max": true });
        assert_eq!(statistics([flags]).json(), expected);
        let mut words = StringDictionaryBuilder::<Int32Type>::new();
        words.extend(["H", "E", "H"].map(Some));
        let expected = json!({ "null_share": 0.0, "constant": false, "min": "E", "max": "H" });
        assert_eq!(
            statistics([Arc::new(words.finish()) as ArrayRef]).json(),
            expected
        );
        let nothing = json!({ "null_share": null, "constant": false, "min": null, "max": null });
        assert_eq!(statistics([]).json(), nothing);
    }

    #[test]
    fn the_range_is_that_of_the_values_one_by_one_whatever_the_nulls() {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as i32 - 30_000
        };
        for length in 1..80 {
            let values: Vec<Option<i32>> = (0..length)
                .map(|_| (next() % 7 != 0).then(&mut next))
                .collect();
            let present = || values.iter().flatten();
            let seen = statistics([integers(values.clone())]).json();
            assert_eq!(seen["min"], json!(present().min()));
            assert_eq!(seen["max"], json!(present().max()));
        }
    }

    #[test]
    fn a_column_is_suspect_if_all_rows_are_null_or_many_rows_of_several_structures_have_one_value()
    {
        let nulls = statistics([integers(vec![None; 5])]);
        assert_eq!(nulls.suspect(1), Some(Suspect::Null(5)));
        assert_eq!(statistics([]).suspect(0), None);
        let same = |rows| statistics([integers(vec![Some(7); rows]), integers(vec![None])]);
        let suspect = Some(Suspect::Constant(1001, "7".into()));
        assert_eq!(same(1001).suspect(2), suspect);
        assert_eq!(
            same(1001).suspect(1),
            None,
            "one structure may be that even"
        );
        assert_eq!(same(1000).suspect(2), None, "so few may be chance");
        let different = statistics([integers(vec![Some(7); 1001]), integers(vec![Some(8)])]);
        assert_eq!(different.suspect(2), None);
    }

    #[test]
    fn only_columns_of_features_are_warned_of_and_each_reason_is_printed_once() {
        let column = |name: &str, values: Option<i32>, idle_when| ColumnStatistics {
            table: "residues",
            name: name.into(),
            values: statistics([integers(vec![values; 2000])]),
            idle_when,
        };
        let columns = [
            column("ins_code", None, None),
            column("count", Some(0), Some("")),
            column("near", None, Some("no structure has two chains")),
            column("wcn", None, Some("")),
            column("facing", Some(0), Some("no structure has two chains")),
        ];
        let expected = "warning: residues/count is 0 in all 2,000 rows with a value\n\
                        warning: residues/wcn is null in all 2,000 rows\n";
        assert_eq!(warnings(&columns, 2), expected);
        let expected = "note: no structure has two chains, so there is nothing in near, facing\n";
        assert_eq!(notes(&columns, 2), expected);
    }
}
