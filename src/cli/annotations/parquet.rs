//! Tables in Parquet: a run's own table of residues, or any other.

use super::super::inputs::structure_name;
use super::header::{finite, insertion_code, is_null, residue_number, structure};
use super::{Annotations, Header, Key};
use crate::error::{Context, Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::path::Path;

/// Rows that are unpacked at once.
const BATCH_ROWS: usize = 65_536;

/// Adds the rows of a file, and returns its columns.
///
/// # Errors
/// It cannot be read; what is wrong with a column or a row.
pub(super) fn read(path: &Path, all: &mut Annotations) -> Result<Vec<String>> {
    let file = File::open(path)
        .map_err(|error| Error::config(error.to_string()).fix("give a table that can be read"))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(cannot_read)?;
    let schema = reader.schema().clone();
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    let header = Header::of(&names, &all.channels)?;
    let columns = names.iter().map(|name| (*name).to_owned()).collect();
    if header.channels.is_empty() {
        return Ok(columns);
    }
    let wanted = ProjectionMask::roots(reader.parquet_schema(), header.columns());
    let batches = reader.with_projection(wanted).with_batch_size(BATCH_ROWS);
    let source = path.to_string_lossy();
    let of_file = structure_name(&source);
    let mut row = 1;
    for batch in batches.build().map_err(cannot_read)? {
        let batch = batch.map_err(cannot_read)?;
        let cells = |at: usize| cells(&batch, names[at]);
        let table = Table {
            structure: header.structure.map(cells).transpose()?,
            model: header.model.map(cells).transpose()?,
            chain: cells(header.chain)?,
            number: cells(header.number)?,
            ins_code: header.ins_code.map(cells).transpose()?,
        };
        let channels = header.channels.iter();
        let channels = channels.map(|&(at, channel)| match cells(at)? {
            Cells::Numbers(values) => Ok((channel, names[at], values)),
            Cells::Texts(_) => {
                let text = format!("column {:?} holds text and no numbers", names[at]);
                Err(Error::config(text)
                    .fix("write it as numbers, or leave it out of `smooth.channels`"))
            }
        });
        let channels = channels.collect::<Result<Vec<_>>>()?;
        let mut values = vec![f32::NAN; all.channels.len()];
        for at in 0..batch.num_rows() {
            let place = || format!("row {row}");
            for (channel, name, column) in &channels {
                let value = column[at].map_or(Ok(f32::NAN), |value| {
                    finite(value as f32, format_args!("{value:?}"))
                });
                let value = value.within(|| format!("column {name:?}"));
                values[*channel] = value.within(place)?;
            }
            let key = table.key(at, of_file).within(place)?;
            all.add(key, row, &values);
            row += 1;
        }
    }
    Ok(columns)
}

/// The columns that name residues, of some rows.
struct Table<'a> {
    structure: Option<Cells<'a>>,
    model: Option<Cells<'a>>,
    chain: Cells<'a>,
    number: Cells<'a>,
    ins_code: Option<Cells<'a>>,
}

impl Table<'_> {
    fn key<'a>(&'a self, row: usize, of_file: &'a str) -> Result<Key<'a>> {
        let (number, mut code) = match &self.number {
            Cells::Texts(texts) => residue_number(texts[row].unwrap_or_default())?,
            Cells::Numbers(numbers) => (whole(numbers[row], "residue number")?, 0),
        };
        let own_code = self
            .ins_code
            .as_ref()
            .map(|codes| codes.text(row, "insertion code"));
        if let Some(text) = own_code.transpose()?
            && !is_null(text)
        {
            code = insertion_code(text)?;
        }
        let model = match &self.model {
            Some(Cells::Numbers(models)) => models[row],
            Some(Cells::Texts(_)) => {
                return Err(Error::config("the model is text and no number")
                    .fix("write models as whole numbers, null for all models"));
            }
            None => None,
        };
        Ok(Key {
            structure: structure(match &self.structure {
                Some(names) => names.text(row, "structure")?,
                None => of_file,
            })?,
            model: model.map(|model| whole(Some(model), "model")).transpose()?,
            chain: self.chain.text(row, "chain")?,
            number,
            ins_code: code,
        })
    }
}

/// The values of a column.
enum Cells<'a> {
    Texts(Vec<Option<&'a str>>),
    Numbers(Vec<Option<f64>>),
}

impl Cells<'_> {
    /// A text, empty where there is none.
    fn text(&self, row: usize, what: &str) -> Result<&str> {
        match self {
            Cells::Texts(texts) => Ok(texts[row].unwrap_or_default()),
            Cells::Numbers(numbers) if numbers[row].is_none() => Ok(""),
            Cells::Numbers(_) => Err(Error::config(format!("the {what} is a number and no text"))
                .fix("write the column as texts")),
        }
    }
}

fn whole(number: Option<f64>, what: &str) -> Result<i32> {
    let wrong = |text| Error::config(text).fix("write whole numbers, as the structure's file does");
    let number = number.ok_or_else(|| wrong(format!("there is no {what}")))?;
    let is_whole = number.fract() == 0.0 && number.abs() <= f64::from(i32::MAX);
    let wrong = || wrong(format!("{number} is no {what}"));
    is_whole.then_some(number as i32).ok_or_else(wrong)
}

fn cells<'a>(batch: &'a RecordBatch, name: &str) -> Result<Cells<'a>> {
    let column = batch.column_by_name(name);
    let column = column.ok_or_else(|| cannot_read(format!("column {name:?} is not there")))?;
    of_array(column.as_ref()).ok_or_else(|| {
        let text = format!("column {name:?} is of {}", column.data_type());
        Error::config(text).fix("write numbers or texts")
    })
}

fn of_array(array: &dyn Array) -> Option<Cells<'_>> {
    macro_rules! numbers {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>().iter();
            Cells::Numbers(
                values
                    .map(|value| value.map(|value| value as f64))
                    .collect(),
            )
        }};
    }
    Some(match array.data_type() {
        DataType::Utf8 => Cells::Texts(array.as_string::<i32>().iter().collect()),
        DataType::LargeUtf8 => Cells::Texts(array.as_string::<i64>().iter().collect()),
        DataType::Utf8View => Cells::Texts(array.as_string_view().iter().collect()),
        DataType::Null => Cells::Numbers(vec![None; array.len()]),
        DataType::Boolean => {
            let flags = array.as_boolean().iter();
            Cells::Numbers(
                flags
                    .map(|flag| flag.map(|flag| f64::from(u8::from(flag))))
                    .collect(),
            )
        }
        DataType::Float16 => {
            let values = array.as_primitive::<Float16Type>().iter();
            Cells::Numbers(values.map(|value| value.map(f64::from)).collect())
        }
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Dictionary(..) => of_dictionary(array)?,
        _ => return None,
    })
}

fn of_dictionary(array: &dyn Array) -> Option<Cells<'_>> {
    let dictionary = array.as_any_dictionary();
    let words = dictionary.values();
    if words.is_empty() {
        return Some(Cells::Texts(vec![None; array.len()]));
    }
    let keys = dictionary.normalized_keys();
    let keys = keys.into_iter().enumerate();
    let key = |(row, key)| array.is_valid(row).then_some(key);
    Some(match of_array(words.as_ref())? {
        Cells::Texts(words) => Cells::Texts(keys.map(|at| words[key(at)?]).collect()),
        Cells::Numbers(words) => Cells::Numbers(keys.map(|at| words[key(at)?]).collect()),
    })
}

fn cannot_read(error: impl std::fmt::Display) -> Error {
    Error::config(error.to_string())
        .fix("write it as Parquet, unpacked or packed with snappy or zstd")
}
