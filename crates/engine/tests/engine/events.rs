//! Batches that wait for events of other code and record them, in the order in which the slot is
//! given its calls.

use crate::forward::{BackendHooks, SlotHooks};
use std::sync::{Arc, Mutex};
use tapeloop_conformance::program::{CAPACITIES, Program};
use tapeloop_engine::backend::contract::{DeviceSlot, GraphId};
use tapeloop_engine::backend::{Backend, ExternalEvent};
use tapeloop_engine::pipeline::{Filling, Ring, Slot, Wait};
use tapeloop_engine::replay::{Mode, Policy, Verify};
use tapeloop_engine::workload::Extent;
use tapeloop_engine::{ErrorKind, Result};
use tapeloop_sim::{SimBackend, SimOptions};

/// What a slot was given.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Given {
    WaitFor(u64),
    Graph,
    Fence,
    Record(u64),
}

/// A device whose slots have a stream and take events.
#[derive(Clone, Default)]
struct Streamed(Arc<Mutex<Vec<Given>>>);

impl Streamed {
    fn note(&self, given: Given) {
        self.0.lock().unwrap().push(given);
    }
}

impl BackendHooks for Streamed {
    type Slot = Streamed;

    fn slot(&self, _: &[Box<dyn DeviceSlot>]) -> Streamed {
        self.clone()
    }
}

impl SlotHooks for Streamed {
    fn stream(&self, _: &dyn DeviceSlot) -> Option<u64> {
        Some(1)
    }

    fn wait_for_event(&mut self, _: &mut dyn DeviceSlot, event: &ExternalEvent) -> Result<()> {
        self.note(Given::WaitFor(event.handle()));
        Ok(())
    }

    fn record_event(&mut self, _: &mut dyn DeviceSlot, event: &ExternalEvent) -> Result<()> {
        self.note(Given::Record(event.handle()));
        Ok(())
    }

    fn launch_graph(&mut self, inner: &mut dyn DeviceSlot, graph: GraphId) -> Result<()> {
        self.note(Given::Graph);
        inner.launch_graph(graph)
    }

    fn fence(&mut self, inner: &mut dyn DeviceSlot) -> Result<()> {
        self.note(Given::Fence);
        inner.fence()
    }
}

fn event(handle: u64) -> ExternalEvent {
    // SAFETY: no driver sees it.
    unsafe { ExternalEvent::from_raw(handle) }
}

fn ring(backend: &Arc<dyn Backend>, program: &Program, mode: Mode) -> Ring<()> {
    let policy = Policy {
        mode,
        verify: Verify::Off,
        ..Policy::default()
    };
    Ring::new(backend, &program.buckets, 1, &policy, Wait::Block).unwrap()
}

/// A slot with a header, and the extent to submit it with.
fn acquire(ring: &mut Ring<()>) -> (Slot<Filling>, Extent) {
    let mut slot = ring.acquire().unwrap();
    let live = Extent::from([CAPACITIES[0] as u32]);
    slot.write_header(live, 1);
    (slot, live)
}

#[test]
fn a_batch_waits_before_all_of_its_work_and_is_recorded_after_it() {
    let given = Streamed::default();
    let sim = Arc::new(SimBackend::new(SimOptions::seeded(1)));
    let backend = given.clone().around(sim);
    let program = Program::new();
    let mut ring = ring(&backend, &program, Mode::Graph);
    let (mut slot, live) = acquire(&mut ring);
    for handle in [1, 2] {
        slot.wait_for(event(handle)).unwrap();
        slot.signal(event(handle + 2)).unwrap();
    }
    let with_events = ring.submit(slot, live, ()).unwrap().calls;
    let expected = [
        Given::WaitFor(1),
        Given::WaitFor(2),
        Given::Graph,
        Given::Fence,
        Given::Record(3),
        Given::Record(4),
    ];
    assert_eq!(*given.0.lock().unwrap(), expected);
    let done = ring.wait().unwrap();
    ring.release(done);
    // The next batch has no events.
    given.0.lock().unwrap().clear();
    let (slot, live) = acquire(&mut ring);
    let without = ring.submit(slot, live, ()).unwrap().calls;
    assert_eq!(*given.0.lock().unwrap(), [Given::Graph, Given::Fence]);
    assert_eq!(with_events, without + 4);
    let done = ring.wait().unwrap();
    ring.release(done);
}

#[test]
fn events_are_refused_where_no_stream_has_the_batches() {
    let program = Program::new();
    let sim = || Arc::new(SimBackend::new(SimOptions::seeded(1))) as Arc<dyn Backend>;
    let streamed = Streamed::default().around(sim());
    let refused = [
        (sim(), Mode::Graph, "no stream"),
        (Arc::clone(&streamed), Mode::Resident, "a loop"),
    ];
    for (backend, mode, reason) in refused {
        let mut ring = ring(&backend, &program, mode);
        let (mut slot, _) = acquire(&mut ring);
        for refused in [slot.wait_for(event(1)), slot.signal(event(2))] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
