//! A kernel that takes all it works on in a struct: `y = x * table[i % n] + offset`,
//! with the table in memory of the embedder's.

use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop_engine::backend::contract::{DeviceSlot, Priority};
use tapeloop_engine::backend::cpu::CpuBackend;
use tapeloop_engine::backend::{Allocation, AllocationView, Backend, Space};
use tapeloop_engine::record::{
    Access, Buffer, DType, Image, Kernel, Recorder, Recording, StructArg, TwinLaunch,
};
use tapeloop_engine::replay::{Buckets, Executor, Mode, Policy, Replay};
use tapeloop_sim::{SimBackend, SimOptions};

pub const LEN: usize = 300;
/// Elements of the table.
pub const TABLE: usize = 7;

pub const TEXT: &str = r#"
struct Params { const float* x; float offset; unsigned n; float* y; const float* table; unsigned table_n; };
extern "C" __global__ void gather(Params p)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n) p.y[i] = __fadd_rn(__fmul_rn(p.x[i], p.table[i % p.table_n]), p.offset);
}
"#;

/// As the kernel has it; pointers are set by the launch.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Params {
    pub x: u64,
    pub offset: f32,
    pub n: u32,
    pub y: u64,
    pub table: u64,
    pub table_n: u32,
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

fn twin(launch: &mut TwinLaunch<'_>) {
    let params: Params = launch.structure();
    let x: &[f32] = launch.read();
    let y: &mut [f32] = launch.write();
    let table: &[f32] = launch.read();
    for i in 0..params.n as usize {
        y[i] = x[i] * table[i % params.table_n as usize] + params.offset;
    }
}

pub struct Gather {
    kernel: Kernel,
    pub x: Buffer<f32>,
    pub y: Buffer<f32>,
}

/// A slot with what runs on it, and the table.
pub struct Slot {
    pub device_slot: Box<dyn DeviceSlot>,
    pub executor: Executor,
    pub x: Buffer<f32>,
    pub y: Buffer<f32>,
    pub table: Allocation,
}

impl Gather {
    /// A kernel that says that it follows pointers in device memory.
    pub fn following() -> Self {
        Gather::of(declared().follows_device_pointers())
    }

    pub fn new() -> Self {
        Gather::of(declared())
    }

    fn of(kernel: Kernel) -> Self {
        // SAFETY: the kernel touches the first `n` elements of `x` and `y` and the first
        // `table_n` of the table, and the tests set neither to more than there are.
        let kernel = unsafe { kernel.code(&Image::cuda("gather.cu", TEXT)) };
        let (_, x, y) = record(&kernel, 0);
        Gather { kernel, x, y }
    }

    /// What a batch does, with the table at `address`; and its `x` and `y`.
    pub fn recording(&self, address: u64) -> (Recording, Buffer<f32>, Buffer<f32>) {
        record(&self.kernel, address)
    }

    pub fn table(&self, backend: &dyn Backend, first: f32) -> Allocation {
        self.table_in(backend, first, Space::Device)
    }

    fn table_in(&self, backend: &dyn Backend, first: f32, space: Space) -> Allocation {
        let values: Vec<f32> = (0..TABLE).map(|i| first + i as f32).collect();
        let bytes = bytemuck::cast_slice(&values);
        let allocation = backend.allocate(space, bytes.len()).unwrap();
        backend.write(bytes, &allocation, 0).unwrap();
        allocation
    }

    pub fn slot(&self, backend: &Arc<dyn Backend>, policy: &Policy) -> Slot {
        self.slot_with(backend, policy, Space::Device)
    }

    /// A slot whose table starts at 1, and is declared.
    pub fn slot_with(&self, backend: &Arc<dyn Backend>, policy: &Policy, space: Space) -> Slot {
        let table = self.table_in(&**backend, 1.0, space);
        let (recording, x, y) = record(&self.kernel, table.address());
        let buffers = recording.buffers().to_vec();
        let buckets = Arc::new(Buckets::single(recording));
        let mut device_slot = backend
            .open_slots(&buffers, 1, Priority::Normal)
            .unwrap()
            .remove(0);
        let mut executor = Executor::new(backend, &mut *device_slot, &buckets, policy).unwrap();
        executor
            .declare(
                &mut *device_slot,
                AllocationView::new(&table, 0, table.bytes()).unwrap(),
            )
            .unwrap();
        Slot {
            device_slot,
            executor,
            x,
            y,
            table,
        }
    }

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
    /// Gives a full batch.
    pub fn give(&mut self, _: &Gather) -> tapeloop_engine::Result<Replay> {
        let largest = self.executor.buckets().largest().capacity;
        self.executor.replay(&mut *self.device_slot, 0, largest)
    }

    /// Runs a batch and returns its results.
    pub fn run(&mut self, gather: &Gather, scale: f32) -> Vec<f32> {
        gather.fill(&mut *self.device_slot, scale);
        self.give(gather).unwrap();
        self.device_slot.wait().unwrap();
        bytemuck::cast_slice(self.device_slot.host(gather.y.id())).to_vec()
    }
}

/// The CPU and a simulated device.
pub fn devices() -> [Arc<dyn Backend>; 2] {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    [
        Arc::new(CpuBackend::new(pool)),
        Arc::new(SimBackend::new(SimOptions::seeded(1))),
    ]
}

/// Every legal policy. Nothing is ready before memory is declared.
pub fn policies() -> Vec<Policy> {
    let lazy = |policy| Policy {
        warm_up: false,
        ..policy
    };
    let mut all: Vec<Policy> = Policy::combinations().map(lazy).collect();
    all.sort_by_key(|policy| policy.mode == Mode::Stream);
    all
}
