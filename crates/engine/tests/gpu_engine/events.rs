//! Batches among the work of other code, which events order on the device.

use super::primary_context::{check, with_primary};
use super::target::card;
use std::ptr::null_mut;
use std::sync::Arc;
use tapeloop_conformance::chained::{Chained, Data};
use tapeloop_conformance::program::policies;
use tapeloop_engine::backend::{ExternalEvent, ThreadPoolBuilder};
use tapeloop_engine::internal::cudarc::driver::sys;
use tapeloop_engine::memory::{Pool, PoolConfig};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Ring, Wait};
use tapeloop_engine::record::{Kernel, Recorder, TwinLaunch};
use tapeloop_engine::replay::{Buckets, Mode};
use tapeloop_engine::workload::Extent;

const LEN: u32 = 1 << 12;

const TEXT: &str = r#"
extern "C" __global__ void copy(const unsigned* x, unsigned* y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 4096) y[i] = x[i];
}
"#;

fn copy(launch: &mut TwinLaunch<'_>) {
    let (x, y): (&[u32], &mut [u32]) = (launch.read(), launch.write());
    y.copy_from_slice(x);
}

/// A stream and two events of other code.
struct Foreign {
    stream: sys::CUstream,
    events: [sys::CUevent; 2],
}

impl Foreign {
    fn new() -> Foreign {
        let (mut stream, mut events) = (null_mut(), [null_mut(); 2]);
        let non_blocking = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        let untimed = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the places outlive the calls.
        unsafe {
            check(
                "cuStreamCreate",
                sys::cuStreamCreate(&mut stream, non_blocking),
            );
            for event in &mut events {
                check("cuEventCreate", sys::cuEventCreate(event, untimed));
            }
        }
        Foreign { stream, events }
    }

    /// Sets numbers at an address, when all earlier work of the stream is done.
    fn set(&self, address: u64, value: u32, len: usize) {
        // SAFETY: the caller's memory has so many numbers.
        let set = unsafe { sys::cuMemsetD32Async(address, value, len, self.stream) };
        check("cuMemsetD32Async", set);
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: they are destroyed once, here.
        unsafe {
            check("cuStreamSynchronize", sys::cuStreamSynchronize(self.stream));
            for event in self.events {
                check("cuEventDestroy", sys::cuEventDestroy_v2(event));
            }
            check("cuStreamDestroy", sys::cuStreamDestroy_v2(self.stream));
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn an_item_waits_for_other_code_that_writes_its_memory() {
    let target = card();
    let pool = Pool::new(Arc::clone(&target.backend), PoolConfig::development());
    // So large that the other code's work takes longer than the host does to submit a batch.
    let large = pool.device::<u32>(1 << 26, "large").unwrap();
    let buffer = pool.device::<f32>(8, "numbers").unwrap();
    let threads = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let config = EngineConfig::new([100, 100]);
    let backends = [Arc::clone(&target.backend)];
    let engine = Engine::new(Chained::last(3.0), &backends, threads, &config).unwrap();
    with_primary(|| {
        let foreign = Foreign::new();
        for value in (1..20_u16).map(f32::from) {
            for _ in 0..4 {
                foreign.set(large.view().address(), value.to_bits(), 1 << 26);
            }
            foreign.set(buffer.view().address(), value.to_bits(), 8);
            let [produced, _] = foreign.events;
            // SAFETY: the event and the stream are there until `foreign` is dropped.
            let recorded = unsafe { sys::cuEventRecord(produced, foreign.stream) };
            check("cuEventRecord", recorded);
            // SAFETY: as above.
            let item = unsafe { Data::after(buffer.view(), 8, produced as u64) };
            let done = engine.submit(item).unwrap().wait().unwrap();
            let Data::Host(found) = done.result.unwrap() else {
                panic!("the results are on the host");
            };
            assert_eq!(found, [3.0 * value; 8]);
        }
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn events_order_batches_and_the_work_of_other_code() {
    let target = card();
    let pool = Pool::new(Arc::clone(&target.backend), PoolConfig::development());
    let numbers = pool.device::<u32>(LEN as usize, "numbers").unwrap();
    // So large that the other code's work takes longer than the host does to submit a batch.
    let large = pool.device::<u32>(1 << 26, "large").unwrap();
    // SAFETY: it touches the 4,096 numbers of both buffers.
    let kernel = unsafe { Kernel::from_cuda("copy.cu", TEXT, "copy") };
    let kernel = kernel.unwrap().twin(copy);
    let mut recorder = Recorder::new(&[LEN]);
    let x = recorder.resident_buffer::<u32>("x", LEN as usize);
    let y = recorder.download_buffer::<u32>("y", 0, 1);
    recorder.launch(&kernel, LEN.div_ceil(128), &[x.into(), y.into()]);
    recorder.download(y);
    let buckets = Buckets::single(recorder.finish().unwrap());
    let buckets = Arc::new(buckets.with_resident(x, numbers.view()).unwrap());
    let policies = policies().into_iter();
    let mut policies = policies.filter(|policy| policy.mode != Mode::Resident);
    let mut tried = 0;
    while let Some(policy) = policies.next().filter(|_| tried < target.rounds) {
        tried += 1;
        let mut ring = Ring::<u32>::new(&target.backend, &buckets, 2, &policy, Wait::Spin).unwrap();
        with_primary(|| {
            let foreign = Foreign::new();
            for value in 1..20_u32 {
                for _ in 0..4 {
                    foreign.set(large.view().address(), value, 1 << 26);
                }
                foreign.set(numbers.view().address(), value, LEN as usize);
                let [produced, consumed] = foreign.events;
                // SAFETY: the events and the stream are there until `foreign` is dropped.
                let record = unsafe { sys::cuEventRecord(produced, foreign.stream) };
                check("cuEventRecord", record);
                let mut slot = ring.acquire().unwrap();
                // SAFETY: as above.
                unsafe {
                    slot.wait_for(ExternalEvent::from_raw(produced as u64))
                        .unwrap();
                    slot.signal(ExternalEvent::from_raw(consumed as u64))
                        .unwrap();
                }
                let submitted = ring.submit(slot, Extent::from([LEN]), value);
                submitted.map_err(|failed| failed.error).unwrap();
                // SAFETY: as above.
                let wait = unsafe { sys::cuStreamWaitEvent(foreign.stream, consumed, 0) };
                check("cuStreamWaitEvent", wait);
                // What a batch would read that did not come first.
                foreign.set(numbers.view().address(), u32::MAX, LEN as usize);
                let done = ring.wait().unwrap();
                let is_right = done.as_ref().is_ok_and(|slot| {
                    let read = &slot.read(y)[..LEN as usize];
                    read.iter().all(|number| number == slot.batch())
                });
                assert!(is_right, "round {value}: {policy:?}");
                assert!(ring.release(done).1.is_none());
            }
        });
    }
    assert!(tried > 0);
    drop((numbers, large, pool));
    target.finish();
}
