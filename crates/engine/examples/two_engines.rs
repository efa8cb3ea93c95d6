//! Two engines with different workloads on one device at the same time: one squares numbers, the other
//! adds up the numbers of each item.
//!
//! Both take slots, streams and graphs of the same backend. Their batches overlap on the device, and a
//! failure of one item or batch stays in its engine. The device runs what it is given first, so
//! smaller batches of one engine shorten the wait of the other.
//!
//! ```sh
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example two_engines   # a GPU, if there is one
//! ```

use std::sync::Arc;
use std::thread;
use tapeloop_engine::backend::{Choice, ThreadPoolBuilder, select};
use tapeloop_engine::*;

const ITEMS: u32 = 20_000;

const TEXT: &str = r#"
extern "C" __global__ void square(const unsigned* header, const unsigned* x, unsigned* y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0])
        y[i] = x[i] * x[i];
}

extern "C" __global__ void sum(const unsigned* header, const unsigned* item, const unsigned* x,
                               unsigned* sums /* updated */)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0] && item[i] < header[1])
        atomicAdd(&sums[item[i]], x[i]);
}
"#;

fn square(launch: &mut TwinLaunch<'_>) {
    let len = launch.read::<u32>()[0] as usize;
    let x = &launch.read::<u32>()[..len];
    for (y, x) in launch.write::<u32>().iter_mut().zip(x) {
        *y = x.wrapping_mul(*x);
    }
}

fn sum(launch: &mut TwinLaunch<'_>) {
    let len = launch.read::<u32>()[0] as usize;
    let (item, x) = (launch.read::<u32>(), launch.read::<u32>());
    let sums = launch.write::<u32>();
    for (item, x) in item.iter().zip(x).take(len) {
        sums[*item as usize] = sums[*item as usize].wrapping_add(*x);
    }
}

struct Squares(Kernel);

impl Workload for Squares {
    type Item = Vec<u32>;
    type Output = Vec<u32>;
    type Buffers = [Buffer<u32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, item: &Vec<u32>) -> Result<Extent> {
        Ok([item.len() as u32].into())
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<[Buffer<u32>; 2]> {
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        recorder.upload(header);
        recorder.upload(x);
        let blocks = recorder.capacity(0).div_ceil(128);
        recorder.launch(&self.0, blocks, &[header.into(), x.into(), y.into()]);
        recorder.download(y);
        Ok([x, y])
    }

    fn write(
        &self,
        [x, _]: &[Buffer<u32>; 2],
        item: &Vec<u32>,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*x).copy_from_slice(item);
        Ok(())
    }

    fn read(
        &self,
        [_, y]: &[Buffer<u32>; 2],
        _: &Vec<u32>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<u32>> {
        Ok(views.get(*y).to_vec())
    }
}

struct Sums(Kernel);

impl Workload for Sums {
    type Item = Vec<u32>;
    type Output = u32;
    /// For each number its item in the batch, the numbers, and the sum of each item.
    type Buffers = [Buffer<u32>; 3];

    fn axes(&self) -> &'static [&'static str] {
        &["numbers", "items"]
    }

    fn extent(&self, item: &Vec<u32>) -> Result<Extent> {
        Ok([item.len() as u32, 1].into())
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<[Buffer<u32>; 3]> {
        let header = recorder.header();
        let item = recorder.upload_buffer("item", 0, 1);
        let x = recorder.upload_buffer("x", 0, 1);
        let sums = recorder.download_buffer("sums", 1, 1);
        recorder.upload(header);
        recorder.upload(item);
        recorder.upload(x);
        recorder.memset(sums, 0);
        let blocks = recorder.capacity(0).div_ceil(128);
        let args = [header.into(), item.into(), x.into(), sums.into()];
        recorder.launch(&self.0, blocks, &args);
        recorder.download(sums);
        Ok([item, x, sums])
    }

    fn write(
        &self,
        [item, x, _]: &[Buffer<u32>; 3],
        numbers: &Vec<u32>,
        offset: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*item).fill(offset[1]);
        views.take(*x).copy_from_slice(numbers);
        Ok(())
    }

    fn read(
        &self,
        [.., sums]: &[Buffer<u32>; 3],
        _: &Vec<u32>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<u32> {
        Ok(views.get(*sums)[0])
    }
}

/// The numbers of an item.
fn numbers(item: u32) -> Vec<u32> {
    (0..item % 100).map(|number| item + number).collect()
}

/// Runs both engines on one device, and returns how many items each has computed.
pub(crate) fn run(choice: Choice) -> Result<[u64; 2]> {
    let pool = ThreadPoolBuilder::new().build();
    let pool = pool.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
    let pool = Arc::new(pool);
    let backend = select(choice, &pool)?.backend;
    // SAFETY: each touches the first `header[0]` elements of its buffers, and `sum` the first
    // `header[1]` sums, which the engine keeps within their capacity.
    let [squares, sums] =
        ["square", "sum"].map(|name| unsafe { Kernel::from_cuda("two.cu", TEXT, name) });
    let (squares, sums) = (Squares(squares?.twin(square)), Sums(sums?.twin(sum)));
    let backends = [backend];
    let config = EngineConfig::new([1 << 18]);
    let squares = Engine::new(squares, &backends, Arc::clone(&pool), &config)?;
    let config = EngineConfig::new([1 << 18, 1 << 12]);
    let sums = Engine::new(sums, &backends, pool, &config)?;

    thread::scope(|scope| {
        let squaring = scope.spawn(|| -> Result<()> {
            for done in squares.submit_many((0..ITEMS).map(numbers))?.wait()? {
                let expected = done.item.iter().map(|x| x.wrapping_mul(*x));
                assert!(done.result?.into_iter().eq(expected));
            }
            Ok(())
        });
        for done in sums.submit_many((0..ITEMS).map(numbers))?.wait()? {
            let expected = done.item.iter().fold(0_u32, |sum, x| sum.wrapping_add(*x));
            assert_eq!(done.result?, expected);
        }
        squaring.join().expect("it does not panic")
    })?;
    println!("on {}:", squares.device().name);
    let (of_squares, of_sums) = (squares.counters(), sums.counters());
    for (name, counters) in [("squares", of_squares), ("sums", of_sums)] {
        let (items, batches) = (counters.items_done, counters.batches);
        let ms = counters.compute_ns as f64 / 1e6;
        println!("  {name}: {items} items, all right, in {batches} batches, {ms:.1} ms in flight");
    }
    Ok([of_squares.items_done, of_sums.items_done])
}

pub(crate) fn main() -> Result<()> {
    run(Choice::Auto).map(drop)
}
