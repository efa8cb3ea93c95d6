//! Tables as Arrow IPC files, which other programs can map into memory. A row group is a record
//! batch. A task gathers, encodes and compresses a column of it, and the writer, on one thread,
//! writes the columns behind each other.
//!
//! Texts are plain strings, which every reader maps. In the tables with many and short rows
//! ([`OutputTable::has_many_rows`](crate::config::OutputTable::has_many_rows)) they are dictionaries: a file
//! has one for each column of texts, which it ends with.

use super::super::config::TableCompression;
use super::column::TableColumn;
use super::ipc::{EncodedColumn, Encoding, IpcFile};
use super::part_file::{EncodeTask, Encoded, FileFormat, FileSpec, RowGroupFormat};
use super::row_group::RowGroup;
use super::schema::{arrow_schema, plain_schema};
use super::statistics::ValueStatistics;
use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray, new_empty_array};
use arrow_ipc::CompressionType;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::concat::concat;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use tapeloop::error::{Error, ErrorKind, Result};

/// The most bytes of the texts of a dictionary: their offsets have 32 bits.
const DICTIONARY_BYTES_MAX: usize = i32::MAX as usize;

/// An Arrow file that is being written.
pub(super) struct ArrowFile {
    file: IpcFile,
    schema: SchemaRef,
    encoding: Encoding,
    columns: Arc<[TableColumn]>,
    /// Whether texts are dictionaries.
    shares_texts: bool,
    /// One for each column; empty unless the column is of texts and `shares_texts` is true.
    dictionaries: Vec<FileDictionary>,
}

/// The texts of a column so far.
#[derive(Default)]
struct FileDictionary {
    /// The index of each text in `texts`.
    keys: HashMap<Arc<str>, i32>,
    texts: Vec<Arc<str>>,
    /// Bytes of all texts.
    bytes: usize,
}

/// What a task makes of a column.
pub(super) enum ColumnData {
    Encoded(EncodedColumn),
    /// Dictionary arrays, each with texts of its own.
    Texts(Vec<ArrayRef>),
}

impl FileFormat for ArrowFile {
    fn start(file: File, spec: &FileSpec) -> Result<Self> {
        let (codec, level) = match spec.compression {
            TableCompression::None => (None, None),
            TableCompression::Lz4 => (Some(CompressionType::LZ4_FRAME), None),
            TableCompression::Zstd(level) => (Some(CompressionType::ZSTD), Some(level)),
        };
        let schema = Arc::new(file_schema(spec));
        let encoding = Encoding::new(codec, level)?;
        let mut dictionaries = Vec::new();
        dictionaries.resize_with(spec.columns.len(), FileDictionary::default);
        Ok(ArrowFile {
            file: IpcFile::start(file, Arc::clone(&schema), encoding.clone())?,
            schema,
            encoding,
            columns: Arc::clone(&spec.columns),
            shares_texts: spec.shares_texts,
            dictionaries,
        })
    }
}

impl RowGroupFormat for ArrowFile {
    /// A column.
    type Encoded = ColumnData;

    fn tasks(&mut self, _: &RowGroup) -> Result<Vec<EncodeTask<ColumnData>>> {
        let task = |index: usize| {
            let (columns, encoding) = (Arc::clone(&self.columns), self.encoding.clone());
            let schema = Arc::clone(&self.schema);
            let shares_texts = self.shares_texts;
            EncodeTask {
                share: columns[index].place(),
                encode: Box::new(move |group| {
                    let arrays: Vec<ArrayRef> = group.arrays(&columns[index], index).collect();
                    let mut statistics = ValueStatistics::default();
                    let of_arrays = arrays.iter().map(ValueStatistics::from_array);
                    of_arrays.for_each(|of_array| statistics.add(of_array));
                    let is_text = arrays[0].as_any_dictionary_opt().is_some();
                    let field = schema.field(index);
                    let data = match (is_text, shares_texts) {
                        (true, true) => ColumnData::Texts(arrays),
                        (true, false) => {
                            let texts: ArrayRef = Arc::new(plain_texts(&arrays));
                            ColumnData::Encoded(encoding.column(field, &[texts])?)
                        }
                        (false, _) => ColumnData::Encoded(encoding.column(field, &arrays)?),
                    };
                    Ok(Encoded {
                        data,
                        statistics: vec![(index, statistics)],
                    })
                }),
            }
        };
        Ok((0..self.columns.len()).map(task).collect())
    }

    fn write(&mut self, encoded: Vec<ColumnData>) -> Result<()> {
        let fields = self.schema.fields().iter().zip(&mut self.dictionaries);
        let columns = encoded.into_iter().zip(fields);
        let columns = columns.map(|(data, (field, dictionary))| match data {
            ColumnData::Encoded(column) => Ok(column),
            ColumnData::Texts(arrays) => self.encoding.column(field, &dictionary.keys(&arrays)?),
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        self.file.write_batch(&columns)
    }

    fn finish(self) -> Result<Option<File>> {
        let fields = self.schema.fields().iter().zip(&self.dictionaries);
        let columns = fields.map(|(field, dictionary)| -> ArrayRef {
            let array = new_empty_array(field.data_type());
            match array.as_any_dictionary_opt() {
                None => array,
                Some(_) => Arc::new(dictionary.empty_array()),
            }
        });
        self.file.finish(columns.collect()).map(Some)
    }
}

impl FileDictionary {
    /// The keys of the rows of each of these arrays.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the texts take more bytes than a dictionary may have.
    fn keys(&mut self, arrays: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let of_array = |array: &ArrayRef| -> Result<ArrayRef> {
            let array = array.as_dictionary::<Int32Type>();
            let texts = array.values().as_string::<i32>();
            let new_keys = texts.iter().map(|text| self.key(text.unwrap_or_default()));
            let new_keys = new_keys.collect::<Result<Vec<i32>>>()?;
            let keys = array.keys();
            if keys.nulls().is_none() && new_keys.iter().copied().eq(0..new_keys.len() as i32) {
                return Ok(Arc::new(keys.clone()));
            }
            // The key of null is no index.
            let of_rows = keys.values().iter();
            let of_rows = of_rows.map(|&key| new_keys.get(key as usize).copied().unwrap_or(0));
            let of_rows: Vec<i32> = of_rows.collect();
            Ok(Arc::new(Int32Array::new(
                of_rows.into(),
                keys.nulls().cloned(),
            )))
        };
        arrays.iter().map(of_array).collect()
    }

    /// The key of a text, which is added to the dictionary if it is new; fails as
    /// [`FileDictionary::keys`].
    fn key(&mut self, text: &str) -> Result<i32> {
        if let Some(&key) = self.keys.get(text) {
            return Ok(key);
        }
        self.bytes += text.len();
        if self.bytes > DICTIONARY_BYTES_MAX || self.texts.len() == i32::MAX as usize {
            let message = "a part has more texts than a dictionary of an Arrow file may hold";
            return Err(Error::new(ErrorKind::Io, message)
                .fix("lower tables.inputs_per_part, or write Parquet"));
        }
        let (text, key) = (Arc::<str>::from(text), self.texts.len() as i32);
        self.texts.push(Arc::clone(&text));
        self.keys.insert(text, key);
        Ok(key)
    }

    /// An array of no rows with all texts.
    fn empty_array(&self) -> DictionaryArray<Int32Type> {
        let texts = StringArray::from_iter_values(self.texts.iter().map(|text| &**text));
        DictionaryArray::new(Int32Array::from(Vec::<i32>::new()), Arc::new(texts))
    }
}

/// The schema of a file, with the file's metadata. Texts are dictionaries only if the file shares
/// them.
pub(super) fn file_schema(spec: &FileSpec) -> Schema {
    let metadata = spec.metadata.iter();
    let metadata = metadata.map(|(key, value)| ((*key).to_owned(), value.clone()));
    let schema = if spec.shares_texts {
        arrow_schema(spec.columns())
    } else {
        plain_schema(spec.columns())
    };
    schema.with_metadata(metadata.collect::<HashMap<_, _>>())
}

/// The arrays of a column one after the other, with plain strings in place of dictionaries.
pub(super) fn one_array(arrays: &[ArrayRef]) -> std::result::Result<ArrayRef, ArrowError> {
    if arrays[0].as_any_dictionary_opt().is_some() {
        return Ok(Arc::new(plain_texts(arrays)));
    }
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    concat(&arrays)
}

/// The texts of arrays with dictionaries of their own, in one array without.
fn plain_texts(arrays: &[ArrayRef]) -> StringArray {
    let rows = arrays.iter().map(Array::len).sum();
    let mut texts = StringBuilder::with_capacity(rows, 0);
    for array in arrays {
        let array = array.as_dictionary::<Int32Type>();
        let values = array.values().as_string::<i32>();
        for key in array.keys() {
            texts.append_option(key.map(|key| values.value(key as usize)));
        }
    }
    texts.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_the_texts_of_the_whole_file_and_nulls_stay() {
        let array = |texts: &[Option<&str>]| -> ArrayRef {
            Arc::new(
                texts
                    .iter()
                    .copied()
                    .collect::<DictionaryArray<Int32Type>>(),
            )
        };
        let mut dictionary = FileDictionary::default();
        let first = [
            array(&[Some("b"), Some("b"), Some("a")]),
            array(&[None, Some("a")]),
        ];
        let keys = |dictionary: &mut FileDictionary, arrays: &[ArrayRef]| {
            let keys = dictionary.keys(arrays).unwrap();
            one_array(&keys)
                .unwrap()
                .as_primitive::<Int32Type>()
                .clone()
        };
        let expected = Int32Array::from(vec![Some(0), Some(0), Some(1), None, Some(1)]);
        assert_eq!(keys(&mut dictionary, &first), expected);
        let second = [array(&[Some("a"), Some("c")])];
        let expected = Int32Array::from(vec![1, 2]);
        assert_eq!(keys(&mut dictionary, &second), expected);
        let all = dictionary.empty_array();
        let texts: Vec<_> = all.values().as_string::<i32>().iter().flatten().collect();
        assert_eq!((all.len(), texts), (0, vec!["b", "a", "c"]));
    }
}
