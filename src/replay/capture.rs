//! Capturing operations as a graph: begun, filled, and ended whatever happens.

use crate::backend::{GraphId, Lane, Op};
use crate::error::{Context, Result};

/// Captures `ops` on the lane's stream. The capture is over when this returns,
/// also with an error, which is then the first thing that went wrong.
pub(super) fn capture(lane: &mut dyn Lane, ops: &[Op]) -> Result<GraphId> {
    lane.begin_capture().within(|| "begin capture")?;
    let taken_down = ops.iter().enumerate().try_for_each(|(index, op)| {
        lane.enqueue(op)
            .within(|| format!("capture of command {index}"))
    });
    let ended = lane.end_capture().within(|| "end capture");
    taken_down.and(ended)
}
