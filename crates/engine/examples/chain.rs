//! Two workloads in a row: the first decodes frames, the second takes a number from each row of a decoded
//! frame. The frames stay on the device in between, or go over the host, and both ways are timed.
//!
//! ```sh
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example chain -- [FRAMES]
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tapeloop_engine::backend::{Choice, ThreadPoolBuilder, select};
use tapeloop_engine::pipeline::Wait;
use tapeloop_engine::*;

/// The pixels of a frame: 512 rows of 512.
const ROW: usize = 512;
const PIXELS: usize = 512 * ROW;

/// Frames that are decoded ahead of the rows.
const AHEAD: usize = 8;

const TEXT: &str = r#"
extern "C" __global__ void decode(const unsigned* header, const unsigned char* bytes, float* pixels)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= header[0] * 262144u) return;
    const float value = bytes[i];
    pixels[i] = __fmul_rn(value, value);
}

extern "C" __global__ void brightest(const unsigned* header, const float* pixels, float* rows)
{
    const unsigned row = 4u * blockIdx.x + threadIdx.x / 32u, lane = threadIdx.x % 32u;
    if (row >= header[0] * 512u) return;
    float largest = 0.0f;
    for (unsigned i = lane; i < 512u; i += 32u)
        largest = fmaxf(largest, pixels[512u * row + i]);
    for (unsigned step = 16u; step; step /= 2u)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    if (lane == 0u) rows[row] = largest;
}
"#;

fn decode(launch: &mut TwinLaunch<'_>) {
    let frames = launch.read::<u32>()[0] as usize;
    let bytes = &launch.read::<u8>()[..frames * PIXELS];
    let pixels = launch.write::<f32>();
    for (pixel, byte) in pixels.iter_mut().zip(bytes) {
        *pixel = f32::from(*byte) * f32::from(*byte);
    }
}

fn brightest(launch: &mut TwinLaunch<'_>) {
    let frames = launch.read::<u32>()[0] as usize;
    let pixels = &launch.read::<f32>()[..frames * PIXELS];
    let rows = launch.write::<f32>();
    for (row, pixels) in rows.iter_mut().zip(pixels.chunks(ROW)) {
        *row = pixels.iter().copied().fold(0.0, f32::max);
    }
}

/// A decoded frame, on the device or on the host.
pub(crate) enum Frame {
    Device(DeviceLeased<f32>),
    Host(Leased<f32>),
}

/// Decodes frames, and keeps them on the device or downloads them.
struct Decoder {
    kernel: Kernel,
    on_device: bool,
}

impl Workload for Decoder {
    type Item = Vec<u8>;
    type Output = Frame;
    type Buffers = (Buffer<u8>, Buffer<f32>);

    fn axes(&self) -> &'static [&'static str] {
        &["frames"]
    }

    fn extent(&self, frame: &Vec<u8>) -> Result<Extent> {
        match frame.len() {
            PIXELS => Ok([1].into()),
            other => Err(Error::input(format!("{other} bytes for {PIXELS} pixels"))),
        }
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Self::Buffers> {
        let header = recorder.header();
        let bytes = recorder.upload_buffer("bytes", 0, PIXELS);
        recorder.upload(header);
        recorder.upload(bytes);
        let pixels = if self.on_device {
            recorder.result_buffer("pixels", 0, PIXELS)
        } else {
            recorder.download_buffer("pixels", 0, PIXELS)
        };
        let blocks = recorder.capacity(0) * (PIXELS / 128) as u32;
        recorder.launch(
            &self.kernel,
            blocks,
            &[header.into(), bytes.into(), pixels.into()],
        );
        if !self.on_device {
            recorder.download(pixels);
        }
        Ok((bytes, pixels))
    }

    fn write(
        &self,
        (bytes, _): &Self::Buffers,
        frame: &Vec<u8>,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*bytes).copy_from_slice(frame);
        Ok(())
    }

    fn read(
        &self,
        (_, pixels): &Self::Buffers,
        _: &Vec<u8>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Frame> {
        if self.on_device {
            views.keep_on_device(*pixels).map(Frame::Device)
        } else {
            Ok(Frame::Host(views.lease(*pixels)))
        }
    }
}

/// The brightest pixel of each row.
struct Brightest {
    kernel: Kernel,
    on_device: bool,
}

impl Workload for Brightest {
    type Item = Frame;
    type Output = Vec<f32>;
    type Buffers = [Buffer<f32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        &["frames"]
    }

    fn extent(&self, _: &Frame) -> Result<Extent> {
        Ok([1].into())
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Self::Buffers> {
        let header = recorder.header();
        recorder.upload(header);
        let pixels = if self.on_device {
            recorder.input_buffer("pixels", 0, PIXELS)
        } else {
            let pixels = recorder.upload_buffer("pixels", 0, PIXELS);
            recorder.upload(pixels);
            pixels
        };
        let rows = recorder.download_buffer("rows", 0, PIXELS / ROW);
        let blocks = recorder.capacity(0) * (PIXELS / ROW / 4) as u32;
        recorder.launch(
            &self.kernel,
            blocks,
            &[header.into(), pixels.into(), rows.into()],
        );
        recorder.download(rows);
        Ok([pixels, rows])
    }

    fn write(
        &self,
        [pixels, _]: &Self::Buffers,
        frame: &Frame,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        if let Frame::Host(host) = frame {
            views.take(*pixels).copy_from_slice(host);
        }
        Ok(())
    }

    fn device_inputs(
        &self,
        [pixels, _]: &Self::Buffers,
        frame: &Frame,
        inputs: &mut DeviceInputs<'_>,
    ) -> Result<()> {
        match frame {
            Frame::Device(device) => inputs.copy(*pixels, device.view()),
            Frame::Host(_) => Ok(()),
        }
    }

    fn read(
        &self,
        [_, rows]: &Self::Buffers,
        _: &Frame,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<f32>> {
        Ok(views.get(*rows).to_vec())
    }
}

fn frame(number: usize) -> Vec<u8> {
    let pixel = |i: usize| ((i * 7 + i / ROW * 13 + number * 31) % 251) as u8;
    (0..PIXELS).map(pixel).collect()
}

fn expected(frame: &[u8]) -> Vec<f32> {
    let largest = |row: &[u8]| f32::from(*row.iter().max().expect("a row has pixels"));
    frame.chunks(ROW).map(largest).map(|x| x * x).collect()
}

/// Passes frames through both engines, compares each result with the host, and returns the frames of a second.
pub(crate) fn run(choice: Choice, count: usize, on_device: bool) -> Result<f64> {
    let pool = ThreadPoolBuilder::new().build();
    let pool = pool.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
    let pool = Arc::new(pool);
    // Memory of one engine is an item of another if both have the same backend.
    let backends = [select(choice, &pool)?.backend];
    // SAFETY: both touch the pixels and rows of the first `header[0]` frames, which the engine keeps within
    // the capacity.
    let [decoding, reducing] =
        ["decode", "brightest"].map(|name| unsafe { Kernel::from_cuda("chain.cu", TEXT, name) });
    let decoder = Decoder {
        kernel: decoding?.twin(decode),
        on_device,
    };
    let rows = Brightest {
        kernel: reducing?.twin(brightest),
        on_device,
    };
    let mut config = EngineConfig::new([1]);
    config.wait = Wait::Spin;
    let rows = Engine::new(rows, &backends, Arc::clone(&pool), &config)?;
    // Each frame that waits for its rows holds a slot; two more run.
    config.slots = AHEAD + 2;
    let decoder = Engine::new(decoder, &backends, pool, &config)?;

    let frames: Vec<_> = (0..16).map(frame).collect();
    let right: Vec<_> = frames.iter().map(|frame| expected(frame)).collect();
    let (mut decoding, mut reducing) = (VecDeque::new(), VecDeque::new());
    let start = Instant::now();
    for number in 0..count + AHEAD {
        if number < count {
            decoding.push_back(decoder.submit(frames[number % 16].clone())?);
        }
        // Half of the frames that are ahead are decoded, and the rows of the other half are found.
        if number >= AHEAD / 2
            && let Some(decoded) = decoding.pop_front()
        {
            reducing.push_back(rows.submit(decoded.wait()?.result?)?);
        }
        if number >= AHEAD {
            let found = reducing.pop_front().expect("it was submitted before");
            assert_eq!(found.wait()?.result?, right[(number - AHEAD) % 16]);
        }
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    let counters = decoder.counters();
    println!(
        "on {}, frames {}: {rate:.0} a second, all right; {} in their slots, {} copied",
        decoder.device().name,
        if on_device {
            "stay on the device"
        } else {
            "go over the host"
        },
        counters.results_leased,
        counters.results_copied,
    );
    Ok(rate)
}

fn main() -> Result<()> {
    let count = std::env::args().nth(1);
    let count = count.map_or(5_000, |count| count.parse().expect("a number"));
    // The first run of both starts the device and warms up.
    for frames in [100, count, count] {
        let host = run(Choice::Auto, frames, false)?;
        let device = run(Choice::Auto, frames, true)?;
        println!("{:.2} times the frames", device / host);
    }
    Ok(())
}
