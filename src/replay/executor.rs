//! One slot's ready-to-run batches, one for each bucket.

use super::capture::capture;
use super::{Bindings, lower};
use crate::backend::{FunctionId, GraphId, Lane, Op};
use crate::error::{Context, Result};
use crate::record::Recording;

/// How a batch reaches the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// One graph launch for the whole batch.
    #[default]
    Graph,
    /// One call for each command.
    Stream,
}

impl Mode {
    /// The name in configs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Graph => "graph",
            Mode::Stream => "stream",
        }
    }
}

/// The lowered commands of each bucket, and in graph mode their graphs.
pub struct Executor {
    batches: Vec<Replayable>,
}

enum Replayable {
    Graph(GraphId),
    Stream(Vec<Op>),
}

impl Executor {
    /// Lowers each bucket's recording against the lane, and captures it.
    ///
    /// # Errors
    /// What the device says of the capture, with the command it came to.
    pub fn new(
        lane: &mut dyn Lane,
        buckets: &[Recording],
        functions: &[Vec<FunctionId>],
        mode: Mode,
    ) -> Result<Self> {
        let ready = |(index, (recording, functions)): (usize, (&Recording, &Vec<_>))| {
            let bindings = Bindings::new(recording, &*lane, functions.clone());
            let ops = lower(recording, &bindings);
            match mode {
                Mode::Stream => Ok(Replayable::Stream(ops)),
                Mode::Graph => capture(&mut *lane, &ops)
                    .map(Replayable::Graph)
                    .within(|| format!("bucket {index}")),
            }
        };
        let batches = buckets
            .iter()
            .zip(functions)
            .enumerate()
            .map(ready)
            .collect::<Result<_>>()?;
        Ok(Executor { batches })
    }

    /// Gives one batch of a bucket to the lane, and marks its end.
    ///
    /// # Errors
    /// What the device says.
    pub fn replay(&self, lane: &mut dyn Lane, bucket: usize) -> Result<()> {
        match &self.batches[bucket] {
            Replayable::Graph(graph) => lane.launch_graph(*graph).within(|| "graph launch")?,
            Replayable::Stream(ops) => {
                for (index, op) in ops.iter().enumerate() {
                    lane.enqueue(op).within(|| format!("command {index}"))?;
                }
            }
        }
        lane.fence().within(|| "fence")
    }

    /// Driver calls that one replay of a bucket makes, the mark included.
    pub fn calls(&self, bucket: usize) -> usize {
        1 + match &self.batches[bucket] {
            Replayable::Graph(_) => 1,
            Replayable::Stream(ops) => ops.len(),
        }
    }
}
