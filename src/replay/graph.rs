//! Making graphs of lowered commands, by capture or by hand.

use super::audit::{Memory, check_held};
use super::give::{Given, build_graph, drop_released, enqueue};
use super::{Build, Lowered, hazards};
use crate::backend::{Built, DeviceSlot, GraphId};
use crate::error::{Context, Error, Result};

/// Why there is no graph, or none that may be launched.
pub(super) struct NotMade {
    error: Error,
    /// The graph that was to take other parameters may hold some of them: a failed
    /// update leaves it undefined.
    pub(super) spoiled: bool,
}

impl From<NotMade> for Error {
    fn from(not_made: NotMade) -> Self {
        not_made.error
    }
}

/// Makes a graph of `body`, or gives its parameters to the graph `into`, and
/// compares what the device then holds with `body`.
///
/// # Errors
/// What the device says, with the command it came to;
/// [`ErrorKind::Mismatch`](crate::ErrorKind::Mismatch) if the graph holds something
/// else.
pub(super) fn make_graph(
    slot: &mut dyn DeviceSlot,
    memory: &Memory<'_>,
    body: &[Lowered],
    build: Build,
    into: Option<GraphId>,
) -> Result<(GraphId, Built), NotMade> {
    let given = give_graph(slot, memory, body, build, into);
    let (graph, built) = given.map_err(|error| NotMade {
        // What the device itself refuses comes with its code.
        spoiled: into.is_some() && error.code().is_some(),
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
            Err(NotMade {
                error: error.within("audit"),
                spoiled: into.is_some(),
            })
        }
    }
}

fn give_graph(
    slot: &mut dyn DeviceSlot,
    memory: &Memory<'_>,
    body: &[Lowered],
    build: Build,
    into: Option<GraphId>,
) -> Result<(GraphId, Built)> {
    match build {
        Build::Capture => capture(slot, into, |slot| {
            body.iter().try_for_each(|lowered| {
                enqueue(slot, lowered.queue(), lowered)
                    .within(|| format!("capture of command {}", lowered.command()))
            })
        }),
        Build::Explicit => {
            let commands: Vec<usize> = body.iter().map(Lowered::command).collect();
            let after = hazards(memory.recording, &commands);
            let given = body.iter().map(Given::Command);
            let nodes: Vec<_> = given.zip(after).collect();
            build_graph(slot, &nodes, into).within(|| "build the graph")
        }
    }
}

/// Captures what `take_down` gives to the slot. The capture is over when this
/// returns, also with an error, which is then the first thing that went wrong.
pub(super) fn capture(
    slot: &mut dyn DeviceSlot,
    into: Option<GraphId>,
    take_down: impl FnOnce(&mut dyn DeviceSlot) -> Result<()>,
) -> Result<(GraphId, Built)> {
    drop_released(slot);
    slot.begin_capture().within(|| "begin capture")?;
    let taken_down = take_down(slot);
    let ended = slot.end_capture(into).within(|| "end capture");
    taken_down.and(ended)
}
