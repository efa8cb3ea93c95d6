//! An embedder's own memory under a recorded graph, changed between replays.
//!
//! ```sh
//! cargo run --release -p tapeloop-engine --example rebind                           # the CPU
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example rebind     # a GPU, if there is one
//! ```
//!
//! Records `y = a * x` once, and replays it over the device slot's own buffers, then over
//! buffers of a pool. Prints what each rebinding took of the graph, and fails if
//! any result is wrong.

use std::sync::Arc;
use tapeloop_engine::backend::ThreadPoolBuilder;
use tapeloop_engine::backend::contract::{DeviceSlot, Priority};
use tapeloop_engine::backend::{Choice, select};
use tapeloop_engine::memory::{Pool, PoolConfig};
use tapeloop_engine::record::{Buffer, Image, Kernel, Recorder, Recording, TwinLaunch};
use tapeloop_engine::replay::{Bindings, Buckets, Executor, Policy};
use tapeloop_engine::workload::Extent;
use tapeloop_engine::{Error, Result};

const LEN: u32 = 1 << 16;
const THREADS: u32 = 128;

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

struct Handles {
    x: Buffer<f32>,
    y: Buffer<f32>,
}

fn record() -> Result<(Recording, Handles)> {
    let kernel = Kernel::declared_in(SOURCE, "scale")?
        .changeable("a")
        .twin(scale);
    // SAFETY: it touches the first `len` elements of `x` and `y`, which have as many,
    // whatever `a` is.
    let kernel = unsafe { kernel.code(&Image::cuda("scale.cu", SOURCE)) };
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.upload_buffer("x", 0, 1);
    let y = recorder.download_buffer("y", 0, 1);
    recorder.upload(x);
    let args = [x.into(), y.into(), 2.0_f32.into(), LEN.into()];
    recorder.launch(&kernel, LEN.div_ceil(THREADS), &args);
    recorder.download(y);
    Ok((recorder.finish()?, Handles { x, y }))
}

/// A device slot and what replays on it.
struct Player {
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
}

impl Player {
    fn bindings(&mut self) -> Result<Bindings> {
        Ok(self.executor.bindings(&mut *self.device_slot, 0)?.clone())
    }

    fn rebind(&mut self, what: &str, bindings: Bindings) -> Result<()> {
        let rung = self.executor.update(&mut *self.device_slot, 0, bindings)?;
        println!("{what:<44} {rung:?}");
        Ok(())
    }

    fn replay(&mut self) -> Result<()> {
        let all = Extent::from([LEN]);
        self.executor.replay(&mut *self.device_slot, 0, all)?;
        self.device_slot.wait()
    }
}

fn numbers(start: f32) -> impl Iterator<Item = f32> {
    (0..LEN).map(move |i| start + (i % 1000) as f32)
}

fn fill(elements: &mut [f32], start: f32) {
    for (element, number) in elements.iter_mut().zip(numbers(start)) {
        *element = number;
    }
}

/// Refuses anything but `a` times [`numbers`].
fn check(y: &[f32], a: f32, start: f32) -> Result<()> {
    if y.iter().copied().eq(numbers(start).map(|x| a * x)) {
        Ok(())
    } else {
        Err(Error::usage("the results are wrong"))
    }
}

pub(crate) fn main() -> Result<()> {
    let threads = Arc::new(ThreadPoolBuilder::new().build().expect("threads start"));
    let selected = select(Choice::Auto, &threads)?;
    let backend = selected.backend;
    println!("{}: {}", backend.device().name, selected.reason);

    let (recording, Handles { x, y }) = record()?;
    let buffers = recording.buffers().to_vec();
    let mut device_slots = backend.open_slots(&buffers, 1, Priority::Normal)?;
    let mut device_slot = device_slots.pop().expect("one was asked for");
    let buckets = Arc::new(Buckets::single(recording));
    let executor = Executor::new(&backend, &mut *device_slot, &buckets, &Policy::default())?;
    let mut player = Player {
        device_slot,
        executor,
    };

    let mut own = player.device_slot.host_mut(&[x.id()]);
    fill(bytemuck::cast_slice_mut(own[0]), 1.0);
    drop(own);
    player.replay()?;
    check(
        bytemuck::cast_slice(player.device_slot.host(y.id())),
        2.0,
        1.0,
    )?;
    println!("{:<44} as recorded", "the device slot's own buffers");

    let pool = Pool::new(Arc::clone(&backend), PoolConfig::development());
    let mut inputs = [
        pool.pinned::<f32>(LEN as usize, "first")?,
        pool.pinned(LEN as usize, "second")?,
    ];
    let output = pool.pinned::<f32>(LEN as usize, "output")?;
    // Both device sides are parts of one buffer.
    let work = pool.device::<f32>(2 * LEN as usize, "work")?;

    let mut bindings = player.bindings()?;
    bindings.bind_device(x, work.slice(..LEN as usize)?.view())?;
    bindings.bind_device(y, work.slice(LEN as usize..)?.view())?;
    bindings.bind_host(y, output.view())?;
    for (index, input) in inputs.iter_mut().enumerate() {
        let start = 10.0 * (index + 1) as f32;
        fill(&mut input.write()?, start);
        bindings.bind_host(x, input.view())?;
        player.rebind(&format!("input {index}, from the pool"), bindings.clone())?;
        player.replay()?;
        check(&output.read()?, 2.0, start)?;
    }
    player.rebind("the same once more", bindings.clone())?;

    bindings.set_scalar(0, "a", 3.0_f32)?;
    player.rebind("another factor", bindings.clone())?;
    player.replay()?;
    check(&output.read()?, 3.0, 20.0)?;

    bindings.set_mapped(x, true)?;
    player.rebind("the input in place, without its copy", bindings)?;
    player.replay()?;
    check(&output.read()?, 3.0, 20.0)?;
    // The part of the work buffer that the copy went to holds what came last.
    let mut copied = vec![0.0; LEN as usize];
    work.slice(..LEN as usize)?.download(&mut copied)?;
    check(&copied, 1.0, 20.0)?;

    println!("{:?}", player.executor.updates());
    drop(inputs);
    let stats = pool.stats().pinned;
    println!(
        "pinned: {} B in use, {} B parked, as the graph holds them, {} B free",
        stats.in_use_bytes, stats.parked_bytes, stats.cached_bytes
    );
    println!("{}", pool.leaks());
    Ok(())
}
