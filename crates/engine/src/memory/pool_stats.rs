//! Statistics of a pool.

/// Statistics of both kinds of memory, taken at the same moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Device memory.
    pub device: SpaceStats,
    /// Pinned memory.
    pub pinned: SpaceStats,
}

/// Statistics of one kind of memory. Sizes are those of allocations, unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceStats {
    /// Buffers alive.
    pub buffers: u64,
    /// Their size, as it was asked for.
    pub requested_bytes: u64,
    /// The size of their allocations.
    pub in_use_bytes: u64,
    /// The most that this ever was.
    pub in_use_bytes_peak: u64,
    /// Allocations whose buffer is gone, and which a graph, work in flight or a
    /// [`AllocationView`](crate::backend::AllocationView) still holds.
    pub parked_bytes: u64,
    /// Free allocations, kept for reuse.
    pub cached_bytes: u64,
    /// The largest of them.
    pub largest_free_bytes: u64,
    /// The most that [`SpaceStats::held_bytes`] ever was.
    pub held_bytes_peak: u64,
    /// The bytes of all buffers that were ever made, dropped ones included.
    pub total_bytes: u64,
    /// Buffers that got a free allocation.
    pub hits: u64,
    /// Buffers for which the backend was asked.
    pub misses: u64,
    /// Buffers that could not be had.
    pub refused: u64,
    /// Free allocations given back: they were idle, or others needed the room.
    pub trims: u64,
    /// All allocations given back, with those that were not kept in the first place.
    pub releases: u64,
}

impl SpaceStats {
    /// What is taken from the backend.
    pub fn held_bytes(&self) -> u64 {
        self.in_use_bytes + self.parked_bytes + self.cached_bytes
    }

    /// Buffers that ever were.
    pub fn allocations(&self) -> u64 {
        self.hits + self.misses
    }

    /// The part of all buffers that got a free allocation; 0 without any.
    pub fn hit_rate(&self) -> f64 {
        match self.allocations() {
            0 => 0.0,
            all => self.hits as f64 / all as f64,
        }
    }

    /// How little of the free memory is in its largest allocation: 1 - largest / free,
    /// 0 where nothing is free.
    pub fn fragmentation(&self) -> f64 {
        match self.cached_bytes {
            0 => 0.0,
            free => 1.0 - self.largest_free_bytes as f64 / free as f64,
        }
    }
}
