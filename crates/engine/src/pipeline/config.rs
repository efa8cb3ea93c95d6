//! Settings of an engine and of submissions to it.

use super::ring::Wait;
use super::timeline::TimelineConfig;
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::{Error, Result};
use crate::replay::{Mode, Policy};
use crate::workload::Extent;
use std::fmt;
use std::time::{Duration, Instant};
use tapeloop_error::internal::LaterFields;

/// The most slots of one device: far more than the three that keep it busy, for results that borrow slots.
pub const SLOTS_MAX: usize = 64;

/// When an [`Engine`](super::Engine) closes a batch that has room for more items. A run closes its
/// batches by size only, and a [`Pipeline`](super::Pipeline) when its caller asks or polls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Close {
    /// As soon as a slot is free: a lone item waits for no others. Items that arrive while all slots
    /// are in use travel together.
    #[default]
    Idle,
    /// After [`EngineConfig::batch_wait`], or at the item's
    /// [`deadline`](SubmitOptions::deadline) if that is earlier.
    Full,
}

/// Settings of an engine. Later versions may add fields: start from [`EngineConfig::new`].
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
/// # use tapeloop_engine::*;
/// # fn main() -> Result<()> {
/// use tapeloop_engine::{Engine, EngineConfig, Extent};
///
/// let config = EngineConfig {
///     slots: 4,
///     buckets: vec![Extent::from([1 << 16]), Extent::from([1 << 20])],
///     ..EngineConfig::new([1 << 20])
/// };
/// let engine = Engine::auto(Double::new()?, &config)?;
/// assert_eq!(engine.memory().slots, 4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Slots on each device. Three keep upload, compute and download busy at the same time. Results
    /// that borrow slots ([`ReadViews::lease`](crate::workload::ReadViews::lease)) need more.
    pub slots: usize,
    /// The slots among them that are kept for urgent batches ([`SubmitOptions::urgent`]); 0, the
    /// default, for none. Urgent items then share no batch with others, and find a free slot while fewer
    /// urgent batches than that are in flight. On a GPU the kernels of these slots have the
    /// highest priority: they start before kernels of other batches that wait for a multiprocessor. An
    /// urgent item that comes while all of them are in flight waits: two slots rather than one halve that
    /// wait where items come one after the other (`examples/priorities.rs`).
    ///
    /// At least one slot must be left for other batches. With [`Mode::Resident`] this has to be 0, as
    /// loops on the device have no priority.
    pub urgent_slots: usize,
    /// Graph replay or stream launches, with their settings.
    pub policy: Policy,
    /// A batch closes before it exceeds this. It also closes at 65,536 items that take no room,
    /// such as rejected ones.
    pub batch: Extent,
    /// Capacities that batches are recorded for, smallest first. A batch runs in the first bucket
    /// that holds it, and its copies have the size of that bucket. The last bucket limits the size of
    /// an item.
    ///
    /// Empty, the default, stands for [`EngineConfig::batch`], its half, its quarter and so on, down
    /// to a batch that copies at most 64 KiB; an axis whose units take few of these bytes keeps its
    /// length, and there are at most [`Policy::ready_max`] buckets. With [`Mode::Resident`] it stands
    /// for `batch` alone, as a device runs at most 64 loops.
    ///
    /// All buckets of a slot share its memory. Each has a graph of its own in each slot, and with
    /// [`Verify::First`](crate::replay::Verify::First) the first batch of each runs twice.
    pub buckets: Vec<Extent>,
    /// When a batch closes that is not full.
    pub close: Close,
    /// The longest that a submitted item waits for its batch to fill, with [`Close::Full`].
    pub batch_wait: Duration,
    /// The closed batches that may wait for a slot, of urgent items and of others each, before a submission
    /// waits or is refused; at least 1. A larger number absorbs bursts, and lets items wait longer for a
    /// slot. A [`Pipeline`](super::Pipeline) refuses items while one batch waits, whatever this is.
    pub waiting_batches_max: usize,
    /// The largest amount of device and pinned memory together, in bytes; `None` for no budget.
    ///
    /// With a budget the engine allocates all of its plan or fails. Without one it tries with less
    /// if memory runs out: fewer slots, then a smaller largest bucket, down to one slot and a
    /// bucket that holds a batch. See [`Engine::shrunk`](super::Engine::shrunk).
    pub memory_bytes_max: Option<u64>,
    /// How to wait for the device.
    pub wait: Wait,
    /// The largest number of restarts of all supervised devices together, starts that failed because
    /// the new process ended included.
    pub restarts_max: u64,
    /// Which batches a timeline samples; `None` for no timeline, which costs nothing.
    pub timeline: Option<TimelineConfig>,
    #[doc(hidden)]
    pub later: LaterFields,
}

impl EngineConfig {
    /// Three slots and graph replay. The items at fault of a run cost 3 + log2(items of a batch) restarts
    /// each, so the 1,000 restarts suffice for dozens of them, and end a device that never comes up.
    pub fn new(batch: impl Into<Extent>) -> Self {
        let batch = batch.into();
        EngineConfig {
            slots: 3,
            urgent_slots: 0,
            policy: Policy::default(),
            batch,
            buckets: Vec::new(),
            close: Close::default(),
            batch_wait: Duration::from_millis(2),
            waiting_batches_max: 2,
            memory_bytes_max: None,
            wait: Wait::default(),
            restarts_max: 1000,
            timeline: None,
            later: LaterFields::NONE,
        }
    }

    /// Checks what does not depend on the workload.
    ///
    /// # Errors
    /// [`ErrorKind::Config`], here and in the checks that it calls.
    pub(super) fn check(&self) -> Result<()> {
        check_slots(self.slots)?;
        self.policy.check()?;
        self.check_urgent_slots()?;
        self.timeline.map_or(Ok(()), |timeline| timeline.check())?;
        if self.waiting_batches_max == 0 {
            return Err(
                Error::config("waiting_batches_max = 0: no item would be taken")
                    .fix("set it to at least 1"),
            );
        }
        if self.batch == Extent::default() {
            return Err(Error::config("a batch has no room for an item")
                .fix("give `batch` a length above 0 along an axis"));
        }
        match self.buckets.last() {
            None => Ok(()),
            Some(largest) if self.batch.fits(*largest) => Ok(()),
            Some(_) => Err(Error::config(format!(
                "no bucket holds a batch of {}",
                self.batch
            ))),
        }
    }

    /// Checks that slots kept for urgent batches leave others, and go with the mode.
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if not.
    fn check_urgent_slots(&self) -> Result<()> {
        let (urgent, slots) = (self.urgent_slots, self.slots);
        if urgent == 0 {
            return Ok(());
        }
        if urgent >= slots {
            let message = format!(
                "urgent_slots = {urgent} with slots = {slots}: no slot is left for other batches"
            );
            let fix = format!(
                "set slots to at least {}, or lower urgent_slots",
                urgent.saturating_add(1)
            );
            return Err(Error::config(message).fix(fix));
        }
        if self.policy.mode == Mode::Resident {
            let message = format!(
                "urgent_slots = {urgent} with mode = \"resident\": a loop on the device has no priority"
            );
            return Err(Error::config(message).fix("set urgent_slots = 0, or mode = \"graph\""));
        }
        Ok(())
    }
}

/// Refuses a number of slots on a device.
pub(super) fn check_slots(slots: usize) -> Result<()> {
    if (1..=SLOTS_MAX).contains(&slots) {
        Ok(())
    } else {
        Err(Error::config(format!(
            "slots = {slots} is not 1 to {SLOTS_MAX}"
        )))
    }
}

/// How one item is submitted.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
/// # use tapeloop_engine::*;
/// # fn main() -> Result<()> {
/// let engine = Engine::auto(Double::new()?, &EngineConfig::new([100]))?;
/// let options = SubmitOptions {
///     urgent: true,
///     ..SubmitOptions::default()
/// };
/// let done = engine.submit_with(vec![1.0], options)?.wait()?;
/// assert_eq!(done.result?, [2.0]);
/// # Ok(())
/// # }
/// ```
///
/// Later versions may add fields: end a literal with `..SubmitOptions::default()`. Without it a literal
/// does not compile:
///
/// ```compile_fail,E0063
/// # use tapeloop_engine::SubmitOptions;
/// SubmitOptions { urgent: true, deadline: None, expires_at: None };
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitOptions {
    /// Closes the item's batch at once, with the items that are in it. The batch overtakes those
    /// that wait for a slot; after eight urgent batches in a row another one starts.
    ///
    /// With [`EngineConfig::urgent_slots`] urgent items share no batch with others, and their batch
    /// closes as soon as a slot is free for it. The bound on batches in a row is for the other slots.
    pub urgent: bool,
    /// The latest time at which the item's batch closes with [`Close::Full`], full or not, even if the
    /// item was cancelled.
    pub deadline: Option<Instant>,
    /// If the item's batch has no slot before this time, the item is not computed, and its result is
    /// [`ErrorKind::Expired`](crate::ErrorKind::Expired), at that time. It is compared with the clock, and a
    /// [`Pipeline`](super::Pipeline) looks at it when it is polled. An item whose batch has a slot in time
    /// has its result, however long the device takes.
    pub expires_at: Option<Instant>,
    #[doc(hidden)]
    pub later: LaterFields,
}

/// The item that [`Engine::try_submit`](super::Engine::try_submit) or [`Pipeline::submit`](super::Pipeline::submit)
/// did not take, with the reason.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
/// # use tapeloop_engine::*;
/// # fn main() -> Result<()> {
/// let engine = Engine::auto(Double::new()?, &EngineConfig::new([100]))?;
/// match engine.try_submit(vec![1.0], SubmitOptions::default()) {
///     Ok(ticket) => assert_eq!(ticket.wait()?.result?, [2.0]),
///     Err(TrySubmitError::Full(item)) => println!("{item:?} has to wait"),
///     Err(TrySubmitError::Closed(_, reason)) => return Err(reason),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub enum TrySubmitError<I> {
    /// [`EngineConfig::waiting_batches_max`] batches wait for a slot; of a
    /// [`Pipeline`](super::Pipeline), one batch. Try again later.
    Full(I),
    /// The engine takes no more items, for this reason: [`ErrorKind::Closed`] when it has ended, and
    /// [`ErrorKind::Usage`] in a child of the process that made it.
    Closed(I, Error),
}

impl<I> TrySubmitError<I> {
    /// The item.
    pub fn into_item(self) -> I {
        match self {
            TrySubmitError::Full(item) | TrySubmitError::Closed(item, _) => item,
        }
    }
}

impl<I> fmt::Display for TrySubmitError<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrySubmitError::Full(_) => f.write_str("the engine is full: batches wait for a slot"),
            TrySubmitError::Closed(_, reason) => reason.fmt(f),
        }
    }
}

impl<I> fmt::Debug for TrySubmitError<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrySubmitError::Full(_) => f.write_str("Full"),
            TrySubmitError::Closed(_, reason) => write!(f, "Closed({reason:?})"),
        }
    }
}

impl<I> std::error::Error for TrySubmitError<I> {}
