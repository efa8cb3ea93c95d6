//! Taking operations down on a stream.

use super::allocations::Use;
use super::graph::{Draft, Template};
use super::node::Step;
use super::readback::Number;
use super::rights::Checked;
use super::stream::Stream;
use crate::backend::{Call, refused_in_capture};
use crate::error::{Error, ErrorKind, Result};
use cudarc::driver::sys::{self, CUstreamCaptureMode, CUstreamCaptureStatus};
use std::ptr::{null, null_mut};

/// A capture in progress.
pub(super) struct Capture {
    nodes: Vec<sys::CUgraphNode>,
    steps: Vec<Step>,
    parts: Vec<Vec<Use>>,
    /// Whether an operation was refused, so that others may lack it.
    refused: bool,
}

// SAFETY: nodes are handles that any thread may use, one at a time, which owning
// them without `Sync` ensures.
unsafe impl Send for Capture {}

impl Capture {
    /// Relaxed, so that the capture restricts no thread, also not what the program does
    /// on this one before the capture ends, and so that any thread may end it: a slot
    /// is dropped where its owner is.
    pub(super) fn begin(stream: &Stream) -> Result<Capture> {
        let driver = stream.context().bind_for(Call::GraphEdit)?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream lives as long as the reference.
        stream.context().check("cuStreamBeginCapture", unsafe {
            (driver.cuStreamBeginCapture_v2)(stream.raw(), mode)
        })?;
        Ok(Capture {
            nodes: Vec::new(),
            steps: Vec::new(),
            parts: Vec::new(),
            refused: false,
        })
    }

    /// Takes an operation down on the stream that the capture was begun on, or
    /// remembers that it was refused.
    pub(super) fn take(&mut self, stream: &Stream, checked: Result<Checked<'_>>) -> Result<()> {
        let taken = checked.and_then(|checked| {
            checked.check_node()?;
            // SAFETY: the stream captures, so nothing runs.
            unsafe { checked.submit(stream, Call::GraphEdit) }?;
            let node = newest_node(stream)?;
            if self.nodes.last() == Some(&node) {
                let message = "the capture took no node down for the operation";
                return Err(Error::new(ErrorKind::Device, message));
            }
            self.nodes.push(node);
            self.steps.push(Step::of(&checked));
            self.parts.push(checked.into_uses());
            Ok(())
        });
        self.refused |= taken.is_err();
        taken
    }

    /// Ends the capture; it is over in any case.
    pub(super) fn end(self, stream: &Stream) -> Result<Draft> {
        let context = stream.context();
        let driver = context.bind_for(Call::GraphEdit)?;
        let mut raw = null_mut();
        // SAFETY: the stream lives as long as the reference, and `raw` outlives
        // the call.
        let ended = context.check("cuStreamEndCapture", unsafe {
            (driver.cuStreamEndCapture)(stream.raw(), &mut raw)
        });
        // The owner first, so that a graph that came with an error is freed.
        let template = Template::captured(context, raw, self.nodes, self.steps);
        ended?;
        if self.parts.is_empty() {
            return Err(Error::usage("the capture took nothing down"));
        }
        if self.refused {
            return Err(refused_in_capture());
        }
        let (nodes, operations) = (template.count()?, self.parts.len());
        if nodes != operations {
            let message =
                format!("the capture took {nodes} nodes down for {operations} operations");
            return Err(Error::new(ErrorKind::Device, message));
        }
        Ok(Draft {
            template,
            captured: true,
            parts: self.parts,
        })
    }
}

/// The node that the next one of the capture would run after.
fn newest_node(stream: &Stream) -> Result<sys::CUgraphNode> {
    let context = stream.context();
    let driver = context.bind()?;
    let mut status = Number::<CUstreamCaptureStatus>::new();
    let (mut nodes, mut count) = (null(), 0);
    // SAFETY: the stream lives as long as the reference, `status`, `nodes` and
    // `count` outlive the call, and the other places may be null.
    context.check("cuStreamGetCaptureInfo", unsafe {
        (driver.cuStreamGetCaptureInfo_v3)(
            stream.raw(),
            status.place(),
            null_mut(),
            null_mut(),
            &mut nodes,
            null_mut(),
            &mut count,
        )
    })?;
    let active = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE as u32;
    if status.get() != active || count != 1 {
        let message = format!(
            "the capture is in state {} with {count} ends; operations on one stream have one",
            status.get()
        );
        return Err(Error::new(ErrorKind::Device, message));
    }
    // SAFETY: an active capture says at `nodes` which `count` nodes its end are,
    // until the next call on the stream; the check above found one.
    Ok(unsafe { nodes.read() })
}
