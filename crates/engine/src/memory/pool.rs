//! The pool, and the allocations that it lends.

use super::buffer::{Device, MemorySpace, Owned, Pinned};
use super::size_class::allocation_bytes;
use super::store::{Loan, Store};
use super::{DeviceBuffer, LeakReport, Limits, PinnedBuffer, PoolConfig, PoolStats};
use crate::backend::{Allocation, Backend, Space};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::record::{Element, check_element};
use parking_lot::{Mutex, MutexGuard};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// A pool of device and pinned memory. Clones are handles of the same pool.
///
/// Dropping the last handle closes the pool: it frees all free allocations and logs a warning if
/// buffers are still alive. Those buffers stay usable.
#[derive(Clone)]
pub struct Pool {
    handle: Arc<Handle>,
}

/// Dropped with the last [`Pool`]. Buffers hold [`PoolShared`] only.
struct Handle {
    shared: Arc<PoolShared>,
}

/// The state that the pool's handles and its buffers share.
pub(super) struct PoolShared {
    backend: Arc<dyn Backend>,
    config: PoolConfig,
    // Stays locked during calls of the backend, so that limits and counts are exact at every
    // moment. Only misses and releases make such calls.
    stores: Mutex<Stores>,
}

struct Stores {
    device: Store,
    pinned: Store,
}

impl Pool {
    /// A pool of memory of `backend`, empty at first.
    pub fn new(backend: Arc<dyn Backend>, config: PoolConfig) -> Self {
        let store = |space, limits| Store::new(space, limits, config.tracking, Instant::now());
        let stores = Mutex::new(Stores {
            device: store(Space::Device, config.device),
            pinned: store(Space::Pinned, config.pinned),
        });
        let shared = PoolShared {
            backend,
            config,
            stores,
        };
        Pool {
            handle: Arc::new(Handle {
                shared: Arc::new(shared),
            }),
        }
    }

    /// A buffer of `len` elements in device memory. Errors and the leak report name the owner.
    /// Its contents are unspecified unless the configuration sets a fill byte.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a `len` of 0, or whose size overflows; [`ErrorKind::OutOfMemory`], with the
    /// memory that the pool holds; those of the [backend](crate::backend::contract#errors).
    pub fn device<T: Element>(
        &self,
        len: usize,
        owner: impl Into<Cow<'static, str>>,
    ) -> Result<DeviceBuffer<T>> {
        self.lend::<T, Device>(len, owner.into())
    }

    /// A buffer of `len` elements in pinned memory; otherwise as [`Pool::device`].
    ///
    /// # Errors
    /// The errors of [`Pool::device`].
    pub fn pinned<T: Element>(
        &self,
        len: usize,
        owner: impl Into<Cow<'static, str>>,
    ) -> Result<PinnedBuffer<T>> {
        self.lend::<T, Pinned>(len, owner.into())
    }

    /// A buffer of `len` elements: one that was freed before, or else a new allocation of the
    /// backend. The errors are those of [`Pool::device`].
    fn lend<T: Element, P: MemorySpace>(
        &self,
        len: usize,
        owner: Cow<'static, str>,
    ) -> Result<Owned<T, P>> {
        const { check_element::<T>() };
        let pooled = match len.checked_mul(size_of::<T>()) {
            Some(0) => Err(Error::usage("it has no elements")),
            Some(bytes) => self.handle.shared.allocate(P::SPACE, bytes, owner.clone()),
            None => Err(Error::usage("its size overflows")),
        };
        let place = || format!("{} buffer of {owner}", P::SPACE.name());
        Ok(Owned::new(pooled.within(place)?, len))
    }

    /// Frees the free allocations that were not reused for [`Limits::idle_trim`](super::Limits)
    /// until `now`. Returns the bytes that were freed. Taking and dropping buffers does the same,
    /// so only a program that does neither for a long time needs to call this.
    pub fn trim(&self, now: Instant) -> u64 {
        self.stores(now).map_or(0, |mut stores| stores.trim(now))
    }

    /// Frees all free allocations. Returns the bytes that were freed.
    pub fn clear(&self) -> u64 {
        let stores = self.stores(Instant::now());
        stores.map_or(0, |mut stores| stores.clear())
    }

    /// The statistics of the pool.
    pub fn stats(&self) -> PoolStats {
        let Some(stores) = self.stores(Instant::now()) else {
            return PoolStats::default();
        };
        PoolStats {
            device: stores.device.stats(),
            pinned: stores.pinned.stats(),
        }
    }

    /// The buffers that are alive, by owner.
    pub fn leaks(&self) -> LeakReport {
        let now = Instant::now();
        let stores = self.stores(now);
        stores.map_or_else(LeakReport::default, |stores| stores.report(now))
    }

    /// The settings of the pool.
    pub fn config(&self) -> &PoolConfig {
        &self.handle.shared.config
    }

    /// The backend that the memory comes from.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.handle.shared.backend
    }

    /// Locks the stores, and takes parked allocations back that have become idle. `None` in a child
    /// of the process that opened the backend.
    fn stores(&self, now: Instant) -> Option<MutexGuard<'_, Stores>> {
        self.backend().id().check_process().ok()?;
        let mut stores = self.handle.shared.stores.lock();
        stores.take_back_idle(now);
        Some(stores)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.shared.backend.id().check_process().is_err() {
            return;
        }
        let mut stores = self.shared.stores.lock();
        stores.device.close();
        stores.pinned.close();
        let report = stores.report(Instant::now());
        // A subscriber of the log may drop a buffer, which takes the lock.
        drop(stores);
        if !report.is_empty() {
            tracing::warn!("a memory pool was dropped before its buffers: {report}");
        }
    }
}

impl PoolShared {
    /// Takes an allocation of at least `requested` bytes out of the pool, or a new one within its
    /// limits. Counts it as lent to `owner`, and fills it if the pool's config says so. Frees
    /// allocations that were free for too long.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] if the size overflows; those of [`PoolShared::take_new`]; those of the
    /// backend's write.
    fn allocate(
        self: &Arc<Self>,
        space: Space,
        requested: usize,
        owner: Cow<'static, str>,
    ) -> Result<PooledAllocation> {
        self.backend.id().check_process()?;
        let Some(bytes) = allocation_bytes(requested) else {
            return Err(Error::usage("its size overflows"));
        };
        let now = Instant::now();
        let mut stores = self.stores.lock();
        stores.take_back_idle(now);
        // This comes before the trim, which may free the very allocation.
        let free = stores.store_mut(space).take(bytes);
        stores.trim(now);
        let (allocation, hit) = match free {
            Some(allocation) => (allocation, true),
            None => (self.take_new(&mut stores, space, bytes)?, false),
        };
        let loan = stores
            .store_mut(space)
            .lend(requested, bytes, hit, owner, now);
        // The fill writes without the lock. From here on an error gives the allocation back.
        drop(stores);
        let pooled = PooledAllocation {
            shared: Arc::clone(self),
            allocation: Some(allocation),
            loan,
        };
        if let Some(byte) = self.config.fill {
            self.backend
                .write(&vec![byte; bytes], pooled.allocation(), 0)
                .within(|| "fill")?;
        }
        Ok(pooled)
    }

    /// A new allocation. Frees free ones if the limit or the backend demands it.
    /// [`ErrorKind::OutOfMemory`], with a report of who holds what, if the limit or the backend
    /// does not allow it; other errors of the backend as they are. All count as refused.
    fn take_new(&self, stores: &mut Stores, space: Space, bytes: usize) -> Result<Allocation> {
        if !stores.store_mut(space).make_room(bytes) {
            stores.store_mut(space).refuse();
            return Err(stores.limit_error(space, bytes));
        }
        let out = |error: &Error| error.kind() == ErrorKind::OutOfMemory;
        let mut taken = self.backend.allocate(space, bytes);
        // On some devices both kinds are the same memory, so both caches are freed.
        if taken.as_ref().is_err_and(out) && stores.clear() > 0 {
            taken = self.backend.allocate(space, bytes);
        }
        taken.map_err(|error| {
            stores.store_mut(space).refuse();
            if out(&error) {
                stores.backend_memory_error(&error)
            } else {
                error
            }
        })
    }
}

impl Stores {
    fn store_mut(&mut self, space: Space) -> &mut Store {
        match space {
            Space::Device => &mut self.device,
            Space::Pinned => &mut self.pinned,
        }
    }

    fn take_back_idle(&mut self, now: Instant) {
        self.device.take_back_idle(now);
        self.pinned.take_back_idle(now);
    }

    fn trim(&mut self, now: Instant) -> u64 {
        self.device.trim(now) + self.pinned.trim(now)
    }

    fn clear(&mut self) -> u64 {
        self.device.clear() + self.pinned.clear()
    }

    fn report(&self, now: Instant) -> LeakReport {
        let mut report = LeakReport::default();
        self.device.report(&mut report, now);
        self.pinned.report(&mut report, now);
        report.sorted()
    }

    /// The error of an allocation over the pool's limit, with a report of who holds what. The pool
    /// has a limit, as it was exceeded.
    fn limit_error(&mut self, space: Space, bytes: usize) -> Error {
        let store = self.store_mut(space);
        let Limits { bytes_max, .. } = *store.limits();
        let stats = store.stats();
        let message = format!(
            "an allocation of {bytes} bytes does not fit within the pool's {} bytes: {} are in use, {} \
             parked; {}",
            bytes_max.unwrap_or(u64::MAX),
            stats.in_use_bytes,
            stats.parked_bytes,
            self.report(Instant::now())
        );
        Error::new(ErrorKind::OutOfMemory, message).fix(format!(
            "drop buffers, or raise bytes_max of {} memory",
            space.name()
        ))
    }

    /// The backend's error of memory that ran out, with a report of who holds what in this pool.
    fn backend_memory_error(&self, error: &Error) -> Error {
        let report = self.report(Instant::now());
        let message = format!("{}; of this pool {report}", error.message());
        let error_with_report = Error::new(ErrorKind::OutOfMemory, message)
            .fix("drop buffers, or give the engine fewer slots or smaller batches");
        match error.code() {
            Some(code) => error_with_report.with_code(code),
            None => error_with_report,
        }
    }
}

/// An allocation that a pool lends. Dropping it returns the allocation.
pub(super) struct PooledAllocation {
    shared: Arc<PoolShared>,
    /// `None` only during `drop`.
    allocation: Option<Allocation>,
    loan: Loan,
}

impl PooledAllocation {
    pub(super) fn allocation(&self) -> &Allocation {
        self.allocation.as_ref().expect("there until it is dropped")
    }

    pub(super) fn backend(&self) -> &dyn Backend {
        &*self.shared.backend
    }
}

impl Drop for PooledAllocation {
    fn drop(&mut self) {
        let Some(allocation) = self.allocation.take() else {
            return;
        };
        if self.shared.backend.id().check_process().is_err() {
            // In a forked child: the memory is the parent's, and the lock may be held by a thread
            // that the child does not have.
            std::mem::forget(allocation);
            return;
        }
        let now = Instant::now();
        let mut stores = self.shared.stores.lock();
        stores
            .store_mut(allocation.space())
            .take_back(self.loan, allocation);
        stores.take_back_idle(now);
        stores.trim(now);
    }
}
