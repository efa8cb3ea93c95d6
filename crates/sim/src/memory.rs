//! Simulated device memory and pinned memory.

use super::clock::{History, PastAccess, VectorClock};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tapeloop_engine::backend::Space;
use tapeloop_engine::backend::contract::{ALIGN_BYTES, Op, Region};
use tapeloop_engine::error::Result;
use tapeloop_engine::internal::Storage;
use tapeloop_engine::internal::TwinCall;
use tapeloop_engine::record::Kernel;

/// Returns the start of an address range that no simulated memory of the process ever had, so that a stale
/// address is never valid again.
fn reserve_addresses(bytes: usize) -> u64 {
    // Any start would do that small numbers, taken for addresses by mistake, do not reach.
    static NEXT: AtomicU64 = AtomicU64::new(0x7f00_0000_0000);
    // Leaves a gap, so that the address past the end is not the start of other memory.
    let room = (bytes as u64 + 1).next_multiple_of(ALIGN_BYTES as u64);
    NEXT.fetch_add(room, Relaxed)
}

/// One side of a slot's buffer, or an allocation.
pub(super) struct SimAllocation {
    pub(super) bytes: Storage,
    pub(super) space: Space,
    pub(super) name: String,
    /// The slot that owns it; `None` for an allocation.
    pub(super) slot: Option<u32>,
    /// Whether a kernel may only read bytes that were written. A batch may leave a part of an upload or
    /// input buffer unwritten.
    pub(super) kernels_read_only_written: bool,
    pub(super) history: History,
    written: Vec<Range<usize>>,
}

impl SimAllocation {
    /// Notes that bytes were written. Ranges that touch are merged.
    pub(super) fn write_down(&mut self, range: &Range<usize>) {
        if range.is_empty() {
            return;
        }
        let mut merged = range.clone();
        self.written.retain(|old| {
            let apart = old.end < merged.start || merged.end < old.start;
            if !apart {
                merged = merged.start.min(old.start)..merged.end.max(old.end);
            }
            apart
        });
        self.written.push(merged);
    }

    /// Adds an access to the history.
    pub(super) fn add(&mut self, access: &PastAccess, settled: &VectorClock) {
        if access.writes {
            self.write_down(&access.range);
        }
        if !access.range.is_empty() {
            self.history.record(access, settled);
        }
    }

    /// Whether a byte of the range was written.
    pub(super) fn is_written(&self, range: &Range<usize>) -> bool {
        let mut written = self.written.iter();
        written.any(|old| old.start < range.end && range.start < old.end)
    }
}

/// Why there is no memory at an address.
pub(super) enum NoMemory {
    /// The address is in this memory, which was freed.
    Freed(String),
    /// There never was memory.
    Unknown,
}

/// All memory, by address.
pub(super) struct SimMemory {
    live: BTreeMap<u64, SimAllocation>,
    freed: BTreeMap<u64, (usize, String)>,
    poison: [u8; 8],
    /// Whether new memory is poisoned.
    is_poisoned: bool,
}

impl SimMemory {
    pub(super) fn new(poison: u64, is_poisoned: bool) -> Self {
        SimMemory {
            live: BTreeMap::new(),
            freed: BTreeMap::new(),
            // No byte is 0, as that is the value that bugs tend to expect.
            poison: poison.to_le_bytes().map(|byte| byte | 1),
            is_poisoned,
        }
    }

    pub(super) fn poison(&self, bytes: &mut [u8]) {
        fill(bytes, self.poison);
    }

    /// The contents of new memory.
    pub(super) fn fresh(&self, bytes: usize) -> Result<Storage> {
        let mut storage = Storage::zeroed(bytes)?;
        if self.is_poisoned {
            self.poison(storage.as_mut_slice());
        }
        Ok(storage)
    }

    /// Allocates memory and returns its address, which `name` gets too.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](tapeloop_engine::error::ErrorKind::OutOfMemory) if the host has
    /// no memory.
    pub(super) fn allocate(
        &mut self,
        bytes: usize,
        space: Space,
        slot: Option<u32>,
        name: impl FnOnce(u64) -> String,
    ) -> Result<u64> {
        let storage = self.fresh(bytes)?;
        let address = reserve_addresses(bytes);
        let allocation = SimAllocation {
            bytes: storage,
            space,
            name: name(address),
            slot,
            kernels_read_only_written: false,
            history: History::default(),
            written: Vec::new(),
        };
        self.live.insert(address, allocation);
        Ok(address)
    }

    pub(super) fn free(&mut self, address: u64) {
        if let Some(freed) = self.live.remove(&address) {
            let bytes = freed.bytes.as_slice().len();
            self.freed.insert(address, (bytes, freed.name));
        }
    }

    /// Gives device memory unspecified contents.
    pub(super) fn spoil(&mut self) {
        let poison = self.poison;
        let device = |memory: &&mut SimAllocation| memory.space == Space::Device;
        for memory in self.live.values_mut().filter(device) {
            fill(memory.bytes.as_mut_slice(), poison);
            memory.written.clear();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    /// The start of the memory that contains `address`.
    pub(super) fn find(&self, address: u64) -> Result<u64, NoMemory> {
        // Memory of 0 bytes contains its start address.
        let around = self.live.range(..=address).next_back();
        let holds = |start: u64, bytes: usize| address - start < bytes.max(1) as u64;
        if let Some((&start, allocation)) = around
            && holds(start, allocation.bytes.as_slice().len())
        {
            return Ok(start);
        }
        match self.freed.range(..=address).next_back() {
            Some((&start, (bytes, name))) if holds(start, *bytes) => {
                Err(NoMemory::Freed(name.clone()))
            }
            _ => Err(NoMemory::Unknown),
        }
    }

    pub(super) fn at(&self, start: u64) -> &SimAllocation {
        &self.live[&start]
    }

    pub(super) fn at_mut(&mut self, start: u64) -> &mut SimAllocation {
        self.live.get_mut(&start).expect("live memory")
    }

    pub(super) fn is_live(&self, start: u64) -> bool {
        self.live.contains_key(&start)
    }

    /// The bytes from `address` on; `None` if the memory was freed or too small.
    fn bytes(&mut self, address: u64, bytes: usize) -> Option<&mut [u8]> {
        let start = self.find(address).ok()?;
        let offset = (address - start) as usize;
        let all = self.at_mut(start).bytes.as_mut_slice();
        all.get_mut(offset..offset.checked_add(bytes)?)
    }

    /// Runs the `part`-th of `parts` of a copy or memset; `None` if the memory was freed. Only
    /// copies are cut in parts.
    pub(super) fn apply(&mut self, op: &Op, part: u32, parts: u32) -> Option<()> {
        let cut = |bytes: usize| {
            let boundary = |part: u32| bytes * part as usize / parts as usize;
            boundary(part)..boundary(part + 1)
        };
        let (from, to, range) = match *op {
            Op::Upload {
                host,
                device,
                bytes,
            } => (host, device, cut(bytes)),
            Op::Download {
                device,
                host,
                bytes,
            } => (device, host, cut(bytes)),
            Op::Copy { from, to, bytes } => (from, to, cut(bytes)),
            Op::Memset {
                device,
                byte,
                bytes,
            } => {
                self.bytes(device, bytes)?.fill(byte);
                return Some(());
            }
            Op::Launch { .. } | Op::Timestamp { .. } => return Some(()),
        };
        let (start, length) = (range.start as u64, range.len());
        let moved = self.bytes(from + start, length)?.to_vec();
        self.bytes(to + start, length)?.copy_from_slice(&moved);
        Some(())
    }

    /// Runs a kernel's twin; `None` if the memory was freed. The inner error is the twin's.
    pub(super) fn launch(
        &mut self,
        kernel: &Kernel,
        grid: [u32; 3],
        args: &[u64],
    ) -> Option<Result<()>> {
        let mut pointers_into: BTreeMap<u64, Vec<(usize, usize)>> = BTreeMap::new();
        for (index, pointer) in kernel.pointers().enumerate() {
            let address = args[pointer.word];
            let start = self.find(address).ok()?;
            let place = ((address - start) as usize, index);
            pointers_into.entry(start).or_default().push(place);
        }
        let mut launch = TwinCall::new(kernel, grid, args);
        let (Some((&first, _)), Some((&last, _))) = (
            pointers_into.first_key_value(),
            pointers_into.last_key_value(),
        ) else {
            return Some(launch.run());
        };
        // One pass, which borrows each piece of memory by itself.
        for (start, allocation) in self.live.range_mut(first..=last) {
            let Some(mut pointers) = pointers_into.remove(start) else {
                continue;
            };
            let added = if launch.writes_any(&pointers) {
                launch.add_exclusive(&mut pointers, allocation.bytes.as_mut_slice())
            } else {
                launch.add_shared(&pointers, allocation.bytes.as_slice());
                Ok(())
            };
            if added.is_err() {
                return Some(added);
            }
        }
        Some(launch.run())
    }
}

fn fill(bytes: &mut [u8], pattern: [u8; 8]) {
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = pattern[place % pattern.len()];
    }
}

/// Addresses of allocations whose last handle was dropped. A handle may be dropped while its thread
/// holds the lock of the device, so the device frees the memory later.
pub(super) type Graveyard = Arc<Mutex<Vec<u64>>>;

/// The memory of an allocation: its address on the device, and the bytes that the host sees while
/// the device does not use it.
pub(super) struct AllocationRegion {
    pub(super) address: u64,
    pub(super) host: Option<Storage>,
    pub(super) graveyard: Graveyard,
}

impl Region for AllocationRegion {
    fn bytes(&self) -> Option<&[u8]> {
        self.host.as_ref().map(Storage::as_slice)
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        self.host.as_mut().map(Storage::as_mut_slice)
    }
}

impl Drop for AllocationRegion {
    fn drop(&mut self) {
        self.graveyard.lock().push(self.address);
    }
}
