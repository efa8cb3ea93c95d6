//! [`Replay`]: kernels of the caller's own, recorded once and replayed.

use crate::device::{device_of, open};
use crate::dlpack::{self, Array, Place};
use crate::engine::{TapeloopError, raised};
use crate::launches::{Declared, Launch, check_outside_twin, is_in_twin, record_launch};
use crate::open_replay::{Outcome, State, Use};
use crate::typed::{Role, Typed, dtype_of, name_of};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tapeloop::backend::{AllocationView, Backend, CudaOptions, DeviceChoice, Space};
use tapeloop::pipeline::{Filling, Ring, SLOTS_MAX, Slot, Wait};
use tapeloop::record::{CudaSource, Image, Recorder};
use tapeloop::replay::{Buckets, Mode, Policy, Verify};
use tapeloop::workload::Extent;

/// How long a caller polls without a pause: Linux makes a shorter sleep as long as that.
const SPIN: Duration = Duration::from_micros(50);
/// The longest pause between two polls, and so how late a result may be seen.
const PAUSE_MAX: Duration = Duration::from_millis(1);

thread_local! {
    /// Whether this thread takes the arrays of a batch, which may run code of Python.
    static FILLS: Cell<bool> = const { Cell::new(false) };
}

/// Kernels of the caller's own over named buffers.
#[pyclass(module = "pytapeloop._native", frozen)]
pub(crate) struct Replay {
    /// `None` once it is closed.
    state: Mutex<Option<State>>,
    /// The results that were there when it was closed, which may still be taken.
    left: Mutex<HashMap<u64, Outcome>>,
    /// Batches whose `Job` was dropped since a thread last looked.
    dropped: Mutex<Vec<u64>>,
    buffers: Vec<Declared>,
    /// By buffer: whether a launch writes it.
    written: Vec<bool>,
    backend: Arc<dyn Backend>,
    ordinal: Option<i32>,
    process: u32,
}

/// A buffer as Python gives it: name, type, number of elements, role, and the contents of a constant.
type GivenBuffer<'py> = (String, String, usize, String, Option<Bound<'py, PyAny>>);

#[pymethods]
impl Replay {
    /// Records `launches` of the kernels in `source`, between the uploads of all inputs and the downloads of
    /// all outputs, and opens `slots` slots on `device`. `options` are those of the compiler. Python's layer has
    /// checked shapes, roles, grids and blocks, and has copied constants; element types, device, mode, slots and
    /// the launches' arguments are checked here, with a `ValueError` or `TypeError`. A `TapeloopError` is one of the
    /// kernels or of the device.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "Python's layer names them")]
    fn new(
        py: Python<'_>,
        source: String,
        options: Vec<String>,
        launches: Vec<Launch<'_>>,
        buffers: Vec<GivenBuffer<'_>>,
        device: &Bound<'_, PyAny>,
        mode: &str,
        slots: &Bound<'_, PyAny>,
        verify: bool,
    ) -> PyResult<Self> {
        let (choice, ordinal) = device_of(device)?;
        // Declared before the constants, so that it is dropped after them, whatever ends this call.
        let _release = dlpack::ReleaseDropped(py);
        let mode = match mode {
            "graph" => Mode::Graph,
            "stream" => Mode::Stream,
            "resident" => Mode::Resident,
            other => {
                let message = format!("mode is {other:?}; take graph, stream or resident");
                return Err(PyValueError::new_err(message));
            }
        };
        let count = slots.extract::<usize>().ok();
        let Some(slots) = count.filter(|count| (1..=SLOTS_MAX).contains(count)) else {
            let message = format!("slots is {}; take 1 to {SLOTS_MAX}", slots.repr()?);
            return Err(PyValueError::new_err(message));
        };
        let options_of_device = CudaOptions {
            device: DeviceChoice::Ordinal(ordinal.unwrap_or(0) as usize),
            ..CudaOptions::default()
        };
        let backend = py.detach(|| open(choice, &options_of_device));
        let backend = backend.map_err(|error| raised(&error))?;
        let is_gpu = backend.device().backend == "cuda";
        let image = Arc::new(Image {
            name: "replay.cu".to_owned(),
            binary: None,
            source: Some(CudaSource {
                file: "replay.cu".to_owned(),
                text: source.clone(),
                headers: Vec::new(),
                options,
            }),
        });

        // One axis of capacity 1: each replay has one item.
        let mut recorder = Recorder::new(&[1]);
        let mut declared = Vec::with_capacity(buffers.len());
        let mut constants = Vec::new();
        for (name, dtype, len, role, contents) in buffers {
            let dtype = dtype_of(&dtype)?;
            let Some(role) = Role::named(&role) else {
                let message = format!("buffer {name}: there is no role {role:?}");
                return Err(PyValueError::new_err(message));
            };
            if role == Role::OnDevice && !is_gpu {
                let message = format!("buffer {name}: the CPU has no arrays on a device");
                return Err(PyValueError::new_err(message));
            }
            if role == Role::OnDevice && mode == Mode::Resident {
                let message = format!(
                    "buffer {name}: with mode=\"resident\" the arrays of a batch cannot change; \
                     take mode=\"graph\""
                );
                return Err(PyValueError::new_err(message));
            }
            if let Some(contents) = contents {
                constants.push((declared.len(), dlpack::take(&contents, None)?));
            }
            let handle = Typed::declare(&mut recorder, dtype, role, &name, len);
            declared.push(Declared {
                name,
                dtype,
                len,
                role,
                handle,
            });
        }
        for buffer in declared.iter().filter(|buffer| buffer.role == Role::Input) {
            buffer.handle.upload(&mut recorder);
        }
        let mut written = vec![false; declared.len()];
        for launch in launches {
            record_launch(
                &mut recorder,
                &source,
                &image,
                launch,
                &declared,
                &mut written,
                is_gpu,
            )?;
        }
        for buffer in declared.iter().filter(|buffer| buffer.role == Role::Output) {
            buffer.handle.download(&mut recorder);
        }

        let ring = py.detach(|| {
            let mut buckets = Buckets::single(recorder.finish()?);
            for (index, buffer) in declared.iter().enumerate() {
                if !matches!(buffer.role, Role::Constant | Role::OnDevice) {
                    continue;
                }
                // A ring has memory for all buffers. For one on the device, each batch binds its own array instead.
                let memory = backend.allocate(Space::Device, buffer.bytes())?;
                if let Some((_, contents)) = constants.iter().find(|(buffer, _)| *buffer == index) {
                    backend.write(contents.host_bytes(), &memory, 0)?;
                }
                let view = AllocationView::new(&memory, 0, buffer.bytes())?;
                buckets = buffer.handle.make_resident(buckets, view)?;
            }
            let policy = Policy {
                verify: if verify { Verify::First } else { Verify::Off },
                ..Policy::new(mode)
            };
            // The ring is polled, and never waited on.
            Ring::new(&backend, &Arc::new(buckets), slots, &policy, Wait::Spin)
        });
        let ring = ring.map_err(|error: tapeloop::Error| raised(&error))?;
        Ok(Replay {
            state: Mutex::new(Some(State::new(ring))),
            left: Mutex::default(),
            dropped: Mutex::default(),
            buffers: declared,
            written,
            ordinal: is_gpu.then(|| ordinal.unwrap_or(0)),
            backend,
            process: std::process::id(),
        })
    }

    /// The name of the device.
    #[getter]
    fn device(&self) -> String {
        self.backend.device().name.clone()
    }

    /// Submits a batch: the arrays of inputs, and of buffers on the device. Waits for a free slot.
    fn submit(&self, py: Python<'_>, arrays: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<u64> {
        self.check_process()?;
        dlpack::release_dropped(py);
        let mut given: Vec<Option<Bound<'_, PyAny>>> = vec![None; self.buffers.len()];
        for (name, array) in arrays {
            let place = self.buffers.iter().position(|buffer| buffer.name == name);
            let place = place.ok_or_else(|| PyValueError::new_err(format!("no buffer {name}")))?;
            given[place] = Some(array);
        }
        let mut slot = self.acquire(py)?;
        // Taking an array may run code that submits a batch itself, which must not wait for this slot.
        let is_within = FILLS.replace(true);
        let filled = self.fill(py, &mut slot, &given);
        FILLS.set(is_within);
        match filled {
            Ok(uses) => {
                let submitted = py.detach(|| self.give(slot, uses));
                dlpack::release_dropped(py);
                submitted
            }
            Err(error) => {
                py.detach(|| {
                    if let Some(state) = &mut *self.lock() {
                        state.filling -= 1;
                        state.spare.push(slot);
                    }
                });
                dlpack::release_dropped(py);
                Err(error)
            }
        }
    }

    /// Whether a batch has finished. Takes in the batches that have, and lets go of arrays that are
    /// not needed any more.
    fn is_done(&self, py: Python<'_>, id: u64) -> PyResult<bool> {
        self.check_process()?;
        let is_done = py.detach(|| {
            let mut state = self.lock();
            let Some(state) = &mut *state else {
                return self.lock_left().contains_key(&id).then_some(true);
            };
            self.pump(state);
            Some(!state.in_flight.contains_key(&id))
        });
        dlpack::release_dropped(py);
        is_done.ok_or_else(closed)
    }

    /// Waits for a batch, at most `timeout` seconds, and returns the bytes of the outputs in order;
    /// `None` after the timeout. The results of a batch can be taken once.
    fn result<'py>(
        &self,
        py: Python<'py>,
        id: u64,
        timeout: Option<f64>,
    ) -> PyResult<Option<Vec<Bound<'py, PyByteArray>>>> {
        self.check_process()?;
        if timeout.is_some_and(f64::is_nan) {
            return Err(PyValueError::new_err("the timeout is not a number"));
        }
        let start = Instant::now();
        loop {
            let outcome = py.detach(|| {
                let mut state = self.lock();
                let Some(state) = &mut *state else {
                    let left = self.lock_left().remove(&id);
                    return left.map(Some).ok_or_else(closed);
                };
                self.pump(state);
                match state.done.remove(&id) {
                    Some(outcome) => Ok(Some(outcome)),
                    None if state.in_flight.contains_key(&id) => Ok(None),
                    None => Err(PyValueError::new_err("the results were taken before")),
                }
            });
            dlpack::release_dropped(py);
            if let Some(outcome) = outcome? {
                let outputs = outcome.map_err(|error| raised(&error))?;
                let arrays = outputs.iter().map(|bytes| PyByteArray::new(py, bytes));
                return Ok(Some(arrays.collect()));
            }
            if timeout.is_some_and(|timeout| start.elapsed().as_secs_f64() >= timeout) {
                return Ok(None);
            }
            pause(py, start)?;
        }
    }

    /// Drops the results of a batch, now or when it is done. Waits for no lock that is held while a
    /// device works.
    fn forget(&self, id: u64) {
        // In a forked process the lock may be that of a thread that does not exist.
        if self.process != std::process::id() {
            return;
        }
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        dropped.push(id);
    }

    /// Waits for what is in flight, and frees everything.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.process != std::process::id() {
            return Ok(());
        }
        check_outside_twin()?;
        let start = Instant::now();
        while !py.detach(|| self.close_if_idle()) {
            dlpack::release_dropped(py);
            pause(py, start)?;
        }
        dlpack::release_dropped(py);
        Ok(())
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // The device belongs to the process before the fork.
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(state.take());
            return;
        }
        Python::attach(|py| {
            py.detach(|| {
                // A twin that still ran could meet the end of the interpreter. A twin does not wait for itself.
                while !is_in_twin() && !self.is_idle() {
                    std::thread::sleep(PAUSE_MAX);
                }
                drop(self.lock().take());
            });
            dlpack::release_dropped(py);
        });
    }
}

fn closed() -> PyErr {
    TapeloopError::new_err("the replay was closed")
}

/// Sleeps without the GIL for a tenth of the time that the caller has waited, so that a result is seen little
/// later than it is there; at first not at all. Raises what a signal's handler raises.
fn pause(py: Python<'_>, start: Instant) -> PyResult<()> {
    py.check_signals()?;
    let waited = start.elapsed();
    if waited > SPIN {
        py.detach(|| std::thread::sleep((waited / 10).min(PAUSE_MAX)));
    }
    Ok(())
}

impl Replay {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_left(&self) -> MutexGuard<'_, HashMap<u64, Outcome>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no batch is in flight any more.
    fn is_idle(&self) -> bool {
        let mut state = self.lock();
        let Some(state) = &mut *state else {
            return true;
        };
        self.pump(state);
        state.in_flight.is_empty()
    }

    /// Takes no more batches, and frees everything if none is in flight. Returns whether it did. Other
    /// threads may submit until the lock is taken here, and the results of their batches are kept.
    fn close_if_idle(&self) -> bool {
        let mut guard = self.lock();
        let Some(state) = &mut *guard else {
            return true;
        };
        state.is_closing = true;
        self.pump(state);
        if !state.in_flight.is_empty() {
            return false;
        }
        self.lock_left().extend(state.done.drain());
        let state = guard.take();
        drop(guard);
        drop(state);
        true
    }

    /// Refuses calls in a child of the process that made the replay, and in a twin.
    fn check_process(&self) -> PyResult<()> {
        check_outside_twin()?;
        if self.process == std::process::id() {
            Ok(())
        } else {
            Err(TapeloopError::new_err(
                "the replay was made before a fork, and its device belongs to that process (fix: \
             make it in the child, or start processes with spawn)",
            ))
        }
    }

    /// Takes the results of batches that have finished, and drops those whose `Job` was dropped. The GIL must not
    /// be held: a twin takes it.
    fn pump(&self, state: &mut State) {
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        for id in dropped.drain(..) {
            if state.done.remove(&id).is_none() && state.in_flight.contains_key(&id) {
                state.unwanted.insert(id);
            }
        }
        drop(dropped);
        while let Some(finished) = state.ring.poll() {
            let outputs = finished.as_ref().ok().map(|slot| {
                let outputs = self.buffers.iter();
                let outputs = outputs.filter(|buffer| buffer.role == Role::Output);
                let outputs = outputs.map(|buffer| buffer.handle.read(slot).to_vec());
                outputs.collect::<Vec<_>>()
            });
            let (id, error) = state.ring.release(finished);
            state.in_flight.remove(&id);
            if !state.unwanted.remove(&id) {
                let outcome = match error {
                    Some(error) => Err(error),
                    None => Ok(outputs.unwrap_or_default()),
                };
                state.done.insert(id, outcome);
            }
        }
    }

    /// A slot that is free. Takes batches in that have finished, and waits without the GIL. Without a batch in
    /// flight or being filled nothing would free a slot, so the device has lost them all: an error.
    fn acquire(&self, py: Python<'_>) -> PyResult<Slot<Filling>> {
        let start = Instant::now();
        loop {
            let slot = py.detach(|| {
                let mut state = self.lock();
                let state = state.as_mut().filter(|state| !state.is_closing);
                let state = state.ok_or_else(closed)?;
                self.pump(state);
                let slot = state.spare.pop().or_else(|| state.ring.acquire());
                let is_idle = slot.is_none() && state.ring.in_flight() == 0;
                if is_idle && FILLS.get() {
                    return Err(TapeloopError::new_err(
                        "an array submits a batch while it is taken for one, which has the last slot",
                    ));
                }
                let is_lost = is_idle && state.filling == 0;
                state.filling += usize::from(slot.is_some());
                if is_lost {
                    Err(TapeloopError::new_err("the device is lost"))
                } else {
                    Ok(slot)
                }
            });
            dlpack::release_dropped(py);
            if let Some(slot) = slot? {
                return Ok(slot);
            }
            pause(py, start)?;
        }
    }

    /// Writes the inputs into a slot, and binds it to arrays on the device, which it returns. Errors name the buffer.
    fn fill(
        &self,
        py: Python<'_>,
        slot: &mut Slot<Filling>,
        given: &[Option<Bound<'_, PyAny>>],
    ) -> PyResult<Vec<Use>> {
        let mut uses = Vec::new();
        let mut bound: Vec<(Typed, Array)> = Vec::new();
        for ((buffer, array), written) in self.buffers.iter().zip(given).zip(&self.written) {
            let wrong = |what: String| PyValueError::new_err(format!("{}: {what}", buffer.name));
            let is_taken = matches!(buffer.role, Role::Input | Role::OnDevice);
            let array = match (array, is_taken) {
                (Some(array), true) => array,
                (None, false) => continue,
                (None, true) => return Err(wrong("it is missing".to_owned())),
                (Some(_), false) => return Err(wrong("the buffer is not an input".to_owned())),
            };
            let place = dlpack::place_of(array)?;
            let place = place.ok_or_else(|| wrong("the argument is not an array".to_owned()))?;
            let stream = match (buffer.role, place) {
                (Role::OnDevice, Place::Host) => {
                    return Err(wrong("it takes an array on the GPU".to_owned()));
                }
                (_, Place::Host) => None,
                (Role::OnDevice, Place::Cuda(ordinal)) if Some(ordinal) == self.ordinal => {
                    slot.stream()
                }
                (Role::OnDevice, Place::Cuda(ordinal)) => {
                    let kernels_on = self.ordinal.unwrap_or_default();
                    let what =
                        format!("the array is on GPU {ordinal}, and the kernels on {kernels_on}");
                    return Err(wrong(what));
                }
                (_, Place::Cuda(_)) => {
                    let what = "the array is on a GPU; declare the buffer with on_device=True";
                    return Err(wrong(what.to_owned()));
                }
            };
            let array = dlpack::take(array, stream).map_err(|error| {
                let is_of_array = error.is_instance_of::<PyBufferError>(py)
                    || error.is_instance_of::<PyValueError>(py)
                    || error.is_instance_of::<PyTypeError>(py);
                if is_of_array {
                    wrong(error.value(py).to_string())
                } else {
                    error
                }
            })?;
            if array.place != place {
                return Err(wrong(
                    "its __dlpack_device__ and its data name different devices".to_owned(),
                ));
            }
            if !array.has_elements(buffer.dtype) {
                let dtype = name_of(buffer.dtype).unwrap_or_default();
                return Err(wrong(format!("its DLPack data are no elements of {dtype}")));
            }
            if array.bytes != buffer.bytes() {
                let (got, takes) = (array.bytes, buffer.bytes());
                return Err(wrong(format!("it takes {takes} bytes, and got {got}")));
            }
            match buffer.role {
                Role::Input => buffer
                    .handle
                    .write(slot)
                    .copy_from_slice(array.host_bytes()),
                _ => {
                    let used = Use {
                        addresses: array.address..array.address + array.bytes as u64,
                        is_written: *written,
                    };
                    if uses.iter().any(|other| used.conflicts(other)) {
                        let what = "it shares memory with another array, and one is written";
                        return Err(wrong(what.to_owned()));
                    }
                    uses.push(used);
                    bound.push((buffer.handle, array));
                }
            }
        }
        if !bound.is_empty() {
            let rebound = py.detach(|| {
                let mut bindings = slot.bindings(0)?;
                for (handle, array) in bound {
                    let (address, bytes) = (array.address, array.bytes);
                    // SAFETY: DLPack gives memory of this device, which the array keeps. The
                    // caller answers for other code that uses it meanwhile, as documented.
                    let memory = unsafe { self.backend.borrow(address, bytes, Box::new(array)) };
                    let view = AllocationView::new(&memory?, 0, bytes)?;
                    handle.bind(&mut bindings, view)?;
                }
                slot.rebind(0, bindings)
            });
            rebound.map_err(|error: tapeloop::Error| raised(&error))?;
        }
        Ok(uses)
    }

    /// Gives a filled slot to the device. Refuses it, and keeps the slot as a spare one, if it shares memory
    /// with a batch in flight and one of the two writes it. The caller must not hold the GIL: see
    /// [`Replay::pump`]. A replay that is closing still takes it, as its slot was filled before.
    fn give(&self, slot: Slot<Filling>, uses: Vec<Use>) -> PyResult<u64> {
        let mut state = self.lock();
        let state = state.as_mut().ok_or_else(closed)?;
        state.filling -= 1;
        self.pump(state);
        let mut others = state.in_flight.values().flatten();
        if others.any(|other| uses.iter().any(|used| used.conflicts(other))) {
            state.spare.push(slot);
            return Err(PyValueError::new_err(
                "a batch in flight uses one of the arrays, and one of the two writes it (fix: \
                 take its result first, or give each batch arrays of its own)",
            ));
        }
        let id = state.next;
        match state.ring.submit(slot, Extent::from([1]), id) {
            Ok(_) => {
                state.next += 1;
                state.in_flight.insert(id, uses);
                Ok(id)
            }
            Err(failed) => {
                let (_, error) = state.ring.release(Err(failed));
                let error = error.expect("a failed batch has an error");
                Err(raised(&error))
            }
        }
    }
}
