//! Kernels of the user's own in a run.

use super::config::Config;
use super::plan::sha256_hex;
use serde_json::{Value as Json, json};
use tapeloop::backend::Selected;
use tapeloop::error::{Error, Result};
use tapeloop::features::{FeatureConfig, OwnKernel};

/// Refuses them where there is no GPU.
///
/// # Errors
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if there are some, and the device is no GPU.
pub fn check_device(config: &Config, selected: &Selected) -> Result<()> {
    match config.features.own_kernels.first() {
        Some(kernel) if selected.backend.device().backend != "cuda" => {
            let (kernel, reason) = (kernel.name(), &selected.reason);
            let message =
                format!("`kernel`: {kernel} needs a GPU, and the run is on the CPU: {reason}");
            Err(Error::config(message).fix("run where a GPU is, or leave the kernel out"))
        }
        _ => Ok(()),
    }
}

/// What decides their columns and values; `None` without any. The same file in another folder is the
/// same kernel.
pub fn provenance(features: &FeatureConfig) -> Option<String> {
    let described = |kernel: &OwnKernel| {
        let settings = kernel.settings();
        let columns = settings.columns.iter();
        let columns: Vec<String> = columns.map(|column| format!("{column:?}")).collect();
        let threads = format!("{:?}", settings.threads);
        let text = sha256_hex(settings.text.as_bytes());
        json!([text, settings.entry, threads, settings.values, columns])
    };
    let kernels: Vec<Json> = features.own_kernels.iter().map(described).collect();
    (!kernels.is_empty()).then(|| json!(kernels).to_string())
}

/// The kernel that writes a column of this name.
pub fn writer_of(features: &FeatureConfig, column: &str) -> Option<String> {
    let mut kernels = features.own_kernels.iter();
    let writer = kernels.find(|kernel| kernel.columns().any(|declared| declared.name == column));
    writer.map(OwnKernel::name)
}
