//! The resident buffers of an engine: one copy on each device, or two of those that a program replaces.

use super::ending::Ending;
use super::recorded::catch_as_input;
use super::resident_version::ResidentVersion;
use crate::backend::{AllocationView, Backend, Contents, Storage};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::record::{BufferDecl, BufferId, Recording};
use crate::replay::Buckets;
use crate::workload::{ResidentViews, Workload};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use parking_lot::Mutex;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How often a replacement looks whether the engine has ended. It is woken when the batches end, so this
/// delays only its error.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The copies of the buffers that a program replaces, by device and buffer.
pub(super) type BufferCopies = Vec<Vec<[AllocationView; 2]>>;

/// What the resident buffers of a workload hold at first.
pub(super) struct ResidentContents(Vec<ResidentBuffer>);

struct ResidentBuffer {
    buffer: BufferId,
    decl: BufferDecl,
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
        let contents = ResidentContents::zeros(recording.resident())?;
        Ok((!contents.0.is_empty()).then_some(contents))
    }

    /// The contents of resident buffers, all zeros.
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the host has no memory.
    fn zeros<'a>(buffers: impl Iterator<Item = (BufferId, &'a BufferDecl)>) -> Result<Self> {
        let zeros = |(buffer, decl): (BufferId, &BufferDecl)| {
            let contents = Storage::zeroed(decl.size_bytes());
            Ok(ResidentBuffer {
                buffer,
                decl: decl.clone(),
                contents: Arc::new(contents.within(|| format!("buffer {}", decl.name))?),
            })
        };
        Ok(ResidentContents(buffers.map(zeros).collect::<Result<_>>()?))
    }

    /// Lets the workload write them.
    ///
    /// # Errors
    /// The errors of [`Workload::fill_resident`].
    pub(super) fn fill<W: Workload>(&mut self, workload: &W, handles: &W::Buffers) -> Result<()> {
        catch_as_input(|| self.write(|views| workload.fill_resident(handles, views)))
            .within(|| "resident buffers")
    }

    /// Passes views of all of them to `write`, and leaves those that it took.
    fn write(&mut self, write: impl FnOnce(&mut ResidentViews<'_>) -> Result<()>) -> Result<()> {
        let parts = self.0.iter_mut().map(|resident| {
            let contents = Arc::get_mut(&mut resident.contents);
            let contents = contents.expect("no device has the contents yet");
            (resident.buffer, contents.as_mut_slice())
        });
        let mut views = ResidentViews::new(parts);
        write(&mut views)
    }

    /// Copies them to a device, and binds `buckets` to them. Adds the copies of those that can be replaced to
    /// `copies`.
    ///
    /// # Errors
    /// The errors of [`Backend::allocate_filled`].
    pub(super) fn upload(
        &self,
        backend: &dyn Backend,
        mut buckets: Buckets,
        copies: &mut BufferCopies,
    ) -> Result<Buckets> {
        let mut of_device = Vec::new();
        for resident in &self.0 {
            let contents: Arc<Contents> = Arc::clone(&resident.contents) as _;
            let upload = || {
                let memory = backend.allocate_filled(&contents)?;
                AllocationView::new(&memory, 0, memory.bytes())
            };
            let place = || format!("buffer {}", resident.decl.name);
            let memory = upload().within(place)?;
            if resident.decl.is_replaceable {
                of_device.push([memory.clone(), upload().within(place)?]);
            }
            buckets = buckets.with_resident_id(resident.buffer, memory);
        }
        copies.push(of_device);
        Ok(buckets)
    }
}

/// The resident buffers that a program replaces while the engine runs.
///
/// Each has two copies on each device. A replacement fills the copy that no batch uses, and the batches that
/// are closed from then on use that one.
pub(super) struct Replaceable {
    devices: Vec<Arc<dyn Backend>>,
    buffers: Vec<(BufferId, BufferDecl)>,
    copies: BufferCopies,
    state: Mutex<ReplacementState>,
}

/// What the last replacement left.
struct ReplacementState {
    /// Counts replacements; see [`ResidentVersion::number`].
    number: u64,
    /// By buffer: which of its copies has the current contents.
    current: Vec<usize>,
    /// The end of the batches with the contents before the current ones.
    before: Receiver<Infallible>,
    /// The end of those with the current ones.
    ended: Receiver<Infallible>,
}

impl Replaceable {
    /// The buffers of a recording with their copies by device, and the version that they have at first. `None`
    /// if there are none.
    pub(super) fn new(
        recording: &Recording,
        devices: &[Arc<dyn Backend>],
        copies: BufferCopies,
    ) -> Option<Self> {
        let buffers = recording.resident();
        let buffers = buffers.filter(|(_, decl)| decl.is_replaceable);
        let buffers: Vec<_> = buffers.map(|(id, decl)| (id, decl.clone())).collect();
        if buffers.is_empty() {
            return None;
        }
        let (_, none) = bounded(0);
        let state = ReplacementState {
            number: 0,
            current: vec![0; buffers.len()],
            before: none.clone(),
            ended: none,
        };
        Some(Replaceable {
            devices: devices.to_vec(),
            buffers,
            copies,
            state: Mutex::new(state),
        })
    }

    /// The version of the contents that the buffers have at first, for the first batches.
    pub(super) fn first(&self) -> Arc<ResidentVersion> {
        let mut state = self.state.lock();
        let (version, ended) = self.version(state.number, &state.current);
        state.ended = ended;
        version
    }

    /// A version with the memory that `current` chooses of each buffer's two copies, and the
    /// receiver that is disconnected when no batch uses the version any more.
    fn version(
        &self,
        number: u64,
        current: &[usize],
    ) -> (Arc<ResidentVersion>, Receiver<Infallible>) {
        let of_device = |copies: &Vec<[AllocationView; 2]>| {
            let buffers = self.buffers.iter().zip(copies).zip(current);
            let memory = buffers.map(|(((id, _), copies), &copy)| (*id, copies[copy].clone()));
            memory.collect()
        };
        let memory = self.copies.iter().map(of_device).collect();
        let (version, ended) = ResidentVersion::new(number, memory);
        (Arc::new(version), ended)
    }

    /// Gives the buffers that `write` takes the contents that it writes, and passes the new version to `set`,
    /// after which no batch gets the current one. `set` runs none of the embedder's code. `is_lost` tells which
    /// devices are not used any more. Waits for the batches that use the copies which it fills.
    ///
    /// # Errors
    /// `ErrorKind::OutOfMemory` if the host has no memory for the contents, the errors of `write` and of
    /// [`Backend::refill`], and those of an engine that ends meanwhile. The contents are then as before.
    pub(super) fn replace(
        &self,
        ending: &Ending,
        is_lost: impl Fn(usize) -> bool,
        write: impl FnOnce(&mut ResidentViews<'_>) -> Result<()>,
        set: impl FnOnce(&Arc<ResidentVersion>),
    ) -> Result<()> {
        let zeros = self.buffers.iter().map(|(id, decl)| (*id, decl));
        let mut contents = ResidentContents::zeros(zeros)?;
        let mut taken = Vec::new();
        contents.write(|views| {
            write(views)?;
            taken.extend(views.taken());
            Ok(())
        })?;
        if taken.is_empty() {
            return Ok(());
        }
        let mut state = self.state.lock();
        wait_for(&state.before, ending)?;
        let mut current = state.current.clone();
        for (index, resident) in contents.0.iter().enumerate() {
            if !taken.contains(&resident.buffer) {
                continue;
            }
            current[index] = 1 - current[index];
            let contents: Arc<Contents> = Arc::clone(&resident.contents) as _;
            for (device, backend) in self.devices.iter().enumerate() {
                if !is_lost(device) {
                    let memory = self.copies[device][index][current[index]].allocation();
                    let filled = backend.refill(memory, &contents);
                    filled.within(|| format!("buffer {}", resident.decl.name))?;
                }
            }
        }
        let (version, ended) = self.version(state.number + 1, &current);
        (state.number, state.current) = (version.number, current);
        state.before = std::mem::replace(&mut state.ended, ended);
        set(&version);
        Ok(())
    }
}

/// Waits until no batch has the contents of a version that has ended.
///
/// # Errors
/// Those of [`Ending::check`], if the engine ends meanwhile.
fn wait_for(ended: &Receiver<Infallible>, ending: &Ending) -> Result<()> {
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK_EVERY) {
        ending.check()?;
    }
    Ok(())
}

/// Refuses a resident buffer that batches update where they run in no order, or where it is lost.
///
/// # Errors
/// [`ErrorKind::Unavailable`] on a supervised device, [`ErrorKind::Config`] for several slots.
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
