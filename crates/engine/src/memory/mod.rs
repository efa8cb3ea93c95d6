//! Memory of an embedder, apart from the engine's arenas.
//!
//! A [`Pool`] lends typed buffers in device and pinned memory, and keeps the allocations of dropped
//! buffers for reuse. There are four sizes per doubling, so an allocation is less than a quarter
//! larger than requested.
//!
//! ```
//! use std::sync::Arc;
//! use tapeloop_engine::backend::{Choice, ThreadPoolBuilder, select};
//! use tapeloop_engine::memory::{Pool, PoolConfig};
//!
//! # fn main() -> tapeloop_engine::Result<()> {
//! let threads = Arc::new(ThreadPoolBuilder::new().build().unwrap());
//! let backend = select(Choice::Auto, &threads)?.backend;
//! let pool = Pool::new(backend, PoolConfig::development());
//!
//! let mut staged = pool.pinned::<f32>(100, "reader")?;
//! staged.write()?.fill(1.5);
//! let mut points = pool.device::<f32>(1000, "model")?;
//! points.slice_mut(200..300)?.copy_from(staged.as_slice())?;
//!
//! let mut host = [0.0; 2];
//! points.slice(298..300)?.download(&mut host)?;
//! assert_eq!(host, [1.5, 1.5]);
//!
//! drop(staged);
//! let report = pool.leaks();
//! assert_eq!((report.buffers(), report.bytes()), (1, 4096));
//! assert!(report.to_string().contains("model"));
//! # Ok(())
//! # }
//! ```
//!
//! # Slices borrow their buffer
//!
//! ```
//! # use tapeloop_engine::memory::Pool;
//! fn last(pool: &Pool) -> tapeloop_engine::Result<f32> {
//!     let buffer = pool.device::<f32>(16, "mine")?;
//!     let part = buffer.slice(15..)?;
//!     let mut host = [0.0];
//!     part.download(&mut host)?;
//!     drop(buffer);
//!     Ok(host[0])
//! }
//! ```
//!
//! With the last two steps exchanged, it does not compile:
//!
//! ```compile_fail,E0505
//! # use tapeloop_engine::memory::Pool;
//! fn last(pool: &Pool) -> tapeloop_engine::Result<f32> {
//!     let buffer = pool.device::<f32>(16, "mine")?;
//!     let part = buffer.slice(15..)?;
//!     let mut host = [0.0];
//!     drop(buffer);
//!     part.download(&mut host)?;
//!     Ok(host[0])
//! }
//! ```
//!
//! A part of a buffer cannot be read while another part is borrowed to be written:
//!
//! ```compile_fail,E0502
//! # use tapeloop_engine::memory::DeviceBuffer;
//! fn shift(buffer: &mut DeviceBuffer<f32>) -> tapeloop_engine::Result<()> {
//!     let mut to = buffer.slice_mut(8..)?;
//!     to.copy_from(buffer.slice(..8)?)
//! }
//! ```
//!
//! [`SliceMut::split_at`] allows it:
//!
//! ```
//! # use tapeloop_engine::memory::DeviceBuffer;
//! fn shift(buffer: &mut DeviceBuffer<f32>) -> tapeloop_engine::Result<()> {
//!     let (from, mut to) = buffer.as_slice_mut().split_at(8)?;
//!     to.copy_from(from.as_slice())
//! }
//! ```
//!
//! # Buffers that graphs run on
//!
//! A recording's `Bindings` take [`Owned::view`] and [`Slice::view`]. A view holds the allocation,
//! and so do a graph and work in flight. If one of them still holds the allocation of a dropped
//! buffer, that allocation is *parked*: the pool counts it as held, and does not reuse it before
//! the last holder is dropped.

mod buffer;
mod config;
mod leaks;
mod pool;
mod pool_stats;
mod size_class;
mod slice;
mod store;

pub use crate::backend::allocation::{ReadGuard, WriteGuard};
pub use buffer::{Device, DeviceBuffer, MemorySpace, Owned, Pinned, PinnedBuffer};
pub use config::{Limits, PoolConfig};
pub use leaks::{LeakLine, LeakReport};
pub use pool::Pool;
pub use pool_stats::{PoolStats, SpaceStats};
pub use slice::{Slice, SliceMut};

/// A part of a [`DeviceBuffer`].
pub type DeviceSlice<'a, T> = Slice<'a, T, Device>;
/// A mutable part of a [`DeviceBuffer`].
pub type DeviceSliceMut<'a, T> = SliceMut<'a, T, Device>;
/// A part of a [`PinnedBuffer`].
pub type PinnedSlice<'a, T> = Slice<'a, T, Pinned>;
/// A mutable part of a [`PinnedBuffer`].
pub type PinnedSliceMut<'a, T> = SliceMut<'a, T, Pinned>;
