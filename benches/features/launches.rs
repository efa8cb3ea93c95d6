//! Times every launch: waits for it before the next.

use crate::forward::{BackendHooks, SlotHooks};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tapeloop::backend::Backend;
use tapeloop::backend::contract::{Built, DeviceSlot, FunctionId, GraphId, GraphSource, Op};
use tapeloop::record::Kernel;
use tapeloop::{Error, Result};

/// What launches took so far, by kernel.
#[derive(Default)]
pub(crate) struct Launches(Mutex<BTreeMap<u32, (String, Duration)>>);

impl Launches {
    /// The kernels that were launched.
    pub(crate) fn kernels(&self) -> Vec<String> {
        let launches = self.0.lock().unwrap();
        let ran = launches.values().filter(|(_, time)| !time.is_zero());
        let mut names: Vec<String> = ran.map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The time of all launches of a kernel.
    pub(crate) fn time(&self, kernel: &str) -> Duration {
        let launches = self.0.lock().unwrap();
        let own = launches.values().filter(|(name, _)| name == kernel);
        own.map(|(_, time)| *time).sum()
    }
}

/// Times every launch of a backend.
#[derive(Clone)]
pub(crate) struct Timing(pub(crate) Arc<Launches>);

impl BackendHooks for Timing {
    type Slot = Timing;

    fn slot(&self, _: &[Box<dyn DeviceSlot>]) -> Timing {
        self.clone()
    }

    fn load(&self, inner: &dyn Backend, kernel: &Kernel) -> Result<FunctionId> {
        let function = inner.load(kernel)?;
        let mut launches = self.0.0.lock().unwrap();
        let new = || (kernel.name().to_owned(), Duration::ZERO);
        launches.entry(function.0).or_insert_with(new);
        Ok(function)
    }
}

impl SlotHooks for Timing {
    unsafe fn enqueue(&mut self, inner: &mut dyn DeviceSlot, op: &Op) -> Result<()> {
        let start = Instant::now();
        // SAFETY: the caller keeps the same contract.
        unsafe { inner.enqueue(op) }?;
        inner.wait()?;
        if let Op::Launch { function, .. } = op {
            let mut launches = self.0.0.lock().unwrap();
            let (_, time) = launches.get_mut(&function.0).expect("loaded before");
            *time += start.elapsed();
        }
        Ok(())
    }

    unsafe fn make_graph(
        &mut self,
        _: &mut dyn DeviceSlot,
        _: GraphSource<'_>,
        _: Option<GraphId>,
    ) -> Result<(GraphId, Built)> {
        Err(Error::usage("launches are timed in stream mode"))
    }
}
