//! Forming batches from the extents of items. Time is an argument.

use super::ticket::Reply;
use crate::error::{Error, ErrorKind, Result};
use crate::workload::{Completion, Extent, Workload};
use crossbeam_channel::Sender;
use std::time::{Duration, Instant};

/// The most entries of a batch, so that a flood of rejected items, which take no
/// room on the device, is bounded too.
pub(crate) const ENTRIES_MAX: usize = 1 << 16;

/// Where an item lies in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) at: Extent,
    pub(crate) extent: Extent,
}

/// An item on its way, with its place or why it has none.
pub(crate) struct Entry<W: Workload> {
    pub(crate) item: W::Item,
    pub(crate) place: Result<Place>,
    pub(crate) reply: Reply<W>,
}

impl<W: Workload> Entry<W> {
    /// Hands the item back: to its ticket, or to the caller for an ordered run.
    pub(crate) fn complete(self, result: Result<W::Output>) -> Option<Completion<W>> {
        let completion = Completion {
            item: self.item,
            result,
        };
        self.reply.deliver(completion)
    }
}

/// Entries that cross the device together.
pub(crate) struct Batch<W: Workload> {
    pub(crate) entries: Vec<Entry<W>>,
    pub(crate) total: Extent,
    /// Entries with a place.
    pub(crate) items: u32,
    /// Set on the way into a slot, for batches of a run.
    pub(crate) ordered: Option<Ordered<W>>,
    /// Set when the device takes it.
    pub(crate) submitted_at: Option<Instant>,
}

/// A batch's turn in a run, and where the run takes results.
pub(crate) struct Ordered<W: Workload> {
    pub(crate) number: u64,
    pub(crate) results: Sender<Vec<Completion<W>>>,
}

impl<W: Workload> Batch<W> {
    fn new() -> Self {
        Batch {
            entries: Vec::new(),
            total: Extent::default(),
            items: 0,
            ordered: None,
            submitted_at: None,
        }
    }
}

/// Gathers entries until the next one does not fit, or until the oldest has
/// waited long enough.
pub(crate) struct Batcher<W: Workload> {
    axes: &'static [&'static str],
    /// A batch closes before it exceeds this ...
    target: Extent,
    /// ... but one item may be as large as this.
    max: Extent,
    wait: Duration,
    open: Batch<W>,
    closes_at: Option<Instant>,
}

impl<W: Workload> Batcher<W> {
    pub(crate) fn new(
        axes: &'static [&'static str],
        target: Extent,
        max: Extent,
        wait: Duration,
    ) -> Self {
        Batcher {
            axes,
            target,
            max,
            wait,
            open: Batch::new(),
            closes_at: None,
        }
    }

    /// Takes an item; gives out the batch that it no longer fits in. The batch
    /// that the item joins closes at `now` plus the wait, or at `deadline`.
    pub(crate) fn push(
        &mut self,
        item: W::Item,
        extent: Result<Extent>,
        reply: Reply<W>,
        now: Instant,
        deadline: Option<Instant>,
    ) -> Option<Batch<W>> {
        let extent = extent.and_then(|extent| self.admit(extent));
        let needed = *extent.as_ref().unwrap_or(&Extent::default());
        let fits = self
            .open
            .total
            .checked_add(needed)
            .is_some_and(|total| total.fits(self.target) || self.open.items == 0);
        let closed = if fits && self.open.entries.len() < ENTRIES_MAX {
            None
        } else {
            self.flush()
        };
        let at = self.open.total;
        self.open.total = at
            .checked_add(needed)
            .expect("an admitted item in an empty batch");
        self.open.items += u32::from(extent.is_ok());
        let place = extent.map(|extent| Place { at, extent });
        self.open.entries.push(Entry { item, place, reply });
        let closes_at = deadline.unwrap_or(now + self.wait).min(now + self.wait);
        self.closes_at = Some(
            self.closes_at
                .map_or(closes_at, |earlier| earlier.min(closes_at)),
        );
        closed
    }

    /// When the open batch is due, if there is one.
    pub(crate) fn closes_at(&self) -> Option<Instant> {
        self.closes_at
    }

    /// Gives out the open batch, if it holds anything.
    pub(crate) fn flush(&mut self) -> Option<Batch<W>> {
        self.closes_at = None;
        (!self.open.entries.is_empty()).then(|| std::mem::replace(&mut self.open, Batch::new()))
    }

    fn admit(&self, extent: Extent) -> Result<Extent> {
        match extent.first_excess(self.max) {
            None => Ok(extent),
            Some(axis) => {
                let name = self.axes.get(axis).copied().unwrap_or("an undeclared axis");
                Err(Error::new(
                    ErrorKind::Capacity,
                    format!(
                        "{} {name}, and a batch holds at most {}",
                        extent[axis], self.max[axis]
                    ),
                )
                .fix("raise the largest batch"))
            }
        }
    }
}
