//! The sum `a * x + y` of vectors of any length, batched and replayed as a graph: a short program
//! that computes something and compares it with the host.
//!
//! ```sh
//! cargo run --release -p tapeloop-engine --example saxpy                           # the CPU
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example saxpy     # a GPU, if there is one
//! ```

use tapeloop_engine::*;

const A: f32 = 2.5;

const TEXT: &str = r#"
extern "C" __global__ void saxpy(const unsigned* header, float a, const float* x, const float* y, float* sum)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0])
        sum[i] = fmaf(a, x[i], y[i]);
}
"#;

/// The kernel's CPU twin.
fn saxpy(launch: &mut TwinLaunch<'_>) {
    let len = launch.read::<u32>()[0] as usize;
    let a: f32 = launch.scalar();
    let (x, y) = (launch.read::<f32>(), launch.read::<f32>());
    let sums = launch.write::<f32>()[..len].iter_mut();
    for ((sum, x), y) in sums.zip(x).zip(y) {
        *sum = a.mul_add(*x, *y);
    }
}

struct Saxpy(Kernel);

/// Two vectors of one length.
type Pair = (Vec<f32>, Vec<f32>);

impl Workload for Saxpy {
    type Item = Pair;
    type Output = Vec<f32>;
    /// `x`, `y` and their sum.
    type Buffers = [Buffer<f32>; 3];

    fn axes(&self) -> &'static [&'static str] {
        &["elements"]
    }

    fn extent(&self, (x, y): &Pair) -> Result<Extent> {
        if x.len() == y.len() {
            Ok([x.len() as u32].into())
        } else {
            Err(Error::input("the vectors differ in length"))
        }
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<[Buffer<f32>; 3]> {
        let header = recorder.header();
        let [x, y] = ["x", "y"].map(|name| recorder.upload_buffer(name, 0, 1));
        let sum = recorder.download_buffer("sum", 0, 1);
        recorder.upload(header);
        recorder.upload(x);
        recorder.upload(y);
        let args = [header.into(), A.into(), x.into(), y.into(), sum.into()];
        recorder.launch(&self.0, recorder.capacity(0).div_ceil(128), &args);
        recorder.download(sum);
        Ok([x, y, sum])
    }

    fn write(
        &self,
        [to_x, to_y, _]: &[Buffer<f32>; 3],
        (x, y): &Pair,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*to_x).copy_from_slice(x);
        views.take(*to_y).copy_from_slice(y);
        Ok(())
    }

    fn read(
        &self,
        [.., sum]: &[Buffer<f32>; 3],
        _: &Pair,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<f32>> {
        Ok(views.get(*sum).to_vec())
    }
}

pub(crate) fn main() -> Result<()> {
    // SAFETY: it touches the first `header[0]` elements of `x`, `y` and `sum`, which the engine keeps
    // within their capacity.
    let kernel = unsafe { Kernel::from_cuda("saxpy.cu", TEXT, "saxpy") }?.twin(saxpy);
    let engine = Engine::auto(Saxpy(kernel), &EngineConfig::new([1 << 20]))?;
    let pairs = (0..1000).map(|len| {
        let x = (0..len).map(|i| i as f32).collect();
        (x, vec![0.1; len])
    });
    let mut elements = 0;
    for done in engine.submit_many(pairs)?.wait()? {
        let (x, y) = done.item;
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| A.mul_add(*x, *y)).collect();
        assert_eq!(done.result?, expected);
        elements += x.len();
    }
    let name = &engine.device().name;
    println!("{elements} elements on {name}, all as on the host");
    Ok(())
}
