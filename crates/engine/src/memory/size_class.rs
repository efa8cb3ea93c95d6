//! Size classes of allocations.

use crate::backend::ALIGN_BYTES;

/// The smallest allocation in bytes: the driver aligns allocations to it, so less saves nothing.
const BYTES_MIN: usize = ALIGN_BYTES;

/// Sizes per doubling. An allocation above the smallest size is less than a quarter larger than
/// requested.
const STEPS: usize = 4;

/// The largest step in bytes: from 8 MiB on, sizes are multiples of the driver's pages, and the
/// wasted share shrinks with the size.
const STEP_BYTES_MAX: usize = 2 << 20;

/// The size in bytes of the allocation for a request of `bytes` bytes; `None` if it exceeds the
/// address space. An allocation is reused only for requests of its own size.
pub(super) fn allocation_bytes(bytes: usize) -> Option<usize> {
    if bytes <= BYTES_MIN {
        return Some(BYTES_MIN);
    }
    let below = 1 << (bytes - 1).ilog2();
    bytes.checked_next_multiple_of((below / STEPS).min(STEP_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_sizes_a_doubling_and_then_whole_pages() {
        let small: Vec<_> = [1, 256, 257, 320, 321, 448, 449, 512, 513]
            .map(allocation_bytes)
            .into();
        let expected = [256, 256, 320, 320, 384, 448, 512, 512, 640].map(Some);
        assert_eq!(small, expected);
        let mib = 1 << 20;
        let large = [8 * mib, 8 * mib + 1, 16 * mib + 1, 1024 * mib + 1].map(allocation_bytes);
        assert_eq!(large, [8, 10, 18, 1026].map(|size| Some(size * mib)));
        assert_eq!(allocation_bytes(usize::MAX), None);
    }

    #[test]
    fn a_allocation_is_less_than_a_quarter_larger() {
        let mut bytes = BYTES_MIN;
        while bytes < 1 << 34 {
            for bytes in [bytes, bytes + 1, bytes + bytes / 7] {
                let allocation = allocation_bytes(bytes).unwrap();
                assert!(
                    allocation >= bytes && (allocation - bytes) * STEPS < bytes,
                    "{bytes}"
                );
                assert_eq!(
                    allocation_bytes(allocation),
                    Some(allocation),
                    "sizes are their own allocations"
                );
            }
            bytes += bytes / 5;
        }
    }
}
