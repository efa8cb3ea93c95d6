//! Takes results in order: good ones into the tables, others among the rejected.

use super::inputs::structure_name;
use super::output::OutputFolder;
use super::tables::{Record, Tables};
use super::tally::Tally;
use crate::error::Result;
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
    /// The first rejected inputs, each with its reason.
    pub(super) rejected: Vec<String>,
}

impl Results {
    pub(super) fn new(tables: Tables, folder: OutputFolder, tally: Arc<Tally>) -> Self {
        Results {
            tables,
            folder,
            tally,
            rejected: Vec::new(),
        }
    }

    /// Takes it apart once everything came.
    pub(super) fn into_parts(self) -> (Tables, OutputFolder, Vec<String>) {
        (self.tables, self.folder, self.rejected)
    }

    fn take(&mut self, completion: &Completion<Features>) -> Result<()> {
        let Input {
            source,
            ordinal,
            structure,
        } = &completion.item;
        self.tables.advance(*ordinal)?;
        match (structure, &completion.result) {
            (Ok(structure), Ok(features)) => {
                let name = structure_name(source);
                self.tables
                    .append(&Record::new(source, name, structure, features))?;
                self.tally.add_structure(source, structure);
            }
            (structure, Err(error)) => {
                let model = structure.as_ref().ok().map(|structure| structure.model);
                tracing::debug!(%source, %error, "rejected");
                if self.rejected.len() < NAMED_MAX {
                    self.rejected.push(format!("{source}: {error}"));
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
