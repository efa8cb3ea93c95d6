//! A backend whose memory runs out.

use super::{SPACES, backend, roomy, stats, take};
use crate::forward::{BackendHooks, SlotHooks};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tapeloop_engine::backend::contract::{AllocationKey, DeviceSlot, Region};
use tapeloop_engine::backend::{Allocation, Backend, Space};
use tapeloop_engine::memory::Pool;
use tapeloop_engine::{Error, ErrorKind, Result};

/// Lends so many bytes and no more; both kinds are one memory.
struct Scarce {
    allocation_key: AllocationKey,
    bytes_max: usize,
    used: Arc<AtomicUsize>,
}

struct Part {
    bytes: Vec<u8>,
    used: Arc<AtomicUsize>,
}

impl Region for Part {
    fn bytes(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(&mut self.bytes)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes.len(), SeqCst);
    }
}

impl BackendHooks for Scarce {
    type Slot = Unused;

    fn slot(&self, _: &[Box<dyn DeviceSlot>]) -> Unused {
        Unused
    }

    fn allocate(&self, _: &dyn Backend, space: Space, bytes: usize) -> Result<Allocation> {
        if self.used.load(SeqCst) + bytes > self.bytes_max {
            let error = Error::new(
                ErrorKind::OutOfMemory,
                format!("{bytes} bytes were refused"),
            );
            return Err(error.with_code(2));
        }
        self.used.fetch_add(bytes, SeqCst);
        let part = Part {
            bytes: vec![0; bytes],
            used: Arc::clone(&self.used),
        };
        Ok(Allocation::new(
            self.allocation_key,
            space,
            1 << 20,
            bytes,
            Box::new(part),
        ))
    }
}

struct Unused;

impl SlotHooks for Unused {}

#[test]
fn memory_that_the_backend_refuses_is_asked_for_again_without_the_caches() {
    for (space, other) in [(SPACES[0], SPACES[1]), (SPACES[1], SPACES[0])] {
        let used = Arc::new(AtomicUsize::new(0));
        let scarce = Scarce {
            allocation_key: AllocationKey::new(),
            bytes_max: 8192,
            used: Arc::clone(&used),
        };
        let pool = Pool::new(scarce.around(backend()), roomy());
        let held = take(&pool, space, 1024, "held").unwrap();
        drop(take(&pool, space, 2048, "free").unwrap());
        drop(take(&pool, other, 4096, "free").unwrap());
        assert_eq!(used.load(SeqCst), 7168);

        let large = take(&pool, space, 7168, "large").unwrap();
        assert_eq!(used.load(SeqCst), 8192, "caches of both kinds made room");
        assert_eq!(stats(&pool, other).trims, 1);

        let error = take(&pool, other, 256, "small").err().unwrap();
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::OutOfMemory, Some(2))
        );
        let text = error.to_string();
        for part in [
            "small: 256 bytes were refused",
            "large",
            "held",
            "(fix: drop",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        let after = stats(&pool, space);
        assert_eq!((after.in_use_bytes, after.refused), (8192, 0));
        assert_eq!(stats(&pool, other).refused, 1);

        // A pool that closes keeps nothing back from the others.
        drop(pool);
        drop(held);
        assert_eq!(used.load(SeqCst), 7168);
        drop(large);
        assert_eq!(used.load(SeqCst), 0);
    }
}
