//! The CPU backend: kernels run as their twins, on all cores.
//!
//! Both sides of a slot's buffer are the same memory, so uploads and downloads copy nothing. A slot
//! queues work until its fence. Then it gives a large batch to the pool, where batches of several
//! slots run side by side: no core waits while one batch ends with a single long structure. A small
//! batch runs on the thread that waits for it, as handing it over would take longer.

mod device_slot;
mod memory;
mod work;

use super::twin_launch::Functions;
use super::{
    Allocation, AllocationKey, Backend, BackendId, Call, CallCounters, DeviceInfo, DeviceSlot,
    DriverCalls, FunctionId, Priority, Space,
};
use crate::error::Result;
use crate::record::{Access, BufferDecl, Kernel};
use device_slot::CpuSlot;
use rayon::ThreadPool;
use std::sync::Arc;

/// Runs the twins on a thread pool.
pub struct CpuBackend {
    device: DeviceInfo,
    shared: Arc<CpuShared>,
}

/// The state that slots share.
struct CpuShared {
    id: BackendId,
    allocation_key: AllocationKey,
    /// The pool that runs twins; `None` to run them on the thread that waits.
    pool: Option<Arc<ThreadPool>>,
    /// Whether the pool gets small batches too.
    takes_all: bool,
    functions: Functions,
    calls: CallCounters,
}

impl CpuBackend {
    /// A backend that computes on `pool`.
    pub fn new(pool: Arc<ThreadPool>) -> Self {
        CpuBackend::on(Some(pool), false)
    }

    /// A backend that gives small batches to `pool` too, so that a thread that asks whether a batch
    /// is done never computes it.
    pub fn in_pool(pool: Arc<ThreadPool>) -> Self {
        CpuBackend::on(Some(pool), true)
    }

    /// A backend that computes on the thread that waits for the result. Twins may
    /// still use rayon's global pool.
    pub fn inline() -> Self {
        CpuBackend::on(None, false)
    }

    /// A backend whose slots give work to `pool`, all of it if `takes_all`, or else what is worth a
    /// hand-over. Without a pool the thread that waits runs it.
    fn on(pool: Option<Arc<ThreadPool>>, takes_all: bool) -> Self {
        let threads = pool.as_ref().map_or(1, |pool| pool.current_num_threads());
        CpuBackend {
            device: DeviceInfo {
                multiprocessors: threads as u32,
                memory_bytes: memory_bytes(),
                shares_host_memory: true,
                ..DeviceInfo::new("cpu", processor_name())
            },
            shared: Arc::new(CpuShared {
                id: BackendId::new(),
                allocation_key: AllocationKey::new(),
                pool,
                takes_all,
                functions: Functions::default(),
                calls: CallCounters::default(),
            }),
        }
    }

    /// Like [`Backend::open_slots`], with the host sides of all buffers in `host`, slot by slot, as
    /// their [`Layout`](super::Layout) has them.
    ///
    /// # Errors
    /// The errors of [`Backend::open_slots`].
    #[cfg(all(feature = "supervise", target_os = "linux"))]
    pub(super) fn open_slots_over(
        &self,
        buffers: &[BufferDecl],
        slots: usize,
        host: super::worker::Arena,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        let open = |buffers| -> Box<dyn DeviceSlot> {
            self.shared.calls.add(Call::Allocation);
            Box::new(CpuSlot::new(buffers, Arc::clone(&self.shared)))
        };
        let all = memory::shared_buffers(buffers, slots, host)?;
        Ok(all.into_iter().map(open).collect())
    }
}

// SAFETY: functions are twins, which are safe code, and every slot has the storage that was
// asked for.
unsafe impl Backend for CpuBackend {
    fn id(&self) -> BackendId {
        self.shared.id
    }

    fn device(&self) -> &DeviceInfo {
        &self.device
    }

    fn computes_when_asked(&self) -> bool {
        !self.shared.takes_all
    }

    fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        self.shared.id.check_process()?;
        self.shared.functions.load(kernel)
    }

    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        slots: usize,
        _: Priority,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        self.shared.id.check_process()?;
        let open = |_| -> Result<Box<dyn DeviceSlot>> {
            let buffers = memory::slot_buffers(buffers)?;
            self.shared.calls.add(Call::Allocation);
            Ok(Box::new(CpuSlot::new(buffers, Arc::clone(&self.shared))))
        };
        (0..slots).map(open).collect()
    }

    fn allocate(&self, space: Space, bytes: usize) -> Result<Allocation> {
        self.shared.id.check_process()?;
        self.shared.calls.add(Call::Allocation);
        memory::allocate(self.shared.allocation_key, space, bytes)
    }

    fn write(&self, from: &[u8], to: &Allocation, to_offset: usize) -> Result<()> {
        self.shared.id.check_process()?;
        to.check_key(self.shared.allocation_key)?;
        to.check_range(to_offset, from.len())?;
        let mut lease = to.lease(Access::Write)?;
        lease.exclusive()[to_offset..to_offset + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn read(&self, from: &Allocation, from_offset: usize, to: &mut [u8]) -> Result<()> {
        self.shared.id.check_process()?;
        from.check_key(self.shared.allocation_key)?;
        from.check_range(from_offset, to.len())?;
        let lease = from.lease(Access::Read)?;
        to.copy_from_slice(&lease.shared()[from_offset..from_offset + to.len()]);
        Ok(())
    }

    fn copy(
        &self,
        from: &Allocation,
        from_offset: usize,
        to: &Allocation,
        to_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.shared.id.check_process()?;
        from.check_key(self.shared.allocation_key)?;
        from.check_range(from_offset, bytes)?;
        to.check_range(to_offset, bytes)?;
        let range = from_offset..from_offset + bytes;
        if from.is(to) {
            Allocation::check_disjoint(from_offset, to_offset, bytes)?;
            let mut lease = to.lease(Access::Write)?;
            lease.exclusive().copy_within(range, to_offset);
            return Ok(());
        }
        let lease = from.lease(Access::Read)?;
        self.write(&lease.shared()[range], to, to_offset)
    }

    fn driver_calls(&self) -> DriverCalls {
        self.shared.calls.snapshot()
    }
}

fn proc_field(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn processor_name() -> String {
    proc_field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn memory_bytes() -> u64 {
    proc_field("/proc/meminfo", "MemTotal")
        .and_then(|field| field.strip_suffix(" kB")?.parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}
