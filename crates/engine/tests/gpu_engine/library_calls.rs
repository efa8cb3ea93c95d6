//! Kernels whose work a library submits: here the CUDA driver's own copy and memset.

use super::target::Target;
use libloading::Library;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tapeloop_conformance::program::policies;
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::memory::{Pool, PoolConfig};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Ring, Wait};
use tapeloop_engine::record::{Buffer, Kernel, LibraryCall, Recorder, TwinLaunch};
use tapeloop_engine::replay::{Buckets, Mode, Policy};
use tapeloop_engine::workload::{Extent, ReadViews, ResidentViews, Workload, WriteViews};
use tapeloop_engine::{Error, ErrorKind, Result};

const TEXT: &str = r#"
extern "C" __global__ void add(const unsigned* header, const unsigned* y, const unsigned* z,
                               unsigned* sum)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) sum[i] = y[i] + z[i];
}
"#;

const BLOCK: u32 = 32;

/// As many as the largest batch.
const BASE: usize = 200;

fn add(launch: &mut TwinLaunch<'_>) {
    let (header, y, z): (&[u32], &[u32], &[u32]) = (launch.read(), launch.read(), launch.read());
    let sum: &mut [u32] = launch.write();
    for i in 0..header[0] as usize {
        sum[i] = y[i].wrapping_add(z[i]);
    }
}

/// Copies `x` to `y`, and sets all of `z` to `value`.
fn copy_and_set(launch: &mut TwinLaunch<'_>) {
    let x: &[u32] = launch.read();
    let (y, z): (&mut [u32], &mut [u32]) = (launch.write(), launch.write());
    let [len, value] = [(); 2].map(|()| launch.scalar::<u32>());
    y[..len as usize].copy_from_slice(&x[..len as usize]);
    z[..len as usize].fill(value);
}

fn submit(call: &mut LibraryCall<'_>, driver: &Library) -> Result<()> {
    let [x, y, z] = [(); 3].map(|()| call.address());
    let [len, value] = [(); 2].map(|()| call.scalar::<u32>());
    type Copy = unsafe extern "C" fn(u64, u64, usize, u64) -> i32;
    type Set = unsafe extern "C" fn(u64, u32, usize, u64) -> i32;
    // SAFETY: these are the types of the functions, and the buffers hold `len` numbers.
    let results = unsafe {
        let copy = driver.get::<Copy>(b"cuMemcpyDtoDAsync_v2").unwrap();
        let set = driver.get::<Set>(b"cuMemsetD32Async").unwrap();
        [
            copy(y, x, 4 * len as usize, call.stream()),
            set(z, value, len as usize, call.stream()),
        ]
    };
    match results {
        [0, 0] => Ok(()),
        other => Err(Error::new(ErrorKind::Device, format!("{other:?}"))),
    }
}

#[derive(Clone, Copy)]
enum Behaviour {
    Right,
    Fails,
    Panics,
    Nothing,
}

struct Sum {
    kernel: Kernel,
    add: Kernel,
    /// Whether the library copies numbers that can be replaced, in place of the items.
    copies_base: bool,
}

impl Sum {
    /// The workload, and the number of times that the library was called.
    fn new(behaviour: Behaviour) -> (Sum, Arc<AtomicUsize>) {
        let kernel = Kernel::new("copy_and_set")
            .reads::<u32>("x")
            .writes::<u32>("y")
            .writes::<u32>("z")
            .scalar::<u32>("len")
            .scalar::<u32>("value")
            .twin(copy_and_set);
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        // SAFETY: the driver's library runs only its own code.
        let kernel = match unsafe { Library::new("libcuda.so.1") } {
            Err(_) => kernel,
            Ok(driver) => {
                let call = move |call: &mut LibraryCall<'_>| {
                    counted.fetch_add(1, Relaxed);
                    match behaviour {
                        Behaviour::Right => submit(call, &driver),
                        Behaviour::Fails => Err(Error::usage("no work, as told")),
                        Behaviour::Panics => panic!("as told"),
                        Behaviour::Nothing => Ok(()),
                    }
                };
                // SAFETY: `record` passes buffers that hold `len` numbers.
                unsafe { kernel.library_call(call) }
            }
        };
        // SAFETY: it touches the first `header[0]` numbers of its buffers.
        let add = unsafe { Kernel::from_cuda("add.cu", TEXT, "add") };
        let add = add.unwrap().twin(self::add);
        let sum = Sum {
            kernel,
            add,
            copies_base: false,
        };
        (sum, calls)
    }
}

impl Workload for Sum {
    type Item = Vec<u32>;
    type Output = Vec<u32>;
    type Buffers = [Buffer<u32>; 3];

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, item: &Vec<u32>) -> Result<Extent> {
        Ok([item.len() as u32].into())
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<[Buffer<u32>; 3]> {
        let len = recorder.capacity(0);
        let header = recorder.header();
        let x = recorder.upload_buffer::<u32>("x", 0, 1);
        let sum = recorder.download_buffer::<u32>("sum", 0, 1);
        let [y, z] = ["y", "z"].map(|name| recorder.device_buffer::<u32>(name, 0, 1));
        recorder.upload(header);
        recorder.upload(x);
        let base = recorder.replaceable_buffer::<u32>("base", BASE);
        let copied = if self.copies_base { base } else { x };
        for value in [1, 7_u32] {
            let args = [copied.into(), y.into(), z.into(), len.into(), value.into()];
            recorder.call(&self.kernel, &args);
        }
        let args = [header.into(), y.into(), z.into(), sum.into()];
        recorder.launch(&self.add, len.div_ceil(BLOCK), &args);
        recorder.download(sum);
        Ok([x, sum, base])
    }

    fn write(
        &self,
        [x, ..]: &[Buffer<u32>; 3],
        item: &Vec<u32>,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*x).copy_from_slice(item);
        Ok(())
    }

    fn read(
        &self,
        [_, sum, _]: &[Buffer<u32>; 3],
        _: &Vec<u32>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<u32>> {
        Ok(views.get(*sum).to_vec())
    }
}

fn config() -> EngineConfig {
    let mut config = EngineConfig::new([200]);
    config.buckets = [[60], [200]].map(Extent::from).to_vec();
    config
}

fn item(number: u32) -> Vec<u32> {
    let length = 1 + number * 37 % 150;
    (0..length).map(|at| number * 131 + at * 17).collect()
}

pub(crate) fn the_work_of_a_library_is_replayed_in_its_place(target: &Target) {
    for policy in policies().iter().take(2 * target.rounds) {
        let (workload, _) = Sum::new(Behaviour::Right);
        let backends = [Arc::clone(&target.backend)];
        let mut config = config();
        config.policy = *policy;
        let engine = Engine::new(workload, &backends, Arc::clone(&target.pool), &config).unwrap();
        run(&engine, policy);
    }
}

/// Submits items, and checks their results.
fn run(engine: &Engine<Sum>, policy: &Policy) {
    let tickets: Vec<_> = (0..60).map(|n| engine.submit(item(n)).unwrap()).collect();
    for (ticket, number) in tickets.into_iter().zip(0..) {
        let found = ticket.wait().unwrap().result.unwrap();
        let sums: Vec<u32> = item(number).iter().map(|x| x + 7).collect();
        assert_eq!(found, sums, "{policy:?}");
    }
}

/// A library keeps the addresses that it was called with, so a replacement calls it again.
pub(crate) fn a_library_call_reads_what_was_replaced(target: &Target) {
    for policy in policies().iter().take(2 * target.rounds) {
        let (mut workload, _) = Sum::new(Behaviour::Right);
        workload.copies_base = true;
        let backends = [Arc::clone(&target.backend)];
        let mut config = config();
        config.policy = *policy;
        // A batch of one item, so that its numbers are the first.
        config.batch = [1].into();
        let engine = Engine::new(workload, &backends, Arc::clone(&target.pool), &config).unwrap();
        let mut tickets = Vec::new();
        for round in 0..12 {
            let write = |[.., base]: &[Buffer<u32>; 3], views: &mut ResidentViews<'_>| {
                views.take(*base).fill(round);
                Ok(())
            };
            engine.replace_resident(write).unwrap();
            let submitted = (0..round % 5).map(|number| engine.submit(item(number)).unwrap());
            tickets.extend(submitted.map(|ticket| (ticket, round)));
        }
        for (ticket, round) in tickets {
            let found = ticket.wait().unwrap();
            let expected = vec![round + 7; found.item.len()];
            assert_eq!(found.result.unwrap(), expected, "{policy:?}");
        }
    }
}

pub(crate) fn a_graph_that_is_made_calls_no_library(target: &Target) {
    let (workload, calls) = Sum::new(Behaviour::Right);
    let backends = [Arc::clone(&target.backend)];
    let engine = Engine::new(workload, &backends, Arc::clone(&target.pool), &config()).unwrap();
    run(&engine, &Policy::default());
    let before = calls.load(Relaxed);
    run(&engine, &Policy::default());
    assert_eq!(calls.load(Relaxed), before);
    assert_eq!(before > 0, target.backend.device().backend == "cuda");
}

pub(crate) fn a_library_call_that_fails_is_an_error_with_the_kernel(target: &Target) {
    let is_called = target.backend.device().backend == "cuda";
    for (behaviour, message) in [
        (Behaviour::Fails, "kernel copy_and_set: no work, as told"),
        (
            Behaviour::Panics,
            "kernel copy_and_set: it panicked: as told",
        ),
        (
            Behaviour::Nothing,
            "the library call gave its stream no work",
        ),
    ] {
        let (workload, _) = Sum::new(behaviour);
        let backends = [Arc::clone(&target.backend)];
        let built = Engine::new(workload, &backends, Arc::clone(&target.pool), &config());
        match (built, is_called) {
            (Err(error), true) => assert!(error.to_string().contains(message), "{error}"),
            (Ok(engine), false) => {
                let done = engine.submit(vec![1, 2]).unwrap().wait().unwrap();
                assert_eq!(done.result.unwrap(), [8, 9]);
            }
            (built, _) => panic!("built: {}", built.is_ok()),
        }
    }
}

/// A library that has to wait for its stream at its first call does so in the warm-up, as a capture refuses it.
pub(crate) fn a_warm_up_runs_outside_of_a_capture(target: &Target) {
    type Synchronize = unsafe extern "C" fn(u64) -> i32;
    // SAFETY: the driver's library runs only its own code.
    let driver = unsafe { Library::new("libcuda.so.1") }.ok().map(Arc::new);
    let is_called = target.backend.device().compute_capability.is_some();
    for policy in policies().iter().take(2 * target.rounds) {
        let (mut workload, _) = Sum::new(Behaviour::Right);
        let warm_ups = Arc::new(AtomicUsize::new(0));
        let (counted, driver) = (Arc::clone(&warm_ups), driver.clone());
        let warm_up = move |call: &mut LibraryCall<'_>| {
            counted.fetch_add(1, Relaxed);
            let driver = driver.as_ref().expect("there is a card");
            submit(call, driver)?;
            // SAFETY: this is the function's type, and the stream is that of the call.
            let ended = unsafe {
                let synchronize = driver.get::<Synchronize>(b"cuStreamSynchronize").unwrap();
                synchronize(call.stream())
            };
            match ended {
                0 => Ok(()),
                other => Err(Error::new(ErrorKind::Device, format!("{other}"))),
            }
        };
        if is_called {
            // SAFETY: as for the call, and it waits for its stream.
            workload.kernel = unsafe { workload.kernel.warm_up(warm_up) };
        }
        let backends = [Arc::clone(&target.backend)];
        let mut config = config();
        config.policy = *policy;
        let engine = Engine::new(workload, &backends, Arc::clone(&target.pool), &config).unwrap();
        run(&engine, policy);
        let has_graphs = is_called && policy.mode != Mode::Stream;
        // Two calls of each bucket in each slot, of which some have no batch.
        let most = if has_graphs { 2 * 2 * config.slots } else { 0 };
        let warm_ups = warm_ups.load(Relaxed);
        assert!(
            (usize::from(has_graphs)..=most).contains(&warm_ups),
            "{policy:?}: {warm_ups}"
        );
    }
}

pub(crate) fn a_library_call_is_captured_again_for_other_memory(target: &Target) {
    const LEN: usize = 50;
    let pool = Pool::new(Arc::clone(&target.backend), PoolConfig::development());
    let contents = [1000, 2000].map(|first| (first..first + LEN as u32).collect::<Vec<_>>());
    let memory = contents.each_ref().map(|contents| {
        let mut memory = pool.device::<u32>(LEN, "numbers").unwrap();
        memory.as_slice_mut().upload(contents).unwrap();
        memory
    });
    let (workload, _) = Sum::new(Behaviour::Right);
    let mut recorder = Recorder::new(&[LEN as u32]);
    let x = recorder.resident_buffer::<u32>("x", LEN);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    let z = recorder.batch_buffer::<u32>("z", LEN);
    let sizes = [(LEN as u32).into(), 7_u32.into()];
    let args = [&[x.into(), y.into(), z.into()], &sizes[..]].concat();
    recorder.call(&workload.kernel, &args);
    recorder.download(y);
    let buckets = Buckets::single(recorder.finish().unwrap());
    let buckets = buckets.with_resident(x, memory[0].view()).unwrap();
    for policy in policies().iter().take(target.rounds) {
        let buckets = Arc::new(buckets.clone());
        let mut ring =
            Ring::<usize>::new(&target.backend, &buckets, 2, policy, Wait::Spin).unwrap();
        for number in 0..8 {
            let mut slot = ring.acquire().unwrap();
            let mut bindings = slot.bindings(0).unwrap();
            let other = number / 3 % 2;
            bindings.bind_device(x, memory[other].view()).unwrap();
            slot.rebind(0, bindings).unwrap();
            let live = Extent::from([LEN as u32]);
            let submitted = ring.submit(slot, live, other);
            submitted.map_err(|failed| failed.error).unwrap();
            let done = ring.wait().unwrap();
            {
                let slot = done.as_ref().unwrap();
                assert_eq!(slot.read(y)[..LEN], contents[*slot.batch()], "{policy:?}");
            }
            assert!(ring.release(done).1.is_none());
        }
    }
}
