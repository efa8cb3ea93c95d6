//! A slot's timestamps: events with a time, or the clock that its loops read, and the conversion to
//! the host's clock.

use super::context::PrimaryContext;
use super::loop_clock::{BatchTimes, LoopClock};
use super::result_codes;
use super::stream::{Event, Stream};
use crate::backend::{self, Call, Op, TIMESTAMPS, host_ns};
use crate::error::Result;
use cudarc::driver::sys;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The driver returns differences as 32-bit floating-point milliseconds: within a second of the
/// base they are exact to 0.1 us, which is finer than the resolution of events.
const BASE_AGE_MAX: Duration = Duration::from_secs(1);

/// Attempts to find the base; the quickest is the least disturbed. Each waits for the device.
const BASE_ROUNDS: usize = 4;

/// The events of one slot, created at their first use.
pub(super) struct Timestamps {
    context: Arc<PrimaryContext>,
    clock: Arc<DeviceClock>,
    events: Option<[Event; TIMESTAMPS]>,
}

impl Timestamps {
    pub(super) fn new(context: &Arc<PrimaryContext>, clock: &Arc<DeviceClock>) -> Timestamps {
        Timestamps {
            context: Arc::clone(context),
            clock: Arc::clone(clock),
            events: None,
        }
    }

    pub(super) fn context(&self) -> &Arc<PrimaryContext> {
        &self.context
    }

    /// Creates the events if `op` needs one and there are none.
    pub(super) fn make_for(&mut self, op: &Op) -> Result<()> {
        if let (Op::Timestamp { .. }, None) = (op, &self.events) {
            let event = || Event::timed(&self.context);
            self.events = Some([event()?, event()?, event()?, event()?]);
        }
        Ok(())
    }

    /// The event of a timestamp, which lives as long as `self`.
    pub(super) fn event(&self, timestamp: u32) -> Result<sys::CUevent> {
        let events = self.events.as_ref();
        let event = events.and_then(|events| events.get(timestamp as usize));
        let event = event.ok_or_else(|| backend::no_timestamp(timestamp))?;
        Ok(event.raw())
    }

    /// Leaks the events: graphs that still run may record them.
    pub(super) fn leak(&mut self) {
        std::mem::forget(self.events.take());
    }

    /// The timestamp whose event this is.
    pub(super) fn find(&self, raw: sys::CUevent) -> Option<u32> {
        let mut events = self.events.iter().flatten();
        let place = events.position(|event| event.raw() == raw)?;
        Some(place as u32)
    }

    /// The timestamps of a batch of a loop.
    pub(super) fn of_batch(&self, batch: &BatchTimes) -> backend::Timestamps {
        let (begun, ended) = self.clock.of_loops.convert(batch);
        backend::timestamp::of_whole_batch(begun, ended)
    }

    /// When each was last recorded, on the host's clock.
    pub(super) fn read(&self) -> Result<backend::Timestamps> {
        let mut timestamps = [None; TIMESTAMPS];
        if let Some(events) = &self.events {
            let base = self.clock.base(&self.context)?;
            let base = base.as_ref().expect("just found");
            for (timestamp, event) in timestamps.iter_mut().zip(events) {
                let since = event.ns_since(&base.event)?;
                *timestamp = since.map(|ns| base.at_ns.saturating_add_signed(ns));
            }
        }
        Ok(timestamps)
    }
}

/// The relation of the device's clocks to the host's, shared by all slots of a context.
#[derive(Default)]
pub(super) struct DeviceClock {
    /// The reference for the times of events.
    base: Mutex<Option<Base>>,
    of_loops: LoopClock,
}

/// An event, and its time on the host's clock.
struct Base {
    /// An idle stream, on which an event is recorded at once.
    stream: Stream,
    event: Event,
    /// Recorded by the next attempt, and swapped with `event` if that was the quickest so far.
    spare: Event,
    /// When `event` was recorded, on the host's clock.
    at_ns: u64,
    found: Instant,
}

impl DeviceClock {
    /// The base, measured again if there is none or it is old.
    fn base(
        &self,
        context: &Arc<PrimaryContext>,
    ) -> Result<parking_lot::MutexGuard<'_, Option<Base>>> {
        let mut base = self.base.lock();
        match &mut *base {
            Some(base) if base.found.elapsed() <= BASE_AGE_MAX => {}
            Some(base) => base.find()?,
            None => {
                let mut fresh = Base {
                    stream: Stream::new(context)?,
                    event: Event::timed(context)?,
                    spare: Event::timed(context)?,
                    at_ns: 0,
                    found: Instant::now(),
                };
                fresh.find()?;
                *base = Some(fresh);
            }
        }
        Ok(base)
    }
}

impl Base {
    /// Finds a moment on both clocks: records an event, waits for it, and takes the host's time
    /// before and after. Of several rounds the quickest counts, as its error is smallest.
    fn find(&mut self) -> Result<()> {
        let mut quickest = Duration::MAX;
        for _ in 0..BASE_ROUNDS {
            let before = Instant::now();
            self.spare.record_for(&self.stream, Call::Timing)?;
            self.spare.wait_for(Call::Timing)?;
            let took = before.elapsed();
            if took < quickest {
                quickest = took;
                // The event was recorded between the two readings: the middle is wrong by half of
                // the difference at most.
                self.at_ns = host_ns(before + took / 2);
                std::mem::swap(&mut self.event, &mut self.spare);
            }
        }
        self.found = Instant::now();
        Ok(())
    }
}

impl Event {
    /// The time from `base` to the event in nanoseconds; `None` if it was never recorded.
    fn ns_since(&self, base: &Event) -> Result<Option<i64>> {
        let context = self.context();
        let driver = context.bind_for(Call::Timing)?;
        let mut ms = 0.0_f32;
        // SAFETY: `ms` outlives the call, and both events the references.
        let result = unsafe { (driver.cuEventElapsedTime)(&mut ms, base.raw(), self.raw()) };
        match result {
            // An event that was never recorded has no time.
            result_codes::INVALID_HANDLE => Ok(None),
            _ => context.check("cuEventElapsedTime", result).map(|()| {
                let ns = f64::from(ms) * 1e6;
                Some(ns as i64)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_second_of_milliseconds_resolves_less_than_a_tenth_of_a_microsecond() {
        let second_ms = 1000.0_f32;
        let step_ms = f32::from_bits(second_ms.to_bits() + 1) - second_ms;
        assert!(step_ms < 1e-4);
    }
}
