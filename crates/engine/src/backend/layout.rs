//! How one slot's share of the arenas is cut up.

use crate::error::{Error, ErrorKind, Result};
use crate::record::BufferDecl;

/// Every buffer starts at a multiple of this, as cuMemAlloc's own allocations do, so
/// that kernels may read vectors and coalesce from a buffer's first element.
pub const ALIGN_BYTES: usize = 256;

/// The size and the offsets of one buffer in its slot's shares of the arenas, in bytes. A buffer that
/// is an allocation of its own takes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRange {
    /// The size.
    pub bytes: usize,
    /// The offset in the slot's share of the device arena.
    pub device: usize,
    /// The offset in the slot's share of the pinned arena; `None` without a host side.
    pub host: Option<usize>,
}

/// How a slot's shares are divided among its buffers, which do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// In the order of the buffers.
    pub buffers: Vec<BufferRange>,
    /// The size of a slot's share of the device arena in bytes.
    pub device_bytes: usize,
    /// The size of a slot's share of the pinned arena in bytes.
    pub host_bytes: usize,
}

impl Layout {
    /// The layout of `buffers`; `None` if the sum overflows.
    pub fn new(buffers: &[BufferDecl]) -> Option<Layout> {
        let mut layout = Layout {
            buffers: Vec::with_capacity(buffers.len()),
            device_bytes: 0,
            host_bytes: 0,
        };
        for buffer in buffers {
            let bytes = buffer.slot_bytes()?;
            let take = |end: &mut usize| {
                let start = *end;
                *end = start
                    .checked_add(bytes)?
                    .checked_next_multiple_of(ALIGN_BYTES)?;
                Some(start)
            };
            let device = take(&mut layout.device_bytes)?;
            let host = if buffer.view.is_on_host() {
                Some(take(&mut layout.host_bytes)?)
            } else {
                None
            };
            layout.buffers.push(BufferRange {
                bytes,
                device,
                host,
            });
        }
        Some(layout)
    }

    /// The layout of `buffers`, and the sizes of the device arena and the pinned arena for `slots`
    /// slots in bytes.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] if the sizes overflow.
    #[doc(hidden)]
    pub fn for_slots(buffers: &[BufferDecl], slots: usize) -> Result<(Layout, [usize; 2])> {
        let layout = Layout::new(buffers).and_then(|layout| {
            let sizes = [layout.device_bytes, layout.host_bytes];
            let [device, host] = sizes.map(|bytes| bytes.checked_mul(slots));
            Some((layout, [device?, host?]))
        });
        layout.ok_or_else(|| {
            let message = "the buffers of all slots are larger than the address space";
            Error::new(ErrorKind::OutOfMemory, message).fix("lower the batch capacity")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::View;
    use crate::record::{DType, Unit};

    fn decl(len: usize, view: View) -> BufferDecl {
        BufferDecl {
            name: "b".to_owned(),
            dtype: DType::F32,
            unit: Unit::PerBatch { elements: len },
            view,
            len,
            is_replaceable: false,
        }
    }

    #[test]
    fn buffers_start_aligned_and_only_visible_ones_have_a_host_side() {
        let buffers = [
            decl(1, View::Upload),
            decl(65, View::Device),
            decl(64, View::Download),
        ];
        let layout = Layout::new(&buffers).unwrap();
        let starts: Vec<_> = layout.buffers.iter().map(|p| (p.device, p.host)).collect();
        assert_eq!(starts, [(0, Some(0)), (256, None), (768, Some(256))]);
        assert_eq!((layout.device_bytes, layout.host_bytes), (1024, 512));
    }

    #[test]
    fn a_size_beyond_the_address_space_is_no_layout() {
        assert_eq!(Layout::new(&[decl(usize::MAX, View::Device)]), None);
        assert_eq!(Layout::new(&[decl(usize::MAX / 4, View::Device)]), None);
    }
}
