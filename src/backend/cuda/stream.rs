//! A stream, an event, and graphs captured on a stream.

use super::code;
use super::context::Context;
use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUevent_flags, CUstream_flags, CUstreamCaptureMode};
use std::sync::Arc;

/// A non-blocking stream: the legacy default stream, which other code in the
/// process may use, neither waits for it nor holds it up.
pub(super) struct Stream {
    context: Arc<Context>,
    raw: sys::CUstream,
}

// SAFETY: a CUstream is a handle that the driver lets any thread use.
unsafe impl Send for Stream {}

impl Stream {
    pub(super) fn new(context: &Arc<Context>) -> Result<Stream> {
        let driver = context.bind()?;
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` outlives the call, and the context is current.
        context.check("cuStreamCreate", unsafe {
            (driver.cuStreamCreate)(&mut raw, flags)
        })?;
        Ok(Stream {
            context: Arc::clone(context),
            raw,
        })
    }

    /// The handle, valid as long as `self` lives.
    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    pub(super) fn synchronize(&self) -> Result<()> {
        let driver = self.context.bind()?;
        // SAFETY: the stream lives as long as `self`.
        self.context.check("cuStreamSynchronize", unsafe {
            (driver.cuStreamSynchronize)(self.raw)
        })
    }

    /// Starts a capture that this thread ends. Other threads may allocate and
    /// synchronise meanwhile.
    pub(super) fn begin_capture(&self) -> Result<()> {
        let driver = self.context.bind()?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives as long as `self`.
        self.context.check("cuStreamBeginCapture", unsafe {
            (driver.cuStreamBeginCapture_v2)(self.raw, mode)
        })
    }

    /// Ends the capture, makes its graph ready to launch, and uploads it, so
    /// that the first launch is as quick as the others.
    pub(super) fn end_capture(&self) -> Result<GraphExec> {
        let driver = self.context.bind()?;
        let mut graph = Graph {
            context: &self.context,
            raw: std::ptr::null_mut(),
        };
        // SAFETY: the stream lives as long as `self`, and `graph` outlives the call.
        self.context.check("cuStreamEndCapture", unsafe {
            (driver.cuStreamEndCapture)(self.raw, &mut graph.raw)
        })?;
        let nodes = graph.nodes()?;
        if nodes == 0 {
            return Err(Error::usage("the capture took nothing down"));
        }
        let exec = graph.instantiate()?;
        // SAFETY: both handles are alive.
        self.context.check("cuGraphUpload", unsafe {
            (driver.cuGraphUpload)(exec.raw, self.raw)
        })?;
        tracing::debug!(nodes, "captured a graph");
        Ok(exec)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(driver) = self.context.bind_to_free() {
            // SAFETY: `raw` came from cuStreamCreate and is destroyed once, here.
            unsafe { (driver.cuStreamDestroy_v2)(self.raw) };
        }
    }
}

/// A mark in a stream.
pub(super) struct Event {
    context: Arc<Context>,
    raw: sys::CUevent,
}

// SAFETY: a CUevent is a handle that the driver lets any thread use.
unsafe impl Send for Event {}

impl Event {
    /// `blocking_wait` makes [`Event::wait`] sleep rather than spin, which
    /// frees the core and adds some 30 us to each wait.
    pub(super) fn new(context: &Arc<Context>, blocking_wait: bool) -> Result<Event> {
        let driver = context.bind()?;
        let mut flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        if blocking_wait {
            flags |= CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` outlives the call, and the context is current.
        context.check("cuEventCreate", unsafe {
            (driver.cuEventCreate)(&mut raw, flags)
        })?;
        Ok(Event {
            context: Arc::clone(context),
            raw,
        })
    }

    pub(super) fn record(&self, stream: &Stream) -> Result<()> {
        let driver = self.context.bind()?;
        // SAFETY: both handles live as long as the references.
        self.context.check("cuEventRecord", unsafe {
            (driver.cuEventRecord)(self.raw, stream.raw)
        })
    }

    /// Whether all before the mark is done. Anything but a plain "not yet" is
    /// an error, so that a poll never spins on a fault.
    pub(super) fn is_done(&self) -> Result<bool> {
        let driver = self.context.bind()?;
        // SAFETY: the event lives as long as `self`.
        let result = unsafe { (driver.cuEventQuery)(self.raw) };
        match result {
            code::NOT_READY => Ok(false),
            _ => self.context.check("cuEventQuery", result).map(|()| true),
        }
    }

    pub(super) fn wait(&self) -> Result<()> {
        let driver = self.context.bind()?;
        // SAFETY: the event lives as long as `self`.
        self.context.check("cuEventSynchronize", unsafe {
            (driver.cuEventSynchronize)(self.raw)
        })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Some(driver) = self.context.bind_to_free() {
            // SAFETY: `raw` came from cuEventCreate and is destroyed once, here.
            unsafe { (driver.cuEventDestroy_v2)(self.raw) };
        }
    }
}

/// What a capture took down; null if it failed.
struct Graph<'a> {
    context: &'a Arc<Context>,
    raw: sys::CUgraph,
}

impl Graph<'_> {
    fn nodes(&self) -> Result<usize> {
        let driver = self.context.bind()?;
        let mut nodes = 0;
        // SAFETY: without an array the call only counts; the graph is alive.
        self.context.check("cuGraphGetNodes", unsafe {
            (driver.cuGraphGetNodes)(self.raw, std::ptr::null_mut(), &mut nodes)
        })?;
        Ok(nodes)
    }

    fn instantiate(&self) -> Result<GraphExec> {
        let driver = self.context.bind()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` outlives the call, and the graph is alive.
        self.context.check("cuGraphInstantiate", unsafe {
            (driver.cuGraphInstantiateWithFlags)(&mut raw, self.raw, 0)
        })?;
        Ok(GraphExec {
            context: Arc::clone(self.context),
            raw,
        })
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null()
            && let Some(driver) = self.context.bind_to_free()
        {
            // SAFETY: `raw` came from cuStreamEndCapture and is destroyed once,
            // here; execs made of it are independent of it.
            unsafe { (driver.cuGraphDestroy)(self.raw) };
        }
    }
}

/// A graph that can be launched, over and over.
pub(super) struct GraphExec {
    context: Arc<Context>,
    raw: sys::CUgraphExec,
}

// SAFETY: a CUgraphExec is a handle that any thread may use, one at a time,
// which owning it without `Sync` ensures.
unsafe impl Send for GraphExec {}

impl GraphExec {
    pub(super) fn launch(&mut self, stream: &Stream) -> Result<()> {
        let driver = self.context.bind()?;
        // SAFETY: both handles are alive. What the graph's nodes touch is for
        // the owner to keep alive: the lane that captured it does.
        self.context.check("cuGraphLaunch", unsafe {
            (driver.cuGraphLaunch)(self.raw, stream.raw)
        })
    }
}

impl Drop for GraphExec {
    fn drop(&mut self) {
        if let Some(driver) = self.context.bind_to_free() {
            // SAFETY: `raw` came from cuGraphInstantiate and is destroyed once, here.
            unsafe { (driver.cuGraphExecDestroy)(self.raw) };
        }
    }
}
