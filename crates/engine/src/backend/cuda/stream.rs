//! Streams and events.

use super::context::PrimaryContext;
use super::result_codes;
use crate::backend::{Call, ExternalEvent, Priority};
use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUevent_flags, CUstream_flags};
use std::ffi::c_int;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a wait is repeated that the driver refuses because of a capture: long enough for the capture
/// of other code to end, and short enough for a caller to see the error.
const REFUSED_MAX: Duration = if cfg!(test) {
    Duration::from_millis(20)
} else {
    Duration::from_secs(10)
};
/// The time between two attempts.
const REFUSED_PAUSE: Duration = Duration::from_millis(1);

/// Makes a call that waits for work. In the relaxed mode the driver should not refuse it because of
/// a capture; if it does, the call is repeated, as the work goes on all the same. After
/// [`REFUSED_MAX`] the refusal is the error, and the work still counts as in flight.
fn wait_out(context: &PrimaryContext, name: &str, wait: impl Fn() -> i32) -> Result<()> {
    let mut first = None;
    loop {
        let result = wait();
        if !result_codes::is_of_capture(result)
            || first.get_or_insert_with(Instant::now).elapsed() >= REFUSED_MAX
        {
            return context.check(name, result);
        }
        std::thread::sleep(REFUSED_PAUSE);
    }
}

/// The highest priority, which is the least number.
pub(super) fn greatest_priority(context: &PrimaryContext) -> Result<c_int> {
    let driver = context.bind()?;
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: both outlive the call, and the context is current.
    context.check("cuCtxGetStreamPriorityRange", unsafe {
        (driver.cuCtxGetStreamPriorityRange)(&mut least, &mut greatest)
    })?;
    Ok(greatest)
}

/// A non-blocking stream, which does not synchronize with the legacy default stream that other code
/// in the process may use.
pub(super) struct Stream {
    context: Arc<PrimaryContext>,
    priority: Priority,
    raw: sys::CUstream,
}

// SAFETY: a CUstream is a handle that the driver lets any thread use.
unsafe impl Send for Stream {}
// SAFETY: the driver lets several threads use it at once too; it puts what they
// give in one order.
unsafe impl Sync for Stream {}

impl Stream {
    /// The driver's handle.
    pub(super) fn handle(&self) -> u64 {
        self.raw as u64
    }

    /// A stream of normal priority.
    pub(super) fn new(context: &Arc<PrimaryContext>) -> Result<Stream> {
        let driver = context.bind()?;
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` outlives the call, and the context is current.
        context.check("cuStreamCreate", unsafe {
            (driver.cuStreamCreate)(&mut raw, flags)
        })?;
        Ok(Stream {
            context: Arc::clone(context),
            priority: Priority::Normal,
            raw,
        })
    }

    /// A stream with a priority. A graph that is launched into it runs with that priority too, unless
    /// it was made with priorities for its nodes.
    pub(super) fn of_priority(context: &Arc<PrimaryContext>, priority: Priority) -> Result<Stream> {
        if priority == Priority::Normal {
            return Stream::new(context);
        }
        let greatest = greatest_priority(context)?;
        let driver = context.bind()?;
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` outlives the call, and the context is current.
        context.check("cuStreamCreateWithPriority", unsafe {
            (driver.cuStreamCreateWithPriority)(&mut raw, flags, greatest)
        })?;
        Ok(Stream {
            context: Arc::clone(context),
            priority,
            raw,
        })
    }

    pub(super) fn priority(&self) -> Priority {
        self.priority
    }

    pub(super) fn context(&self) -> &Arc<PrimaryContext> {
        &self.context
    }

    /// The handle, valid as long as `self` lives.
    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    pub(super) fn synchronize(&self) -> Result<()> {
        let driver = self.context.bind_for(Call::Poll)?;
        wait_out(&self.context, "cuStreamSynchronize", || {
            // SAFETY: the stream lives as long as `self`.
            unsafe { (driver.cuStreamSynchronize)(self.raw) }
        })
    }

    /// Makes later work of the stream wait for an event of other code.
    ///
    /// An event that a capture recorded is refused: the wait would make the stream a part of the
    /// capture, and none of its work would run.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for such an event.
    pub(super) fn wait_for_external(&self, event: &ExternalEvent) -> Result<()> {
        let driver = self.context.bind_for(Call::Submission)?;
        let raw = event.handle() as sys::CUevent;
        // SAFETY: the event lives as long as the caller's reference to it, as its maker has promised.
        let queried = unsafe { (driver.cuEventQuery)(raw) };
        if queried == result_codes::INVALID_VALUE || result_codes::is_of_capture(queried) {
            let message = "a batch cannot wait for an event that was recorded in a capture";
            return Err(Error::usage(message)
                .fix("end the capture, launch its graph, and record the event behind that"));
        }
        // SAFETY: the stream lives as long as `self`, and the event as long as the caller's reference
        // to it, as its maker has promised.
        self.context.check("cuStreamWaitEvent", unsafe {
            (driver.cuStreamWaitEvent)(self.raw, raw, 0)
        })
    }

    /// Lets an event of other code record the work of the stream so far.
    pub(super) fn record_external(&self, event: &ExternalEvent) -> Result<()> {
        self.record_raw(event.handle() as sys::CUevent, Call::Submission)
    }

    fn record_raw(&self, event: sys::CUevent, call: Call) -> Result<()> {
        let driver = self.context.bind_for(call)?;
        // SAFETY: the stream lives as long as `self`, and the event as long as the caller's reference to it.
        self.context.check("cuEventRecord", unsafe {
            (driver.cuEventRecord)(event, self.raw)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(driver) = self.context.bind_to_free() {
            // SAFETY: `raw` came from the driver, for this value, and is destroyed once, here.
            unsafe { (driver.cuStreamDestroy_v2)(self.raw) };
        }
    }
}

/// An event.
pub(super) struct Event {
    context: Arc<PrimaryContext>,
    raw: sys::CUevent,
}

// SAFETY: a CUevent is a handle that the driver lets any thread use.
unsafe impl Send for Event {}
// SAFETY: as for [`Stream`], several threads may record, query and wait for it at once.
unsafe impl Sync for Event {}

impl Event {
    /// `blocking_wait` makes [`Event::wait`] sleep instead of spin, which frees the core and adds
    /// about 30 us to each wait.
    pub(super) fn new(context: &Arc<PrimaryContext>, blocking_wait: bool) -> Result<Event> {
        let mut flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        if blocking_wait {
            flags |= CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        }
        Event::with_flags(context, flags)
    }

    /// An event that records the time.
    pub(super) fn timed(context: &Arc<PrimaryContext>) -> Result<Event> {
        context.calls.add(Call::Timing);
        Event::with_flags(context, CUevent_flags::CU_EVENT_DEFAULT as u32)
    }

    /// Makes an event with flags of the driver.
    fn with_flags(context: &Arc<PrimaryContext>, flags: u32) -> Result<Event> {
        let driver = context.bind()?;
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

    pub(super) fn context(&self) -> &Arc<PrimaryContext> {
        &self.context
    }

    pub(super) fn raw(&self) -> sys::CUevent {
        self.raw
    }

    pub(super) fn record(&self, stream: &Stream) -> Result<()> {
        self.record_for(stream, Call::Submission)
    }

    /// [`Event::record`], counted as `call`.
    pub(super) fn record_for(&self, stream: &Stream, call: Call) -> Result<()> {
        stream.record_raw(self.raw, call)
    }

    /// Whether all work before the event is done. Any result but "not ready" is an error, so that a
    /// poll never spins on a fault.
    ///
    /// A refusal because of a capture counts as "not ready", as the work goes on all the same. In
    /// the relaxed mode the driver should not refuse; if it did so for ever, the caller's deadline
    /// would end the wait.
    pub(super) fn is_done(&self) -> Result<bool> {
        let driver = self.context.bind_for(Call::Poll)?;
        // SAFETY: the event lives as long as `self`.
        let result = unsafe { (driver.cuEventQuery)(self.raw) };
        match result {
            result_codes::NOT_READY => Ok(false),
            refused if result_codes::is_of_capture(refused) => Ok(false),
            _ => self.context.check("cuEventQuery", result).map(|()| true),
        }
    }

    pub(super) fn wait(&self) -> Result<()> {
        self.wait_for(Call::Poll)
    }

    /// [`Event::wait`], counted as `call`.
    pub(super) fn wait_for(&self, call: Call) -> Result<()> {
        let driver = self.context.bind_for(call)?;
        wait_out(&self.context, "cuEventSynchronize", || {
            // SAFETY: the event lives as long as `self`.
            unsafe { (driver.cuEventSynchronize)(self.raw) }
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
