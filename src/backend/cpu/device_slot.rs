//! A slot of the CPU backend: it queues work, and runs it when it is polled.

use super::Shared;
use super::memory::{Allocations, Location};
use crate::backend::graphs::{Graphs, check_same_build};
use crate::backend::storage::Storage;
use crate::backend::twin_launch::{Launch, check_words};
use crate::backend::{
    Addresses, Allocation, Built, Call, DeviceSlot, DeviceSlotId, FunctionId, GraphId, GraphSource,
    HostViews, Op, Queue, Streams, TIMESTAMPS, Timestamps, host_ns, no_timestamp,
};
use crate::error::{Context, Error, Result};
use crate::record::{Access, BufferId};
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Instant;

/// An operation with the allocations that it uses.
#[derive(Clone)]
struct CheckedOp {
    op: Op,
    uses: Vec<(Allocation, Access)>,
}

struct Graph {
    // Shared with launches in flight, which an update must not change.
    steps: Arc<Vec<CheckedOp>>,
    captured: bool,
}

enum Work {
    Op(CheckedOp),
    Graph(Arc<Vec<CheckedOp>>),
}

pub(super) struct CpuSlot {
    id: DeviceSlotId,
    buffers: Vec<Storage>,
    allocations: Allocations,
    shared: Arc<Shared>,
    graphs: Graphs<Graph>,
    queue: Vec<Work>,
    timestamps: Timestamps,
    /// The error of work that ran before it was waited for.
    failed: Option<Error>,
    /// The error of a slot that was given up.
    abandoned: Option<Error>,
}

impl CpuSlot {
    pub(super) fn new(buffers: Vec<Storage>, shared: Arc<Shared>) -> Self {
        CpuSlot {
            id: DeviceSlotId::new(shared.id),
            buffers,
            allocations: Allocations::default(),
            shared,
            graphs: Graphs::default(),
            queue: Vec::new(),
            timestamps: [None; TIMESTAMPS],
            failed: None,
            abandoned: None,
        }
    }

    fn locate(&self, address: u64, bytes: usize) -> Result<Location> {
        match self.buffers.get(address as usize) {
            Some(own) if bytes <= own.as_slice().len() => Ok(Location::Own(address as usize)),
            _ => self
                .allocations
                .find(address, bytes)
                .map(|allocation| Location::Allocation {
                    allocation: allocation.address(),
                    offset: (address - allocation.address()) as usize,
                }),
        }
    }

    /// Checks every address, and finds the allocations behind them.
    fn step(&self, op: &Op) -> Result<CheckedOp> {
        let mut uses = Vec::new();
        let mut touch = |address: u64, bytes: usize, access: Access| -> Result<()> {
            if let Location::Allocation { .. } = self.locate(address, bytes)? {
                uses.push((self.allocations.find(address, bytes)?.clone(), access));
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
            &Op::Memset { device, bytes, .. } => touch(device, bytes, Access::Write)?,
            Op::Launch { function, args, .. } => {
                let kernel = self.shared.functions.get(*function)?;
                check_words(&kernel, args)?;
                for pointer in kernel.pointers() {
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

    fn lease(&mut self, steps: &[CheckedOp]) -> Result<()> {
        let uses = || steps.iter().flat_map(|step| &step.uses);
        // A read lease cannot become a write lease while work holds it.
        if uses().any(|(allocation, access)| self.allocations.only_read(allocation, *access)) {
            // The error belongs to earlier work, and the next wait returns it.
            self.failed = self.failed.take().or(self.drain().err());
            self.allocations.release();
        }
        // Writes come first, so that no allocation is leased twice.
        let writes = uses().filter(|(_, access)| access.writes());
        let reads = uses().filter(|(_, access)| !access.writes());
        for (allocation, access) in writes.chain(reads) {
            self.allocations.lease(allocation, *access)?;
        }
        Ok(())
    }

    fn check_abandoned(&self) -> Result<()> {
        self.abandoned.clone().map_or(Ok(()), Err)
    }

    fn drain(&mut self) -> Result<()> {
        for work in std::mem::take(&mut self.queue) {
            match work {
                Work::Op(step) => self.run(&step.op)?,
                Work::Graph(steps) => steps.iter().try_for_each(|step| self.run(&step.op))?,
            }
        }
        Ok(())
    }

    fn run(&mut self, op: &Op) -> Result<()> {
        match op {
            &Op::Upload {
                host,
                device,
                bytes,
            } => self.copy(host, device, bytes),
            &Op::Download {
                device,
                host,
                bytes,
            } => self.copy(device, host, bytes),
            &Op::Memset {
                device,
                byte,
                bytes,
            } => {
                let location = self.locate_leased(device);
                self.bytes_mut(location)[..bytes].fill(byte);
                Ok(())
            }
            Op::Launch {
                function,
                grid,
                args,
                ..
            } => self.launch(*function, *grid, args),
            &Op::Timestamp { timestamp } => {
                self.timestamps[timestamp as usize] = Some(host_ns(Instant::now()));
                Ok(())
            }
        }
    }

    fn launch(&mut self, function: FunctionId, grid: [u32; 3], args: &[u64]) -> Result<()> {
        let kernel = self.shared.functions.get(function)?;
        let mut places: Vec<(Location, usize)> = Vec::new();
        for (index, pointer) in kernel.pointers().enumerate() {
            places.push((self.locate_leased(args[pointer.word]), index));
        }
        let mut launch = Launch::new(&kernel, grid, args);
        for (index, storage) in self.buffers.iter_mut().enumerate() {
            let here = |&(place, arg): &(Location, usize)| match place {
                Location::Own(own) if own == index => Some((0, arg)),
                _ => None,
            };
            let here: Vec<_> = places.iter().filter_map(here).collect();
            match launch.writes_any(&here) {
                true => launch.add_exclusive(here, storage.as_mut_slice())?,
                false => launch.add_shared(&here, storage.as_slice()),
            }
        }
        for (address, lease) in self.allocations.leases_mut() {
            let here = |&(place, arg): &(Location, usize)| match place {
                Location::Allocation { allocation, offset } if allocation == address => {
                    Some((offset, arg))
                }
                _ => None,
            };
            let here: Vec<_> = places.iter().filter_map(here).collect();
            match launch.writes_any(&here) {
                true => launch.add_exclusive(here, lease.exclusive())?,
                false => launch.add_shared(&here, lease.shared()),
            }
        }
        launch.run(self.shared.pool.as_deref())
    }

    /// As [`CpuSlot::locate`], for an address that [`CpuSlot::step`] let through:
    /// the allocation may be disowned since, and is leased.
    fn locate_leased(&mut self, address: u64) -> Location {
        match self.buffers.get(address as usize) {
            Some(_) => Location::Own(address as usize),
            None => self.allocations.locate_leased(address),
        }
    }

    fn bytes_mut(&mut self, location: Location) -> &mut [u8] {
        match location {
            Location::Own(index) => self.buffers[index].as_mut_slice(),
            Location::Allocation { allocation, offset } => {
                &mut self.allocations.leased_mut(allocation)[offset..]
            }
        }
    }

    fn bytes(&self, location: Location) -> &[u8] {
        match location {
            Location::Own(index) => self.buffers[index].as_slice(),
            Location::Allocation { allocation, offset } => {
                &self.allocations.leased(allocation)[offset..]
            }
        }
    }

    fn copy(&mut self, from: u64, to: u64, bytes: usize) -> Result<()> {
        // Both sides of a slot's buffer are the same memory.
        if from != to {
            let (from, to) = (self.locate_leased(from), self.locate_leased(to));
            let copied = self.bytes(from)[..bytes].to_vec();
            self.bytes_mut(to)[..bytes].copy_from_slice(&copied);
        }
        Ok(())
    }
}

// SAFETY: each buffer has storage of its own, of which its address is the place, and the
// borrow checker keeps host and slot apart.
unsafe impl DeviceSlot for CpuSlot {
    fn id(&self) -> &DeviceSlotId {
        &self.id
    }

    fn streams(&self) -> Option<Streams> {
        None
    }

    fn is_quiet(&self) -> bool {
        self.queue.is_empty()
    }

    fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    fn addresses(&self, buffer: BufferId) -> Addresses {
        let address = buffer.index() as u64;
        Addresses {
            device: address,
            host: Some(address),
            bytes: self.buffers[buffer.index()].as_slice().len(),
        }
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.buffers[buffer.index()].as_slice()
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        let mut wanted = buffers.iter().map(|buffer| buffer.index()).peekable();
        let all = self.buffers.iter_mut().enumerate();
        let views: HostViews<'_> = all
            .filter(|(index, _)| wanted.next_if_eq(index).is_some())
            .map(|(_, storage)| storage.as_mut_slice())
            .collect();
        assert_eq!(views.len(), buffers.len(), "buffers ascend and exist");
        views
    }

    fn adopt(&mut self, allocation: &Allocation) -> Result<()> {
        allocation.check_key(self.shared.allocation_key)?;
        self.allocations.adopt(allocation);
        Ok(())
    }

    fn disown(&mut self, allocation: &Allocation) {
        self.allocations.disown(allocation);
    }

    unsafe fn enqueue(&mut self, _: Queue, op: &Op) -> Result<()> {
        let step = self.step(op)?;
        self.shared.calls.add(Call::Submission);
        self.check_abandoned()?;
        self.lease(std::slice::from_ref(&step))?;
        self.queue.push(Work::Op(step));
        Ok(())
    }

    fn join(&mut self, _: Queue, _: Queue) -> Result<()> {
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
            captured: source.is_captured(),
        };
        let Some(id) = into else {
            return Ok((self.graphs.insert(graph), Built::Instantiated));
        };
        let old = self.graphs.get_mut(id)?;
        check_same_build(old.captured, graph.captured)?;
        let kinds = |graph: &Graph| -> Vec<_> {
            let steps = graph.steps.iter();
            steps.map(|step| discriminant(&step.op)).collect()
        };
        let built = match kinds(old) == kinds(&graph) {
            true => Built::Updated,
            false => Built::Reinstantiated {
                reason: "the graph topology changed".to_owned(),
            },
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
            return Err(Error::usage("an operation stays of its kind"));
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
        self.shared.calls.add(Call::Submission);
        self.check_abandoned()?;
        let steps = Arc::clone(&self.graphs.get_mut(graph)?.steps);
        self.lease(&steps)?;
        self.queue.push(Work::Graph(steps));
        Ok(())
    }

    fn fence(&mut self) -> Result<()> {
        self.shared.calls.add(Call::Submission);
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool> {
        self.wait().map(|()| true)
    }

    fn wait(&mut self) -> Result<()> {
        self.shared.calls.add(Call::Poll);
        self.check_abandoned()?;
        // An error ends the batch: the rest of the queue does not run.
        let done = match self.failed.take() {
            Some(error) => {
                self.queue.clear();
                Err(error)
            }
            None => self.drain(),
        };
        self.allocations.release();
        done
    }

    fn abandon(&mut self, error: &Error) {
        self.queue.clear();
        self.abandoned.get_or_insert_with(|| error.clone());
    }

    fn timestamps(&self) -> Result<Timestamps> {
        self.shared.calls.add(Call::Timing);
        Ok(self.timestamps)
    }
}
