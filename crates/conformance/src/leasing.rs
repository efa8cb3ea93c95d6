//! [`Scale`] with results that borrow their slot.

use crate::scale::{Buffers, READ_FAILS, Scale, doubled};
use tapeloop_engine::pipeline::{Counters, Engine};
use tapeloop_engine::record::Recorder;
use tapeloop_engine::workload::{Extent, Leased, ReadViews, Workload, WriteViews};
use tapeloop_engine::{DeviceInfo, Error, Result};

/// The workload.
pub struct Leasing(
    /// What computes the results.
    pub Scale,
);

impl Workload for Leasing {
    type Item = Vec<f32>;
    type Output = Leased<f32>;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        self.0.axes()
    }

    fn extent(&self, item: &Vec<f32>) -> Result<Extent> {
        self.0.extent(item)
    }

    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<Buffers> {
        self.0.record(recorder, device)
    }

    fn write(
        &self,
        buffers: &Buffers,
        item: &Vec<f32>,
        offset: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        self.0.write(buffers, item, offset, views)
    }

    fn read(
        &self,
        buffers: &Buffers,
        item: &Vec<f32>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Leased<f32>> {
        let leased = views.lease(buffers.y);
        match item[0] {
            READ_FAILS => Err(Error::input("planted")),
            _ => Ok(leased),
        }
    }
}

/// The result of an item that has a batch for itself.
pub fn result(engine: &Engine<Leasing>, item: &[f32]) -> Leased<f32> {
    let done = engine.submit(item.to_vec()).unwrap().wait().unwrap();
    done.result.unwrap()
}

/// The results that were leased, and those that were copied.
pub fn counts(counters: &Counters) -> (u64, u64) {
    (counters.results_leased, counters.results_copied)
}

/// Panics unless each result is that of its item, doubled.
pub fn assert_right(results: &[Leased<f32>], items: &[Vec<f32>]) {
    for (result, item) in results.iter().zip(items) {
        assert_eq!(result[..], doubled(item));
    }
}
