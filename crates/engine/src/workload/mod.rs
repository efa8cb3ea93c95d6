//! *Why*: the computation that an embedder brings, a [`Workload`].
//!
//! A workload measures an item ([`Workload::extent`]), records what a batch does
//! ([`Workload::record`]), writes an item into a batch and reads its result from the batch. The
//! engine forms the batches.

mod device_data;
mod extent;
mod leased;
mod views;

use crate::error::Result;
use crate::record::{DeviceInfo, Recorder};
use rayon::ThreadPool;

pub use device_data::{DeviceInputs, DeviceLeased};
pub(crate) use device_data::{DeviceOwner, DevicePart, InputTarget};
pub use extent::Extent;
pub use leased::Leased;
pub(crate) use leased::{HostMemory, LeaseSource};
pub use views::{ReadViews, ResidentViews, WriteViews};
pub(crate) use views::{ViewLayout, WriteParts};

/// A computation over a stream of items.
///
#[doc = "```"]
#[doc = include_str!("../../doc/double.rs")]
#[doc = "# fn main() -> Result<()> {"]
#[doc = "let config = tapeloop_engine::EngineConfig::new([1 << 20]);"]
#[doc = "let engine = tapeloop_engine::Engine::auto(Double::new()?, &config)?;"]
#[doc = "assert_eq!(engine.submit(vec![1.0, 2.0])?.wait()?.result?, [2.0, 4.0]);"]
#[doc = "# Ok(())"]
#[doc = "# }"]
#[doc = "```"]
pub trait Workload: Send + Sync + 'static {
    /// The input.
    type Item: Send + Sync + 'static;
    /// The result of an item.
    type Output: Send + 'static;
    /// The handles of the buffers that [`Workload::record`] declares.
    type Buffers: Send + Sync + 'static;

    /// Names of the axes that extents are measured along, at most
    /// [`AXES_MAX`](crate::record::AXES_MAX) of them.
    fn axes(&self) -> &'static [&'static str];

    /// The length of the item along each axis.
    ///
    /// # Errors
    /// An error or a panic rejects the item; its completion comes in the order of the items.
    fn extent(&self, item: &Self::Item) -> Result<Extent>;

    /// Records the commands of a batch that spans at most the recorder's capacity. The engine calls
    /// it at least once for each bucket; each call must declare and launch the same in the same order.
    /// If [`EngineConfig::buckets`](crate::EngineConfig::buckets) names none and the calls for smaller
    /// batches differ or fail, the engine has one bucket. Beyond the batch, upload buffers hold
    /// anything.
    ///
    /// # Errors
    /// An error or a panic fails the build of the engine.
    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<Self::Buffers>;

    /// Writes what the resident buffers hold at first, which are zeros otherwise. The engine calls
    /// it when it is built, after [`Workload::record`], and copies the contents to each device.
    ///
    /// ```
    /// # use tapeloop_engine::*;
    /// # use tapeloop_engine::workload::ResidentViews;
    /// # struct Model { weights: Vec<f32> }
    /// # impl Model {
    /// fn fill_resident(&self, weights: &Buffer<f32>, views: &mut ResidentViews<'_>) -> Result<()> {
    ///     views.take(*weights).copy_from_slice(&self.weights);
    ///     Ok(())
    /// }
    /// # }
    /// ```
    ///
    /// A supervised device gets them again when it is restarted. It has no resident buffers that
    /// batches update.
    ///
    /// # Errors
    /// An error or a panic fails the build of the engine.
    fn fill_resident(&self, buffers: &Self::Buffers, views: &mut ResidentViews<'_>) -> Result<()> {
        let _ = (buffers, views);
        Ok(())
    }

    /// Writes one item into its part of a batch. `offset` is the start of that part along each axis, so
    /// that the item can store offsets for kernels.
    ///
    /// The views hold data of an earlier batch: write all of them. If a batch is lost with a
    /// supervised device, its items are written again. An engine calls this on threads of its own, or
    /// on one that submits an item, which must not hold a lock that this takes.
    ///
    /// # Errors
    /// An error or a panic rejects this item alone. The engine then sets its views to zero, so
    /// kernels must treat zeros as a missing item.
    fn write(
        &self,
        buffers: &Self::Buffers,
        item: &Self::Item,
        offset: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()>;

    /// Names the device memory that the item's parts of the input buffers
    /// ([`Recorder::input_buffer`](crate::Recorder::input_buffer)) are copied from: every part that has a
    /// length. The default names none.
    ///
    /// The engine calls it after [`Workload::write`], where there are input buffers.
    ///
    /// ```
    /// # use tapeloop_engine::workload::{DeviceInputs, DeviceLeased};
    /// # use tapeloop_engine::*;
    /// # struct Decoder;
    /// # impl Decoder {
    /// // An item is the result of another engine on the same device.
    /// fn device_inputs(
    ///     &self,
    ///     x: &Buffer<f32>,
    ///     item: &DeviceLeased<f32>,
    ///     inputs: &mut DeviceInputs<'_>,
    /// ) -> Result<()> {
    ///     inputs.copy(*x, item.view())
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// An error, a panic, or a part with a length that nothing was named for rejects this item alone, and its
    /// parts of the input buffers and of the upload buffers are zeros.
    fn device_inputs(
        &self,
        buffers: &Self::Buffers,
        item: &Self::Item,
        inputs: &mut DeviceInputs<'_>,
    ) -> Result<()> {
        let _ = (buffers, item, inputs);
        Ok(())
    }

    /// Reads one item's result from its part of a batch.
    ///
    /// # Errors
    /// An error or a panic rejects this item alone.
    fn read(
        &self,
        buffers: &Self::Buffers,
        item: &Self::Item,
        offset: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Self::Output>;

    /// Reads the results of all items of a batch at once, one for each item in order, or returns
    /// `None` without looking at the items, as the default does: then the engine calls
    /// [`Workload::read`] for each of them.
    ///
    /// The parts of a batch's items lie side by side in each buffer, so one copy of a buffer can
    /// serve all items. `views` span all of them. `pool` has the engine's threads for this work, if there
    /// are several and the batch is large enough for them.
    ///
    /// # Errors
    /// An error rejects its item alone.
    ///
    /// # Panics
    /// A panic rejects all items of the batch, and so do more or fewer results than items.
    fn read_batch(
        &self,
        buffers: &Self::Buffers,
        items: &mut dyn Iterator<Item = BatchItem<'_, Self::Item>>,
        views: &ReadViews<'_>,
        pool: Option<&ThreadPool>,
    ) -> Option<Vec<Result<Self::Output>>> {
        let _ = (buffers, items, views, pool);
        None
    }

    /// The items of a batch whose results took more room than their extents gave them: each with its
    /// index among `items` and the extent that it needs. The default returns none, without looking
    /// at the items.
    ///
    /// This is for results whose size follows from the data, such as lists. Let an item's extent
    /// have room for a usual list, let the kernels write no more than fits and store the number that
    /// there would be, and return the extent that holds it here. The engine then runs the item again
    /// by itself, in a batch of that extent, and the result of that run counts. The first run's
    /// results are read and dropped. A [`Packer`](crate::pipeline::Packer) does not run items again:
    /// they fail with [`ErrorKind::Capacity`](crate::ErrorKind::Capacity).
    ///
    /// An item fails with [`ErrorKind::Capacity`](crate::ErrorKind::Capacity) if no batch holds the
    /// extent, or if it needs more again in its second run. `views` span all items.
    ///
    /// # Errors
    /// An error or a panic rejects all items of the batch.
    fn outgrown(
        &self,
        buffers: &Self::Buffers,
        items: &mut dyn Iterator<Item = BatchItem<'_, Self::Item>>,
        views: &ReadViews<'_>,
    ) -> Result<Vec<(usize, Extent)>> {
        let _ = (buffers, items, views);
        Ok(Vec::new())
    }
}

/// An item of a batch, and its part of it.
#[derive(Debug)]
pub struct BatchItem<'a, T> {
    /// The item as it was submitted.
    pub item: &'a T,
    /// The start of its part along each axis.
    pub offset: Extent,
    /// The length of its part along each axis.
    pub extent: Extent,
}

/// An item with its result.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
/// # use tapeloop_engine::*;
/// # fn main() -> Result<()> {
/// let engine = Engine::auto(Double::new()?, &EngineConfig::new([100]))?;
/// let Completion { item, result } = engine.submit(vec![1.0; 101])?.wait()?;
/// // The item is larger than a batch, and comes back.
/// assert_eq!(result.unwrap_err().kind(), ErrorKind::Capacity);
/// assert_eq!(item.len(), 101);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Completion<W: Workload> {
    /// The item as it was submitted.
    pub item: W::Item,
    /// Its result, or the error that rejected it.
    pub result: Result<W::Output>,
}

/// Receives completions in the order of the items.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/double.rs"));
/// # use tapeloop_engine::*;
/// # fn main() -> Result<()> {
/// /// Adds up the results.
/// struct Sum(f32);
///
/// impl Sink<Double> for Sum {
///     fn accept(&mut self, done: Completion<Double>) -> Result<()> {
///         self.0 += done.result?.iter().sum::<f32>();
///         Ok(())
///     }
/// }
///
/// let mut engine = Engine::auto(Double::new()?, &EngineConfig::new([1 << 20]))?;
/// let mut sum = Sum(0.0);
/// engine.run((1..=10).map(|number| vec![number as f32]), &mut sum)?;
/// assert_eq!(sum.0, 110.0);
/// # Ok(())
/// # }
/// ```
pub trait Sink<W: Workload> {
    /// Receives the next completion.
    ///
    /// # Errors
    /// An error ends the run.
    fn accept(&mut self, completion: Completion<W>) -> Result<()>;
}

impl<W: Workload, F: FnMut(Completion<W>) -> Result<()>> Sink<W> for F {
    fn accept(&mut self, completion: Completion<W>) -> Result<()> {
        self(completion)
    }
}
