//! Items whose results take more room than their extents.

use rayon::ThreadPoolBuilder;
use std::marker::PhantomData;
use std::sync::Arc;
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{EngineConfig, Packer, Pipeline, Ring, Wait};
use tapeloop_engine::record::{Buffer, HEADER_ITEMS, Kernel, Recorder, TwinLaunch, Uniform};
use tapeloop_engine::replay::Policy;
use tapeloop_engine::workload::{BatchItem, Completion, Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{Engine, Error, ErrorKind, Result};

/// Room for the divisors of a prime.
const ROOM: u32 = 2;

/// A number that asks for more room in each run, and one for which the workload panics.
const INSATIABLE: u32 = 13;
const PANICS: u32 = 17;

/// A number whose extent is an error.
const REJECTED: u32 = 0;

/// The divisors of numbers, in ascending order, as `T`.
struct Divisors<T = Vec<u32>>(Kernel, PhantomData<fn() -> T>);

/// What was read of a number.
struct Found {
    number: u32,
    divisors: Vec<u32>,
}

impl From<Found> for Vec<u32> {
    fn from(found: Found) -> Self {
        found.divisors
    }
}

/// For each number itself, the first index of its room, and the length.
struct Buffers {
    numbers: Buffer<u32>,
    counts: Buffer<u32>,
    divisors: Buffer<u32>,
}

fn divisors_of(number: u32) -> impl Iterator<Item = u32> {
    (1..=number).filter(move |divisor| number.is_multiple_of(*divisor))
}

fn twin(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let numbers: &[u32] = launch.read();
    let added = launch.read::<u32>()[0];
    let counts: &mut [u32] = launch.write();
    let divisors: &mut [u32] = launch.write();
    let numbers = numbers.chunks_exact(3).zip(counts);
    for (number, count) in numbers.take(header[HEADER_ITEMS] as usize) {
        let (first, room) = (number[1] as usize, number[2] as usize);
        *count = divisors_of(number[0]).count() as u32;
        if *count as usize <= room {
            let own = divisors[first..first + room].iter_mut();
            own.zip(divisors_of(number[0]))
                .for_each(|(own, it)| *own = it + added);
        }
    }
}

impl<T> Divisors<T> {
    fn new() -> Self {
        let kernel = Kernel::new("divisors")
            .reads::<u32>("header")
            .reads::<u32>("numbers")
            .reads::<u32>("added")
            .writes::<u32>("counts")
            .writes::<u32>("divisors");
        Divisors(kernel.twin(twin), PhantomData)
    }
}

impl<T: From<Found> + Send + 'static> Workload for Divisors<T> {
    type Item = u32;
    type Output = T;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["numbers", "divisors"]
    }

    fn extent(&self, number: &u32) -> Result<Extent> {
        match *number {
            REJECTED => Err(Error::new(ErrorKind::Capacity, "planted")),
            _ => Ok(Extent::from([1, ROOM])),
        }
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        let header = recorder.header();
        let numbers = recorder.upload_buffer("numbers", 0, 3);
        let added: Uniform<u32> = recorder.uniform("added", 0);
        let counts = recorder.download_buffer("counts", 0, 1);
        let divisors = recorder.download_buffer("divisors", 1, 1);
        recorder.upload(header);
        recorder.upload(numbers);
        let args = [
            header.into(),
            numbers.into(),
            added.into(),
            counts.into(),
            divisors.into(),
        ];
        recorder.launch(&self.0, 1, &args);
        recorder.download(counts);
        recorder.download(divisors);
        Ok(Buffers {
            numbers,
            counts,
            divisors,
        })
    }

    fn write(
        &self,
        buffers: &Buffers,
        item: &u32,
        offset: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        let room = views.extent()[1];
        views
            .take(buffers.numbers)
            .copy_from_slice(&[*item, offset[1], room]);
        Ok(())
    }

    fn read(&self, buffers: &Buffers, number: &u32, _: Extent, views: &ReadViews<'_>) -> Result<T> {
        let count = views.get(buffers.counts)[0] as usize;
        let room = views.get(buffers.divisors);
        assert_eq!(room.len(), views.extent()[1] as usize);
        let found = Found {
            number: *number,
            divisors: room[..count.min(room.len())].to_vec(),
        };
        Ok(found.into())
    }

    fn outgrown(
        &self,
        buffers: &Buffers,
        items: &mut dyn Iterator<Item = BatchItem<'_, u32>>,
        views: &ReadViews<'_>,
    ) -> Result<Vec<(usize, Extent)>> {
        let counts = views.get(buffers.counts);
        let needed = |(index, item): (usize, BatchItem<'_, u32>)| {
            assert_ne!(*item.item, PANICS, "planted");
            let count = match *item.item {
                INSATIABLE => item.extent[1] + 1,
                _ => counts[item.offset[0] as usize],
            };
            (count > item.extent[1]).then(|| (index, item.extent.with(1, count)))
        };
        Ok(items.enumerate().filter_map(needed).collect())
    }
}

fn cpu() -> Arc<dyn Backend> {
    Arc::new(CpuBackend::inline())
}

fn pool() -> Arc<rayon::ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

/// Batches of eight numbers, in which a number has room for at most 16 divisors.
fn config() -> EngineConfig {
    EngineConfig::new([8, 8 * ROOM])
}

#[test]
fn an_item_runs_again_with_the_room_that_it_needs() {
    let mut engine = Engine::new(<Divisors>::new(), &[cpu()], pool(), &config()).unwrap();
    let items = || (1..=200).filter(|item| *item != PANICS);
    let mut next = items();
    let mut sink = |done: Completion<Divisors>| {
        assert_eq!(next.next(), Some(done.item), "in order");
        match done.item {
            INSATIABLE => {
                let error = done.result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Capacity);
                assert!(error.to_string().contains("room"), "{error}");
            }
            // Of 18 divisors.
            180 => {
                let error = done.result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Capacity);
                assert!(error.to_string().contains("18 divisors"), "{error}");
            }
            item => {
                let expected: Vec<u32> = divisors_of(item).collect();
                assert_eq!(done.result.unwrap(), expected);
            }
        }
        Ok(())
    };
    engine.run(items(), &mut sink).unwrap();
    let outgrown = items().filter(|&item| item == INSATIABLE || divisors_of(item).count() > 2);
    assert_eq!(engine.counters().items_outgrown, outgrown.count() as u64);
}

#[test]
fn an_item_that_runs_again_has_the_uniforms_of_its_submission() {
    let engine = Engine::new(<Divisors>::new(), &[cpu()], pool(), &config()).unwrap();
    let submit = |number: u32| {
        let added = number / 3;
        engine
            .set_uniforms(|uniforms| uniforms.set("added", added))
            .unwrap();
        (number, added, engine.submit(number).unwrap())
    };
    let tickets: Vec<_> = (20..100).map(submit).collect();
    for (number, added, ticket) in tickets {
        let expected: Vec<u32> = divisors_of(number).map(|divisor| divisor + added).collect();
        assert_eq!(ticket.wait().unwrap().result.unwrap(), expected, "{number}");
    }
    assert!(engine.counters().items_outgrown > 40);
}

#[test]
fn a_workload_that_panics_over_the_room_fails_its_batch_alone() {
    let mut config = config();
    config.slots = 1;
    let mut pipeline = Pipeline::new(<Divisors>::new(), &[cpu()], pool(), &config).unwrap();
    for batch in [[12, REJECTED, PANICS], [12, REJECTED, 18]] {
        for item in batch {
            pipeline.submit(item).unwrap();
        }
        pipeline.flush();
        for _ in batch {
            let (_, done) = pipeline.wait().unwrap();
            if done.item == REJECTED {
                // It has its own error in both.
                assert_eq!(done.result.unwrap_err().kind(), ErrorKind::Capacity)
            } else if batch.contains(&PANICS) {
                assert_eq!(done.result.unwrap_err().kind(), ErrorKind::Input)
            } else {
                assert_eq!(done.result.unwrap().len(), 6)
            }
        }
    }
    assert_eq!(pipeline.counters().items_outgrown, 2);
}

#[test]
fn a_packer_rejects_what_has_outgrown_its_room() {
    let backend = cpu();
    let capacity = [Extent::from([8, 8 * ROOM])];
    let packer = Packer::new(<Divisors>::new(), &capacity, &backend, pool()).unwrap();
    let mut ring = Ring::new(
        &backend,
        &packer.buckets(),
        1,
        &Policy::default(),
        Wait::Spin,
    )
    .unwrap();
    let mut slot = ring.acquire().unwrap();
    let packed = packer.pack(&mut slot, vec![7, 12]).ok().unwrap();
    ring.submit(slot, packed.extent(), packed).unwrap();
    let done = ring.wait().unwrap().ok().unwrap();
    let mut results = packer.read(&done).into_iter();
    assert_eq!(results.next().unwrap().unwrap(), [1, 7]);
    let error = results.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity);
}

/// Divisors whose drop panics if there was room for a part of them alone.
struct Cut {
    divisors: Vec<u32>,
    is_part: bool,
}

impl Drop for Cut {
    fn drop(&mut self) {
        assert!(!self.is_part, "planted");
    }
}

impl From<Found> for Cut {
    fn from(Found { number, divisors }: Found) -> Self {
        let is_part = divisors.len() < divisors_of(number).count();
        Cut { divisors, is_part }
    }
}

#[test]
fn a_first_result_that_panics_when_it_is_dropped_harms_no_item() {
    let engine = Engine::new(Divisors::<Cut>::new(), &[cpu()], pool(), &config()).unwrap();
    for items in [[12, 2, 18], [3, 24, 5]] {
        for done in engine.submit_many(items).unwrap().wait().unwrap() {
            let expected: Vec<u32> = divisors_of(done.item).collect();
            assert_eq!(done.result.unwrap().divisors, expected);
        }
    }
    assert_eq!(engine.counters().items_outgrown, 3);
}
