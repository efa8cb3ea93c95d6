//! [`RecordBatch`] and [`Table`]: rows that other libraries take without a copy.

use crate::column::Column;
use crate::preview::Preview;
use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatchIterator, StructArray};
use arrow_schema::{Field, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::slice;
use tapeloop_cli::strip::draw_table;
use tapeloop_error::internal::cut;

/// The most bytes of a name in a warning: those of the longest path of Linux.
const NAME_BYTES_MAX: usize = 4096;

pub(crate) fn failed(error: &arrow_schema::ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|error| failed(&error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

pub(crate) fn field_capsule<'py>(
    py: Python<'py>,
    field: &Field,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(field).map_err(|error| failed(&error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// The name of a column between brackets.
fn column_name<'a>(name: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    name.extract().map_err(|_| {
        let text = "a table takes the name of one column; for several, slices and statistics take \
                    table.to_pandas()";
        PyTypeError::new_err(text)
    })
}

fn names(schema: &SchemaRef) -> Vec<String> {
    let fields = schema.fields().iter();
    fields.map(|field| field.name().clone()).collect()
}

/// Rows of a table, which PyArrow, Polars, pandas and DuckDB take without a copy:
/// ``pyarrow.record_batch(batch)``, ``polars.DataFrame(batch)``. ``batch["sasa"]`` is a ``Column``.
/// ``stream`` yields them; they are not made by hand.
#[pyclass(module = "pytapeloop", frozen, mapping)]
pub(crate) struct RecordBatch(arrow_array::RecordBatch);

impl RecordBatch {
    pub(crate) fn new(rows: arrow_array::RecordBatch) -> Self {
        RecordBatch(rows)
    }

    pub(crate) fn rows(&self) -> &arrow_array::RecordBatch {
        &self.0
    }
}

#[pymethods]
impl RecordBatch {
    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    /// Number of columns.
    #[getter]
    fn num_columns(&self) -> usize {
        self.0.num_columns()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        names(&self.0.schema())
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __getitem__(&self, name: &Bound<'_, PyAny>) -> PyResult<Column> {
        Column::of_table(
            &self.0.schema(),
            slice::from_ref(&self.0),
            column_name(name)?,
        )
    }

    fn __contains__(&self, name: &str) -> bool {
        self.0.schema().column_with_name(name).is_some()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let width = terminal_width(py)?;
        Ok(Preview::new("RecordBatch", &self.0.schema(), slice::from_ref(&self.0)).text(width))
    }

    fn _repr_html_(&self) -> String {
        Preview::new("RecordBatch", &self.0.schema(), slice::from_ref(&self.0)).html()
    }

    /// The rows by Arrow's C data interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // Tables are never cast: the interface lets a producer ignore the schema that is asked for.
        drop(requested_schema);
        let rows = StructArray::from(self.0.clone()).to_data();
        let (array, _) = to_ffi(&rows).map_err(|error| failed(&error))?;
        let array: FFI_ArrowArray = array;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        Ok((schema_capsule(py, &self.0.schema())?, array))
    }

    /// The schema by Arrow's C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }
}

/// A table in memory, which PyArrow, Polars, pandas and DuckDB take without a copy:
/// ``pyarrow.table(table)``, ``polars.DataFrame(table)``, ``table.to_pandas()``. ``table["sasa"]`` is a
/// ``Column``, and ``"sasa" in table`` tells whether there is one. ``features`` and ``tables`` return
/// them; they are not made by hand.
#[pyclass(module = "pytapeloop", frozen, mapping, subclass)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<arrow_array::RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<arrow_array::RecordBatch>) -> Self {
        Table { schema, batches }
    }
}

#[pymethods]
impl Table {
    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(|batch| batch.num_rows()).sum()
    }

    /// Number of columns.
    #[getter]
    fn num_columns(&self) -> usize {
        self.schema.fields().len()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        names(&self.schema)
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __getitem__(&self, name: &Bound<'_, PyAny>) -> PyResult<Column> {
        Column::of_table(&self.schema, &self.batches, column_name(name)?)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.schema.column_with_name(name).is_some()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let width = terminal_width(py)?;
        Ok(Preview::new("Table", &self.schema, &self.batches).text(width))
    }

    fn _repr_html_(&self) -> String {
        Preview::new("Table", &self.schema, &self.batches).html()
    }

    /// The first rows.
    ///
    /// Args:
    ///     n: How many rows; all, if the table has no more.
    ///
    /// Returns:
    ///     A table of these rows, without a copy.
    ///
    /// Raises:
    ///     OverflowError: ``n`` is negative.
    #[pyo3(signature = (n = 5))]
    fn head(&self, n: usize) -> Table {
        let mut left = n;
        let part = |batch: &arrow_array::RecordBatch| {
            let rows = left.min(batch.num_rows());
            left -= rows;
            batch.slice(0, rows)
        };
        Table {
            schema: SchemaRef::clone(&self.schema),
            batches: self.batches.iter().map(part).collect(),
        }
    }

    /// Columns of a structure along its sequence, as an SVG file.
    #[pyo3(name = "_draw")]
    fn draw(&self, columns: Vec<String>, structure: Option<&str>) -> PyResult<String> {
        let drawn = draw_table(&self.schema, &self.batches, &columns, structure);
        drawn.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Of a table of rejected inputs: the first one and its reason.
    #[pyo3(name = "_first_rejected")]
    fn first_rejected(&self) -> Option<String> {
        let batch = self.batches.iter().find(|batch| batch.num_rows() > 0)?;
        let first = |name: &str| Some(batch.column_by_name(name)?.as_string_opt::<i32>()?.value(0));
        let source = cut(first("source")?.to_owned(), NAME_BYTES_MAX);
        Some(format!("{source}: {}", first("reason")?))
    }

    /// The table as a ``pyarrow.Table``, without a copy.
    ///
    /// Returns:
    ///     The rows, with the unit, the description and the source of a column in its metadata.
    ///
    /// Raises:
    ///     ImportError: PyArrow is not installed.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// The table as a ``polars.DataFrame``.
    ///
    /// Returns:
    ///     The rows; Polars keeps no metadata of columns.
    ///
    /// Raises:
    ///     ImportError: Polars is not installed.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// The table as a ``pandas.DataFrame``, by way of PyArrow.
    ///
    /// Returns:
    ///     The rows; columns of integers with nulls are of floats, as pandas has it.
    ///
    /// Raises:
    ///     ImportError: PyArrow or pandas is not installed.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_arrow(slf)?.call_method0("to_pandas")
    }

    /// The rows by Arrow's C stream interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Tables are never cast: the interface lets a producer ignore the schema that is asked for.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, SchemaRef::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The schema by Arrow's C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }
}

/// The width of the terminal in characters, 80 without one.
fn terminal_width(py: Python<'_>) -> PyResult<usize> {
    let size = py.import("shutil")?.call_method0("get_terminal_size")?;
    size.getattr("columns")?.extract()
}
