//! Binds a recording to a slot.

use super::Policy;
use crate::backend::allocation::read_only;
use crate::backend::{
    Addresses, Allocation, AllocationView, Backend, DeviceSlot, DeviceSlotId, FunctionId, Space,
};
use crate::error::{Context, Error, Result};
use crate::record::{
    Access, Arg, Buffer, BufferId, Command, Element, Launch, Number, ParamKind, Recording, Scalar,
    Shape, StructArg, Target, View, check_grid, check_struct,
};
use std::sync::Arc;

/// The addresses of a recording's buffers, the sizes of its copies, and the functions, grids and
/// values of its launches: everything that may change between two replays.
///
/// New bindings are as recorded, over the slot's own memory.
///
/// ```
/// # fn main() -> tapeloop_engine::Result<()> {
/// use std::sync::Arc;
/// use tapeloop_engine::backend::cpu::CpuBackend;
/// use tapeloop_engine::pipeline::{Ring, Wait};
/// use tapeloop_engine::replay::{Buckets, Policy};
/// use tapeloop_engine::{Backend, Bindings, Extent, Kernel, Recorder};
///
/// let fill = Kernel::new("fill").writes::<f32>("y").scalar::<f32>("value").changeable("value");
/// let fill = fill.twin(|launch| {
///     let y = launch.write::<f32>();
///     y.fill(launch.scalar());
/// });
/// let mut recorder = Recorder::new(&[100]);
/// let y = recorder.download_buffer::<f32>("y", 0, 1);
/// recorder.launch(&fill, 1, &[y.into(), 1.0_f32.into()]);
/// recorder.download(y);
/// let buckets = Arc::new(Buckets::single(recorder.finish()?));
///
/// let backend: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
/// let mut ring: Ring<()> = Ring::new(&backend, &buckets, 1, &Policy::default(), Wait::Spin)?;
/// let mut slot = ring.acquire().expect("a slot is free");
/// let mut bindings: Bindings = slot.bindings(0)?;
/// bindings.set_scalar(0, "value", 7.0_f32)?;
/// slot.rebind(0, bindings)?;
/// ring.submit(slot, Extent::from([100]), ()).map_err(|failed| failed.error)?;
/// let done = ring.wait().expect("a batch is in flight").map_err(|failed| failed.error)?;
/// assert_eq!(done.read(y), [7.0; 100]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Bindings {
    recording: Arc<Recording>,
    slot: DeviceSlotId,
    buffers: Vec<BoundBuffer>,
    launches: Vec<BoundLaunch>,
}

/// The memory of one buffer.
#[derive(Clone, Debug)]
struct BoundBuffer {
    own: Addresses,
    device: Option<AllocationView>,
    host: Option<AllocationView>,
    /// The bytes that copies move.
    bytes: usize,
    /// Whether kernels access the host side and nothing is copied.
    is_mapped: bool,
}

/// A launch with its function, grid and values.
#[derive(Clone, Debug)]
pub(super) struct BoundLaunch {
    pub(super) function: FunctionId,
    /// What runs before the launch is captured, with the same arguments.
    pub(super) warm_up: Option<FunctionId>,
    pub(super) grid: [u32; 3],
    /// The recorded grid, or the one that the device chose.
    grid_max: [u32; 3],
    pub(super) block: [u32; 3],
    /// By parameter: the value that replaces the recorded one.
    values: Vec<Option<Arg>>,
}

impl Bindings {
    /// Binds a recording to the buffers of `slot` and to its kernels as `backend` loads them.
    ///
    /// # Errors
    /// The errors of [`Backend::load`] and [`Backend::occupancy`], with the kernel's name;
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a slot with smaller or fewer buffers than
    /// the recording, for a slot of another backend, and for a recording that an engine or a
    /// packer made of a workload.
    pub fn new(
        recording: &Arc<Recording>,
        backend: &dyn Backend,
        slot: &dyn DeviceSlot,
        policy: &Policy,
    ) -> Result<Self> {
        refuse_workload(recording)?;
        Bindings::over(recording, &[], backend, slot, policy)
    }

    /// [`Bindings::new`] that also takes the recordings of workloads, and the memory of resident
    /// buffers; [`ErrorKind::Usage`](crate::ErrorKind::Usage) for one that has no memory or too little.
    pub(super) fn over(
        recording: &Arc<Recording>,
        resident: &[(BufferId, AllocationView)],
        backend: &dyn Backend,
        slot: &dyn DeviceSlot,
        policy: &Policy,
    ) -> Result<Self> {
        let fits = |(id, decl): (BufferId, &crate::record::BufferDecl)| {
            id.index() < slot.buffer_count()
                && decl.slot_bytes().is_some_and(|bytes| {
                    let addresses = slot.addresses(id);
                    addresses.bytes >= bytes
                        && (addresses.host.is_some() || !decl.view.is_on_host())
                })
        };
        if !recording.buffers_by_id().all(fits) {
            let message =
                "the slot has smaller buffers than the recording, or fewer, or no host side of one";
            return Err(
                Error::usage(message).fix("open slots with the buffers of the largest bucket")
            );
        }
        if slot.id().backend() != backend.id() {
            let error = Error::usage("the slot is of another backend than the kernels");
            return Err(error.fix("bind to a slot that the same backend opened"));
        }
        let place = |(id, decl): (BufferId, &crate::record::BufferDecl)| BoundBuffer {
            own: slot.addresses(id),
            device: None,
            host: None,
            bytes: decl.size_bytes(),
            is_mapped: policy.maps(decl.size_bytes()) && is_mappable(recording, id),
        };
        // `load` reports a failed compilation, with the kernel's name.
        let _ = backend.prepare(&recording.images());
        let launches = recording.launches().map(|launch| {
            let place = || format!("kernel {}", launch.kernel.name());
            BoundLaunch::new(launch, backend).within(place)
        });
        let mut bindings = Bindings {
            recording: Arc::clone(recording),
            slot: slot.id().clone(),
            buffers: recording.buffers_by_id().map(place).collect(),
            launches: launches.collect::<Result<_>>()?,
        };
        for (id, view) in resident {
            bindings.check_view(*id, view, Space::Device)?;
            bindings.buffers[id.index()].device = Some(view.clone());
        }
        let is_unbound = |(id, decl): &(BufferId, &crate::record::BufferDecl)| {
            !decl.view.is_in_slot() && bindings.buffers[id.index()].device.is_none()
        };
        let Some((_, decl)) = recording.buffers_by_id().find(is_unbound) else {
            return Ok(bindings);
        };
        let unbound = if decl.view == View::Resident {
            Error::usage("it is resident, and bound to no memory")
                .fix("give its memory with Buckets::with_resident")
        } else {
            Error::usage("it is a result buffer, and bound to no memory")
                .fix("replay the recording in an engine, a ring or an executor")
        };
        Err(unbound.within(buffer_place(&decl.name)))
    }

    /// These bindings with resident buffers bound to other memory of the same sizes.
    pub(super) fn with_resident(&self, resident: &[(BufferId, AllocationView)]) -> Self {
        let mut bindings = self.clone();
        for (id, view) in resident {
            bindings.buffers[id.index()].device = Some(view.clone());
        }
        bindings
    }

    /// The recording.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// The slot.
    pub(super) fn slot(&self) -> &DeviceSlotId {
        &self.slot
    }

    /// Binds the device side of a buffer to an embedder's memory. Work that writes the buffer locks
    /// the whole allocation: the host and other slots cannot use any part of it meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for pinned memory, for a view that is too
    /// small or misaligned for the elements or that overlaps another buffer of the recording, and
    /// for a buffer of another recording.
    pub fn bind_device<T: Element>(
        &mut self,
        buffer: Buffer<T>,
        view: AllocationView,
    ) -> Result<()> {
        self.check_handle::<T>(buffer.id())?;
        self.check_view(buffer.id(), &view, Space::Device)?;
        self.buffers[buffer.id().index()].device = Some(view);
        Ok(())
    }

    /// Binds the host side of a buffer to an embedder's pinned memory.
    ///
    /// # Errors
    /// The errors of [`Bindings::bind_device`], with device memory refused in place of pinned
    /// memory, and for a buffer without a host side.
    pub fn bind_host<T: Element>(&mut self, buffer: Buffer<T>, view: AllocationView) -> Result<()> {
        self.check_handle::<T>(buffer.id())?;
        let decl = &self.recording.buffers()[buffer.id().index()];
        if !decl.view.is_on_host() {
            return Err(Error::usage("it has no host side").within(buffer_place(&decl.name)));
        }
        self.check_view(buffer.id(), &view, Space::Pinned)?;
        self.buffers[buffer.id().index()].host = Some(view);
        Ok(())
    }

    /// Copies only the first `elements` elements of a buffer.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for 0 elements, for more than declared, and for a buffer of
    /// another recording or element type.
    pub fn set_copy_len<T: Element>(&mut self, buffer: Buffer<T>, elements: usize) -> Result<()> {
        self.check_handle::<T>(buffer.id())?;
        let decl = &self.recording.buffers()[buffer.id().index()];
        if elements == 0 || elements > decl.len {
            let message = format!("a copy of {elements} elements; 1 to {} can be", decl.len);
            return Err(Error::usage(message).within(buffer_place(&decl.name)));
        }
        self.buffers[buffer.id().index()].bytes = elements * decl.dtype.size_bytes();
        Ok(())
    }

    /// Sets whether kernels access the host side of a buffer, without a copy.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) unless it is an upload buffer that one launch reads, or a
    /// download buffer that one launch writes, that launch visits each element once
    /// ([`Kernel::revisits`](crate::record::Kernel::revisits)), and nothing else uses the buffer; and for a
    /// buffer of another recording or element type.
    pub fn set_mapped<T: Element>(&mut self, buffer: Buffer<T>, mapped: bool) -> Result<()> {
        self.check_handle::<T>(buffer.id())?;
        let decl = &self.recording.buffers()[buffer.id().index()];
        if mapped && !is_mappable(&self.recording, buffer.id()) {
            let message = "only a buffer that a single launch reads, or writes, and visits once in each \
                           element, can be mapped";
            return Err(Error::usage(message).within(buffer_place(&decl.name)));
        }
        self.buffers[buffer.id().index()].is_mapped = mapped;
        Ok(())
    }

    /// Sets the grid of the `launch`-th launch; the block size stays. The grid must not be larger
    /// than the recorded one along any dimension, as kernels are declared for the recorded grid;
    /// for a launch over elements that is the grid that the device chose.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a launch that does not exist, for a grid
    /// with a dimension of 0 or larger than recorded, for one that is not made of whole
    /// [clusters](crate::record::Kernel::cluster), and for a recording that an engine or a packer
    /// made of a workload.
    pub fn set_grid(&mut self, launch: usize, grid: [u32; 3]) -> Result<()> {
        refuse_workload(&self.recording)?;
        let recorded = self.recording.launches().nth(launch);
        let kernel = &recorded.ok_or_else(|| no_launch(launch))?.kernel;
        let bound = &mut self.launches[launch];
        let most = bound.grid_max;
        let fits = if grid.iter().zip(most).any(|(&side, most)| side > most) {
            Err(Error::usage(format!(
                "a grid of {grid:?} blocks; it was recorded with {most:?}"
            ))
            .fix("record the largest grid that any replay needs"))
        } else {
            Ok(())
        };
        let checked = check_grid(grid).and(fits);
        let checked = checked.and_then(|()| kernel.attributes.check_grid(grid));
        checked.within(|| format!("launch {launch} of kernel {}", kernel.name))?;
        bound.grid = grid;
        Ok(())
    }

    /// Sets a scalar that the `launch`-th launch passes.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a launch or parameter that does not
    /// exist, for another type than declared, and for a parameter that is not
    /// [`changeable`](crate::record::Kernel::changeable).
    pub fn set_scalar<T: Number>(&mut self, launch: usize, param: &str, value: T) -> Result<()> {
        let value = Scalar::from(value);
        self.set_value(launch, param, Arg::Scalar(value), |kind, _| match kind {
            ParamKind::Scalar { dtype } if *dtype == value.dtype => Ok(()),
            kind => Err(Error::usage(format!(
                "it takes {kind:?}, and got a {:?} value",
                value.dtype
            ))),
        })
    }

    /// Sets a struct that the `launch`-th launch passes. Its pointers to buffers must be those
    /// recorded; its addresses may change, and must lie in declared memory.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a launch or parameter that does not
    /// exist, for another size than declared, for other buffers than recorded, and for a
    /// parameter that is not [`changeable`](crate::record::Kernel::changeable).
    pub fn set_struct(&mut self, launch: usize, param: &str, value: StructArg) -> Result<()> {
        let passed = value.clone();
        self.set_value(launch, param, Arg::Struct(passed), |kind, recorded| {
            let (ParamKind::Struct { bytes, pointers }, Arg::Struct(recorded)) = (kind, recorded)
            else {
                return Err(Error::usage(format!("it takes {kind:?}, and got a struct")));
            };
            check_struct(*bytes, pointers, &value)?;
            // The edges between commands follow from the recorded buffers.
            let same = |(old, new): (&Target, &Target)| match (old, new) {
                (Target::Address(_), Target::Address(_)) => true,
                (old, new) => old == new,
            };
            let mut pairs = recorded.targets().iter().zip(value.targets());
            if pairs.all(same) {
                Ok(())
            } else {
                Err(Error::usage(
                    "its pointers to buffers are not those of the recording",
                ))
            }
        })
    }

    /// Sets an argument of a launch, after `check` of its declaration and of the argument that was
    /// recorded. Only changeable parameters may be set: else it is an `ErrorKind::Usage`, as for a launch or
    /// parameter that does not exist.
    fn set_value(
        &mut self,
        launch: usize,
        param: &str,
        value: Arg,
        check: impl FnOnce(&ParamKind, &Arg) -> Result<()>,
    ) -> Result<()> {
        let recorded = self.recording.launches().nth(launch);
        let recorded = recorded.ok_or_else(|| no_launch(launch))?;
        let kernel = &recorded.kernel;
        let known = kernel.params().iter().position(|known| known.name == param);
        let index = known.ok_or_else(|| {
            Error::usage(format!(
                "kernel {} has no parameter named {param}",
                kernel.name()
            ))
        })?;
        let declared = &kernel.params()[index];
        let checked = check(&declared.kind, &recorded.args[index]).and_then(|()| {
            if declared.changeable {
                Ok(())
            } else {
                Err(Error::usage("it keeps the value that it was recorded with")
                    .fix("declare the parameter with Kernel::changeable"))
            }
        });
        checked.within(|| format!("kernel {}, parameter {param}", kernel.name()))?;
        self.launch_mut(launch)?.values[index] = Some(value);
        Ok(())
    }

    fn launch_mut(&mut self, launch: usize) -> Result<&mut BoundLaunch> {
        let bound = self.launches.get_mut(launch);
        bound.ok_or_else(|| no_launch(launch))
    }

    /// Refuses a handle of another recording, and one of the same ladder that this recording declares with
    /// other elements (`ErrorKind::Usage`).
    fn check_handle<T: Element>(&self, id: BufferId) -> Result<()> {
        let decl = self.recording.buffer(id);
        if decl.is_some_and(|decl| decl.dtype == T::DTYPE) {
            Ok(())
        } else {
            let dtype = T::DTYPE;
            let message =
                format!("the buffer is of another recording, or has no {dtype:?} elements");
            Err(Error::usage(message))
        }
    }

    /// Checks that memory can be bound to a buffer: its space, size, access and alignment, and that
    /// no other buffer has any of it. Anything else is an `ErrorKind::Usage`.
    fn check_view(&self, id: BufferId, view: &AllocationView, space: Space) -> Result<()> {
        let decl = &self.recording.buffers()[id.index()];
        let usage_error =
            |message: String| Err(Error::usage(message).within(buffer_place(&decl.name)));
        if view.allocation().space() != space {
            return usage_error(format!(
                "it is bound to {} memory, and takes {} memory here",
                view.allocation().space().name(),
                space.name()
            ));
        }
        if view.bytes() < decl.size_bytes() {
            return usage_error(format!(
                "it takes {} bytes, and is bound to {}",
                decl.size_bytes(),
                view.bytes()
            ));
        }
        if view.allocation().is_read_only() && self.recording.writes(id) {
            return Err(read_only().within(buffer_place(&decl.name)));
        }
        let align = decl.dtype.align_bytes() as u64;
        if !view.address().is_multiple_of(align) {
            return usage_error(format!(
                "it is bound to {:#x}, which is not a multiple of {align}",
                view.address()
            ));
        }
        // The edges between commands follow from buffers, so no two may share a byte.
        let others = self.recording.buffers_by_id().zip(&self.buffers);
        for ((other, decl), place) in others {
            let views = place.device.iter().chain(&place.host);
            if other != id && views.into_iter().any(|used| used.overlaps(view)) {
                return usage_error(format!("buffer {} is bound to the same memory", decl.name));
            }
        }
        Ok(())
    }

    /// The allocations that buffers are bound to.
    pub(super) fn allocations(&self) -> impl Iterator<Item = &Allocation> {
        self.views().map(AllocationView::allocation)
    }

    /// The views that buffers are bound to.
    pub(super) fn views(&self) -> impl Iterator<Item = &AllocationView> {
        let buffers = self.buffers.iter();
        buffers.flat_map(|place| place.device.iter().chain(&place.host))
    }

    /// The first buffer whose memory overlaps `view`, and its own view.
    pub(super) fn bound_over(&self, view: &AllocationView) -> Option<(&str, &AllocationView)> {
        let buffers = self.recording.buffers().iter().zip(&self.buffers);
        let mut bound = buffers.flat_map(|(decl, place)| {
            let views = place.device.iter().chain(&place.host);
            views.map(|used| (&*decl.name, used))
        });
        bound.find(|(_, used)| used.overlaps(view))
    }

    /// The address that kernels and copies use for the device side.
    pub(super) fn device(&self, id: BufferId) -> u64 {
        let place = &self.buffers[id.index()];
        match (&place.device, place.is_mapped) {
            (_, true) => self.host(id),
            (Some(view), false) => view.address(),
            (None, false) => place.own.device,
        }
    }

    pub(super) fn host(&self, id: BufferId) -> u64 {
        let place = &self.buffers[id.index()];
        match &place.host {
            Some(view) => view.address(),
            None => place.own.host.expect("a buffer that the host sees"),
        }
    }

    /// The view of the host side; `None` for the slot's own memory.
    pub(super) fn host_view(&self, id: BufferId) -> Option<&AllocationView> {
        self.buffers[id.index()].host.as_ref()
    }

    pub(super) fn bytes(&self, id: BufferId) -> usize {
        self.buffers[id.index()].bytes
    }
    pub(super) fn is_mapped(&self, id: BufferId) -> bool {
        self.buffers[id.index()].is_mapped
    }

    pub(super) fn launch(&self, index: usize) -> &BoundLaunch {
        &self.launches[index]
    }
}

impl BoundLaunch {
    /// The value of a parameter.
    pub(super) fn arg<'a>(&'a self, param: usize, recorded: &'a Arg) -> &'a Arg {
        self.values[param].as_ref().unwrap_or(recorded)
    }

    /// Loads the kernel of `launch`, and the one that warms it up if it has one. The grid is that
    /// of a full batch: others may launch fewer blocks.
    ///
    /// # Errors
    /// If a kernel does not load, or the device refuses the shape.
    fn new(launch: &Launch, backend: &dyn Backend) -> Result<Self> {
        let kernel = &launch.kernel;
        let function = backend.load(kernel)?;
        let warm_up = match kernel.warm_up_kernel() {
            // Elsewhere the twin runs.
            Some(warm_up) if backend.device().compute_capability.is_some() => {
                Some(backend.load(&warm_up)?)
            }
            _ => None,
        };
        let (grid, block) = match launch.shape {
            Shape::Grid(grid) => (grid, kernel.block),
            Shape::Over { elements, cover } => {
                let fullest = backend.occupancy(kernel, function)?;
                let threads = fullest.block_threads;
                let blocks = cover.blocks(elements, threads, fullest.resident_blocks)?;
                ([blocks, 1, 1], [threads, 1, 1])
            }
        };
        Ok(BoundLaunch {
            function,
            warm_up,
            grid,
            grid_max: grid,
            block,
            values: vec![None; launch.args.len()],
        })
    }
}

/// Refuses a recording of a workload (`ErrorKind::Usage`). Only an engine may replay it, as only the workload may write
/// the data that its batches upload.
pub(super) fn refuse_workload(recording: &Recording) -> Result<()> {
    if recording.is_of_workload() {
        Err(
            Error::usage("an engine or a packer made this recording of a workload")
                .fix("replay it in that engine, or in a ring that the packer fills"),
        )
    } else {
        Ok(())
    }
}

fn no_launch(launch: usize) -> Error {
    Error::usage(format!("the recording has no launch {launch}"))
}

fn buffer_place(name: &str) -> String {
    format!("buffer {name}")
}

/// Whether a kernel may access a buffer's host side in place: exactly one launch uses the buffer and no
/// memset, it only reads an upload buffer or only writes a download buffer, and it visits each element
/// once. A kernel that reads and writes a buffer may update it atomically, or more than once.
fn is_mappable(recording: &Recording, id: BufferId) -> bool {
    let wanted = match recording.buffers()[id.index()].view {
        View::Upload => Access::Read,
        View::Download => Access::Write,
        View::Device | View::DeviceInput | View::DeviceResult | View::Resident => return false,
    };
    let mut launches = 0;
    let mut fits = true;
    for command in recording.commands() {
        match command {
            Command::Upload(_) | Command::Download(_) => {}
            Command::Memset { buffer, .. } => fits &= *buffer != id,
            Command::Launch(launch) => command.visit_buffers(|touched, reads, writes| {
                if touched == id {
                    launches += 1;
                    fits &= (reads, writes) == (wanted.reads(), wanted.writes())
                        && !launch.kernel.revisits;
                }
            }),
        }
    }
    fits && launches == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Kernel, Recorder};

    #[test]
    fn a_buffer_that_a_kernel_revisits_is_copied() {
        let mapped = |kernel: Kernel| {
            let mut recorder = Recorder::new(&[8]);
            let x = recorder.upload_buffer::<f32>("x", 0, 1);
            let y = recorder.download_buffer::<f32>("y", 0, 1);
            recorder.upload(x);
            recorder.launch(&kernel, 1, &[x.into(), y.into()]);
            recorder.download(y);
            let recording = recorder.finish().unwrap();
            [x.id(), y.id()].map(|id| is_mappable(&recording, id))
        };
        let kernel = Kernel::new("double").reads::<f32>("x").writes::<f32>("y");
        assert_eq!(mapped(kernel.clone()), [true, true]);
        assert_eq!(mapped(kernel.revisits()), [false, false]);
    }
}
