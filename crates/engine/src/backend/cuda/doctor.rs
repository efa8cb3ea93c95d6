//! Diagnoses the driver, the devices and NVRTC.

use super::cache::{Cache, DIR_VARIABLE};
use super::devices::list_devices;
use super::driver::{self, OR_CPU, REQUIRED_VERSION, version_text};
use super::memory::size_text;
use super::nvrtc::Nvrtc;
use crate::backend::doctor::{Finding, KernelBuild, Status};
use crate::backend::{CudaOptions, DeviceEntry, KernelCache, NvrtcLibrary};
use crate::error::Result;

/// Looks at everything that a GPU run needs: driver, devices, compiled kernels, NVRTC and the cache
/// of kernels. Opens the libraries, takes a context on each device, and writes a file into the
/// cache's folder.
pub(in crate::backend) fn gpu_findings(
    options: &CudaOptions,
    kernels: KernelBuild<'_>,
) -> Vec<Finding> {
    let mut findings = vec![library()];
    let mut capabilities = Vec::new();
    match list_devices() {
        Ok(Ok(devices)) => {
            capabilities.extend(devices.iter().map(|device| device.compute_capability));
            findings.extend(devices.iter().map(device_finding));
        }
        Ok(Err(reason)) if findings[0].status == Status::Good => {
            let fix = "see nvidia-smi; in a container, pass the GPU in";
            findings.push(Finding::new(Status::Missing, "device", reason).fix(fix));
        }
        // The finding of the driver says so.
        Ok(Err(_)) => {}
        Err(error) => findings.push(Finding::of_error("device", &error)),
    }
    findings.push(embedded(kernels, &capabilities));
    findings.push(nvrtc(options, kernels));
    findings.push(cache(options));
    findings
}

/// The driver's library and whether its version is new enough.
fn library() -> Finding {
    let Some(library) = driver::library() else {
        let detail = "no NVIDIA driver (libcuda) on this machine";
        return Finding::new(Status::Missing, "driver", detail)
            .fix(format!("install the NVIDIA driver, {OR_CPU}"));
    };
    match driver::version(library) {
        Ok(version) => {
            let (has, needs) = (version_text(version), version_text(REQUIRED_VERSION));
            let detail = format!("libcuda supports CUDA {has}; this build needs {needs}");
            if version < REQUIRED_VERSION {
                Finding::new(Status::Missing, "driver", detail)
                    .fix(format!("update the NVIDIA driver, {OR_CPU}"))
            } else {
                Finding::new(Status::Good, "driver", detail)
            }
        }
        Err(error) => Finding::of_error("driver", &error),
    }
}

/// One line about a device, or the error of opening a context on it.
fn device_finding(device: &DeviceEntry) -> Finding {
    let free = match &device.memory_free_bytes {
        Ok(free) => size_text(*free as usize),
        Err(error) => {
            let finding = Finding::of_error("device", error);
            let (ordinal, name, uuid) = (device.ordinal, &device.name, &device.uuid);
            let detail = format!("{ordinal}: {name}, {uuid}: {}", finding.detail);
            return Finding { detail, ..finding };
        }
    };
    let (major, minor) = device.compute_capability;
    let detail = format!(
        "{}: {}, compute capability {major}.{minor}, {free} free of {}, {}, PCI {}",
        device.ordinal,
        device.name,
        size_text(device.memory_bytes as usize),
        device.uuid,
        device.pci_bus_id,
    );
    Finding::new(Status::Good, "device", detail)
}

/// Whether the program contains compiled kernels, and which of the devices run them as they are.
fn embedded(kernels: KernelBuild<'_>, capabilities: &[(u32, u32)]) -> Finding {
    if kernels.nvcc_version.is_empty() {
        let detail = "none are compiled in: the build had no nvcc, so NVRTC compiles them";
        return Finding::new(Status::Spare, "kernels", detail);
    }
    let ways: Vec<String> = capabilities
        .iter()
        .map(|(major, minor)| {
            let machine = format!("sm_{major}{minor}");
            if kernels.targets.split(' ').any(|target| target == machine) {
                format!("; {machine} has its own code")
            } else {
                format!("; {machine} runs what the driver makes of them")
            }
        })
        .collect();
    let detail = format!(
        "compiled in by nvcc {} for {}{}",
        kernels.nvcc_version,
        kernels.targets,
        ways.concat()
    );
    Finding::new(Status::Good, "kernels", detail)
}

/// Whether NVRTC can be opened. Only a build without nvcc needs it for the built-in kernels.
fn nvrtc(options: &CudaOptions, kernels: KernelBuild<'_>) -> Finding {
    let driver_version = driver::library().and_then(|library| driver::version(library).ok());
    let named = options.nvrtc.as_ref().map(NvrtcLibrary::path);
    nvrtc_finding(Nvrtc::open(named, driver_version.unwrap_or(0)), kernels)
}

fn nvrtc_finding(opened: Result<Nvrtc>, kernels: KernelBuild<'_>) -> Finding {
    match opened {
        Ok(nvrtc) => {
            let (major, minor) = nvrtc.version;
            let detail = format!("{} is version {major}.{minor}", nvrtc.path.display());
            Finding::new(Status::Good, "nvrtc", detail)
        }
        Err(error) if kernels.nvcc_version.is_empty() => Finding::of_error("nvrtc", &error),
        Err(error) => {
            let why = error.message();
            let detail = format!("{why}; it is needed only for kernels that come as source");
            Finding::new(Status::Spare, "nvrtc", detail)
        }
    }
}

/// Whether the folder of compiled kernels can be written, which is tried.
fn cache(options: &CudaOptions) -> Finding {
    let cache = Cache::new(options.kernel_cache.as_ref().map(KernelCache::path));
    let fix = format!("name a folder that can be written in {DIR_VARIABLE}");
    let Some(dir) = cache.dir() else {
        let detail = "no folder for compiled kernels: they are compiled at each start";
        return Finding::new(Status::Spare, "cache", detail).fix(fix);
    };
    match cache.probe() {
        Ok(()) => Finding::new(Status::Good, "cache", dir.display().to_string()),
        Err(error) => {
            let detail = format!("{} cannot be written: {error}", dir.display());
            Finding::new(Status::Spare, "cache", detail).fix(fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_library_that_cannot_be_opened_is_named_also_where_it_is_spare() {
        let opened = Nvrtc::open(Some(Path::new("/nowhere/libnvrtc.so")), 0);
        let kernels = KernelBuild {
            nvcc_version: "13.0",
            targets: "sm_90",
        };
        let finding = nvrtc_finding(opened, kernels);
        assert!(matches!(finding.status, Status::Spare));
        assert!(
            finding.detail.contains("/nowhere/libnvrtc.so"),
            "{}",
            finding.detail
        );
    }
}
