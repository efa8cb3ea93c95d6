//! Entry points of the fuzz targets in `fuzz/`, which only builds with `--cfg fuzzing` have.
//!
//! Each returns whatever its input holds; a panic is a finding. Structures of packed files also go
//! through all features and into the columns of the tables, as in a run.

use super::config::{Condition, OptionalColumns};
use super::inputs::{ArchiveOptions, Archives, FrameRange, Shard, Sources, Trajectories};
use super::path_text::text_of;
use super::plan::thread_pool;
use super::tables::{RowFilter, StructureRows, gather_all};
use crate::backend::{Choice, select};
use crate::features::{FeatureConfig, Features, Input, TableName};
use crate::pipeline::{Delivery, EngineConfig, Pipeline};
use crate::structure::{ReadBudget, ReadLimits, ReadOptions, Reader, Structure};
use serde_json::Map;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

/// Larger structures are not computed, so that an input takes little time.
const RESIDUES_MAX: u32 = 512;

/// The topology of the trajectories, those of `tests/data/trajectories`.
const TOPOLOGY: &str = include_str!("../../samples/1ubi.pdb");

/// What the inputs are read with.
struct Session {
    pipeline: Pipeline<Features>,
    features: FeatureConfig,
    reader: Reader,
    trajectories: Trajectories,
    /// A structure that conditions choose residues of.
    rows: Option<StructureRows>,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// A file of this process in the folder for temporary files.
fn path_of(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tapeloop-fuzz-{}-{name}", std::process::id()))
}

impl Session {
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
        let topology = path_of("topology.pdb");
        std::fs::write(&topology, TOPOLOGY).expect("the folder can be written");
        let mut reader = Reader::new(ReadOptions::default());
        let topology = reader
            .read_topology(&topology)
            .expect("the topology is valid");
        let structure = topology.structure().clone();
        let mut session = Session {
            pipeline: pipeline.expect("the engine starts"),
            features,
            reader,
            trajectories: Trajectories::Read(Arc::new(topology), FrameRange::ALL),
            rows: None,
        };
        session.rows = session.compute("topology.pdb", structure);
        session
    }

    /// The rows of a structure; `None` if it is rejected.
    fn compute(&mut self, source: &str, structure: Structure) -> Option<StructureRows> {
        let input = Input {
            source: source.to_owned(),
            ordinal: 0,
            structure: Ok(structure),
        };
        self.pipeline.submit(input).expect("the slot is free");
        let Delivery { item, result, .. } = self.pipeline.wait().expect("an item is in flight");
        let rows = StructureRows::new(item.source, item.structure.ok()?, result.ok()?);
        let features = |table: TableName| self.features.columns(table);
        Some(gather_all(rows, &features))
    }

    /// Reads all inputs in a file of this name.
    fn read(&mut self, name: &str, bytes: &[u8]) {
        let path = path_of(name);
        std::fs::write(&path, bytes).expect("the folder can be written");
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
    }
}

fn with_session(work: impl FnOnce(&mut Session)) {
    SESSION.with_borrow_mut(|session| work(session.get_or_insert_with(Session::new)));
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
pub fn condition(text: &str) {
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
            let rows = RowFilter::new(condition, &features).select(rows);
            chosen += residues - rows.left_out();
            assert!(chosen <= residues, "{text:?}");
            session.rows = Some(rows);
        }
    });
}
