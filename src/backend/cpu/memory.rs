//! The CPU's memory: a lane's own buffers, and blocks that it has adopted.

use crate::backend::storage::Storage;
use crate::backend::{ALIGN_BYTES, Block, Home, Lease, Space};
use crate::error::{Error, Result};
use crate::record::{Access, BufferDecl};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The buffers of one lane. Each takes what it has in a
/// [`Layout`](crate::backend::Layout), so that a plan is right on every backend.
pub(super) fn lane_buffers(buffers: &[BufferDecl]) -> Result<Vec<Storage>> {
    let storage = |decl: &BufferDecl| {
        let bytes = decl.size_bytes();
        let room = bytes.checked_next_multiple_of(ALIGN_BYTES);
        Storage::with_room(bytes, room.unwrap_or(usize::MAX))
    };
    buffers.iter().map(storage).collect()
}

/// The same for several lanes, with what the host sees in memory of another process
/// too.
#[cfg(all(feature = "supervise", target_os = "linux"))]
pub(super) fn shared_buffers(
    buffers: &[BufferDecl],
    lanes: usize,
    host: crate::backend::worker::Arena,
) -> Result<Vec<Vec<Storage>>> {
    let own = (0..lanes).map(|_| lane_buffers(buffers));
    let mut all = own.collect::<Result<Vec<_>>>()?;
    let layout = crate::backend::Layout::new(buffers);
    let layout = layout.ok_or_else(|| Error::usage("buffers without a layout"))?;
    let seen: Vec<usize> = (0..buffers.len())
        .filter(|&index| layout.places[index].host.is_some())
        .collect();
    let room = |&index: &usize| layout.places[index].bytes.next_multiple_of(ALIGN_BYTES);
    let mut parts = host
        .cut(all.iter().flat_map(|_| seen.iter().map(room)))
        .into_iter();
    for lane in &mut all {
        for (&index, part) in seen.iter().zip(&mut parts) {
            lane[index] = Storage::shared(part, layout.places[index].bytes);
        }
    }
    Ok(all)
}

/// Blocks start above all buffer indices, so that an address tells which it is,
/// and no two blocks of a process ever had the same.
const BLOCKS_START: u64 = 1 << 32;

/// A block of zeros.
pub(super) fn allocate(home: Home, space: Space, bytes: usize) -> Result<Block> {
    static NEXT: AtomicU64 = AtomicU64::new(BLOCKS_START);
    let storage = Storage::zeroed(bytes)?;
    // Views of a block start at multiples of the alignment of its elements.
    let room = (bytes as u64 + 1).next_multiple_of(4096);
    let address = NEXT.fetch_add(room, Relaxed);
    Ok(Block::new(home, space, address, bytes, Box::new(storage)))
}

/// What an address means in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Location {
    /// An own buffer, from its start.
    Own(usize),
    /// Inside the block that starts at `block`.
    Block { block: u64, offset: usize },
}

/// The blocks that a lane knows, and its leases on those in use.
#[derive(Default)]
pub(super) struct Blocks {
    adopted: Vec<Block>,
    /// By the block's address.
    leased: BTreeMap<u64, Lease>,
}

impl Blocks {
    pub(super) fn adopt(&mut self, block: &Block) {
        if !self.adopted.iter().any(|known| known.is(block)) {
            self.adopted.push(block.clone());
        }
    }

    pub(super) fn disown(&mut self, block: &Block) {
        self.adopted.retain(|known| !known.is(block));
    }

    /// The adopted block that holds the range.
    pub(super) fn find(&self, address: u64, bytes: usize) -> Result<&Block> {
        let holds = |block: &&Block| block.contains(address, bytes);
        self.adopted.iter().find(holds).ok_or_else(|| {
            Error::usage(format!(
                "{bytes} bytes at address {address:#x} are not the lane's own"
            ))
        })
    }

    /// Whether `block` is leased to be read alone, and `access` writes it.
    pub(super) fn only_read(&self, block: &Block, access: Access) -> bool {
        let held = self.leased.get(&block.address());
        held.is_some_and(|lease| access.writes() && !lease.writes())
    }

    /// Holds `block` until [`Blocks::release`].
    pub(super) fn lease(&mut self, block: &Block, access: Access) -> Result<()> {
        debug_assert!(!self.only_read(block, access), "released before");
        if let Entry::Vacant(vacant) = self.leased.entry(block.address()) {
            vacant.insert(block.lease(access)?);
        }
        Ok(())
    }

    /// Gives all leases back.
    pub(super) fn release(&mut self) {
        self.leased.clear();
    }

    /// Where `address` is in a leased block.
    pub(super) fn locate_leased(&self, address: u64) -> Location {
        let (&block, _) = self.leased.range(..=address).next_back().expect("leased");
        Location::Block {
            block,
            offset: (address - block) as usize,
        }
    }

    pub(super) fn leased(&self, block: u64) -> &[u8] {
        self.leased[&block].shared()
    }

    pub(super) fn leased_mut(&mut self, block: u64) -> &mut [u8] {
        let lease = self.leased.get_mut(&block);
        lease.expect("leased when it was given").exclusive()
    }

    pub(super) fn leases_mut(&mut self) -> impl Iterator<Item = (u64, &mut Lease)> {
        self.leased
            .iter_mut()
            .map(|(&address, lease)| (address, lease))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Layout;
    use crate::record::{DType, Unit, View};

    #[test]
    fn a_lane_takes_what_its_layout_says() {
        let decl = |len| BufferDecl {
            name: "b".to_owned(),
            dtype: DType::U8,
            unit: Unit::PerBatch { elements: len },
            view: View::Upload,
            len,
        };
        let buffers = [1, 255, 256, 257, 1000].map(decl);
        let taken: usize = lane_buffers(&buffers)
            .unwrap()
            .iter()
            .map(Storage::room)
            .sum();
        assert_eq!(taken, Layout::new(&buffers).unwrap().device_bytes);
    }

    #[test]
    fn a_block_that_is_read_is_given_back_before_it_is_written() {
        let block = allocate(Home::new(), Space::Pinned, 64).unwrap();
        let mut blocks = Blocks::default();
        blocks.adopt(&block);
        blocks.lease(&block, Access::Read).unwrap();
        assert!(!blocks.only_read(&block, Access::Read));
        assert!(blocks.only_read(&block, Access::Write));
        assert!(block.read().is_ok(), "others may read too");
        blocks.release();
        blocks.lease(&block, Access::Write).unwrap();
        assert!(!blocks.only_read(&block, Access::Write));
        assert!(block.read().is_err(), "it is the lane's alone");
    }
}
