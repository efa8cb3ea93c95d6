//! A recording that multiplies words by seven on a CUDA device.

use std::sync::Arc;
use tapeloop_engine::Recorder;
use tapeloop_engine::record::{Buffer, Image, Kernel};
use tapeloop_engine::replay::Buckets;

/// Records a batch of `len` words. Returns the buffer of the words, that of seven times each word, and the
/// recording as the only bucket.
pub fn sevenfold(len: u32) -> (Buffer<u32>, Buffer<u32>, Arc<Buckets>) {
    let mut recorder = Recorder::new(&[len]);
    let x: Buffer<u32> = recorder.upload_buffer("x", 0, 1);
    let y: Buffer<u32> = recorder.download_buffer("y", 0, 1);
    recorder.upload(x);
    let text = "extern \"C\" __global__ void seven(const unsigned* x, unsigned* y, unsigned n) {
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = 7 * x[i];
    }";
    let kernel = Kernel::new("seven")
        .reads::<u32>("x")
        .writes::<u32>("y")
        .scalar::<u32>("n");
    // SAFETY: the kernel accesses the first `n` words of both buffers, and they have `len`, which is `n`.
    let kernel = unsafe { kernel.code(&Image::cuda("seven.cu", text)) };
    let args = [x.into(), y.into(), len.into()];
    recorder.launch(&kernel, len.div_ceil(128), &args);
    recorder.download(y);
    (x, y, Arc::new(Buckets::single(recorder.finish().unwrap())))
}
