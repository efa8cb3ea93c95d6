//! A small neural network whose layers cuBLAS multiplies: the weights stay on the device, and the
//! library's kernels are captured into the graph of a batch, between a kernel of the program's own.
//!
//! ```sh
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example mlp -- [BATCHES [SLOTS]]
//! ```
//!
//! Without a GPU the twins compute the same.

use libloading::Library;
use std::ffi::c_int;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tapeloop_engine::pipeline::Wait;
use tapeloop_engine::record::{Kernel, LibraryCall, TwinLaunch};
use tapeloop_engine::workload::ResidentViews;
use tapeloop_engine::*;

/// The numbers that enter the network, those between its layers, and its results.
const WIDTHS: [usize; 4] = [784, 1024, 1024, 10];
const ITEMS: u32 = 256;
const WORKSPACE_BYTES: usize = 32 << 20;

const SOURCE: &str = r#"
extern "C" __global__ void relu(const unsigned* header, float* y /* updated */, unsigned width)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0] * width)
        y[i] = fmaxf(y[i], 0.0f);
}"#;

fn relu(launch: &mut TwinLaunch<'_>) {
    let (items, y, width) = (
        launch.read::<u32>()[0],
        launch.write::<f32>(),
        launch.scalar::<u32>(),
    );
    for y in &mut y[..(items * width) as usize] {
        *y = y.max(0.0);
    }
}

/// `y = x w`: a row of `x` and of `y` for each item.
fn multiply(launch: &mut TwinLaunch<'_>) {
    let (x, w, y) = (
        launch.read::<f32>(),
        launch.read::<f32>(),
        launch.write::<f32>(),
    );
    let _workspace = launch.write::<u8>();
    let [items, inputs, outputs] = [(); 3].map(|()| launch.scalar::<u32>() as usize);
    let rows = y.chunks_mut(outputs).zip(x.chunks(inputs));
    for (y, x) in rows.take(items) {
        y.fill(0.0);
        for (x, w) in x.iter().zip(w.chunks(outputs)) {
            y.iter_mut().zip(w).for_each(|(y, w)| *y += x * w);
        }
    }
}

/// cuBLAS, and its handle, which one thread may use at a time.
struct Cublas {
    library: Library,
    handle: Mutex<usize>,
}

type Status = c_int;

/// What `cublasCreate` returns without a device.
const CUBLAS_STATUS_NOT_INITIALIZED: Status = 1;

impl Cublas {
    /// Opens the library. `None` if it is not installed, or finds no device.
    fn open() -> Option<Result<Cublas>> {
        let names = ["libcublas.so.13", "libcublas.so.12", "libcublas.so"];
        // SAFETY: loading cuBLAS runs only its own initialization.
        let library = names
            .iter()
            .find_map(|name| unsafe { Library::new(*name) }.ok())?;
        let mut handle = 0;
        // SAFETY: this is the function's type, and `handle` outlives the call.
        let status = unsafe {
            let create =
                library.get::<unsafe extern "C" fn(*mut usize) -> Status>(b"cublasCreate_v2");
            create.map(|create| create(&mut handle))
        };
        let status = status.map_err(unavailable);
        if matches!(status, Ok(CUBLAS_STATUS_NOT_INITIALIZED)) {
            return None;
        }
        let checked = status.and_then(check);
        Some(checked.map(|()| Cublas {
            library,
            handle: Mutex::new(handle),
        }))
    }

    /// The product of two matrices, by rows as in [`multiply`]: cuBLAS counts by columns, so it
    /// gets the factors the other way round.
    fn multiply(&self, call: &mut LibraryCall<'_>) -> Result<()> {
        let [x, w, y, workspace] = [(); 4].map(|()| call.address());
        let [items, inputs, outputs] = [(); 3].map(|()| call.scalar::<u32>() as c_int);
        let handle = self.handle.lock().expect("no call panics");
        let (one, zero) = (1.0_f32, 0.0_f32);
        type SetStream = unsafe extern "C" fn(usize, u64) -> Status;
        type SetWorkspace = unsafe extern "C" fn(usize, u64, usize) -> Status;
        type Sgemm = unsafe extern "C" fn(
            usize,
            c_int,
            c_int,
            c_int,
            c_int,
            c_int,
            *const f32,
            u64,
            c_int,
            u64,
            c_int,
            *const f32,
            u64,
            c_int,
        ) -> Status;
        // SAFETY: these are the types of the functions. The stream and the buffers are those of the
        // launch, and cuBLAS reads `one` and `zero` in the call.
        unsafe {
            let set_stream = self.library.get::<SetStream>(b"cublasSetStream_v2");
            check(set_stream.map_err(unavailable)?(*handle, call.stream()))?;
            let set_workspace = self.library.get::<SetWorkspace>(b"cublasSetWorkspace_v2");
            check(set_workspace.map_err(unavailable)?(
                *handle,
                workspace,
                WORKSPACE_BYTES,
            ))?;
            let sgemm = self.library.get::<Sgemm>(b"cublasSgemm_v2");
            check(sgemm.map_err(unavailable)?(
                *handle, 0, 0, outputs, items, inputs, &one, w, outputs, x, inputs, &zero, y,
                outputs,
            ))
        }
    }
}

fn unavailable(error: libloading::Error) -> Error {
    Error::new(ErrorKind::Unavailable, error.to_string())
}

fn check(status: Status) -> Result<()> {
    match status {
        0 => Ok(()),
        status => Err(Error::new(
            ErrorKind::Kernel,
            format!("cuBLAS returned {status}"),
        )),
    }
}

struct Network {
    weights: [Vec<f32>; 3],
    multiply: Kernel,
    relu: Kernel,
}

struct Buffers {
    x: Buffer<f32>,
    weights: [Buffer<f32>; 3],
    y: Buffer<f32>,
}

impl Network {
    fn new() -> Result<Network> {
        let kernel = Kernel::new("multiply")
            .reads::<f32>("x")
            .reads::<f32>("w")
            .writes::<f32>("y")
            .writes::<u8>("workspace")
            .scalar::<u32>("items")
            .scalar::<u32>("inputs")
            .scalar::<u32>("outputs")
            .twin(multiply);
        let multiply = match Cublas::open().transpose()? {
            None => kernel,
            Some(cublas) => {
                let call = move |call: &mut LibraryCall<'_>| cublas.multiply(call);
                // SAFETY: `record` passes the sizes of the buffers, and cuBLAS keeps to them.
                unsafe { kernel.library_call(call) }
            }
        };
        // SAFETY: it updates `header[0] * width` numbers, and each item has `width`.
        let relu = unsafe { Kernel::from_cuda("relu.cu", SOURCE, "relu") }?.twin(relu);
        let weights = [0, 1, 2].map(|layer| {
            let (inputs, outputs) = (WIDTHS[layer], WIDTHS[layer + 1]);
            let number = |index: usize| {
                let random = (index as u32 ^ 0x5bd1_e995).wrapping_mul(2_654_435_761) >> 8;
                (random as f32 / (1 << 23) as f32 - 1.0) / (inputs as f32).sqrt()
            };
            (0..inputs * outputs).map(number).collect()
        });
        Ok(Network {
            weights,
            multiply,
            relu,
        })
    }

    /// The results of one item in double precision.
    fn expected(&self, item: &[f32]) -> Vec<f64> {
        let mut x: Vec<f64> = item.iter().map(|x| f64::from(*x)).collect();
        for (layer, weights) in self.weights.iter().enumerate() {
            let mut y = vec![0.0; WIDTHS[layer + 1]];
            for (x, w) in x.iter().zip(weights.chunks(WIDTHS[layer + 1])) {
                y.iter_mut()
                    .zip(w)
                    .for_each(|(y, w)| *y += x * f64::from(*w));
            }
            if layer < 2 {
                y.iter_mut().for_each(|y| *y = y.max(0.0));
            }
            x = y;
        }
        x
    }
}

impl Workload for Network {
    type Item = Arc<[f32]>;
    type Output = Vec<f32>;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["items"]
    }

    fn extent(&self, item: &Arc<[f32]>) -> Result<Extent> {
        if item.len() == WIDTHS[0] {
            Ok([1].into())
        } else {
            Err(Error::input(format!(
                "{} numbers for {}",
                item.len(),
                WIDTHS[0]
            )))
        }
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        let items = recorder.capacity(0);
        let header = recorder.header();
        let x = recorder.upload_buffer::<f32>("x", 0, WIDTHS[0]);
        let y = recorder.download_buffer::<f32>("y", 0, WIDTHS[3]);
        let weights = [0, 1, 2].map(|layer| {
            recorder.resident_buffer::<f32>(&format!("w{layer}"), WIDTHS[layer] * WIDTHS[layer + 1])
        });
        let inner = [1, 2].map(|layer| {
            let elements = WIDTHS[layer];
            recorder.device_buffer::<f32>(&format!("y{layer}"), 0, elements)
        });
        let elements = WORKSPACE_BYTES;
        let workspace = recorder.batch_buffer::<u8>("workspace", elements);
        recorder.upload(header);
        recorder.upload(x);
        let values = [x, inner[0], inner[1], y];
        for layer in 0..3 {
            let [inputs, outputs] = [layer, layer + 1].map(|at| WIDTHS[at] as u32);
            let (from, to) = (values[layer], values[layer + 1]);
            let buffers = [
                from.into(),
                weights[layer].into(),
                to.into(),
                workspace.into(),
            ];
            let sizes = [items.into(), inputs.into(), outputs.into()];
            recorder.call(&self.multiply, &[&buffers[..], &sizes].concat());
            if layer < 2 {
                let blocks = (items * outputs).div_ceil(128);
                let args = [header.into(), to.into(), outputs.into()];
                recorder.launch(&self.relu, blocks, &args);
            }
        }
        recorder.download(y);
        Ok(Buffers { x, weights, y })
    }

    fn fill_resident(&self, buffers: &Buffers, views: &mut ResidentViews<'_>) -> Result<()> {
        for (buffer, weights) in buffers.weights.iter().zip(&self.weights) {
            views.take(*buffer).copy_from_slice(weights);
        }
        Ok(())
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
        Ok(views.get(buffers.y).to_vec())
    }
}

/// Computes the same batch of `items` items, 6 at least, again and again.
pub(crate) fn run(items: u32, batches: usize, slots: usize) -> Result<()> {
    let mut config = EngineConfig::new([items]);
    config.slots = slots;
    // A batch takes less time than a thread to wake up.
    config.wait = Wait::Spin;
    let items: Vec<Arc<[f32]>> = (0..items as usize)
        .map(|item| {
            (0..WIDTHS[0])
                .map(|at| ((item * 31 + at * 7) % 255) as f32 / 255.0)
                .collect()
        })
        .collect();
    let network = Network::new()?;
    let expected = network.expected(&items[5]);
    let engine = Engine::auto(network, &config)?;

    let start = Instant::now();
    let mut tickets = Vec::new();
    for _ in 0..batches {
        tickets.push(engine.submit_many(items.iter().map(Arc::clone))?);
    }
    let mut results = Vec::new();
    for ticket in tickets {
        results = ticket.wait()?;
    }
    let seconds = start.elapsed().as_secs_f64();

    let found = results.swap_remove(5).result?;
    let furthest = found
        .iter()
        .zip(&expected)
        .map(|(found, sum)| (f64::from(*found) - sum).abs());
    let furthest = furthest.fold(0.0, f64::max);
    let latency = engine.statistics().batch_latency;
    println!(
        "{}: {batches} batches of {} in {seconds:.3} s, each {:.1} us (p50) in one of {} slots",
        engine.device().name,
        items.len(),
        latency.quantile_ns(0.5) as f64 / 1000.0,
        config.slots
    );
    println!("one item differs by {furthest:.1e} from a sum in double precision");
    assert!(furthest < 1e-5);
    Ok(())
}

fn main() -> Result<()> {
    let number = |place, default| {
        let given = std::env::args().nth(place);
        given.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    run(ITEMS, number(1, 20), number(2, 3))
}
