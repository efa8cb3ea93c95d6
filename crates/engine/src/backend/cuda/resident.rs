//! A loop on the device and its host, which gives it batches.

use super::device_loop::DeviceLoop;
use super::graph::Template;
use super::loop_clock::BatchTimes;
use super::module::LoadedFunctions;
use super::pinned_words::{PinnedWords, loops_of};
use crate::backend::loops::LoopHandle;
use crate::backend::{Residency, host_ns};
use crate::error::{Context as _, Result};
use std::sync::Arc;
use std::time::Instant;

/// A loop on the device and its host. One batch is in flight at a time.
pub(super) struct ResidentLoop {
    device: DeviceLoop,
    handle: LoopHandle<Arc<PinnedWords>>,
    /// When the last batch was given to the loop, in the time of [`host_ns`].
    rung_ns: u64,
}

impl ResidentLoop {
    /// A loop that replays `template`. It is launched for its first batch.
    ///
    /// # Errors
    /// The errors of [`DeviceLoop::new`];
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if there are too many loops.
    pub(super) fn new(
        template: &Template,
        functions: &LoadedFunctions,
        residency: Residency,
    ) -> Result<ResidentLoop> {
        let context = template.context();
        let words = Arc::new(PinnedWords::new(context)?);
        let device = DeviceLoop::new(template, functions, residency, Arc::clone(&words))?;
        let loops = loops_of(context.device.handle());
        let handle = LoopHandle::new(&loops, words, residency)?;
        Ok(ResidentLoop {
            device,
            handle,
            rung_ns: 0,
        })
    }

    /// Gives a batch to the loop, and launches the loop if it has parked.
    ///
    /// # Safety
    /// The batch before is done. Until this one is, the memory that the graph accesses must live,
    /// and the host must not access what it writes.
    pub(super) unsafe fn ring(&mut self) -> Result<()> {
        // Taken before the batch can begin, as a bound of its times.
        let (now, device) = (Instant::now(), &mut self.device);
        self.rung_ns = host_ns(now);
        device.put_off_check(now);
        // SAFETY: the caller's promise.
        let launch = || unsafe { device.launch() };
        self.handle.ring(self.rung_ns, launch)
    }

    /// The moments of the last batch, which was seen done.
    pub(super) fn batch_times(&self) -> BatchTimes {
        let (begun_ns, ended_ns) = self.device.batch_ns();
        BatchTimes {
            rung_ns: self.rung_ns,
            begun_ns,
            ended_ns,
            seen_ns: host_ns(Instant::now()),
        }
    }

    /// Whether the last batch is done. It makes no driver call unless the loop is to be launched
    /// again, or the batch takes long.
    ///
    /// # Errors
    /// The error that ended the loop.
    pub(super) fn is_done(&mut self) -> Result<bool> {
        if self.handle.is_done() {
            return Ok(true);
        }
        let (now, device) = (Instant::now(), &mut self.device);
        // SAFETY: `ring` has the caller's promise for the batch.
        let launch = || unsafe { device.launch() };
        let launched = self.handle.launch_if_parked(host_ns(now), launch);
        launched.within(|| "launch the loop")?;
        self.device.check(now).map(|()| false)
    }
}

impl Drop for ResidentLoop {
    fn drop(&mut self) {
        self.handle.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::super::device_slot::CudaSlot;
    use super::super::device_slot::tests::{allocation, slot};
    use super::super::fake_driver::{self, FakeDriverUse};
    use crate::backend::{
        Allocation, DeviceSlot, GraphId, GraphSource, Node, Op, Residency, TIMESTAMPS, host_ns,
    };
    use crate::error::{Error, ErrorKind, ErrorScope};
    use crate::record::Access;
    use std::time::{Duration, Instant};

    /// A slot with a resident graph that sets an allocation of 64 bytes to seven.
    fn resident(session: &FakeDriverUse, residency: Residency) -> (CudaSlot, Allocation, GraphId) {
        fake_driver::state(|state| state.loops.loads_modules = true);
        let context = session.context();
        let allocation = allocation(&context);
        let mut slot = slot(&context).unwrap();
        slot.adopt(&allocation).unwrap();
        let op = sevens(&allocation);
        let nodes = [Node {
            op: &op,
            after: &[],
        }];
        // SAFETY: the memset is of an allocation that the slot adopted.
        let (graph, _) = unsafe { slot.make_graph(GraphSource::Explicit(&nodes), None) }.unwrap();
        assert!(slot.make_resident(graph, residency).unwrap());
        (slot, allocation, graph)
    }

    fn sevens(allocation: &Allocation) -> Op {
        Op::Memset {
            device: allocation.address(),
            byte: 7,
            bytes: 64,
        }
    }

    /// Sets the allocation's bytes, which are the host's here, and returns what they were. No work
    /// may be in flight.
    fn replace(allocation: &Allocation, byte: u8) -> [u8; 64] {
        // SAFETY: the caller's promise; the memory is as large and lives as long.
        unsafe { std::ptr::replace(allocation.address() as *mut [u8; 64], [byte; 64]) }
    }

    fn counts() -> (usize, usize) {
        fake_driver::state(|state| (state.loops.batches, state.loops.launches))
    }

    #[test]
    fn a_loop_runs_each_batch_once_and_is_launched_again_after_a_pause() {
        let session = FakeDriverUse::new();
        let residency = Residency {
            idle: Duration::from_millis(20),
            ..Residency::default()
        };
        let (mut slot, allocation, graph) = resident(&session, residency);
        for batch in 1..=50 {
            replace(&allocation, 0);
            if batch % 10 == 0 {
                std::thread::sleep(Duration::from_millis(40));
            }
            slot.launch_graph(graph).unwrap();
            slot.fence().unwrap();
            assert!(!slot.is_quiet() && allocation.lease(Access::Read).is_err());
            match batch % 2 {
                0 => slot.wait().unwrap(),
                _ => while !slot.is_done().unwrap() {},
            }
            assert!(slot.is_quiet() && slot.is_done().unwrap());
            assert!(allocation.lease(Access::Read).is_ok());
            assert_eq!(replace(&allocation, 0), [7; 64]);
            assert_eq!(counts().0, batch);
        }
        assert!((6..50).contains(&counts().1), "{} launches", counts().1);
    }

    #[test]
    fn the_times_of_a_batch_lie_between_the_host_s_moments_and_cost_no_call() {
        let session = FakeDriverUse::new();
        let (mut slot, _, graph) = resident(&session, Residency::default());
        let timings = || session.context().calls.snapshot().timings;
        let before = timings();
        let mut last = 0;
        for _ in 0..20 {
            let start = host_ns(Instant::now());
            slot.launch_graph(graph).unwrap();
            slot.wait().unwrap();
            let times = slot.timestamps().unwrap().map(|time| time.unwrap());
            let end = host_ns(Instant::now());
            assert!(times.is_sorted() && start <= times[0] && times[3] <= end);
            assert!(last <= times[0], "batches follow each other");
            last = times[3];
        }
        assert_eq!(timings(), before);
        slot.drop_graph(graph);
        assert_eq!(slot.timestamps().unwrap(), [None; TIMESTAMPS]);
    }

    #[test]
    fn loops_that_are_busy_for_too_long_are_launched_again() {
        let session = FakeDriverUse::new();
        let residency = Residency {
            idle: Duration::from_secs(10),
            busy: Duration::from_millis(2),
            ..Residency::default()
        };
        let (mut slot, _, graph) = resident(&session, residency);
        let mut batches = 0;
        while counts().1 < 5 {
            slot.launch_graph(graph).unwrap();
            slot.wait().unwrap();
            batches += 1;
        }
        assert_eq!(counts().0, batches);
    }

    #[test]
    fn other_work_of_the_slot_and_a_loop_s_batch_wait_for_each_other() {
        let session = FakeDriverUse::new();
        let (mut slot, allocation, graph) = resident(&session, Residency::default());
        slot.launch_graph(graph).unwrap();
        let zero = Op::Memset {
            device: allocation.address(),
            byte: 0,
            bytes: 64,
        };
        // SAFETY: the memset is of an allocation that the slot adopted.
        unsafe { slot.enqueue(&zero) }.unwrap();
        assert_eq!(counts().0, 1, "the batch is done");
        assert!(!slot.is_quiet());
        slot.launch_graph(graph).unwrap();
        slot.launch_graph(graph).unwrap();
        slot.fence().unwrap();
        slot.wait().unwrap();
        assert!(slot.is_quiet());
        assert_eq!(counts().0, 3);
        // The graph is fixed, and dropped with a batch in flight.
        let op = sevens(&allocation);
        // SAFETY: as above.
        assert!(unsafe { slot.set_params(graph, 0, &op) }.is_err());
        let nodes = [Node {
            op: &op,
            after: &[],
        }];
        // SAFETY: as above.
        let changed = unsafe { slot.make_graph(GraphSource::Explicit(&nodes), Some(graph)) };
        assert!(changed.is_err());
        slot.launch_graph(graph).unwrap();
        slot.drop_graph(graph);
        assert_eq!(counts().0, 4);
        assert!(slot.is_quiet() && slot.is_done().unwrap());
    }

    #[test]
    fn nothing_is_left_of_a_slot_that_is_dropped_with_a_batch_in_flight() {
        let session = FakeDriverUse::new();
        for _ in 0..20 {
            let (mut slot, allocation, graph) = resident(&session, Residency::default());
            slot.launch_graph(graph).unwrap();
            drop(slot);
            assert_eq!(replace(&allocation, 0), [7; 64]);
        }
        assert_eq!(fake_driver::state(|state| state.memory.len()), 0);
    }

    #[test]
    fn a_slot_that_was_given_up_never_counts_as_quiet() {
        let session = FakeDriverUse::new();
        let (mut slot, _, graph) = resident(&session, Residency::default());
        slot.launch_graph(graph).unwrap();
        let error = Error::new(ErrorKind::Deadline, "planted");
        slot.abandon(&error);
        slot.drop_graph(graph);
        assert!(!slot.is_quiet());
        assert_eq!(slot.is_done().unwrap_err().kind(), ErrorKind::Deadline);
        assert!(slot.launch_graph(graph).is_err());
    }

    #[test]
    fn a_graph_that_is_resident_or_was_changed_is_not_made_resident() {
        let session = FakeDriverUse::new();
        let (mut slot, allocation, graph) = resident(&session, Residency::default());
        let again = slot.make_resident(graph, Residency::default());
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Usage);
        let op = sevens(&allocation);
        let nodes = [Node {
            op: &op,
            after: &[],
        }];
        // SAFETY: the memset is of an allocation that the slot adopted.
        let (other, _) = unsafe { slot.make_graph(GraphSource::Explicit(&nodes), None) }.unwrap();
        // SAFETY: as above. The driver refuses the call, and may hold a part of the change.
        let _ = unsafe { slot.set_params(other, 0, &op) };
        assert!(slot.make_resident(other, Residency::default()).is_err());
    }

    #[test]
    fn a_fault_in_a_loop_is_seen_and_loses_the_device() {
        let session = FakeDriverUse::new();
        let (mut slot, _, graph) = resident(&session, Residency::default());
        fake_driver::state(|state| state.loops.faults = true);
        slot.launch_graph(graph).unwrap();
        slot.fence().unwrap();
        let error = slot.wait().unwrap_err();
        assert_eq!(error.code(), Some(719));
        assert_eq!(error.scope(), ErrorScope::Device);
        assert!(slot.launch_graph(graph).is_err());
        drop(slot);
        fake_driver::state(|state| state.waits_return = 0);
    }
}
