//! Options that several commands take, each of which overrides a key of the config file.

/// The headings of options in the help.
pub(super) mod heading {
    pub(crate) const INPUTS: &str = "Inputs";
    pub(crate) const OUTPUT: &str = "Output";
    pub(crate) const SETTINGS: &str = "Settings";
    pub(crate) const DEVICES: &str = "Where to compute";
    pub(crate) const PRINTED: &str = "What is printed";
}

use clap::Args;
use std::path::Path;
use tapeloop::error::Result;
use tapeloop_cli::config::{RawConfig, are_features};
use tapeloop_files::path_of;

/// All options that override a run's config file.
#[derive(Debug, Default, Args)]
pub(crate) struct Overrides {
    #[command(flatten)]
    features: FeatureArgs,
    #[command(flatten)]
    set: SetArgs,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Debug, Default, Args)]
pub(super) struct FeatureArgs {
    /// Features, presets and columns to compute, separated by commas; `tapeloop features` lists
    /// them. [default: all]
    #[arg(long, value_name = "NAMES", help_heading = heading::SETTINGS)]
    features: Vec<String>,
}

#[derive(Debug, Default, Args)]
pub(super) struct ReadingArgs {
    /// Models to read from each file: first, all, joined (the parts of an assembly).
    /// [default: first]
    #[arg(long, value_name = "WHICH", help_heading = heading::INPUTS)]
    models: Option<String>,
    /// Reject PDB files that may be cut short: without END, or with fewer atoms than MASTER says.
    #[arg(long, help_heading = heading::INPUTS)]
    strict: bool,
    /// Format of all inputs, whatever their names and contents: auto, pdb, mmcif, bcif.
    /// [default: auto]
    #[arg(long, value_name = "FORMAT", help_heading = heading::INPUTS)]
    input_format: Option<String>,
}

#[derive(Debug, Default, Args)]
pub(super) struct EngineArgs {
    /// How batches are launched: graph, stream, resident. [default: graph]
    #[arg(long, value_name = "NAME", help_heading = heading::DEVICES)]
    mode: Option<String>,
    /// Number of batches in flight. [default: the device decides]
    #[arg(long, value_name = "N", help_heading = heading::DEVICES, allow_negative_numbers = true, value_parser = whole_number)]
    slots: Option<i64>,
}

#[derive(Clone, Debug, Default, Args)]
pub(super) struct DeviceArgs {
    /// Number of threads. [default: one for each core]
    #[arg(long, value_name = "N", help_heading = heading::DEVICES, allow_negative_numbers = true, value_parser = whole_number)]
    threads: Option<i64>,
    /// What to compute on: auto, cuda, cpu. [default: auto]
    #[arg(long, value_name = "NAME", help_heading = heading::DEVICES)]
    backend: Option<String>,
    /// GPU among the visible ones: a number, a UUID or its beginning, most_free.
    /// [default: 0]
    #[arg(long, value_name = "WHICH", help_heading = heading::DEVICES)]
    device: Option<String>,
    /// GPUs to compute on together: numbers and UUIDs, separated by commas, or all.
    #[arg(long, value_name = "LIST", help_heading = heading::DEVICES, value_delimiter = ',')]
    devices: Vec<String>,
}

#[derive(Clone, Debug, Default, Args)]
pub(super) struct SetArgs {
    /// Set any key of the config: --set batch.residues=8192; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", help_heading = heading::SETTINGS)]
    set: Vec<String>,
    /// Let the config file name code to run: worker, nvrtc, kernel_cache, references.
    #[arg(long, help_heading = heading::SETTINGS)]
    trust_config: bool,
}

/// A whole number; the config refuses one out of range.
fn whole_number(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "it is no whole number")
}

impl Overrides {
    /// Moves from `inputs` what continues the list of `--features` after a space: names of features of
    /// which there is no file.
    pub(super) fn take_feature_names(&mut self, inputs: &mut Vec<String>) {
        if self.features.features.is_empty() {
            return;
        }
        let is_name = |input: &String| are_features(input) && !path_of(input).exists();
        let (names, others) = std::mem::take(inputs).into_iter().partition(is_name);
        self.features.features.extend::<Vec<String>>(names);
        *inputs = others;
    }

    /// The keys of the file with these options over them.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if the file cannot be read or is not
    /// valid TOML, or an assignment has no `=`.
    pub(crate) fn raw_config(self, file: Option<&Path>) -> Result<RawConfig> {
        let mut raw = self.set.raw_config(file)?;
        self.features.set(&mut raw);
        self.reading.set(&mut raw);
        self.engine.set(&mut raw);
        self.device.set(&mut raw);
        Ok(raw)
    }
}

impl FeatureArgs {
    pub(super) fn set(self, raw: &mut RawConfig) {
        raw.set_list("--features", "features", self.features);
    }
}

impl ReadingArgs {
    pub(super) fn set(self, raw: &mut RawConfig) {
        raw.set("--models", "models", self.models);
        raw.set("--strict", "strict", self.strict.then_some(true));
        raw.set("--input-format", "input_format", self.input_format);
    }
}

impl EngineArgs {
    pub(super) fn set(self, raw: &mut RawConfig) {
        raw.set("--mode", "mode", self.mode);
        raw.set("--slots", "slots", self.slots);
    }
}

impl DeviceArgs {
    pub(super) fn set(self, raw: &mut RawConfig) {
        raw.set("--backend", "backend", self.backend);
        raw.set("--device", "device", self.device);
        raw.set_list("--devices", "devices", self.devices);
        raw.set("--threads", "threads", self.threads);
    }
}

impl SetArgs {
    /// The keys of the file with the assignments over them.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if the file cannot be read or is not
    /// valid TOML, or an assignment has no `=`.
    pub(super) fn raw_config(self, file: Option<&Path>) -> Result<RawConfig> {
        let mut raw = RawConfig::read(file)?;
        raw.trusts_file = self.trust_config;
        for assignment in &self.set {
            raw.set_assignment(assignment)?;
        }
        Ok(raw)
    }
}
