//! The resident buffers of an engine: one copy on each device.

use super::recorded::guarded;
use crate::backend::{AllocationView, Backend, Space, Storage};
use crate::error::{Context, Error, Result};
use crate::record::{BufferDecl, BufferId, Recording};
use crate::replay::Buckets;
use crate::workload::{ResidentViews, Workload};

/// What the resident buffers of a workload hold at first.
pub(super) struct ResidentContents(Vec<Contents>);

struct Contents {
    buffer: BufferId,
    name: String,
    contents: Storage,
}

impl ResidentContents {
    /// Zeros for each resident buffer of a recording; `None` if it has none.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a buffer that batches update, with more
    /// than one slot, and [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) for one that is
    /// larger than the memory.
    pub(super) fn new(recording: &Recording, slots: usize) -> Result<Option<Self>> {
        if let (Some(decl), true) = (recording.updated_resident(), slots > 1) {
            let message = format!("each batch updates it, and there are {slots} slots");
            return Err(Error::config(message)
                .fix("use one device with slots = 1, so that batches run in order")
                .within(format!("buffer {}", decl.name)));
        }
        let zeros = |(buffer, decl): (BufferId, &BufferDecl)| {
            let contents = Storage::zeroed(decl.size_bytes());
            Ok(Contents {
                buffer,
                name: decl.name.clone(),
                contents: contents.within(|| format!("buffer {}", decl.name))?,
            })
        };
        let buffers: Vec<_> = recording.resident().map(zeros).collect::<Result<_>>()?;
        Ok((!buffers.is_empty()).then_some(ResidentContents(buffers)))
    }

    /// Lets the workload write them.
    ///
    /// # Errors
    /// Those of [`Workload::fill_resident`].
    pub(super) fn fill<W: Workload>(&mut self, workload: &W, handles: &W::Buffers) -> Result<()> {
        let parts = self.0.iter_mut();
        let parts = parts.map(|it| (it.buffer, it.contents.as_mut_slice()));
        let mut views = ResidentViews::new(parts);
        guarded(|| workload.fill_resident(handles, &mut views)).within(|| "resident buffers")
    }

    /// Copies them to a device, and binds `buckets` to them.
    ///
    /// # Errors
    /// Those of [`Backend::allocate`] and [`Backend::write`].
    pub(super) fn upload(&self, backend: &dyn Backend, mut buckets: Buckets) -> Result<Buckets> {
        for Contents {
            buffer,
            name,
            contents,
        } in &self.0
        {
            let upload = || {
                let contents = contents.as_slice();
                let memory = backend.allocate(Space::Device, contents.len())?;
                backend.write(contents, &memory, 0)?;
                AllocationView::new(&memory, 0, contents.len())
            };
            let memory = upload().within(|| format!("buffer {name}"))?;
            buckets = buckets.with_resident_id(*buffer, memory);
        }
        Ok(buckets)
    }
}
