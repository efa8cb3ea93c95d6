//! Takes results in order: good ones into the tables, others among the rejected.

use super::heading::Heading;
use super::inputs::structure_name;
use super::output::OutputFolder;
use super::tables::{Record, Tables, Written};
use super::tally::{Counts, Tally};
use crate::error::{Result, printable};
use crate::features::{Features, Input};
use crate::workload::{Completion, Sink};
use std::sync::Arc;
use std::time::Instant;

/// Rejected inputs that the summary names.
const NAMED_MAX: usize = 10;

/// Where the results of a run go.
pub(super) struct Results {
    tables: Tables,
    folder: OutputFolder,
    tally: Arc<Tally>,
    heading: Heading,
    kept: Kept,
    /// The first rejected inputs, each with its reason.
    rejected: Vec<String>,
}

/// What the parts hold that all tables have: what is left of a run after a kill.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    pub(super) parts: u64,
    /// Of the run when the last of the parts ended.
    pub(super) counts: Counts,
}

/// Results when all have come.
pub(super) struct Ended {
    pub(super) folder: OutputFolder,
    pub(super) kept: Kept,
    /// What the tables say of their columns; an error if not all parts are there.
    pub(super) written: Result<Written>,
    /// The first rejected inputs, each with its reason.
    pub(super) rejected: Vec<String>,
}

impl Results {
    /// Starts the record of the run.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn start(
        tables: Tables,
        folder: OutputFolder,
        tally: Arc<Tally>,
        heading: Heading,
    ) -> Result<Self> {
        let kept = Kept::default();
        folder.record(&heading.running(&kept))?;
        Ok(Results {
            tables,
            folder,
            tally,
            heading,
            kept,
            rejected: Vec::new(),
        })
    }

    /// Ends the tables, unless the stream of results was cut short: then the open parts are
    /// dropped, and leave nothing behind.
    pub(super) fn end(self, streamed: Result<()>) -> Ended {
        let Results {
            tables,
            folder,
            tally,
            mut kept,
            rejected,
            ..
        } = self;
        let written = streamed.and_then(|()| {
            let start = Instant::now();
            let written = tables.finish();
            tally.add_write(start.elapsed());
            written
        });
        if let Ok(written) = &written {
            kept = Kept {
                parts: written.parts,
                counts: tally.counts(),
            };
        }
        Ended {
            folder,
            kept,
            written,
            rejected,
        }
    }

    /// Comes to an input, and records the parts if one ends here.
    fn advance(&mut self, ordinal: u64) -> Result<()> {
        self.tables.advance(ordinal)?;
        let parts = self.tables.parts();
        if parts > self.kept.parts {
            // The tally has all before this input, and nothing of it yet.
            let counts = self.tally.counts();
            self.kept = Kept { parts, counts };
            self.folder.record(&self.heading.running(&self.kept))?;
        }
        Ok(())
    }

    fn take(&mut self, completion: &Completion<Features>) -> Result<()> {
        let Input {
            source,
            ordinal,
            structure,
        } = &completion.item;
        self.advance(*ordinal)?;
        match (structure, &completion.result) {
            (Ok(structure), Ok(features)) => {
                let name = structure_name(source);
                self.tables
                    .append(&Record::new(source, name, structure, features))?;
                self.tally.add_structure(source, structure);
            }
            (structure, Err(error)) => {
                let model = structure.as_ref().ok().map(|structure| structure.model);
                let line = format!("{source}: {error}");
                let line = printable(&line);
                tracing::debug!("rejected {line}");
                if self.rejected.len() < NAMED_MAX {
                    self.rejected.push(line.into_owned());
                }
                self.folder.reject(source, *ordinal, model, error)?;
                self.tally.add_rejected();
            }
            (Err(_), Ok(_)) => unreachable!("the workload has no result without a structure"),
        }
        self.tally.set_inputs(ordinal + 1);
        Ok(())
    }
}

impl Sink<Features> for Results {
    fn accept(&mut self, completion: Completion<Features>) -> Result<()> {
        let start = Instant::now();
        let taken = self.take(&completion);
        self.tally.add_write(start.elapsed());
        taken
    }
}
