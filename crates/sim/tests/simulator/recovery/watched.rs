//! Vectors whose writing a test watches.

use super::*;

/// A [`Scale`] that calls a function with each vector before it writes the vector.
pub(super) struct Watched<F> {
    pub(super) scale: Scale,
    pub(super) before_write: F,
}

impl<F: Fn(&[f32]) -> Result<()> + Send + Sync + 'static> Workload for Watched<F> {
    type Item = Vec<f32>;
    type Output = (Vec<f32>, u32);
    type Buffers = <Scale as Workload>::Buffers;

    fn axes(&self) -> &'static [&'static str] {
        self.scale.axes()
    }
    fn extent(&self, item: &Vec<f32>) -> Result<Extent> {
        self.scale.extent(item)
    }
    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<Self::Buffers> {
        self.scale.record(recorder, device)
    }
    fn write(
        &self,
        buffers: &Self::Buffers,
        item: &Vec<f32>,
        offset: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        (self.before_write)(item)?;
        self.scale.write(buffers, item, offset, views)
    }
    fn read(
        &self,
        buffers: &Self::Buffers,
        item: &Vec<f32>,
        offset: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Self::Output> {
        self.scale.read(buffers, item, offset, views)
    }
}
