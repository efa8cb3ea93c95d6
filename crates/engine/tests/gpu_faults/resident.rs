//! A resident table of a card in a worker process, which every worker gets again.

use super::*;
use tapeloop_engine::backend::{AllocationView, Contents};
use tapeloop_engine::pipeline::{Ring, Wait};
use tapeloop_engine::replay::{Buckets, Policy};
use tapeloop_engine::workload::ResidentViews;

/// Elements of the table: 96 MiB, which go to a worker in two parts.
const TABLE: u32 = 24 << 20;

const SOURCE: &str = r#"
extern "C" __global__ void lookup(const unsigned* header, const unsigned* x, const unsigned* table, unsigned* y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= header[0]) return;
    if (x[i] == 2) asm volatile("trap;");
    y[i] = table[x[i] * 2654435761u % (24u << 20)];
}
"#;

fn entry(index: usize) -> u32 {
    (index as u32 + 1).wrapping_mul(40_503)
}

fn expected(x: u32) -> u32 {
    entry((x.wrapping_mul(2_654_435_761) % TABLE) as usize)
}

struct Lookup(Kernel);

#[derive(Clone, Copy)]
struct Buffers {
    x: Buffer<u32>,
    y: Buffer<u32>,
    table: Buffer<u32>,
}

impl Lookup {
    fn new() -> Self {
        let kernel = Kernel::new("lookup")
            .reads::<u32>("header")
            .reads::<u32>("x")
            .reads::<u32>("table")
            .writes::<u32>("y");
        // SAFETY: it touches the live part of its buffers and the table, and traps where an item
        // tells it to.
        Lookup(unsafe { kernel.code(&Image::cuda("lookup.cu", SOURCE)) })
    }
}

impl Workload for Lookup {
    type Item = u32;
    type Output = u32;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }
    fn extent(&self, _: &u32) -> Result<Extent> {
        Ok(Extent::from([1]))
    }
    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        let table = recorder.resident_buffer("table", TABLE as usize);
        recorder.upload(header);
        recorder.upload(x);
        let args = [header.into(), x.into(), table.into(), y.into()];
        recorder.launch(&self.0, recorder.capacity(0).div_ceil(128), &args);
        recorder.download(y);
        Ok(Buffers { x, y, table })
    }
    fn fill_resident(&self, to: &Buffers, views: &mut ResidentViews<'_>) -> Result<()> {
        let table = views.take(to.table).iter_mut().enumerate();
        table.for_each(|(index, of)| *of = entry(index));
        Ok(())
    }
    fn write(&self, to: &Buffers, item: &u32, _: Extent, views: &mut WriteViews<'_>) -> Result<()> {
        views.take(to.x)[0] = *item;
        Ok(())
    }
    fn read(&self, from: &Buffers, _: &u32, _: Extent, views: &ReadViews<'_>) -> Result<u32> {
        Ok(views.get(from.y)[0])
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_ring_reads_its_table_again_from_a_revived_worker() {
    let _turn = CARD.lock();
    let worker = worker();
    let worker = Arc::new(worker);
    let backend: Arc<dyn Backend> = worker.clone();
    let table: Vec<u32> = (0..TABLE as usize).map(entry).collect();
    let contents: Arc<Contents> = Arc::new(bytemuck::cast_slice::<u32, u8>(&table).to_vec());
    let mut recorder = Recorder::new(&[BATCH]);
    let buffers = Lookup::new()
        .record(&mut recorder, backend.device())
        .unwrap();
    let memory = backend.allocate_filled(&contents).unwrap();
    let view = AllocationView::new(&memory, 0, memory.bytes()).unwrap();
    let buckets = Buckets::single(recorder.finish().unwrap());
    let buckets = Arc::new(buckets.with_resident(buffers.table, view).unwrap());
    let policy = Policy::new(Mode::Graph);
    let mut ring = Ring::<u32>::new(&backend, &buckets, 2, &policy, Wait::Spin).unwrap();
    let mut lost = None;
    let start = Instant::now();
    for number in 0.. {
        if lost.is_some_and(|lost| number > lost + 10) {
            break;
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "no batch is lost"
        );
        if number == 10 {
            let process = worker.process_id().unwrap().to_string();
            let status = Command::new("kill").args(["-9", &process]).status();
            assert!(status.unwrap().success());
        }
        let live = Extent::from([1]);
        let mut slot = ring.acquire().unwrap();
        slot.write_header(live, 1);
        slot.write(buffers.x)[0] = 10 + number;
        let finished = match ring.submit(slot, live, number) {
            Ok(_) => ring.wait().unwrap(),
            Err(failed) => Err(failed),
        };
        match &finished {
            Ok(slot) => assert_eq!(slot.read(buffers.y)[0], expected(10 + number)),
            Err(_) => {
                assert!(lost.is_none());
                assert!(backend.revive().unwrap());
                lost = Some(number);
            }
        }
        ring.release(finished);
    }
}
