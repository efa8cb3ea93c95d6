//! Writes results in order: good ones into the tables, others into `rejected.jsonl`. A run to
//! standard output has no folder, and names rejected inputs on standard error.

use super::config::OptionalColumns;
use super::core_time::CoreTime;
use super::output::{Committed, OutputFolder};
use super::rejected_batches::RejectedBatches;
use super::run_counters::{RunCounters, StructureCounts, WrittenParts};
use super::run_json::RunHeader;
use super::tables::{
    ColumnStatistics, Coordinates, RowFilter, StructureRows, Tables, TerminalTable,
};
use super::terminal::complain;
use std::sync::Arc;
use std::time::Instant;
use tapeloop::error::Result;
use tapeloop::features::{Features, Input};
use tapeloop::workload::Completion;
use tapeloop_annotations::Annotations;
use tapeloop_error::internal::printable;
use tapeloop_inputs::InputDigests;

/// Rejected inputs that the summary lists.
const REJECTED_LISTED_MAX: usize = 10;

/// A result on its way to the tables.
pub enum Made {
    /// The rows of an input that was computed; its atoms have been dropped.
    Rows(Box<MadeRows>),
    /// A completion without rows so far: a rejected input, or one that the caller looks at first.
    Completion(Box<Completion<Features>>),
}

/// The rows of a structure.
pub struct MadeRows {
    ordinal: u64,
    counts: StructureCounts,
    rows: StructureRows,
}

/// Makes rows of structures, and drops what rows do not need. Several threads can share it.
#[derive(Clone)]
pub struct RowMaker {
    optional: OptionalColumns,
    /// Choose the residues and the atoms that have rows.
    filters: Arc<[RowFilter]>,
    cores: CoreTime,
}

impl RowMaker {
    /// Makes the rows of a good input.
    pub fn make(&self, done: Completion<Features>) -> Made {
        let Completion { item, result } = done;
        match (item.structure, result) {
            (Ok(structure), Ok(features)) => {
                let counts = StructureCounts::new(&structure);
                let coordinates = Coordinates::new(&structure, self.optional.coordinates);
                let mut rows = StructureRows::new(item.source, structure.into_inner(), features)
                    .with_coordinates(coordinates);
                if self.optional.unobserved {
                    rows = rows.with_unobserved();
                }
                for filter in &*self.filters {
                    rows = self.cores.measure(|| filter.select(rows));
                }
                Made::Rows(Box::new(MadeRows {
                    ordinal: item.ordinal,
                    counts,
                    rows,
                }))
            }
            (structure, result) => {
                let item = Input { structure, ..item };
                Made::Completion(Box::new(Completion { item, result }))
            }
        }
    }
}

/// Where the rows of structures go.
pub enum Rows {
    Tables(Tables),
    Terminal(TerminalTable),
}

impl Rows {
    /// The processor time of gathering and encoding.
    pub fn cores(&self) -> CoreTime {
        match self {
            Rows::Tables(tables) => tables.cores(),
            Rows::Terminal(_) => CoreTime::default(),
        }
    }
}

/// Writes the results of a run.
pub struct ResultWriter {
    rows: Rows,
    maker: RowMaker,
    /// The rows of the structure that is being written are decoded here, and of no other.
    annotations: Option<Arc<Annotations>>,
    folder: Option<OutputFolder>,
    /// Gets the rejected inputs if there is no folder; without it they are named on standard error.
    rejected_batches: Option<RejectedBatches>,
    counters: Arc<RunCounters>,
    header: RunHeader,
    committed: Committed,
    /// What is committed once the part that has ended is on the disk, besides its files.
    ending: Option<Committed>,
    digests: InputDigests,
    /// The first rejected inputs, each with its reason.
    rejected: Vec<String>,
}

/// A [`ResultWriter`] after the last result.
pub struct FinishedWriter {
    pub folder: Option<OutputFolder>,
    pub written: WrittenParts,
    /// What a run could go on with.
    pub committed: Committed,
    /// The tables' columns, or the error that left parts unwritten.
    pub columns: Result<Vec<ColumnStatistics>>,
    /// The first rejected inputs, each with its reason.
    pub rejected: Vec<String>,
}

impl ResultWriter {
    /// Writes the first `run.json`. The run goes on behind what is `committed`, and `digests` are
    /// those of its inputs.
    ///
    /// # Errors
    /// The file cannot be written, or `committed` is of other tables.
    pub fn start(
        mut rows: Rows,
        filters: Vec<RowFilter>,
        folder: Option<OutputFolder>,
        counters: Arc<RunCounters>,
        header: RunHeader,
        committed: Committed,
        digests: InputDigests,
    ) -> Result<Self> {
        if let Rows::Tables(tables) = &mut rows {
            let statistics = committed.statistics.clone();
            tables.resume(committed.parts, committed.files.clone(), statistics)?;
        }
        let endless = committed.endless.as_deref();
        let Committed {
            counts,
            annotations: matches,
            truncated,
            findings,
            ..
        } = &committed;
        counters.resume(counts, matches, truncated, endless, findings);
        if let Some(folder) = &folder {
            folder.record(&header.running(&committed))?;
        }
        let maker = RowMaker {
            optional: OptionalColumns::NONE,
            filters: filters.into(),
            cores: rows.cores(),
        };
        Ok(ResultWriter {
            rows,
            maker,
            annotations: None,
            folder,
            rejected_batches: None,
            counters,
            header,
            rejected: committed.rejected.clone(),
            committed,
            ending: None,
            digests,
        })
    }

    /// The same writer, with the columns that annotations bring.
    pub fn with_annotations(self, annotations: Option<Arc<Annotations>>) -> Self {
        ResultWriter {
            annotations,
            ..self
        }
    }

    /// The same writer, with what these columns need.
    pub fn with_optional(mut self, optional: OptionalColumns) -> Self {
        self.maker.optional = optional;
        self
    }

    /// The same writer, with rejected inputs as record batches.
    pub fn with_rejected_batches(self, rejected: RejectedBatches) -> Self {
        ResultWriter {
            rejected_batches: Some(rejected),
            ..self
        }
    }

    /// What makes the rows that [`ResultWriter::accept`] takes.
    pub fn row_maker(&self) -> RowMaker {
        self.maker.clone()
    }

    /// Writes the next result.
    ///
    /// # Errors
    /// The result cannot be written.
    pub fn accept(&mut self, made: Made) -> Result<()> {
        let start = Instant::now();
        let written = match made {
            Made::Rows(made) => self.append(*made),
            Made::Completion(done) => match self.maker.make(*done) {
                Made::Rows(made) => self.append(*made),
                Made::Completion(rejected) => self.reject(*rejected),
            },
        };
        self.counters.add_write(start.elapsed());
        written
    }

    /// Finishes the tables. After an error in `streamed` the open parts are removed instead.
    pub fn finish(mut self, streamed: Result<()>) -> FinishedWriter {
        // The part is completed after an error too, so that a run can go on behind it.
        let committed = self.commit(true);
        let rejected = self.rejected_batches.map(RejectedBatches::finish);
        // The first error is the cause of those after it.
        let finished = streamed.and(committed).and(rejected.unwrap_or(Ok(())));
        let finished = finished.and_then(|()| {
            let start = Instant::now();
            let finished = match self.rows {
                Rows::Tables(tables) => tables.finish(),
                Rows::Terminal(_) => Ok((0, Vec::new())),
            };
            self.counters.add_write(start.elapsed());
            finished
        });
        let (written, columns) = match finished {
            Ok((parts, columns)) => {
                let counts = self.counters.counts();
                (WrittenParts { parts, counts }, Ok(columns))
            }
            Err(error) => (self.committed.written(), Err(error)),
        };
        FinishedWriter {
            folder: self.folder,
            written,
            committed: self.committed,
            columns,
            rejected: self.rejected,
        }
    }

    /// Goes to the input `ordinal`. A part that ends before it reaches the disk while the next one is
    /// filled.
    fn advance(&mut self, ordinal: u64) -> Result<()> {
        let Rows::Tables(tables) = &self.rows else {
            return Ok(());
        };
        let ends = tables.ends_before(ordinal);
        // Waits only if the next part ends already: one at a time is on its way to the disk.
        self.commit(ends)?;
        // Set before the next part starts, as that may fail and the ended part is committed all the
        // same. Rows to standard output are one part, which ends with the run.
        if let Some(folder) = self.folder.as_ref().filter(|_| ends) {
            let mut ranges = self.committed.ranges.clone();
            ranges.push(self.digests.take(ordinal - self.committed.inputs));
            self.ending = Some(Committed {
                inputs: ordinal,
                rejected_bytes: folder.rejected_bytes(),
                ranges,
                // The counters include every earlier input, and nothing of this one yet.
                counts: self.counters.counts(),
                annotations: self.counters.matches(),
                rejected: self.rejected.clone(),
                truncated: self.counters.first_truncated(),
                endless: self.counters.first_endless(),
                findings: self.counters.findings(),
                ..self.committed.clone()
            });
        }
        match &mut self.rows {
            Rows::Tables(tables) => tables.advance(ordinal),
            Rows::Terminal(_) => Ok(()),
        }
    }

    /// Renews `run.json` once the part that has ended is on the disk, and waits for that if `waits`.
    fn commit(&mut self, waits: bool) -> Result<()> {
        let Rows::Tables(tables) = &mut self.rows else {
            return Ok(());
        };
        if tables.complete(waits)?
            && let (Some(folder), Some(ending)) = (&self.folder, self.ending.take())
        {
            self.committed = Committed {
                parts: tables.parts(),
                files: tables.files(),
                statistics: tables.statistics(),
                ..ending
            };
            folder.record(&self.header.running(&self.committed))?;
        }
        Ok(())
    }

    /// Joins annotations to rows, appends them to the tables, and counts them.
    fn append(&mut self, made: MadeRows) -> Result<()> {
        let MadeRows {
            ordinal,
            counts,
            rows,
        } = made;
        self.advance(ordinal)?;
        let counters = &self.counters;
        counters.add_structure(rows.source(), rows.structure(), counts);
        let join = |tables: &Arc<Annotations>| tables.join(rows.name(), rows.structure());
        let joined = self.annotations.as_ref().map(join).transpose()?;
        let rows = rows.with_annotations(joined.unwrap_or_default());
        counters.add_left_out(rows.left_out());
        if let Some((tested, chosen)) = rows.tested_atoms() {
            counters.add_tested_atoms(tested, chosen);
        }
        match &mut self.rows {
            Rows::Tables(tables) => {
                let record = tables.append(rows)?;
                let annotations = self.annotations.as_ref();
                if let Some(annotations) = annotations.filter(|_| tables.have_variants()) {
                    annotations.variants(record.name(), record.structure(), |variants| {
                        tables.append_variants(&record, variants)
                    })?;
                }
            }
            Rows::Terminal(table) => table.print(rows)?,
        }
        self.counters.set_inputs(ordinal + 1);
        Ok(())
    }

    /// Lists a rejected input: in the folder, in the stream, or on standard error.
    fn reject(&mut self, rejected: Completion<Features>) -> Result<()> {
        let Input {
            source,
            ordinal,
            model,
            ..
        } = rejected.item;
        let error = rejected.result.err();
        let error = error.expect("the workload has no result without a structure");
        self.advance(ordinal)?;
        let line = format!("{source}: {error}");
        let line = printable(&line);
        tracing::debug!("rejected {line}");
        match (&mut self.folder, &mut self.rejected_batches) {
            (Some(folder), _) => folder.reject(&source, ordinal, model, &error)?,
            (None, Some(batches)) => batches.reject(&source, ordinal, model, &error)?,
            (None, None) => complain(&format!("rejected: {line}")),
        }
        if self.rejected.len() < REJECTED_LISTED_MAX {
            self.rejected.push(line.into_owned());
        }
        self.counters.add_rejected();
        self.counters.set_inputs(ordinal + 1);
        Ok(())
    }
}
