//! Lengths along the axes of a workload.

use crate::record::AXES_MAX;
use std::fmt;

/// A length along each axis of a workload; axes beyond the workload's are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extent([u32; AXES_MAX]);

impl<const N: usize> From<[u32; N]> for Extent {
    #[inline]
    fn from(lengths: [u32; N]) -> Self {
        const { assert!(N <= AXES_MAX) };
        let mut extent = [0; AXES_MAX];
        extent[..N].copy_from_slice(&lengths);
        Extent(extent)
    }
}

impl std::ops::Index<usize> for Extent {
    type Output = u32;

    #[inline]
    fn index(&self, axis: usize) -> &u32 {
        &self.0[axis]
    }
}

impl Extent {
    /// The lengths along all axes.
    #[inline]
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// The sum along each axis; `None` if one overflows.
    #[inline]
    #[must_use]
    pub fn checked_add(self, other: Extent) -> Option<Extent> {
        // A loop without branches, as this runs for each item: the compiler makes vector
        // instructions of it, but calls for each axis of `array::from_fn`.
        let (mut sums, mut overflows) = ([0; AXES_MAX], false);
        for ((sum, one), other) in sums.iter_mut().zip(self.0).zip(other.0) {
            let is_over;
            (*sum, is_over) = one.overflowing_add(other);
            overflows |= is_over;
        }
        (!overflows).then_some(Extent(sums))
    }

    /// The larger length along each axis.
    #[must_use]
    pub fn max(self, other: Extent) -> Extent {
        Extent(std::array::from_fn(|axis| self.0[axis].max(other.0[axis])))
    }

    /// The same lengths but for one axis.
    ///
    /// # Panics
    /// If `axis` is not below [`AXES_MAX`].
    #[must_use]
    pub fn with(mut self, axis: usize, length: u32) -> Extent {
        self.0[axis] = length;
        self
    }

    /// Half of each length, rounded down.
    #[must_use]
    pub(crate) fn half(self) -> Extent {
        Extent(self.0.map(|length| length / 2))
    }

    /// Raised to at least 1 along the axes that `capacity` has.
    #[must_use]
    pub(crate) fn at_least_one(self, capacity: Extent) -> Extent {
        Extent(std::array::from_fn(|axis| {
            self.0[axis].max(capacity.0[axis].min(1))
        }))
    }

    /// Whether it is within `capacity` along every axis.
    #[inline]
    #[must_use]
    pub fn fits(self, capacity: Extent) -> bool {
        let axes = self.0.iter().zip(capacity.0);
        axes.fold(true, |all, (&length, max)| all & (length <= max))
    }

    /// The first axis along which it exceeds `capacity`.
    #[inline]
    #[must_use]
    pub fn first_excess(self, capacity: Extent) -> Option<usize> {
        if self.fits(capacity) {
            return None;
        }
        (0..AXES_MAX).find(|&axis| self.0[axis] > capacity.0[axis])
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self
            .0
            .iter()
            .rposition(|&length| length != 0)
            .map_or(0, |last| last + 1);
        f.debug_list().entries(&self.0[..used]).finish()
    }
}
