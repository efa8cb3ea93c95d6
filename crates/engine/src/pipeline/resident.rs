//! The resident buffers of an engine: one copy on each device.

use super::recorded::guarded;
use crate::backend::{AllocationView, Backend, Contents, Storage};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::record::{BufferDecl, BufferId, Recording};
use crate::replay::Buckets;
use crate::workload::{ResidentViews, Workload};
use std::sync::Arc;

/// What the resident buffers of a workload hold at first.
pub(super) struct ResidentContents(Vec<ResidentBuffer>);

struct ResidentBuffer {
    buffer: BufferId,
    name: String,
    /// Shared by all devices; supervised ones keep them.
    contents: Arc<Storage>,
}

impl ResidentContents {
    /// Zeros for each resident buffer of a recording; `None` if it has none.
    ///
    /// # Errors
    /// For a buffer that batches update, [`ErrorKind::Unavailable`] on a supervised device, and
    /// [`ErrorKind::Config`] with more than one slot. [`ErrorKind::OutOfMemory`] for one that is
    /// larger than the memory.
    pub(super) fn new(
        recording: &Recording,
        slots: usize,
        is_supervised: bool,
    ) -> Result<Option<Self>> {
        if let Some(decl) = recording.updated_resident() {
            check_update(slots, is_supervised).within(|| format!("buffer {}", decl.name))?;
        }
        let zeros = |(buffer, decl): (BufferId, &BufferDecl)| {
            let contents = Storage::zeroed(decl.size_bytes());
            Ok(ResidentBuffer {
                buffer,
                name: decl.name.clone(),
                contents: Arc::new(contents.within(|| format!("buffer {}", decl.name))?),
            })
        };
        let buffers: Vec<_> = recording.resident().map(zeros).collect::<Result<_>>()?;
        Ok((!buffers.is_empty()).then_some(ResidentContents(buffers)))
    }

    /// Lets the workload write them.
    ///
    /// # Errors
    /// The errors of [`Workload::fill_resident`].
    pub(super) fn fill<W: Workload>(&mut self, workload: &W, handles: &W::Buffers) -> Result<()> {
        let parts = self.0.iter_mut().map(|resident| {
            let contents = Arc::get_mut(&mut resident.contents);
            let contents = contents.expect("no device has the contents yet");
            (resident.buffer, contents.as_mut_slice())
        });
        let mut views = ResidentViews::new(parts);
        guarded(|| workload.fill_resident(handles, &mut views)).within(|| "resident buffers")
    }

    /// Copies them to a device, and binds `buckets` to them.
    ///
    /// # Errors
    /// The errors of [`Backend::allocate_filled`].
    pub(super) fn upload(&self, backend: &dyn Backend, mut buckets: Buckets) -> Result<Buckets> {
        for ResidentBuffer {
            buffer,
            name,
            contents,
        } in &self.0
        {
            let upload = || {
                let contents: Arc<Contents> = Arc::clone(contents) as _;
                let memory = backend.allocate_filled(&contents)?;
                AllocationView::new(&memory, 0, memory.bytes())
            };
            let memory = upload().within(|| format!("buffer {name}"))?;
            buckets = buckets.with_resident_id(*buffer, memory);
        }
        Ok(buckets)
    }
}

/// Refuses a resident buffer that batches update where they run in no order, or where it is lost.
fn check_update(slots: usize, is_supervised: bool) -> Result<()> {
    if is_supervised {
        let message = "batches update it, and a supervised device loses it with its process";
        return Err(Error::new(ErrorKind::Unavailable, message)
            .fix("use a device without supervision, or return the values with the results"));
    }
    if slots > 1 {
        let message = format!("each batch updates it, and there are {slots} slots");
        return Err(Error::config(message)
            .fix("use one device with slots = 1, so that batches run in order"));
    }
    Ok(())
}
