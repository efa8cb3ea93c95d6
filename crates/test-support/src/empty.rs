//! A device that does nothing and is done at once, and a workload of kernels that do nothing, so that only the
//! engine's own work is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::backend::contract::{
    Addresses, BackendId, Built, DeviceSlot, DeviceSlotId, FunctionId, GraphId, GraphSource,
    HostViews, Op, Priority, TIMESTAMPS, Timestamps,
};
use tapeloop_engine::backend::{Allocation, Backend, DriverCalls, Space};
use tapeloop_engine::record::{BufferDecl, BufferId, Image};
use tapeloop_engine::replay::Buckets;
use tapeloop_engine::workload::{Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{Buffer, Error, Kernel, Recorder, Result, TwinLaunch};

/// A backend that accepts every call and does nothing.
pub struct EmptyBackend {
    id: BackendId,
    device: DeviceInfo,
    functions: AtomicU32,
}

impl EmptyBackend {
    pub fn shared() -> Arc<dyn Backend> {
        Arc::new(EmptyBackend {
            id: BackendId::new(),
            device: DeviceInfo::new("empty", "nothing"),
            functions: AtomicU32::new(0),
        })
    }
}

fn no_allocations<T>() -> Result<T> {
    Err(Error::usage(
        "the empty device has no memory but its device slots'",
    ))
}

// SAFETY: no kernel runs on it, and slots have the buffers that were asked for.
unsafe impl Backend for EmptyBackend {
    fn id(&self) -> BackendId {
        self.id
    }

    fn device(&self) -> &DeviceInfo {
        &self.device
    }

    fn load(&self, _: &Kernel) -> Result<FunctionId> {
        Ok(FunctionId(self.functions.fetch_add(1, Relaxed)))
    }

    fn open_slots(
        &self,
        buffers: &[BufferDecl],
        device_slots: usize,
        _: Priority,
    ) -> Result<Vec<Box<dyn DeviceSlot>>> {
        let words = |decl: &BufferDecl| vec![0; decl.size_bytes().div_ceil(8)];
        let open = |_| -> Box<dyn DeviceSlot> {
            Box::new(EmptySlot {
                id: DeviceSlotId::new(self.id),
                bytes: buffers.iter().map(BufferDecl::size_bytes).collect(),
                host: buffers.iter().map(words).collect(),
                graphs: Vec::new(),
            })
        };
        Ok((0..device_slots).map(open).collect())
    }

    fn allocate(&self, _: Space, _: usize) -> Result<Allocation> {
        no_allocations()
    }

    fn write(&self, _: &[u8], _: &Allocation, _: usize) -> Result<()> {
        no_allocations()
    }

    fn read(&self, _: &Allocation, _: usize, _: &mut [u8]) -> Result<()> {
        no_allocations()
    }

    fn copy(&self, _: &Allocation, _: usize, _: &Allocation, _: usize, _: usize) -> Result<()> {
        no_allocations()
    }

    fn driver_calls(&self) -> DriverCalls {
        DriverCalls::default()
    }
}

struct EmptySlot {
    id: DeviceSlotId,
    bytes: Vec<usize>,
    /// Words, so that every element type is aligned.
    host: Vec<Vec<u64>>,
    /// The operations of each graph, for [`DeviceSlot::graph_ops`].
    graphs: Vec<(GraphId, Vec<Op>)>,
}

impl EmptySlot {
    /// Keeps the operations of a graph, which never runs.
    fn keep(&mut self, ops: Vec<Op>, into: Option<GraphId>) -> (GraphId, Built) {
        match into {
            Some(graph) => {
                *self.ops(graph) = ops;
                (graph, Built::Updated)
            }
            None => {
                let id = GraphId::unique();
                self.graphs.push((id, ops));
                (id, Built::Instantiated)
            }
        }
    }

    /// The operations of a graph of this slot.
    fn ops(&mut self, graph: GraphId) -> &mut Vec<Op> {
        let mut graphs = self.graphs.iter_mut();
        &mut graphs.find(|(id, _)| *id == graph).expect("made here").1
    }
}

// SAFETY: each buffer has bytes of its own, and no operation touches them.
unsafe impl DeviceSlot for EmptySlot {
    #[inline]
    fn id(&self) -> &DeviceSlotId {
        &self.id
    }

    #[inline]
    fn is_quiet(&self) -> bool {
        true
    }

    fn buffer_count(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn addresses(&self, buffer: BufferId) -> Addresses {
        // Nothing is there; the buffers only must not overlap, nor host and device.
        let device = (buffer.index() as u64 + 1) << 32;
        Addresses {
            device,
            host: Some(device | 1 << 63),
            bytes: self.bytes[buffer.index()],
        }
    }

    #[inline]
    fn host(&self, buffer: BufferId) -> &[u8] {
        let index = buffer.index();
        &bytemuck::cast_slice(&self.host[index])[..self.bytes[index]]
    }

    #[inline]
    fn host_mut(&mut self, buffers: &[BufferId]) -> HostViews<'_> {
        let all = self.host.iter_mut().zip(&self.bytes).enumerate();
        let mut wanted = buffers.iter().map(|buffer| buffer.index()).peekable();
        all.filter(|(index, _)| wanted.next_if_eq(index).is_some())
            .map(|(_, (words, &bytes))| &mut bytemuck::cast_slice_mut(words)[..bytes])
            .collect()
    }

    fn adopt(&mut self, _: &Allocation) -> Result<()> {
        no_allocations()
    }

    fn disown(&mut self, _: &Allocation) {}

    #[inline]
    unsafe fn enqueue(&mut self, _: &Op) -> Result<()> {
        Ok(())
    }

    unsafe fn make_graph(
        &mut self,
        source: GraphSource<'_>,
        into: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        let ops = source.ops().cloned().collect();
        Ok(self.keep(ops, into))
    }

    unsafe fn set_params(&mut self, graph: GraphId, node: usize, op: &Op) -> Result<()> {
        self.ops(graph)[node] = op.clone();
        Ok(())
    }

    fn graph_ops(&self, graph: GraphId) -> Result<Vec<Op>> {
        let mut graphs = self.graphs.iter();
        Ok(graphs
            .find(|(id, _)| *id == graph)
            .expect("made here")
            .1
            .clone())
    }

    fn drop_graph(&mut self, graph: GraphId) {
        self.graphs.retain(|(id, _)| *id != graph);
    }

    #[inline]
    fn launch_graph(&mut self, _: GraphId) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn fence(&mut self) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn is_done(&mut self) -> Result<bool> {
        Ok(true)
    }

    #[inline]
    fn wait(&mut self) -> Result<()> {
        Ok(())
    }

    fn abandon(&mut self, error: &Error) -> Error {
        error.clone()
    }

    fn timestamps(&self) -> Result<Timestamps> {
        Ok([None; TIMESTAMPS])
    }
}

/// A chain of kernels over one number per item. They write nothing, so results are 0 on a real
/// device.
pub struct EmptyKernels {
    kernels: usize,
    kernel: Kernel,
}

/// The kernels' CPU twin.
#[inline]
pub fn nothing(_: &mut TwinLaunch<'_>) {}

const SOURCE: &str = "extern \"C\" __global__ void nothing(const unsigned*, unsigned*) {}";

impl EmptyKernels {
    pub fn new(kernels: usize) -> Self {
        let kernel = Kernel::new("nothing")
            .reads::<u32>("x")
            .updates::<u32>("y")
            .twin(nothing);
        // SAFETY: the kernel touches no memory.
        let kernel = unsafe { kernel.code(&Image::cuda("nothing.cu", SOURCE)) };
        EmptyKernels { kernels, kernel }
    }

    /// Batches of one item.
    pub fn single(&self, device: &DeviceInfo) -> Arc<Buckets> {
        let mut recorder = Recorder::new(&[1]);
        self.record(&mut recorder, device).unwrap();
        Arc::new(Buckets::single(recorder.finish().unwrap()))
    }
}

impl Workload for EmptyKernels {
    type Item = u32;
    type Output = u32;
    type Buffers = (Buffer<u32>, Buffer<u32>);

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    #[inline]
    fn extent(&self, _: &u32) -> Result<Extent> {
        Ok(Extent::from([1]))
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Self::Buffers> {
        let x = recorder.upload_buffer::<u32>("x", 0, 1);
        let y = recorder.download_buffer::<u32>("y", 0, 1);
        recorder.upload(x);
        recorder.memset(y, 0);
        for _ in 0..self.kernels {
            recorder.launch(&self.kernel, 1, &[x.into(), y.into()]);
        }
        recorder.download(y);
        Ok((x, y))
    }

    #[inline]
    fn write(
        &self,
        (x, _): &Self::Buffers,
        item: &u32,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*x)[0] = *item;
        Ok(())
    }

    #[inline]
    fn read(
        &self,
        (_, y): &Self::Buffers,
        _: &u32,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<u32> {
        Ok(views.get(*y)[0])
    }
}
