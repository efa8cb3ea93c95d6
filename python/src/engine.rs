//! [`Engine`] and [`Stream`].

use crate::table::{RecordBatch, Table};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use serde_json::{Map, Value};
use std::sync::Mutex;
use std::time::Duration;
use tapeloop::ErrorKind;
use tapeloop_cli::{FeatureEngine, FeatureStream, Inputs, Next, StreamCounts};

create_exception!(
    pytapeloop,
    TapeloopError,
    PyException,
    "An error of the engine, of a device, or of reading or writing files."
);
create_exception!(
    pytapeloop,
    ConfigError,
    TapeloopError,
    "Settings or inputs that cannot be used. The message lists all that is wrong."
);

/// How long a stream waits before it looks for signals, such as Ctrl-C: so short that it seems to end at once.
const PATIENCE: Duration = Duration::from_millis(50);

/// The exception of an error: `ConfigError` for [`ErrorKind::Config`], else `TapeloopError`.
pub(crate) fn raised(error: &tapeloop::Error) -> PyErr {
    match error.kind() {
        ErrorKind::Config => ConfigError::new_err(error.to_string()),
        _ => TapeloopError::new_err(error.to_string()),
    }
}

/// The settings, which are a JSON object of config keys. `ConfigError` for any other text.
pub(crate) fn object_of(settings: &str) -> PyResult<Map<String, Value>> {
    match serde_json::from_str(settings) {
        Ok(Value::Object(settings)) => Ok(settings),
        _ => Err(ConfigError::new_err("the settings are not a JSON object")),
    }
}

/// An engine that is used by one stream at a time.
#[pyclass(module = "pytapeloop._native", frozen)]
pub(crate) struct Engine(FeatureEngine);

#[pymethods]
impl Engine {
    /// `settings` is a JSON object of config keys.
    #[new]
    fn new(py: Python<'_>, settings: &str) -> PyResult<Self> {
        let settings = object_of(settings)?;
        let engine = py.detach(|| FeatureEngine::new(&settings));
        engine.map(Engine).map_err(|error| raised(&error))
    }

    /// Checks the names of tables, unless a stream of this engine is open.
    fn check_tables(&self, tables: Vec<String>) -> PyResult<()> {
        let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
        let checked = self.0.check_tables(&tables);
        checked.map_err(|error| raised(&error))
    }

    /// Streams tables of the features of files, and counts all inputs meanwhile if `counts_inputs`.
    fn stream_paths(
        &self,
        py: Python<'_>,
        paths: Vec<String>,
        tables: Vec<String>,
        counts_inputs: bool,
    ) -> PyResult<Stream> {
        self.stream(py, Inputs::Paths(paths), &tables, counts_inputs)
    }

    /// Streams tables of the features of files in memory, each with a name. `first` is the number
    /// of the first one among the inputs.
    fn stream_files(
        &self,
        py: Python<'_>,
        files: Vec<(String, PyBackedBytes)>,
        first: u64,
        tables: Vec<String>,
    ) -> PyResult<Stream> {
        let files = files
            .into_iter()
            .map(|(name, bytes)| (name, bytes.to_vec()));
        let files = files.collect();
        self.stream(py, Inputs::Memory { first, files }, &tables, false)
    }
}

impl Engine {
    /// Starts a stream, without the GIL.
    fn stream(
        &self,
        py: Python<'_>,
        inputs: Inputs,
        tables: &[String],
        counts_inputs: bool,
    ) -> PyResult<Stream> {
        let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
        let stream = py.detach(|| self.0.stream(inputs, &tables, counts_inputs));
        let stream = stream.map_err(|error| raised(&error))?;
        Ok(Stream(Mutex::new(Some(stream))))
    }
}

/// The record batches of a run, in the order of the inputs.
#[pyclass(module = "pytapeloop._native", frozen)]
pub(crate) struct Stream(Mutex<Option<FeatureStream>>);

#[pymethods]
impl Stream {
    /// The next batch with the name of its table; `None` at the end, and after `close`. Meanwhile it calls `show`
    /// with the counts so far: inputs in all or `None`, inputs, structures, residues, and rejected. Waits in
    /// short steps without the GIL, and looks for signals between them.
    #[pyo3(signature = (show = None))]
    fn next(
        &self,
        py: Python<'_>,
        show: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Option<(&'static str, RecordBatch)>> {
        loop {
            let (next, counts) = py.detach(|| {
                let mut stream = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
                match &mut *stream {
                    Some(stream) => (stream.next_within(PATIENCE), stream.counts()),
                    None => (Ok(Next::End), StreamCounts::default()),
                }
            });
            if let (Some(show), Ok(Next::Batch(..) | Next::Pending)) = (&show, &next) {
                let StreamCounts {
                    inputs_total,
                    inputs,
                    structures,
                    residues,
                    rejected,
                } = counts;
                show.call1((inputs_total, inputs, structures, residues, rejected))?;
            }
            match next.map_err(|error| raised(&error))? {
                Next::Batch(table, batch) => return Ok(Some((table, RecordBatch::new(batch)))),
                Next::End => return Ok(None),
                Next::Pending => py.check_signals()?,
            }
        }
    }

    /// Ends the run. Batches that were not taken are dropped.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let mut stream = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
            drop(stream.take());
        });
    }

    /// A table of the stream's batches of that name.
    fn table(&self, name: &str, batches: Vec<PyRef<'_, RecordBatch>>) -> PyResult<Table> {
        let stream = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        let schema = stream.as_ref().and_then(|stream| stream.schema(name));
        let schema = schema.cloned().ok_or_else(|| {
            TapeloopError::new_err(format!("the stream has no table {name:?}, or is closed"))
        })?;
        let batches = batches.iter().map(|batch| batch.rows().clone());
        Ok(Table::new(schema, batches.collect()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Ending a run waits for its thread, which needs no Python.
        let stream = self
            .0
            .get_mut()
            .unwrap_or_else(|poison| poison.into_inner());
        if let Some(stream) = stream.take() {
            Python::try_attach(|py| py.detach(|| drop(stream)));
        }
    }
}
