//! Settings of a pool.

use std::time::Duration;
use tapeloop_error::internal::LaterFields;

const MIB: u64 = 1 << 20;

/// Limits of one kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes that the pool takes from the backend, in use, parked and cached together.
    /// With `None` only the backend sets a limit.
    pub bytes_max: Option<u64>,
    /// The most free allocations of one size that are kept for reuse.
    pub cached_max_per_class: usize,
    /// How long a free allocation is kept for reuse before it is given back.
    pub idle_trim: Duration,
}

/// How a [`Pool`](super::Pool) behaves. Later versions may add fields: end a literal with
/// `..PoolConfig::production()`. The presets are starting points:
///
/// | | development | production | testing |
/// |---|---|---|---|
/// | device, most bytes | 2 GiB | no limit | 64 MiB |
/// | pinned, most bytes | 512 MiB | no limit | 16 MiB |
/// | free allocations of one size | 4 | 64 | none |
/// | device, given back after | 5 s | 1 min | at once |
/// | pinned, given back after | 5 s | 10 min | at once |
/// | tracking | on | off | on |
/// | filled with | | | `0xff` |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Limits of device memory.
    pub device: Limits,
    /// Limits of pinned memory.
    pub pinned: Limits,
    /// Whether to keep the owner and the age of every buffer, for [`Pool::leaks`] and for
    /// errors; without, both report sums only.
    ///
    /// [`Pool::leaks`]: super::Pool::leaks
    pub tracking: bool,
    /// The byte that fills every new buffer, whether its allocation is new or reused; with `None`
    /// the contents are unspecified.
    pub fill: Option<u8>,
    #[doc(hidden)]
    pub later: LaterFields,
}

impl PoolConfig {
    /// For development: the limits stop a leak before the machine runs out of memory, and small
    /// caches make unused memory visible soon.
    pub fn development() -> Self {
        let limits = |bytes_max| Limits {
            bytes_max: Some(bytes_max),
            cached_max_per_class: 4,
            idle_trim: Duration::from_secs(5),
        };
        PoolConfig {
            device: limits(2048 * MIB),
            pinned: limits(512 * MIB),
            tracking: true,
            fill: None,
            later: LaterFields::NONE,
        }
    }

    /// For production: allocations are kept for reuse while the load lasts. Pinned memory is kept
    /// longer, as it takes the most time to allocate.
    pub fn production() -> Self {
        let limits = |idle_s| Limits {
            bytes_max: None,
            cached_max_per_class: 64,
            idle_trim: Duration::from_secs(idle_s),
        };
        PoolConfig {
            device: limits(60),
            pinned: limits(600),
            tracking: false,
            fill: None,
            later: LaterFields::NONE,
        }
    }

    /// For tests: tight limits, no reuse, and contents that differ from zeros: floats are NaN, and
    /// signed integers are -1.
    pub fn testing() -> Self {
        let limits = |bytes_max| Limits {
            bytes_max: Some(bytes_max),
            cached_max_per_class: 0,
            idle_trim: Duration::ZERO,
        };
        PoolConfig {
            device: limits(64 * MIB),
            pinned: limits(16 * MIB),
            tracking: true,
            fill: Some(0xff),
            later: LaterFields::NONE,
        }
    }
}
