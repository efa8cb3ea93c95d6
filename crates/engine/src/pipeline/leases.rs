//! Results that borrow a slot's memory: which slots may be lent, and how they come back.
//!
//! A slot is lent before the results of its batch are read. If they borrow it, it waits in the
//! engine's queue until the last of them is dropped. The thread that drops it wakes the completion
//! thread of the slot's device, which takes the slot back and starts the next batch in it.

use super::compute::WakeDevice;
use super::counters::{AtomicCounters, add};
use super::device_results::DeviceResults;
use super::slot::{Done, Free, Lent, Slot};
use crate::backend::fork::Process;
use crate::error::Result;
use crate::record::BufferId;
use crate::workload::{DeviceOwner, DevicePart, Extent, HostMemory, LeaseSource};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// How many slots of a device, ordinary or urgent, are never lent: one runs a batch while the next is
/// written into the other. 0 in a model of the threads, so that a batch must wait for a lent slot.
const UNLENT_MIN: usize = if cfg!(loom) { 0 } else { 2 };

/// How many more slots may be lent: by device, of the ordinary slots and of those that are kept for
/// urgent batches. The numbers order no memory: the lent slot itself is what results share.
pub(super) struct LeaseLimits(Vec<[Arc<AtomicUsize>; 2]>);

impl LeaseLimits {
    /// The limits of each device: all of its slots may be lent but for [`UNLENT_MIN`], the ordinary
    /// and the urgent ones each.
    pub(super) fn new(slots: &[Slot<Free>], devices: usize) -> Self {
        let limits = (0..devices).map(|device| {
            [false, true].map(|is_urgent| {
                let alike =
                    |slot: &&Slot<Free>| (slot.device(), slot.is_urgent()) == (device, is_urgent);
                let count = slots.iter().filter(alike).count();
                Arc::new(AtomicUsize::new(count.saturating_sub(UNLENT_MIN)))
            })
        });
        LeaseLimits(limits.collect())
    }
}

/// What the results of one batch may borrow.
pub(crate) struct BatchLeases<'a> {
    /// `None` to copy all results.
    slot: Option<Lender<'a>>,
    /// The slot's result buffers; `None` if it has none.
    device: Option<Arc<DeviceResults>>,
    counters: &'a AtomicCounters,
}

impl<'a> BatchLeases<'a> {
    /// Copies all results of the slot.
    pub(crate) fn copies<B>(slot: &Slot<Done<B>>, counters: &'a AtomicCounters) -> Self {
        BatchLeases {
            slot: None,
            device: slot.device_results().cloned(),
            counters,
        }
    }

    /// Lends the slot to the results of its batch, unless too many like it are lent.
    pub(super) fn of_slot<B>(
        slot: &mut Slot<Done<B>>,
        limits: &'a LeaseLimits,
        wakes: &'a Arc<dyn WakeDevice>,
        counters: &'a AtomicCounters,
    ) -> Self {
        let (device, results) = (slot.device(), slot.device_results().cloned());
        let limit = &limits.0[device][usize::from(slot.is_urgent())];
        let taken = limit.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        let lender = taken.is_ok().then(|| Lender {
            lent: slot.lend(),
            limit,
            wakes,
            device,
            shared: OnceLock::new(),
        });
        BatchLeases {
            slot: lender,
            device: results,
            counters,
        }
    }

    /// Copies results of the same batch.
    pub(crate) fn as_copies(&self) -> Self {
        BatchLeases {
            slot: None,
            device: self.device.clone(),
            counters: self.counters,
        }
    }
}

impl LeaseSource for BatchLeases<'_> {
    fn lend(&self) -> Option<Arc<dyn HostMemory>> {
        match &self.slot {
            Some(slot) => {
                add(&self.counters.results_leased, 1);
                Some(Arc::clone(slot.shared.get_or_init(|| slot.share())))
            }
            None => {
                add(&self.counters.results_copied, 1);
                None
            }
        }
    }

    fn lend_device(&self, buffer: BufferId, offset: Extent, extent: Extent) -> Result<DevicePart> {
        let results = self.device.as_ref().expect("a result buffer of the slot");
        let view = results.part(buffer, offset, extent);
        // An empty result holds no slot.
        let owner = if view.bytes() == 0 {
            DeviceOwner::Nothing
        } else {
            match self.lend() {
                Some(slot) => DeviceOwner::Slot { _slot: slot },
                None => return results.copy(&view),
            }
        };
        Ok(DevicePart {
            view,
            owner,
            backend: Arc::clone(results.backend()),
        })
    }
}

/// A slot that is lent while the results of its batch are read.
struct Lender<'a> {
    lent: Lent,
    limit: &'a Arc<AtomicUsize>,
    wakes: &'a Arc<dyn WakeDevice>,
    device: usize,
    /// Made for the first result that borrows.
    shared: OnceLock<Arc<dyn HostMemory>>,
}

impl Lender<'_> {
    /// A share in the slot that is lent. The last share that is dropped ends the loan, and wakes
    /// the device's thread.
    fn share(&self) -> Arc<dyn HostMemory> {
        let end = EndOfLoan {
            limit: Arc::clone(self.limit),
            wakes: Arc::clone(self.wakes),
            device: self.device,
            process: Process::current(),
        };
        Arc::new(SharedSlot {
            lent: self.lent.clone(),
            _end: end,
        })
    }
}

impl Drop for Lender<'_> {
    fn drop(&mut self) {
        if self.shared.get().is_none() {
            // No result borrows the slot.
            self.limit.fetch_add(1, Relaxed);
        }
    }
}

/// The slot of a batch, shared by the results that borrow it.
struct SharedSlot {
    // Dropped first, so that the thread which is woken finds the slot without it.
    lent: Lent,
    _end: EndOfLoan,
}

impl HostMemory for SharedSlot {
    fn host(&self, buffer: BufferId) -> &[u8] {
        self.lent.host(buffer)
    }
}

/// When it is dropped, another slot may be lent, and the device's thread frees this one.
struct EndOfLoan {
    limit: Arc<AtomicUsize>,
    wakes: Arc<dyn WakeDevice>,
    device: usize,
    process: Process,
}

impl Drop for EndOfLoan {
    fn drop(&mut self) {
        self.limit.fetch_add(1, Relaxed);
        if self.process.is_current() {
            self.wakes.wake(self.device);
        }
    }
}
