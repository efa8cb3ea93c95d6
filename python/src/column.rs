//! [`Column`]: the values of a column.

use crate::preview::{CELL_WIDTH, counted, texts, unit};
use crate::table::{failed, field_capsule};
use arrow_array::cast::AsArray;
use arrow_array::ffi::to_ffi;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int32Type, Int64Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array, new_empty_array};
use arrow_schema::{DataType, FieldRef, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyCapsule, PyDict, PyIterator, PyList, PySlice};
use tapeloop_cli::config::table_column_hint;
use tapeloop_cli::tables::Cell;
use tapeloop_error::internal::excerpt;

/// Maximum width of the line of values in the text of a column, in characters.
const WIDTH: usize = 80;

/// A column of a table: a sequence of numbers, texts, or True and False, with None for null.
/// ``numpy.asarray(column)`` makes an array, in which null is NaN in numbers and None in others;
/// ``pyarrow.array(column)`` and ``polars.Series(column)`` take it without a copy. ``table["sasa"]``
/// returns it; it is not made by hand.
#[pyclass(module = "pytapeloop", frozen, sequence)]
pub(crate) struct Column {
    field: FieldRef,
    values: ArrayRef,
}

impl Column {
    /// The column `name` of a table.
    pub(crate) fn of_table(
        schema: &SchemaRef,
        batches: &[RecordBatch],
        name: &str,
    ) -> PyResult<Self> {
        let Some((index, _)) = schema.column_with_name(name) else {
            let known: Vec<&str> = schema
                .fields()
                .iter()
                .map(|field| &**field.name())
                .collect();
            let hint = table_column_hint(name, &known);
            let name = excerpt(name);
            return Err(PyKeyError::new_err(format!("no column `{name}`{hint}")));
        };
        let field = FieldRef::clone(&schema.fields()[index]);
        let parts: Vec<&dyn Array> = batches.iter().map(|batch| &**batch.column(index)).collect();
        let values = match &batches {
            [] => new_empty_array(field.data_type()),
            [only] => ArrayRef::clone(only.column(index)),
            _ => concat(&parts).map_err(|error| failed(&error))?,
        };
        Ok(Column { field, values })
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        Cell::new(&self.values, row)
    }

    /// The values as objects of Python.
    fn objects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let values = (0..self.values.len()).map(|row| object(py, self.cell(row)));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }

    /// The values as the bytes of an array and NumPy's name of their type; `None` for objects: texts, and flags
    /// with nulls. Integers with nulls become reals, as NaN stands for null.
    fn numbers(&self) -> Option<(Vec<u8>, &'static str)> {
        let has_nulls = self.values.null_count() > 0;
        let reals = || {
            let real = |row| match self.cell(row) {
                Cell::Integer(integer) => integer as f64,
                Cell::Unsigned(integer) => integer as f64,
                _ => f64::NAN,
            };
            let reals: Vec<f64> = (0..self.values.len()).map(real).collect();
            (bytemuck::cast_slice(&reals).to_vec(), "f8")
        };
        Some(match self.values.data_type() {
            DataType::Int32 | DataType::Int64 | DataType::UInt64 if has_nulls => reals(),
            DataType::Int32 => (self.bytes::<Int32Type>(0), "i4"),
            DataType::Int64 => (self.bytes::<Int64Type>(0), "i8"),
            DataType::UInt64 => (self.bytes::<UInt64Type>(0), "u8"),
            DataType::Float32 => (self.bytes::<Float32Type>(f32::NAN), "f4"),
            DataType::Float64 => (self.bytes::<Float64Type>(f64::NAN), "f8"),
            DataType::Float16 => {
                let halves = self.values.as_primitive::<Float16Type>().iter();
                let bits = halves.map(|half| half.unwrap_or(half::f16::NAN).to_bits());
                (
                    bytemuck::cast_slice(&bits.collect::<Vec<u16>>()).to_vec(),
                    "f2",
                )
            }
            DataType::Boolean if !has_nulls => {
                let flags = self.values.as_boolean().values().iter();
                (flags.map(u8::from).collect(), "?")
            }
            _ => return None,
        })
    }

    /// The bytes of the values, with `null` in place of null.
    fn bytes<T: ArrowPrimitiveType>(&self, null: T::Native) -> Vec<u8>
    where
        T::Native: bytemuck::NoUninit,
    {
        let values = self.values.as_primitive::<T>();
        if values.null_count() == 0 {
            return bytemuck::cast_slice(values.values()).to_vec();
        }
        let values: Vec<T::Native> = values.iter().map(|value| value.unwrap_or(null)).collect();
        bytemuck::cast_slice(&values).to_vec()
    }
}

/// A value as an object of Python.
fn object<'py>(py: Python<'py>, cell: Cell<'_>) -> PyResult<Bound<'py, PyAny>> {
    match cell {
        Cell::Null => Ok(py.None().into_bound(py)),
        Cell::Text(text) => text.into_bound_py_any(py),
        Cell::Integer(integer) => integer.into_bound_py_any(py),
        Cell::Unsigned(integer) => integer.into_bound_py_any(py),
        Cell::Real(real) => real.into_bound_py_any(py),
        Cell::Flag(flag) => flag.into_bound_py_any(py),
    }
}

#[pymethods]
impl Column {
    /// The name of the column.
    #[getter]
    fn name(&self) -> &str {
        self.field.name()
    }

    /// The unit, such as ``A^2`` or ``degrees``; empty if it has none.
    #[getter]
    fn unit(&self) -> &str {
        unit(&self.field)
    }

    /// What the column holds, in a sentence.
    #[getter]
    fn description(&self) -> &str {
        let about = self.field.metadata().get("description");
        about.map_or("", String::as_str)
    }

    fn __len__(&self) -> usize {
        self.values.len()
    }

    // A value, or a column of those in a slice. Negative indices count from the end.
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, length) = (key.py(), self.values.len());
        if let Ok(slice) = key.cast::<PySlice>() {
            let part = slice.indices(length as isize)?;
            let row = |place: usize| (part.start + place as isize * part.step) as u64;
            let rows = UInt64Array::from_iter_values((0..part.slicelength).map(row));
            let values = take(&self.values, &rows, None).map_err(|error| failed(&error))?;
            let field = FieldRef::clone(&self.field);
            return Ok(Bound::new(py, Column { field, values })?.into_any());
        }
        let index: isize = key.extract().map_err(|error: PyErr| {
            // An integer that is larger than all indices.
            if error.is_instance_of::<PyOverflowError>(py) {
                return PyIndexError::new_err(format!("the column has {length} rows"));
            }
            PyTypeError::new_err(
                "a column takes integers and slices; numpy.asarray(column) takes more",
            )
        })?;
        let row = if index < 0 {
            index + length as isize
        } else {
            index
        };
        let row = usize::try_from(row).ok().filter(|row| *row < length);
        let row = row.ok_or_else(|| {
            PyIndexError::new_err(format!("there is no row {index}: the column has {length}"))
        })?;
        object(py, self.cell(row))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.objects(py)?.try_iter()
    }

    // The name, the type and the first values.
    fn __repr__(&self) -> String {
        let length = self.values.len();
        let kind = match self.values.data_type() {
            DataType::Dictionary(..) | DataType::Utf8 => "text".to_owned(),
            DataType::Boolean => "bool".to_owned(),
            other => other.to_string().to_lowercase(),
        };
        let unit = match self.unit() {
            "" => String::new(),
            unit => format!(" in {unit}"),
        };
        let title = format!(
            "pytapeloop.Column: {}, {kind}{unit}, {}",
            self.name(),
            counted(length, "value")
        );
        // Each value takes a character of the line at least.
        let shown: Vec<Cell<'_>> = (0..length.min(WIDTH)).map(|row| self.cell(row)).collect();
        let shown = texts(&shown, CELL_WIDTH, false);
        let mut line = String::from("[");
        for (row, text) in shown.iter().enumerate() {
            let gap = if row == 0 { "" } else { ", " };
            if line.chars().count() + gap.len() + text.chars().count() + ", ...]".len() > WIDTH {
                line.push_str(", ...");
                break;
            }
            line.push_str(gap);
            line.push_str(text);
        }
        format!("{title}\n{line}]")
    }

    /// The values as a NumPy array, which is a copy.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("a column becomes an array by a copy"));
        }
        let numpy = py.import("numpy")?;
        let array = match self.numbers() {
            Some((bytes, kind)) => {
                numpy.call_method1("frombuffer", (PyByteArray::new(py, &bytes), kind))?
            }
            None => {
                let kind = PyDict::new(py);
                kind.set_item("dtype", "object")?;
                numpy.call_method("array", (self.objects(py)?,), Some(&kind))?
            }
        };
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    /// The values by Arrow's C data interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // Columns are never cast: the interface lets a producer ignore the schema that is asked for.
        drop(requested_schema);
        let (array, _) = to_ffi(&self.values.to_data()).map_err(|error| failed(&error))?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        Ok((field_capsule(py, &self.field)?, array))
    }

    /// The type by Arrow's C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        field_capsule(py, &self.field)
    }
}
