//! Batches. [`Batcher`] forms them from the extents of items, and its caller passes the time in.

use super::config::SubmitOptions;
use super::resident_version::ResidentVersion;
use super::run_results::RunSink;
use super::ticket::BatchReply;
use super::uniforms::{Change, apply};
use crate::error::{Error, ErrorKind, Result};
use crate::record::AXES_MAX;
use crate::workload::{Extent, Workload};
use arrayvec::ArrayVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The latency is measured for one item, the first, of each group of this many items of a batch: reading
/// the clock for each would take longer than adding it.
const ITEMS_PER_SAMPLE: usize = 64;

/// The most entries of a batch that take no room on the device: rejected items, and items of extent
/// zero. The batch's capacity limits the others, and this the memory of a batch of such items alone.
pub(crate) const EMPTY_ENTRIES_MAX: u32 = 1 << 16;

/// Where an item lies in its batch: it starts at `offset` along each axis, and spans `extent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ItemLocation {
    pub(crate) offset: Extent,
    pub(crate) extent: Extent,
}

/// An item in a batch, with its location or the error that rejected it.
pub(crate) struct Entry<W: Workload> {
    /// `None` if it was taken out; the location is an error then.
    pub(crate) item: Option<W::Item>,
    pub(crate) location: Result<ItemLocation>,
}

impl<W: Workload> Entry<W> {
    /// The item of an entry that has a location, or of one that is never cancelled.
    #[inline]
    pub(crate) fn item(&self) -> &W::Item {
        self.item.as_ref().expect("the item was not cancelled")
    }

    /// The error that rejected it before its batch failed with `error`, or else that one.
    pub(crate) fn error_or(&self, error: &Error) -> Error {
        self.location.as_ref().err().unwrap_or(error).clone()
    }
}

/// Entries that run on the device together.
pub(crate) struct Batch<W: Workload> {
    pub(crate) entries: Vec<Entry<W>>,
    /// When the batcher took the first entry and every [`ITEMS_PER_SAMPLE`]-th after it.
    accepted_at: Vec<Instant>,
    pub(crate) total: Extent,
    /// Entries that had a location when the batch was closed.
    pub(crate) items: u32,
    /// Entries that take no room.
    empty_entries: u32,
    /// Whether the last entry is an item that is too large. Its caller may compute it in another way, and
    /// many of them would take much memory until their batch is full.
    ends_here: bool,
    /// Entries whose items were taken out before the batch had a slot.
    pub(crate) taken_out: u32,
    /// When entries expire, with their indices, the earliest first.
    expiries: BinaryHeap<Reverse<(Instant, u32)>>,
    /// The number of the first entry, counted since the engine was built.
    pub(crate) first: u64,
    /// The results' way to tickets.
    pub(crate) reply: Option<BatchReply<W>>,
    /// The results' way to a run. Set when the batch is closed.
    pub(crate) ordered: Option<Ordered<W>>,
    /// Its number among the batches that were submitted to a device. Set at submission.
    pub(crate) number: u64,
    /// Its number and its slot, if the timeline samples it.
    pub(crate) sampled: Option<(u64, usize)>,
    /// Whether the device records its timestamps.
    pub(crate) timed: bool,
    /// When it began to wait for a slot.
    pub(crate) closed_at: Option<Instant>,
    /// When a worker was asked to write or to read it, until the worker does.
    pub(crate) handed_over_at: Option<Instant>,
    /// When it was written: the call that submits it to the device begins then.
    pub(crate) submitted_at: Option<Instant>,
    /// The bits of the uniforms when its items were submitted. Set when the batch is closed.
    pub(crate) uniforms: Vec<u32>,
    /// The contents of the resident buffers when its items were submitted, if they can be replaced. Set when
    /// the batch is closed.
    pub(crate) resident: Option<Arc<ResidentVersion>>,
    /// Whether it was written into a slot before. Items may have been rejected then, so [`Batch::leave_out`]
    /// moves the others together before it is written again.
    pub(crate) is_written: bool,
    /// The results of entries that were run apart from each other after a loss.
    pub(crate) settled: Vec<Option<Result<W::Output>>>,
}

/// A batch's position in a run.
pub(crate) struct Ordered<W: Workload> {
    pub(crate) number: u64,
    pub(crate) results: Arc<dyn RunSink<W>>,
}

impl<W: Workload> Batch<W> {
    /// Makes the batch empty. Its vectors keep their capacity. [`Batcher::flush`] sets what stays here.
    fn clear(&mut self) {
        let Batch {
            entries,
            accepted_at,
            total,
            items,
            empty_entries,
            ends_here,
            taken_out,
            expiries,
            first: _,
            reply,
            ordered,
            number,
            sampled,
            timed,
            closed_at,
            handed_over_at,
            submitted_at,
            uniforms: _,
            resident,
            is_written,
            settled,
        } = self;
        entries.clear();
        accepted_at.clear();
        expiries.clear();
        settled.clear();
        *total = Extent::default();
        (*items, *empty_entries, *taken_out, *number) = (0, 0, 0, 0);
        (*reply, *ordered, *resident) = (None, None, None);
        (*sampled, *timed, *is_written, *ends_here) = (None, false, false, false);
        (*closed_at, *handed_over_at, *submitted_at) = (None, None, None);
    }

    /// Passes the items at these indices to `take`, and leaves their room to others. The batch must
    /// not be written yet. Locations are out of date until [`Batch::leave_out`].
    pub(crate) fn cancel(&mut self, indices: Range<u32>, mut take: impl FnMut(W::Item)) {
        for index in indices {
            let cancelled = || Error::new(ErrorKind::Usage, "the item was cancelled");
            self.take_out(index, cancelled)
                .into_iter()
                .for_each(&mut take);
        }
    }

    /// [`Batch::cancel`] for the items that have expired at `now`, each with its index. Items that were
    /// rejected keep their error, and stay.
    pub(crate) fn expire(&mut self, now: Instant, mut take: impl FnMut(u32, W::Item)) {
        while let Some(index) = self.next_expired(now) {
            if self.entries[index as usize].location.is_ok()
                && let Some(item) = self.take_out(index, expiry_error)
            {
                take(index, item);
            }
        }
    }

    /// The next entry that has expired at `now`.
    fn next_expired(&mut self, now: Instant) -> Option<u32> {
        let Reverse((expires_at, _)) = self.expiries.peek()?;
        if *expires_at > now {
            return None;
        }
        self.expiries.pop().map(|Reverse((_, index))| index)
    }

    /// When the first of its items expires.
    pub(crate) fn expires_at(&self) -> Option<Instant> {
        self.expiries
            .peek()
            .map(|Reverse((expires_at, _))| *expires_at)
    }

    /// Takes an item out of the batch, and makes `reason` the error of its entry. The other items
    /// move together in [`Self::leave_out`]. `None` if the item was taken out before.
    fn take_out(&mut self, index: u32, reason: impl FnOnce() -> Error) -> Option<W::Item> {
        let entry = &mut self.entries[index as usize];
        let item = entry.item.take()?;
        if let Ok(ItemLocation { extent, .. }) = entry.location {
            let rest = self.total.checked_sub(extent);
            self.total = rest.expect("the total holds each item");
            self.items -= 1;
            // One without an extent was counted when it was added.
            self.empty_entries += u32::from(extent != Extent::default());
        }
        entry.location = Err(reason());
        self.taken_out += 1;
        Some(item)
    }

    /// When the batcher took the items whose latency is measured, without those that were taken out.
    pub(crate) fn measured(&self) -> impl Iterator<Item = Instant> {
        let entries = self.entries.iter().step_by(ITEMS_PER_SAMPLE);
        let measured = self.accepted_at.iter().zip(entries);
        measured.filter_map(|(accepted_at, entry)| entry.item.as_ref().map(|_| *accepted_at))
    }

    /// Whether every item was taken out.
    pub(crate) fn is_emptied(&self) -> bool {
        self.taken_out as usize == self.entries.len()
    }

    /// Rejects the items that have expired at `now`, and moves the others together where items were
    /// taken out or have expired, or could not be written for a device that was lost. Called before the
    /// batch is written. Returns the number of items that have expired.
    pub(crate) fn leave_out(&mut self, now: Instant) -> usize {
        let mut expired = 0;
        while let Some(index) = self.next_expired(now) {
            let location = &mut self.entries[index as usize].location;
            if location.is_ok() {
                *location = Err(expiry_error());
                expired += 1;
            }
        }
        // What has a slot expires no more.
        self.expiries.clear();
        if expired > 0 || self.taken_out > 0 || self.is_written {
            (self.total, self.items) = (Extent::default(), 0);
            let located = self.entries.iter_mut();
            for location in located.filter_map(|entry| entry.location.as_mut().ok()) {
                location.offset = self.total;
                let total = self.total.checked_add(location.extent);
                self.total = total.expect("less than the batch had before");
                self.items += 1;
            }
        }
        expired
    }
}

#[cold]
pub(crate) fn expiry_error() -> Error {
    let message = "the item has expired: no slot was free for its batch before `expires_at`";
    Error::new(ErrorKind::Expired, message).fix("submit less at a time, or let items wait longer")
}

impl<W: Workload> Default for Batch<W> {
    /// An empty batch.
    fn default() -> Self {
        Batch {
            first: 0,
            entries: Vec::new(),
            accepted_at: Vec::new(),
            total: Extent::default(),
            items: 0,
            empty_entries: 0,
            ends_here: false,
            taken_out: 0,
            expiries: BinaryHeap::new(),
            reply: None,
            ordered: None,
            number: 0,
            sampled: None,
            timed: false,
            closed_at: None,
            handed_over_at: None,
            submitted_at: None,
            uniforms: Vec::new(),
            resident: None,
            is_written: false,
            settled: Vec::new(),
        }
    }
}

/// Collects entries until the next one does not fit, or until the oldest has waited long enough.
pub(crate) struct Batcher<W: Workload> {
    axes: &'static [&'static str],
    /// A batch closes before it exceeds this extent.
    target: Extent,
    /// A batch that reaches this length along any axis is full. Where `target` is 0 no length does.
    full: Extent,
    /// The largest extent of a single item.
    max: Extent,
    wait: Duration,
    /// The bits of the uniforms for the open batch.
    uniforms: Vec<u32>,
    /// The contents of the resident buffers for the open batch.
    resident: Option<Arc<ResidentVersion>>,
    open: Box<Batch<W>>,
    /// Empty batches to be filled again.
    #[expect(clippy::vec_box, reason = "a box is what a closed batch travels as")]
    spares: Vec<Box<Batch<W>>>,
    closes_at: Option<Instant>,
}

impl<W: Workload> Batcher<W> {
    pub(crate) fn new(
        axes: &'static [&'static str],
        target: Extent,
        max: Extent,
        wait: Duration,
        uniforms: Vec<u32>,
    ) -> Self {
        Batcher {
            axes,
            target,
            full: target.unlimited_where_zero(),
            max,
            wait,
            uniforms,
            resident: None,
            open: Box::default(),
            spares: Vec::new(),
            closes_at: None,
        }
    }

    /// Adds an item. Returns the batches that this closes: the open one if the item does not fit in
    /// it, and the item's own if it is full.
    pub(crate) fn push(
        &mut self,
        item: W::Item,
        extent: Result<Extent>,
        now: Instant,
        options: &SubmitOptions,
    ) -> ArrayVec<Box<Batch<W>>, 2> {
        let extent = self.admit(extent);
        let mut closed = ArrayVec::new();
        if !self.has_room(&extent) {
            closed.extend(self.flush());
        }
        if self.add(item, extent, || now, options) {
            closed.extend(self.flush());
        }
        closed
    }

    /// An item's extent, or the error that rejects the item. The item is added next; one that is too large
    /// ends its batch.
    ///
    /// # Errors
    /// Those of the extent, and of [`Self::too_large_error`].
    #[inline]
    pub(crate) fn admit(&mut self, extent: Result<Extent>) -> Result<Extent> {
        match extent {
            Ok(extent) if !extent.fits(self.max) => {
                self.open.ends_here = true;
                Err(self.too_large_error(extent))
            }
            extent => extent,
        }
    }

    /// Whether an item of this extent fits in the open batch. If not, close that batch first. A rejected
    /// item takes no room, and one beyond the target fits an empty batch, which it then has to itself.
    #[inline]
    pub(crate) fn has_room(&self, extent: &Result<Extent>) -> bool {
        let Ok(needed) = extent else { return true };
        let total = self.open.total.checked_add(*needed);
        self.open.items == 0 || total.is_some_and(|total| total.fits(self.target))
    }

    /// Adds an item to the open batch, which has room for it. Returns whether the batch is full and
    /// has to be closed. A batch that stays open closes when its first item has waited, or at the
    /// deadline of `options` if that is earlier. `clock` is read for some of the items only.
    #[inline]
    pub(crate) fn add(
        &mut self,
        item: W::Item,
        extent: Result<Extent>,
        clock: impl Fn() -> Instant,
        options: &SubmitOptions,
    ) -> bool {
        let needed = *extent.as_ref().unwrap_or(&Extent::default());
        let index = self.open.entries.len();
        let mut waited = None;
        if index.is_multiple_of(ITEMS_PER_SAMPLE) {
            let now = clock();
            self.open.accepted_at.push(now);
            if index == 0 {
                waited = now.checked_add(self.wait);
            }
        }
        if waited.is_some() || options.deadline.is_some() {
            self.closes_at = [self.closes_at, waited, options.deadline]
                .into_iter()
                .flatten()
                .min();
        }
        if let Some(expires_at) = options.expires_at {
            self.open.expiries.push(Reverse((expires_at, index as u32)));
        }
        let start = self.open.total;
        // It does not overflow: there is room for the item.
        self.open.total = start.wrapping_add(needed);
        self.open.items += u32::from(extent.is_ok());
        self.open.empty_entries += u32::from(needed == Extent::default());
        self.open.entries.push(Entry {
            item: Some(item),
            location: extent.map(|extent| ItemLocation {
                offset: start,
                extent,
            }),
        });
        self.is_full()
    }

    /// The open batch, to which the next item is added.
    pub(crate) fn open(&mut self) -> &mut Batch<W> {
        &mut self.open
    }

    /// Whether the open batch takes no further item of any size.
    fn is_full(&self) -> bool {
        self.open.total.reaches_any(self.full)
            || self.open.empty_entries >= EMPTY_ENTRIES_MAX
            || self.open.ends_here
    }

    /// When the open batch closes, if there is one.
    pub(crate) fn closes_at(&self) -> Option<Instant> {
        self.closes_at
    }

    /// Closes and returns the open batch, unless it is empty.
    pub(crate) fn flush(&mut self) -> Option<Box<Batch<W>>> {
        self.closes_at = None;
        (!self.open.entries.is_empty()).then(|| {
            let mut next = self.spares.pop().unwrap_or_default();
            next.first = self.next_number();
            self.open.uniforms.clone_from(&self.uniforms);
            self.open.resident.clone_from(&self.resident);
            std::mem::replace(&mut self.open, next)
        })
    }

    /// Whether these changes would change a value.
    pub(crate) fn would_change(&self, changes: &[Change]) -> bool {
        // Where a uniform is set twice, the last value counts.
        let is_last = |index: usize| {
            changes[index + 1..]
                .iter()
                .all(|(other, _)| *other != changes[index].0)
        };
        let mut last = (0..changes.len()).filter(|index| is_last(*index));
        last.any(|index| self.uniforms[changes[index].0] != changes[index].1)
    }

    /// Sets uniforms for the items that are added from now on. No batch may be open.
    pub(crate) fn set_uniforms(&mut self, changes: &[Change]) {
        debug_assert!(!self.is_open(), "a batch has one value of each uniform");
        apply(changes, &mut self.uniforms);
    }

    /// Sets the contents of the resident buffers for the items that are added from now on. No batch may be open.
    pub(crate) fn set_resident(&mut self, version: &Arc<ResidentVersion>) {
        debug_assert!(
            !self.is_open(),
            "a batch has one version of the resident buffers"
        );
        self.resident = Some(Arc::clone(version));
    }

    /// Whether an item waits for its batch to close.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.entries.is_empty()
    }

    /// The number of the next item.
    pub(crate) fn next_number(&self) -> u64 {
        self.open.first + self.open.entries.len() as u64
    }

    /// Takes a finished batch whose entries were taken out, so that the next one does not allocate.
    pub(crate) fn recycle(&mut self, mut batch: Box<Batch<W>>) {
        batch.clear();
        self.spares.push(batch);
    }

    /// The error of an item that no bucket holds: [`ErrorKind::Usage`] if its extent has more lengths than
    /// the workload has axes, otherwise [`ErrorKind::Capacity`].
    #[cold]
    fn too_large_error(&self, extent: Extent) -> Error {
        // The largest bucket's lengths beyond the workload's axes are 0.
        if let Some(axis) = (self.axes.len()..AXES_MAX).find(|&axis| extent[axis] > self.max[axis])
        {
            let (length, axes) = (extent[axis], self.axes.join(", "));
            let message = format!(
                "the item's extent has {length} along axis {axis}, and the workload's axes are {axes}"
            );
            return Error::usage(message)
                .fix("return as many lengths as `Workload::axes` has names");
        }
        let excess = beyond(self.axes, extent, self.max);
        let excess = excess.expect("an extent that does not fit exceeds along an axis");
        Error::new(ErrorKind::Capacity, format!("the item has {excess}"))
            .fix("raise `batch` of the EngineConfig, or the largest of its `buckets`")
    }
}

/// How an extent exceeds the largest batch, in words; `None` if it does not.
pub(super) fn beyond(axes: &[&str], extent: Extent, max: Extent) -> Option<String> {
    let axis = extent.first_excess(max)?;
    let name = axes.get(axis).copied().unwrap_or("an undeclared axis");
    let (length, max) = (extent[axis], max[axis]);
    Some(format!("{length} {name}, and a batch holds at most {max}"))
}

#[cfg(test)]
mod tests;
