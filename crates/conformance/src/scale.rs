//! A small workload for engine tests.

use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::record::{Buffer, Image, Kernel, Recorder, Twin, TwinLaunch};
use tapeloop_engine::workload::{Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{Error, Result};

/// Threads of a block.
const BLOCK: u32 = 128;

/// An element of -4 ends the work of its batch, as [`TWIN_PANICS`] says.
const TEXT: &str = r#"
extern "C" __global__ void scale_vectors(const unsigned* header, const float* x, float* y, float factor)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= header[0]) return;
    if (x[i] == -4.0f) asm volatile("trap;");
    y[i] = __fmul_rn(x[i], factor);
}
"#;

pub(crate) const TWINS: [(&str, Twin); 1] = [("scale_vectors", |launch| scale(launch, |_| ()))];

/// Scales ragged vectors; one axis of elements, one of vectors.
pub struct Scale {
    kernel: Kernel,
    factor: f32,
    /// The least elements of a batch that it records.
    capacity_min: u32,
}

/// The buffers of a [`Scale`].
pub struct Buffers {
    x: Buffer<f32>,
    /// The scaled vectors.
    pub y: Buffer<f32>,
    /// The start of each vector in its batch. The kernel does not read it: an axis needs a buffer.
    starts: Buffer<u32>,
}

/// The first element of a vector whose `write` fails.
pub const WRITE_FAILS: f32 = -1.0;
/// The first element of a vector whose `write` panics.
pub const WRITE_PANICS: f32 = -2.0;
/// The first element of a vector whose `read` fails.
pub const READ_FAILS: f32 = -3.0;
/// An element at which the twin panics, and the kernel traps.
pub const TWIN_PANICS: f32 = -4.0;

/// The twin, which calls `before` with the elements of a batch first.
fn scale(launch: &mut TwinLaunch<'_>, before: impl Fn(&[f32])) {
    let header: &[u32] = launch.read();
    let x: &[f32] = launch.read();
    let y: &mut [f32] = launch.write();
    let factor: f32 = launch.scalar();
    before(&x[..header[0] as usize]);
    for i in 0..header[0] as usize {
        assert!(x[i] != TWIN_PANICS, "planted");
        y[i] = x[i] * factor;
    }
}

/// The kernel with its code alone.
fn kernel_without_twin() -> Kernel {
    let kernel = Kernel::new("scale_vectors")
        .block(BLOCK)
        .reads::<u32>("header")
        .reads::<f32>("x")
        .writes::<f32>("y")
        .scalar::<f32>("factor")
        .changeable("factor");
    // SAFETY: the kernel touches what the header counts of its buffers.
    unsafe { kernel.code(&Image::cuda("scale.cu", TEXT)) }
}

/// The kernel: header, elements, results and a factor.
pub(crate) fn scale_kernel() -> Kernel {
    kernel_without_twin().twin(TWINS[0].1)
}

impl Scale {
    /// Multiplies by `factor`.
    pub fn new(factor: f32) -> Self {
        Scale::with_kernel(factor, |kernel| kernel.twin(TWINS[0].1))
    }

    /// A workload whose twin calls `before` with the elements of each batch first.
    pub fn with(factor: f32, before: impl Fn(&[f32]) + Send + Sync + 'static) -> Self {
        let twin = move |launch: &mut TwinLaunch<'_>| scale(launch, &before);
        Scale::with_kernel(factor, |kernel| kernel.twin_closure(twin))
    }

    fn with_kernel(factor: f32, with_twin: impl FnOnce(Kernel) -> Kernel) -> Self {
        Scale {
            kernel: with_twin(kernel_without_twin()),
            factor,
            capacity_min: 0,
        }
    }

    /// Refuses to record batches of fewer elements than this.
    pub fn for_capacities_from(self, capacity_min: u32) -> Self {
        Scale {
            capacity_min,
            ..self
        }
    }
}

impl Workload for Scale {
    type Item = Vec<f32>;
    type Output = (Vec<f32>, u32);
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["elements", "vectors"]
    }

    fn extent(&self, item: &Vec<f32>) -> Result<Extent> {
        if item.is_empty() {
            return Err(Error::input("an empty vector"));
        }
        Ok(Extent::from([item.len() as u32, 1]))
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        if recorder.capacity(0) < self.capacity_min {
            return Err(Error::usage("planted"));
        }
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, 1);
        let starts = recorder.upload_buffer("starts", 1, 1);
        let y = recorder.download_buffer("y", 0, 1);
        recorder.upload(header);
        recorder.upload(x);
        recorder.upload(starts);
        let args = [header.into(), x.into(), y.into(), self.factor.into()];
        recorder.launch(&self.kernel, recorder.capacity(0).div_ceil(BLOCK), &args);
        recorder.download(y);
        Ok(Buffers { x, y, starts })
    }

    fn write(
        &self,
        buffers: &Buffers,
        item: &Vec<f32>,
        offset: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(buffers.x).copy_from_slice(item);
        views.take(buffers.starts)[0] = offset[0];
        match item[0] {
            WRITE_FAILS => Err(Error::input("planted")),
            WRITE_PANICS => panic!("planted"),
            _ => Ok(()),
        }
    }

    fn read(
        &self,
        buffers: &Buffers,
        item: &Vec<f32>,
        offset: Extent,
        views: &ReadViews<'_>,
    ) -> Result<(Vec<f32>, u32)> {
        if item[0] == READ_FAILS {
            return Err(Error::input("planted"));
        }
        Ok((views.get(buffers.y).to_vec(), offset[0]))
    }
}

/// Vectors of 1 to 50 elements.
pub fn vectors(count: usize) -> Vec<Vec<f32>> {
    let vector = |n: usize| (0..1 + n * 7 % 50).map(|i| (n * 100 + i) as f32).collect();
    (0..count).map(vector).collect()
}

/// What a factor of 2 makes of a vector.
pub fn doubled(vector: &[f32]) -> Vec<f32> {
    vector.iter().map(|x| x * 2.0).collect()
}
