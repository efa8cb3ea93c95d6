//! The config: the keys of a file and of the command line ([`RawConfig`]), resolved into a
//! value of its type for every key ([`Config`], [`BenchConfig`]).
//!
//! A `Resolver` reads the values. `Config::resolve` and `BenchConfig::resolve` ask for every
//! key by name, which makes those names the known keys. `docs/CONFIG.md` explains them.

mod annotations;
mod bench;
mod column_hint;
mod components;
mod condition;
mod coordinates;
mod devices;
mod dots;
mod features;
mod kernels;
mod radii;
mod raw;
mod reading;
mod reduction;
mod removed;
mod resolver;
mod setting_values;
mod tables;
mod text_file;
mod toml_text;

use annotations::{resolve_annotations, resolve_unmatched};
use coordinates::resolve_coordinates;
use devices::resolve_devices;
use dots::resolve_dots;
use features::resolve_features;
use kernels::resolve_kernels;
use reading::{check_ligands, check_waters, resolve_reading};
use resolver::{Resolver, named};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use tables::{
    resolve_reductions, resolve_tables, resolve_wanted, resolve_where, resolve_where_atoms,
};
use tapeloop::backend::{Choice, DeviceSet, Residency};
use tapeloop::error::Result;
use tapeloop::features::{FeatureConfig, FeatureName};
use tapeloop::pipeline::{EngineConfig, SLOTS_MAX};
use tapeloop::replay::{Build, Fallback, MAPPED_BYTES_MAX, Mode, Policy, Transfer, Verify};
use tapeloop::structure::ReadOptions;
use tapeloop_annotations::{UnmatchedTables, WantedColumns};
use tapeloop_engine::internal::check_loop_in_worker;
use tapeloop_error::internal::LaterFields;
use tapeloop_files::{path_of, text_of};
use tapeloop_inputs::{FrameRange, STDIN, Shard, member_pattern};
use toml_text::to_toml;

pub use bench::BenchConfig;
pub use column_hint::{column_hint, table_column_hint};
pub use components::NO_COMPONENTS;
pub use condition::{ATOM_KEYS, ATOM_LIGAND_KEY, FRAME_KEYS, RESIDUE_KEYS, ValueType};
pub use condition::{Condition, ConditionNode, Test, Value as ConditionValue};
pub use coordinates::CoordinateAtoms;
pub use features::{
    are_features, column_names, feature_of_column, feature_of_column_in, setting_json,
};
pub use raw::{RawConfig, names_in};
pub use reading::ASSEMBLIES;
pub use reduction::{Reduction, Statistic};
pub use removed::is_removed;
pub use resolver::range_text;
pub use setting_values::SettingValues;
pub use tables::{
    OptionalColumns, OutputTable, TableCompression, TableFormat, TableSet, TableSettings,
};

/// The most threads that read, compute and encode: more than a machine has cores; starting them
/// takes time with the square of their number (docs/LIMITS.md).
pub const THREADS_MAX: usize = 4096;

/// The most microseconds that a loop on the device may stay (docs/config/running.md).
const RESIDENT_US_MAX: i64 = Residency::MAX.as_micros() as i64;

const BACKENDS: [(&str, Choice); 3] = [
    ("auto", Choice::Auto),
    ("cuda", Choice::Cuda),
    ("cpu", Choice::Cpu),
];

const WAITS: [(&str, WaitSetting); 3] = [
    ("block", WaitSetting::Block),
    ("spin", WaitSetting::Spin),
    ("sleep", WaitSetting::Sleep),
];

/// The most residues of a structure or a batch: their atoms, a hundred each, fit 32 bits.
pub const STRUCTURE_RESIDUES_MAX: u32 = 1 << 20;

/// Defaults of `batch.residues` and `batch.residues_max` (`crates/cli/DECISIONS.md`).
pub const BATCH_RESIDUES: u32 = 16_384;
const BATCH_RESIDUES_MAX: u32 = 32_768;

/// Default of `output`.
const OUTPUT: &str = "tapeloop-out";

/// Default of `limits.reading_bytes_max`: four of the largest files that
/// `limits.text_bytes_max` admits.
const READING_BYTES_MAX: i64 = 4 << 30;

/// Default of `limits.annotation_bytes_max`: about 300 million rows.
const ANNOTATION_BYTES_MAX: i64 = 16 << 30;

/// How the program waits for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitSetting {
    /// The driver waits for the oldest batch.
    Block,
    /// The engine polls all batches in flight.
    Spin,
    /// As `Block`, with a driver that yields the core.
    Sleep,
}

/// The resolved config of a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Files, directories, globs and list files (`@list.txt`).
    pub input: Vec<String>,
    /// Members of archives whose names match are read; `None` reads those with the ending of a
    /// structure file.
    pub members: Option<glob::Pattern>,
    /// The structure whose atoms are those of trajectories.
    pub topology: Option<PathBuf>,
    /// The frames of each trajectory that are read; `None` for all.
    pub frames: Option<FrameRange>,
    /// The part of the inputs that is read.
    pub shard: Shard,
    /// The folder that holds the results; `-` for standard output.
    pub output: PathBuf,
    pub reading: ReadOptions,
    /// Bytes of files and text that the readers of all threads hold at once.
    pub reading_bytes_max: u64,
    /// Tables of annotations, and folders of such tables.
    pub annotations: Vec<PathBuf>,
    /// Their columns that the tables get.
    pub wanted: WantedColumns,
    /// What follows if no row of a table of annotations matches.
    pub unmatched: UnmatchedTables,
    /// Bytes of the rows of all annotations.
    pub annotation_bytes_max: u64,
    pub features: FeatureConfig,
    /// Statistics of residues' columns for the tables of chains and structures.
    pub reductions: Vec<Reduction>,
    pub backend: Choice,
    /// Each has its own slots.
    pub devices: DeviceSet,
    pub policy: Policy,
    /// Slots of each device; without them the device decides.
    pub slots: Option<usize>,
    /// Number of threads; 0 for one for each core.
    pub threads: usize,
    pub batch: BatchSettings,
    /// The most memory of the engine on all devices, with pinned memory; `None` for any.
    pub memory_bytes_max: Option<u64>,
    pub wait: WaitSetting,
    /// Whether a worker process holds the device.
    pub supervise: bool,
    /// The worker's program, if it is not this one.
    pub worker: Option<PathBuf>,
    /// Of all devices together.
    pub restarts_max: u64,
    pub tables: TableSettings,
    /// The residues that have rows, that rows of pairs and atoms are of, and that reductions see; `None` for all.
    pub condition: Option<Condition>,
    /// The rows of atoms that are written; `None` for those of all residues and ligands.
    pub atom_condition: Option<Condition>,
    pub nvrtc: Option<PathBuf>,
    pub kernel_cache: Option<PathBuf>,
    /// The folder of the timeline.
    pub timeline: Option<PathBuf>,
    /// The resolved value of every key, in the order of `docs/CONFIG.md`.
    pub settings: Vec<(&'static str, Json)>,
    /// The values that each key takes.
    pub values: BTreeMap<String, SettingValues>,
}

/// The size of a batch, in residues.
#[derive(Clone, Copy, Debug)]
pub struct BatchSettings {
    /// A batch takes structures up to this size.
    pub residues: u32,
    /// Structures above this size run alone.
    pub residues_max: u32,
    /// Structures above this size are rejected.
    pub structure_residues_max: u32,
}

impl Config {
    /// Resolves the keys of a run. docs/config lists their defaults and ranges.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) lists everything that is wrong, each with
    /// its file and line or its option.
    pub fn resolve(raw: RawConfig) -> Result<Self> {
        let mut keys = Resolver::new(raw);
        let input = resolve_input(&mut keys);
        let members = resolve_parsed(&mut keys, "members", member_pattern);
        let topology = resolve_topology(&mut keys);
        let frames = resolve_parsed(&mut keys, "frames", str::parse);
        let shard = resolve_parsed(&mut keys, "shard", str::parse);
        let output = resolve_output(&mut keys);
        let mut reading = resolve_reading(&mut keys, topology.is_some());
        let reading_bytes_max =
            keys.integer("limits.reading_bytes_max", READING_BYTES_MAX, 1..=i64::MAX) as u64;
        let annotation_bytes_max = keys.integer(
            "limits.annotation_bytes_max",
            ANNOTATION_BYTES_MAX,
            1..=i64::MAX,
        ) as u64;
        let annotations = resolve_annotations(&mut keys);
        let unmatched =
            resolve_unmatched(&mut keys, shard.is_some_and(|part| part != Shard::WHOLE));
        let mut features = resolve_features(&mut keys);
        features.own_kernels = resolve_kernels(&mut keys);
        reading.ligands =
            features.ligands.keep && features.features.contains(&FeatureName::Ligands);
        reading.agents = reading.ligands && features.ligands.keep_agents;
        reading.atom_details =
            features.atoms.keep && features.features.contains(&FeatureName::Atoms);
        reading.chemistry =
            features.interactions.keep && features.features.contains(&FeatureName::Interactions);
        reading.components = features.interactions.components;
        if features.interactions.waters {
            reading.water_reach = features.interactions.water_bridge.milli_angstrom();
        }
        reading.radii = features.sasa.radii;
        check_ligands(&mut keys, topology.is_some(), &reading);
        check_waters(&mut keys, topology.is_some(), &reading);
        let reductions = resolve_reductions(&mut keys, &features);
        let coordinates = resolve_coordinates(&mut keys);
        let sequences = ["seqres", "unobserved"].map(|key| keys.flag(key, false));
        reading.sequences = sequences.contains(&true);
        let backend = keys.choice("backend", &BACKENDS);
        let devices = resolve_devices(&mut keys);
        let nvrtc = resolve_code_path(&mut keys, "nvrtc");
        let kernel_cache = resolve_code_path(&mut keys, "kernel_cache");
        let mut policy = resolve_policy(&mut keys);
        let supervise = keys.flag("supervise", false);
        let worker = resolve_code_path(&mut keys, "worker");
        if supervise
            && backend == Choice::Cuda
            && policy.requires_loops()
            && let Err(error) = check_loop_in_worker("cuda")
        {
            keys.error("mode", &error);
        }
        let default = EngineConfig::new([1]).restarts_max as i64;
        let restarts_max = keys.integer("restarts_max", default, 0..=i64::MAX) as u64;
        let slots = keys
            .optional_integer("slots", 1..=SLOTS_MAX as i64)
            .map(|slots| slots as usize);
        let threads = resolve_threads(&mut keys);
        let wait = keys.choice("wait", &WAITS);
        let batch = resolve_batch(&mut keys);
        // A day at most.
        policy.deadline = keys
            .optional_integer("batch.deadline_ms", 1..=86_400_000)
            .map(|ms| Duration::from_millis(ms as u64));
        let memory_bytes_max = keys
            .optional_integer("memory_bytes_max", 1..=i64::MAX)
            .map(|bytes| bytes as u64);
        let timeline = resolve_path(&mut keys, "timeline");
        let tables = resolve_tables(&mut keys, coordinates, sequences, reading.ligands);
        let wanted = resolve_wanted(&mut keys);
        let condition = resolve_where(&mut keys, &features, &tables, &reductions);
        let atom_condition = resolve_where_atoms(&mut keys, &features, &tables);
        Ok(Config {
            input,
            members,
            topology,
            frames,
            shard: shard.unwrap_or(Shard::WHOLE),
            output,
            reading,
            reading_bytes_max,
            annotations,
            unmatched,
            wanted,
            annotation_bytes_max,
            features,
            reductions,
            backend,
            devices,
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
            condition,
            atom_condition,
            nvrtc,
            kernel_cache,
            timeline,
            values: keys.values_taken(),
            settings: keys.finish()?,
        })
    }

    /// The settings as the lines of a config file.
    pub fn to_toml(&self) -> String {
        to_toml(&self.settings)
    }

    /// The settings that are not the default, as the lines of a config file.
    pub fn changed_to_toml(&self) -> String {
        let defaults = Config::resolve(RawConfig::default());
        let defaults = defaults.expect("the defaults are valid").settings;
        let changed = self.settings.iter().filter(|set| !defaults.contains(set));
        to_toml(&changed.cloned().collect::<Vec<_>>())
    }
}

/// The inputs. Paths in a config are relative to its folder; `-` and `@-` are standard input.
fn resolve_input(keys: &mut Resolver) -> Vec<String> {
    keys.takes("input", SettingValues::Path.or_list());
    let set = keys.texts("input");
    let input = set.map_or(Vec::new(), |(items, origin)| {
        let text = |path: PathBuf| text_of(&resolve_dots(origin.join(path)));
        let resolve = |item: String| match item.strip_prefix('@') {
            Some(STDIN) => item,
            None if item == STDIN => item,
            Some(list) => format!("@{}", text(path_of(list))),
            None => text(path_of(&item)),
        };
        items.into_iter().map(resolve).collect()
    });
    keys.record("input", json!(input));
    input
}

/// A text that `parse` turns into a value.
fn resolve_parsed<T: ToString>(
    keys: &mut Resolver,
    key: &'static str,
    parse: impl FnOnce(&str) -> Result<T>,
) -> Option<T> {
    let text = keys.text(key).map(|(text, _)| text);
    let parsed = text.and_then(|text| match parse(&text) {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            keys.error(key, &error);
            None
        }
    });
    keys.record(key, json!(parsed.as_ref().map(T::to_string)));
    parsed
}

fn resolve_output(keys: &mut Resolver) -> PathBuf {
    keys.takes("output", SettingValues::Path);
    let set = keys.text("output").map(|(path, _)| path);
    let path = set.unwrap_or_else(|| OUTPUT.to_owned());
    keys.record("output", json!(path));
    PathBuf::from(path)
}

/// A path that starts from the current folder, whichever file sets it.
fn resolve_path(keys: &mut Resolver, key: &'static str) -> Option<PathBuf> {
    keys.takes(key, SettingValues::Path);
    let path = keys.text(key).map(|(path, _)| PathBuf::from(path));
    keys.record(key, json!(path));
    path
}

/// An absolute path to code that the program runs: the system would look a bare name up in its
/// search path.
fn resolve_code_path(keys: &mut Resolver, key: &'static str) -> Option<PathBuf> {
    let path = keys.code_path(key).map(|(path, origin)| {
        let path = resolve_dots(origin.join(path));
        std::path::absolute(&path).unwrap_or(path)
    });
    keys.record(key, json!(path.as_deref().map(text_of)));
    path
}

/// A path that starts from the config file's folder.
fn resolve_topology(keys: &mut Resolver) -> Option<PathBuf> {
    keys.takes("topology", SettingValues::Path);
    let set = keys.text("topology");
    let path = set.map(|(path, origin)| resolve_dots(origin.join(path)));
    keys.record("topology", json!(path.as_deref().map(text_of)));
    path
}

fn resolve_threads(keys: &mut Resolver) -> usize {
    keys.integer("threads", 0, 0..=THREADS_MAX as i64) as usize
}

/// How batches are replayed.
fn resolve_policy(keys: &mut Resolver) -> Policy {
    let mode = keys.choice("mode", &named(Mode::ALL, Mode::name));
    let mut micros = |key, default: Duration| {
        let default = default.as_micros() as i64;
        Duration::from_micros(keys.integer(key, default, 1..=RESIDENT_US_MAX) as u64)
    };
    let default = Residency::default();
    let residency = Residency {
        idle: micros("resident_idle_us", default.idle),
        busy: micros("resident_busy_us", default.busy),
        later: LaterFields::NONE,
    };
    Policy {
        mode,
        residency,
        // Independent kernels run at the same time in an explicit graph, and features have many.
        build: Build::Explicit,
        transfer: keys.choice("transfer", &named(Transfer::ALL, Transfer::name)),
        mapped_bytes_max: keys.integer("mapped_bytes_max", MAPPED_BYTES_MAX as i64, 0..=i64::MAX)
            as usize,
        fallback: keys.choice("fallback", &named(Fallback::ALL, Fallback::name)),
        verify: resolve_verify(keys),
        ..Policy::default()
    }
}

/// `"off"`, `"first"`, or N, to compare every N-th batch.
fn resolve_verify(keys: &mut Resolver) -> Verify {
    let words = SettingValues::Choice(vec!["first", "off"]);
    keys.takes(
        "verify",
        SettingValues::OneOf(vec![words, SettingValues::Integer]),
    );
    let entry = keys.entry("verify");
    if entry.is_some_and(|entry| entry.value.is_integer()) {
        let number = keys.integer("verify", 1, 1..=i64::from(u32::MAX)) as u32;
        return NonZeroU32::new(number).map_or(Verify::First, Verify::Every);
    }
    let set: Option<String> = keys.value("verify", "\"first\", \"off\" or a number of batches");
    let (name, verify) = match set.as_deref() {
        None | Some("first") => ("first", Verify::First),
        Some("off") => ("off", Verify::Off),
        Some(other) => {
            let text = format!("{other:?} is not \"first\", \"off\" or a number of batches");
            keys.problem("verify", text);
            ("first", Verify::First)
        }
    };
    keys.record("verify", json!(name));
    verify
}

/// The sizes of batches. Each has a default that goes with those that are set.
fn resolve_batch(keys: &mut Resolver) -> BatchSettings {
    const STRUCTURE_MAX: &str = "limits.structure_residues_max";
    let range = 1..=STRUCTURE_RESIDUES_MAX.into();
    let structure_max = keys.integer(STRUCTURE_MAX, *range.end(), range.clone());
    let usual = structure_max.min(BATCH_RESIDUES.into());
    let residues = keys.integer("batch.residues", usual, range.clone());
    let largest = residues.max(BATCH_RESIDUES_MAX.into()).min(structure_max);
    let residues_max = keys.integer("batch.residues_max", largest, range);
    for (key, value, bound_key, bound) in [
        (
            "batch.residues",
            residues,
            "batch.residues_max",
            residues_max,
        ),
        (
            "batch.residues_max",
            residues_max,
            STRUCTURE_MAX,
            structure_max,
        ),
    ] {
        if value > bound {
            keys.problem(key, format!("{value} is more than {bound_key} = {bound}"));
        }
    }
    BatchSettings {
        residues: residues as u32,
        residues_max: residues_max as u32,
        structure_residues_max: structure_max as u32,
    }
}

#[cfg(test)]
mod tests;
