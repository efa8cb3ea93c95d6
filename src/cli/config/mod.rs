//! The config: as written in a file and on the command line ([`Written`]), and
//! as resolved, every key with a value of its type ([`Config`]).
//!
//! A [`Form`] turns the one into the other. It is asked for every
//! key once, so there is one place that knows the keys: [`Config::resolve`].
//! `docs/CONFIG.md` explains them.

mod bench;
mod features;
mod form;
mod limits;
mod replay;
mod suggest;
mod written;

use super::inputs::STDIN;
use super::names::{path_of, text_of};
use crate::backend::{Choice, DeviceChoice};
use crate::error::{Error, Result};
use crate::features::FeatureConfig;
use crate::pipeline::SLOTS_MAX;
use crate::replay::Policy;
use crate::structure::{Assembly, BFactorKind, Models, ReadOptions};
use features::resolve_features;
use form::Form;
use limits::{resolve_limits, resolve_reading_bytes};
use replay::resolve_policy;
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) use bench::BenchConfig;
pub(super) use features::setting_json;
pub(super) use suggest::nearest;
pub(super) use written::Written;
use written::{Value, from_folder};

/// Which models, by name.
const MODELS: [(&str, Models); 2] = [("first", Models::First), ("all", Models::All)];

/// Which chains, by name.
pub(super) const ASSEMBLIES: [(&str, Assembly); 2] =
    [("deposited", Assembly::Deposited), ("1", Assembly::First)];

/// What B factors are, by name: as the file says, or as the user knows.
const B_FACTORS: [(&str, Option<BFactorKind>); 3] = [
    ("auto", None),
    ("b", Some(BFactorKind::Temperature)),
    ("plddt", Some(BFactorKind::Plddt)),
];

/// How the program waits for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// For the oldest batch, in the driver.
    Block,
    /// Looking at all batches in flight, over and over.
    Spin,
    /// As `Block`, giving the core away.
    Sleep,
}

/// A run, resolved.
#[derive(Clone, Debug)]
pub(super) struct Config {
    /// What is read: files, directories, globs, list files (`@list.txt`).
    pub(super) input: Vec<String>,
    /// The folder that holds the results.
    pub(super) output: Option<PathBuf>,
    pub(super) reading: ReadOptions,
    /// Bytes of files and text that the readers of all threads hold at once.
    pub(super) reading_bytes_max: u64,
    /// Tables with annotations of residues, and folders of such.
    pub(super) annotations: Vec<PathBuf>,
    pub(super) features: FeatureConfig,
    pub(super) backend: Choice,
    pub(super) device: DeviceChoice,
    pub(super) policy: Policy,
    pub(super) slots: usize,
    /// Threads to read, compute and write with, 0 for all cores.
    pub(super) threads: usize,
    pub(super) batch: BatchSettings,
    pub(super) memory_bytes_max: Option<u64>,
    pub(super) wait: Wait,
    /// Whether the device is in a process of its own.
    pub(super) supervise: bool,
    /// The program of that, if it is not this one.
    pub(super) worker: Option<PathBuf>,
    pub(super) restarts_max: u64,
    pub(super) tables: TableSettings,
    pub(super) nvrtc: Option<PathBuf>,
    pub(super) kernel_cache: Option<PathBuf>,
    /// The folder for the timeline, if one is asked for.
    pub(super) timeline: Option<PathBuf>,
    /// All of the above by key, in the order of the documentation.
    pub(super) settings: Vec<(&'static str, Json)>,
}

/// How much goes to the device at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchSettings {
    /// A batch closes before it exceeds this.
    pub(super) residues: u32,
    /// A larger structure is rejected.
    pub(super) residues_max: u32,
}

/// How the tables are cut and compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSettings {
    /// A part holds the results of this many inputs, at least 1, counted before any is
    /// rejected.
    pub inputs_per_part: u64,
    /// Rows of a row group, at least 1.
    pub rows_per_group: usize,
    /// Of zstd, 1 to 22.
    pub compression_level: i32,
}

impl Default for TableSettings {
    fn default() -> Self {
        TableSettings {
            inputs_per_part: 1 << 16,
            rows_per_group: 1 << 17,
            compression_level: 3,
        }
    }
}

impl Config {
    /// Resolves what was written.
    ///
    /// # Errors
    /// Everything that is wrong, each with its place and a near miss.
    pub(super) fn resolve(written: Written) -> Result<Self> {
        let mut form = Form::new(written);
        let input = resolve_input(&mut form);
        let output = form.text("output").map(|(path, _)| PathBuf::from(path));
        form.note("output", json!(output));
        let reading = ReadOptions {
            models: form.choice("models", &MODELS),
            nucleic: form.flag("nucleic", true),
            assembly: form.choice("assembly", &ASSEMBLIES),
            b_factor_kind: form.choice("b_factor", &B_FACTORS),
            strict: form.flag("strict", false),
            limits: resolve_limits(&mut form),
        };
        let reading_bytes_max = resolve_reading_bytes(&mut form);
        let annotations = resolve_annotations(&mut form);
        let features = resolve_features(&mut form);
        let backend = resolve_backend(&mut form);
        let device = resolve_device(&mut form);
        let nvrtc = resolve_code_path(&mut form, "nvrtc");
        let kernel_cache = resolve_code_path(&mut form, "kernel_cache");
        let mut policy = resolve_policy(&mut form);
        let supervise = form.flag("supervise", false);
        let worker = resolve_code_path(&mut form, "worker");
        let restarts_max = form.integer("restarts_max", 1000, 0..=i64::MAX) as u64;
        let slots = form.integer("slots", 3, 1..=SLOTS_MAX as i64) as usize;
        let threads = form.integer("threads", 0, 0..=4096) as usize;
        let waits = [
            ("block", Wait::Block),
            ("spin", Wait::Spin),
            ("sleep", Wait::Sleep),
        ];
        let wait = form.choice("wait", &waits);
        let batch = resolve_batch(&mut form);
        policy.deadline = form
            .optional_integer("batch.deadline_ms", 1..=86_400_000)
            .map(|ms| Duration::from_millis(ms as u64));
        let memory_bytes_max = form
            .optional_integer("memory_bytes_max", 1..=i64::MAX)
            .map(|bytes| bytes as u64);
        let timeline = form.text("timeline").map(|(path, _)| PathBuf::from(path));
        form.note("timeline", json!(timeline));
        let tables = resolve_tables(&mut form);
        Ok(Config {
            input,
            output,
            reading,
            reading_bytes_max,
            annotations,
            features,
            backend,
            device,
            policy,
            slots,
            threads,
            batch,
            memory_bytes_max,
            wait,
            supervise,
            worker,
            restarts_max,
            tables,
            nvrtc,
            kernel_cache,
            timeline,
            settings: form.finish()?,
        })
    }

    /// Where the results go.
    ///
    /// # Errors
    /// The config does not say.
    pub(super) fn output(&self) -> Result<&Path> {
        self.output.as_deref().ok_or_else(|| {
            Error::config("`output` is not set").fix("write output = \"folder\", or give --output")
        })
    }

    /// The settings as the lines of a config file.
    pub(super) fn to_toml(&self) -> String {
        to_toml(&self.settings)
    }
}

/// Settings as the lines of a config file.
fn to_toml(settings: &[(&'static str, Json)]) -> String {
    let line = |(key, value): &(&str, Json)| match value {
        Json::Null => format!("# {key} is not set\n"),
        // JSON's strings, numbers and lists are TOML's too.
        value => format!("{key} = {value}\n"),
    };
    settings.iter().map(line).collect()
}

fn resolve_backend(form: &mut Form) -> Choice {
    let backends = [
        ("auto", Choice::Auto),
        ("cuda", Choice::Cuda),
        ("cpu", Choice::Cpu),
    ];
    form.choice("backend", &backends)
}

fn resolve_input(form: &mut Form) -> Vec<String> {
    let written = form.texts("input");
    let input: Vec<String> = written.map_or(Vec::new(), |(items, origin)| {
        let place = |item: String| match item.strip_prefix('@') {
            Some(STDIN) => item,
            Some(list) => format!("@{}", text_of(&tidy(from_folder(&origin, path_of(list))))),
            None => text_of(&tidy(from_folder(&origin, path_of(&item)))),
        };
        items.into_iter().map(place).collect()
    });
    form.note("input", json!(input));
    input
}

/// Drops `folder/..` from a path, which the place of the config file puts there
/// and which every `source` would carry. A symbolic link stays: what is above
/// its target is another folder.
fn tidy(path: PathBuf) -> PathBuf {
    use std::path::Component::{Normal, ParentDir};
    let mut tidied = PathBuf::new();
    for component in path.components() {
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let undoes = component == ParentDir
            && matches!(tidied.components().next_back(), Some(Normal(_)))
            && is_folder(&tidied);
        if undoes {
            tidied.pop();
        } else {
            tidied.push(component);
        }
    }
    if tidied.as_os_str().is_empty() {
        tidied.push(".");
    }
    tidied
}

/// A number, or what names a device in words.
fn resolve_device(form: &mut Form) -> DeviceChoice {
    let read = match form.entry("device").map(|entry| entry.value) {
        Some(Value::Text(text)) => match text.parse::<DeviceChoice>() {
            Ok(choice) => Some(choice),
            Err(error) => {
                let fix = error.fix_text().unwrap_or_default();
                form.problem("device", format!("{}; {fix}", error.message()));
                None
            }
        },
        Some(Value::Integer(_)) | None => form
            .written_integer("device", 0..=1023)
            .map(|ordinal| DeviceChoice::Ordinal(ordinal as usize)),
        Some(other) => {
            form.wrong_type("device", "an integer or a string", &other);
            None
        }
    };
    let device = read.unwrap_or_default();
    form.note(
        "device",
        match &device {
            DeviceChoice::Ordinal(ordinal) => json!(ordinal),
            named => json!(named.to_string()),
        },
    );
    device
}

/// An absolute path to code that the program runs: the system would look for a bare
/// name in folders of its own.
fn resolve_code_path(form: &mut Form, key: &'static str) -> Option<PathBuf> {
    let written = form.code_path(key);
    let path = written.map(|(path, origin)| {
        let path = tidy(from_folder(&origin, &path));
        std::path::absolute(&path).unwrap_or(path)
    });
    form.note(key, json!(path.as_deref().map(text_of)));
    path
}

fn resolve_annotations(form: &mut Form) -> Vec<PathBuf> {
    let written = form.texts("annotations");
    let paths: Vec<PathBuf> = written.map_or(Vec::new(), |(items, origin)| {
        let place = |item: &String| tidy(from_folder(&origin, item));
        items.iter().map(place).collect()
    });
    let texts: Vec<String> = paths.iter().map(|path| text_of(path)).collect();
    form.note("annotations", json!(texts));
    paths
}

fn resolve_tables(form: &mut Form) -> TableSettings {
    let TableSettings {
        inputs_per_part,
        rows_per_group,
        compression_level,
    } = TableSettings::default();
    let mut count = |key, usual, max| form.integer(key, usual, 1..=max);
    TableSettings {
        inputs_per_part: count("tables.inputs_per_part", inputs_per_part as i64, 1 << 32) as u64,
        rows_per_group: count("tables.rows_per_group", rows_per_group as i64, 1 << 24) as usize,
        compression_level: count("tables.compression_level", compression_level.into(), 22) as i32,
    }
}

fn resolve_batch(form: &mut Form) -> BatchSettings {
    // 2^20 residues of a hundred atoms each still count in 32 bits.
    let residues = form.integer("batch.residues", 16_384, 1..=1 << 20) as u32;
    let largest = i64::from(residues.max(131_072));
    let residues_max = form.integer("batch.residues_max", largest, 1..=1 << 20) as u32;
    if residues > residues_max {
        let text = format!("{residues} is more than batch.residues_max = {residues_max}");
        form.problem("batch.residues", text);
    }
    BatchSettings {
        residues,
        residues_max,
    }
}

#[cfg(test)]
mod tests;
