//! A slot of the CPU backend: it queues work, and gives it to the pool or runs it when it is polled.

use super::CpuShared;
use super::memory::{Adopted, MemoryPlace, in_own, own_address};
use super::work::{CheckedOp, QueuedWork, WorkMemory};
use crate::backend::graphs::{Graphs, check_same_build};
use crate::backend::storage::Storage;
use crate::backend::twin_launch::check_words;
use crate::backend::{
    Addresses, Allocation, Built, Call, DeviceSlot, DeviceSlotId, GraphId, GraphSource,
    HANDED_OVER_BYTES_MIN, HostViews, Op, TIMESTAMPS, Timestamps, no_timestamp, receive_helping,
};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::record::{Access, BufferId};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::mem::discriminant;
use std::sync::Arc;
use tapeloop_error::internal::catch;

struct Graph {
    // Shared with launches in flight, which an update must not change.
    steps: Arc<Vec<CheckedOp>>,
    is_captured: bool,
}

/// What the pool returns: the slot's memory, and the error of the work.
type Ended = (WorkMemory, Result<()>);

pub(super) struct CpuSlot {
    id: DeviceSlotId,
    /// The size of each buffer in bytes.
    sizes: Vec<usize>,
    /// `None` while the pool works on it.
    memory: Option<WorkMemory>,
    /// Each task on the pool has a clone of it.
    ended_sender: Sender<Ended>,
    ended_receiver: Receiver<Ended>,
    adopted: Adopted,
    shared: Arc<CpuShared>,
    graphs: Graphs<Graph>,
    queue: Vec<QueuedWork>,
    /// Timestamps of work whose end a wait or a poll has reported.
    timestamps: Timestamps,
    /// The error of work that ran before it was waited for.
    failed: Option<Error>,
    /// The error of a slot that was given up.
    abandoned: Option<Error>,
}

impl CpuSlot {
    pub(super) fn new(buffers: Vec<Storage>, shared: Arc<CpuShared>) -> Self {
        // The pool has one task of a slot at a time.
        let (ended_sender, ended_receiver) = bounded(1);
        CpuSlot {
            id: DeviceSlotId::new(shared.id),
            sizes: buffers
                .iter()
                .map(|buffer| buffer.as_slice().len())
                .collect(),
            memory: Some(WorkMemory::new(buffers)),
            ended_sender,
            ended_receiver,
            adopted: Adopted::default(),
            shared,
            graphs: Graphs::default(),
            queue: Vec::new(),
            timestamps: [None; TIMESTAMPS],
            failed: None,
            abandoned: None,
        }
    }

    /// Where `bytes` bytes at `address` are: in a buffer of the slot, or in an allocation that the
    /// slot has adopted. Anything else is an error, also bytes that only begin there.
    fn locate(&self, address: u64, bytes: usize) -> Result<MemoryPlace> {
        if let Some((index, offset)) = in_own(address)
            && let Some(size) = self.sizes.get(index)
            && offset <= *size
            && bytes <= size - offset
        {
            return Ok(MemoryPlace::Own { index, offset });
        }
        let allocation = self.adopted.find(address, bytes)?;
        Ok(MemoryPlace::Allocation {
            allocation: allocation.address(),
            offset: (address - allocation.address()) as usize,
        })
    }

    fn assert_quiet(&self) {
        assert!(
            self.is_quiet(),
            "host memory is touched while the slot has work: set a fence behind the work, then wait"
        );
    }

    /// Checks every address, and finds the allocations behind them.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for an address that is not the slot's, a function or timestamp that does not
    /// exist, and another number of words than the kernel takes.
    fn step(&self, op: &Op) -> Result<CheckedOp> {
        self.shared.id.check_process()?;
        let mut uses = Vec::new();
        let mut touch = |address: u64, bytes: usize, access: Access| -> Result<()> {
            if let MemoryPlace::Allocation { .. } = self.locate(address, bytes)? {
                uses.push((self.adopted.find(address, bytes)?.clone(), access));
            }
            Ok(())
        };
        match op {
            &Op::Upload {
                host,
                device,
                bytes,
            } => {
                touch(host, bytes, Access::Read)?;
                touch(device, bytes, Access::Write)?;
            }
            &Op::Download {
                device,
                host,
                bytes,
            } => {
                touch(device, bytes, Access::Read)?;
                touch(host, bytes, Access::Write)?;
            }
            &Op::Copy { from, to, bytes } => {
                touch(from, bytes, Access::Read)?;
                touch(to, bytes, Access::Write)?;
            }
            &Op::Memset { device, bytes, .. } => touch(device, bytes, Access::Write)?,
            Op::Launch { function, args, .. } => {
                let kernel = self.shared.functions.get(*function)?;
                check_words(&kernel, args)?;
                for pointer in kernel.pointers() {
                    // Only the kernel's author knows how far it goes from there.
                    touch(args[pointer.word], 1, pointer.access)?;
                }
            }
            &Op::Timestamp { timestamp } if timestamp as usize >= TIMESTAMPS => {
                return Err(no_timestamp(timestamp));
            }
            Op::Timestamp { .. } => {}
        }
        Ok(CheckedOp {
            op: op.clone(),
            uses,
        })
    }

    /// Leases the allocations that `steps` use; does nothing if they use none. Waits for the pool first,
    /// since the leases are in the memory that the pool works on. If an allocation that is leased for
    /// reads is to be written, runs what is queued on this thread and releases all leases of the slot
    /// before.
    ///
    /// # Errors
    /// Those of [`Allocation::lease`]. Leases that were taken before the error are kept.
    fn lease(&mut self, steps: &[CheckedOp]) -> Result<()> {
        let uses = || steps.iter().flat_map(|step| &step.uses);
        if uses().next().is_none() {
            return Ok(());
        }
        // A read lease cannot become a write lease while work holds it.
        let leases = &self.wait_for_memory().leases;
        if uses().any(|(allocation, access)| leases.needs_upgrade(allocation, *access)) {
            self.drain();
            self.wait_for_memory().leases.release();
        }
        // Writes come first: an allocation that is both written and read gets one write lease.
        let writes = uses().filter(|(_, access)| access.writes());
        let reads = uses().filter(|(_, access)| !access.writes());
        let leases = &mut self.wait_for_memory().leases;
        for (allocation, access) in writes.chain(reads) {
            leases.lease(allocation, *access)?;
        }
        Ok(())
    }

    fn check_abandoned(&self) -> Result<()> {
        self.abandoned.clone().map_or(Ok(()), Err)
    }

    /// Waits until the pool has ended its work on the slot's memory, and returns the memory. A thread of
    /// the pool runs other tasks of the pool meanwhile. The next [`DeviceSlot::wait`] returns the work's
    /// error.
    fn wait_for_memory(&mut self) -> &mut WorkMemory {
        if self.memory.is_none() {
            let pool = self.shared.pool.as_ref();
            let pool = pool.expect("the pool has the slot's memory");
            let ended = receive_helping(&self.ended_receiver, pool);
            self.take_back(ended.expect("the slot has a sender too"));
        }
        self.memory.as_mut().expect("no work is in the pool")
    }

    /// Takes the memory back that the pool returns, with the timestamps, and keeps the first error.
    fn take_back(&mut self, (memory, outcome): Ended) {
        self.timestamps = memory.timestamps;
        self.memory = Some(memory);
        self.failed = self.failed.take().or(outcome.err());
    }

    /// Waits for the pool's work, then runs what is queued on this thread, unless earlier work has failed:
    /// an error ends a batch.
    fn drain(&mut self) {
        self.wait_for_memory();
        let queue = std::mem::take(&mut self.queue);
        let memory = self.memory.as_mut().expect("no work is in the pool");
        if self.failed.is_none() {
            self.failed = memory.run_all(&queue, &self.shared).err();
        }
        self.timestamps = memory.timestamps;
    }

    /// Hands the queue to the pool, if that is worth it and earlier work has neither failed
    /// nor is still in the pool. Returns whether the pool has work of the slot.
    fn spawn(&mut self) -> bool {
        let Some(pool) = &self.shared.pool else {
            return false;
        };
        let is_worth_it = if self.shared.takes_all {
            !self.queue.is_empty()
        } else {
            // A thread of the pool runs it when it waits: another one would not be faster.
            pool.current_thread_index().is_none() && takes_long(&self.queue)
        };
        if self.failed.is_some() || !is_worth_it {
            return self.memory.is_none();
        }
        let Some(mut memory) = self.memory.take() else {
            return true;
        };
        let queue = std::mem::take(&mut self.queue);
        let (shared, ended) = (Arc::clone(&self.shared), self.ended_sender.clone());
        pool.spawn(move || {
            let outcome = catch(|| memory.run_all(&queue, &shared));
            let outcome = outcome.unwrap_or_else(|panic| {
                let message = format!("the CPU backend panicked: {panic}");
                Err(Error::new(ErrorKind::Kernel, message))
            });
            // Who sees the work done may drop the allocations that it used.
            drop((queue, shared));
            // The slot may have been dropped.
            let _ = ended.send((memory, outcome));
        });
        true
    }
}

/// Whether the work takes longer than handing it to another thread, by the bytes of its uploads.
fn takes_long(queue: &[QueuedWork]) -> bool {
    let mut uploaded = 0;
    queue.iter().flat_map(QueuedWork::ops).any(|op| {
        if let Op::Upload { bytes, .. } = op {
            uploaded += bytes;
        }
        uploaded >= HANDED_OVER_BYTES_MIN
    })
}

// SAFETY: each buffer has storage of its own, whose index its addresses hold, and the
// borrow checker keeps host and slot apart.
unsafe impl DeviceSlot for CpuSlot {
    fn id(&self) -> &DeviceSlotId {
        &self.id
    }

    fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.memory.is_some()
    }

    fn buffer_count(&self) -> usize {
        self.sizes.len()
    }

    fn addresses(&self, buffer: BufferId) -> Addresses {
        let address = own_address(buffer.index());
        Addresses {
            device: address,
            host: Some(address),
            bytes: self.sizes[buffer.index()],
        }
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.assert_quiet();
        let memory = self.memory.as_ref().expect("the slot is quiet");
        memory.buffers[buffer.index()].as_slice()
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        self.assert_quiet();
        let mut wanted = buffers.iter().map(|buffer| buffer.index()).peekable();
        let memory = self.memory.as_mut().expect("the slot is quiet");
        let all = memory.buffers.iter_mut().enumerate();
        let views: HostViews<'_> = all
            .filter(|(index, _)| wanted.next_if_eq(index).is_some())
            .map(|(_, storage)| storage.as_mut_slice())
            .collect();
        assert_eq!(views.len(), buffers.len(), "buffers ascend and exist");
        views
    }

    fn adopt(&mut self, allocation: &Allocation) -> Result<()> {
        allocation.check_key(self.shared.allocation_key)?;
        self.adopted.adopt(allocation);
        Ok(())
    }

    fn disown(&mut self, allocation: &Allocation) {
        self.adopted.disown(allocation);
    }

    unsafe fn enqueue(&mut self, op: &Op) -> Result<()> {
        let step = self.step(op)?;
        self.shared.calls.add(Call::Submission);
        self.check_abandoned()?;
        self.lease(std::slice::from_ref(&step))?;
        self.queue.push(QueuedWork::Op(step));
        Ok(())
    }

    unsafe fn make_graph(
        &mut self,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        self.shared.calls.add(Call::GraphEdit);
        source.check()?;
        let step = |(place, op)| {
            let step = self.step(op);
            step.within(|| format!("operation {place}"))
        };
        let steps = source.ops().enumerate().map(step);
        let graph = Graph {
            steps: Arc::new(steps.collect::<Result<_>>()?),
            is_captured: source.is_captured(),
        };
        let Some(id) = into else {
            return Ok((self.graphs.insert(graph), Built::Instantiated));
        };
        let old = self.graphs.get_mut(id)?;
        check_same_build(old.is_captured, graph.is_captured)?;
        let kinds = |graph: &Graph| -> Vec<_> {
            let steps = graph.steps.iter();
            steps.map(|step| discriminant(&step.op)).collect()
        };
        // Work runs in order, without edges: the kinds are all that CUDA would call topology.
        let built = if kinds(old) == kinds(&graph) {
            Built::Updated
        } else {
            Built::Reinstantiated {
                reason: "the graph topology changed".to_owned(),
            }
        };
        *old = graph;
        Ok((id, built))
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        self.shared.calls.add(Call::GraphEdit);
        let step = self.step(op)?;
        let steps = Arc::make_mut(&mut self.graphs.get_mut(graph)?.steps);
        let old = steps.get_mut(node);
        let old = old.ok_or_else(|| Error::usage("the graph has no such operation"))?;
        if discriminant(&old.op) != discriminant(op) {
            return Err(Error::usage(
                "an update cannot change the kind of an operation",
            ));
        }
        *old = step;
        Ok(())
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        let graph = self.graphs.get(graph)?;
        Ok(graph.steps.iter().map(|step| step.op.clone()).collect())
    }

    fn drop_graph(&mut self, graph: GraphId) {
        self.shared.calls.add(Call::GraphEdit);
        self.graphs.remove(graph);
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        self.shared.id.check_process()?;
        self.shared.calls.add(Call::Submission);
        self.check_abandoned()?;
        let steps = Arc::clone(&self.graphs.get_mut(graph)?.steps);
        self.lease(&steps)?;
        self.queue.push(QueuedWork::Graph(steps));
        Ok(())
    }

    fn fence(&mut self) -> Result<()> {
        self.shared.id.check_process()?;
        self.shared.calls.add(Call::Submission);
        // If the pool still runs earlier work, nothing starts here: `is_done` hands the queue to the pool
        // once that work is done.
        self.spawn();
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool> {
        self.shared.id.check_process()?;
        // Of a slot that was given up, `wait` returns the error.
        if self.memory.is_none() && self.abandoned.is_none() {
            match self.ended_receiver.try_recv() {
                Ok(ended) => self.take_back(ended),
                Err(_) => {
                    self.shared.calls.add(Call::Poll);
                    // If this is a thread of the pool, it runs another task of the pool.
                    self.shared.pool.as_ref().and_then(|pool| pool.yield_now());
                    return Ok(false);
                }
            }
            // Work that was queued while the pool was busy.
            if self.spawn() {
                self.shared.calls.add(Call::Poll);
                return Ok(false);
            }
        }
        self.wait().map(|()| true)
    }

    fn wait(&mut self) -> Result<()> {
        self.shared.id.check_process()?;
        self.shared.calls.add(Call::Poll);
        self.check_abandoned()?;
        self.drain();
        self.wait_for_memory().leases.release();
        self.failed.take().map_or(Ok(()), Err)
    }

    fn abandon(&mut self, error: &Error) -> Error {
        self.queue.clear();
        self.abandoned.get_or_insert_with(|| error.clone()).clone()
    }

    fn timestamps(&self) -> Result<Timestamps> {
        self.shared.calls.add(Call::Timing);
        Ok(self.timestamps)
    }
}
