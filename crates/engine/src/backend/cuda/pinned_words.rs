//! The words that a loop on the device shares with the host, in pinned memory.

use super::context::PrimaryContext;
use super::memory::PinnedMemory;
use crate::backend::doorbell::{Word, Words};
use crate::backend::loops::Loops;
use crate::error::Result;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The words of one loop, 0 at first: `HostWords` and `DeviceWords` in `resident.cu`. The host's and
/// the device's are in cache lines of their own.
#[derive(Default)]
#[repr(C)]
pub(super) struct LoopWords {
    host: PinnedHostWords,
    device: DeviceWords,
}

/// Written by the host, and read by the device at once.
#[derive(Default)]
#[repr(C, align(128))]
struct PinnedHostWords {
    ring: AtomicU64,
    stop: AtomicU64,
}

/// Written by the device.
#[derive(Default)]
#[repr(C, align(128))]
struct DeviceWords {
    done: AtomicU64,
    parked: AtomicU64,
    /// When the last batch began and ended, in nanoseconds of the device's clock.
    begun_ns: AtomicU64,
    ended_ns: AtomicU64,
}

impl LoopWords {
    /// Where the words that the device writes begin.
    pub(super) const DEVICE_OFFSET: u64 = std::mem::offset_of!(LoopWords, device) as u64;
}

/// [`LoopWords`] in pinned memory.
pub(super) struct PinnedWords {
    /// As large as the words, and aligned to a page.
    pinned: PinnedMemory,
    context: Arc<PrimaryContext>,
}

impl PinnedWords {
    pub(super) fn new(context: &Arc<PrimaryContext>) -> Result<PinnedWords> {
        let pinned = PinnedMemory::zeroed(context, size_of::<LoopWords>())?;
        let context = Arc::clone(context);
        Ok(PinnedWords { pinned, context })
    }

    /// The address on the device. With unified addressing it equals the host's.
    pub(super) fn address(&self) -> u64 {
        self.pinned.start().as_ptr() as u64
    }

    /// When the batch that was last seen done began and ended, in nanoseconds of the device's
    /// clock.
    pub(super) fn batch_ns(&self) -> (u64, u64) {
        // The loop wrote them before it announced the batch.
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let device = &self.words().device;
        (load(&device.begun_ns), load(&device.ended_ns))
    }

    fn words(&self) -> &LoopWords {
        // SAFETY: the memory is as large, aligned to a page, and lives as long as `self`; any bytes
        // are values of the words. They are atomics, which the device changes as another thread
        // would.
        unsafe { self.pinned.start().cast().as_ref() }
    }

    /// The word in the half of the pinned memory that its writer owns.
    fn word(&self, word: Word) -> &AtomicU64 {
        let LoopWords { host, device } = self.words();
        match word {
            Word::Ring => &host.ring,
            Word::Stop => &host.stop,
            Word::Done => &device.done,
            Word::Parked => &device.parked,
        }
    }
}

impl Words for Arc<PinnedWords> {
    fn load(&self, word: Word, order: Ordering) -> u64 {
        self.word(word).load(order)
    }

    fn store(&self, word: Word, value: u64, order: Ordering) {
        self.word(word).store(value, order);
    }

    fn is_lost(&self) -> bool {
        self.context.is_lost()
    }
}

/// The loops on the device with this handle, of all backends in the process: they end together.
pub(super) fn loops_of(device: i32) -> Arc<Loops<Arc<PinnedWords>>> {
    type OfDevices = BTreeMap<i32, Arc<Loops<Arc<PinnedWords>>>>;
    static DEVICES: Mutex<OfDevices> = Mutex::new(BTreeMap::new());
    Arc::clone(DEVICES.lock().entry(device).or_default())
}
