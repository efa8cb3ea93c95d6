//! Graph replay for whole batches that the program forms itself: slots are
//! acquired, filled in place in pinned memory, submitted, polled and released, all
//! on one thread.
//!
//! ```sh
//! cargo run --release -p tapeloop-engine --example ring                           # the CPU
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example ring     # a GPU, if there is one
//! ```

use std::sync::Arc;
use tapeloop_engine::backend::ThreadPoolBuilder;
use tapeloop_engine::backend::{Choice, select};
use tapeloop_engine::pipeline::{Ring, Wait};
use tapeloop_engine::record::{Kernel, Recorder, TwinLaunch};
use tapeloop_engine::replay::{Buckets, Policy};
use tapeloop_engine::workload::Extent;
use tapeloop_engine::{Error, ErrorKind, Result};

const LEN: u32 = 4096;
const BATCHES: u32 = 10_000;

const SOURCE: &str = r#"
extern "C" __global__ void square(const float* x, float* y, unsigned len) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < len) y[i] = x[i] * x[i];
}
"#;

/// Computes what the text above computes, where there is no GPU.
fn square(launch: &mut TwinLaunch<'_>) {
    let x: &[f32] = launch.read();
    let y: &mut [f32] = launch.write();
    for (y, x) in y.iter_mut().zip(x) {
        *y = x * x;
    }
}

pub(crate) fn main() -> Result<()> {
    // SAFETY: it touches the first `len` elements of `x` and `y`, which have as many.
    let kernel = unsafe { Kernel::from_cuda("square.cu", SOURCE, "square") }?.twin(square);
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.upload_buffer::<f32>("x", 0, 1);
    let y = recorder.download_buffer::<f32>("y", 0, 1);
    recorder.upload(x);
    recorder.launch(
        &kernel,
        LEN.div_ceil(128),
        &[x.into(), y.into(), LEN.into()],
    );
    recorder.download(y);
    let buckets = Arc::new(Buckets::single(recorder.finish()?));

    let pool = ThreadPoolBuilder::new().build();
    let pool = pool.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
    let selected = select(Choice::Auto, &Arc::new(pool))?;
    // What is attached to a batch comes back with it: here its number.
    let mut ring: Ring<u32> = Ring::new(
        &selected.backend,
        &buckets,
        4,
        &Policy::default(),
        Wait::Spin,
    )?;

    let (mut submitted, mut checked) = (0, 0);
    while checked < BATCHES {
        while submitted < BATCHES
            && let Some(mut slot) = ring.acquire()
        {
            slot.write(x).fill(submitted as f32);
            ring.submit(slot, Extent::from([LEN]), submitted)
                .map_err(|failed| failed.error)?;
            submitted += 1;
        }
        while let Some(finished) = ring.poll() {
            if let Ok(slot) = &finished {
                let expected = (*slot.batch() as f32).powi(2);
                assert!(slot.read(y).iter().all(|y| *y == expected));
                checked += 1;
            }
            if let (_, Some(error)) = ring.release(finished) {
                return Err(error);
            }
        }
    }
    let calls = selected.backend.driver_calls();
    let name = &selected.backend.device().name;
    println!("{checked} batches on {name}, all right; {calls:?}");
    Ok(())
}
