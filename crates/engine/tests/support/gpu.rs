//! A device for tests, and a small recording to run on it.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::io::Write;
use std::sync::Arc;
use tapeloop_engine::backend::contract::{DeviceSlot, Priority};
use tapeloop_engine::backend::cuda::CudaBackend;
use tapeloop_engine::backend::{Backend, CudaOptions};
use tapeloop_engine::record::{Buffer, CudaSource, Image, Kernel, Recorder, Recording};
use tapeloop_engine::replay::{Buckets, Executor, Mode, Policy, Replay, Verify};

pub(crate) const LEN: usize = 10_000;
pub(crate) const MODES: [Mode; 2] = [Mode::Stream, Mode::Graph];

/// `out = a x + base`, where every byte of `base` was set to 1.
pub(crate) const SAXPY: &str = r#"
#include "index.cuh"
extern "C" __global__ void saxpy(const float* x, const int* base, float* out, float a, unsigned n)
{
    const unsigned i = global_index();
    if (i < n) out[i] = a * x[i] + (float)base[i];
}
extern "C" __global__ void shared_reverse(const float* x, float* out, unsigned n)
{
    extern __shared__ float values[];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) values[i] = x[i];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) out[i] = values[n - 1 - i];
}
extern "C" __global__ void slow(float* out, unsigned n)
{
    const unsigned i = global_index();
    float value = 1.0f;
    for (int k = 0; k < 2000000; ++k) value = value * 0.999f + 0.5f;
    if (i < n) out[i] = value;
}
extern "C" __global__ void stray(float* out) { *(volatile float*)8 = 1.0f; }
"#;

const INDEX: &str = "
__device__ inline unsigned global_index() { return blockIdx.x * blockDim.x + threadIdx.x; }
";

pub(crate) fn say(line: &str) {
    // Past the test harness, which keeps what passing tests print to itself.
    std::io::stderr()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// The device.
///
/// # Panics
/// With the reason, where there is none: tests that need one are ignored by default.
pub(crate) fn device_with(options: &CudaOptions) -> Arc<dyn Backend> {
    Arc::new(cuda(options))
}

pub(crate) fn device() -> Arc<dyn Backend> {
    device_with(&CudaOptions::default())
}

/// The device by its own type.
pub(crate) fn cuda(options: &CudaOptions) -> CudaBackend {
    let found = CudaBackend::find(options).unwrap();
    found.unwrap_or_else(|reason| panic!("this test needs a CUDA device: {reason}"))
}

pub(crate) fn source_image(text: &str) -> Arc<Image> {
    Arc::new(Image {
        name: "test kernels".to_owned(),
        binary: None,
        source: Some(CudaSource {
            file: "saxpy.cu".to_owned(),
            text: text.to_owned(),
            headers: vec![("index.cuh".to_owned(), INDEX.to_owned())],
            options: vec!["--fmad=false".to_owned()],
        }),
    })
}

/// Attaches one of the kernels above, or of the test's own.
pub(crate) fn with_code(kernel: Kernel, image: &Arc<Image>) -> Kernel {
    // SAFETY: each kernel of these tests is launched over buffers of as many elements
    // as it is told to touch. A kernel that breaks its promise does so in a process
    // that has nothing else to lose, which is what its test is about.
    unsafe { kernel.code(image) }
}

/// `saxpy` as its code takes it, without the code.
pub(crate) fn saxpy_declared() -> Kernel {
    Kernel::new("saxpy")
        .reads::<f32>("x")
        .reads::<i32>("base")
        .writes::<f32>("out")
        .scalar::<f32>("a")
        .changeable("a")
        .scalar::<u32>("n")
}

pub(crate) fn saxpy_kernel(image: &Arc<Image>) -> Kernel {
    with_code(saxpy_declared(), image)
}

pub(crate) struct Saxpy {
    pub(crate) recording: Recording,
    pub(crate) x: Buffer<f32>,
    pub(crate) out: Buffer<f32>,
}

pub(crate) fn saxpy() -> Saxpy {
    let mut recorder = Recorder::new(&[LEN as u32]);
    let x = recorder.upload_buffer::<f32>("x", 0, 1);
    let base = recorder.device_buffer::<i32>("base", 0, 1);
    let out = recorder.download_buffer::<f32>("out", 0, 1);
    recorder.upload(x);
    recorder.memset(base, 1);
    let kernel = saxpy_kernel(&source_image(SAXPY));
    let args = [
        x.into(),
        base.into(),
        out.into(),
        2.5_f32.into(),
        (LEN as u32).into(),
    ];
    recorder.launch(&kernel, (LEN as u32).div_ceil(128), &args);
    recorder.download(out);
    Saxpy {
        recording: recorder.finish().unwrap(),
        x,
        out,
    }
}

/// What replay `round` on slot `device_slot` computes, and from what.
pub(crate) fn expected(device_slot: usize, round: usize) -> (Vec<f32>, Vec<f32>) {
    let x = (0..LEN).map(|i| (i * 7 + device_slot * 1_000 + round) as f32 * 0.37);
    let x: Vec<f32> = x.collect();
    let out = x.iter().map(|x| 2.5 * x + 0x0101_0101 as f32).collect();
    (x, out)
}

pub(crate) fn ready_with(
    backend: &Arc<dyn Backend>,
    recording: &Recording,
    device_slot: &mut dyn DeviceSlot,
    policy: &Policy,
) -> Executor {
    let buckets = Arc::new(Buckets::single(recording.clone()));
    Executor::new(backend, device_slot, &buckets, policy).unwrap()
}

pub(crate) fn ready(
    backend: &Arc<dyn Backend>,
    recording: &Recording,
    device_slot: &mut dyn DeviceSlot,
    mode: Mode,
) -> Executor {
    // The first batch is in flight when it was given, as all others.
    let policy = Policy {
        verify: Verify::Off,
        ..Policy::new(mode)
    };
    ready_with(backend, recording, device_slot, &policy)
}

pub(crate) fn device_slots(
    backend: &Arc<dyn Backend>,
    recording: &Recording,
    count: usize,
) -> Vec<Box<dyn DeviceSlot>> {
    backend
        .open_slots(recording.buffers(), count, Priority::Normal)
        .unwrap()
}

pub(crate) fn one_slot(backend: &Arc<dyn Backend>, recording: &Recording) -> Box<dyn DeviceSlot> {
    device_slots(backend, recording, 1).remove(0)
}

/// Gives a full batch.
pub(crate) fn replay(device_slot: &mut dyn DeviceSlot, executor: &mut Executor) -> Replay {
    let largest = executor.buckets().largest().capacity;
    executor.replay(device_slot, 0, largest).unwrap()
}

pub(crate) fn fill(saxpy: &Saxpy, device_slot: &mut dyn DeviceSlot, x: &[f32]) {
    device_slot.host_mut(&[saxpy.x.id()])[0].copy_from_slice(bytemuck::cast_slice(x));
}

pub(crate) fn out<'a>(saxpy: &Saxpy, device_slot: &'a dyn DeviceSlot) -> &'a [f32] {
    bytemuck::cast_slice(device_slot.host(saxpy.out.id()))
}

pub(crate) fn round(
    saxpy: &Saxpy,
    device_slot: &mut dyn DeviceSlot,
    executor: &mut Executor,
    index: usize,
    round: usize,
) {
    let (x, expected) = expected(index, round);
    fill(saxpy, device_slot, &x);
    replay(device_slot, executor);
    device_slot.wait().unwrap();
    assert!(device_slot.is_done().unwrap());
    assert!(out(saxpy, device_slot) == expected);
}
