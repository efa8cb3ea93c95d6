//! The loops of a slot whose host is the process that started this one.

#![cfg(all(feature = "supervise", target_os = "linux"))]

use super::device_loop::DeviceLoop;
use super::device_slot::CudaSlot;
use super::graph::Resident;
use super::pinned_words::PinnedWords;
use crate::backend::worker::{Arena, RemoteLoops};
use crate::backend::{GraphId, Residency};
use crate::error::{Error, Result};
use std::sync::Arc;
use std::time::Instant;

impl RemoteLoops for CudaSlot {
    fn make_remote_loop(&mut self, graph: GraphId, how: Residency, words: Arena) -> Result<bool> {
        let _outer = self.context.enter();
        self.queues.check_loop()?;
        let graph = self.graphs.get_mut().get_mut(graph)?;
        graph.make_resident(|template| {
            let words = Arc::new(PinnedWords::shared(&self.context, words)?);
            DeviceLoop::new(template, &self.functions, how, words).map(Resident::There)
        })
    }

    unsafe fn launch_remote_loop(&mut self, graph: GraphId) -> Result<()> {
        self.context.check_lost()?;
        let remote = self.graphs.get_mut().get_mut(graph)?.remote_loop();
        let remote = remote.ok_or_else(|| Error::usage("the graph has no loop"))?;
        // SAFETY: the caller's promise for the host's memory. The device's is the slot's own, and
        // lives until the graph and so its loop is dropped.
        unsafe { remote.launch() }
    }

    fn have_remote_loops_ended(&mut self) -> Result<bool> {
        let now = Instant::now();
        let mut loops = self
            .graphs
            .get_mut()
            .values_mut()
            .filter_map(|it| it.remote_loop());
        loops.try_fold(true, |all, remote| Ok(remote.has_ended(now)? && all))
    }
}
