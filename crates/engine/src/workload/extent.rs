//! Lengths along the axes of a workload.

use crate::record::AXES_MAX;
use std::fmt;

/// [`AXES_MAX`] rounded up to whole vector registers, so that an extent is copied, added and compared
/// in two instructions each.
const LANES: usize = AXES_MAX.next_multiple_of(4);

/// A length along each axis of a workload; axes beyond the workload's are 0.
///
/// ```
/// use tapeloop_engine::Extent;
///
/// // 120 residues and 960 atoms.
/// let extent = Extent::from([120, 960]);
/// assert!(extent.fits(Extent::from([1000, 8000])));
/// assert_eq!(extent[1], 960);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(align(16))]
pub struct Extent([u32; LANES]);

impl<const N: usize> From<[u32; N]> for Extent {
    #[inline]
    fn from(lengths: [u32; N]) -> Self {
        const { assert!(N <= AXES_MAX) };
        let mut extent = [0; LANES];
        extent[..N].copy_from_slice(&lengths);
        Extent(extent)
    }
}

impl std::ops::Index<usize> for Extent {
    type Output = u32;

    #[inline]
    fn index(&self, axis: usize) -> &u32 {
        &self.as_slice()[axis]
    }
}

impl Extent {
    /// The lengths along all axes.
    #[inline]
    pub fn as_slice(&self) -> &[u32] {
        &self.0[..AXES_MAX]
    }

    /// The sum along each axis; `None` if one overflows.
    #[inline]
    #[must_use]
    pub fn checked_add(self, other: Extent) -> Option<Extent> {
        // The compiler makes vector instructions of this loop, which runs for each item. The highest
        // bit of `carries` is the carry of the addition.
        let (mut sums, mut carries) = ([0; LANES], 0);
        for ((sum, one), other) in sums.iter_mut().zip(self.0).zip(other.0) {
            *sum = one.wrapping_add(other);
            carries |= one & other | (one | other) & !*sum;
        }
        (carries >> 31 == 0).then_some(Extent(sums))
    }

    /// The sum along each axis, modulo 2^32.
    #[inline]
    pub(crate) fn wrapping_add(self, other: Extent) -> Extent {
        Extent(std::array::from_fn(|axis| {
            self.0[axis].wrapping_add(other.0[axis])
        }))
    }

    /// The difference along each axis; `None` if one is negative.
    pub(crate) fn checked_sub(self, other: Extent) -> Option<Extent> {
        let mut rest = self;
        for (rest, other) in rest.0.iter_mut().zip(other.0) {
            *rest = rest.checked_sub(other)?;
        }
        Some(rest)
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
        self.0[..AXES_MAX][axis] = length;
        self
    }

    /// Half of each length, rounded down.
    #[must_use]
    pub(crate) fn half(self) -> Extent {
        Extent(self.0.map(|length| length / 2))
    }

    /// Whether it is within `capacity` along every axis.
    #[inline]
    #[must_use]
    pub fn fits(self, capacity: Extent) -> bool {
        let mut exceeds = false;
        for axis in 0..LANES {
            exceeds |= self.0[axis] > capacity.0[axis];
        }
        !exceeds
    }

    /// Whether it reaches `lengths` along any axis.
    #[inline]
    pub(crate) fn reaches_any(self, lengths: Extent) -> bool {
        let mut reaches = false;
        for axis in 0..LANES {
            reaches |= self.0[axis] >= lengths.0[axis];
        }
        reaches
    }

    /// With the longest length in place of 0.
    pub(crate) fn unlimited_where_zero(self) -> Extent {
        let longest = |length| if length == 0 { u32::MAX } else { length };
        Extent(self.0.map(longest))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_overflows_along_any_axis_is_none() {
        let one = Extent::from([1; AXES_MAX]);
        for axis in 0..AXES_MAX {
            for (length, other) in [(u32::MAX, 1), (1 << 31, 1 << 31), (u32::MAX, u32::MAX)] {
                let [length, other] =
                    [length, other].map(|length| Extent::default().with(axis, length));
                assert_eq!(length.checked_add(other), None, "{length} + {other}");
            }
            let largest = Extent::default().with(axis, u32::MAX - 1);
            assert_eq!(largest.checked_add(one), Some(one.with(axis, u32::MAX)));
        }
    }

    #[test]
    fn an_extent_fits_if_it_exceeds_the_capacity_along_no_axis() {
        let capacity = Extent::from([1 << 31; AXES_MAX]);
        assert!(capacity.fits(capacity));
        for axis in 0..AXES_MAX {
            assert!(capacity.with(axis, 0).fits(capacity));
            let larger = Extent::default().with(axis, (1 << 31) + 1);
            assert_eq!(larger.first_excess(capacity), Some(axis));
        }
    }

    #[test]
    fn a_length_of_zero_limits_nothing() {
        let full = Extent::from([10, 0, 5]).unlimited_where_zero();
        assert!(!Extent::from([9, 1_000_000, 4]).reaches_any(full));
        assert!(Extent::from([10]).reaches_any(full));
        assert!(Extent::from([0, 0, 6]).reaches_any(full));
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn an_axis_beyond_the_last_has_no_length() {
        let _ = Extent::default()[AXES_MAX];
    }
}
