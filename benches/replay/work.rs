//! The work: a chain of small kernels between one upload and one download.

use crate::report::Line;
use std::sync::{Arc, Mutex};
use tapeloop::record::{Arg, Buffer, DeviceInfo, Image, Kernel, Recorder, TwinLaunch, Unit};
use tapeloop::workload::{Extent, ReadViews, Workload, WriteViews};
use tapeloop::{Error, ErrorKind, Result};

const SOURCE: &str = include_str!("../../kernels/bench.cu");

/// `n` elements down, `stride` times as many up, and the kernels between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) n: usize,
    pub(crate) stride: usize,
    pub(crate) kernels: usize,
}

impl Shape {
    /// 16 KiB up and down.
    pub(crate) fn small(kernels: usize) -> Self {
        Shape::flat(4_096, kernels)
    }

    /// 8 MiB up and 4 MiB down.
    pub(crate) fn large() -> Self {
        Shape {
            n: 1 << 20,
            stride: 2,
            kernels: 12,
        }
    }

    /// As much up as down.
    pub(crate) fn flat(n: usize, kernels: usize) -> Self {
        Shape {
            n,
            stride: 1,
            kernels,
        }
    }

    pub(crate) fn extent(self) -> Extent {
        Extent::from([self.n as u32])
    }

    pub(crate) fn up_bytes(self) -> usize {
        self.n * self.stride * size_of::<f32>()
    }

    pub(crate) fn down_bytes(self) -> usize {
        self.n * size_of::<f32>()
    }

    /// The factor of the `k`-th kernel.
    pub(crate) fn factor(k: usize) -> f32 {
        if k.is_multiple_of(2) { 2.0 } else { 0.5 }
    }

    /// An input that no other seed has.
    pub(crate) fn input(self, seed: usize) -> Arc<[f32]> {
        let value = |i| ((i * 7 + seed * 13) % 1_021) as f32;
        (0..self.n * self.stride).map(value).collect()
    }

    /// What the chain makes of an input, to the last bit.
    pub(crate) fn output(self, input: &[f32]) -> Vec<f32> {
        self.output_with(input, Shape::factor)
    }

    /// The same with other factors.
    pub(crate) fn output_with(self, input: &[f32], factor: impl Fn(usize) -> f32) -> Vec<f32> {
        let chain = |&x: &f32| (0..self.kernels).fold(x, |x, k| x * factor(k) + 1.0);
        input.iter().step_by(self.stride).map(chain).collect()
    }

    /// The start of a case's line.
    pub(crate) fn line(self, case: &str, slots: usize, host_copies: bool) -> Line {
        Line::new(case)
            .number("bytes", self.up_bytes())
            .number("bytes_down", self.down_bytes())
            .number("kernels", self.kernels)
            .number("slots", slots)
            .number("host_copies", host_copies)
    }
}

/// A case whose output is not what it should be.
pub(crate) fn wrong_output(case: &str) -> Error {
    Error::new(ErrorKind::Device, format!("{case}: wrong outputs"))
}

fn step(launch: &mut TwinLaunch<'_>) {
    let input: &[f32] = launch.read();
    let output: &mut [f32] = launch.write();
    let n: u32 = launch.scalar();
    let stride: u32 = launch.scalar();
    let a: f32 = launch.scalar();
    let strided = input.iter().step_by(stride as usize);
    for (out, x) in output[..n as usize].iter_mut().zip(strided) {
        *out = x * a + 1.0;
    }
}

/// The twins, for a worker.
#[cfg(all(feature = "supervise", target_os = "linux"))]
pub(crate) fn twins() -> [(&'static str, tapeloop::record::Twin); 1] {
    [("step", step)]
}

/// Vectors for outputs, used over and over, as a consumer in a hurry would.
#[derive(Clone, Default)]
pub(crate) struct Spares(Arc<Mutex<Vec<Vec<f32>>>>);

impl Spares {
    pub(crate) fn put(&self, spare: Vec<f32>) {
        self.0.lock().expect("nothing panics inside").push(spare);
    }

    fn take(&self) -> Vec<f32> {
        let taken = self.0.lock().expect("nothing panics inside").pop();
        taken.unwrap_or_default()
    }
}

/// The chain as a workload: an item is the input of one batch.
pub(crate) struct Chain {
    shape: Shape,
    kernel: Kernel,
    spares: Spares,
}

#[derive(Clone, Copy)]
pub(crate) struct Buffers {
    pub(crate) x: Buffer<f32>,
    pub(crate) y: Buffer<f32>,
}

impl Chain {
    pub(crate) fn new(shape: Shape, spares: &Spares) -> Self {
        let kernel = Kernel::new("step")
            .reads::<f32>("in")
            .writes::<f32>("out")
            .scalar::<u32>("n")
            .scalar::<u32>("stride")
            .scalar::<f32>("a")
            .changeable("a")
            .twin(step);
        // SAFETY: it touches the first `n` elements of `out` and `n` times `stride` of
        // `in`, which `record` passes with buffers of that many, whatever `a` is.
        let kernel = unsafe { kernel.code(&Image::cuda("bench.cu", SOURCE)) };
        Chain {
            shape,
            kernel,
            spares: spares.clone(),
        }
    }
}

impl Workload for Chain {
    type Item = Arc<[f32]>;
    type Output = Vec<f32>;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["elements"]
    }

    fn extent(&self, _: &Arc<[f32]>) -> Result<Extent> {
        Ok(self.shape.extent())
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        let Shape {
            n, stride, kernels, ..
        } = self.shape;
        let x = recorder.upload_buffer::<f32>("x", 0, stride);
        let y = recorder.download_buffer::<f32>("y", 0, 1);
        let unit = Unit::PerAxis {
            axis: 0,
            elements: 1,
        };
        let scratch = ["s0", "s1"].map(|name| recorder.device_buffer::<f32>(name, unit));
        recorder.upload(x);
        let mut input = x;
        for k in 0..kernels {
            let output = if k + 1 == kernels { y } else { scratch[k % 2] };
            let stride = if k == 0 { stride as u32 } else { 1 };
            let args: [Arg; 5] = [
                input.into(),
                output.into(),
                (n as u32).into(),
                stride.into(),
                Shape::factor(k).into(),
            ];
            let blocks = (n as u32).div_ceil(self.kernel.threads()[0]);
            recorder.launch(&self.kernel, blocks, &args);
            input = output;
        }
        recorder.download(y);
        Ok(Buffers { x, y })
    }

    fn write(
        &self,
        buffers: &Buffers,
        item: &Arc<[f32]>,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(buffers.x).copy_from_slice(item);
        Ok(())
    }

    fn read(
        &self,
        buffers: &Buffers,
        _: &Arc<[f32]>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<f32>> {
        let mut output = self.spares.take();
        output.clear();
        output.extend_from_slice(views.get(buffers.y));
        Ok(output)
    }
}
