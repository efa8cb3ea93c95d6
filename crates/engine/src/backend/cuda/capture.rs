//! Captures operations on a stream.

use super::address_checks::Checked;
use super::graph::Template;
use super::graph_node::NodeKind;
use super::readback::DriverNumber;
use super::stream::Stream;
use crate::backend::Call;
use crate::error::{Context as _, Error, ErrorKind, Result};
use cudarc::driver::sys::{self, CUstreamCaptureMode, CUstreamCaptureStatus};
use std::ptr::{null, null_mut};

/// Captures operations in their order. `programmatic` are the starts of programmatic edges, by node.
///
/// # Errors
/// Those of the driver, with the operation; [`ErrorKind::Device`] if it made another number of
/// nodes than operations, as they could not be told apart.
pub(super) fn capture(
    stream: &Stream,
    checked: &[Checked<'_>],
    programmatic: Vec<Option<usize>>,
) -> Result<Template> {
    let capture = Capture::begin(stream).within(|| "begin capture")?;
    let mut nodes = Vec::with_capacity(checked.len());
    let mut captured = Ok(());
    for (place, checked) in checked.iter().enumerate() {
        let starts_early = programmatic[place].is_some();
        match capture.record(checked, &nodes, starts_early) {
            Ok(node) => nodes.push(node),
            Err(error) => {
                captured = Err(error.within(format!("operation {place}")));
                break;
            }
        }
    }
    let (raw, ended) = capture.end();
    let kinds = checked.iter().map(NodeKind::new).collect();
    // Owned before the errors are looked at, so that a graph that came with one is freed.
    let template = Template::captured(stream.context(), raw, nodes, kinds, programmatic);
    captured.and(ended.within(|| "end capture"))?;
    let (nodes, operations) = (template.count()?, checked.len());
    if nodes != operations {
        let message = format!("the capture made {nodes} graph nodes for {operations} operations");
        return Err(Error::new(ErrorKind::Device, message));
    }
    Ok(template)
}

/// Captures the work of a library call, of which the driver knows the nodes.
///
/// # Errors
/// [`ErrorKind::Kernel`] if the call gave its stream no work.
pub(super) fn capture_call(stream: &Stream, checked: &Checked<'_>) -> Result<Template> {
    let capture = Capture::begin(stream).within(|| "begin capture")?;
    // SAFETY: the stream captures, so nothing runs.
    let submitted = unsafe { checked.submit(stream, Call::GraphEdit, false) };
    let (raw, ended) = capture.end();
    let template = Template::captured(stream.context(), raw, Vec::new(), Vec::new(), Vec::new());
    submitted.and(ended.within(|| "end capture"))?;
    match template.count()? {
        0 => {
            let message = "the library call gave its stream no work";
            Err(Error::new(ErrorKind::Kernel, message))
        }
        _ => Ok(template),
    }
}

/// A capture in progress, which ends in any case.
struct Capture<'a>(&'a Stream);

impl<'a> Capture<'a> {
    /// In the relaxed mode, so that the capture restricts no thread.
    fn begin(stream: &'a Stream) -> Result<Capture<'a>> {
        let driver = stream.context().bind_for(Call::GraphEdit)?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream lives as long as the reference.
        stream.context().check("cuStreamBeginCapture", unsafe {
            (driver.cuStreamBeginCapture_v2)(stream.raw(), mode)
        })?;
        Ok(Capture(stream))
    }

    /// Records an operation after the nodes `earlier`. Returns its node.
    fn record(
        &self,
        checked: &Checked<'_>,
        earlier: &[sys::CUgraphNode],
        starts_early: bool,
    ) -> Result<sys::CUgraphNode> {
        // SAFETY: the stream captures, so nothing runs.
        unsafe { checked.submit(self.0, Call::GraphEdit, starts_early) }?;
        self.new_node(earlier)
    }

    /// The node that the next operation of the capture would run after, and that is not among
    /// `earlier`. Behind a programmatic edge the driver may list earlier nodes too. If there is no
    /// such node, or there are several, it is an [`ErrorKind::Device`].
    fn new_node(&self, earlier: &[sys::CUgraphNode]) -> Result<sys::CUgraphNode> {
        let context = self.0.context();
        let driver = context.bind()?;
        let mut status = DriverNumber::<CUstreamCaptureStatus>::new();
        // Without a place for edges, the call is refused where one is not a full edge.
        let (mut nodes, mut edges, mut count) = (null(), null(), 0);
        // SAFETY: the stream lives as long as the reference, `status`, `nodes`, `edges` and `count`
        // outlive the call, and the other places may be null.
        context.check("cuStreamGetCaptureInfo", unsafe {
            (driver.cuStreamGetCaptureInfo_v3)(
                self.0.raw(),
                status.place(),
                null_mut(),
                null_mut(),
                &mut nodes,
                &mut edges,
                &mut count,
            )
        })?;
        let active = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE as u32;
        let ends = if status.get() == active && count > 0 {
            // SAFETY: an active capture lists at `nodes` the `count` nodes at its end, until the
            // next call on the stream.
            unsafe { std::slice::from_raw_parts(nodes, count) }
        } else {
            &[]
        };
        let mut new = ends.iter().filter(|node| !earlier.contains(node));
        match (new.next(), new.next()) {
            (Some(node), None) => Ok(*node),
            _ => Err(Error::new(
                ErrorKind::Device,
                format!(
                    "the capture is in state {} with {count} ends, of which the operation has to \
                     make one",
                    status.get()
                ),
            )),
        }
    }

    /// Ends the capture. Returns its graph, null if there is none.
    fn end(self) -> (sys::CUgraph, Result<()>) {
        let mut raw = null_mut();
        let ended = self.end_into(&mut raw);
        std::mem::forget(self);
        (raw, ended)
    }

    /// Ends the capture. `raw` gets its graph, which is null if the capture was invalidated.
    fn end_into(&self, raw: &mut sys::CUgraph) -> Result<()> {
        let context = self.0.context();
        let driver = context.bind_for(Call::GraphEdit)?;
        // SAFETY: the stream lives as long as the reference, and `raw` outlives the call.
        context.check("cuStreamEndCapture", unsafe {
            (driver.cuStreamEndCapture)(self.0.raw(), raw)
        })
    }
}

impl Drop for Capture<'_> {
    /// Only after a panic: the graph is leaked, and the stream is usable again.
    fn drop(&mut self) {
        let _ = self.end_into(&mut null_mut());
    }
}
