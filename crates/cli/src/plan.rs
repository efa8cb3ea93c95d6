//! The plan of a run: its threads, its backend and the settings of its engine.

mod engine_settings;

pub use engine_settings::{engine_config, residues_room};

use super::config::{Config, OutputTable, Reduction, THREADS_MAX, TableSet, setting_json};
use super::own_kernels;
use super::selection::select;
use super::tables::{ColumnSources, find_repeated_name};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tapeloop::backend::{Backend, Compilation, DeviceInfo, Selected};
#[cfg(doc)]
use tapeloop::error::ErrorKind;
use tapeloop::error::{Context, Error, Result};
use tapeloop::features::{
    B_CA, FeatureConfig, FeatureName, Features, KERNELS_HASH, OwnKernel, PLDDT, Setting, TableName,
};
use tapeloop::pipeline::{Engine, EngineConfig, MemoryPlan};
use tapeloop::structure::{ReadBudget, Reader};
use tapeloop_annotations::WantedColumns;
use tapeloop_annotations::{AnnotationColumn, Annotations, Level};
use tapeloop_bench::internal::format;
use tapeloop_engine::internal::{check_loop_in_worker, device_names};
use tapeloop_error::internal::{stack_bytes, thread_error};
use tapeloop_files::{open_stream, shown};
use tapeloop_inputs::packed::reader_settings;
use tapeloop_inputs::{ArchiveOptions, Archives, FrameRange, PackedSet, Sources, Trajectories};

/// The memory of members that were read from archives and wait for a thread that parses them: some
/// hundred compressed models.
const MEMBERS_BYTES_MAX: u64 = 64 << 20;

/// From how much memory of the engine on, and from how many times the residues of a batch that each slot has room
/// for, a run warns that this memory is mostly unused. With the default settings it is twice.
const UNFILLED_BYTES_MIN: u64 = 1 << 30;
const ROOM_PER_BATCH_MAX: u32 = 8;

/// A config with everything that a run needs to start.
pub struct Plan {
    pub config: Config,
    /// Reads files and encodes tables, and computes on the CPU backend.
    pub pool: Arc<ThreadPool>,
    /// A backend for each device, one at least, all of one kind.
    pub backends: Vec<Arc<dyn Backend>>,
    /// Why these backends were chosen.
    pub reason: String,
    pub engine: EngineConfig,
    pub trajectories: Trajectories,
    /// The digest of the topology's file, if there is one.
    topology_hash: Option<String>,
    /// `None` if there are none.
    pub annotations: Option<Arc<Annotations>>,
    /// What identifies the annotations of the packed sets, if kernels read those.
    packed_annotations: Option<String>,
}

impl Plan {
    /// Plans a run: reads the annotations, starts the threads, and opens and logs the backend.
    ///
    /// # Errors
    /// There is no input, or one leads to no file or to a packed set of other settings; settings do not fit each
    /// other; a table of annotations or the topology cannot be read, or the backend cannot be used.
    pub fn new(config: Config) -> Result<Self> {
        if config.input.is_empty() {
            return Err(Error::config("no input is given")
                .fix("name files or folders: tapeloop run structures/ -o out"));
        }
        Plan::of_any_input(config)
    }

    /// [`Plan::new`] for runs that may name their inputs later.
    ///
    /// # Errors
    /// The errors of [`Plan::new`], except that a config without input is none.
    pub fn of_any_input(mut config: Config) -> Result<Self> {
        let (trajectories, topology_hash) = trajectories_of(&config)?;
        let reader = reader_settings(&config.settings);
        let reads_packed = config.annotations.is_empty() && !channels_of(&config).is_empty();
        let packed = tapeloop_inputs::check(&config.input, &trajectories, &reader, reads_packed)?;
        // Wrong settings of features are reported before a device is opened.
        Features::new(config.features.clone())?;
        let annotations = load_annotations(&config, &packed, &config.wanted)?.map(Arc::new);
        leave_out_empty_tables(&mut config, annotations.as_deref())?;
        check_column_names(&config, annotations.as_deref())?;
        let packed_annotations = reads_packed.then(|| provenance_of(&packed)).flatten();
        let pool = thread_pool(config.threads)?;
        let selected = select(&config, &pool)?;
        own_kernels::check_device(&config, &selected[0])?;
        if config.supervise && config.policy.requires_loops() {
            check_loop_in_worker(selected[0].backend.device().backend).within(|| "`mode`")?;
        }
        for Selected {
            backend, reason, ..
        } in &selected
        {
            let device = backend.device();
            tracing::info!(
                backend = device.backend,
                device = device.name,
                reason,
                "chose the backend"
            );
        }
        let reason = selected[0].reason.clone();
        let backends: Vec<_> = selected
            .into_iter()
            .map(|selected| selected.backend)
            .collect();
        let device = backends[0].device();
        if device.backend == "cpu" && config.policy.deadline.is_some() && !config.supervise {
            tracing::warn!(
                "batch.deadline_ms does not interrupt the CPU in this process; \
                 set supervise = true, which ends a worker process instead"
            );
        }
        let engine = engine_config(&config, device, pool.current_num_threads());
        let plan = Plan {
            config,
            pool,
            backends,
            reason,
            engine,
            trajectories,
            topology_hash,
            annotations,
            packed_annotations,
        };
        plan.warn_of_unfilled_memory()?;
        Ok(plan)
    }

    /// Warns if slots take a lot of memory of which batches fill a small part, as they close at `batch.residues`.
    fn warn_of_unfilled_memory(&self) -> Result<()> {
        let (room, closes_at) = (residues_room(&self.engine), self.config.batch.residues);
        if room / ROOM_PER_BATCH_MAX < closes_at {
            return Ok(());
        }
        let memory = self.memory()?;
        if memory.bytes() >= UNFILLED_BYTES_MIN {
            tracing::warn!(
                "{} batches in flight take {}: each has room for {room} residues (batch.residues_max), and closes at \
                 {closes_at} (batch.residues); fewer slots or a lower batch.residues_max take less",
                memory.slots,
                memory_text(&memory)
            );
        }
        Ok(())
    }

    /// Checks inputs that the config does not name, as [`Plan::new`] checks those that it names. The annotations
    /// of packed sets among them are not looked at.
    ///
    /// # Errors
    /// One leads to no file, or to a packed set of other settings.
    pub fn check_inputs(&self, items: &[String]) -> Result<()> {
        let reader = reader_settings(&self.config.settings);
        tapeloop_inputs::check(items, &self.trajectories, &reader, false).map(drop)
    }

    /// Lists the inputs of `items`, which are the config's or given later.
    pub fn sources(&self, items: Vec<String>) -> Sources {
        let archives = Archives::Read(archive_options(&self.config));
        let sources = Sources::new(items, archives, self.config.shard);
        sources.with_trajectories(self.trajectories.clone())
    }

    /// The columns of annotations that the tables have.
    pub fn annotation_columns(&self) -> &[AnnotationColumn] {
        columns_of(self.annotations.as_deref())
    }

    /// The memory that the engine will allocate.
    ///
    /// # Errors
    /// The engine's settings are wrong.
    pub fn memory(&self) -> Result<MemoryPlan> {
        let workload = Features::new(self.config.features.clone())?;
        let (device, devices) = (self.first_device(), self.backends.len());
        Engine::memory_plan(&workload, device, devices, &self.engine)
    }

    /// The memory that all readers share: `limits.reading_bytes_max`, and no more than the engine
    /// leaves of `memory_bytes_max`.
    pub fn read_budget(&self, engine: &MemoryPlan) -> Arc<ReadBudget> {
        let left = self.config.memory_bytes_max.unwrap_or(u64::MAX);
        let left = left.saturating_sub(engine.bytes());
        Arc::new(ReadBudget::new(self.config.reading_bytes_max.min(left)))
    }

    /// The tables of features whose columns the tables in a folder need.
    pub fn tables_read(&self) -> Vec<TableName> {
        let Config {
            tables,
            reductions,
            condition,
            ..
        } = &self.config;
        let mut read: Vec<_> = (tables.written.iter())
            .filter_map(OutputTable::features)
            .collect();
        if !reductions.is_empty() || condition.is_some() {
            read.push(TableName::Residues);
        }
        read
    }

    /// Allocates the memory and starts the engine, which reads the columns of `tables`.
    ///
    /// # Errors
    /// A kernel cannot be loaded, or there is not enough memory.
    pub fn start(&self, tables: &[TableName]) -> Result<Engine<Features>> {
        let workload = Features::new(self.config.features.clone())?.reading(tables);
        Engine::new(
            workload,
            &self.backends,
            Arc::clone(&self.pool),
            &self.engine,
        )
    }

    /// What the devices have compiled.
    pub fn compilation(&self) -> Compilation {
        self.backends
            .iter()
            .map(|backend| backend.compilation())
            .sum()
    }

    /// Everything that decides the values of a run besides its input, for the tables' metadata.
    /// The same provenance and the same input give the same tables.
    pub fn provenance(&self) -> Vec<(&'static str, String)> {
        let reader = reader_settings(&self.config.settings);
        let backend = self.first_device().backend;
        let mut all = vec![
            ("tapeloop.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("tapeloop.backend", backend.to_owned()),
            ("tapeloop.kernels_sha256", KERNELS_HASH.to_owned()),
            ("tapeloop.reader", json!(reader).to_string()),
            ("tapeloop.features", canonical(&self.config.features)),
            (
                "tapeloop.reals",
                self.config.features.reals.name().to_owned(),
            ),
        ];
        if let Some(kernels) = own_kernels::provenance(&self.config.features) {
            all.push(("tapeloop.own_kernels", kernels));
        }
        if !self.config.reductions.is_empty() {
            let names = self.config.reductions.iter().map(Reduction::name);
            all.push((
                "tapeloop.reduce",
                json!(names.collect::<Vec<_>>()).to_string(),
            ));
        }
        if let Some(condition) = &self.config.condition {
            all.push(("tapeloop.where", condition.text.clone()));
        }
        if let Some(condition) = &self.config.atom_condition {
            all.push(("tapeloop.where_atoms", condition.text.clone()));
        }
        if let Some(hash) = &self.topology_hash {
            all.push(("tapeloop.topology_sha256", hash.clone()));
        }
        let annotations = self
            .annotations
            .as_ref()
            .map(|annotations| annotations.provenance());
        let annotations = annotations.or_else(|| self.packed_annotations.clone());
        all.extend(annotations.map(|annotations| ("tapeloop.annotations", annotations)));
        all
    }

    /// The number of features that have something to compute with their settings.
    pub fn features_computed(&self) -> u64 {
        let features = &self.config.features;
        let has_columns = |name: &&FeatureName| !features.columns_of(**name).is_empty();
        features.features.iter().filter(has_columns).count() as u64
    }

    /// The first device. The others are of the same kind.
    pub fn first_device(&self) -> &DeviceInfo {
        self.backends[0].device()
    }

    /// The names of the devices, each once: `NVIDIA H200`, or `2 x NVIDIA H200` if there are two.
    pub fn device_names(&self) -> String {
        device_names(self.backends.iter().map(|backend| backend.device()))
    }

    /// The devices, as a run names them: `the CPU (AMD EPYC, 16 threads)`.
    pub fn device(&self) -> String {
        let (devices, names) = (self.backends.len(), self.device_names());
        let threads = format::counted(self.pool.current_num_threads() as u64, "thread");
        match (self.first_device().backend, devices) {
            ("cpu", _) => format!("the CPU ({names}, {threads})"),
            (_, 1) => format!("the GPU ({names}), with {threads}"),
            _ => format!("{devices} GPUs ({names}), with {threads}"),
        }
    }
}

/// The memory of the engine: `832 MB`, or `832 MB on the GPU and 120 MB of pinned host memory`.
pub fn memory_text(memory: &MemoryPlan) -> String {
    let size = |bytes: u64| format::size(bytes as f64);
    let device = memory.device_bytes().saturating_add(memory.driver_bytes);
    let (device, host) = (size(device), size(memory.host_bytes()));
    match (memory.shared, memory.devices) {
        (true, _) => device,
        (_, 1) => format!("{device} on the GPU and {host} of pinned host memory"),
        (_, devices) => format!("{device} on {devices} GPUs and {host} of pinned host memory"),
    }
}

/// Reads the topology, if there is one, and computes the digest of its file.
fn trajectories_of(config: &Config) -> Result<(Trajectories, Option<String>)> {
    let Some(path) = &config.topology else {
        return Ok((Trajectories::Unknown, None));
    };
    let mut reader = Reader::new(config.reading);
    let place = || format!("topology {}", shown(path));
    let stream = open_stream(path).within(place)?;
    let bytes = stream.bytes().within(place)?;
    // A pipe can be read only once.
    let topology = reader
        .read_topology_stream(&path.to_string_lossy(), stream, bytes)
        .within(place)?;
    let digest = sha256_hex(reader.last_bytes());
    let range = config.frames.unwrap_or(FrameRange::ALL);
    let trajectories = Trajectories::Read(Arc::new(topology), range);
    Ok((trajectories, Some(digest)))
}

/// The SHA-256 digest in hexadecimal.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How archives are read. Their members wait in memory until they are parsed.
pub fn archive_options(config: &Config) -> ArchiveOptions {
    let bytes_max = config.reading_bytes_max.min(MEMBERS_BYTES_MAX);
    ArchiveOptions {
        members: config.members.clone(),
        limits: config.reading.limits,
        budget: Arc::new(ReadBudget::new(bytes_max)),
        has_topology: config.topology.is_some(),
        reader: reader_settings(&config.settings),
    }
}

/// Whether the feature smooth is computed. The keys of one that is not may be set.
fn smooths(config: &Config) -> bool {
    config.features.features.contains(&FeatureName::Smooth)
}

/// The annotations that kernels read, each once: those that `smooth.channels` names, if smooth is computed, and
/// parameters of kernels of the user's own. `b_ca` and `plddt` are none: structure files have them.
pub fn channels_of(config: &Config) -> Vec<String> {
    let channels = config.features.smooth.channels.iter();
    let smoothed = channels.filter(|_| smooths(config)).map(String::as_str);
    let kernel_channels = config.features.own_kernels.iter();
    let kernel_channels = kernel_channels.flat_map(OwnKernel::channels);
    let mut names: Vec<String> = Vec::new();
    for name in smoothed
        .chain(kernel_channels)
        .filter(|name| ![B_CA, PLDDT].contains(name))
    {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// What reads one of [`channels_of`], for messages.
fn reader_of(config: &Config, name: &str) -> &'static str {
    let mut smoothed = config.features.smooth.channels.iter();
    if smooths(config) && smoothed.any(|channel| channel == name) {
        "`smooth.channels`"
    } else {
        "a parameter of a kernel"
    }
}

/// What identifies the annotations of packed sets: those of the one set, or a list.
fn provenance_of(packed: &[PackedSet]) -> Option<String> {
    let all = packed
        .iter()
        .filter_map(|(_, set)| set.annotations.as_ref());
    let all: BTreeSet<&String> = all.collect();
    match all.len() {
        0 | 1 => all.first().map(|one| (*one).clone()),
        _ => Some(json!(all).to_string()),
    }
}

/// Reads the tables of `annotations`: the columns that kernels read ([`channels_of`]), and those that are
/// `wanted` in the tables. `None` if there are no tables, and kernels read no annotations or those of the sets
/// `packed`; structures of files next to the sets have nulls then (docs/PACKED.md). If there are tables,
/// their annotations replace those of the sets.
///
/// # Errors
/// `annotations` is not set, and `wanted` names columns, or kernels read one that no set or not each has; or it
/// is set, and no column of it is read or wanted. The errors of [`Annotations::load`].
pub fn load_annotations(
    config: &Config,
    packed: &[PackedSet],
    wanted: &WantedColumns,
) -> Result<Option<Annotations>> {
    let channels = channels_of(config);
    match (channels.first(), config.annotations.is_empty()) {
        (_, true) if matches!(wanted, WantedColumns::Named(names) if !names.is_empty()) => {
            let text = "`tables.annotations` names columns, and `annotations` is not set";
            return Err(
                Error::config(text).fix("write annotations = \"file.csv\", or leave it out")
            );
        }
        (None, true) => return Ok(None),
        (Some(name), true) => {
            // Each set needs them: a structure without would have nulls, and no message.
            let lacking = packed.iter().find_map(|(path, set)| {
                let set_channels = set.channels();
                let lacking = channels.iter().find(|name| !set_channels.contains(name))?;
                Some((path, lacking))
            });
            return match lacking {
                None if !packed.is_empty() => Ok(None),
                None => Err(Error::config(format!(
                    "{} names {name:?}, and `annotations` is not set", reader_of(config, name)
                ))
                .fix("write annotations = \"file.tsv\", or leave b_ca and plddt, which files have")),
                Some((path, name)) => Err(Error::config(format!(
                    "{} names {name:?}, which the packed set does not have, and `annotations` is not set",
                    reader_of(config, name)
                ))
                .fix(
                    "write annotations = \"file.tsv\", or pack the structures again with annotations",
                )
                .within(shown(path))),
            };
        }
        (None, false) if *wanted == WantedColumns::NONE => {
            return Err(Error::config(
                "`annotations` is set, and neither `smooth.channels`, a parameter of a kernel nor `tables.annotations` names its columns",
            )
            .fix("write smooth.channels = [\"column\"], or leave tables.annotations out of a run"));
        }
        (_, false) => (),
    }
    let bytes_max = config.annotation_bytes_max;
    Annotations::load(&config.annotations, channels, wanted, bytes_max).map(Some)
}

/// The columns of annotations that go to the tables.
fn columns_of(annotations: Option<&Annotations>) -> &[AnnotationColumn] {
    annotations.map_or(&[], Annotations::columns)
}

/// Leaves the tables that cannot have rows out of `config.tables.written` if it has all tables,
/// which is its default.
///
/// # Errors
/// [`ErrorKind::Config`] if `tables.written` has some tables, and one of them cannot have rows.
fn leave_out_empty_tables(config: &mut Config, annotations: Option<&Annotations>) -> Result<()> {
    let features = &config.features;
    let has_columns = |table: TableName| !features.columns(table).is_empty();
    let has_rows = |table: OutputTable| match table {
        OutputTable::Features(name) => TableSet::USUAL.contains(table) || has_columns(name),
        OutputTable::WaterBridges => {
            has_columns(TableName::Interactions) && features.interactions.waters
        }
        OutputTable::Variants => annotations.is_some_and(Annotations::have_variants),
    };
    let written = config.tables.written;
    let without_rows = written.iter().find(|&table| !has_rows(table));
    // By default all tables are written, which means those that can have rows. A table that the
    // config names has to have them.
    if let Some(table) = without_rows.filter(|_| written != TableSet::ALL) {
        let (name, condition) = (table.name(), table.condition().unwrap_or_default());
        let row_noun = name.replace('_', " ");
        let text = format!(
            "`tables.written` names {name}, a table without rows: there are {row_noun} if {condition}"
        );
        return Err(Error::config(text).fix("set what it is made from, or leave it out"));
    }
    config.tables.written = TableSet::new(|table| written.contains(table) && has_rows(table));
    Ok(())
}

/// Checks that no annotation, and no column of a kernel of the user's, has the name of another
/// column of its table.
///
/// # Errors
/// [`ErrorKind::Config`] if two columns of a table have one name.
fn check_column_names(config: &Config, annotations: Option<&Annotations>) -> Result<()> {
    let feature_columns = |table| config.features.columns(table);
    let sources = ColumnSources {
        features: &feature_columns,
        reductions: &config.reductions,
        annotations: columns_of(annotations),
    };
    let Some((output_table, name)) = find_repeated_name(sources, config.tables.optional) else {
        return Ok(());
    };
    let table = output_table.name();
    if let Some(kernel) = own_kernels::writer_of(&config.features, &name) {
        let text = format!(
            "`kernel`: {kernel} has the column {name:?}, which the table of {table} has already"
        );
        return Err(Error::config(text).fix("rename the parameter, or the annotation"));
    }
    let text =
        format!("annotations have a column {name:?}, which the table of {table} has already");
    let error = Error::config(text).fix(
        "rename the column, or choose others: tables.annotations = [\"column\"], or [] for none",
    );
    let level = output_table.level().unwrap_or(Level::Residues);
    let file = annotations.and_then(|annotations| annotations.file_with(level, &name));
    Err(match file {
        Some(file) => error.within(shown(file)),
        None => error,
    })
}

/// The chosen features and those that they need, with their settings, as JSON in a fixed order.
fn canonical(config: &FeatureConfig) -> String {
    let mut computed = config.features.clone();
    let mut next = 0;
    while let Some(&feature) = computed.get(next) {
        for needed in config.needs(feature) {
            if !computed.contains(&needed) {
                computed.push(needed);
            }
        }
        next += 1;
    }
    let settings = |feature: &FeatureName| -> Json {
        let settings = config.settings(*feature).into_iter();
        settings
            .map(|(key, setting)| {
                let name = key.split_once('.').map_or(key, |(_, name)| name);
                (name.to_owned(), provenance_json(&setting))
            })
            .collect()
    };
    let features: BTreeMap<&str, Json> = computed
        .iter()
        .map(|feature| (feature.name(), settings(feature)))
        .collect();
    json!(features).to_string()
}

/// A setting's value as JSON, of the content of a file that it names, wherever that is. A dictionary keeps no text.
fn provenance_json(setting: &Setting) -> Json {
    match setting {
        Setting::Radii(radii) => match radii.file_text() {
            Some(text) => json!({ "sha256": sha256_hex(text) }),
            None => json!(radii.name()),
        },
        Setting::Components(Some(components)) => {
            json!({ "fingerprint": format!("{:016x}", components.fingerprint()) })
        }
        other => setting_json(other),
    }
}

/// Variables that say how many threads Rayon starts if it is to decide, in the order in which it reads them.
const RAYON_VARIABLES: [&str; 2] = ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"];

/// Starts the threads that read files, compute on the CPU, and encode tables.
///
/// # Errors
/// [`ErrorKind::Config`] for a variable that asks Rayon for too many threads, [`ErrorKind::Io`] for a thread
/// that the system does not start.
pub fn thread_pool(threads: usize) -> Result<Arc<ThreadPool>> {
    let number = |name| std::env::var(name).ok()?.parse::<usize>().ok();
    let mut variables = RAYON_VARIABLES.into_iter();
    let variable = variables.find_map(|name| Some((name, number(name)?)));
    if let Some((name, number)) = variable.filter(|(_, number)| *number > THREADS_MAX)
        && threads == 0
    {
        let message = format!("{name} is {number}, and must be 0 to {THREADS_MAX}");
        return Err(Error::config(message).fix("unset the variable, or give --threads"));
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("tapeloop-pool-{index}"))
        .stack_size(stack_bytes())
        .build()
        .map_err(thread_error)?;
    Ok(Arc::new(pool))
}

#[cfg(test)]
mod tests;
