//! The state that every later worker gets again.

use super::addresses::{ALLOCATIONS_START, SLOTS_MAX};
use super::arena::{Arena, CompletionFlags};
use super::ipc::Link;
use super::message::{KernelDecl, Request, Spec, WorkerReply};
use super::supervisor::answer;
use super::unexpected_reply_error;
use crate::backend::graphs::Graphs;
use crate::backend::{ALIGN_BYTES, Compilation, Contents, Op, Priority};
use crate::error::{Error, Result};
use crate::record::{BufferDecl, Image};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most bytes of contents that are sent at once. Each part is copied to shared memory, so this bounds
/// what a copy takes next to the contents.
const SENT_BYTES_MAX: usize = 64 << 20;

#[derive(Default)]
pub(super) struct RestartState {
    pub(super) images: Vec<Arc<Image>>,
    pub(super) kernels: Vec<KernelDecl>,
    /// Allocations with their contents, by address.
    filled: BTreeMap<u64, FilledAllocation>,
    /// The end of the addresses that allocations had so far.
    allocations_end: u64,
    groups: Vec<SlotGroup>,
    /// The graphs of each open slot.
    slots: BTreeMap<u32, Graphs<Spec>>,
}

/// An allocation.
pub(super) struct FilledAllocation {
    contents: Arc<Contents>,
    bytes: usize,
    /// Whether the program has a handle of the allocation.
    pub(super) is_held: bool,
}

/// Slots that were opened together.
pub(super) struct SlotGroup {
    pub(super) buffers: Vec<BufferDecl>,
    /// The number of each slot, in the order of `host` and `flags`; `None` for a closed slot.
    pub(super) slots: Vec<Option<u32>>,
    pub(super) priority: Priority,
    pub(super) host: Arc<Arena>,
    pub(super) flags: Arc<CompletionFlags>,
}

impl RestartState {
    /// Numbers for new slots.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if the worker has no room for them.
    pub(super) fn free_slots(&self, count: usize) -> Result<Vec<u32>> {
        let is_free = |slot: &u32| !self.slots.contains_key(slot);
        let free = (0..SLOTS_MAX as u32).filter(is_free).take(count);
        let numbers: Vec<u32> = free.collect();
        if numbers.len() < count {
            let message = format!("a worker has at most {SLOTS_MAX} slots");
            return Err(Error::usage(message));
        }
        Ok(numbers)
    }

    /// An address for an allocation, which no other has had.
    pub(super) fn free_address(&mut self, bytes: usize) -> u64 {
        let start = self.allocations_end.max(ALLOCATIONS_START);
        // The address past the end is in no other allocation, and each is aligned as the buffers of slots
        // are.
        self.allocations_end = start + (bytes as u64 + 1).next_multiple_of(ALIGN_BYTES as u64);
        start
    }

    pub(super) fn add_filled(&mut self, address: u64, filled: FilledAllocation) {
        self.filled.insert(address, filled);
    }

    /// Gives an allocation, of which the program has a handle, other contents.
    pub(super) fn refill(&mut self, address: u64, filled: FilledAllocation) {
        let known = self.filled.insert(address, filled);
        debug_assert!(known.is_some_and(|known| known.is_held));
    }

    /// Notes that the last handle of an allocation was dropped. Graphs may still use it.
    pub(super) fn release(&mut self, address: u64) {
        if let Some(filled) = self.filled.get_mut(&address) {
            filled.is_held = false;
        }
    }

    /// Removes the allocations that neither a handle nor a graph uses. Returns their addresses.
    pub(super) fn take_unused(&mut self) -> Vec<u64> {
        let graphs = || self.slots.values().flat_map(Graphs::iter);
        let is_unused = |(address, filled): &(&u64, &FilledAllocation)| {
            !filled.is_held && !graphs().any(|(_, spec)| filled.is_used(**address, spec))
        };
        let unused = self.filled.iter().filter(is_unused);
        let unused: Vec<u64> = unused.map(|(address, _)| *address).collect();
        for address in &unused {
            self.filled.remove(address);
        }
        unused
    }

    pub(super) fn add(&mut self, group: SlotGroup) {
        let open = group.slots.iter().flatten();
        self.slots
            .extend(open.map(|slot| (*slot, Graphs::default())));
        self.groups.push(group);
    }

    /// Forgets a slot, and its group with the last slot.
    pub(super) fn remove_slot(&mut self, slot: u32) {
        self.slots.remove(&slot);
        for known in self.groups.iter_mut().flat_map(|group| &mut group.slots) {
            if *known == Some(slot) {
                *known = None;
            }
        }
        let is_open = |group: &SlotGroup| group.slots.iter().any(Option::is_some);
        self.groups.retain(is_open);
    }

    /// # Panics
    /// If the slot is not open.
    pub(super) fn graphs(&mut self, slot: u32) -> &mut Graphs<Spec> {
        let graphs = self.slots.get_mut(&slot);
        graphs.expect("open slots are in the restart_state")
    }

    /// Sends everything to a new worker, in an order in which each thing finds those that it names.
    ///
    /// # Errors
    /// The errors of the link and those that the worker's device reports.
    pub(super) fn replay(&self, link: &mut Link) -> Result<()> {
        for image in &self.images {
            link.send(&Request::Image(Arc::clone(image)))?;
        }
        // Loading a kernel reports that its image does not compile.
        let _ = prepare_images(link, 0, |_| {})?;
        for kernel in &self.kernels {
            link.send(&Request::Load(kernel.clone()))?;
            done(link)??;
        }
        for (&address, filled) in &self.filled {
            filled.send(address, link)??;
        }
        for group in &self.groups {
            group.open(link)??;
        }
        for (&slot, graphs) in &self.slots {
            for (graph, spec) in graphs.iter() {
                let spec = spec.clone();
                link.send(&Request::Build { slot, graph, spec })?;
                match answer(link)? {
                    WorkerReply::Built(built) => built.map(|_| ())?,
                    _ => return Err(unexpected_reply_error()),
                }
            }
        }
        Ok(())
    }
}

impl FilledAllocation {
    pub(super) fn new(contents: &Arc<Contents>) -> FilledAllocation {
        FilledAllocation {
            contents: Arc::clone(contents),
            bytes: (**contents).as_ref().len(),
            is_held: true,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a graph uses the allocation at `address`.
    pub(super) fn is_used(&self, address: u64, spec: &Spec) -> bool {
        let end = address + self.bytes.max(1) as u64;
        let is_inside = |word: &u64| (address..end).contains(word);
        spec.ops.iter().any(|op| match op {
            Op::Launch { args, .. } => args.iter().any(is_inside),
            Op::Download { device, .. } => is_inside(device),
            // Nothing writes the allocation, and no graph copies within the device.
            Op::Upload { .. } | Op::Copy { .. } | Op::Memset { .. } | Op::Timestamp { .. } => false,
        })
    }

    /// Takes the allocation in a worker, and fills it. The outer error is the link's, the inner one
    /// the device's.
    pub(super) fn send(&self, address: u64, link: &mut Link) -> Result<Result<()>> {
        let bytes = self.bytes;
        link.send(&Request::Allocate { address, bytes })?;
        match done(link)? {
            Ok(()) => self.send_contents(address, link),
            refused => Ok(refused),
        }
    }

    /// Fills an allocation that the worker has. The outer error is the link's, the inner one the device's.
    pub(super) fn send_contents(&self, address: u64, link: &mut Link) -> Result<Result<()>> {
        let contents = (*self.contents).as_ref();
        if contents.len() != self.bytes {
            return Ok(Err(Error::usage("the contents of an allocation changed")));
        }
        let mut filled = Ok(());
        let mut offset = 0;
        for chunk in contents.chunks(SENT_BYTES_MAX) {
            let copied = filled.and_then(|()| Arena::copy_of(chunk));
            let file = match copied {
                Ok(arena) => arena,
                Err(error) => return Ok(Err(error)),
            };
            let bytes = chunk.len();
            link.send(&Request::Fill {
                address,
                offset,
                bytes,
            })?;
            link.send_file(file.file())?;
            filled = done(link)?;
            offset += bytes;
        }
        Ok(filled)
    }
}

impl SlotGroup {
    /// Opens the slots in the worker. The outer error is the link's, the inner one the
    /// device's.
    pub(super) fn open(&self, link: &mut Link) -> Result<Result<()>> {
        link.send(&Request::OpenSlots {
            buffers: self.buffers.clone(),
            slots: self.slots.clone(),
            priority: self.priority,
        })?;
        link.send_file(self.host.file())?;
        link.send_file(self.flags.file())?;
        done(link)
    }
}

/// Has the worker compile its images from `first` on, and passes its reports on. The outer error is
/// the link's, the inner one the compiler's.
pub(super) fn prepare_images(
    link: &mut Link,
    first: usize,
    mut report: impl FnMut(Compilation),
) -> Result<Result<()>> {
    link.send(&Request::Prepare { first })?;
    loop {
        match answer(link)? {
            WorkerReply::Compiling(compilation) => report(compilation),
            WorkerReply::Done(done) => return Ok(done),
            _ => return Err(unexpected_reply_error()),
        }
    }
}

/// The reply to a request without a result. The outer error is the link's, the inner one the
/// device's.
fn done(link: &mut Link) -> Result<Result<()>> {
    match answer(link)? {
        WorkerReply::Done(done) => Ok(done),
        _ => Err(unexpected_reply_error()),
    }
}
