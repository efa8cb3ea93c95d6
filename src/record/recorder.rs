//! Taking down the commands of one batch.

use super::buffer::{
    Buffer, BufferDecl, BufferId, DType, Element, Number, RecordingId, Scalar, Unit, View,
};
use super::command::{Arg, Command, Launch};
use super::kernel::Kernel;
use super::shape::{Cover, Shape};
use super::{AXES_MAX, check};
use crate::error::{Error, Result};
use std::any::TypeId;

/// The most buffers in a recording.
pub const BUFFERS_MAX: usize = 128;

/// Elements of the header before the uniforms: the batch's total along axis `a` at index `a`, the
/// number of items at [`HEADER_ITEMS`], zeros elsewhere.
pub const HEADER_LEN: usize = 8;

/// Where the header holds the number of items, whatever the number of axes.
pub const HEADER_ITEMS: usize = AXES_MAX;
const _: () = assert!(HEADER_ITEMS < HEADER_LEN);

const HEADER_NAME: &str = "header";

/// A value that travels in the header of every batch, and so may change between two batches without
/// a change to the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uniform {
    /// Its name, unique in the recording.
    pub name: String,
    /// Its type, of 4 bytes.
    pub dtype: DType,
    /// The bits that it starts with.
    pub bits: u32,
    /// Whether it stays what it is.
    pub is_constant: bool,
}

/// Takes down buffers and commands for batches of one capacity.
pub struct Recorder {
    id: RecordingId,
    /// The workload that an engine records, if one does.
    workload: Option<TypeId>,
    capacity: Vec<u32>,
    largest: Vec<u32>,
    buffers: Vec<BufferDecl>,
    commands: Vec<Command>,
    header: Option<Buffer<u32>>,
    uniforms: Vec<Uniform>,
    // The first misuse; reported by `finish`, so that recording reads straight.
    misuse: Option<Error>,
}

/// Checked commands over declared buffers: what one batch does.
#[derive(Clone, Debug)]
pub struct Recording {
    id: RecordingId,
    is_of_workload: bool,
    pub(super) capacity: Vec<u32>,
    pub(super) buffers: Vec<BufferDecl>,
    pub(super) commands: Vec<Command>,
    pub(super) header: Option<BufferId>,
    pub(super) uniforms: Vec<Uniform>,
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

    /// A recorder for each of several buckets, smallest first, whose handles are one another's: the
    /// handle that one of them returns stands for the same buffer in the recordings of the others.
    /// Each of them declares and launches the same.
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

    /// A recorder for one bucket of the workload `W`, which an engine fills; the largest bucket
    /// spans `largest`, and `id` is that of all of them.
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

    /// Whether an engine, a pipeline or a packer records its workload, and that is of type `W`.
    /// Then nothing but that workload's `write`, and the engine, which writes the header, writes
    /// what the batches of this recording upload.
    ///
    /// A workload whose device code relies on what the workload itself writes attaches the code
    /// ([`Kernel::code`]) only where this is true: its `record` may also be called by another
    /// workload, which records more, or writes something else.
    pub fn is_for<W: 'static>(&self) -> bool {
        self.workload == Some(TypeId::of::<W>())
    }

    /// The largest bucket's capacity along `axis`: what all buckets have to share, which is all but
    /// sizes, may follow from it.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn largest_capacity(&self, axis: usize) -> u32 {
        self.largest[axis]
    }

    /// The batch's capacity along `axis`.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn capacity(&self, axis: usize) -> u32 {
        self.capacity[axis]
    }

    /// A buffer that items write: `elements` for each unit of `axis`.
    pub fn upload_buffer<T: Element>(
        &mut self,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Buffer<T> {
        self.declare(name, Unit::PerAxis { axis, elements }, View::Upload)
    }

    /// A buffer that items read back: `elements` for each unit of `axis`.
    pub fn download_buffer<T: Element>(
        &mut self,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Buffer<T> {
        self.declare(name, Unit::PerAxis { axis, elements }, View::Download)
    }

    /// A buffer that stays on the device.
    pub fn device_buffer<T: Element>(&mut self, name: &str, unit: Unit) -> Buffer<T> {
        self.declare(name, unit, View::Device)
    }

    /// The header that the engine fills, [`HEADER_LEN`] elements: the batch's total along axis `a`
    /// at index `a`, the number of items at [`HEADER_ITEMS`]; the uniforms follow. Kernels read
    /// from it how much of the capacity is live.
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

    /// A value that the engine puts into the header of every batch, and that may change while the
    /// engine runs. Kernels read its bits from the returned index of the header.
    pub fn uniform<T: Number>(&mut self, name: &str, value: T) -> usize {
        self.header_value(name, value, false)
    }

    /// As [`Recorder::uniform`], a value that does not change.
    pub fn constant<T: Number>(&mut self, name: &str, value: T) -> usize {
        self.header_value(name, value, true)
    }

    fn header_value<T: Number>(&mut self, name: &str, value: T, is_constant: bool) -> usize {
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
        self.uniforms.push(Uniform {
            name: name.to_owned(),
            dtype: T::DTYPE,
            bits: Scalar::from(value).bits as u32,
            is_constant,
        });
        let len = HEADER_LEN + self.uniforms.len();
        let decl = &mut self.buffers[header.id().index()];
        (decl.len, decl.unit) = (len, Unit::PerBatch { elements: len });
        len - 1
    }

    /// Records the upload of a whole buffer.
    pub fn upload<T: Element>(&mut self, buffer: Buffer<T>) {
        self.commands.push(Command::Upload(buffer.id()));
    }

    /// Records the download of a whole buffer.
    pub fn download<T: Element>(&mut self, buffer: Buffer<T>) {
        self.commands.push(Command::Download(buffer.id()));
    }

    /// Records that every byte of a buffer is set to `byte`.
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

    /// Records a launch of `kernel` over `elements` elements: the device chooses the block that
    /// fills it best, and the blocks follow from that.
    ///
    /// The block is along x, whatever the kernel declares: its code reads the size from
    /// `blockDim.x`, passes over what is beyond the elements, and with [`Cover::Strided`] goes on
    /// by `gridDim.x * blockDim.x` to the last of them. Its dynamic shared memory is the declared
    /// one for every block. On the CPU and on the simulated device blocks are the declared ones. No
    /// elements are one block.
    pub fn launch_over(&mut self, kernel: &Kernel, elements: u64, cover: Cover, args: &[Arg]) {
        self.launch_shaped(kernel, Shape::Over { elements, cover }, args);
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

    fn declare<T: Element>(&mut self, name: &str, unit: Unit, view: View) -> Buffer<T> {
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
        });
        Buffer::new(id)
    }

    fn buffer_id(&self, index: usize) -> BufferId {
        BufferId {
            of: self.id,
            index: index as u16,
        }
    }

    fn misuse(&mut self, buffer: &str, message: String) {
        self.misuse
            .get_or_insert_with(|| Error::usage(message).within(format!("buffer {buffer}")));
    }
}

impl Recording {
    /// The most that a batch spans along each axis.
    pub fn capacity(&self) -> &[u32] {
        &self.capacity
    }

    /// The buffers, by [`BufferId::index`].
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
    pub fn uniforms(&self) -> &[Uniform] {
        &self.uniforms
    }

    /// The buffers' handles with their declarations.
    pub fn buffers_by_id(&self) -> impl Iterator<Item = (BufferId, &BufferDecl)> {
        let of = self.id;
        let ids = (0..self.buffers.len()).map(move |index| BufferId {
            of,
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

    /// The kernels in the order of their launches. Not public: a kernel with code could be recorded
    /// otherwise.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.launches().map(|launch| &launch.kernel)
    }

    /// Which recordings share its handles.
    pub(crate) fn id(&self) -> RecordingId {
        self.id
    }

    /// The buffer that a handle stands for; `None` for a handle of another recording.
    pub(crate) fn buffer(&self, id: BufferId) -> Option<&BufferDecl> {
        match id.of == self.id {
            true => self.buffers.get(id.index()),
            false => None,
        }
    }

    /// Whether an engine recorded a workload. Its batches are then written by that workload alone.
    pub(crate) fn is_of_workload(&self) -> bool {
        self.is_of_workload
    }
}
