//! What a pool may take, and what it keeps.

use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Limits of one kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes that the pool holds of the backend: in use, parked and
    /// cached together. With `None` the backend says when there is no more.
    pub bytes_max: Option<u64>,
    /// The most free allocations of one size that are kept for reuse; 0 keeps none.
    pub cached_max_per_class: usize,
    /// A free allocation that nobody took for this long is given back.
    pub idle_trim: Duration,
}

/// How a [`Pool`](super::Pool) behaves. The presets are starting points:
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
    /// Of device memory.
    pub device: Limits,
    /// Of pinned memory.
    pub pinned: Limits,
    /// Keeps the owner and the age of every buffer, for [`Pool::leaks`] and for
    /// errors; otherwise they know sums alone.
    ///
    /// [`Pool::leaks`]: super::Pool::leaks
    pub tracking: bool,
    /// Fills every buffer with this byte before it is handed out, whether its
    /// allocation is new or reused; otherwise the contents are whatever was there.
    pub fill: Option<u8>,
}

impl PoolConfig {
    /// For work on a program: limits that a mistake runs into before the machine
    /// does, and small caches that soon show what is held and not used.
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
        }
    }

    /// For service: nothing that was allocated once is allocated again while the
    /// load lasts. Pinned memory is kept longer, as it costs the most to get.
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
        }
    }

    /// For tests: tight limits, every allocation its own, and contents that no
    /// one takes for zeros: floats are NaN, and signed integers are -1.
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
        }
    }
}
