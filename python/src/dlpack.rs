//! Arrays of other libraries, by DLPack (<https://dmlc.github.io/dlpack/latest/c_api.html>).

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use tapeloop::record::DType;

const FRESH: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
/// Device types of DLPack.
const CPU: i32 = 1;
const CUDA: i32 = 2;
/// Types of elements.
const INTEGER: u8 = 0;
const UNSIGNED: u8 = 1;
const REAL: u8 = 2;
const BFLOAT: u8 = 4;

#[repr(C)]
struct Device {
    kind: i32,
    ordinal: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    dimensions: i32,
    data_type: DataType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// Where the elements of an array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    /// On the CUDA device with this ordinal.
    Cuda(i32),
}

/// An array that this value keeps.
pub(crate) struct Array {
    managed: NonNull<Managed>,
    pub(crate) place: Place,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    data_type: DataType,
}

// SAFETY: only `release_dropped` passes the pointer on, with the GIL.
unsafe impl Send for Array {}
// SAFETY: as for `Send`; nothing is changed through a reference.
unsafe impl Sync for Array {}

/// Arrays that were dropped, maybe by a thread without the GIL, and are to be released with it.
static DROPPED: Mutex<Vec<Dropped>> = Mutex::new(Vec::new());

struct Dropped(NonNull<Managed>);

// SAFETY: as for `Array`.
unsafe impl Send for Dropped {}

/// Gives the arrays that were dropped back to their libraries, whose code may need the GIL.
pub(crate) fn release_dropped(_: Python<'_>) {
    let dropped = std::mem::take(&mut *DROPPED.lock().unwrap_or_else(PoisonError::into_inner));
    for Dropped(managed) in dropped {
        // SAFETY: the struct is of a capsule that `take` marked as used, so its deleter is called
        // here, once.
        unsafe {
            if let Some(deleter) = managed.as_ref().deleter {
                deleter(managed.as_ptr());
            }
        }
    }
}

/// Calls [`release_dropped`] when it is dropped.
pub(crate) struct ReleaseDropped<'py>(pub(crate) Python<'py>);

impl Drop for ReleaseDropped<'_> {
    fn drop(&mut self) {
        release_dropped(self.0);
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        let mut dropped = DROPPED.lock().unwrap_or_else(PoisonError::into_inner);
        dropped.push(Dropped(self.managed));
    }
}

/// Where an array's elements are; `None` for an object that is no DLPack array.
pub(crate) fn place_of(array: &Bound<'_, PyAny>) -> PyResult<Option<Place>> {
    if !array.hasattr("__dlpack_device__")? {
        return Ok(None);
    }
    let (kind, ordinal) = array.call_method0("__dlpack_device__")?.extract()?;
    Device { kind, ordinal }.place().map(Some)
}

impl Device {
    /// Where the array is: on the host, or on a GPU. Others are refused.
    fn place(&self) -> PyResult<Place> {
        match self.kind {
            CPU => Ok(Place::Host),
            CUDA => Ok(Place::Cuda(self.ordinal)),
            kind => Err(PyValueError::new_err(format!(
                "the array is on a device of DLPack type {kind}; give one of the CPU or of CUDA"
            ))),
        }
    }
}

/// Takes an array, whose elements must lie one after the other. Work on `stream` that is given from
/// now on runs after what wrote the array. Errors are those of the array's library, and a `ValueError` for an
/// array that is not dense or on another kind of device.
pub(crate) fn take(array: &Bound<'_, PyAny>, stream: Option<u64>) -> PyResult<Array> {
    let capsule = match stream {
        None => array.call_method0("__dlpack__")?,
        Some(stream) => {
            let named = pyo3::types::PyDict::new(array.py());
            named.set_item("stream", stream)?;
            array.call_method("__dlpack__", (), Some(&named))?
        }
    };
    // SAFETY: the pointer is asked for by the name that the protocol gives it, which only a fresh
    // capsule has, and is null with an exception set otherwise.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), FRESH.as_ptr()) };
    let Some(managed) = NonNull::new(pointer.cast::<Managed>()) else {
        return Err(PyErr::fetch(array.py()));
    };
    // SAFETY: as above; from here on the capsule no longer calls the deleter.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), USED.as_ptr()) } != 0 {
        return Err(PyErr::fetch(array.py()));
    }
    // SAFETY: a DLPack capsule holds such a struct, which lives until its deleter is called.
    let tensor = unsafe { &managed.as_ref().tensor };
    // Made before the checks, so that an error gives the array back too.
    let mut taken = Array {
        managed,
        place: Place::Host,
        address: 0,
        bytes: 0,
        data_type: tensor.data_type,
    };
    taken.place = tensor.device.place()?;
    let invalid =
        || PyValueError::new_err("its DLPack struct has a shape that no memory has, or no data");
    let dimensions = usize::try_from(tensor.dimensions).map_err(|_| invalid())?;
    let list = |start: *const i64| {
        if start.is_null() || dimensions == 0 {
            return &[][..];
        }
        // SAFETY: the struct has as many sizes, and strides, as dimensions.
        unsafe { std::slice::from_raw_parts(start, dimensions) }
    };
    let (shape, strides) = (list(tensor.shape), list(tensor.strides));
    if shape.len() != dimensions || shape.iter().any(|size| *size < 0) {
        return Err(invalid());
    }
    let mut elements = 1_i64;
    for (axis, size) in shape.iter().enumerate().rev() {
        // Without strides an array is dense, and the stride of an axis of one element is not used.
        let is_dense = strides.is_empty() || *size == 1 || strides[axis] == elements;
        if !is_dense {
            return Err(PyValueError::new_err(
                "the array is not contiguous: pass x.contiguous() or ascontiguousarray(x)",
            ));
        }
        elements = elements.checked_mul(*size).ok_or_else(invalid)?;
    }
    let bits = i64::from(tensor.data_type.bits) * i64::from(tensor.data_type.lanes);
    let bits = elements.checked_mul(bits).ok_or_else(invalid)?;
    taken.bytes = usize::try_from(bits / 8).map_err(|_| invalid())?;
    let address = (tensor.data as u64).checked_add(tensor.byte_offset);
    taken.address = address.ok_or_else(invalid)?;
    if tensor.data.is_null() && taken.bytes > 0 {
        return Err(invalid());
    }
    Ok(taken)
}

impl Array {
    /// Whether the elements are of this type. Those of bfloat16 may be given as their bits.
    pub(crate) fn has_elements(&self, dtype: DType) -> bool {
        let kinds: &[u8] = match dtype {
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => &[INTEGER],
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => &[UNSIGNED],
            DType::F16 | DType::F32 | DType::F64 => &[REAL],
            DType::BF16 => &[BFLOAT, UNSIGNED],
            _ => &[],
        };
        let DataType { code, bits, lanes } = self.data_type;
        kinds.contains(&code) && usize::from(bits) == 8 * dtype.size_bytes() && lanes == 1
    }

    /// The bytes of an array of the host.
    ///
    /// # Panics
    /// For an array on a device.
    pub(crate) fn host_bytes(&self) -> &[u8] {
        assert_eq!(self.place, Place::Host, "the host sees its own memory");
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: `take` computed the size of the dense array at this address, which its library
        // keeps until the deleter is called. Python code that writes it at the same time, on another
        // thread, races as it would with NumPy.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) }
    }
}
