//! Opens the devices that a config names.

use super::config::{Config, WaitSetting};
use super::trusted_code;
use rayon::ThreadPool;
use std::sync::Arc;
use tapeloop::backend::{Choice, CudaOptions, DeviceSet, Selected, device_options, select_all};
use tapeloop::error::{Context, Result};
use tapeloop_error::internal::{thread, thread_error};

/// The options of the CUDA backend, but for the device.
pub fn cuda_options(config: &Config) -> CudaOptions {
    CudaOptions {
        blocking_wait: config.wait == WaitSetting::Sleep,
        nvrtc: config.nvrtc.as_deref().map(trusted_code::nvrtc),
        kernel_cache: config
            .kernel_cache
            .as_deref()
            .map(trusted_code::kernel_cache),
        ..CudaOptions::default()
    }
}

/// Selects the backend of each device; with `supervise` a worker process for each holds it.
///
/// # Errors
/// There is no such device, or it or its worker process cannot be opened.
pub fn select(config: &Config, pool: &Arc<ThreadPool>) -> Result<Vec<Selected>> {
    let (choice, options) = (config.backend, cuda_options(config));
    let selected = if config.supervise {
        device_options(choice, &config.devices, &options)
            .and_then(|options| start_workers(config, choice, options))
    } else {
        select_all(choice, &config.devices, pool, &options)
    };
    // The error of a single device names it.
    match config.devices {
        DeviceSet::Named(ref named) if named.len() == 1 => selected,
        _ => selected.within(|| "devices"),
    }
}

/// Starts one more worker process, of the backend of `choice`, that holds the first device.
///
/// # Errors
/// The worker process cannot be started, or cannot open the device.
pub fn worker(config: &Config, choice: Choice) -> Result<Selected> {
    let mut options = device_options(choice, &config.devices, &cuda_options(config))?;
    options.truncate(1);
    let mut started = start_workers(config, choice, options)?;
    Ok(started.pop().expect("a device was named"))
}

/// Starts a worker process for each device, all at the same time, and waits for all: a driver takes long to
/// start. The error is that of the first device with one.
#[cfg(target_os = "linux")]
fn start_workers(
    config: &Config,
    choice: Choice,
    options: Vec<CudaOptions>,
) -> Result<Vec<Selected>> {
    use std::panic::resume_unwind;
    use tapeloop::backend::worker::{WorkerBackend, WorkerOptions};
    let start = |cuda| -> Result<Selected> {
        let backend = WorkerBackend::open(WorkerOptions {
            program: config.worker.as_deref().map(trusted_code::worker),
            args: vec![WORKER.into()],
            choice,
            cuda,
            threads: config.threads,
            ..WorkerOptions::default()
        })?;
        let reason = format!("{}, in a worker process", backend.reason());
        Ok(Selected::new(Arc::new(backend), reason))
    };
    std::thread::scope(|scope| {
        let start = &start;
        let starts = options.into_iter().map(|cuda| {
            let started = thread("tapeloop-start").spawn_scoped(scope, move || start(cuda));
            started.map_err(thread_error)
        });
        let starts: Vec<_> = starts.collect::<Result<_>>()?;
        let started = starts.into_iter().map(|thread| thread.join());
        started
            .map(|started| started.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

#[cfg(not(target_os = "linux"))]
fn start_workers(_: &Config, _: Choice, _: Vec<CudaOptions>) -> Result<Vec<Selected>> {
    Err(tapeloop::error::Error::config("supervise = true needs Linux").fix("leave it out"))
}

/// The command line's argument that runs a worker.
#[cfg(target_os = "linux")]
const WORKER: &str = "worker";
