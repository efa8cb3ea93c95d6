//! `tapeloop doctor`.

use super::config::Config;
use super::exit_codes::{FAILED, GOOD};
use super::plan::thread_pool;
use super::selection::cuda_options;
use super::terminal::say;
use crate::backend::doctor::{Finding, KernelBuild, Status, examine};
use crate::error::Result;
use crate::features::{KERNEL_TARGETS, NVCC_VERSION};
use serde_json::{Value as Json, json};

/// Checks the driver, the devices and NVRTC, prints the findings, as JSON if `as_json`, and returns
/// the exit code.
///
/// # Errors
/// The threads of the config cannot be started.
pub(super) fn doctor(config: &Config, as_json: bool) -> Result<u8> {
    let pool = thread_pool(config.threads)?;
    let kernels = KernelBuild {
        nvcc_version: NVCC_VERSION,
        targets: KERNEL_TARGETS,
    };
    let findings = examine(&config.devices, &cuda_options(config), kernels, &pool);
    if as_json {
        let findings: Vec<Json> = findings.iter().map(json_of).collect();
        say(&format!("{:#}\n", Json::from(findings)));
    } else {
        let lines: Vec<String> = findings.iter().map(|it| format!("{it}\n")).collect();
        say(&lines.concat());
    }
    // The last finding is about `backend = "auto"`.
    let usable = findings
        .last()
        .is_some_and(|auto| auto.status == Status::Good);
    Ok(if usable { GOOD } else { FAILED })
}

fn json_of(finding: &Finding) -> Json {
    let status = match finding.status {
        Status::Good => "good",
        Status::Spare => "not_needed",
        Status::Missing => "missing",
    };
    json!({
        "status": status,
        "label": finding.label,
        "detail": finding.detail,
        "fix": finding.fix,
    })
}
