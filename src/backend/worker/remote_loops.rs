//! Loops on a worker's device whose host is the engine's process.

use super::Arena;
use crate::backend::{DeviceSlot, GraphId, Residency};
use crate::error::{Error, Result};

/// A slot that another process may be the host of the loops of: that process gives them batches
/// through words in memory that both share, and says when they are launched.
///
/// The defaults are those of a device without loops.
pub(in crate::backend) trait RemoteLoops: DeviceSlot {
    /// As [`DeviceSlot::make_resident`], with the words of the loop in `words`, which are 0 or what
    /// earlier loops left there.
    fn make_remote_loop(&mut self, graph: GraphId, how: Residency, words: Arena) -> Result<bool> {
        let _ = (graph, how, words);
        Ok(false)
    }

    /// Launches the loop of a graph, which has parked, for the batch that was rung last.
    ///
    /// # Safety
    /// The other process keeps off the host memory that the graph accesses from a ring until the
    /// batch is done, or this process has ended.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a graph without such a loop, or those of
    /// the device.
    unsafe fn launch_remote_loop(&mut self, graph: GraphId) -> Result<()> {
        let _ = graph;
        Err(Error::usage(
            "the graph has no loop that another process rings",
        ))
    }

    /// Whether all such loops have ended, as far as is known. A loop that failed is seen within
    /// milliseconds if this is asked again and again.
    ///
    /// # Errors
    /// The error that ended a loop, and lost the device.
    fn have_remote_loops_ended(&mut self) -> Result<bool> {
        Ok(true)
    }
}
