//! `tapeloop doctor`.

use super::config::Config;
use super::exit_codes::{FAILED, GOOD};
use super::plan::{cuda_options, thread_pool};
use super::terminal::say;
use crate::backend::doctor::{KernelBuild, Status, examine};
use crate::error::Result;
use crate::features::{KERNEL_TARGETS, NVCC_VERSION};

/// Checks the driver, the devices and NVRTC, prints the findings, and returns the exit code.
///
/// # Errors
/// The threads of the config cannot be started.
pub(super) fn doctor(config: &Config) -> Result<u8> {
    let pool = thread_pool(config.threads)?;
    let kernels = KernelBuild {
        nvcc_version: NVCC_VERSION,
        targets: KERNEL_TARGETS,
    };
    let findings = examine(&cuda_options(config), kernels, &pool);
    for finding in &findings {
        say(&format!("{finding}\n"));
    }
    // The last finding is about `backend = "auto"`.
    let usable = findings
        .last()
        .is_some_and(|auto| auto.status == Status::Good);
    Ok(if usable { GOOD } else { FAILED })
}
