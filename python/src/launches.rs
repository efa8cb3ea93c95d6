//! Launches as Python gives them, and twins that are Python functions.

use crate::engine::{TapeloopError, raised};
use crate::typed::{Role, Typed, name_of, number, scalar};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};
use std::cell::Cell;
use std::sync::Arc;
use tapeloop::record::{Arg, DType, Image, Kernel, ParamKind, Recorder, TwinArg, TwinLaunch};

/// A buffer of a recording.
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) len: usize,
    pub(crate) role: Role,
    pub(crate) handle: Typed,
}

impl Declared {
    pub(crate) fn bytes(&self) -> usize {
        self.len * self.dtype.size_bytes()
    }
}

/// A launch as Python gives it: kernel, grid, block or none, dynamic shared memory in bytes,
/// arguments (names of buffers, or numbers) and the twin.
pub(crate) type Launch<'py> = (
    String,
    [u32; 3],
    Option<[u32; 3]>,
    u32,
    Vec<Bound<'py, PyAny>>,
    Option<Py<PyAny>>,
);

/// Records a launch, and notes in `written` which buffers it writes. Without a GPU the kernel needs a twin. Errors
/// name the kernel and its parameter: a `TypeError` or `ValueError` for an argument that does not fit.
pub(crate) fn record_launch(
    recorder: &mut Recorder,
    source: &str,
    image: &Arc<Image>,
    (name, grid, block, shared_bytes, args, twin): Launch<'_>,
    buffers: &[Declared],
    written: &mut [bool],
    is_gpu: bool,
) -> PyResult<()> {
    let mut kernel = Kernel::declared_in(source, &name).map_err(|error| raised(&error))?;
    if let Some(block) = block {
        kernel = kernel.block_shape(block);
    }
    kernel = kernel.shared_bytes(shared_bytes);
    match twin {
        // A twin may keep the replay alive, and the garbage collector does not see that.
        Some(_) if is_gpu => {}
        Some(twin) => kernel = kernel.twin_closure(move |launch| run_twin(&twin, launch)),
        None if !is_gpu => {
            let message = format!(
                "kernel {name} has no twin, and there is no GPU (fix: pass \
                 twins={{{name:?}: function}}, or run where a GPU is)"
            );
            return Err(TapeloopError::new_err(message));
        }
        None => {}
    }
    if args.len() != kernel.params().len() {
        let message = format!(
            "kernel {name} takes {} arguments, and got {}",
            kernel.params().len(),
            args.len()
        );
        return Err(PyValueError::new_err(message));
    }
    let mut recorded = Vec::with_capacity(args.len());
    for (param, arg) in kernel.params().iter().zip(&args) {
        let place = || format!("kernel {name}, parameter {}", param.name);
        let value = match &param.kind {
            ParamKind::Buffer { access, .. } => {
                let Ok(of) = arg.extract::<String>() else {
                    let message = format!("{}: give the name of a buffer", place());
                    return Err(PyTypeError::new_err(message));
                };
                let found = buffers.iter().position(|buffer| buffer.name == of);
                let Some(found) = found else {
                    let message = format!("{}: there is no buffer {of:?}", place());
                    return Err(PyValueError::new_err(message));
                };
                if buffers[found].role == Role::Constant && access.writes() {
                    let message = format!("{}: buffer {of:?} is constant", place());
                    return Err(PyValueError::new_err(message));
                }
                written[found] |= access.writes();
                buffers[found].handle.arg()
            }
            ParamKind::Scalar { dtype } => {
                let value = scalar(*dtype, arg);
                let value = value.map_err(|error| {
                    PyTypeError::new_err(format!("{}: {}", place(), error.value(arg.py())))
                })?;
                Arg::Scalar(value)
            }
            ParamKind::Struct { .. } => {
                let message = format!("{}: Python passes no structs", place());
                return Err(PyTypeError::new_err(message));
            }
        };
        recorded.push(value);
    }
    // SAFETY: the caller of `pytapeloop.Replay` vouches for the code, as its documentation says: it
    // is native code of theirs, which Python can run in other ways too.
    let kernel = unsafe { kernel.code(image) };
    recorder.launch_grid(&kernel, grid, &recorded);
    Ok(())
}

thread_local! {
    /// How many twins run on this thread, one within the other.
    static IN_TWIN: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread runs a twin.
pub(crate) fn is_in_twin() -> bool {
    IN_TWIN.get() > 0
}

/// Refuses a call of a twin that may wait for a batch: it may be the twin's own.
pub(crate) fn check_outside_twin() -> PyResult<()> {
    if is_in_twin() {
        Err(TapeloopError::new_err("a twin cannot use a replay"))
    } else {
        Ok(())
    }
}

/// Ends the child of a fork in which a twin returns. The threads that wait for the twin are the parent's.
fn end_forked_child(py: Python<'_>) {
    let end = || -> PyResult<()> {
        let text = "pytapeloop: a twin has forked, and its child process ends where it would return from the twin \
                    (fix: end the child with os._exit, or start processes with spawn)\n";
        let (sys, os) = (py.import("sys")?, py.import("os")?);
        let stderr = sys.getattr("stderr")?;
        if stderr.call_method1("write", (text,)).is_ok() {
            // The process ends in either case.
            let _ = stderr.call_method0("flush");
        }
        os.call_method1("_exit", (1,)).map(drop)
    };
    if end().is_err() {
        std::process::abort();
    }
}

/// Calls a Python function with the arguments of a launch: buffers as (type, bytes), which it may
/// change where the kernel writes, and numbers. Buffers are copies, as the function may keep what it gets.
fn run_twin(twin: &Py<PyAny>, launch: &mut TwinLaunch<'_>) {
    IN_TWIN.set(IN_TWIN.get() + 1);
    let outcome = Python::attach(|py| -> PyResult<()> {
        let args = PyList::empty(py);
        let mut outputs = Vec::new();
        let array = |dtype: DType, bytes: &[u8]| -> PyResult<_> {
            let name = name_of(dtype).ok_or_else(|| PyTypeError::new_err("a buffer of structs"))?;
            Ok((name, PyByteArray::new(py, bytes)))
        };
        for arg in launch.rest() {
            match arg {
                TwinArg::Read(dtype, bytes) => args.append(array(dtype, bytes)?)?,
                TwinArg::Write(dtype, bytes) => {
                    let (name, copy) = array(dtype, bytes)?;
                    args.append((name, copy.clone()))?;
                    outputs.push((copy, bytes));
                }
                TwinArg::Scalar(scalar) => args.append(number(py, scalar)?)?,
                TwinArg::Struct(_) => return Err(PyTypeError::new_err("a struct")),
            }
        }
        let process = std::process::id();
        let returned = twin.call1(py, (args,));
        if std::process::id() != process {
            end_forked_child(py);
        }
        returned?;
        for (copy, bytes) in outputs {
            let changed = copy.to_vec();
            if changed.len() != bytes.len() {
                return Err(PyValueError::new_err(
                    "a twin changed the length of a buffer",
                ));
            }
            bytes.copy_from_slice(&changed);
        }
        Ok(())
    });
    IN_TWIN.set(IN_TWIN.get() - 1);
    if let Err(error) = outcome {
        // The backend turns it into the batch's error. No message is printed, unlike that of `panic!`.
        std::panic::resume_unwind(Box::new(error.to_string()));
    }
}
