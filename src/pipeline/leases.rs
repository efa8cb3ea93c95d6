//! Results that borrow a slot's memory: which slots may be lent, and how they come back.
//!
//! A slot is lent before the results of its batch are read. If they borrow it, it waits in the
//! engine's queue until the last of them is dropped. The thread that drops it wakes the completion
//! thread of the slot's device, which takes the slot back and starts the next batch in it.

use super::counters::{AtomicCounters, add};
use super::slot::{Done, Free, Lent, Slot};
use crate::record::BufferId;
use crate::workload::{HostMemory, LeaseSource};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// How many slots are never lent at once, among those of a device that take the same batches: one
/// runs a batch while the next is written into the other.
const UNLENT_MIN: usize = 2;

/// By device, of the slots that are kept for urgent batches and of the others: how many more may be
/// lent.
pub(super) struct LeaseLimits(Vec<[AtomicUsize; 2]>);

impl LeaseLimits {
    pub(super) fn new(slots: &[Slot<Free>], devices: usize) -> Self {
        let limits = (0..devices).map(|device| {
            [false, true].map(|is_urgent| {
                let alike =
                    |slot: &&Slot<Free>| (slot.device(), slot.is_urgent()) == (device, is_urgent);
                let count = slots.iter().filter(alike).count();
                AtomicUsize::new(count.saturating_sub(UNLENT_MIN))
            })
        });
        LeaseLimits(limits.collect())
    }

    fn of<S>(&self, slot: &Slot<S>) -> &AtomicUsize {
        &self.0[slot.device()][usize::from(slot.is_urgent())]
    }

    /// Lends a slot, unless too many like it are lent.
    pub(super) fn lend<B>(&self, slot: &mut Slot<Done<B>>) -> Option<Lent> {
        let left = self.of(slot);
        let taken = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        taken.is_ok().then(|| slot.lend())
    }

    /// Ends a loan if no result borrows the slot. Returns whether the slot can be used.
    pub(super) fn take_back(&self, slot: &mut Slot<Free>) -> bool {
        if slot.is_lent() && slot.take_back() {
            self.of(slot).fetch_add(1, Relaxed);
        }
        !slot.is_lent()
    }
}

/// Wakes the completion threads. It runs none of the embedder's code, takes no lock of the engine,
/// and may outlive it.
pub(super) trait WakeDevice: Send + Sync {
    fn wake(&self, device: usize);
}

/// What the results of one batch may borrow.
pub(crate) struct BatchLeases<'a> {
    /// `None` to copy all results.
    slot: Option<Lender<'a>>,
    counters: &'a AtomicCounters,
}

struct Lender<'a> {
    lent: Lent,
    device: usize,
    wakes: &'a Arc<dyn WakeDevice>,
    /// Made for the first result that borrows.
    shared: OnceLock<Arc<dyn HostMemory>>,
}

impl<'a> BatchLeases<'a> {
    /// Copies all results.
    pub(crate) fn copies(counters: &'a AtomicCounters) -> Self {
        BatchLeases {
            slot: None,
            counters,
        }
    }

    /// Lets results borrow the memory of a slot of `device`.
    pub(super) fn of_slot(
        lent: Lent,
        device: usize,
        wakes: &'a Arc<dyn WakeDevice>,
        counters: &'a AtomicCounters,
    ) -> Self {
        let shared = OnceLock::new();
        BatchLeases {
            slot: Some(Lender {
                lent,
                device,
                wakes,
                shared,
            }),
            counters,
        }
    }

    /// Copies results of the same batch.
    pub(crate) fn as_copies(&self) -> Self {
        BatchLeases::copies(self.counters)
    }
}

impl LeaseSource for BatchLeases<'_> {
    fn lend(&self) -> Option<Arc<dyn HostMemory>> {
        let Some(slot) = &self.slot else {
            add(&self.counters.results_copied, 1);
            return None;
        };
        add(&self.counters.results_leased, 1);
        let shared = slot.shared.get_or_init(|| {
            let wake = WakeOnDrop {
                wakes: Arc::clone(slot.wakes),
                device: slot.device,
            };
            Arc::new(SharedSlot {
                lent: slot.lent.clone(),
                _wake: wake,
            })
        });
        Some(Arc::clone(shared))
    }
}

/// What all results of a batch that borrow its slot share.
struct SharedSlot {
    // Dropped first, so that the thread which is woken finds the slot without it.
    lent: Lent,
    _wake: WakeOnDrop,
}

impl HostMemory for SharedSlot {
    fn host(&self, buffer: BufferId) -> &[u8] {
        self.lent.host(buffer)
    }
}

struct WakeOnDrop {
    wakes: Arc<dyn WakeDevice>,
    device: usize,
}

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.wakes.wake(self.device);
    }
}
