//! The config of `tapeloop bench`.

use super::devices::resolve_devices;
use super::features::resolve_features;
use super::raw::RawConfig;
use super::resolver::Resolver;
use super::toml_text::to_toml;
use super::{BACKENDS, named, resolve_code_path, resolve_input, resolve_threads};
use crate::trusted_code;
use serde_json::{Value as Json, json};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use tapeloop::backend::{Choice, CudaOptions, DeviceSet};
use tapeloop::error::Result;
use tapeloop::features::{FeatureConfig, FeatureName};
use tapeloop::pipeline::SLOTS_MAX;
use tapeloop::replay::{Mode, Transfer};
use tapeloop::structure::ReadOptions;
use tapeloop_bench::measure::Settings;
use tapeloop_bench::point::{Axis, Front, Point, PointSpace, Work};

/// The resolved config of a benchmark.
#[derive(Clone, Debug)]
pub struct BenchConfig {
    /// The folder of the history and the report.
    pub output: PathBuf,
    pub works: Vec<Work>,
    /// Whether whole runs from files to tables are measured too; without `input` they are not.
    pub files: bool,
    pub axes: Vec<Axis>,
    /// Structures for the workload `features`; without any the workload is skipped.
    pub input: Vec<String>,
    pub reading: ReadOptions,
    pub features: FeatureConfig,
    /// Reading stops after this many atoms.
    pub atoms_max: u64,
    pub backend: Choice,
    pub devices: DeviceSet,
    /// The options of each device.
    pub cuda: CudaOptions,
    pub threads: usize,
    pub settings: Settings,
    /// A file of commands that start reference programs.
    pub references: Option<PathBuf>,
    varied: VariedValues,
    sizes: Vec<Sizes>,
    resolved: Vec<(&'static str, Json)>,
}

/// The values that each axis takes in turn; `None` leaves the default values.
#[derive(Clone, Debug)]
struct VariedValues {
    modes: Option<Vec<Mode>>,
    transfers: Option<Vec<Transfer>>,
    fronts: Option<Vec<Front>>,
    slots: Option<Vec<usize>>,
    buckets: Option<Vec<usize>>,
}

/// The sizes of one workload; `None` leaves the default.
#[derive(Clone, Debug)]
struct Sizes {
    work: Work,
    slots: Option<i64>,
    batch: Option<i64>,
    batches: Option<Vec<u32>>,
    kernels: Option<i64>,
    kernel_counts: Option<Vec<usize>>,
}

/// The keys of one workload's sizes. The workload `features` has no kernel count.
struct SizeKeys {
    work: Work,
    slots: &'static str,
    batch: &'static str,
    batches: &'static str,
    kernels: Option<[&'static str; 2]>,
}

const SIZE_KEYS: [SizeKeys; 4] = [
    SizeKeys {
        work: Work::Launch,
        slots: "launch.slots",
        batch: "launch.elements",
        batches: "launch.vary_elements",
        kernels: Some(["launch.kernels", "launch.vary_kernels"]),
    },
    SizeKeys {
        work: Work::Copy,
        slots: "copy.slots",
        batch: "copy.elements",
        batches: "copy.vary_elements",
        kernels: Some(["copy.kernels", "copy.vary_kernels"]),
    },
    SizeKeys {
        work: Work::Compute,
        slots: "compute.slots",
        batch: "compute.elements",
        batches: "compute.vary_elements",
        kernels: Some(["compute.rounds", "compute.vary_rounds"]),
    },
    SizeKeys {
        work: Work::Features,
        slots: "structures.slots",
        batch: "structures.residues",
        batches: "structures.vary_residues",
        kernels: None,
    },
];

/// The workload of whole runs. It has no [`Point`]s: it runs with one thread and with all, and on a GPU if there
/// is one.
const FILES: &str = "files";

// docs/config/benchmarks.md explains the keys and has their defaults. Ranges leave out what no
// machine measures: 2^28 elements are 1 GiB a buffer.
const SLOTS: RangeInclusive<i64> = 1..=SLOTS_MAX as i64;
const ELEMENTS: RangeInclusive<i64> = 1..=1 << 28;
const KERNELS: RangeInclusive<i64> = 1..=100_000;

impl BenchConfig {
    /// Resolves the keys of a benchmark.
    ///
    /// # Errors
    /// The errors of [`Config::resolve`](super::Config::resolve).
    pub fn resolve(raw: RawConfig) -> Result<Self> {
        let mut keys = Resolver::new(raw);
        let output = keys.text("output");
        let output = output.map_or_else(|| "out/bench".into(), |(path, _)| PathBuf::from(path));
        keys.record("output", json!(output));
        let works = Work::ALL.map(|work| (work.name(), Some(work)));
        let works = subset(
            &mut keys,
            "workloads",
            &[&works[..], &[(FILES, None)]].concat(),
        );
        let axes = subset(&mut keys, "axes", &named(&Axis::ALL, Axis::name));
        let input = resolve_input(&mut keys);
        let atoms_max = keys.integer("atoms_max", 2_000_000, 1..=1 << 40) as u64;
        let features = resolve_features(&mut keys);
        let backend = keys.choice("backend", &BACKENDS);
        let devices = resolve_devices(&mut keys);
        let cuda = CudaOptions {
            nvrtc: resolve_code_path(&mut keys, "nvrtc")
                .as_deref()
                .map(trusted_code::nvrtc),
            kernel_cache: resolve_code_path(&mut keys, "kernel_cache")
                .as_deref()
                .map(trusted_code::kernel_cache),
            ..CudaOptions::default()
        };
        let threads = resolve_threads(&mut keys);
        // docs/config/benchmarks.md says what each is for. A repetition has an hour at most.
        let settings = Settings {
            rounds: keys.integer("rounds", 5, 1..=1_000) as usize,
            repetition: Duration::from_millis(
                keys.integer("repetition_ms", 20, 1..=3_600_000) as u64
            ),
            loads: loads(&mut keys, "loads", &[0.8]),
            base_loads: loads(&mut keys, "base_loads", &[0.2, 0.5, 0.8, 0.9, 0.95]),
        };
        let references = resolve_code_path(&mut keys, "references");
        let varied = VariedValues {
            modes: subset_if_set(&mut keys, "vary.modes", &named(Mode::ALL, Mode::name)),
            transfers: subset_if_set(
                &mut keys,
                "vary.transfers",
                &named(Transfer::ALL, Transfer::name),
            ),
            fronts: subset_if_set(&mut keys, "vary.fronts", &named(&Front::ALL, Front::name)),
            slots: integers(&mut keys, "vary.slots", &SLOTS),
            buckets: integers(&mut keys, "vary.buckets", &(1..=16)),
        };
        let sizes = SIZE_KEYS
            .iter()
            .map(|size_keys| Sizes::resolve(&mut keys, size_keys));
        let sizes = sizes.collect();
        Ok(BenchConfig {
            output,
            files: works.contains(&None),
            works: works.into_iter().flatten().collect(),
            axes,
            input,
            reading: ReadOptions::default(),
            features,
            atoms_max,
            backend,
            devices,
            cuda,
            threads,
            settings,
            references,
            varied,
            sizes,
            resolved: keys.finish()?,
        })
    }

    /// The settings as the lines of a config file.
    pub fn to_toml(&self) -> String {
        to_toml(&self.resolved)
    }

    /// The settings that a run has too, as `key=value`: the features with their settings, and the
    /// device with its libraries.
    pub fn run_settings(&self) -> Vec<String> {
        const OF_DEVICE: [&str; 4] = ["device", "devices", "nvrtc", "kernel_cache"];
        let features = FeatureName::ALL.iter();
        let of_features: Vec<&str> = features
            .flat_map(|&name| self.features.settings(name))
            .map(|(key, _)| key)
            .chain(["features", "fusion", "reals"])
            .collect();
        let is_shared = |key: &str| of_features.contains(&key) || OF_DEVICE.contains(&key);
        let shared = self.resolved.iter();
        let shared = shared.filter(|(key, value)| is_shared(key) && !value.is_null());
        shared
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }

    /// The points of a workload: all combinations if `full`, else one setting varied at a time.
    pub fn points(&self, work: Work, on_device: bool, full: bool) -> Vec<Point> {
        let space = self.space(work, on_device);
        if full {
            space.product(&self.axes)
        } else {
            space.one_at_a_time(&self.axes)
        }
    }

    /// The points of a workload: the defaults, with what the config varies and sizes in their
    /// place.
    fn space(&self, work: Work, on_device: bool) -> PointSpace {
        fn replace<T: Clone>(value: &mut T, by: &Option<T>) {
            if let Some(by) = by {
                value.clone_from(by);
            }
        }
        let mut space = PointSpace::for_work(work, on_device);
        replace(&mut space.modes, &self.varied.modes);
        replace(&mut space.transfers, &self.varied.transfers);
        replace(&mut space.fronts, &self.varied.fronts);
        replace(&mut space.slots, &self.varied.slots);
        replace(&mut space.buckets, &self.varied.buckets);
        if let Some(sizes) = self.sizes.iter().find(|sizes| sizes.work == work) {
            replace(
                &mut space.base.slots,
                &sizes.slots.map(|slots| slots as usize),
            );
            replace(
                &mut space.base.batch,
                &sizes.batch.map(|residues| residues as u32),
            );
            replace(&mut space.batches, &sizes.batches);
            replace(
                &mut space.base.kernels,
                &sizes.kernels.map(|kernels| kernels as usize),
            );
            replace(&mut space.kernels, &sizes.kernel_counts);
        }
        space
    }
}

impl Sizes {
    /// Reads the sizes of a workload.
    fn resolve(keys: &mut Resolver, size_keys: &SizeKeys) -> Self {
        let [kernels, kernel_counts] = size_keys.kernels.map_or([None; 2], |keys| keys.map(Some));
        Sizes {
            work: size_keys.work,
            slots: keys.optional_integer(size_keys.slots, SLOTS),
            batch: keys.optional_integer(size_keys.batch, ELEMENTS),
            batches: integers(keys, size_keys.batches, &ELEMENTS),
            kernels: kernels.and_then(|key| keys.optional_integer(key, KERNELS)),
            kernel_counts: kernel_counts.and_then(|key| integers(keys, key, &KERNELS)),
        }
    }
}

/// The named values that the config lists; all of them if the key is not set.
fn subset<T: Copy>(keys: &mut Resolver, key: &'static str, known: &[(&'static str, T)]) -> Vec<T> {
    let names: Vec<&'static str> = known.iter().map(|(name, _)| *name).collect();
    let set = keys.names(key, &names);
    let is_chosen = |name: &str| {
        set.as_ref()
            .is_none_or(|set| set.iter().any(|chosen| chosen == name))
    };
    let chosen: Vec<_> = known.iter().filter(|(name, _)| is_chosen(name)).collect();
    keys.record(key, chosen.iter().map(|(name, _)| *name).collect());
    chosen.iter().map(|(_, value)| *value).collect()
}

/// The named values that the config lists, if the key is set.
fn subset_if_set<T: Copy>(
    keys: &mut Resolver,
    key: &'static str,
    known: &[(&'static str, T)],
) -> Option<Vec<T>> {
    if keys.entry(key).is_some() {
        return Some(subset(keys, key, known));
    }
    keys.record(key, Json::Null);
    None
}

/// A list of integers of `range`, which lies within `T`, if the key is set.
fn integers<T: TryFrom<i64>>(
    keys: &mut Resolver,
    key: &'static str,
    range: &RangeInclusive<i64>,
) -> Option<Vec<T>> {
    let integers = keys.integers_if_set(key, range);
    keys.record(key, json!(integers));
    let integers = integers?.into_iter();
    integers.map(|integer| T::try_from(integer).ok()).collect()
}

/// Arrival rates as shares of the largest that was measured; above 1 the queue grows.
fn loads(keys: &mut Resolver, key: &'static str, default: &[f64]) -> Vec<f64> {
    let set = keys.reals(key, &(0.01..=10.0));
    let loads = set.unwrap_or_else(|| default.to_vec());
    keys.record(key, json!(loads));
    loads
}
