//! Checks this machine for what a run needs.

use super::select::{Choice, select_all};
use super::{CudaOptions, DeviceSet, device_names};
use crate::error::Error;
use rayon::ThreadPool;
use std::fmt;
use std::sync::Arc;

/// Whether a finding affects a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It works.
    Good,
    /// It does not work, and is not needed.
    Spare,
    /// It does not work, and is needed.
    Missing,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Whether it affects a run.
    pub status: Status,
    /// The thing that was checked.
    pub label: String,
    /// The result in words.
    pub detail: String,
    /// What to do; `None` if nothing is to be done.
    pub fix: Option<String>,
}

impl Finding {
    #[doc(hidden)]
    pub fn new(status: Status, label: &str, detail: impl Into<String>) -> Self {
        Finding {
            status,
            label: label.to_owned(),
            detail: detail.into(),
            fix: None,
        }
    }

    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "nothing to fix"))]
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    #[doc(hidden)]
    pub fn of_error(label: &str, error: &Error) -> Self {
        Finding {
            fix: error.fix_text().map(str::to_owned),
            ..Finding::new(Status::Missing, label, error.message())
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.status {
            Status::Good => "ok",
            Status::Spare => "--",
            Status::Missing => "!!",
        };
        write!(f, "{mark}  {:<10} {}", self.label, self.detail)?;
        if let Some(fix) = &self.fix {
            write!(f, "\n{:15}fix: {fix}", "")?;
        }
        Ok(())
    }
}

/// How the kernels that a program embeds were built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelBuild<'a> {
    /// The version of the nvcc that compiled them; empty if they were not compiled.
    pub nvcc_version: &'a str,
    /// The architectures that they were compiled for, such as `sm_90 compute_75`.
    pub targets: &'a str,
}

/// Checks everything that a run on `devices` needs, and what `choice` leads to: the last finding, whose label
/// is `backend`. If that is the CPU, nothing that a GPU needs counts as missing. It runs without a driver or
/// a GPU too. [`CudaOptions::device`] is not used.
pub fn examine(
    choice: Choice,
    devices: &DeviceSet,
    options: &CudaOptions,
    kernels: KernelBuild<'_>,
    pool: &Arc<ThreadPool>,
) -> Vec<Finding> {
    let mut findings = gpu_findings(options, kernels);
    let backend = match select_all(choice, devices, pool, options) {
        Ok(selected) => {
            let infos = selected.iter().map(|one| one.backend.device());
            let (first, names) = (&selected[0], device_names(infos));
            let backend = first.backend.device().backend;
            if backend == "cpu" {
                let missing = |finding: &&mut Finding| finding.status == Status::Missing;
                let missing = findings.iter_mut().filter(missing);
                missing.for_each(|finding| finding.status = Status::Spare);
            }
            let detail = format!("{backend} ({names}): {}", first.reason);
            Finding::new(Status::Good, BACKEND, detail)
        }
        Err(error) => Finding::of_error(BACKEND, &error),
    };
    findings.push(backend);
    findings
}

/// The label of the last finding of [`examine`].
pub const BACKEND: &str = "backend";

#[cfg(feature = "cuda")]
use super::cuda::gpu_findings;

#[cfg(not(feature = "cuda"))]
fn gpu_findings(_: &CudaOptions, _: KernelBuild<'_>) -> Vec<Finding> {
    let detail = super::select::WITHOUT_CUDA;
    vec![Finding::new(Status::Spare, "cuda", detail)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_gets_findings_and_every_missing_thing_a_fix() {
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().build().unwrap());
        let kernels = KernelBuild {
            nvcc_version: "",
            targets: "",
        };
        let examined = |choice| {
            examine(
                choice,
                &DeviceSet::All,
                &CudaOptions::default(),
                kernels,
                &pool,
            )
        };
        for choice in [Choice::Auto, Choice::Cuda, Choice::Cpu] {
            let findings = examined(choice);
            assert_eq!(findings.last().unwrap().label, BACKEND);
            for finding in findings {
                assert!(finding.status != Status::Missing || finding.fix.is_some());
            }
        }
        let is_missing = |finding: &Finding| finding.status == Status::Missing;
        assert!(!examined(Choice::Cpu).iter().any(is_missing));
    }
}
