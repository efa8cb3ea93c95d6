//! The native part of the Python package `pytapeloop`: an engine, its streams, and tables that
//! other libraries take by Arrow's PyCapsule interface.

mod atoms;
mod column;
mod declarations;
mod device;
mod dlpack;
mod engine;
mod kernels;
mod launches;
mod open_replay;
mod preview;
mod replay;
mod table;
mod typed;

use pyo3::prelude::*;

// The native module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("TapeloopError", py.get_type::<engine::TapeloopError>())?;
    module.add("ConfigError", py.get_type::<engine::ConfigError>())?;
    module.add_class::<column::Column>()?;
    module.add_class::<engine::Engine>()?;
    module.add_class::<engine::Stream>()?;
    module.add_class::<replay::Replay>()?;
    module.add_class::<table::RecordBatch>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(atoms::mmcif_of_atoms, module)?)?;
    module.add_function(wrap_pyfunction!(declarations::describe, module)?)?;
    module.add_function(wrap_pyfunction!(declarations::names_in, module)?)?;
    module.add_function(wrap_pyfunction!(declarations::settings, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::kernels, module)?)
}
