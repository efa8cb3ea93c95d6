//! Memory of the embedder's that pointers in structs may point to.

use super::Bindings;
use super::executor::Executor;
use crate::backend::{Block, BlockView, Lane};
use crate::error::{Error, Result};

/// How much memory that is gone is remembered, to tell what a stale address was.
const FORMER_MAX: usize = 64;

/// What pointers may point to beside the buffers of a recording.
#[derive(Default)]
pub(super) struct Declared {
    views: Vec<BlockView>,
    /// Starts and sizes of what was bound or declared and is no more, latest first.
    former: Vec<(u64, usize)>,
}

impl Declared {
    pub(super) fn views(&self) -> &[BlockView] {
        &self.views
    }

    /// Refuses bindings of a buffer to memory that is declared. Edges between commands
    /// follow from the buffers that they name, and an address of declared memory names
    /// none: nothing would order the two.
    pub(super) fn check(&self, bindings: &Bindings) -> Result<()> {
        for declared in &self.views {
            if let Some((buffer, bound)) = bindings.bound_over(declared) {
                return Err(overlap(buffer, bound, declared));
            }
        }
        Ok(())
    }

    /// Notes that the executor let go of a block.
    pub(super) fn let_go(&mut self, block: &Block) {
        self.former.truncate(FORMER_MAX - 1);
        self.former.insert(0, (block.address(), block.bytes()));
    }

    /// Whether an address was inside of a block that the executor let go of.
    pub(super) fn was_known(&self, address: u64) -> bool {
        let mut former = self.former.iter();
        former.any(|&(start, bytes)| address >= start && address - start < bytes as u64)
    }
}

fn overlap(buffer: &str, bound: &BlockView, declared: &BlockView) -> Error {
    let range = |view: &BlockView| {
        let start = view.address();
        format!("{start:#x} to {:#x}", start + view.bytes() as u64)
    };
    let (bound, declared) = (range(bound), range(declared));
    Error::usage(format!(
        "buffer {buffer} is bound to {bound}, which overlaps declared memory, {declared}"
    ))
    .fix("bind the buffer to memory that is not declared, or pass the buffer itself in the struct")
}

impl Executor {
    /// Lets pointers in structs point into an embedder's memory. All of it counts
    /// as one thing that launches read or write, whatever the address. Buckets are
    /// made ready only once what they point to is declared, so the policy of such an
    /// executor warms nothing up.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for another lane, for memory of
    /// another backend, and for memory that a buffer of any bucket is bound to: nothing
    /// would order what kernels do to it by either name.
    pub fn declare(&mut self, lane: &mut dyn Lane, view: BlockView) -> Result<()> {
        self.check_lane(lane)?;
        for bindings in self.bindings.iter().flatten() {
            if let Some((buffer, bound)) = bindings.bound_over(&view) {
                return Err(overlap(buffer, bound, &view));
            }
        }
        lane.adopt(view.block())?;
        self.declared.views.push(view);
        Ok(())
    }

    /// Takes back what [`Executor::declare`] said of a block. A bucket that still
    /// points there is refused at its next batch. Nothing may be in flight.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for another lane.
    pub fn withdraw(&mut self, lane: &mut dyn Lane, block: &Block) -> Result<()> {
        self.check_lane(lane)?;
        self.declared.views.retain(|view| !view.block().is(block));
        for bucket in 0..self.past.len() {
            let points_there = self
                .ready_mut(bucket)
                .is_some_and(|ready| ready.points_into(block));
            if points_there {
                self.drop_ready(lane, bucket);
            }
        }
        self.disown_unused(lane, std::iter::once(block));
        Ok(())
    }
}
