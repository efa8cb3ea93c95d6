//! The engine as a shared library with a C interface, to be loaded into a process that
//! uses CUDA for its own ends too.
//!
//! ```sh
//! cargo build --release --package tapeloop-engine --features cuda-12040 --example capi
//! python3 scripts/torch_in_process.py target/release/examples/libcapi.so
//! ```
//!
//! ```c
//! struct tapeloop *tapeloop_open(const char *backend, char *error, size_t error_bytes);
//! int tapeloop_run_engine(struct tapeloop *, uint32_t batches, char *error, size_t error_bytes);
//! int tapeloop_run_ring(struct tapeloop *, uint32_t batches, char *error, size_t error_bytes);
//! void tapeloop_close(struct tapeloop *);
//! ```
//!
//! A call that fails returns null or -1, and leaves the text of the error, ended by a
//! zero, in the first `error_bytes` bytes at `error`. Calls may come from any thread,
//! several at once; none changes the caller's CUDA context. In a child that the host forks
//! each call fails, and `tapeloop_close` frees nothing, as the memory belongs to the parent.
//! Open in the child, or start it with `exec`.

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::backend::ThreadPoolBuilder;
use tapeloop_engine::backend::{Choice, CudaOptions, DeviceChoice, select_with};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Ring, Wait};
use tapeloop_engine::record::{Buffer, Kernel, Recorder, TwinLaunch};
use tapeloop_engine::replay::{Buckets, Policy};
use tapeloop_engine::workload::{Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{Error, ErrorKind, Result};

/// Elements of a batch.
const LEN: u32 = 1 << 14;
const THREADS: u32 = 128;
const FACTOR: f32 = 3.0;

const SOURCE: &str = r#"
extern "C" __global__ void scale(const float* x, float* y, float a, unsigned len) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < len) y[i] = a * x[i];
}
"#;

/// Computes what the text above computes, where there is no GPU.
fn scale(launch: &mut TwinLaunch<'_>) {
    let x: &[f32] = launch.read();
    let y: &mut [f32] = launch.write();
    let a: f32 = launch.scalar();
    let len: u32 = launch.scalar();
    for i in 0..len as usize {
        y[i] = a * x[i];
    }
}

/// The input of a batch follows from its number, and is exact in single precision.
fn input(batch: u32) -> impl Iterator<Item = f32> {
    (0..LEN).map(move |i| ((i + batch) % 4096) as f32)
}

/// Refuses anything but [`FACTOR`] times the input.
fn check(batch: u32, y: &[f32]) -> Result<()> {
    if y.iter().copied().eq(input(batch).map(|x| FACTOR * x)) {
        Ok(())
    } else {
        let message = format!("the result of batch {batch} is wrong");
        Err(Error::new(ErrorKind::Mismatch, message))
    }
}

#[derive(Clone, Copy)]
struct Buffers {
    x: Buffer<f32>,
    y: Buffer<f32>,
}

fn record(recorder: &mut Recorder) -> Buffers {
    // SAFETY: the code reads `x` and writes `y` at indices below `len`, which is the
    // length of both, whatever the grid and the contents.
    let kernel = unsafe { Kernel::from_cuda("scale.cu", SOURCE, "scale") };
    let kernel = kernel.expect("the text declares it").twin(scale);
    let x = recorder.upload_buffer("x", 0, 1);
    let y = recorder.download_buffer("y", 0, 1);
    recorder.upload(x);
    let args = [x.into(), y.into(), FACTOR.into(), LEN.into()];
    recorder.launch(&kernel, LEN.div_ceil(THREADS), &args);
    recorder.download(y);
    Buffers { x, y }
}

/// An item is the number of a batch, and fills it.
struct Scale;

impl Workload for Scale {
    type Item = u32;
    type Output = Result<()>;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["elements"]
    }

    fn extent(&self, _: &u32) -> Result<Extent> {
        Ok(Extent::from([LEN]))
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        Ok(record(recorder))
    }

    fn write(
        &self,
        buffers: &Buffers,
        batch: &u32,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        let x = views.take(buffers.x).iter_mut();
        x.zip(input(*batch)).for_each(|(x, value)| *x = value);
        Ok(())
    }

    fn read(
        &self,
        buffers: &Buffers,
        batch: &u32,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Result<()>> {
        Ok(check(*batch, views.get(buffers.y)))
    }
}

/// One device with an engine, which has threads of its own, and a ring, which works on
/// the caller's thread.
pub struct Tapeloop {
    engine: Engine<Scale>,
    ring: Mutex<(Ring<u32>, Buffers)>,
}

impl Tapeloop {
    fn open(backend: &str) -> Result<Tapeloop> {
        let choice = match backend {
            "cuda" => Choice::Cuda,
            "cpu" => Choice::Cpu,
            other => return Err(Error::usage(format!("no backend is named {other}"))),
        };
        let pool = ThreadPoolBuilder::new().num_threads(2).build();
        let pool = pool.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        let pool = Arc::new(pool);
        let options = CudaOptions {
            device: DeviceChoice::Ordinal(0),
            ..CudaOptions::default()
        };
        let backend = select_with(choice, &pool, &options)?.backend;
        let mut recorder = Recorder::new(&[LEN]);
        let buffers = record(&mut recorder);
        let buckets = Arc::new(Buckets::single(recorder.finish()?));
        let ring = Ring::new(&backend, &buckets, 3, &Policy::default(), Wait::Spin)?;
        let config = EngineConfig::new([LEN]);
        Ok(Tapeloop {
            engine: Engine::new(Scale, &[backend], pool, &config)?,
            ring: Mutex::new((ring, buffers)),
        })
    }

    /// Fails if the engine has ended, and in a child of the process that opened it. There the lock of the
    /// ring may stay locked for ever, if a thread of the parent held it at the fork.
    fn check(&self) -> Result<()> {
        self.engine.ended().map_or(Ok(()), Err)
    }

    fn run_engine(&self, batches: u32) -> Result<()> {
        let tickets: Result<Vec<_>> = (0..batches).map(|n| self.engine.submit(n)).collect();
        for ticket in tickets? {
            let done = ticket
                .wait()
                .map_err(|lost| Error::usage(lost.to_string()))?;
            done.result??;
        }
        Ok(())
    }

    fn run_ring(&self, batches: u32) -> Result<()> {
        self.check()?;
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let (ring, buffers) = &mut *ring;
        let (mut submitted, mut outcome) = (0, Ok(()));
        loop {
            while outcome.is_ok()
                && submitted < batches
                && let Some(mut slot) = ring.acquire()
            {
                let x = slot.write(buffers.x).iter_mut();
                x.zip(input(submitted)).for_each(|(x, value)| *x = value);
                let extent = Extent::from([LEN]);
                if let Err(failed) = ring.submit(slot, extent, submitted)
                    && let (_, Some(error)) = ring.release(Err(failed))
                {
                    outcome = Err(error);
                }
                submitted += 1;
            }
            // Results are taken after an error too, until nothing is in flight.
            let Some(finished) = ring.wait() else {
                return outcome;
            };
            if let Ok(slot) = &finished {
                outcome = outcome.and(check(*slot.batch(), slot.read(buffers.y)));
            }
            if let (_, Some(error)) = ring.release(finished) {
                outcome = outcome.and(Err(error));
            }
        }
    }
}

/// Runs `work`. An error or a panic becomes text at `error`.
///
/// # Safety
/// `error` must be valid for writes of `error_bytes` bytes, or `error_bytes` 0.
unsafe fn guard<T>(
    error: *mut c_char,
    error_bytes: usize,
    work: impl FnOnce() -> Result<T>,
) -> Option<T> {
    let text = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the call panicked; its message is on standard error".to_owned(),
    };
    if error_bytes > 0 {
        let len = text.len().min(error_bytes - 1);
        // SAFETY: `len` and the zero after it are within `error_bytes`, for which the
        // caller answers; the text is no part of the caller's memory.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), error, len);
            error.add(len).write(0);
        }
    }
    None
}

/// Opens `backend` ("cuda": the first visible GPU, or "cpu") and starts an engine on it.
///
/// # Safety
/// `backend` must be text that ends with a zero, and `error` valid for writes of
/// `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeloop_open(
    backend: *const c_char,
    error: *mut c_char,
    error_bytes: usize,
) -> *mut Tapeloop {
    // SAFETY: the caller's promise.
    let backend = unsafe { CStr::from_ptr(backend) }.to_string_lossy();
    // SAFETY: the caller's promise.
    let opened = unsafe { guard(error, error_bytes, || Tapeloop::open(&backend)) };
    opened.map_or(std::ptr::null_mut(), |tapeloop| {
        Box::into_raw(Box::new(tapeloop))
    })
}

/// Runs batches on the engine's threads and checks each result: 0, or -1 and the error.
///
/// # Safety
/// `tapeloop` must come from [`tapeloop_open`] and not be closed, and `error` be valid for
/// writes of `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeloop_run_engine(
    tapeloop: *const Tapeloop,
    batches: u32,
    error: *mut c_char,
    error_bytes: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let done = unsafe { guard(error, error_bytes, || (*tapeloop).run_engine(batches)) };
    done.map_or(-1, |()| 0)
}

/// Runs batches on the calling thread and checks each result: 0, or -1 and the error.
///
/// # Safety
/// As for [`tapeloop_run_engine`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeloop_run_ring(
    tapeloop: *const Tapeloop,
    batches: u32,
    error: *mut c_char,
    error_bytes: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let done = unsafe { guard(error, error_bytes, || (*tapeloop).run_ring(batches)) };
    done.map_or(-1, |()| 0)
}

/// Finishes what was submitted and frees everything.
///
/// # Safety
/// `tapeloop` must come from [`tapeloop_open`], be closed once, and no other call may
/// use it meanwhile or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeloop_close(tapeloop: *mut Tapeloop) {
    // SAFETY: the caller's promise. A panic goes no further than this call.
    let close = || drop(unsafe { Box::from_raw(tapeloop) });
    let closed = catch_unwind(AssertUnwindSafe(close));
    if closed.is_err() {
        eprintln!("tapeloop_close panicked");
    }
}
