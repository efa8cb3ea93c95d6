//! A kernel that takes all it works on in a struct: `y = x * table[i % n] + offset`,
//! with the table in memory of the embedder's.

use crate::program::accepted_policies;
use std::sync::Arc;
use tapeloop_engine::Result;
use tapeloop_engine::backend::contract::{DeviceSlot, Priority};
use tapeloop_engine::backend::{Allocation, AllocationView, Backend, Contents};
use tapeloop_engine::record::{
    Access, Buffer, DType, Image, Kernel, Recorder, Recording, StructArg, Twin, TwinLaunch,
};
use tapeloop_engine::replay::{Buckets, Executor, Policy, Replay, Rung};

/// Elements of a batch.
pub const LEN: usize = 300;
/// Elements of the table.
pub const TABLE: usize = 7;

const TEXT: &str = r#"
struct Params { const float* x; float offset; unsigned n; float* y; const float* table; unsigned table_n; };
extern "C" __global__ void gather(Params p)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n) p.y[i] = __fadd_rn(__fmul_rn(p.x[i], p.table[i % p.table_n]), p.offset);
}
"#;

pub(crate) const TWINS: [(&str, Twin); 1] = [("gather", twin)];

/// As the kernel has it; pointers are set by the launch.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Params {
    /// The address of the input.
    pub x: u64,
    /// What is added to each product.
    pub offset: f32,
    /// Elements of the input.
    pub n: u32,
    /// The address of the output.
    pub y: u64,
    /// The address of the table.
    pub table: u64,
    /// Elements of the table.
    pub table_n: u32,
    /// Unused.
    pub padding: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            x: 0,
            offset: 0.0,
            n: LEN as u32,
            y: 0,
            table: 0,
            table_n: TABLE as u32,
            padding: 0,
        }
    }
}

/// The twin: gathers as the kernel does.
fn twin(launch: &mut TwinLaunch<'_>) {
    let params: Params = launch.structure();
    let x: &[f32] = launch.read();
    let y: &mut [f32] = launch.write();
    let table: &[f32] = launch.read();
    for i in 0..params.n as usize {
        y[i] = x[i] * table[i % params.table_n as usize] + params.offset;
    }
}

/// A recording with the kernel.
pub struct Gather {
    kernel: Kernel,
    /// The input.
    pub x: Buffer<f32>,
    /// The output.
    pub y: Buffer<f32>,
}

impl Default for Gather {
    fn default() -> Self {
        Gather::new()
    }
}

/// A slot with what runs on it, and the table.
pub struct Slot {
    /// The slot.
    pub device_slot: Box<dyn DeviceSlot>,
    /// What replays in the slot.
    pub executor: Executor,
    /// The input.
    pub x: Buffer<f32>,
    /// The output.
    pub y: Buffer<f32>,
    /// The table.
    pub table: Allocation,
}

impl Gather {
    /// With a kernel whose declaration says that it follows pointers in device memory.
    pub fn following() -> Self {
        Gather::with_kernel(declared().follows_device_pointers())
    }

    /// With a kernel that follows the pointers of its struct alone.
    pub fn new() -> Self {
        Gather::with_kernel(declared())
    }

    fn with_kernel(kernel: Kernel) -> Self {
        // SAFETY: the kernel touches the first `n` elements of `x` and `y` and the first
        // `table_n` of the table, and the tests set neither to more than there are.
        let kernel = unsafe { kernel.code(&Image::cuda("gather.cu", TEXT)) };
        let (_, x, y) = record(&kernel, 0);
        Gather { kernel, x, y }
    }

    /// The recording with its table at `address`, and its `x` and `y`.
    pub fn recording(&self, address: u64) -> (Recording, Buffer<f32>, Buffer<f32>) {
        record(&self.kernel, address)
    }

    /// A table of ascending numbers, which kernels only read, so that a supervised device has it too.
    pub fn table(&self, backend: &dyn Backend, first: f32) -> Allocation {
        let values: Vec<f32> = (0..TABLE).map(|i| first + i as f32).collect();
        let contents: Arc<Contents> = Arc::new(bytemuck::cast_slice::<f32, u8>(&values).to_vec());
        backend.allocate_filled(&contents).unwrap()
    }

    /// A slot whose table starts at 1, and is declared.
    pub fn slot(&self, backend: &Arc<dyn Backend>, policy: &Policy) -> Slot {
        self.slot_with(backend, policy, self.table(&**backend, 1.0))
    }

    /// A slot with this table, which is declared.
    pub fn slot_with(
        &self,
        backend: &Arc<dyn Backend>,
        policy: &Policy,
        table: Allocation,
    ) -> Slot {
        let (recording, x, y) = record(&self.kernel, table.address());
        let buffers = recording.buffers().to_vec();
        let buckets = Arc::new(Buckets::single(recording));
        let slots = backend.open_slots(&buffers, 1, Priority::Normal);
        let mut device_slot = slots.unwrap().remove(0);
        let executor = Executor::new(backend, &mut *device_slot, &buckets, policy).unwrap();
        let mut slot = Slot {
            device_slot,
            executor,
            x,
            y,
            table,
        };
        slot.declare(&slot.table.clone());
        slot
    }

    /// Writes `x`: multiples of `scale`.
    pub fn fill(&self, device_slot: &mut dyn DeviceSlot, scale: f32) {
        let x: Vec<f32> = (0..LEN).map(|i| i as f32 * scale).collect();
        device_slot.host_mut(&[self.x.id()])[0].copy_from_slice(bytemuck::cast_slice(&x));
    }

    /// `y` of what [`Gather::fill`] writes, for a table that starts at `first`.
    pub fn expected(&self, scale: f32, first: f32) -> Vec<f32> {
        let y = |i: usize| i as f32 * scale * (first + (i % TABLE) as f32);
        (0..LEN).map(y).collect()
    }
}

/// The kernel without its code.
fn declared() -> Kernel {
    let pointers = [
        (0, Access::Read, DType::F32),
        (16, Access::Write, DType::F32),
        (24, Access::Read, DType::F32),
    ];
    Kernel::new("gather")
        .structure("params", size_of::<Params>(), &pointers)
        .changeable("params")
        .twin(twin)
}

/// A struct with its three pointers, the table's at `address`.
pub fn pointing(params: &Params, x: Buffer<f32>, y: Buffer<f32>, address: u64) -> StructArg {
    let params = StructArg::new(bytemuck::bytes_of(params))
        .buffer(x)
        .buffer(y);
    // SAFETY: the kernel reads `table_n` elements from there, which every table has; an
    // executor refuses an address that is not declared to it.
    unsafe { params.address(address) }
}

/// A recording of one launch whose struct points to `x`, `y` and the table at `address`.
fn record(kernel: &Kernel, address: u64) -> (Recording, Buffer<f32>, Buffer<f32>) {
    let mut recorder = Recorder::new(&[LEN as u32]);
    let x = recorder.upload_buffer::<f32>("x", 0, 1);
    let y = recorder.download_buffer::<f32>("y", 0, 1);
    let params = pointing(&Params::default(), x, y, address);
    recorder.upload(x);
    recorder.launch(kernel, (LEN as u32).div_ceil(128), &[params.into()]);
    recorder.download(y);
    (recorder.finish().unwrap(), x, y)
}

impl Slot {
    /// Lets batches of the slot use all of an allocation.
    pub fn declare(&mut self, allocation: &Allocation) {
        let view = AllocationView::new(allocation, 0, allocation.bytes()).unwrap();
        self.executor.declare(&mut *self.device_slot, view).unwrap();
    }

    /// Takes the table away from the slot's batches.
    pub fn withdraw_table(&mut self) {
        self.executor
            .withdraw(&mut *self.device_slot, &self.table)
            .unwrap();
    }

    /// Points the struct at another table, with another offset, by no cheaper rung than `least`.
    ///
    /// # Errors
    /// The errors of [`Executor::update_from`].
    pub fn point(&mut self, table: u64, offset: f32, least: Rung) -> Result<Rung> {
        let bindings = self.executor.bindings(&mut *self.device_slot, 0).unwrap();
        let mut bindings = bindings.clone();
        let params = Params {
            offset,
            ..Params::default()
        };
        bindings
            .set_struct(0, "params", pointing(&params, self.x, self.y, table))
            .unwrap();
        self.executor
            .update_from(&mut *self.device_slot, 0, bindings, least)
    }

    /// Gives a full batch.
    ///
    /// # Errors
    /// The errors of [`Executor::replay`].
    pub fn give(&mut self) -> Result<Replay> {
        let largest = self.executor.buckets().largest().capacity;
        self.executor.replay(&mut *self.device_slot, 0, largest)
    }

    /// Runs a batch and returns its results.
    pub fn run(&mut self, gather: &Gather, scale: f32) -> Vec<f32> {
        gather.fill(&mut *self.device_slot, scale);
        self.give().unwrap();
        self.device_slot.wait().unwrap();
        bytemuck::cast_slice(self.device_slot.host(gather.y.id())).to_vec()
    }
}

/// The policies that a backend accepts. No bucket is ready before its memory is declared.
pub fn policies(backend: &Arc<dyn Backend>) -> Vec<Policy> {
    let lazy = |policy| Policy {
        warm_up: false,
        ..policy
    };
    accepted_policies(backend).into_iter().map(lazy).collect()
}
