//! Graphs of lowered commands.

use super::audit::{AllowedMemory, check_held};
use super::submit::{NodeSource, make_graph as submit_graph};
use super::{Build, Lowered, hazards};
use crate::backend::{Built, DeviceSlot, GraphId};
use crate::error::{Context, Error, Result};

/// Why a graph could not be made or changed.
pub(super) struct GraphFailure {
    pub(super) error: Error,
    /// Whether the graph that was to change may hold some of the change: the driver leaves it
    /// undefined after a failed update.
    pub(super) is_spoiled: bool,
}

impl From<GraphFailure> for Error {
    fn from(failure: GraphFailure) -> Self {
        failure.error
    }
}

/// Makes a graph of `body`, or gives its parameters to the graph `into`, and compares what the
/// device then holds with `body`.
///
/// # Errors
/// The errors of [`DeviceSlot::make_graph`]; [`ErrorKind::Mismatch`](crate::ErrorKind::Mismatch) if
/// the graph holds something else than `body`.
pub(super) fn make_graph(
    slot: &mut dyn DeviceSlot,
    memory: &AllowedMemory<'_>,
    body: &[Lowered],
    build: Build,
    into: Option<GraphId>,
) -> Result<(GraphId, Built), GraphFailure> {
    let nodes = body.iter().map(NodeSource::Command);
    let nodes: Vec<_> = nodes.zip(edges(memory, body, build)).collect();
    let made = submit_graph(slot, &nodes, build, into);
    let (graph, built) = made.map_err(|error| GraphFailure {
        // Only errors of the driver carry a code.
        is_spoiled: into.is_some() && error.code().is_some(),
        error,
    })?;
    let held = slot.graph_ops(graph).within(|| "read the graph back");
    let audited = held.and_then(|held| check_held(body, &held, memory));
    match audited {
        Ok(()) => Ok((graph, built)),
        Err(error) => {
            if into.is_none() {
                slot.drop_graph(graph);
            }
            Err(GraphFailure {
                error: error.within("audit"),
                is_spoiled: into.is_some(),
            })
        }
    }
}

/// For each command of `body`, the places of those that an explicit graph runs it after. A
/// captured graph runs its commands in their order and has no edges to state.
pub(super) fn edges(memory: &AllowedMemory<'_>, body: &[Lowered], build: Build) -> Vec<Vec<usize>> {
    match build {
        Build::Capture => vec![Vec::new(); body.len()],
        Build::Explicit => {
            let commands: Vec<usize> = body.iter().map(Lowered::command).collect();
            hazards(memory.recording, &commands)
        }
    }
}
