//! The config of `tapeloop bench`: what is measured, and how often.

use super::features::resolve_features;
use super::form::Form;
use super::written::Written;
use super::{resolve_backend, resolve_code_path, resolve_device, resolve_input, to_toml};
use crate::backend::{Choice, CudaOptions};
use crate::bench::measure::Settings;
use crate::bench::point::{Axis, Front, Point, Space, Work};
use crate::cli::vouched;
use crate::error::Result;
use crate::features::FeatureConfig;
use crate::pipeline::SLOTS_MAX;
use crate::replay::{Mode, Scope, Transfer};
use crate::structure::ReadOptions;
use serde_json::{Value as Json, json};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// A benchmark, resolved.
#[derive(Clone, Debug)]
pub(in crate::cli) struct BenchConfig {
    /// The folder of the history and the report.
    pub(in crate::cli) output: PathBuf,
    pub(in crate::cli) works: Vec<Work>,
    pub(in crate::cli) axes: Vec<Axis>,
    /// Structures for the workload of features; without any it is left out.
    pub(in crate::cli) input: Vec<String>,
    pub(in crate::cli) reading: ReadOptions,
    pub(in crate::cli) features: FeatureConfig,
    /// Structures are taken up to so many atoms.
    pub(in crate::cli) atoms_max: u64,
    pub(in crate::cli) backend: Choice,
    pub(in crate::cli) cuda: CudaOptions,
    pub(in crate::cli) threads: usize,
    pub(in crate::cli) settings: Settings,
    /// A file of commands.
    pub(in crate::cli) references: Option<PathBuf>,
    values: Values,
    sizes: Vec<Sizes>,
    notes: Vec<(&'static str, Json)>,
}

/// Values that settings take beside the base's, where they are written.
#[derive(Clone, Debug)]
struct Values {
    modes: Option<Vec<Mode>>,
    scopes: Option<Vec<Scope>>,
    transfers: Option<Vec<Transfer>>,
    fronts: Option<Vec<Front>>,
    slots: Option<Vec<usize>>,
    buckets: Option<Vec<usize>>,
}

/// Sizes of a workload, where they are written.
#[derive(Clone, Debug)]
struct Sizes {
    work: Work,
    slots: Option<i64>,
    batch: Option<i64>,
    batches: Option<Vec<u32>>,
    kernels: Option<i64>,
    kernel_counts: Option<Vec<usize>>,
}

/// The keys of a workload's sizes; features have no kernels to count.
struct Keys {
    work: Work,
    slots: &'static str,
    batch: &'static str,
    batches: &'static str,
    kernels: Option<[&'static str; 2]>,
}

const KEYS: [Keys; 4] = [
    Keys {
        work: Work::Launch,
        slots: "launch.slots",
        batch: "launch.elements",
        batches: "launch.vary_elements",
        kernels: Some(["launch.kernels", "launch.vary_kernels"]),
    },
    Keys {
        work: Work::Copy,
        slots: "copy.slots",
        batch: "copy.elements",
        batches: "copy.vary_elements",
        kernels: Some(["copy.kernels", "copy.vary_kernels"]),
    },
    Keys {
        work: Work::Compute,
        slots: "compute.slots",
        batch: "compute.elements",
        batches: "compute.vary_elements",
        kernels: Some(["compute.rounds", "compute.vary_rounds"]),
    },
    Keys {
        work: Work::Features,
        slots: "structures.slots",
        batch: "structures.residues",
        batches: "structures.vary_residues",
        kernels: None,
    },
];

const SLOTS: RangeInclusive<i64> = 1..=SLOTS_MAX as i64;
const ELEMENTS: RangeInclusive<i64> = 1..=1 << 28;
const KERNELS: RangeInclusive<i64> = 1..=100_000;

impl BenchConfig {
    /// Resolves what was written.
    ///
    /// # Errors
    /// Everything that is wrong, each with its place and a near miss.
    pub(in crate::cli) fn resolve(written: Written) -> Result<Self> {
        let mut form = Form::new(written);
        let output = form.text("output");
        let output = output.map_or_else(|| "out/bench".into(), |(path, _)| PathBuf::from(path));
        form.note("output", json!(output));
        let works = named(&mut form, "workloads", &Work::ALL.map(|it| (it.name(), it)));
        let axes = named(&mut form, "axes", &Axis::ALL.map(|it| (it.name(), it)));
        let input = resolve_input(&mut form);
        let atoms_max = form.integer("atoms_max", 2_000_000, 1..=1 << 40) as u64;
        let features = resolve_features(&mut form);
        let backend = resolve_backend(&mut form);
        let cuda = CudaOptions {
            device: resolve_device(&mut form),
            nvrtc: resolve_code_path(&mut form, "nvrtc")
                .as_deref()
                .map(vouched::nvrtc),
            kernel_cache: resolve_code_path(&mut form, "kernel_cache")
                .as_deref()
                .map(vouched::kernel_cache),
            ..CudaOptions::default()
        };
        let threads = form.integer("threads", 0, 0..=4096) as usize;
        let settings = Settings {
            rounds: form.integer("rounds", 5, 1..=1_000) as usize,
            repetition: Duration::from_millis(
                form.integer("repetition_ms", 20, 1..=3_600_000) as u64
            ),
            loads: loads(&mut form, "loads", &[0.8]),
            base_loads: loads(&mut form, "base_loads", &[0.2, 0.5, 0.8, 0.9, 0.95]),
        };
        let references = resolve_code_path(&mut form, "references");
        let modes: Vec<_> = Mode::ALL.iter().map(|it| (it.name(), *it)).collect();
        let scopes: Vec<_> = Scope::ALL.iter().map(|it| (it.name(), *it)).collect();
        let transfers: Vec<_> = Transfer::ALL.iter().map(|it| (it.name(), *it)).collect();
        let fronts = Front::ALL.map(|it| (it.name(), it));
        let values = Values {
            modes: written_names(&mut form, "vary.modes", &modes),
            scopes: written_names(&mut form, "vary.scopes", &scopes),
            transfers: written_names(&mut form, "vary.transfers", &transfers),
            fronts: written_names(&mut form, "vary.fronts", &fronts),
            slots: integers(&mut form, "vary.slots", &SLOTS),
            buckets: integers(&mut form, "vary.buckets", &(1..=16)),
        };
        let sizes = KEYS.iter().map(|keys| Sizes::resolve(&mut form, keys));
        Ok(BenchConfig {
            output,
            works,
            axes,
            input,
            reading: ReadOptions::default(),
            features,
            atoms_max,
            backend,
            cuda,
            threads,
            settings,
            references,
            values,
            sizes: sizes.collect(),
            notes: form.finish()?,
        })
    }

    /// The settings as the lines of a config file.
    pub(in crate::cli) fn to_toml(&self) -> String {
        to_toml(&self.notes)
    }

    /// The points of a workload: one setting at a time, or every combination.
    pub(in crate::cli) fn points(&self, work: Work, on_device: bool, full: bool) -> Vec<Point> {
        let space = self.space(work, on_device);
        match full {
            true => space.product(&self.axes),
            false => space.one_at_a_time(&self.axes),
        }
    }

    fn space(&self, work: Work, on_device: bool) -> Space {
        fn put<T: Clone>(to: &mut T, from: &Option<T>) {
            if let Some(value) = from {
                *to = value.clone();
            }
        }
        let mut space = Space::of(work, on_device);
        let Values {
            modes,
            scopes,
            transfers,
            fronts,
            slots,
            buckets,
        } = &self.values;
        put(&mut space.modes, modes);
        put(&mut space.scopes, scopes);
        put(&mut space.transfers, transfers);
        put(&mut space.fronts, fronts);
        put(&mut space.slots, slots);
        put(&mut space.buckets, buckets);
        if let Some(sizes) = self.sizes.iter().find(|sizes| sizes.work == work) {
            put(
                &mut space.base.slots,
                &sizes.slots.map(|slots| slots as usize),
            );
            put(
                &mut space.base.batch,
                &sizes.batch.map(|batch| batch as u32),
            );
            put(&mut space.batches, &sizes.batches);
            put(
                &mut space.base.kernels,
                &sizes.kernels.map(|count| count as usize),
            );
            put(&mut space.kernels, &sizes.kernel_counts);
        }
        space
    }
}

impl Sizes {
    fn resolve(form: &mut Form, keys: &Keys) -> Self {
        let [kernels, kernel_counts] = match keys.kernels {
            Some([base, others]) => [Some(base), Some(others)],
            None => [None, None],
        };
        Sizes {
            work: keys.work,
            slots: form.optional_integer(keys.slots, SLOTS),
            batch: form.optional_integer(keys.batch, ELEMENTS),
            batches: integers(form, keys.batches, &ELEMENTS),
            kernels: kernels.and_then(|key| form.optional_integer(key, KERNELS)),
            kernel_counts: kernel_counts.and_then(|key| integers(form, key, &KERNELS)),
        }
    }
}

/// Some of several names; all of them where none is written.
fn named<T: Copy>(form: &mut Form, key: &'static str, known: &[(&'static str, T)]) -> Vec<T> {
    let names: Vec<&'static str> = known.iter().map(|(name, _)| *name).collect();
    let written = form.names(key, &names);
    let is_wanted = |name: &str| match &written {
        Some(written) => written.iter().any(|text| text == name),
        None => true,
    };
    let wanted: Vec<_> = known.iter().filter(|(name, _)| is_wanted(name)).collect();
    form.note(key, wanted.iter().map(|(name, _)| *name).collect());
    wanted.iter().map(|(_, value)| *value).collect()
}

/// Some of several names, where they are written.
fn written_names<T: Copy>(
    form: &mut Form,
    key: &'static str,
    known: &[(&'static str, T)],
) -> Option<Vec<T>> {
    if form.entry(key).is_some() {
        return Some(named(form, key, known));
    }
    form.note(key, Json::Null);
    None
}

/// A list of integers, where it is written.
fn integers<T: TryFrom<i64>>(
    form: &mut Form,
    key: &'static str,
    range: &RangeInclusive<i64>,
) -> Option<Vec<T>> {
    let range = *range.start() as f64..=*range.end() as f64;
    let written = form.written_reals(key, &range);
    form.note(
        key,
        json!(written.as_ref().map(|reals| {
            let whole = reals.iter().map(|real| *real as i64);
            whole.collect::<Vec<i64>>()
        })),
    );
    let written = written?;
    if written.iter().any(|real| real.fract() != 0.0) {
        form.problem(key, "wants integers");
    }
    let integers = written.iter().map(|real| T::try_from(*real as i64).ok());
    integers.collect()
}

fn loads(form: &mut Form, key: &'static str, default: &[f64]) -> Vec<f64> {
    let written = form.written_reals(key, &(0.01..=10.0));
    let loads = written.unwrap_or_else(|| default.to_vec());
    form.note(key, json!(loads));
    loads
}
