//! The blocks that a lane knows, and its leases on those in use.

use crate::backend::{Block, Lease, Space};
use crate::error::Result;
use crate::record::Access;

/// A block, and what work does with it.
#[derive(Clone)]
pub(super) struct Use {
    block: Block,
    access: Access,
}

/// Adds a use; each block comes once, with the most that is done with it.
pub(super) fn add_use(uses: &mut Vec<Use>, block: &Block, access: Access) {
    match uses.iter_mut().find(|known| known.block.is(block)) {
        Some(known) if access.writes() => known.access = access,
        Some(_) => {}
        None => uses.push(Use {
            block: block.clone(),
            access,
        }),
    }
}

/// What several pieces of work use together.
pub(super) fn all_uses<'a>(parts: impl IntoIterator<Item = &'a Vec<Use>>) -> Vec<Use> {
    let mut all = Vec::new();
    for part in parts.into_iter().flatten() {
        add_use(&mut all, &part.block, part.access);
    }
    all
}

/// Adopted blocks and leases.
#[derive(Default)]
pub(super) struct Blocks {
    adopted: Vec<Block>,
    /// By the block's address; no two blocks that live have the same.
    leased: Vec<(u64, Lease)>,
}

impl Blocks {
    pub(super) fn adopt(&mut self, block: &Block) {
        if !self.adopted.iter().any(|known| known.is(block)) {
            self.adopted.push(block.clone());
        }
    }

    pub(super) fn adopted(&self) -> &[Block] {
        &self.adopted
    }

    /// Adds reads of all adopted blocks.
    pub(super) fn add_adopted(&self, uses: &mut Vec<Use>) {
        for block in &self.adopted {
            add_use(uses, block, Access::Read);
        }
    }

    pub(super) fn disown(&mut self, block: &Block) {
        self.adopted.retain(|known| !known.is(block));
    }

    /// The adopted block, in `space` if one is given, that holds the range.
    pub(super) fn find(&self, space: Option<Space>, address: u64, bytes: usize) -> Option<&Block> {
        self.adopted.iter().find(|block| {
            space.is_none_or(|space| space == block.space()) && block.contains(address, bytes)
        })
    }

    /// Holds the blocks of `uses` until [`Blocks::release`]. `finish` waits for
    /// all work in flight.
    pub(super) fn lease(
        &mut self,
        uses: &[Use],
        mut finish: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        for Use { block, access } in uses {
            let held = self
                .leased
                .iter()
                .position(|(at, _)| *at == block.address());
            match held {
                Some(index) if self.leased[index].1.writes() || !access.writes() => continue,
                Some(index) => {
                    // A lock to read becomes one to write in two steps, and the
                    // host may come in between: so the reads in flight end first.
                    finish()?;
                    self.leased.swap_remove(index);
                }
                None => {}
            }
            self.leased.push((block.address(), block.lease(*access)?));
        }
        Ok(())
    }

    /// Gives all leases back.
    pub(super) fn release(&mut self) {
        self.leased.clear();
    }

    /// Keeps all leases for ever: the device may still be at work.
    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.leased));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, cpu::CpuBackend};
    use rayon::ThreadPoolBuilder;
    use std::sync::Arc;

    fn block() -> Block {
        let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let backend = CpuBackend::new(Arc::new(pool));
        backend.allocate(Space::Pinned, 64).unwrap()
    }

    fn uses(block: &Block, access: &[Access]) -> Vec<Use> {
        let mut uses = Vec::new();
        access
            .iter()
            .for_each(|access| add_use(&mut uses, block, *access));
        uses
    }

    #[test]
    fn a_block_that_is_read_and_written_is_leased_once_to_write() {
        let block = block();
        let mut blocks = Blocks::default();
        let uses = uses(&block, &[Access::Read, Access::Write, Access::Read]);
        blocks
            .lease(&uses, || panic!("nothing is in flight"))
            .unwrap();
        assert!(block.read().is_err());
        blocks.release();
        assert!(block.write().is_ok());
    }

    #[test]
    fn reads_end_before_a_lease_to_read_becomes_one_to_write() {
        let block = block();
        let mut blocks = Blocks::default();
        let (read, write) = (
            uses(&block, &[Access::Read]),
            uses(&block, &[Access::Write]),
        );
        blocks
            .lease(&read, || panic!("nothing is in flight"))
            .unwrap();
        blocks
            .lease(&read, || panic!("it is leased to read already"))
            .unwrap();
        let mut finished = 0;
        let guard = block.read().unwrap();
        let mut finish = || {
            finished += 1;
            Ok(())
        };
        assert!(
            blocks.lease(&write, &mut finish).is_err(),
            "the host reads too"
        );
        drop(guard);
        blocks.lease(&read, &mut finish).unwrap();
        blocks.lease(&write, &mut finish).unwrap();
        assert_eq!(finished, 2);
        blocks
            .lease(&read, || panic!("one to write does for reading"))
            .unwrap();
        assert!(block.read().is_err());
    }

    #[test]
    fn only_an_adopted_block_of_the_right_space_is_found() {
        let block = block();
        let mut blocks = Blocks::default();
        let found = |blocks: &Blocks, space, at: u64, bytes| {
            blocks.find(space, block.address() + at, bytes).is_some()
        };
        assert!(!found(&blocks, None, 0, 64));
        blocks.adopt(&block);
        assert!(found(&blocks, None, 0, 64) && found(&blocks, Some(Space::Pinned), 8, 56));
        assert!(!found(&blocks, Some(Space::Device), 0, 64) && !found(&blocks, None, 8, 57));
        blocks.disown(&block);
        assert!(!found(&blocks, None, 0, 64));
    }
}
