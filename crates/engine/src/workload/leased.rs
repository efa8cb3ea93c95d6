//! [`Leased`]: a result that borrows the memory of its batch's slot, or has a copy.

use super::{DevicePart, Extent};
use crate::error::Result;
use crate::record::{BufferId, Element};
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The host memory of a slot, which stays as it is while this exists.
pub(crate) trait HostMemory: Send + Sync {
    /// The host side of a download buffer.
    fn host(&self, buffer: BufferId) -> &[u8];
}

/// What the results of a batch may borrow.
pub(crate) trait LeaseSource: Sync {
    /// The memory of the batch's slot for one more result; `None` if that is to be copied. Counts
    /// the result.
    fn lend(&self) -> Option<Arc<dyn HostMemory>>;

    /// An item's part of a result buffer, in the memory of the batch's slot or copied. Counts the result.
    ///
    /// # Errors
    /// Those of a copy: see [`ReadViews::keep_on_device`](super::ReadViews::keep_on_device).
    ///
    /// # Panics
    /// If it is not a result buffer of the recording.
    fn lend_device(&self, buffer: BufferId, offset: Extent, extent: Extent) -> Result<DevicePart>;
}

/// A part of a download buffer that outlives its batch: [`ReadViews::lease`](super::ReadViews::lease)
/// borrows it from the memory of the batch's slot, or copies it.
///
/// Its elements never change. A clone borrows the same memory, or has the same copy.
///
/// Each dereference asks the slot where the memory is: take the slice once, before a loop over its
/// elements.
///
/// ```
/// use tapeloop_engine::*;
///
/// struct Twice(Kernel);
///
/// impl Workload for Twice {
///     type Item = Vec<f32>;
///     type Output = Leased<f32>;
///     type Buffers = [Buffer<f32>; 2];
///
///     fn read(
///         &self,
///         [_, y]: &[Buffer<f32>; 2],
///         _: &Vec<f32>,
///         _: Extent,
///         views: &ReadViews<'_>,
///     ) -> Result<Leased<f32>> {
///         Ok(views.lease(*y))
///     }
///     # fn axes(&self) -> &'static [&'static str] { &["elements"] }
///     # fn extent(&self, item: &Vec<f32>) -> Result<Extent> { Ok(Extent::from([item.len() as u32])) }
///     # fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Self::Buffers> {
///     #     let x = recorder.upload_buffer::<f32>("x", 0, 1);
///     #     let y = recorder.download_buffer::<f32>("y", 0, 1);
///     #     recorder.upload(x);
///     #     recorder.launch(&self.0, recorder.capacity(0).div_ceil(128), &[x.into(), y.into()]);
///     #     recorder.download(y);
///     #     Ok([x, y])
///     # }
///     # fn write(
///     #     &self, [x, _]: &[Buffer<f32>; 2], item: &Vec<f32>, _: Extent, views: &mut WriteViews<'_>,
///     # ) -> Result<()> {
///     #     views.take(*x).copy_from_slice(item);
///     #     Ok(())
///     # }
///     // The rest is that of any workload.
/// }
///
/// # fn main() -> Result<()> {
/// # let kernel = Kernel::new("twice").reads::<f32>("x").writes::<f32>("y").twin(|launch| {
/// #     let x = launch.read::<f32>();
/// #     launch.write::<f32>().iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
/// # });
/// # let pool = std::sync::Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
/// # let cpu = backend::cpu::CpuBackend::new(std::sync::Arc::clone(&pool));
/// # let backends: [std::sync::Arc<dyn Backend>; 1] = [std::sync::Arc::new(cpu)];
/// let engine = Engine::new(Twice(kernel), &backends, pool, &EngineConfig::new([1 << 20]))?;
/// let y = engine.submit(vec![1.0, 2.0])?.wait()?.result?;
/// // `y` has a slot for itself. This batch runs in another one.
/// let other = engine.submit(vec![3.0])?.wait()?.result?;
/// assert_eq!((&y[..], &other[..]), (&[2.0, 4.0][..], &[6.0][..]));
/// assert_eq!(engine.counters().results_leased, 1);
/// assert_eq!(engine.counters().results_copied, 1);
/// drop(engine);
/// assert_eq!(y[1], 4.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Leased<T: Element>(Memory<T>);

#[derive(Clone)]
enum Memory<T> {
    Slot {
        slot: Arc<dyn HostMemory>,
        buffer: BufferId,
        bytes: Range<usize>,
    },
    Copy(Arc<[T]>),
}

impl<T: Element> Leased<T> {
    /// The part `bytes` of `buffer`, of which `elements` are the elements.
    pub(super) fn new(
        source: &dyn LeaseSource,
        buffer: BufferId,
        bytes: Range<usize>,
        elements: &[T],
    ) -> Self {
        // An empty result holds no slot.
        if elements.is_empty() {
            return Leased(Memory::Copy(Arc::from(elements)));
        }
        Leased(match source.lend() {
            Some(slot) => Memory::Slot {
                slot,
                buffer,
                bytes,
            },
            None => Memory::Copy(Arc::from(elements)),
        })
    }
}

impl<T: Element> Deref for Leased<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Memory::Slot {
                slot,
                buffer,
                bytes,
            } => bytemuck::cast_slice(&slot.host(*buffer)[bytes.clone()]),
            Memory::Copy(elements) => elements,
        }
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for Leased<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
