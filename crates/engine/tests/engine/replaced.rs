//! Buffers that are replaced: versions that meet slots, buckets and loops in any order.

use crossbeam_channel::{Receiver, Sender, unbounded};
use rayon::ThreadPoolBuilder;
use std::future::{Future, IntoFuture};
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use tapeloop_engine::backend::{Backend, DeviceInfo, cpu::CpuBackend};
use tapeloop_engine::pipeline::{Close, Engine, EngineConfig, SubmitOptions, TimelineConfig, dot};
use tapeloop_engine::record::{Buffer, Image, Kernel, Recorder, TwinLaunch};
use tapeloop_engine::replay::{Fallback, Mode, Policy, Verify};
use tapeloop_engine::workload::{Extent, ReadViews, ResidentViews, Workload, WriteViews};
use tapeloop_engine::{Error, Result};
use tapeloop_sim::{SimBackend, SimOptions};

const TEXT: &str = r#"
extern "C" __global__ void mul(const unsigned* header, const unsigned* x, const unsigned* table, unsigned* y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) y[i] = table[0] * x[i];
}
"#;
/// An item whose result is read only when the test says so.
const STAYS: u32 = 77_777;

/// An item that is rejected.
const REJECTED: u32 = 99_999;

fn mul(launch: &mut TwinLaunch<'_>) {
    let (header, x, table): (&[u32], &[u32], &[u32]) =
        (launch.read(), launch.read(), launch.read());
    let y: &mut [u32] = launch.write();
    for (y, x) in y.iter_mut().zip(x).take(header[0] as usize) {
        *y = table[0].wrapping_mul(*x);
    }
}

/// Multiplies numbers with the first of a table.
struct Mul {
    /// Tells that an item stays, and waits until it may go on.
    gate: Option<(Sender<()>, Receiver<()>)>,
}

#[derive(Clone, Copy)]
struct Buffers {
    x: Buffer<u32>,
    y: Buffer<u32>,
    table: Buffer<u32>,
}

impl Workload for Mul {
    type Item = Vec<u32>;
    type Output = Vec<u32>;
    type Buffers = Buffers;
    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }
    fn extent(&self, item: &Vec<u32>) -> Result<Extent> {
        if item.first() == Some(&REJECTED) {
            return Err(Error::input("as told"));
        }
        Ok([item.len() as u32].into())
    }
    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        let kernel = Kernel::new("mul")
            .reads::<u32>("header")
            .reads::<u32>("x")
            .reads::<u32>("table")
            .writes::<u32>("y");
        // SAFETY: it touches what the header counts of `x` and `y`, and the first number of the table.
        let kernel = unsafe { kernel.code(&Image::cuda("mul.cu", TEXT)) }.twin(mul);
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        let table = recorder.replaceable_buffer("table", 4);
        recorder.upload(header);
        recorder.upload(x);
        let blocks = recorder.capacity(0).div_ceil(128);
        recorder.launch(
            &kernel,
            blocks,
            &[header.into(), x.into(), table.into(), y.into()],
        );
        recorder.download(y);
        Ok(Buffers { x, y, table })
    }
    fn fill_resident(&self, to: &Buffers, views: &mut ResidentViews<'_>) -> Result<()> {
        views.take(to.table)[0] = 1;
        Ok(())
    }
    fn write(
        &self,
        to: &Buffers,
        item: &Vec<u32>,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(to.x).copy_from_slice(item);
        Ok(())
    }
    fn read(
        &self,
        from: &Buffers,
        item: &Vec<u32>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<u32>> {
        if let Some((begin, go_on)) = &self.gate
            && item[0] == STAYS
        {
            let _ = begin.send(());
            let _ = go_on.recv();
        }
        Ok(views.get(from.y).to_vec())
    }
}

#[test]
fn a_workload_with_resident_buffers_is_drawn() {
    for backend in [
        Arc::new(CpuBackend::inline()) as Arc<dyn Backend>,
        Arc::new(SimBackend::new(SimOptions::seeded(1))),
    ] {
        let drawn = dot(&Mul { gate: None }, &backend, &EngineConfig::new([4]), None).unwrap();
        assert!(drawn.contains("mul"), "{drawn}");
    }
}

fn replace(engine: &Engine<Mul>, factor: u32) {
    engine
        .replace_resident(|buffers, views| {
            views.take(buffers.table)[0] = factor;
            Ok(())
        })
        .unwrap_or_else(|error| panic!("replace with {factor}: {error}"));
}

fn urgent() -> SubmitOptions {
    SubmitOptions {
        urgent: true,
        ..SubmitOptions::default()
    }
}

/// A batch that waits for the slot is overtaken by an urgent one of another bucket, which has newer contents. Each
/// has those of its submission.
fn overtaken(backend: Arc<dyn Backend>, mode: Mode) {
    let ((begin, began), (go_on, gone_on)) = (unbounded(), unbounded::<()>());
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let mut config = EngineConfig::new([4]);
    config.buckets = [[2], [4]].map(Extent::from).to_vec();
    (config.slots, config.waiting_batches_max) = (1, 20);
    config.policy = Policy::new(mode);
    let gate = Some((begin, gone_on));
    let engine = Engine::new(Mul { gate }, &[backend], pool, &config).unwrap();
    let first = engine.submit(vec![STAYS]).unwrap();
    engine.flush().unwrap();
    began.recv_timeout(Duration::from_secs(60)).unwrap();
    let normal = engine.submit(vec![5]).unwrap();
    replace(&engine, 10);
    let overtaking = engine.submit_with(vec![7, 8, 9], urgent()).unwrap();
    go_on.send(()).unwrap();
    assert_eq!(first.wait().unwrap().result.unwrap(), [STAYS]);
    let overtaking = overtaking.wait().unwrap().result;
    assert_eq!(overtaking.unwrap(), [70, 80, 90], "{mode:?}");
    let normal = normal.wait().unwrap().result;
    assert_eq!(normal.unwrap(), [5], "{mode:?}");
}

fn sim(seed: u64) -> Arc<dyn Backend> {
    Arc::new(SimBackend::new(SimOptions::seeded(seed)))
}

#[test]
fn a_batch_that_is_overtaken_has_the_contents_of_its_submission() {
    for mode in [Mode::Graph, Mode::Stream, Mode::Resident] {
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        overtaken(Arc::new(CpuBackend::new(Arc::new(pool))), mode);
        overtaken(sim(1), mode);
    }
}

/// Random items, replacements and settings on the simulated device.
fn storm(urgent_slots: usize) {
    let policies = Policy::combinations();
    let policies = policies.filter(|policy| urgent_slots == 0 || policy.mode != Mode::Resident);
    for (round, policy) in policies.enumerate().take(40) {
        let mut state = round as u64 * 7919 + 1;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
        let mut config = EngineConfig::new([12]);
        config.buckets = [[3], [6], [12]].map(Extent::from).to_vec();
        config.slots = 1 + urgent_slots + random(2) as usize;
        config.urgent_slots = urgent_slots;
        config.policy = policy;
        config.policy.ready_max = 1 + random(3) as usize;
        config.policy.warm_up = random(2) == 0;
        config.policy.fallback = [Fallback::Launches, policy.fallback][random(2) as usize];
        if random(2) == 0 {
            config.policy.verify = Verify::Every(NonZeroU32::new(3).unwrap());
        }
        if random(2) == 0 {
            config.timeline = Some(TimelineConfig::default());
        }
        config.waiting_batches_max = 6;
        let engine = Engine::new(Mul { gate: None }, &[sim(round as u64)], pool, &config).unwrap();
        let (mut factor, mut tickets) = (1, Vec::new());
        for number in 0..150_u32 {
            if random(4) == 0 {
                factor += 1;
                replace(&engine, factor);
            }
            let item = vec![number; 1 + random(12) as usize];
            let options = match random(3) {
                0 => urgent(),
                _ => SubmitOptions::default(),
            };
            let ticket = engine.submit_with(item.clone(), options).unwrap();
            let expected: Vec<u32> = item.iter().map(|x| x * factor).collect();
            tickets.push((ticket, expected));
        }
        for (ticket, expected) in tickets {
            let found = ticket.wait().unwrap().result;
            let found = found.unwrap_or_else(|error| panic!("{:?}: {error}", config.policy));
            assert_eq!(found, expected, "{:?}", config.policy);
        }
    }
}

#[test]
fn every_policy_gives_an_item_the_contents_of_its_submission() {
    storm(0);
}

#[test]
fn slots_for_urgent_items_give_an_item_the_contents_of_its_submission() {
    storm(1);
}

/// A device with as many loops as it may have replaces them one by one.
#[test]
fn a_loop_leaves_its_place_to_that_of_other_contents() {
    for fallback in [Fallback::None, Fallback::Launches] {
        let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
        let mut config = EngineConfig::new([16]);
        config.buckets = (1..=16).map(|size| Extent::from([size])).collect();
        config.slots = 4;
        config.policy = Policy::new(Mode::Resident);
        (config.policy.fallback, config.policy.ready_max) = (fallback, 64);
        let sim = Arc::new(SimBackend::new(SimOptions::seeded(1)));
        let backend = Arc::clone(&sim) as Arc<dyn Backend>;
        let engine = Engine::new(Mul { gate: None }, &[backend], pool, &config).unwrap();
        assert_eq!(sim.live().loops, 64);
        replace(&engine, 10);
        let found = engine.submit(vec![3; 2]).unwrap().wait().unwrap().result;
        assert_eq!(found.unwrap(), [30, 30], "{fallback:?}");
        assert_eq!(sim.live().loops, 64, "{fallback:?}");
    }
}

/// A waker that replaces the table, where it is woken.
struct Reload {
    engine: Arc<Engine<Mul>>,
    done: Sender<std::result::Result<(), String>>,
}

impl Wake for Reload {
    fn wake(self: Arc<Self>) {
        let replaced = self.engine.replace_resident(|buffers, views| {
            views.take(buffers.table)[0] = 5;
            Ok(())
        });
        let _ = self.done.send(replaced.map_err(|error| error.to_string()));
    }
}

/// A replacement closes the batch of a rejected item, whose answer wakes a task that replaces too.
#[test]
fn what_a_replacement_wakes_may_replace() {
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let mut config = EngineConfig::new([16]);
    (config.close, config.batch_wait) = (Close::Full, Duration::from_secs(3600));
    let engine = Engine::new(Mul { gate: None }, &[sim(1)], pool, &config).unwrap();
    let engine = Arc::new(engine);
    let (done, is_done) = unbounded();
    let reload = Reload {
        engine: Arc::clone(&engine),
        done,
    };
    let waker = Waker::from(Arc::new(reload));
    let ticket = engine.submit(vec![REJECTED]).unwrap();
    let mut answer = pin!(ticket.into_future());
    let polled = answer.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let outer = std::thread::spawn(move || replace(&engine, 4));
    let inner = is_done.recv_timeout(Duration::from_secs(60));
    inner.expect("no replacement waits for another").unwrap();
    outer.join().unwrap();
}
