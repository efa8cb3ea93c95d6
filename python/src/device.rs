//! The device of a replay, and its threads.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::ThreadPool;
use std::sync::{Arc, Mutex, PoisonError};
use tapeloop::backend::cpu::CpuBackend;
use tapeloop::backend::{Backend, Choice, CudaOptions, select_with};
use tapeloop_error::internal::{stack_bytes, thread_error};

/// The threads of all replays of this process; those of the process before a fork are gone.
fn threads() -> tapeloop::Result<Arc<ThreadPool>> {
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let process = std::process::id();
    let lock = || POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let known = |pool: &Option<(u32, Arc<ThreadPool>)>| {
        let known = pool.as_ref().filter(|(of, _)| *of == process);
        known.map(|(_, pool)| Arc::clone(pool))
    };
    if let Some(pool) = known(&lock()) {
        return Ok(pool);
    }
    // Without the lock: a fork meanwhile would leave it locked in the child.
    let made = rayon::ThreadPoolBuilder::new().stack_size(stack_bytes());
    let made = Arc::new(made.build().map_err(thread_error)?);
    let mut pool = lock();
    if let Some(other) = known(&pool) {
        return Ok(other);
    }
    if let Some((_, old)) = pool.replace((process, Arc::clone(&made))) {
        // Its threads are gone, and a lock of theirs may be held for ever.
        std::mem::forget(old);
    }
    Ok(made)
}

/// Opens a device. On the CPU a batch is never computed by the thread that asks for it, which holds
/// a lock: twins are Python code, and may take any time.
pub(crate) fn open(choice: Choice, options: &CudaOptions) -> tapeloop::Result<Arc<dyn Backend>> {
    let pool = threads()?;
    let selected = select_with(choice, &pool, options)?;
    Ok(match selected.backend.device().backend {
        "cpu" => Arc::new(CpuBackend::in_pool(pool)),
        _ => selected.backend,
    })
}

/// The choice of a device, and its ordinal, of `"auto"`, `"cpu"` or an ordinal.
pub(crate) fn device_of(device: &Bound<'_, PyAny>) -> PyResult<(Choice, Option<i32>)> {
    if let Ok(ordinal) = device.extract::<i32>()
        && ordinal >= 0
    {
        return Ok((Choice::Cuda, Some(ordinal)));
    }
    match device.extract::<String>().as_deref() {
        Ok("auto") => Ok((Choice::Auto, None)),
        Ok("cpu") => Ok((Choice::Cpu, None)),
        _ => Err(PyValueError::new_err(format!(
            "device is {}; take \"auto\", \"cpu\" or the number of a GPU",
            device.repr()?
        ))),
    }
}
