//! The words that a loop on a GPU shares with the host, in memory that both access.
#![cfg(any(feature = "cuda", all(feature = "supervise", target_os = "linux")))]

use super::doorbell::{Word, Words};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The words of one loop, 0 at first: `HostWords` and `DeviceWords` in `cuda/resident.cu`. The
/// host's and the device's are in cache lines of their own.
#[derive(Default)]
#[repr(C)]
pub(super) struct LoopWords {
    host: HostWords,
    device: DeviceWords,
}

/// Written by the host, and read by the device at once.
#[derive(Default)]
#[repr(C, align(128))]
struct HostWords {
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
    #[cfg(feature = "cuda")]
    pub(super) const DEVICE_OFFSET: u64 = std::mem::offset_of!(LoopWords, device) as u64;

    pub(super) fn word(&self, word: Word) -> &AtomicU64 {
        let LoopWords { host, device } = self;
        match word {
            Word::Ring => &host.ring,
            Word::Stop => &host.stop,
            Word::Done => &device.done,
            Word::Parked => &device.parked,
        }
    }

    /// When the batch that was last seen done began and ended, in nanoseconds of the device's
    /// clock.
    pub(super) fn batch_ns(&self) -> (u64, u64) {
        // The loop wrote them before it announced the batch.
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        (load(&self.device.begun_ns), load(&self.device.ended_ns))
    }
}

/// Memory that holds the words of a loop.
pub(super) trait LoopMemory {
    fn words(&self) -> &LoopWords;

    /// As [`Words::is_lost`].
    fn is_lost(&self) -> bool;
}

impl<M: LoopMemory> LoopMemory for Arc<M> {
    fn words(&self) -> &LoopWords {
        M::words(self)
    }

    fn is_lost(&self) -> bool {
        M::is_lost(self)
    }
}

impl<M: LoopMemory> Words for M {
    fn load(&self, word: Word, order: Ordering) -> u64 {
        self.words().word(word).load(order)
    }

    fn store(&self, word: Word, value: u64, order: Ordering) {
        self.words().word(word).store(value, order);
    }

    fn is_lost(&self) -> bool {
        LoopMemory::is_lost(self)
    }
}
