//! Kernels whose thread blocks exchange data and wait for each other, and kernels with a priority.

use super::target::Target;
#[cfg(feature = "cuda")]
use super::target::card;
use std::collections::VecDeque;
use std::sync::Arc;
use tapeloop_conformance::program::policies;
use tapeloop_engine::ErrorKind;
use tapeloop_engine::pipeline::{Ring, Wait};
use tapeloop_engine::record::{Buffer, Cover, Image, Kernel, Recorder, Recording, TwinLaunch};
use tapeloop_engine::replay::{Buckets, Mode, Policy};
#[cfg(feature = "cuda")]
use tapeloop_engine::replay::{Build, Verify};
use tapeloop_engine::workload::Extent;

/// So many that the blocks of a launch over them fill a device.
const LEN: u32 = 1 << 19;
const BLOCK: u32 = 32;
const SLOTS: usize = 3;

const TEXT: &str = r#"
// Each pair of blocks exchanges its numbers through shared memory.
extern "C" __global__ void exchange(const unsigned* x, unsigned* y)
{
    __shared__ unsigned own[32];
    const unsigned i = blockIdx.x * 32 + threadIdx.x;
    own[threadIdx.x] = x[i];
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    unsigned address = __cvta_generic_to_shared(&own[threadIdx.x]), value;
    asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(blockIdx.x % 2 ^ 1));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    y[i] = value;
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

// Adds the sum of all numbers to each. A cooperative launch has a workspace, whose address is in
// these registers. `sync` is two zeros: the sum, and how many blocks have added to it.
extern "C" __global__ void add_sum(const unsigned* x, unsigned* y, unsigned* /* updated */ sync,
                                   unsigned len)
{
    unsigned low, high, sum = 0;
    asm("mov.u32 %0, %%envreg2;" : "=r"(low));
    asm("mov.u32 %0, %%envreg1;" : "=r"(high));
    if (!(low | high)) return;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < len; i += gridDim.x * blockDim.x)
        sum += x[i];
    atomicAdd(&sync[0], sum);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&sync[1], 1);
        while (atomicAdd(&sync[1], 0) < gridDim.x) {}
    }
    __syncthreads();
    sum = atomicAdd(&sync[0], 0);
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < len; i += gridDim.x * blockDim.x)
        y[i] = x[i] + sum;
}
"#;

fn exchange(launch: &mut TwinLaunch<'_>) {
    let (x, y): (&[u32], &mut [u32]) = (launch.read(), launch.write());
    for (i, y) in y.iter_mut().enumerate() {
        *y = x[i ^ BLOCK as usize];
    }
}

fn add_sum(launch: &mut TwinLaunch<'_>) {
    let (x, y): (&[u32], &mut [u32]) = (launch.read(), launch.write());
    let sum = x.iter().fold(0, |sum: u32, x| sum.wrapping_add(*x));
    for (y, x) in y.iter_mut().zip(x) {
        *y = x.wrapping_add(sum);
    }
}

fn record(is_urgent: bool) -> (Recording, [Buffer<u32>; 2]) {
    let image = Image::cuda("attributes.cu", TEXT);
    let declared = |name| Kernel::declared_in(TEXT, name).unwrap();
    let mut exchange = declared("exchange").block(BLOCK).cluster([2, 1, 1]);
    if is_urgent {
        exchange = exchange.urgent();
    }
    let add_sum = declared("add_sum").cooperative();
    // SAFETY: both touch the numbers below the length of all buffers, for which the grid of `exchange`
    // has a thread each; `sync` has two numbers.
    let [exchange, add_sum] = unsafe { [exchange.code(&image), add_sum.code(&image)] };
    let (exchange, add_sum) = (exchange.twin(self::exchange), add_sum.twin(self::add_sum));
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.upload_buffer::<u32>("x", 0, 1);
    let z = recorder.download_buffer::<u32>("z", 0, 1);
    let y = recorder.batch_buffer::<u32>("y", LEN as usize);
    let sync = recorder.batch_buffer::<u32>("sync", 2);
    recorder.upload(x);
    recorder.memset(sync, 0);
    recorder.launch(&exchange, LEN / BLOCK, &[x.into(), y.into()]);
    let args = [y.into(), z.into(), sync.into(), LEN.into()];
    recorder.launch_over(&add_sum, LEN.into(), Cover::Strided, &args);
    recorder.download(z);
    (recorder.finish().unwrap(), [x, z])
}

type Made = tapeloop_engine::Result<(Ring<u32>, [Buffer<u32>; 2])>;

fn ring(target: &Target, is_urgent: bool, policy: &Policy) -> Made {
    let (recording, buffers) = record(is_urgent);
    let buckets = Arc::new(Buckets::single(recording));
    let ring = Ring::new(&target.backend, &buckets, SLOTS, policy, Wait::Spin)?;
    Ok((ring, buffers))
}

fn number(batch: u32, i: u32) -> u32 {
    (i + batch).wrapping_mul(0x9e37_79b9)
}

fn expected(batch: u32) -> Vec<u32> {
    let sum = (0..LEN).fold(0, |sum: u32, i| sum.wrapping_add(number(batch, i)));
    let exchanged = (0..LEN).map(|i| number(batch, i ^ BLOCK));
    exchanged.map(|number| number.wrapping_add(sum)).collect()
}

pub(crate) fn blocks_exchange_numbers_and_wait_for_each_other(target: &Target) {
    let all: Vec<Vec<u32>> = (0..2 * SLOTS as u32).map(expected).collect();
    let is_card = target.backend.device().backend == "cuda";
    let is_supervised = target.backend.is_supervised();
    let policies = policies();
    let count = target.rounds.min(policies.len());
    // From the whole list, as neighbours differ little.
    for policy in policies.iter().step_by(policies.len() / count) {
        for is_urgent in [false, true] {
            let made = ring(target, is_urgent, policy);
            if is_card && policy.mode == Mode::Resident && (is_urgent || is_supervised) {
                let Err(error) = made else {
                    panic!("a loop has no priorities, and a worker process no loops")
                };
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                let reason = if is_supervised {
                    "in a worker process has no loops"
                } else {
                    "is declared urgent"
                };
                assert!(error.to_string().contains(reason), "{error}");
                continue;
            }
            let (mut ring, [x, z]) = made.unwrap();
            let mut batches: VecDeque<u32> = (0..all.len() as u32).collect();
            let mut done = 0;
            while done < all.len() {
                while let Some(batch) = batches.front()
                    && let Some(mut slot) = ring.acquire()
                {
                    let numbers = slot.write(x).iter_mut().zip(0..);
                    numbers.for_each(|(place, i)| *place = number(*batch, i));
                    let submitted = ring.submit(slot, Extent::from([LEN]), *batch);
                    submitted.map_err(|failed| failed.error).unwrap();
                    batches.pop_front();
                }
                let slot = ring.wait().unwrap();
                {
                    let slot = slot.as_ref().map_err(|failed| &failed.error).unwrap();
                    let found = &slot.read(z)[..LEN as usize];
                    assert!(found == all[*slot.batch() as usize], "{policy:?}");
                }
                assert!(ring.release(slot).1.is_none());
                done += 1;
            }
        }
    }
}

#[cfg(feature = "cuda")]
const TIMES: &str = r#"
__device__ unsigned long long now()
{
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

// Takes 20 us a block. Leaves the time at which the last block started.
extern "C" __global__ void fill(unsigned long long* /* updated */ last)
{
    const unsigned long long start = now();
    if (threadIdx.x == 0) atomicMax(last, start);
    while (now() - start < 20000) {}
}

extern "C" __global__ void start(unsigned long long* time) { *time = now(); }
"#;

/// When `start` started, and the last block of `fill`, which is given to the device first, in a graph
/// where they are independent.
#[cfg(feature = "cuda")]
fn start_times(target: &Target, is_urgent: bool) -> [u64; 2] {
    let image = Image::cuda("times.cu", TIMES);
    let declared = |name| Kernel::declared_in(TIMES, name).unwrap();
    let mut start = declared("start").block(1);
    if is_urgent {
        start = start.urgent();
    }
    // SAFETY: both access one number of a buffer of one.
    let [fill, start] = unsafe {
        [
            declared("fill").block(1024).code(&image),
            start.code(&image),
        ]
    };
    let mut recorder = Recorder::new(&[1]);
    let buffers = ["last", "time"].map(|name| recorder.download_buffer::<u64>(name, 0, 1));
    let [last, time] = buffers;
    recorder.memset(last, 0);
    // Some 100 blocks for each that a device runs at once.
    let blocks = 200 * target.backend.device().multiprocessors;
    recorder.launch(&fill, blocks, &[last.into()]);
    recorder.launch(&start, 1, &[time.into()]);
    for buffer in buffers {
        recorder.download(buffer);
    }
    let policy = Policy {
        mode: Mode::Graph,
        build: Build::Explicit,
        verify: Verify::Off,
        ..Policy::default()
    };
    let buckets = Arc::new(Buckets::single(recorder.finish().unwrap()));
    let mut ring = Ring::<()>::new(&target.backend, &buckets, 1, &policy, Wait::Spin).unwrap();
    let slot = ring.acquire().unwrap();
    let submitted = ring.submit(slot, Extent::from([1]), ());
    submitted.map_err(|failed| failed.error).unwrap();
    let done = ring.wait().unwrap();
    let times = {
        let slot = done.as_ref().map_err(|failed| &failed.error).unwrap();
        [slot.read(time)[0], slot.read(last)[0]]
    };
    assert!(ring.release(done).1.is_none());
    times
}

#[cfg(feature = "cuda")]
#[test]
#[ignore = "needs a CUDA device"]
fn an_urgent_kernel_starts_before_the_blocks_that_wait() {
    let target = card();
    for is_urgent in [false, true] {
        let [start, last] = start_times(&target, is_urgent);
        let early = last as i64 - start as i64;
        println!("urgent: {is_urgent}; {early} ns before the last block of the other kernel");
        assert!(!is_urgent || early > 500_000, "{early} ns");
    }
    target.finish();
}

#[cfg(feature = "cuda")]
#[test]
#[ignore = "needs a CUDA device"]
fn a_cooperative_launch_of_too_many_blocks_is_refused() {
    let target = card();
    let image = Image::cuda("attributes.cu", TEXT);
    let kernel = Kernel::declared_in(TEXT, "add_sum").unwrap().cooperative();
    // SAFETY: it touches the numbers below the length of all buffers; `sync` has two.
    let kernel = unsafe { kernel.code(&image) };
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.upload_buffer::<u32>("x", 0, 1);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    let sync = recorder.batch_buffer::<u32>("sync", 2);
    recorder.upload(x);
    recorder.memset(sync, 0);
    recorder.launch(
        &kernel,
        1 << 20,
        &[x.into(), y.into(), sync.into(), LEN.into()],
    );
    recorder.download(y);
    let buckets = Arc::new(Buckets::single(recorder.finish().unwrap()));
    for (mode, build) in [
        (Mode::Stream, Build::Capture),
        (Mode::Graph, Build::Capture),
        (Mode::Graph, Build::Explicit),
    ] {
        let policy = Policy {
            mode,
            build,
            ..Policy::default()
        };
        let made = Ring::<()>::new(&target.backend, &buckets, 1, &policy, Wait::Spin);
        let refused = made.map(|mut ring| {
            let slot = ring.acquire().unwrap();
            let submitted = ring.submit(slot, Extent::from([LEN]), ());
            submitted.expect_err("the grid is too large").error
        });
        let error = refused.unwrap_or_else(|error| error);
        println!("{mode:?}, {build:?}: {error}");
        assert!(
            error.to_string().contains("more blocks than fit"),
            "{error}"
        );
    }
    target.finish();
}
