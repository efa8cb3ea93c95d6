use tapeloop_engine::{
    Buffer, DeviceInfo, Extent, Kernel, ReadViews, Recorder, Result, TwinLaunch, Workload,
    WriteViews,
};

const TEXT: &str = r#"
extern "C" __global__ void twice(const unsigned* header, const float* x, float* y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0])
        y[i] = 2 * x[i];
}"#;

/// The kernel's CPU twin.
fn twice(launch: &mut TwinLaunch<'_>) {
    let len = launch.read::<u32>()[0] as usize;
    let x = &launch.read::<f32>()[..len];
    for (y, x) in launch.write::<f32>().iter_mut().zip(x) {
        *y = 2.0 * x;
    }
}

/// Doubles the numbers of each item.
struct Double(Kernel);

impl Double {
    fn new() -> Result<Self> {
        // SAFETY: it touches the first `header[0]` elements of `x` and `y`, which the engine
        // keeps within their capacity.
        let kernel = unsafe { Kernel::from_cuda("twice.cu", TEXT, "twice") }?;
        Ok(Double(kernel.twin(twice)))
    }
}

impl Workload for Double {
    type Item = Vec<f32>;
    type Output = Vec<f32>;
    type Buffers = [Buffer<f32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, item: &Vec<f32>) -> Result<Extent> {
        Ok([item.len() as u32].into())
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<[Buffer<f32>; 2]> {
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        recorder.upload(header);
        recorder.upload(x);
        let blocks = recorder.capacity(0).div_ceil(128);
        recorder.launch(&self.0, blocks, &[header.into(), x.into(), y.into()]);
        recorder.download(y);
        Ok([x, y])
    }

    fn write(
        &self,
        [x, _]: &[Buffer<f32>; 2],
        item: &Vec<f32>,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*x).copy_from_slice(item);
        Ok(())
    }

    fn read(
        &self,
        [_, y]: &[Buffer<f32>; 2],
        _: &Vec<f32>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<f32>> {
        Ok(views.get(*y).to_vec())
    }
}
