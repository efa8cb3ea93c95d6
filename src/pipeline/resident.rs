//! The resident buffers of an engine: one copy on each device.

use super::recorded::guarded;
use crate::backend::{AllocationView, Backend, Space};
use crate::error::{Context, Error, Result};
use crate::record::{BufferId, Recording};
use crate::replay::Buckets;
use crate::workload::{ResidentViews, Workload};

/// What the resident buffers of a workload hold at first.
pub(super) struct ResidentContents(Vec<Contents>);

struct Contents {
    buffer: BufferId,
    name: String,
    /// The contents, aligned for every element, and more up to the next word.
    words: Vec<u128>,
    bytes: usize,
}

impl ResidentContents {
    /// Zeros for each resident buffer of a recording; `None` if it has none.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a buffer that batches update, with more
    /// than one slot.
    pub(super) fn new(recording: &Recording, slots: usize) -> Result<Option<Self>> {
        if let (Some(decl), true) = (recording.updated_resident(), slots > 1) {
            let message = format!("each batch updates it, and there are {slots} slots");
            return Err(Error::config(message)
                .fix("use one device with slots = 1, so that batches run in order")
                .within(format!("buffer {}", decl.name)));
        }
        let buffers = recording.resident().map(|(buffer, decl)| Contents {
            buffer,
            name: decl.name.clone(),
            words: vec![0; decl.size_bytes().div_ceil(size_of::<u128>())],
            bytes: decl.size_bytes(),
        });
        let buffers: Vec<_> = buffers.collect();
        Ok((!buffers.is_empty()).then_some(ResidentContents(buffers)))
    }

    /// Lets the workload write them.
    ///
    /// # Errors
    /// Those of [`Workload::fill_resident`].
    pub(super) fn fill<W: Workload>(&mut self, workload: &W, handles: &W::Buffers) -> Result<()> {
        let parts = self.0.iter_mut().map(|it| {
            let all: &mut [u8] = bytemuck::cast_slice_mut(&mut it.words);
            (it.buffer, &mut all[..it.bytes])
        });
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
            words,
            bytes,
        } in &self.0
        {
            let upload = || {
                let memory = backend.allocate(Space::Device, *bytes)?;
                backend.write(&bytemuck::cast_slice(words)[..*bytes], &memory, 0)?;
                AllocationView::new(&memory, 0, *bytes)
            };
            let memory = upload().within(|| format!("buffer {name}"))?;
            buckets = buckets.with_resident_id(*buffer, memory);
        }
        Ok(buckets)
    }
}
