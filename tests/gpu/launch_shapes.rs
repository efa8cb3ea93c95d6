//! Launches whose block size the device chooses cover every element exactly once, and nothing else.
//! Counting kernels check it on the CPU, on the simulated device and on the GPU.

use crate::random::Random;
use std::sync::Arc;
use tapeloop::backend::Backend;
use tapeloop::backend::contract::{DeviceSlot, Op, Priority};
use tapeloop::backend::cpu::CpuBackend;
use tapeloop::record::{Buffer, Cover, Image, Kernel, Recorder, Recording, TwinLaunch};
use tapeloop::replay::{Bindings, Buckets, Executor, Mode, Policy, lower};
use tapeloop::{ErrorKind, Result};
use tapeloop_sim::{SimBackend, SimOptions};

const TEXT: &str = r#"
typedef unsigned long long Index;
__device__ Index first() { return (Index)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ void count(unsigned* counts, unsigned* ran, Index i)
{
    atomicAdd(&counts[i], 1u);
    atomicAdd(&ran[0], 1u);
}
__device__ void tell(unsigned* ran)
{
    if (first() == 0) { ran[1] = gridDim.x; ran[2] = blockDim.x; }
}
extern "C" __global__ void count_once(unsigned* counts, unsigned* ran, unsigned n)
{
    tell(ran);
    if (first() < n) count(counts, ran, first());
}
extern "C" __global__ void count_strided(unsigned* counts, unsigned* ran, unsigned n)
{
    tell(ran);
    for (Index i = first(); i < n; i += (Index)gridDim.x * blockDim.x) count(counts, ran, i);
}
extern "C" __global__ void __launch_bounds__(64)
count_in_small_blocks(unsigned* counts, unsigned* ran, unsigned n)
{
    tell(ran);
    if (first() < n) count(counts, ran, first());
}
extern "C" __global__ void through_shared(float* out, unsigned n, unsigned words)
{
    extern __shared__ float values[];
    values[words - 1 - threadIdx.x] = (float)first();
    __syncthreads();
    if (first() < n) out[first()] = 2.0f * values[words - 1 - threadIdx.x];
}
"#;

/// Threads of a block where the device does not choose their number.
const BLOCK: u32 = 48;
/// Elements behind the counted ones, which no thread may touch.
const GUARD: u32 = 64;

fn kernel(name: &str) -> Kernel {
    let kernel = Kernel::new(name).block(BLOCK);
    let kernel = kernel.updates::<u32>("counts").updates::<u32>("ran");
    with_code(kernel.scalar::<u32>("n"))
}

fn with_code(kernel: Kernel) -> Kernel {
    // SAFETY: each kernel of the text touches the first `n` elements of its buffers, and
    // is recorded with buffers of at least as many.
    unsafe { kernel.code(&Image::cuda("launch_shapes.cu", TEXT)) }
}

/// The twin: does what all threads of the kernel do.
fn count(launch: &mut TwinLaunch<'_>, strided: bool) {
    let blocks = launch.grid[0];
    let counts = launch.write::<u32>();
    let ran = launch.write::<u32>();
    let n = launch.scalar::<u32>() as usize;
    (ran[1], ran[2]) = (blocks, BLOCK);
    let threads = (blocks * BLOCK) as usize;
    for thread in 0..threads {
        let end = if strided { n } else { n.min(thread + 1) };
        for element in (thread..end).step_by(threads) {
            counts[element] += 1;
            ran[0] += 1;
        }
    }
}

fn counting(cover: Cover) -> Kernel {
    match cover {
        Cover::Once => kernel("count_once").twin(|launch| count(launch, false)),
        Cover::Strided => kernel("count_strided").twin(|launch| count(launch, true)),
    }
}

/// A launch of a counting kernel over so many elements.
struct Counting {
    recording: Recording,
    counts: Buffer<u32>,
    ran: Buffer<u32>,
}

fn record(kernel: &Kernel, elements: u32, cover: Cover) -> Counting {
    let mut recorder = Recorder::new(&[elements + GUARD, 3]);
    let counts = recorder.download_buffer::<u32>("counts", 0, 1);
    let ran = recorder.download_buffer::<u32>("ran", 1, 1);
    recorder.memset(counts, 0);
    recorder.memset(ran, 0);
    let args = [counts.into(), ran.into(), elements.into()];
    recorder.launch_over(kernel, elements.into(), cover, &args);
    recorder.download(counts);
    recorder.download(ran);
    Counting {
        recording: recorder.finish().unwrap(),
        counts,
        ran,
    }
}

fn one_slot(backend: &Arc<dyn Backend>, recording: &Recording) -> Box<dyn DeviceSlot> {
    let buffers = recording.buffers();
    let mut device_slots = backend.open_slots(buffers, 1, Priority::Normal).unwrap();
    device_slots.remove(0)
}

fn executor(
    backend: &Arc<dyn Backend>,
    recording: &Recording,
    device_slot: &mut dyn DeviceSlot,
    mode: Mode,
) -> Result<Executor> {
    let buckets = Arc::new(Buckets::single(recording.clone()));
    Executor::new(backend, device_slot, &buckets, &Policy::new(mode))
}

/// Blocks and threads of the one launch.
fn shape_of(bindings: &Bindings) -> (u32, u32) {
    let mut shapes = lower(bindings).into_iter().filter_map(|lowered| {
        let Op::Launch { grid, block, .. } = *lowered.op() else {
            return None;
        };
        assert_eq!([grid[1], grid[2], block[1], block[2]], [1; 4]);
        Some((grid[0], block[0]))
    });
    shapes.next().unwrap()
}

/// Runs it and checks every count. Returns blocks and threads.
fn check(backend: &Arc<dyn Backend>, kernel: &Kernel, elements: u32, cover: Cover) -> (u32, u32) {
    let counting = record(kernel, elements, cover);
    let mut device_slot = one_slot(backend, &counting.recording);
    let mut shapes = [Mode::Stream, Mode::Graph].map(|mode| {
        let mut executor = executor(backend, &counting.recording, &mut *device_slot, mode).unwrap();
        let largest = executor.buckets().largest().capacity;
        executor.replay(&mut *device_slot, 0, largest).unwrap();
        device_slot.wait().unwrap();
        let place = format!("{} over {elements}, {cover:?}, {mode:?}", kernel.name());
        let counts: &[u32] = bytemuck::cast_slice(device_slot.host(counting.counts.id()));
        let (units, guard) = counts.split_at(elements as usize);
        assert!(units.iter().all(|&count| count == 1), "{place}");
        assert!(guard.iter().all(|&count| count == 0), "{place}");
        let ran: &[u32] = bytemuck::cast_slice(device_slot.host(counting.ran.id()));
        assert_eq!(ran[0], elements, "{place}");
        // The launch had the shape that the bindings report.
        let ran = (ran[1], ran[2]);
        let bindings = executor.bindings(&mut *device_slot, 0).unwrap();
        assert_eq!(shape_of(bindings), ran, "{place}");
        ran
    });
    shapes.sort_unstable();
    assert_eq!(shapes[0], shapes[1]);
    let (blocks, threads) = shapes[0];
    let needed = elements.div_ceil(threads).max(1);
    match cover {
        Cover::Once => assert_eq!(blocks, needed),
        Cover::Strided => assert!(blocks <= needed),
    }
    shapes[0]
}

const COVERS: [Cover; 2] = [Cover::Once, Cover::Strided];

/// Few, and around the sizes of blocks and of all blocks that run at once, which
/// `shape` has; and at random.
fn sizes(shape: (u32, u32), random: &mut Random, count: usize, below: usize) -> Vec<u32> {
    let at_once = shape.0 * shape.1;
    let edges = [
        31,
        32,
        33,
        BLOCK,
        shape.1,
        2 * shape.1,
        at_once,
        2 * at_once,
    ];
    let around = edges
        .into_iter()
        .flat_map(|edge| [edge - 1, edge, edge + 1]);
    let random = (0..count).map(|_| random.below(below) as u32);
    [0, 1, 2].into_iter().chain(around).chain(random).collect()
}

fn check_all(backend: &Arc<dyn Backend>, count: usize, below: usize) -> (u32, u32) {
    let fullest = check(backend, &counting(Cover::Strided), 1 << 20, Cover::Strided);
    let mut random = Random::new(7);
    for elements in sizes(fullest, &mut random, count, below) {
        for cover in COVERS {
            check(backend, &counting(cover), elements, cover);
        }
    }
    fullest
}

#[test]
fn twins_count_every_element_once_on_the_cpu_and_the_simulated_device() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
    let cpu: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::new(pool.unwrap())));
    assert_eq!(check_all(&cpu, 20, 50_000), (2, BLOCK));
    let device = Arc::new(SimBackend::new(SimOptions::seeded(3)));
    let sim: Arc<dyn Backend> = device.clone();
    assert_eq!(check_all(&sim, 20, 50_000), (4, BLOCK));
    assert_eq!(device.violations(), []);
}

#[test]
fn more_elements_than_a_launch_covers_are_refused_by_the_kernel_s_name() {
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
    for (cover, refused) in [(Cover::Once, true), (Cover::Strided, false)] {
        let mut recorder = Recorder::new(&[3]);
        let counts = recorder.download_buffer::<u32>("counts", 0, 1);
        let ran = recorder.download_buffer::<u32>("ran", 0, 1);
        recorder.memset(counts, 0);
        recorder.memset(ran, 0);
        let args = [counts.into(), ran.into(), 0_u32.into()];
        recorder.launch_over(&counting(cover), u64::MAX, cover, &args);
        recorder.download(counts);
        recorder.download(ran);
        let recording = recorder.finish().unwrap();
        let mut device_slot = one_slot(&backend, &recording);
        let made = executor(&backend, &recording, &mut *device_slot, Mode::Graph);
        assert_eq!(made.is_err(), refused);
        let Some(error) = made.err() else { continue };
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("kernel count_once"), "{error}");
        assert!(error.to_string().contains("Cover::Strided"), "{error}");
    }
}

#[test]
fn a_grid_set_later_keeps_the_block_that_was_chosen() {
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
    let counting = record(&counting(Cover::Once), 1_000, Cover::Once);
    let mut device_slot = one_slot(&backend, &counting.recording);
    let made = executor(
        &backend,
        &counting.recording,
        &mut *device_slot,
        Mode::Graph,
    );
    let mut executor = made.unwrap();
    let mut bindings = executor.bindings(&mut *device_slot, 0).unwrap().clone();
    let chosen = 1_000_u32.div_ceil(BLOCK);
    assert_eq!(shape_of(&bindings), (chosen, BLOCK));
    let larger = bindings.set_grid(0, [chosen + 1, 1, 1]).unwrap_err();
    assert_eq!(larger.kind(), ErrorKind::Usage);
    bindings.set_grid(0, [7, 1, 1]).unwrap();
    assert_eq!(shape_of(&bindings), (7, BLOCK));
    executor.update(&mut *device_slot, 0, bindings).unwrap();
    let largest = executor.buckets().largest().capacity;
    executor.replay(&mut *device_slot, 0, largest).unwrap();
    device_slot.wait().unwrap();
    let ran: &[u32] = bytemuck::cast_slice(device_slot.host(counting.ran.id()));
    assert_eq!(ran, [7 * BLOCK, 7, BLOCK]);
}

#[cfg(feature = "cuda")]
mod on_the_gpu {
    use super::*;
    use crate::gpu::{device, say};
    use tapeloop::backend::devices;

    #[test]
    #[ignore = "needs a CUDA device"]
    fn kernels_count_every_element_once_at_random_and_large_sizes() {
        let backend = device();
        let (blocks, threads) = check_all(&backend, 200, 3_000_000);
        say(&format!("{blocks} blocks of {threads} threads run at once"));
        let multiprocessors = backend.device().multiprocessors;
        assert!(blocks >= multiprocessors && threads >= 32);
        for cover in COVERS {
            check(&backend, &counting(cover), (1 << 25) + 7, cover);
        }
    }

    #[test]
    #[ignore = "needs a CUDA device"]
    fn the_block_is_one_that_the_code_allows() {
        let backend = device();
        for elements in [0, 1, 63, 64, 65, 100_000] {
            let kernel = kernel("count_in_small_blocks");
            let (_, threads) = check(&backend, &kernel, elements, Cover::Once);
            assert!((32..=64).contains(&threads), "{threads}");
        }
    }

    fn through_shared(shared_bytes: u32, elements: u32) -> (Recording, Buffer<f32>) {
        let kernel = Kernel::new("through_shared").block(32);
        let kernel = kernel.writes::<f32>("out").scalar::<u32>("n");
        let kernel = kernel.scalar::<u32>("words").shared_bytes(shared_bytes);
        let kernel = with_code(kernel);
        let mut recorder = Recorder::new(&[elements]);
        let out = recorder.download_buffer::<f32>("out", 0, 1);
        let words = shared_bytes / size_of::<f32>() as u32;
        let args = [out.into(), elements.into(), words.into()];
        recorder.launch_over(&kernel, elements.into(), Cover::Once, &args);
        recorder.download(out);
        (recorder.finish().unwrap(), out)
    }

    #[test]
    #[ignore = "needs a CUDA device"]
    fn all_the_shared_memory_of_the_card_is_opted_in_to_and_more_is_refused() {
        const N: u32 = 100_003;
        let backend = device();
        let most = devices().unwrap().unwrap()[0].block_shared_bytes_max;
        let (recording, out) = through_shared(most, N);
        for mode in [Mode::Stream, Mode::Graph] {
            let mut device_slot = one_slot(&backend, &recording);
            let mut executor = executor(&backend, &recording, &mut *device_slot, mode).unwrap();
            let largest = executor.buckets().largest().capacity;
            executor.replay(&mut *device_slot, 0, largest).unwrap();
            device_slot.wait().unwrap();
            let values: &[f32] = bytemuck::cast_slice(device_slot.host(out.id()));
            assert!(values.iter().enumerate().all(|(i, &v)| v == 2.0 * i as f32));
        }
        let (recording, _) = through_shared(most + 1024, N);
        let mut device_slot = one_slot(&backend, &recording);
        let made = executor(&backend, &recording, &mut *device_slot, Mode::Graph);
        let error = made.err().unwrap();
        say(&format!("too much shared memory: {error}"));
        assert_eq!(error.kind(), ErrorKind::Kernel);
        let text = error.to_string();
        assert!(text.contains("through_shared"), "{text}");
        assert!(text.contains(&format!("{} bytes", most + 1024)), "{text}");
        assert!(text.contains(&format!("at most {most} bytes")), "{text}");
    }
}
