//! *Why*: what an embedder brings, a [`Workload`].
//!
//! A workload says how large an item is ([`Workload::extent`]), what a batch
//! does ([`Workload::record`]), and how one item is written into a batch and
//! read out of it. The engine forms the batches.

mod extent;
mod views;

use crate::error::Result;
use crate::record::{DeviceInfo, Recorder};

pub use extent::Extent;
pub(crate) use views::ViewLayout;
pub use views::{ReadViews, WriteViews};

/// A computation over a stream of items.
pub trait Workload: Send + Sync + 'static {
    /// What comes in.
    type Item: Send + Sync + 'static;
    /// What comes out for each item.
    type Output: Send + 'static;
    /// The handles of the buffers that [`Workload::record`] declares.
    type Buffers: Send + Sync + 'static;

    /// Names of the axes that extents are measured along, at most
    /// [`AXES_MAX`](crate::record::AXES_MAX) of them.
    fn axes(&self) -> &'static [&'static str];

    /// How much of a batch the item takes along each axis.
    ///
    /// # Errors
    /// An item without an extent is rejected with that error, in its turn.
    fn extent(&self, item: &Self::Item) -> Result<Extent>;

    /// Records what a batch of at most the recorder's capacity does. It is
    /// called once for each bucket, and declares and launches the same each
    /// time, in the same order.
    ///
    /// # Errors
    /// A recording that cannot be made fails the engine's build.
    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<Self::Buffers>;

    /// Writes one item into its part of a batch. `at` is where that part starts
    /// along each axis, so that the item can store offsets that kernels follow.
    ///
    /// The views hold what an earlier batch left: write all of them. An item is written
    /// again when its batch was lost with a supervised device.
    ///
    /// # Errors
    /// An error rejects this item alone, as does a panic; its views are zeroed,
    /// so kernels must take zeros for an item that is not there.
    fn write(
        &self,
        buffers: &Self::Buffers,
        item: &Self::Item,
        at: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()>;

    /// Reads one item's results out of its part of a batch.
    ///
    /// # Errors
    /// An error rejects this item alone, as does a panic.
    fn read(
        &self,
        buffers: &Self::Buffers,
        item: &Self::Item,
        at: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Self::Output>;
}

/// An item handed back with what became of it.
#[derive(Debug)]
pub struct Completion<W: Workload> {
    /// The item as it was submitted.
    pub item: W::Item,
    /// Its result, or why there is none.
    pub result: Result<W::Output>,
}

/// Takes results in the order of their items.
pub trait Sink<W: Workload> {
    /// Takes the next one.
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
