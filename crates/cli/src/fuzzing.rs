//! The fuzz targets of `fuzz/`, which only tests and builds with `--cfg fuzzing` have.
//!
//! Each returns whatever its input holds; a panic is a finding. Structures of packed files also go
//! through all features and into the columns of the tables, as in a run; frames of trajectories are
//! read alone. The tests run each target over the inputs in `tests/data/fuzz`.

use super::config::{BenchConfig, Condition, Config, OptionalColumns, OutputTable, RawConfig};
use super::plan::thread_pool;
use super::tables::{RowFilter, StructureRows, gather_all};
use serde_json::Map;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tapeloop::backend::{Choice, select};
use tapeloop::features::{FeatureConfig, Features, Input, TableName};
use tapeloop::pipeline::{EngineConfig, Pipeline};
use tapeloop::structure::{
    Assembly, BFactorFields, ChainSplit, Format, Models, ReadBudget, ReadLimits, ReadOptions,
    Reader, Structure,
};
use tapeloop::workload::Completion;
use tapeloop_annotations::Annotations;
use tapeloop_annotations::WantedColumns;
use tapeloop_files::text_of;
use tapeloop_inputs::{ArchiveOptions, Archives, FrameRange, Shard, Sources, Trajectories};

/// Bytes of the rows of annotations.
const ANNOTATION_BYTES_MAX: u64 = 64 << 20;

/// Larger structures are not computed, so that an input takes little time.
const RESIDUES_MAX: u32 = 512;

/// The topology of the trajectories, those of `tests/data/trajectories`.
const TOPOLOGY: &str = include_str!("../../../samples/1ubi.pdb");

/// What the inputs are read with.
struct FuzzSession {
    pipeline: Pipeline<Features>,
    features: FeatureConfig,
    reader: Reader,
    trajectories: Trajectories,
    /// The structure that annotations describe.
    structure: Structure,
    /// Its rows, of which conditions choose some.
    rows: Option<StructureRows>,
}

thread_local! {
    static SESSION: RefCell<Option<FuzzSession>> = const { RefCell::new(None) };
}

/// A file of this process in the folder for temporary files, with these bytes.
fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let name = format!("tapeloop-fuzz-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).expect("the folder can be written");
    path
}

fn remove(path: &Path) {
    std::fs::remove_file(path).expect("the folder can be written");
}

impl FuzzSession {
    /// Starts the engine on the CPU, with the default features, and computes the rows of one
    /// structure, of which conditions choose some.
    fn new() -> Self {
        let pool = thread_pool(1).expect("a thread starts");
        let backend = select(Choice::Cpu, &pool)
            .expect("the CPU is there")
            .backend;
        let features = FeatureConfig::default();
        let workload = Features::new(features.clone()).expect("the default features are valid");
        let config = EngineConfig {
            slots: 1,
            ..EngineConfig::new(Features::capacity(RESIDUES_MAX))
        };
        let pipeline = Pipeline::new(workload, &[backend], pool, &config);
        let path = written("topology.pdb", TOPOLOGY.as_bytes());
        let mut reader = Reader::new(ReadOptions::default());
        let topology = reader.read_topology(&path).expect("the topology is valid");
        remove(&path);
        let structure = topology.structure().clone();
        let mut session = FuzzSession {
            pipeline: pipeline.expect("the engine starts"),
            features,
            reader,
            trajectories: Trajectories::Read(Arc::new(topology), FrameRange::ALL),
            structure: structure.clone(),
            rows: None,
        };
        session.rows = session.compute("1ubi.pdb", structure);
        session
    }

    /// The rows of a structure; `None` if it is rejected.
    fn compute(&mut self, source: &str, structure: Structure) -> Option<StructureRows> {
        let input = Input::new(source, 0, Ok(structure));
        self.pipeline.submit(input).expect("the slot is free");
        let (_, Completion { item, result }) = self.pipeline.wait().expect("an item is in flight");
        let structure = item.structure.ok()?.into_inner();
        let rows = StructureRows::new(item.source, structure, result.ok()?);
        let features = |table: TableName| self.features.columns(table);
        Some(gather_all(rows, &features))
    }

    /// Reads all inputs in a file of this name.
    fn read(&mut self, name: &str, bytes: &[u8]) {
        let path = written(name, bytes);
        let options = ArchiveOptions {
            members: None,
            limits: ReadLimits::default(),
            budget: Arc::new(ReadBudget::new(u64::MAX)),
            has_topology: true,
            reader: Map::new(),
        };
        let sources = Sources::new(vec![text_of(&path)], Archives::Read(options), Shard::WHOLE)
            .with_trajectories(self.trajectories.clone());
        for source in sources {
            let Ok(content) = source.content else {
                continue;
            };
            let structures = content.read(&source.path, &mut self.reader);
            for structure in structures.unwrap_or_default() {
                if structure.frame.is_none() {
                    self.compute(&text_of(&source.path), structure);
                }
            }
        }
        remove(&path);
    }
}

fn with_session(work: impl FnOnce(&mut FuzzSession)) {
    SESSION.with_borrow_mut(|session| work(session.get_or_insert_with(FuzzSession::new)));
}

/// Readers of all models: of deposited chains, of assembly 1, and of one joined structure, each with
/// another rule for chains.
fn readers() -> [Reader; 3] {
    [
        (Models::All, Assembly::Deposited, ChainSplit::Auto),
        (Models::All, Assembly::First, ChainSplit::Number),
        (Models::Joined, Assembly::Deposited, ChainSplit::Ter),
    ]
    .map(|(models, assembly, chain_split)| {
        Reader::new(ReadOptions {
            models,
            assembly,
            chain_split,
            ..ReadOptions::default()
        })
    })
}

/// Reads text in every format, and finds its B factors.
///
/// # Panics
/// The arrays of a structure differ in length.
pub fn text(text: &[u8]) {
    for &format in Format::ALL {
        for mut reader in readers() {
            for structure in reader.read_bytes(text, format).unwrap_or_default() {
                assert_eq!(structure.atom_start.len(), structure.residues.len() + 1);
                assert_eq!(structure.xyz.len(), structure.b_factor.len());
            }
        }
        let _ = BFactorFields::find(text, format, ReadOptions::default().limits);
    }
}

/// Reads the bytes of a file, plain or compressed.
pub fn file(bytes: &[u8]) {
    for mut reader in readers() {
        let _ = reader.read_auto("file", bytes);
    }
}

/// Resolves the config of a run and of a benchmark, and the settings that these print.
///
/// # Panics
/// The printed settings are no config, or another one.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let parse = |text: &str| RawConfig::parse(text, Path::new("fuzz.toml"));
    let Ok(raw) = parse(text) else {
        return;
    };
    if let Ok(config) = Config::resolve(raw) {
        let printed = config.to_toml();
        let again = parse(&printed).and_then(Config::resolve);
        let again = again.unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(config.settings, again.settings, "{printed}");
    }
    let raw = parse(text).expect("the text was parsed above");
    if let Ok(config) = BenchConfig::resolve(raw) {
        let printed = config.to_toml();
        let again = parse(&printed).and_then(BenchConfig::resolve);
        let again = again.unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(printed, again.to_toml());
    }
}

/// Reads a table of annotations, and joins it to a structure. The table is Parquet, gzip data of
/// CSV, tab-separated or CSV, by its first bytes.
pub fn annotations(bytes: &[u8]) {
    let first_line = bytes.split(|&byte| byte == b'\n').next();
    let name = if bytes.starts_with(b"PAR1") {
        "table.parquet"
    } else if bytes.starts_with(&[0x1f, 0x8b]) {
        "table.csv.gz"
    } else if first_line.is_some_and(|line| line.contains(&b'\t')) {
        "table.tsv"
    } else {
        "table.csv"
    };
    with_session(|session| {
        let path = written(name, bytes);
        for channels in [vec![], vec!["score".to_owned()]] {
            let paths = std::slice::from_ref(&path);
            let table =
                Annotations::load(paths, channels, &WantedColumns::All, ANNOTATION_BYTES_MAX);
            let Ok(table) = table else {
                continue;
            };
            let mut models = [session.structure.clone()];
            let _ = table.attach("1ubi", &mut models);
            let _ = table.join("1ubi", &models[0]);
            let _ = table.variants("1ubi", &models[0], |_| Ok(()));
        }
        remove(&path);
    });
}

/// Reads the bytes of a packed file.
pub fn packed_file(bytes: &[u8]) {
    with_session(|session| session.read("set.arrow", bytes));
}

/// Reads the bytes of an XTC file.
pub fn xtc(bytes: &[u8]) {
    with_session(|session| session.read("frames.xtc", bytes));
}

/// Reads the bytes of a DCD file.
pub fn dcd(bytes: &[u8]) {
    with_session(|session| session.read("frames.dcd", bytes));
}

/// Parses a condition and its opposite, and chooses residues by both.
///
/// # Panics
/// Both hold for one residue.
pub fn condition(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    with_session(|session| {
        let columns = session.features.columns(TableName::Residues);
        let Ok(condition) = Condition::parse(text, &columns, OptionalColumns::ALL) else {
            return;
        };
        // Parentheses and `not` have a limit.
        let opposite =
            Condition::parse(&format!("not ({text})"), &columns, OptionalColumns::ALL).ok();
        let features = |table: TableName| session.features.columns(table);
        let mut chosen = 0;
        for condition in [Some(condition), opposite].into_iter().flatten() {
            let rows = session.rows.take().expect("the structure is computed");
            let residues = rows.residues();
            let rows = RowFilter::new(OutputTable::RESIDUES, condition, &features).select(rows);
            chosen += residues - rows.left_out();
            assert!(chosen <= residues, "{text:?}");
            session.rows = Some(rows);
        }
    });
}

/// Takes bytes, and panics only if the program would.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Target); 8] = [
    ("annotations", annotations),
    ("condition", condition),
    ("config", config),
    ("dcd", dcd),
    ("file", file),
    ("packed", packed_file),
    ("text", text),
    ("xtc", xtc),
];

#[cfg(test)]
mod tests {
    use super::TARGETS;
    use std::path::Path;

    /// The inputs of a folder, sorted by name.
    fn inputs(folder: &Path) -> Vec<std::path::PathBuf> {
        let entries =
            std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    #[test]
    fn no_target_fails_for_a_stored_input() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/fuzz");
        for (name, target) in TARGETS {
            let inputs = inputs(&folder.join(name));
            assert!(!inputs.is_empty(), "{name} has no inputs");
            for input in inputs {
                // A panic of the target names no input.
                println!("{}", input.display());
                target(&std::fs::read(&input).unwrap());
            }
        }
        assert_eq!(inputs(&folder).len(), TARGETS.len());
    }
}
