//! The grid of a launch.

use super::check::GRID_MAX;
use crate::error::{Error, Result};

/// The grid of a launch: fixed when it is recorded, or computed by the device that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Blocks along x, y and z, each with the threads that the kernel declares.
    Grid([u32; 3]),
    /// As many blocks along x as cover the elements. The device chooses the threads of a block.
    Over {
        /// The number of elements.
        elements: u64,
        /// How threads share them out.
        cover: Cover,
    },
}

/// How threads share out elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// One thread for each element, rounded up to whole blocks.
    Once,
    /// A grid-stride loop: at most as many blocks as the device runs at once. Each thread takes
    /// every n-th element, where n is the number of threads of the grid.
    Strided,
}

impl Cover {
    /// The number of blocks of `block_threads` threads for `elements` elements on a device that
    /// runs `resident_blocks` blocks at once. At least 1, also for no elements.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if that is above CUDA's limit of 2^31 - 1
    /// blocks.
    pub fn blocks(self, elements: u64, block_threads: u32, resident_blocks: u32) -> Result<u32> {
        let once = elements.div_ceil(u64::from(block_threads.max(1))).max(1);
        let blocks = match self {
            Cover::Once => once,
            Cover::Strided => once.min(u64::from(resident_blocks.max(1))),
        };
        let fits = u32::try_from(blocks).ok().filter(|n| *n <= GRID_MAX[0]);
        fits.ok_or_else(|| {
            Error::usage(format!(
                "{elements} elements take {blocks} blocks of {block_threads} threads; a launch \
                 has at most {}",
                GRID_MAX[0]
            ))
            .fix("let each thread take several elements, with Cover::Strided")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_all_elements_and_no_whole_block_is_idle() {
        let blocks = |elements| Cover::Once.blocks(elements, 128, 5).unwrap();
        assert_eq!([0, 1, 128, 129, 1_280].map(blocks), [1, 1, 1, 2, 10]);
        let blocks = |elements| Cover::Strided.blocks(elements, 128, 5).unwrap();
        assert_eq!(
            [0, 1, 129, 640, 641, 1 << 40].map(blocks),
            [1, 1, 2, 5, 5, 5]
        );
    }

    #[test]
    fn more_blocks_than_a_launch_has_are_refused_with_the_way_out() {
        let most = u64::from(GRID_MAX[0]) * 256;
        assert_eq!(Cover::Once.blocks(most, 256, 1).unwrap(), GRID_MAX[0]);
        for elements in [most + 1, u64::MAX] {
            let error = Cover::Once.blocks(elements, 256, 1).unwrap_err();
            assert!(error.to_string().contains("at most 2147483647"), "{error}");
            assert!(error.fix_text().unwrap().contains("Cover::Strided"));
            assert_eq!(Cover::Strided.blocks(elements, 256, 7).unwrap(), 7);
        }
    }
}
