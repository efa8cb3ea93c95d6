//! A backend that forwards its calls to another, except those that a test replaces. Occupancy, borrowed memory,
//! supervision and [`Backend::computes_when_asked`] are as every backend has them by default.

use std::sync::Arc;
use tapeloop_engine::backend::contract::{
    Addresses, BackendId, Built, DeviceSlot, DeviceSlotId, FunctionId, GraphId, GraphSource,
    HostViews, Op, Priority, Timestamps,
};
use tapeloop_engine::backend::{
    Allocation, Backend, Compilation, Contents, DeviceInfo, DriverCalls, ExternalEvent, Residency,
    Space,
};
use tapeloop_engine::record::{BufferDecl, BufferId, Image, Kernel};
use tapeloop_engine::{Error, Result};

/// What the backend that [`BackendHooks::around`] makes does in place of the one it wraps. By default
/// each method forwards.
pub trait BackendHooks: Send + Sync + Sized + 'static {
    /// The hooks of a slot.
    type Slot: SlotHooks;

    /// The hooks of one of the slots that were opened together.
    fn slot(&self, opened: &[Box<dyn DeviceSlot>]) -> Self::Slot;

    /// In place of [`Backend::load`].
    ///
    /// # Errors
    /// The errors of [`Backend::load`].
    fn load(&self, inner: &dyn Backend, kernel: &Kernel) -> Result<FunctionId> {
        inner.load(kernel)
    }

    /// In place of [`Backend::open_slots`].
    ///
    /// # Errors
    /// The errors of [`Backend::open_slots`].
    fn open_slots(
        &self,
        inner: &dyn Backend,
        buffers: &[BufferDecl],
        count: usize,
        priority: Priority,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        let opened = inner.open_slots(buffers, count, priority)?;
        let hooks: Vec<_> = opened.iter().map(|_| self.slot(&opened)).collect();
        let slots = opened.into_iter().zip(hooks);
        let forward =
            |(inner, hooks)| -> Box<dyn DeviceSlot> { Box::new(ForwardSlot { hooks, inner }) };
        Ok(slots.map(forward).collect())
    }

    /// In place of [`Backend::allocate`].
    ///
    /// # Errors
    /// The errors of [`Backend::allocate`].
    fn allocate(&self, inner: &dyn Backend, space: Space, bytes: usize) -> Result<Allocation> {
        inner.allocate(space, bytes)
    }

    /// The backend that forwards to `inner` with these hooks.
    fn around(self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Forward { inner, hooks: self })
    }
}

/// What a slot does in place of the slot that it wraps. By default each method forwards.
pub trait SlotHooks: Send + Sync + 'static {
    /// In place of [`DeviceSlot::addresses`].
    fn addresses(&self, inner: &dyn DeviceSlot, buffer: BufferId) -> Addresses {
        inner.addresses(buffer)
    }

    /// In place of [`DeviceSlot::enqueue`].
    ///
    /// # Safety
    /// The requirements of [`DeviceSlot::enqueue`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::enqueue`].
    unsafe fn enqueue(&mut self, inner: &mut dyn DeviceSlot, op: &Op) -> Result<()> {
        // SAFETY: the caller keeps the same contract.
        unsafe { inner.enqueue(op) }
    }

    /// In place of [`DeviceSlot::make_graph`].
    ///
    /// # Safety
    /// The requirements of [`DeviceSlot::make_graph`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::make_graph`].
    unsafe fn make_graph(
        &mut self,
        inner: &mut dyn DeviceSlot,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        // SAFETY: the caller keeps the same contract.
        unsafe { inner.make_graph(source, into) }
    }

    /// In place of [`DeviceSlot::set_params`].
    ///
    /// # Safety
    /// The requirements of [`DeviceSlot::set_params`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::set_params`].
    unsafe fn set_params(
        &mut self,
        inner: &mut dyn DeviceSlot,
        graph: GraphId,
        node: usize,
        op: &Op,
    ) -> Result<()> {
        // SAFETY: the caller keeps the same contract.
        unsafe { inner.set_params(graph, node, op) }
    }

    /// In place of [`DeviceSlot::graph_ops`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::graph_ops`].
    fn graph_ops(&self, inner: &dyn DeviceSlot, graph: GraphId) -> Result<Vec<Op>> {
        inner.graph_ops(graph)
    }

    /// In place of [`DeviceSlot::drop_graph`].
    fn drop_graph(&mut self, inner: &mut dyn DeviceSlot, graph: GraphId) {
        inner.drop_graph(graph);
    }

    /// In place of [`DeviceSlot::launch_graph`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::launch_graph`].
    fn launch_graph(&mut self, inner: &mut dyn DeviceSlot, graph: GraphId) -> Result<()> {
        inner.launch_graph(graph)
    }

    /// In place of [`DeviceSlot::make_resident`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::make_resident`].
    fn make_resident(
        &mut self,
        inner: &mut dyn DeviceSlot,
        graph: GraphId,
        residency: Residency,
    ) -> Result<bool> {
        inner.make_resident(graph, residency)
    }

    /// In place of [`DeviceSlot::stream`].
    fn stream(&self, inner: &dyn DeviceSlot) -> Option<u64> {
        inner.stream()
    }

    /// In place of [`DeviceSlot::wait_for_event`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::wait_for_event`].
    fn wait_for_event(&mut self, inner: &mut dyn DeviceSlot, event: &ExternalEvent) -> Result<()> {
        inner.wait_for_event(event)
    }

    /// In place of [`DeviceSlot::record_event`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::record_event`].
    fn record_event(&mut self, inner: &mut dyn DeviceSlot, event: &ExternalEvent) -> Result<()> {
        inner.record_event(event)
    }

    /// In place of [`DeviceSlot::fence`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::fence`].
    fn fence(&mut self, inner: &mut dyn DeviceSlot) -> Result<()> {
        inner.fence()
    }

    /// In place of [`DeviceSlot::is_done`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::is_done`].
    fn is_done(&mut self, inner: &mut dyn DeviceSlot) -> Result<bool> {
        inner.is_done()
    }

    /// In place of [`DeviceSlot::wait`].
    ///
    /// # Errors
    /// The errors of [`DeviceSlot::wait`].
    fn wait(&mut self, inner: &mut dyn DeviceSlot) -> Result<()> {
        inner.wait()
    }
}

struct Forward<H> {
    inner: Arc<dyn Backend>,
    hooks: H,
}

struct ForwardSlot<H> {
    /// Dropped before the slot.
    hooks: H,
    inner: Box<dyn DeviceSlot>,
}

// SAFETY: calls go to a backend that keeps the contract. Hooks that break it run where kernels are safe
// code, or change nothing but values.
unsafe impl<H: BackendHooks> Backend for Forward<H> {
    fn id(&self) -> BackendId {
        self.inner.id()
    }

    fn device(&self) -> &DeviceInfo {
        self.inner.device()
    }

    fn load(&self, kernel: &Kernel) -> Result<FunctionId> {
        self.hooks.load(&*self.inner, kernel)
    }

    fn prepare(&self, images: &[Arc<Image>]) -> Result<()> {
        self.inner.prepare(images)
    }

    fn compilation(&self) -> Compilation {
        self.inner.compilation()
    }

    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        count: usize,
        priority: Priority,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        self.hooks
            .open_slots(&*self.inner, buffers, count, priority)
    }

    fn allocate(&self, space: Space, bytes: usize) -> Result<Allocation> {
        self.hooks.allocate(&*self.inner, space, bytes)
    }

    fn allocate_filled(&self, contents: &Arc<Contents>) -> Result<Allocation> {
        self.inner.allocate_filled(contents)
    }

    fn refill(&self, memory: &Allocation, contents: &Arc<Contents>) -> Result<()> {
        self.inner.refill(memory, contents)
    }

    fn write(&self, from: &[u8], to: &Allocation, to_offset: usize) -> Result<()> {
        self.inner.write(from, to, to_offset)
    }

    fn read(&self, from: &Allocation, from_offset: usize, to: &mut [u8]) -> Result<()> {
        self.inner.read(from, from_offset, to)
    }

    fn copy(
        &self,
        from: &Allocation,
        from_offset: usize,
        to: &Allocation,
        to_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.inner.copy(from, from_offset, to, to_offset, bytes)
    }

    fn driver_calls(&self) -> DriverCalls {
        self.inner.driver_calls()
    }
}

// SAFETY: as for the backend.
unsafe impl<H: SlotHooks> DeviceSlot for ForwardSlot<H> {
    fn id(&self) -> &DeviceSlotId {
        self.inner.id()
    }

    fn stream(&self) -> Option<u64> {
        self.hooks.stream(&*self.inner)
    }

    fn is_quiet(&self) -> bool {
        self.inner.is_quiet()
    }

    fn buffer_count(&self) -> usize {
        self.inner.buffer_count()
    }

    fn addresses(&self, buffer: BufferId) -> Addresses {
        self.hooks.addresses(&*self.inner, buffer)
    }

    fn host(&self, buffer: BufferId) -> &[u8] {
        self.inner.host(buffer)
    }

    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        self.inner.host_mut(buffers)
    }

    fn adopt(&mut self, allocation: &Allocation) -> Result<()> {
        self.inner.adopt(allocation)
    }

    fn disown(&mut self, allocation: &Allocation) {
        self.inner.disown(allocation);
    }

    unsafe fn enqueue(&mut self, op: &Op) -> Result<()> {
        // SAFETY: the caller keeps the same contract.
        unsafe { self.hooks.enqueue(&mut *self.inner, op) }
    }

    fn wait_for_event(&mut self, event: &ExternalEvent) -> Result<()> {
        self.hooks.wait_for_event(&mut *self.inner, event)
    }

    fn record_event(&mut self, event: &ExternalEvent) -> Result<()> {
        self.hooks.record_event(&mut *self.inner, event)
    }

    unsafe fn make_graph(
        &mut self,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        // SAFETY: the caller keeps the same contract.
        unsafe { self.hooks.make_graph(&mut *self.inner, source, into) }
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        // SAFETY: the caller keeps the same contract.
        unsafe { self.hooks.set_params(&mut *self.inner, graph, node, op) }
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        self.hooks.graph_ops(&*self.inner, graph)
    }

    fn drop_graph(&mut self, graph: GraphId) {
        self.hooks.drop_graph(&mut *self.inner, graph);
    }

    fn launch_graph(&mut self, graph: GraphId) -> Result<()> {
        self.hooks.launch_graph(&mut *self.inner, graph)
    }

    fn make_resident(&mut self, graph: GraphId, residency: Residency) -> Result<bool> {
        self.hooks.make_resident(&mut *self.inner, graph, residency)
    }

    fn fence(&mut self) -> Result<()> {
        self.hooks.fence(&mut *self.inner)
    }

    fn is_done(&mut self) -> Result<bool> {
        self.hooks.is_done(&mut *self.inner)
    }

    fn wait(&mut self) -> Result<()> {
        self.hooks.wait(&mut *self.inner)
    }

    fn abandon(&mut self, error: &Error) -> Error {
        self.inner.abandon(error)
    }

    fn timestamps(&self) -> Result<Timestamps> {
        self.inner.timestamps()
    }
}
