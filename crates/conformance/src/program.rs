//! A small program with something of everything: two independent outputs, scratch
//! that stays on the device, and buffers that can and cannot be mapped.

use crate::give::{Give, memset};
use std::sync::Arc;
use std::time::Duration;
use tapeloop_engine::ErrorKind;
use tapeloop_engine::backend::contract::{DeviceSlot, Priority};
use tapeloop_engine::backend::{Backend, Residency};
use tapeloop_engine::record::{Buffer, Image, Kernel, Recorder, Twin, TwinLaunch};
use tapeloop_engine::replay::{Bucket, Buckets, Executor, Mode, Policy, Replay, Verify};
use tapeloop_engine::workload::Extent;

/// Sums and products are not contracted, so that the twins have the same bits.
const TEXT: &str = r#"
extern "C" __global__ void scale(const unsigned* header, const float* x, float* mid, float factor)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) mid[i] = __fmul_rn(x[i], factor);
}
extern "C" __global__ void shift(const unsigned* header, const float* x, float* z, float by)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) z[i] = __fadd_rn(x[i], by);
}
extern "C" __global__ void add(const unsigned* header, const float* mid, const float* w, float* y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) y[i] = __fadd_rn(mid[i], w[i]);
}
"#;

pub(crate) const TWINS: [(&str, Twin); 3] = [
    ("scale", scale_live),
    ("shift", shift_live),
    ("add", add_live),
];

/// Elements that one block computes: few, so that a batch of the smaller bucket has several blocks too.
pub const BLOCK: usize = 4;

/// Capacities of the buckets.
pub const CAPACITIES: [usize; 2] = [8, 32];

/// The buffers of a [`Program`].
#[derive(Clone, Copy)]
pub struct Handles {
    /// The header.
    pub header: Buffer<u32>,
    /// An input that two kernels read.
    pub x: Buffer<f32>,
    /// An input that one kernel reads.
    pub w: Buffer<f32>,
    /// Scratch on the device: `x * factor`.
    pub mid: Buffer<f32>,
    /// An output: `x * factor + w`.
    pub y: Buffer<f32>,
    /// An output: `x + by`.
    pub z: Buffer<f32>,
}

/// Kernels `scale`, `shift` and `add`, recorded for both [`CAPACITIES`], with a factor of 2 and a shift
/// of 1.
pub struct Program {
    /// The recordings.
    pub buckets: Arc<Buckets>,
    /// The buffers.
    pub handles: Handles,
}

impl Default for Program {
    fn default() -> Self {
        Program::new()
    }
}

fn live(launch: &mut TwinLaunch<'_>) -> usize {
    let blocks = launch.grid[0] as usize;
    let header: &[u32] = launch.read();
    (header[0] as usize).min(blocks * BLOCK)
}

fn scale_live(launch: &mut TwinLaunch<'_>) {
    let live = live(launch);
    let (x, mid): (&[f32], &mut [f32]) = (launch.read(), launch.write());
    let factor: f32 = launch.scalar();
    (0..live).for_each(|i| mid[i] = x[i] * factor);
}

fn shift_live(launch: &mut TwinLaunch<'_>) {
    let live = live(launch);
    let (x, z): (&[f32], &mut [f32]) = (launch.read(), launch.write());
    let by: f32 = launch.scalar();
    (0..live).for_each(|i| z[i] = x[i] + by);
}

fn add_live(launch: &mut TwinLaunch<'_>) {
    let live = live(launch);
    let (mid, w): (&[f32], &[f32]) = (launch.read(), launch.read());
    let y: &mut [f32] = launch.write();
    (0..live).for_each(|i| y[i] = mid[i] + w[i]);
}

/// Records the program: two kernels that depend on nothing of each other, and one that reads what
/// the first has written.
fn record(mut recorder: Recorder) -> (Bucket, Handles) {
    let capacity = recorder.capacity(0) as usize;
    let image = Image::cuda("program.cu", TEXT);
    let kernel = |name: &str| Kernel::new(name).block(BLOCK as u32).reads::<u32>("header");
    // SAFETY: the kernels touch what the header counts of their buffers, and a scenario counts no more
    // than the capacity.
    let with_code = |kernel: Kernel| unsafe { kernel.code(&image) };
    let scale = kernel("scale").reads::<f32>("x").writes::<f32>("mid");
    let scale = scale.scalar::<f32>("factor").changeable("factor");
    let scale = with_code(scale).twin(scale_live);
    let shift = kernel("shift").reads::<f32>("x").writes::<f32>("z");
    let shift = shift.scalar::<f32>("by").changeable("by");
    let shift = with_code(shift).twin(shift_live);
    let add = kernel("add").reads::<f32>("mid").reads::<f32>("w");
    let add = with_code(add.writes::<f32>("y")).twin(add_live);
    let handles = Handles {
        header: recorder.header(),
        x: recorder.upload_buffer("x", 0, 1),
        w: recorder.upload_buffer("w", 0, 1),
        mid: recorder.device_buffer("mid", 0, 1),
        y: recorder.download_buffer("y", 0, 1),
        z: recorder.download_buffer("z", 0, 1),
    };
    let Handles {
        header,
        x,
        w,
        mid,
        y,
        z,
    } = handles;
    let blocks = capacity.div_ceil(BLOCK) as u32;
    recorder.upload(header);
    recorder.upload(x);
    recorder.upload(w);
    recorder.memset(mid, 0);
    let args = [header.into(), x.into(), mid.into(), 2f32.into()];
    recorder.launch(&scale, blocks, &args);
    let args = [header.into(), x.into(), z.into(), 1f32.into()];
    recorder.launch(&shift, blocks, &args);
    let args = [header.into(), mid.into(), w.into(), y.into()];
    recorder.launch(&add, blocks, &args);
    recorder.download(y);
    recorder.download(z);
    let bucket = Bucket {
        capacity: Extent::from([capacity as u32]),
        recording: Arc::new(recorder.finish().unwrap()),
    };
    (bucket, handles)
}

impl Program {
    /// Records the program.
    pub fn new() -> Self {
        let capacities = CAPACITIES.map(|capacity| [capacity as u32]);
        let recorders =
            Recorder::ladder(&capacities.each_ref().map(|capacity| capacity.as_slice()));
        let recorded: Vec<_> = recorders.into_iter().map(record).collect();
        let handles = recorded[0].1;
        let buckets = recorded.into_iter().map(|(bucket, _)| bucket).collect();
        Program {
            buckets: Arc::new(Buckets::new(buckets).unwrap()),
            handles,
        }
    }

    /// Opens slots with the program's buffers.
    ///
    /// # Errors
    /// The errors of [`Backend::open_slots`].
    pub fn open(
        &self,
        backend: &Arc<dyn Backend>,
        device_slots: usize,
    ) -> tapeloop_engine::Result<Vec<Box<dyn DeviceSlot>>> {
        let buffers = self.buckets.largest().recording.buffers();
        backend.open_slots(buffers, device_slots, Priority::Normal)
    }

    /// Opens slots with an executor each.
    ///
    /// # Errors
    /// The errors of [`Backend::open_slots`] and [`Executor::new`].
    pub fn slots(
        &self,
        backend: &Arc<dyn Backend>,
        device_slots: usize,
        policy: &Policy,
    ) -> tapeloop_engine::Result<Vec<(Box<dyn DeviceSlot>, Executor)>> {
        let device_slots = self.open(backend, device_slots)?;
        let slot = |mut device_slot: Box<dyn DeviceSlot>| {
            let executor = Executor::new(backend, &mut *device_slot, &self.buckets, policy)?;
            Ok((device_slot, executor))
        };
        device_slots.into_iter().map(slot).collect()
    }
}

/// What a batch is given: two numbers for each element.
#[derive(Clone, Debug)]
pub struct Input {
    /// The values of [`Handles::x`].
    pub x: Vec<f32>,
    /// The values of [`Handles::w`].
    pub w: Vec<f32>,
}

impl Input {
    /// Whole numbers below 1,000 that look random, the same for a seed everywhere.
    pub fn from_seed(seed: u64, elements: usize) -> Self {
        let number = |place: usize| {
            let mixed = seed
                .wrapping_add(place as u64 + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            ((mixed >> 32) % 1_000) as f32
        };
        Input {
            x: (0..elements).map(|i| number(2 * i)).collect(),
            w: (0..elements).map(|i| number(2 * i + 1)).collect(),
        }
    }

    /// The length of the batch.
    pub fn extent(&self) -> Extent {
        Extent::from([self.x.len() as u32])
    }

    /// What [`Handles::y`] holds for this factor.
    pub fn y(&self, factor: f32) -> Vec<f32> {
        let pairs = self.x.iter().zip(&self.w);
        pairs.map(|(x, w)| x * factor + w).collect()
    }

    /// What [`Handles::z`] holds for this shift.
    pub fn z(&self, by: f32) -> Vec<f32> {
        self.x.iter().map(|x| x + by).collect()
    }
}

impl Program {
    /// Writes the header and the inputs of a batch.
    pub fn fill(&self, device_slot: &mut dyn DeviceSlot, input: &Input) {
        let Handles { header, x, w, .. } = self.handles;
        let mut views = device_slot.host_mut(&[header.id(), x.id(), w.id()]);
        let live = input.x.len();
        bytemuck::cast_slice_mut::<u8, u32>(views[0])[0] = live as u32;
        bytemuck::cast_slice_mut::<u8, f32>(views[1])[..live].copy_from_slice(&input.x);
        bytemuck::cast_slice_mut::<u8, f32>(views[2])[..live].copy_from_slice(&input.w);
    }

    /// Opens one slot with its executor.
    ///
    /// # Panics
    /// If a call fails.
    pub fn slot(
        &self,
        backend: &Arc<dyn Backend>,
        policy: &Policy,
    ) -> (Box<dyn DeviceSlot>, Executor) {
        self.slots(backend, 1, policy).unwrap().remove(0)
    }

    /// The first `len` elements that came down in `buffer`.
    pub fn downloaded<'a>(
        &self,
        device_slot: &'a dyn DeviceSlot,
        buffer: Buffer<f32>,
        len: usize,
    ) -> &'a [f32] {
        &bytemuck::cast_slice(device_slot.host(buffer.id()))[..len]
    }

    /// Runs a batch in the smallest bucket that holds it, waits for it and compares its results.
    ///
    /// # Panics
    /// If a call fails, or a result is wrong.
    pub fn run(&self, device_slot: &mut dyn DeviceSlot, executor: &mut Executor, input: &Input) {
        self.give(device_slot, executor, input).unwrap();
        device_slot.wait().unwrap();
        assert!(
            self.is_right(device_slot, input),
            "wrong results of {input:?}"
        );
    }

    /// Submits a batch in the smallest bucket that holds it.
    ///
    /// # Errors
    /// The errors of [`Executor::replay`].
    pub fn give(
        &self,
        device_slot: &mut dyn DeviceSlot,
        executor: &mut Executor,
        input: &Input,
    ) -> tapeloop_engine::Result<Replay> {
        self.fill(device_slot, input);
        let bucket = self
            .buckets
            .find(input.extent())
            .expect("an input is no larger than a bucket");
        executor.replay(device_slot, bucket, input.extent())
    }

    /// Whether the slot holds the results of `input` as recorded.
    pub fn is_right(&self, device_slot: &dyn DeviceSlot, input: &Input) -> bool {
        let starts = |buffer: Buffer<f32>, expected: Vec<f32>| {
            self.downloaded(device_slot, buffer, expected.len()) == expected
        };
        starts(self.handles.y, input.y(2.0)) & starts(self.handles.z, input.z(1.0))
    }
}

/// Every combination of a policy's settings; transfer `auto` maps the small buffers only, and the times of loops are
/// so short that they end and start again within a scenario, also on the simulated device, whose steps count as
/// microseconds.
pub fn policies() -> Vec<Policy> {
    let small = |policy| Policy {
        mapped_bytes_max: 64,
        residency: Residency {
            idle: Duration::from_micros(30),
            busy: Duration::from_micros(300),
            ..Residency::default()
        },
        ..policy
    };
    Policy::combinations().map(small).collect()
}

/// What a backend makes of loops ([`DeviceSlot::make_resident`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loops {
    /// It refuses them.
    Refused,
    /// Its launches call no driver, so it needs none.
    Unneeded,
    /// It runs them.
    Run,
}

/// Asks a backend what it makes of loops.
///
/// # Panics
/// If it refuses them by another kind than [`ErrorKind::Unavailable`].
pub fn loops(backend: &Arc<dyn Backend>) -> Loops {
    let program = Program::new();
    let mut device_slot = program.open(backend, 1).unwrap().remove(0);
    let mid = device_slot.addresses(program.handles.mid.id());
    let memset = memset(mid.device, 0, mid.bytes);
    let (graph, _) = device_slot.capture(&[&memset], None).unwrap();
    match device_slot.make_resident(graph, Residency::default()) {
        Ok(true) => Loops::Run,
        Ok(false) => Loops::Unneeded,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            Loops::Refused
        }
    }
}

/// The [`policies`] that a backend accepts: all, or those without loops if it refuses them.
pub fn accepted_policies(backend: &Arc<dyn Backend>) -> Vec<Policy> {
    let mut accepted = policies();
    if loops(backend) == Loops::Refused {
        accepted.retain(|policy| policy.mode != Mode::Resident);
    }
    accepted
}

/// The policy without [`Policy::verify`]: batches run once, and are in flight when they were given.
pub fn unverified(policy: Policy) -> Policy {
    Policy {
        verify: Verify::Off,
        ..policy
    }
}

/// Runs a batch with its times, waits for it, and checks its results.
pub fn replay_timed(
    program: &Program,
    device_slot: &mut dyn DeviceSlot,
    executor: &mut Executor,
    input: &Input,
) -> Replay {
    program.fill(device_slot, input);
    let bucket = program.buckets.find(input.extent()).unwrap();
    let replay = executor.replay_timed(device_slot, bucket, input.extent());
    device_slot.wait().unwrap();
    assert!(program.is_right(device_slot, input));
    replay.unwrap()
}
