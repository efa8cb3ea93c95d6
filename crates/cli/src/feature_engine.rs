//! [`FeatureEngine`]: the features of structures as record batches, for programs that embed this one.

use super::config::{Config, OutputTable, RawConfig, TableSet};
use super::input_count::InputCount;
use super::interrupt::Interrupt;
use super::output::Committed;
use super::oversized;
use super::plan::Plan;
use super::reading;
use super::rejected_batches::{self, REJECTED, RejectedBatches};
use super::result_writer::{ResultWriter, Rows};
use super::run_counters::RunCounters;
use super::run_json::RunHeader;
use super::source_thread::SourceThread;
use super::table_plan::{column_sources, row_filters};
use super::tables::{TableBatch, Tables};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::{ArcMutexGuard, Mutex, RawMutex};
use serde_json::{Map, Value as Json};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tapeloop::error::{Error, Result};
use tapeloop::features::Features;
use tapeloop::pipeline::Engine;
use tapeloop_error::internal::{thread, thread_error};
use tapeloop_inputs::{Content, InputDigests, Source};
use tapeloop_structure::internal::BudgetShare;

/// Record batches that wait for the reader: enough to make one while another is read. Each has up
/// to a row group of rows in memory.
const BATCHES_AHEAD: usize = 2;

/// Config keys of a run, which an engine does not have, each with what to do in its place.
const RUN_KEYS: [(&str, &str); 3] = [
    ("input", "give the inputs to each stream"),
    (
        "output",
        "write the tables that a stream yields, or use `run`",
    ),
    ("timeline", "use `run`, which writes a timeline"),
];

/// An engine that computes features into record batches. It is made once, and reads any number of
/// inputs, one stream after the other.
pub struct FeatureEngine {
    session: Arc<Mutex<EngineSession>>,
    process: EngineProcess,
}

struct EngineSession {
    plan: Plan,
    engine: Engine<Features>,
}

/// What a stream reads.
pub enum Inputs {
    /// Files, folders, globs, archives and lists (`@list.txt`), as the command line takes them.
    Paths(Vec<String>),
    /// Files in memory, each with a name: PDB, mmCIF or BinaryCIF, compressed or not.
    Memory {
        /// The number of the first one among all inputs, where the inputs of several streams count
        /// on.
        first: u64,
        /// Each file's name, from which the structure's name follows, and its bytes.
        files: Vec<(String, Vec<u8>)>,
    },
}

impl FeatureEngine {
    /// Starts an engine. `settings` are keys of the config file, except `input`, `output` and
    /// `timeline`: `{"features": ["sasa"], "sasa.points": 256}`.
    ///
    /// # Errors
    /// - [`ErrorKind::Config`](tapeloop::ErrorKind::Config) lists all settings that are wrong.
    /// - Those of [`Engine::new`] and of [`select`](tapeloop::backend::select).
    pub fn new(settings: &Map<String, Json>) -> Result<Self> {
        for (key, fix) in RUN_KEYS {
            if settings.contains_key(key) {
                let message = format!("`{key}` is not a setting of an engine");
                return Err(Error::config(message).fix(fix));
            }
        }
        let config = Config::resolve(RawConfig::of_settings(settings)?)?;
        FeatureEngine::of_plan(Plan::of_any_input(config)?)
    }

    /// Starts the engine of a plan.
    pub(super) fn of_plan(plan: Plan) -> Result<Self> {
        let engine = plan.start(&plan.tables_read())?;
        Ok(FeatureEngine {
            session: Arc::new(Mutex::new(EngineSession { plan, engine })),
            process: EngineProcess::current(),
        })
    }

    /// Checks the names of tables before [`stream`](FeatureEngine::stream) does. While another stream
    /// of this engine is open, nothing is checked.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) for an unknown table, and for one that the
    /// settings leave without rows.
    pub fn check_tables(&self, tables: &[&str]) -> Result<()> {
        let Some(session) = self.session.try_lock() else {
            return Ok(());
        };
        rows_of(&session.plan, tables, &bounded(BATCHES_AHEAD).0).map(drop)
    }

    /// Streams `tables` of the features of `inputs`, such as `["residues", "chains"]`. If
    /// `counts_inputs`, a thread lists the paths a second time, for
    /// [`StreamCounts::inputs_total`].
    ///
    /// # Errors
    /// - [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) while another stream of this engine is open,
    ///   in a process that was forked after the engine was made, and for numbers of files that end
    ///   above [`u64::MAX`].
    /// - [`ErrorKind::Config`](tapeloop::ErrorKind::Config) for an unknown table, and
    ///   [`ErrorKind::Input`](tapeloop::ErrorKind::Input) for an input that leads to no file.
    pub fn stream(
        &self,
        inputs: Inputs,
        tables: &[&str],
        counts_inputs: bool,
    ) -> Result<FeatureStream> {
        self.process.check()?;
        let session = self.session.try_lock_arc().ok_or_else(|| {
            let error = Error::usage("another stream of this engine is open");
            error.fix("read it to its end or drop it, or make another engine")
        })?;
        FeatureStream::start(session, inputs, tables, counts_inputs, self.process)
    }
}

impl Drop for FeatureEngine {
    fn drop(&mut self) {
        // In a forked process the threads that the engine would wait for do not exist. So the
        // session keeps a reference that is never dropped.
        if self.process.check().is_err() {
            std::mem::forget(Arc::clone(&self.session));
        }
    }
}

/// The record batches of some tables, in the order of the inputs. Dropping it ends the run, and waits until it has.
pub struct FeatureStream {
    schemas: Vec<(&'static str, SchemaRef)>,
    /// `None` once all batches were taken.
    running: Option<Running>,
    counters: Arc<RunCounters>,
    input_count: Option<InputCount>,
    process: EngineProcess,
}

/// The counts of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// All inputs; `None` unless they have been counted.
    pub inputs_total: Option<u64>,
    /// Inputs with results. It goes on from the number of the first file in memory.
    pub inputs: u64,
    /// Structures with results.
    pub structures: u64,
    /// Their residues.
    pub residues: u64,
    /// Rejected inputs, and models of inputs.
    pub rejected: u64,
}

struct Running {
    batches: Receiver<TableBatch>,
    stop: Box<dyn FnOnce() + Send>,
    /// Returns the session, so that the engine serves no other stream until this one is read.
    thread: JoinHandle<(Result<()>, SessionGuard)>,
}

type SessionGuard = ArcMutexGuard<RawMutex, EngineSession>;

/// A record batch, or why there is none.
pub enum Next {
    /// The name of the table, and the rows.
    Batch(&'static str, RecordBatch),
    /// There was none within the time.
    Pending,
    /// There are no more.
    End,
}

impl FeatureStream {
    /// Starts the thread that computes the inputs and sends batches of rows. The session is lent to
    /// it until the stream has ended.
    fn start(
        mut session: SessionGuard,
        inputs: Inputs,
        tables: &[&str],
        counts_inputs: bool,
        process: EngineProcess,
    ) -> Result<Self> {
        let (sender, batches) = bounded(BATCHES_AHEAD);
        let (interrupt, stop) = Interrupt::by_call();
        let rows = rows_of(&session.plan, tables, &sender)?;
        let mut schemas: Vec<_> = rows.schemas().collect();
        schemas.push((REJECTED, rejected_batches::schema()));
        let rejected = RejectedBatches::new(sender);
        let counters = Arc::new(RunCounters::default());
        let input_count = match &inputs {
            Inputs::Paths(items) if counts_inputs => {
                let Plan {
                    config,
                    trajectories,
                    ..
                } = &session.plan;
                InputCount::start(&counters, items, trajectories, config.shard)
            }
            _ => None,
        };
        // Files in memory may be a part of the inputs, whose other parts have streams of their own.
        let is_whole = matches!(inputs, Inputs::Paths(_));
        let sources = sources_of(&session.plan, inputs, &interrupt, &counters)?;
        let shared = Arc::clone(&counters);
        let run = move || {
            let EngineSession { plan, engine } = &mut *session;
            let mut ended = compute(plan, engine, sources, rows, rejected, &shared);
            if is_whole {
                ended = ended.and_then(|()| check_annotations(plan, &shared));
            }
            (ended, session)
        };
        let thread = thread("tapeloop-stream").spawn(run);
        let thread = thread.map_err(thread_error)?;
        Ok(FeatureStream {
            schemas,
            running: Some(Running {
                batches,
                stop: Box::new(stop),
                thread,
            }),
            counters,
            input_count,
            process,
        })
    }

    /// The counts so far.
    pub fn counts(&self) -> StreamCounts {
        let counts = self.counters.counts();
        StreamCounts {
            inputs_total: counts.inputs_total,
            inputs: counts.inputs,
            structures: counts.structures,
            residues: counts.residues,
            rejected: counts.rejected,
        }
    }

    /// The schema of a table of this stream. `rejected`, the table of inputs without a result, is
    /// always one.
    pub fn schema(&self, table: &str) -> Option<&SchemaRef> {
        let mut schemas = self.schemas.iter();
        schemas.find_map(|(name, schema)| (*name == table).then_some(schema))
    }

    /// Waits for the next batch, but not for longer than `longest`.
    ///
    /// # Errors
    /// The error that ended the run, once; and [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) in a
    /// process that was forked after the engine was made.
    pub fn next_within(&mut self, longest: Duration) -> Result<Next> {
        self.process.check()?;
        let Some(running) = &self.running else {
            return Ok(Next::End);
        };
        match running.batches.recv_timeout(longest) {
            Ok((table, batch)) => Ok(Next::Batch(table, batch)),
            Err(RecvTimeoutError::Timeout) => Ok(Next::Pending),
            Err(RecvTimeoutError::Disconnected) => {
                let running = self.running.take().expect("checked above");
                let ended = running.thread.join();
                let (ended, _) = ended.unwrap_or_else(|panic| resume_unwind(panic));
                ended.map(|()| Next::End)
            }
        }
    }
}

impl Drop for FeatureStream {
    fn drop(&mut self) {
        // In a forked process the threads that it would wait for do not exist, and one of them may have held a
        // lock of the channel when the process was forked, which dropping the receiver takes.
        if self.process.check().is_err() {
            std::mem::forget((self.input_count.take(), self.running.take()));
            return;
        }
        let Some(Running {
            batches,
            stop,
            thread,
        }) = self.running.take()
        else {
            return;
        };
        // Reading ends, and what waits for room in the channel fails, so that the thread comes to
        // its end.
        stop();
        drop(batches);
        // The error of a run whose reader has ended is dropped with it.
        let _ = thread.join();
    }
}

/// The process in which an engine was made. A fork copies no threads.
#[derive(Clone, Copy)]
struct EngineProcess(u32);

impl EngineProcess {
    fn current() -> Self {
        EngineProcess(std::process::id())
    }

    fn check(self) -> Result<()> {
        if self.0 == std::process::id() {
            return Ok(());
        }
        let error = Error::usage("the engine was made before this process was forked");
        Err(error.fix("make it in the new process, or start processes with spawn"))
    }
}

/// Tables with the names `wanted`, whose rows go to `batches`. An
/// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) error for a name of no table, or of one that
/// is not computed.
fn rows_of(plan: &Plan, wanted: &[&str], batches: &Sender<TableBatch>) -> Result<Tables> {
    let mut settings = plan.config.tables;
    for name in wanted {
        let Some(table) = OutputTable::of_name(name) else {
            let all = TableSet::ALL.names().join(", ");
            let error = Error::config(format!("there is no table {name:?}"));
            return Err(error.fix(format!("choose from {all}")));
        };
        if !settings.written.contains(table) {
            let error = Error::config(format!("the table {name:?} is not computed"));
            return Err(error.fix(table.how_to_compute()));
        }
    }
    settings.written = TableSet::new(|table| wanted.contains(&table.name()));
    let features = |table| plan.config.features.columns(table);
    let sources = column_sources(plan, &features);
    let pool = Arc::clone(&plan.pool);
    Ok(Tables::to_batches(
        batches,
        settings,
        &sources,
        &plan.provenance(),
        pool,
    ))
}

type BoxedSources = Box<dyn Iterator<Item = Vec<Source>> + Send>;

/// The sources of a stream: paths, which a thread lists, or files in memory, numbered from `first`.
/// An [`ErrorKind::Usage`](tapeloop::ErrorKind::Usage) error if the numbers of files in memory do
/// not fit in 64 bits; for paths the errors of [`Plan::check_inputs`] and [`SourceThread::start`].
fn sources_of(
    plan: &Plan,
    inputs: Inputs,
    interrupt: &Interrupt,
    counters: &Arc<RunCounters>,
) -> Result<BoxedSources> {
    let (first, files) = match inputs {
        Inputs::Paths(items) => {
            plan.check_inputs(&items)?;
            let sources = SourceThread::start(plan.sources(items), interrupt, counters)?;
            return Ok(Box::new(sources));
        }
        Inputs::Memory { first, files } => (first, files),
    };
    if first.checked_add(files.len() as u64).is_none() {
        let (max, count) = (u64::MAX, files.len());
        let message = format!("the numbers of {count} files from {first} on are over {max}");
        return Err(Error::usage(message).fix("count the files from a lower number"));
    }
    let (shard, interrupt) = (plan.config.shard, interrupt.clone());
    let in_shard = files
        .into_iter()
        .zip(first..)
        .filter(move |(_, number)| shard.contains(*number));
    let sources = in_shard.map(|((name, bytes), ordinal)| Source {
        ordinal,
        path: PathBuf::from(name),
        content: Ok(Content::Bytes {
            bytes,
            _share: BudgetShare::new(None),
        }),
        chain: None,
    });
    let sources = sources.take_while(move |_| !interrupt.stops_here());
    Ok(Box::new(sources.map(|source| vec![source])))
}

/// Computes all inputs, and sends their rows, without a folder, a record or parts. Returns when the
/// last batch was sent or the reader is gone, or with the first error that ends the engine or the
/// rows.
fn compute(
    plan: &Plan,
    engine: &mut Engine<Features>,
    sources: BoxedSources,
    rows: Tables,
    rejected: RejectedBatches,
    counters: &Arc<RunCounters>,
) -> Result<()> {
    let mut results = ResultWriter::start(
        Rows::Tables(rows),
        row_filters(plan),
        None,
        Arc::clone(counters),
        RunHeader::new(plan, SystemTime::now()),
        Committed::default(),
        InputDigests::default(),
    )?
    .with_annotations(plan.annotations.clone())
    .with_optional(plan.config.tables.optional)
    .with_rejected_batches(rejected);
    let budget = plan.read_budget(engine.memory());
    let annotations = plan.annotations.as_ref();
    let (reading, pool) = (plan.config.reading, &plan.pool);
    let inputs = reading::inputs(sources, reading, &budget, pool, counters, annotations);
    let maker = results.row_maker();
    let (make, accept) = (move |done| maker.make(done), |made| results.accept(made));
    let streamed = oversized::run(engine, plan, inputs, counters, make, accept);
    results.finish(streamed).columns.map(drop)
}

/// Checks, after all inputs of a stream have been read, that each table of annotations has a row that
/// matched, unless there was no structure that one could match.
fn check_annotations(plan: &Plan, counters: &RunCounters) -> Result<()> {
    let counts = counters.counts();
    match &plan.annotations {
        Some(annotations) if counts.structures > 0 => {
            let matches = counters.matches();
            annotations.check_matched(&matches, counts.rejected, plan.config.unmatched)
        }
        _ => Ok(()),
    }
}
