//! A batch runs as launches and as a graph: the same, or an error that names where it differs.

use crate::assert_refused;
use crate::forward::BackendHooks;
use crate::program::{CAPACITIES, Input, Program, accepted_policies};
use crate::tamper::Tamper;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tapeloop_engine::backend::contract::{DeviceSlot, Op, Priority};
use tapeloop_engine::backend::{AllocationView, Backend, Space};
use tapeloop_engine::record::{
    Access, Buffer, DType, Image, Kernel, Recorder, StructArg, Twin, TwinLaunch,
};
use tapeloop_engine::replay::{Buckets, Build, Executor, Mode, Policy, Replay, Verify};
use tapeloop_engine::workload::Extent;
use tapeloop_engine::{ErrorKind, Result};

/// The capacity is 12. What changes from launch to launch is a clock or an order of threads on a GPU.
const TEXT: &str = r#"
extern "C" __global__ void steady(const unsigned* header, const int* x, int* y, int by)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) y[i] = x[i] + by;
}
extern "C" __global__ void flaky(const unsigned* header, const int* x, int* y, int by)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) y[i] = i == 3 || i == 5 ? (int)clock64() : x[i] + by;
}
extern "C" __global__ void flaky_beyond(const unsigned* header, const int* x, int* y, int by)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 12u) y[i] = i < header[0] ? x[i] + by : (int)clock64();
}
extern "C" __global__ void in_place(const unsigned* header, int* x /* updated */, int* y, int by)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) { x[i] += by; y[i] = x[i]; }
}
extern "C" __global__ void half(const unsigned* header, const int* x, int* y, int by)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0] && i % 2 == 0) y[i] = x[i] + by;
}
extern "C" __global__ void race(unsigned* tickets, unsigned long long* out, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = atomicAdd(tickets, 1u);
}
struct Total { int* total; };
extern "C" __global__ void running_total(Total t, const int* x, int* y)
{
    if (blockIdx.x * blockDim.x + threadIdx.x != 0) return;
    t.total[0] += x[0];
    y[0] = t.total[0];
}
"#;

const CAPACITY: u32 = 12;
const BY: i32 = 10;

pub(crate) const TWINS: [(&str, Twin); 7] = [
    ("steady", steady),
    ("flaky", flaky),
    ("flaky_beyond", flaky_beyond),
    ("in_place", in_place),
    ("half", half),
    ("race", race),
    ("running_total", running_total),
];

/// The kernel with its code and its twin, which [`TWINS`] has by its name.
fn complete(kernel: Kernel) -> Kernel {
    let (_, twin) = TWINS
        .iter()
        .find(|(name, _)| *name == kernel.name())
        .unwrap();
    // SAFETY: the kernels touch what the header counts, the twelve elements of the capacity, the first
    // `n` elements of `out` and the one ticket or total.
    unsafe { kernel.code(&Image::cuda("verify.cu", TEXT)) }.twin(*twin)
}

/// Another number at every launch.
fn tick() -> i32 {
    static TICKS: AtomicU32 = AtomicU32::new(0);
    TICKS.fetch_add(1, Relaxed) as i32
}

fn steady(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let (x, y): (&[i32], &mut [i32]) = (launch.read(), launch.write());
    let by: i32 = launch.scalar();
    (0..live).for_each(|i| y[i] = x[i] + by);
}

fn flaky(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let (x, y): (&[i32], &mut [i32]) = (launch.read(), launch.write());
    let (by, tick): (i32, i32) = (launch.scalar(), tick());
    (0..live).for_each(|i| y[i] = x[i] + by);
    (y[3], y[5]) = (1000 + tick, -1000 - tick);
}

fn flaky_beyond(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let (x, y): (&[i32], &mut [i32]) = (launch.read(), launch.write());
    let by: i32 = launch.scalar();
    (0..live).for_each(|i| y[i] = x[i] + by);
    y[live..].fill(tick());
}

/// The twin of a kernel that updates its input, so that a second run gives other results.
fn in_place(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let (x, y): (&mut [i32], &mut [i32]) = (launch.write(), launch.write());
    let by: i32 = launch.scalar();
    (0..live).for_each(|i| {
        x[i] += by;
        y[i] = x[i];
    });
}

fn half(launch: &mut TwinLaunch<'_>) {
    let live = launch.read::<u32>()[0] as usize;
    let (x, y): (&[i32], &mut [i32]) = (launch.read(), launch.write());
    let by: i32 = launch.scalar();
    (0..live).step_by(2).for_each(|i| y[i] = x[i] + by);
}

/// The twin of a kernel whose results depend on how often it has run, as those of a race would.
fn race(launch: &mut TwinLaunch<'_>) {
    let tickets: &mut [u32] = launch.write();
    let out: &mut [u64] = launch.write();
    let n: u32 = launch.scalar();
    let first = tick() as usize;
    tickets[0] += n;
    (0..n as usize).for_each(|i| out[i] = ((first + i) % n as usize) as u64);
}

fn running_total(launch: &mut TwinLaunch<'_>) {
    let [_]: [u64; 1] = launch.structure();
    let total: &mut [i32] = launch.write();
    let (x, y): (&[i32], &mut [i32]) = (launch.read(), launch.write());
    total[0] += x[0];
    y[0] = total[0];
}

fn verified(policy: Policy, verify: Verify) -> Policy {
    Policy { verify, ..policy }
}

fn every(count: u32) -> Verify {
    Verify::Every(NonZeroU32::new(count).unwrap())
}

/// Whether the first batch is compared: its graph is other work for the device than its launches.
fn compares_first(backend: &Arc<dyn Backend>, policy: &Policy) -> bool {
    policy.mode != Mode::Stream && !backend.device().shares_host_memory
}

/// A slot for one recording.
struct VerifiedSlot {
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
}

impl VerifiedSlot {
    /// A slot of `backend` with the commands of `recorder`.
    fn new(backend: &Arc<dyn Backend>, policy: &Policy, recorder: Recorder) -> Self {
        let recording = recorder.finish().unwrap();
        let slots = backend.open_slots(recording.buffers(), 1, Priority::Normal);
        let mut device_slot = slots.unwrap().remove(0);
        let buckets = Arc::new(Buckets::single(recording));
        let executor = Executor::new(backend, &mut *device_slot, &buckets, policy).unwrap();
        VerifiedSlot {
            device_slot,
            executor,
        }
    }

    /// Runs a batch of so many elements.
    fn run(&mut self, live: u32) -> Result<Replay> {
        let extent = Extent::from([live]);
        let replay = self.executor.replay(&mut *self.device_slot, 0, extent)?;
        self.device_slot.wait()?;
        Ok(replay)
    }
}

/// A slot with a kernel that reads `x` and writes `y`.
struct Kernelled {
    slot: VerifiedSlot,
    header: Buffer<u32>,
    x: Buffer<i32>,
    y: Buffer<i32>,
}

impl Kernelled {
    /// Records a launch of the kernel `name` between an upload of `x` and a download of `y`. The
    /// kernel `in_place` also declares that it writes `x`.
    fn new(backend: &Arc<dyn Backend>, policy: &Policy, name: &str) -> Self {
        let kernel = Kernel::new(name).reads::<u32>("header");
        let kernel = match name {
            "in_place" => kernel.updates::<i32>("x"),
            _ => kernel.reads::<i32>("x"),
        };
        let kernel = complete(kernel.writes::<i32>("y").scalar::<i32>("by"));
        let mut recorder = Recorder::new(&[CAPACITY]);
        let header = recorder.header();
        let x = recorder.upload_buffer::<i32>("x", 0, 1);
        let y = recorder.download_buffer::<i32>("y", 0, 1);
        recorder.upload(header);
        recorder.upload(x);
        recorder.launch(&kernel, 1, &[header.into(), x.into(), y.into(), BY.into()]);
        recorder.download(y);
        let slot = VerifiedSlot::new(backend, policy, recorder);
        Kernelled { slot, header, x, y }
    }

    /// Runs a batch of so many elements, each its place; returns what came out.
    fn run(&mut self, live: u32) -> Result<(Vec<i32>, Replay)> {
        let mut views = (self.slot.device_slot).host_mut(&[self.header.id(), self.x.id()]);
        bytemuck::cast_slice_mut::<u8, u32>(views[0])[0] = live;
        let x: &mut [i32] = bytemuck::cast_slice_mut(views[1]);
        (0..live).for_each(|i| x[i as usize] = i as i32);
        drop(views);
        let replay = self.slot.run(live)?;
        let y = bytemuck::cast_slice(self.slot.device_slot.host(self.y.id()));
        Ok((y[..live as usize].to_vec(), replay))
    }

    /// Runs a batch that must fail with a mismatch that names `parts`.
    fn fails(&mut self, parts: &[&str]) {
        let error = self.run(6).unwrap_err();
        assert_refused(&error, ErrorKind::Mismatch, parts);
    }
}

fn expected(live: u32) -> Vec<i32> {
    (0..live as i32).map(|i| i + BY).collect()
}

/// The error has the bucket, the buffer, the first element that differs and how many do.
pub fn results_that_change_from_run_to_run_are_caught_by_the_first_batch_that_is_compared(
    backend: &Arc<dyn Backend>,
) {
    let place = ["bucket 0", "buffer y", "element 3", "2 of 6 elements"];
    for policy in accepted_policies(backend) {
        let compares_first = compares_first(backend, &policy);
        let first = verified(policy, Verify::First);
        let mut slot = Kernelled::new(backend, &first, "flaky");
        if compares_first {
            slot.fails(&place)
        } else {
            assert_eq!(slot.run(6).unwrap().1.verified, 0)
        }
        let mut slot = Kernelled::new(backend, &verified(policy, every(3)), "flaky");
        if !compares_first {
            slot.run(6).unwrap();
            slot.run(6).unwrap();
        }
        slot.fails(&place);
    }
}

/// Threads that take numbers take them in another order sooner or later.
pub fn results_that_depend_on_the_order_of_threads_are_caught(backend: &Arc<dyn Backend>) {
    const LEN: u32 = 10_000;
    for &build in Build::ALL {
        let policy = Policy {
            build,
            ..verified(Policy::default(), every(1))
        };
        let mut recorder = Recorder::new(&[LEN]);
        let out = recorder.download_buffer::<u64>("out", 0, 1);
        let tickets = recorder.batch_buffer::<u32>("tickets", 1);
        let kernel = Kernel::new("race").updates::<u32>("tickets");
        let kernel = complete(kernel.writes::<u64>("out").scalar::<u32>("n"));
        recorder.memset(tickets, 0);
        let args = [tickets.into(), out.into(), LEN.into()];
        recorder.launch(&kernel, LEN.div_ceil(128), &args);
        recorder.download(out);
        let mut slot = VerifiedSlot::new(backend, &policy, recorder);
        // Two orders may be the same; those of all hundred batches are not.
        let error = (0..100).find_map(|_| slot.run(LEN).err());
        let place = ["bucket 0", "buffer out"];
        assert_refused(&error.expect("one differs"), ErrorKind::Mismatch, &place);
    }
}

/// A device whose graphs add another number than they hold.
pub fn a_graph_that_does_something_else_than_it_holds_is_caught(backend: &Arc<dyn Backend>) {
    for &build in Build::ALL {
        let tamper = Arc::new(Tamper::default());
        let tampered = Arc::clone(&tamper).around(Arc::clone(backend));
        tamper.run(|ops| {
            let launch = ops.iter_mut().find_map(|op| match op {
                Op::Launch { args, .. } => Some(args),
                _ => None,
            });
            launch.unwrap()[3] = 11;
        });
        let policy = Policy {
            build,
            ..Policy::default()
        };
        let compared = verified(policy, every(1));
        let mut slot = Kernelled::new(&tampered, &compared, "steady");
        slot.fails(&["buffer y", "element 0", "10", "11", "6 of 6 elements"]);
        // Without verification it goes unseen.
        let policy = verified(policy, Verify::Off);
        let mut slot = Kernelled::new(&tampered, &policy, "steady");
        assert_eq!(slot.run(6).unwrap().0[0], 11);
    }
}

/// Elements that no item has are not compared.
pub fn elements_beyond_the_batch_may_differ(backend: &Arc<dyn Backend>) {
    for policy in accepted_policies(backend) {
        let policy = verified(policy, every(1));
        let mut slot = Kernelled::new(backend, &policy, "flaky_beyond");
        for live in [6, 1, CAPACITY, 5] {
            let (y, replay) = slot.run(live).unwrap();
            assert_eq!((y, replay.verified), (expected(live), 1), "{policy:?}");
        }
    }
}

/// The second run of a batch has the inputs of the first, where a kernel changes them.
pub fn inputs_that_kernels_change_are_restored(backend: &Arc<dyn Backend>) {
    for policy in accepted_policies(backend) {
        let policy = verified(policy, every(1));
        let mut slot = Kernelled::new(backend, &policy, "in_place");
        for live in [6, CAPACITY] {
            let (y, replay) = slot.run(live).unwrap();
            assert_eq!((y, replay.verified), (expected(live), 1), "{policy:?}");
        }
    }
}

/// What such a batch changes is on the device alone, and cannot be restored.
pub fn a_batch_that_changes_an_input_uploaded_in_part_runs_once(backend: &Arc<dyn Backend>) {
    for policy in accepted_policies(backend) {
        let policy = verified(policy, every(1));
        let mut kernelled = Kernelled::new(backend, &policy, "in_place");
        kernelled.run(6).unwrap();
        let VerifiedSlot {
            device_slot,
            executor,
        } = &mut kernelled.slot;
        let mut bindings = executor.bindings(&mut **device_slot, 0).unwrap().clone();
        bindings.set_copy_len(kernelled.x, 3).unwrap();
        executor.update(&mut **device_slot, 0, bindings).unwrap();
        let (y, replay) = kernelled.run(6).unwrap();
        assert_eq!(replay.verified, 0, "{policy:?}");
        // The rest of the device's side is as the batch before left it, which has added 10 there. Memory that
        // the host shares was written anew.
        let rest = if backend.device().shares_host_memory {
            [13, 14, 15]
        } else {
            [23, 24, 25]
        };
        assert_eq!((&y[..3], &y[3..]), (&expected(3)[..], &rest[..]));
    }
}

/// Elements that a batch does not write are the same in both of its runs.
pub fn leftovers_of_an_earlier_batch_are_no_difference(backend: &Arc<dyn Backend>) {
    for policy in accepted_policies(backend) {
        let policy = verified(policy, every(2));
        let mut slot = Kernelled::new(backend, &policy, "half");
        for batch in 1..=4 {
            let (_, replay) = slot.run(6).unwrap();
            let is_first = batch == 1 && compares_first(backend, &policy);
            let runs_twice = is_first || batch % 2 == 0;
            assert_eq!(replay.verified, usize::from(runs_twice), "{policy:?}");
        }
    }
}

/// Memory of the embedder's is not restored, so such a batch is never compared. A supervised device
/// refuses work that writes it.
pub fn kernels_that_write_declared_memory_run_once(backend: &Arc<dyn Backend>) {
    if backend.is_supervised() {
        return;
    }
    let allocation = backend.allocate(Space::Device, 4).unwrap();
    backend.write(&[0; 4], &allocation, 0).unwrap();
    let pointer = [(0, Access::ReadWrite, DType::I32)];
    let kernel = Kernel::new("running_total").structure("total", 8, &pointer);
    let kernel = complete(kernel.reads::<i32>("x").writes::<i32>("y"));
    let mut recorder = Recorder::new(&[1]);
    let x = recorder.upload_buffer::<i32>("x", 0, 1);
    let y = recorder.download_buffer::<i32>("y", 0, 1);
    recorder.upload(x);
    // SAFETY: the kernel touches the one element of the allocation.
    let total = unsafe { StructArg::new(&[0; 8]).address(allocation.address()) };
    recorder.launch(&kernel, 1, &[total.into(), x.into(), y.into()]);
    recorder.download(y);
    let policy = Policy {
        warm_up: false,
        ..verified(Policy::default(), every(1))
    };
    let mut slot = VerifiedSlot::new(backend, &policy, recorder);
    let view = AllocationView::new(&allocation, 0, 4).unwrap();
    slot.executor.declare(&mut *slot.device_slot, view).unwrap();
    for batch in 1..=3_i32 {
        slot.device_slot.host_mut(&[x.id()])[0].copy_from_slice(&5_i32.to_le_bytes());
        assert_eq!(slot.run(1).unwrap().verified, 0);
        assert_eq!(slot.device_slot.host(y.id()), (5 * batch).to_le_bytes());
    }
}

/// With [`Verify::First`] later batches make the calls of batches without verification, and none of
/// them is waited for.
pub fn the_first_batch_of_each_bucket_runs_twice_and_later_ones_cost_nothing(
    backend: &Arc<dyn Backend>,
) {
    let program = Program::new();
    for policy in accepted_policies(backend) {
        let batches = |verify| {
            let (mut device_slot, mut executor) = program.slot(backend, &verified(policy, verify));
            let mut batches = Vec::new();
            for (seed, bucket) in [0, 1, 0, 1].into_iter().enumerate() {
                let input = Input::from_seed(seed as u64, CAPACITIES[bucket]);
                program.fill(&mut *device_slot, &input);
                let before = backend.driver_calls();
                let replay = executor.replay(&mut *device_slot, bucket, input.extent());
                let after = backend.driver_calls();
                device_slot.wait().unwrap();
                assert!(program.is_right(&*device_slot, &input), "{policy:?}");
                let replay = replay.unwrap();
                let (mut given, mut polls) = (replay.calls, 0);
                // A loop is launched at other times than batches.
                if policy.mode != Mode::Resident {
                    given = (after.submissions - before.submissions) as usize;
                }
                // A device in another process is asked there, at any time.
                if policy.mode != Mode::Resident && !backend.is_supervised() {
                    polls = after.polls - before.polls;
                }
                batches.push((replay.verified, replay.calls, given, polls));
            }
            batches
        };
        let (plain, first) = (batches(Verify::Off), batches(Verify::First));
        assert!(plain.iter().all(|batch| (batch.0, batch.3) == (0, 0)));
        let twice = usize::from(compares_first(backend, &policy));
        let compared: Vec<usize> = first.iter().map(|batch| batch.0).collect();
        assert_eq!(compared, [twice, twice, 0, 0], "{policy:?}");
        assert_eq!(first[2..], plain[2..], "{policy:?}");
        for (_, calls, given, _) in plain.iter().chain(&first) {
            assert_eq!(calls, given, "all calls are counted: {policy:?}");
        }
    }
}
