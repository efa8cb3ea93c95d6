//! Allocations with contents that every later worker gets again.

use super::arena::Arena;
use super::ipc::Link;
use super::message::{Reply, Request, Spec};
use super::supervisor::answer;
use super::unexpected;
use crate::backend::{Contents, Op};
use crate::error::{Error, Result};
use std::sync::Arc;

/// The most bytes of contents that are sent at once. Each part is copied to shared memory.
const SENT_BYTES_MAX: usize = 64 << 20;

pub(super) struct Filled {
    contents: Arc<Contents>,
    bytes: usize,
    /// Whether the program has a handle of the allocation.
    pub(super) is_held: bool,
}

impl Filled {
    pub(super) fn new(contents: &Arc<Contents>) -> Filled {
        Filled {
            contents: Arc::clone(contents),
            bytes: (**contents).as_ref().len(),
            is_held: true,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a graph uses the allocation at `address`.
    pub(super) fn is_used(&self, address: u64, spec: &Spec) -> bool {
        let end = address + self.bytes.max(1) as u64;
        let is_inside = |word: &u64| (address..end).contains(word);
        spec.ops.iter().any(|op| match op {
            Op::Launch { args, .. } => args.iter().any(is_inside),
            Op::Download { device, .. } => is_inside(device),
            // Nothing writes the allocation.
            Op::Upload { .. } | Op::Memset { .. } | Op::Timestamp { .. } => false,
        })
    }

    /// Takes the allocation in a worker, and fills it. The outer error is the link's, the inner one
    /// the device's.
    pub(super) fn send(&self, address: u64, link: &mut Link) -> Result<Result<()>> {
        let contents = (*self.contents).as_ref();
        if contents.len() != self.bytes {
            return Ok(Err(Error::usage("the contents of an allocation changed")));
        }
        let bytes = self.bytes;
        link.send(&Request::Allocate { address, bytes })?;
        let mut filled = done(link)?;
        let mut offset = 0;
        for chunk in contents.chunks(SENT_BYTES_MAX) {
            let copied = filled.and_then(|()| Arena::copy_of(chunk));
            let file = match copied {
                Ok(arena) => arena,
                Err(error) => return Ok(Err(error)),
            };
            let bytes = chunk.len();
            link.send(&Request::Fill {
                address,
                offset,
                bytes,
            })?;
            link.send_file(file.file())?;
            filled = done(link)?;
            offset += bytes;
        }
        Ok(filled)
    }
}

fn done(link: &mut Link) -> Result<Result<()>> {
    match answer(link)? {
        Reply::Done(done) => Ok(done),
        _ => Err(unexpected()),
    }
}
