//! `tapeloop doctor`.

use super::progress::{Audience, CompilingProgress};
use rayon::ThreadPool;
use serde_json::{Value as Json, json};
use std::io::IsTerminal;
use std::sync::Arc;
use tapeloop::backend::doctor::{BACKEND, Finding, KernelBuild, Status, examine};
use tapeloop::backend::{Backend, Choice, Compilation};
use tapeloop::error::{Error, ErrorKind, Result};
use tapeloop::features::{KERNEL_TARGETS, NVCC_VERSION};
use tapeloop_bench::internal::format::counted;
use tapeloop_cli::config::Config;
use tapeloop_cli::exit_codes::{FAILED, GOOD};
use tapeloop_cli::plan::thread_pool;
use tapeloop_cli::selection::{cuda_options, select};
use tapeloop_cli::terminal::say;

/// Checks the driver, the devices and NVRTC, prints the findings, as JSON if `as_json`, and returns
/// the exit code. With `warm` it compiles all kernels that a run with this config may use.
///
/// # Errors
/// Those of [`thread_pool`] for the threads of the config.
pub(super) fn doctor(config: &Config, as_json: bool, warm: bool) -> Result<u8> {
    let pool = thread_pool(config.threads)?;
    let kernels = KernelBuild {
        nvcc_version: NVCC_VERSION,
        targets: KERNEL_TARGETS,
    };
    let options = cuda_options(config);
    let mut findings = examine(config.backend, &config.devices, &options, kernels, &pool);
    if warm {
        let cache = findings.iter().find(|finding| finding.label == "cache");
        let is_kept = cache.is_none_or(|finding| finding.status == Status::Good);
        let compiled = compile_ahead(config, &pool, is_kept);
        findings.push(compiled.unwrap_or_else(|error| Finding::of_error(WARM, &error)));
    }
    if as_json {
        let findings: Vec<Json> = findings.iter().map(json_of).collect();
        say(&format!("{:#}\n", Json::from(findings)));
    } else {
        let lines: Vec<String> = findings
            .iter()
            .map(|finding| format!("{finding}\n"))
            .collect();
        say(&format!("{}\n{}\n", lines.concat(), verdict(&findings)));
    }
    let is_ready = decisive(&findings).all(|finding| finding.status == Status::Good);
    Ok(if is_ready { GOOD } else { FAILED })
}

/// The findings that decide the exit code.
fn decisive(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    let decides = |finding: &&Finding| [BACKEND, WARM].contains(&&*finding.label);
    findings.iter().filter(decides)
}

/// Whether runs can start, in a sentence.
fn verdict(findings: &[Finding]) -> String {
    if let Some(failed) = decisive(findings).find(|finding| finding.status != Status::Good) {
        return format!("Not ready: {}.", failed.detail);
    }
    let backend = decisive(findings).find(|finding| finding.label == BACKEND);
    let has_gpu = backend.is_some_and(|backend| backend.detail.starts_with("cuda"));
    if has_gpu {
        "Ready: runs compute on the GPU.".to_owned()
    } else {
        "Ready: runs compute on the CPU. What is marked -- is needed for a GPU alone.".to_owned()
    }
}

/// The label of what `--warm` did.
const WARM: &str = "compiled";

/// Compiles what the cache does not have.
///
/// # Errors
/// A kernel cannot be compiled; `ErrorKind::Unavailable` if there is no GPU to compile for, or no
/// cache that keeps the code.
fn compile_ahead(config: &Config, pool: &Arc<ThreadPool>, is_kept: bool) -> Result<Finding> {
    let selected = select(config, pool)?.into_iter();
    let backends: Vec<Arc<dyn Backend>> = selected.map(|one| one.backend).collect();
    let is_cpu = backends[0].device().backend == "cpu";
    if is_cpu && config.backend == Choice::Auto {
        let error = Error::new(ErrorKind::Unavailable, "there is no GPU to compile for");
        return Err(error.fix("run it where the GPU is"));
    }
    let images = config.features.images();
    if !is_cpu && !is_kept && images.iter().any(|image| image.binary.is_none()) {
        let error = Error::new(
            ErrorKind::Unavailable,
            "no cache keeps the compiled kernels",
        );
        return Err(error.fix("see the finding `cache`"));
    }
    let audience = std::io::stderr().is_terminal().then_some(Audience::Reader);
    let shown = CompilingProgress::start(audience, &backends);
    let prepared = backends
        .iter()
        .try_for_each(|backend| backend.prepare(&images));
    drop(shown);
    prepared?;
    let Compilation { images, ns, .. } = backends.iter().map(|backend| backend.compilation()).sum();
    let detail = match images {
        0 if is_cpu => "the CPU needs no kernels".to_owned(),
        0 => "all kernels were compiled before".to_owned(),
        _ => format!("{} in {:.2} s", counted(images, "kernel"), ns as f64 / 1e9),
    };
    Ok(Finding::new(Status::Good, WARM, detail))
}

/// A finding as JSON.
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
