//! Buffers of a recording by a type that is known at run time.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tapeloop::backend::AllocationView;
use tapeloop::pipeline::{Done, Filling, Slot};
use tapeloop::record::{Arg, Buffer, DType, Recorder, Scalar};
use tapeloop::replay::{Bindings, Buckets};

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Uploaded from the host with each batch.
    Input,
    /// Downloaded to the host with each batch.
    Output,
    /// Memory of a batch on the device.
    Scratch,
    /// Contents that all batches read.
    Constant,
    /// An array on the device, which each batch names.
    OnDevice,
}

impl Role {
    /// The role that Python's layer calls `name`.
    pub(crate) fn named(name: &str) -> Option<Role> {
        Some(match name {
            "input" => Role::Input,
            "output" => Role::Output,
            "scratch" => Role::Scratch,
            "constant" => Role::Constant,
            "on device" => Role::OnDevice,
            _ => return None,
        })
    }
}

macro_rules! typed {
    ($($name:ident $rust:ty, $text:literal;)*) => {
        /// A handle of a buffer of numbers.
        #[derive(Clone, Copy)]
        pub(crate) enum Typed { $($name(Buffer<$rust>)),* }

        /// The type of a name: one of NumPy's, or `bfloat16`.
        pub(crate) fn dtype_of(name: &str) -> PyResult<DType> {
            match name {
                $($text => Ok(DType::$name),)*
                _ => Err(PyTypeError::new_err(format!(
                    "elements of {name}; buffers have {}", [$($text),*].join(", ")
                ))),
            }
        }

        /// The name of a type; `None` for a struct.
        pub(crate) fn name_of(dtype: DType) -> Option<&'static str> {
            match dtype {
                $(DType::$name => Some($text),)*
                _ => None,
            }
        }

        impl Typed {
            /// Declares a buffer of `len` elements: `recorder` has one axis of capacity 1, along which an upload
            /// and a download have `len` elements.
            ///
            /// # Panics
            /// For a struct.
            pub(crate) fn declare(
                recorder: &mut Recorder, dtype: DType, role: Role, name: &str, len: usize,
            ) -> Self {
                match dtype {
                    $(DType::$name => Typed::$name(match role {
                        Role::Input => recorder.upload_buffer::<$rust>(name, 0, len),
                        Role::Output => recorder.download_buffer(name, 0, len),
                        Role::Scratch => {
                            recorder.batch_buffer(name, len)
                        }
                        Role::Constant | Role::OnDevice => recorder.resident_buffer(name, len),
                    }),)*
                    _ => unreachable!("`dtype_of` gives numbers"),
                }
            }

            pub(crate) fn arg(self) -> Arg {
                match self { $(Typed::$name(buffer) => buffer.into()),* }
            }

            pub(crate) fn upload(self, recorder: &mut Recorder) {
                match self { $(Typed::$name(buffer) => recorder.upload(buffer)),* }
            }

            pub(crate) fn download(self, recorder: &mut Recorder) {
                match self { $(Typed::$name(buffer) => recorder.download(buffer)),* }
            }

            pub(crate) fn write(self, slot: &mut Slot<Filling>) -> &mut [u8] {
                match self {
                    $(Typed::$name(buffer) => bytemuck::cast_slice_mut(slot.write(buffer))),*
                }
            }

            pub(crate) fn read<B>(self, slot: &Slot<Done<B>>) -> &[u8] {
                match self { $(Typed::$name(buffer) => bytemuck::cast_slice(slot.read(buffer))),* }
            }

            pub(crate) fn bind(
                self, bindings: &mut Bindings, view: AllocationView,
            ) -> tapeloop::Result<()> {
                match self { $(Typed::$name(buffer) => bindings.bind_device(buffer, view)),* }
            }

            pub(crate) fn make_resident(
                self, buckets: Buckets, view: AllocationView,
            ) -> tapeloop::Result<Buckets> {
                match self { $(Typed::$name(buffer) => buckets.with_resident(buffer, view)),* }
            }
        }
    };
}
typed! {
    U8 u8, "uint8";
    I8 i8, "int8";
    U16 u16, "uint16";
    I16 i16, "int16";
    U32 u32, "uint32";
    I32 i32, "int32";
    U64 u64, "uint64";
    I64 i64, "int64";
    F16 half::f16, "float16";
    BF16 half::bf16, "bfloat16";
    F32 f32, "float32";
    F64 f64, "float64";
}

/// A Python number as an argument of this type.
pub(crate) fn scalar(dtype: DType, value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    macro_rules! scalar {
        ($($name:ident $rust:ty),*; $($half:ident $narrow:ty),*) => {
            match dtype {
                $(DType::$name => Scalar::from(value.extract::<$rust>()?),)*
                $(DType::$half => Scalar::from(<$narrow>::from_f64(value.extract()?)),)*
                DType::Struct(_) | _ => {
                    return Err(PyValueError::new_err("it takes a struct, which Python cannot pass"));
                }
            }
        };
    }
    Ok(scalar!(
        U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64;
        F16 half::f16, BF16 half::bf16
    ))
}

/// An argument of a twin by value, as Python has it.
pub(crate) fn number<'py>(py: Python<'py>, scalar: Scalar) -> PyResult<Bound<'py, PyAny>> {
    macro_rules! number {
        ($($name:ident $rust:ty),*; $($half:ident $narrow:ty),*) => {
            match scalar.dtype {
                $(DType::$name => Ok(scalar.get::<$rust>().into_pyobject(py)?.into_any()),)*
                $(DType::$half => {
                    Ok(scalar.get::<$narrow>().to_f64().into_pyobject(py)?.into_any())
                })*
                _ => Err(PyValueError::new_err("a struct")),
            }
        };
    }
    number!(
        U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64;
        F16 half::f16, BF16 half::bf16
    )
}
