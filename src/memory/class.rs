//! The sizes that blocks come in.

/// The smallest block: what the driver itself aligns to, so less saves nothing.
const BYTES_MIN: usize = 256;

/// Sizes in each doubling. A block is less than a quarter larger than what was
/// asked for, once that is beyond the smallest.
const STEPS: usize = 4;

/// The largest step: from 8 MiB on, sizes are multiples of the driver's own
/// pages, and what is wasted shrinks with the size.
const STEP_BYTES_MAX: usize = 2 << 20;

/// The size of the block for `bytes` bytes, `None` beyond the address space.
/// Blocks are reused for their own size alone.
pub(super) fn block_bytes(bytes: usize) -> Option<usize> {
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
            .map(block_bytes)
            .into();
        let expected = [256, 256, 320, 320, 384, 448, 512, 512, 640].map(Some);
        assert_eq!(small, expected);
        let mib = 1 << 20;
        let large = [8 * mib, 8 * mib + 1, 16 * mib + 1, 1024 * mib + 1].map(block_bytes);
        assert_eq!(large, [8, 10, 18, 1026].map(|size| Some(size * mib)));
        assert_eq!(block_bytes(usize::MAX), None);
    }

    #[test]
    fn a_block_is_less_than_a_quarter_larger() {
        let mut bytes = BYTES_MIN;
        while bytes < 1 << 34 {
            for bytes in [bytes, bytes + 1, bytes + bytes / 7] {
                let block = block_bytes(bytes).unwrap();
                assert!(block >= bytes && (block - bytes) * STEPS < bytes, "{bytes}");
                assert_eq!(
                    block_bytes(block),
                    Some(block),
                    "sizes are their own blocks"
                );
            }
            bytes += bytes / 5;
        }
    }
}
