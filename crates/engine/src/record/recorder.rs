//! The recorder of a batch's commands.

use super::buffer::{
    Buffer, BufferDecl, BufferId, Element, Number, RecordingId, Scalar, Unit, View, check_element,
};
use super::check;
use super::command::{Arg, Command, Launch};
use super::kernel::{Image, Kernel};
use super::shape::{Cover, Shape};
use super::uniform::{HEADER_LEN, Uniform, UniformDecl, UniformId};
use crate::error::{Error, Result};
use std::any::TypeId;
use std::sync::Arc;

/// The largest number of buffers in a recording. Lists of views of a batch have room for all of
/// them in place: with 256 a batch took 2% more instructions.
pub const BUFFERS_MAX: usize = 208;

const HEADER_NAME: &str = "header";

/// Records buffers and commands for batches of one capacity.
///
/// ```
/// # fn main() -> tapeloop_engine::Result<()> {
/// use tapeloop_engine::{Kernel, Recorder};
///
/// let negate = Kernel::new("negate").updates::<f32>("x").twin(|launch| {
///     launch.write::<f32>().iter_mut().for_each(|x| *x = -*x);
/// });
/// let mut recorder = Recorder::new(&[1000]);
/// let x = recorder.upload_buffer::<f32>("x", 0, 1);
/// let y = recorder.download_buffer::<f32>("y", 0, 1);
/// recorder.upload(x);
/// recorder.memset(y, 0);
/// recorder.launch(&negate, 4, &[y.into()]);
/// recorder.download(y);
/// assert_eq!(recorder.finish()?.commands().len(), 4);
/// # Ok(())
/// # }
/// ```
pub struct Recorder {
    id: RecordingId,
    /// The type of the workload, if an engine records one.
    workload: Option<TypeId>,
    capacity: Vec<u32>,
    largest: Vec<u32>,
    buffers: Vec<BufferDecl>,
    commands: Vec<Command>,
    header: Option<Buffer<u32>>,
    uniforms: Vec<UniformDecl>,
    // The first misuse, which `finish` returns, so that the recording methods need no results.
    misuse: Option<Error>,
}

/// Checked commands over declared buffers: what one batch does.
///
/// ```
/// # fn main() -> tapeloop_engine::Result<()> {
/// use tapeloop_engine::{Kernel, Recorder, Recording};
///
/// let ones = Kernel::new("ones").writes::<f32>("y");
/// let ones = ones.twin(|launch| launch.write::<f32>().fill(1.0));
/// let mut recorder = Recorder::new(&[1000]);
/// let y = recorder.download_buffer::<f32>("y", 0, 1);
/// recorder.launch(&ones, 8, &[y.into()]);
/// recorder.download(y);
/// let recording: Recording = recorder.finish()?;
/// assert_eq!(recording.capacity(), [1000]);
/// assert_eq!(recording.buffers()[0].name, "y");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Recording {
    id: RecordingId,
    is_of_workload: bool,
    pub(super) capacity: Vec<u32>,
    pub(super) buffers: Vec<BufferDecl>,
    pub(super) commands: Vec<Command>,
    pub(super) header: Option<BufferId>,
    pub(super) uniforms: Vec<UniformDecl>,
}

impl Recorder {
    /// A recorder for batches that span at most `capacity` along each axis.
    pub fn new(capacity: &[u32]) -> Self {
        Recorder {
            id: RecordingId::new(),
            workload: None,
            capacity: capacity.to_vec(),
            largest: capacity.to_vec(),
            buffers: Vec::new(),
            commands: Vec::new(),
            header: None,
            uniforms: Vec::new(),
            misuse: None,
        }
    }

    /// One recorder for each of several buckets, smallest first. They share handles: a handle that
    /// one of them returns stands for the same buffer in all their recordings. The caller has to
    /// declare and launch the same with each of them.
    pub fn ladder(capacities: &[&[u32]]) -> Vec<Recorder> {
        let id = RecordingId::new();
        let largest = capacities.last().copied().unwrap_or_default();
        let of_bucket = |capacity: &&[u32]| Recorder {
            id,
            largest: largest.to_vec(),
            ..Recorder::new(capacity)
        };
        capacities.iter().map(of_bucket).collect()
    }

    /// A recorder for one bucket of the workload `W` in an engine. `largest` is the capacity of the
    /// largest bucket, and all buckets share `id`.
    pub(crate) fn of_workload<W: 'static>(
        id: RecordingId,
        capacity: &[u32],
        largest: &[u32],
    ) -> Self {
        Recorder {
            id,
            workload: Some(TypeId::of::<W>()),
            largest: largest.to_vec(),
            ..Recorder::new(capacity)
        }
    }

    /// Whether an engine, a pipeline or a packer is recording its workload, and the workload's type
    /// is `W`. If so, only that workload's `write` fills the upload buffers of this recording, and
    /// only the engine fills the header.
    ///
    /// A workload whose device code relies on what the workload itself writes attaches the code
    /// ([`Kernel::code`]) only if this is true: another workload may also call its `record`, and
    /// then record more or write something else.
    pub fn is_for<W: 'static>(&self) -> bool {
        self.workload == Some(TypeId::of::<W>())
    }

    /// The largest bucket's capacity along `axis`. Decisions that have to be the same for all
    /// buckets, which are all but sizes, may depend on it.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn largest_capacity(&self, axis: usize) -> u32 {
        self.largest[axis]
    }

    /// The capacity of this bucket along `axis`.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn capacity(&self, axis: usize) -> u32 {
        self.capacity[axis]
    }

    /// Declares a buffer that items write on the host: `[capacity of axis, elements]`.
    pub fn upload_buffer<T: Element>(
        &mut self,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Buffer<T> {
        self.declare(name, Unit::PerAxis { axis, elements }, View::Upload)
    }

    /// Declares a buffer that items read back on the host: `[capacity of axis, elements]`.
    pub fn download_buffer<T: Element>(
        &mut self,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Buffer<T> {
        self.declare(name, Unit::PerAxis { axis, elements }, View::Download)
    }

    /// Declares a buffer that stays on the device: `[capacity of axis, elements]`.
    pub fn device_buffer<T: Element>(
        &mut self,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Buffer<T> {
        self.declare(name, Unit::PerAxis { axis, elements }, View::Device)
    }

    /// Declares a buffer that is filled on the device, from memory that is there already: results of another
    /// engine, or what another library wrote. `[capacity of axis, elements]`.
    ///
    /// Each item names the memory in [`Workload::device_inputs`](crate::Workload::device_inputs). The engine
    /// copies it on the device before the batch's commands run, in one call of the driver for parts that
    /// lie side by side. In a ring, [`Slot::copy_in`](crate::pipeline::Slot::copy_in) does.
    pub fn input_buffer<T: Element>(
        &mut self,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Buffer<T> {
        self.declare(name, Unit::PerAxis { axis, elements }, View::DeviceInput)
    }

    /// Declares a buffer whose parts can be results that stay on the device
    /// ([`ReadViews::keep_on_device`](crate::ReadViews::keep_on_device)): `[capacity of axis, elements]`.
    ///
    /// It is an allocation of its own in each slot, which a supervised device does not have.
    pub fn result_buffer<T: Element>(
        &mut self,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Buffer<T> {
        self.declare(name, Unit::PerAxis { axis, elements }, View::DeviceResult)
    }

    /// Declares a buffer of `elements` elements for the batch as a whole, which stays on the device, such
    /// as the workspace of a library.
    pub fn batch_buffer<T: Element>(&mut self, name: &str, elements: usize) -> Buffer<T> {
        self.declare(name, Unit::PerBatch { elements }, View::Device)
    }

    /// Declares a buffer of `elements` elements that belongs to no slot: all batches of a device use
    /// the same memory, such as a model's weights or a table. Kernels may read it before they write
    /// it. An engine gets its contents from
    /// [`Workload::fill_resident`](crate::Workload::fill_resident), and a ring or an executor its
    /// memory from [`Buckets::with_resident`](crate::replay::Buckets::with_resident).
    ///
    /// If a command writes it, the order of batches matters, so an engine must have a single slot. A
    /// ring refuses a batch that uses it while another one in flight writes it. A supervised device
    /// refuses such commands, as the contents would be lost with its process; one that commands only
    /// read has its contents again when the device is restarted.
    pub fn resident_buffer<T: Element>(&mut self, name: &str, elements: usize) -> Buffer<T> {
        self.declare(name, Unit::PerBatch { elements }, View::Resident)
    }

    /// Declares a resident buffer whose contents a program may replace while the engine runs
    /// ([`Engine::replace_resident`](crate::Engine::replace_resident)), such as the weights of a model. It
    /// takes its memory twice on each device, so that no batch waits for a replacement. Commands only read it.
    pub fn replaceable_buffer<T: Element>(&mut self, name: &str, elements: usize) -> Buffer<T> {
        let buffer = self.resident_buffer(name, elements);
        if let Some(decl) = self.buffers.get_mut(buffer.id().index()) {
            decl.is_replaceable = decl.name == name;
        }
        buffer
    }

    /// The header, which the engine fills: the batch's total along axis `a` at index `a`, the
    /// number of items at [`HEADER_ITEMS`](super::HEADER_ITEMS), and after [`HEADER_LEN`] elements the uniforms. Kernels
    /// read from it how much of the capacity the batch uses.
    pub fn header(&mut self) -> Buffer<u32> {
        if let Some(header) = self.header {
            return header;
        }
        let unit = Unit::PerBatch {
            elements: HEADER_LEN,
        };
        let header = self.declare(HEADER_NAME, unit, View::Upload);
        self.header = Some(header);
        header
    }

    /// Declares a parameter: a value of 4 bytes that the engine writes to the header of every batch, and
    /// that may change while the engine runs
    /// ([`Engine::set_uniforms`](crate::Engine::set_uniforms)) without a change to a graph. Upload the
    /// header, and pass the handle to the launches that use the value.
    ///
    /// A value that differs for each item belongs in the item: each change closes the open batch.
    pub fn uniform<T: Number>(&mut self, name: &str, value: T) -> Uniform<T> {
        self.header_value(name, value, false)
    }

    /// Declares a value in the header that never changes. Otherwise like [`Recorder::uniform`].
    pub fn constant<T: Number>(&mut self, name: &str, value: T) -> Uniform<T> {
        self.header_value(name, value, true)
    }

    /// Adds a value of 4 bytes behind the totals in the header, which is declared if it was not.
    fn header_value<T: Number>(&mut self, name: &str, value: T, is_constant: bool) -> Uniform<T> {
        if T::DTYPE.size_bytes() != size_of::<u32>() {
            let message = format!("a uniform of {:?}; it takes 4 bytes", T::DTYPE);
            self.misuse
                .get_or_insert_with(|| Error::usage(message).within(format!("uniform {name}")));
        }
        if self.uniforms.iter().any(|known| known.name == name) {
            let message = "two uniforms have this name";
            self.misuse
                .get_or_insert_with(|| Error::usage(message).within(format!("uniform {name}")));
        }
        let header = self.header();
        let index = self.uniforms.len() as u32;
        self.uniforms.push(UniformDecl {
            name: name.to_owned(),
            dtype: T::DTYPE,
            bits: Scalar::from(value).bits as u32,
            is_constant,
        });
        let len = HEADER_LEN + self.uniforms.len();
        let decl = &mut self.buffers[header.id().index()];
        (decl.len, decl.unit) = (len, Unit::PerBatch { elements: len });
        Uniform::new(UniformId {
            header: header.id(),
            index,
            dtype: T::DTYPE,
        })
    }

    /// Records the upload of a whole buffer.
    pub fn upload<T: Element>(&mut self, buffer: Buffer<T>) {
        self.commands.push(Command::Upload(buffer.id()));
    }

    /// Records the download of a whole buffer.
    pub fn download<T: Element>(&mut self, buffer: Buffer<T>) {
        self.commands.push(Command::Download(buffer.id()));
    }

    /// Records a fill: every byte of the buffer becomes `byte`.
    pub fn memset<T: Element>(&mut self, buffer: Buffer<T>, byte: u8) {
        let buffer = buffer.id();
        self.commands.push(Command::Memset { buffer, byte });
    }

    /// Records a launch of `kernel` with `blocks` blocks along x.
    pub fn launch(&mut self, kernel: &Kernel, blocks: u32, args: &[Arg]) {
        self.launch_shaped(kernel, Shape::Grid([blocks, 1, 1]), args);
    }

    /// Records a launch of `kernel` with a grid of blocks along x, y and z.
    pub fn launch_grid(&mut self, kernel: &Kernel, grid: [u32; 3], args: &[Arg]) {
        self.launch_shaped(kernel, Shape::Grid(grid), args);
    }

    /// Records a launch of `kernel` over `elements` elements. The device chooses the number of
    /// threads per block with the best occupancy, and the number of blocks follows from it.
    ///
    /// The block extends along x alone, whatever shape the kernel declares. The code has to read
    /// its size from `blockDim.x`, ignore indices beyond the elements, and with [`Cover::Strided`]
    /// advance by `gridDim.x * blockDim.x` up to the last element. A block has the declared dynamic
    /// shared memory, whatever its size. The CPU and the simulated device use the declared block.
    /// For no elements one block is launched.
    pub fn launch_over(&mut self, kernel: &Kernel, elements: u64, cover: Cover, args: &[Arg]) {
        self.launch_shaped(kernel, Shape::Over { elements, cover }, args);
    }

    /// Records a [library call](Kernel::library_call). The twin of `kernel` gets a grid of one block.
    pub fn call(&mut self, kernel: &Kernel, args: &[Arg]) {
        self.launch(kernel, 1, args);
    }

    fn launch_shaped(&mut self, kernel: &Kernel, shape: Shape, args: &[Arg]) {
        self.commands.push(Command::Launch(Launch {
            kernel: kernel.clone(),
            shape,
            args: args.to_vec(),
        }));
    }

    /// Checks what was recorded.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage), naming the command and the buffer or
    /// parameter.
    pub fn finish(self) -> Result<Recording> {
        if let Some(error) = self.misuse {
            return Err(error);
        }
        let recording = Recording {
            id: self.id,
            is_of_workload: self.workload.is_some(),
            capacity: self.capacity,
            buffers: self.buffers,
            commands: self.commands,
            header: self.header.map(|header| header.id()),
            uniforms: self.uniforms,
        };
        check::check(&recording)?;
        Ok(recording)
    }

    /// Declares a buffer. A mistake is kept for [`Recorder::finish`], which returns the first, and a buffer
    /// with one element stands in; the recording's first buffer where there are too many.
    fn declare<T: Element>(&mut self, name: &str, unit: Unit, view: View) -> Buffer<T> {
        const { check_element::<T>() };
        let len = match unit {
            Unit::PerBatch { elements } => Some(elements),
            Unit::PerAxis { axis, elements } => match self.capacity.get(axis) {
                Some(&capacity) => elements.checked_mul(capacity as usize),
                None => {
                    self.misuse(name, format!("axis {axis} of {} axes", self.capacity.len()));
                    Some(1)
                }
            },
        };
        let len = len
            .filter(|len| len.checked_mul(T::DTYPE.size_bytes()).is_some())
            .unwrap_or_else(|| {
                self.misuse(name, "its size overflows".to_owned());
                1
            });
        if self.buffers.len() == BUFFERS_MAX {
            self.misuse(name, format!("more than {BUFFERS_MAX} buffers"));
            return Buffer::new(self.buffer_id(0));
        }
        let id = self.buffer_id(self.buffers.len());
        self.buffers.push(BufferDecl {
            name: name.to_owned(),
            dtype: T::DTYPE,
            unit,
            view,
            len,
            is_replaceable: false,
        });
        Buffer::new(id)
    }

    fn buffer_id(&self, index: usize) -> BufferId {
        BufferId {
            recording: self.id,
            index: index as u16,
        }
    }

    fn misuse(&mut self, buffer: &str, message: String) {
        self.misuse
            .get_or_insert_with(|| Error::usage(message).within(format!("buffer {buffer}")));
    }
}

impl Recording {
    /// The largest extent of a batch along each axis.
    pub fn capacity(&self) -> &[u32] {
        &self.capacity
    }

    /// The declared buffers; [`BufferId::index`] is the index.
    pub fn buffers(&self) -> &[BufferDecl] {
        &self.buffers
    }

    /// The commands in order.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// The header that the engine fills, if the recording uses one.
    pub fn header(&self) -> Option<BufferId> {
        self.header
    }

    /// The values after the first [`HEADER_LEN`] elements of the header.
    pub fn uniforms(&self) -> &[UniformDecl] {
        &self.uniforms
    }

    /// The buffers' handles with their declarations.
    pub fn buffers_by_id(&self) -> impl Iterator<Item = (BufferId, &BufferDecl)> {
        let recording = self.id;
        let ids = (0..self.buffers.len()).map(move |index| BufferId {
            recording,
            index: index as u16,
        });
        ids.zip(&self.buffers)
    }

    /// The launches in order.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.commands.iter().filter_map(|command| match command {
            Command::Launch(launch) => Some(launch),
            _ => None,
        })
    }

    /// The kernels in the order of their launches. Private, because a caller could record a kernel
    /// with device code in another way than its author promised.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.launches().map(|launch| &launch.kernel)
    }

    /// The images of its kernels, some of them more than once.
    pub(crate) fn images(&self) -> Vec<Arc<Image>> {
        let images = self.kernels().filter_map(Kernel::image);
        images.cloned().collect()
    }

    /// The id that all recordings with the same handles share.
    pub(crate) fn id(&self) -> RecordingId {
        self.id
    }

    /// The buffer that a handle stands for; `None` for a handle of another recording.
    pub(crate) fn buffer(&self, id: BufferId) -> Option<&BufferDecl> {
        if id.recording == self.id {
            self.buffers.get(id.index())
        } else {
            None
        }
    }

    /// Its resident buffers.
    pub(crate) fn resident(&self) -> impl Iterator<Item = (BufferId, &BufferDecl)> {
        let all = self.buffers_by_id();
        all.filter(|(_, decl)| decl.view == View::Resident)
    }

    /// Its first input buffer.
    pub(crate) fn device_input(&self) -> Option<&BufferDecl> {
        let mut buffers = self.buffers.iter();
        buffers.find(|decl| decl.view == View::DeviceInput)
    }

    /// Its result buffers.
    pub(crate) fn results(&self) -> impl Iterator<Item = (BufferId, &BufferDecl)> {
        let all = self.buffers_by_id();
        all.filter(|(_, decl)| decl.view == View::DeviceResult)
    }

    /// The first resident buffer that a command writes, so that a batch depends on those before.
    pub(crate) fn updated_resident(&self) -> Option<&BufferDecl> {
        let mut resident = self.resident();
        let updated = resident.find(|(id, _)| self.writes(*id));
        updated.map(|(_, decl)| decl)
    }

    /// Whether a command writes the device side of a buffer.
    pub(crate) fn writes(&self, id: BufferId) -> bool {
        let mut is_written = false;
        for command in &self.commands {
            command.visit_buffers(|buffer, _, writes| is_written |= buffer == id && writes);
        }
        is_written
    }

    /// Whether it is of a workload ([`Recorder::is_for`]). Then only that workload writes the batches.
    pub(crate) fn is_of_workload(&self) -> bool {
        self.is_of_workload
    }
}
