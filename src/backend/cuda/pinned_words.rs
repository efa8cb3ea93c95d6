//! The words of a loop in pinned memory.

use super::context::Context;
use super::memory::Pinned;
use crate::backend::loop_words::{LoopMemory, LoopWords};
use crate::backend::loops::Loops;
#[cfg(all(feature = "supervise", target_os = "linux"))]
use crate::backend::worker::Arena;
use crate::error::Result;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// [`LoopWords`] in pinned memory.
pub(super) struct PinnedWords {
    /// At least as large as the words, and aligned to a page.
    pinned: Pinned,
    context: Arc<Context>,
}

impl PinnedWords {
    pub(super) fn new(context: &Arc<Context>) -> Result<PinnedWords> {
        let pinned = Pinned::zeroed(context, size_of::<LoopWords>())?;
        let context = Arc::clone(context);
        Ok(PinnedWords { pinned, context })
    }

    /// The words in memory that another process shares, which is the host of the loop.
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    pub(super) fn shared(context: &Arc<Context>, arena: Arena) -> Result<PinnedWords> {
        assert!(
            arena.bytes() >= size_of::<LoopWords>(),
            "room for the words"
        );
        let pinned = Pinned::registered(context, arena)?;
        let context = Arc::clone(context);
        Ok(PinnedWords { pinned, context })
    }

    /// The address on the device. With unified addressing it equals the host's.
    pub(super) fn address(&self) -> u64 {
        self.pinned.start().as_ptr() as u64
    }
}

impl LoopMemory for PinnedWords {
    fn words(&self) -> &LoopWords {
        // SAFETY: the memory is as large, aligned to a page, and lives as long as `self`; any bytes
        // are values of the words. They are atomics, which the device and the other process of
        // shared memory change as another thread would.
        unsafe { self.pinned.start().cast().as_ref() }
    }

    fn is_lost(&self) -> bool {
        self.context.is_lost()
    }
}

/// The loops on the device with this handle whose host is this process.
pub(super) fn loops_of(device: i32) -> Arc<Loops<Arc<PinnedWords>>> {
    type OfDevices = BTreeMap<i32, Arc<Loops<Arc<PinnedWords>>>>;
    static DEVICES: Mutex<OfDevices> = Mutex::new(BTreeMap::new());
    Arc::clone(DEVICES.lock().entry(device).or_default())
}
