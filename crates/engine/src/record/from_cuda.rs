//! Kernels that are declared by their CUDA C++ text.

use super::buffer::{DType, StructType};
use super::kernel::{Access, Image, Kernel, ParamKind};
use super::struct_arg::PointerField;
use crate::error::{Error, ErrorKind, Result};
use tapeloop_signature::{
    CudaType, Declarations, NumberType, Parameter, PointerAccess, SignatureError, vector_bytes,
};

impl Kernel {
    /// The kernel `name` of a CUDA C++ text, which NVRTC compiles at run time: the parameters are
    /// those of the text, as [`Kernel::declared_in`] reads them, and `file` is the name that the
    /// compiler's messages cite. The function must be `extern "C"`. [`Kernel::twin`] may follow.
    ///
    /// ```
    /// # use tapeloop_engine::record::Kernel;
    /// let text = r#"
    /// extern "C" __global__ void square(const float* x, float* y, unsigned len)
    /// {
    ///     const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    ///     if (i < len)
    ///         y[i] = x[i] * x[i];
    /// }"#;
    /// // SAFETY: `square` reads `x` and writes `y` below `len`, which is the length that both
    /// // have in the recording.
    /// let kernel = unsafe { Kernel::from_cuda("square.cu", text, "square") }?;
    /// # Ok::<(), tapeloop_engine::Error>(())
    /// ```
    ///
    /// # Safety
    /// The conditions of [`Kernel::code`] hold: the text gives the types of the parameters, but not
    /// how far the kernel reads and writes.
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`] as in [`Kernel::declared_in`], within `file`.
    pub unsafe fn from_cuda(file: &str, text: &str, name: &str) -> Result<Self> {
        let kernel = Kernel::declared_in(text, name).map_err(|error| error.within(file))?;
        // SAFETY: the caller's promise.
        Ok(unsafe { kernel.code(&Image::cuda(file, text)) })
    }

    /// The declaration of the kernel `name` in a CUDA C++ text, without its code.
    ///
    /// A `const T*` is a buffer that the kernel reads, a `T*` one that it writes, and a `T*`
    /// followed by the comment `/* updated */` one that it reads and writes. Other parameters are
    /// passed by value: numbers, or structs that the text defines, whose pointers follow the same
    /// rule. `__launch_bounds__` gives the threads of a block along x: a product of numbers, and of
    /// constants and macros of the text. Without it a block has 128. [`Kernel::block_shape`] declares other
    /// shapes, and [`Kernel::shared_bytes`] dynamic shared memory, before [`Kernel::code`].
    ///
    /// # Errors
    /// [`ErrorKind::Kernel`] with the line, if the text has no such kernel, if a parameter's type is not
    /// supported, or if the launch bound is another expression.
    pub fn declared_in(text: &str, name: &str) -> Result<Self> {
        let parse_error = |error: SignatureError| {
            Error::new(ErrorKind::Kernel, error.message).within(format!("line {}", error.line))
        };
        let declarations = Declarations::parse(text);
        let kernels = declarations.kernels().map_err(parse_error)?;
        let Some(signature) = kernels.iter().find(|kernel| kernel.name == name) else {
            let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            let message = format!("the text has no kernel named {name}");
            return Err(
                Error::new(ErrorKind::Kernel, message).fix(if names.is_empty() {
                    "declare it as extern \"C\" __global__ void".to_owned()
                } else {
                    format!("its kernels are {}", names.join(", "))
                }),
            );
        };
        if let Some(line) = signature.unread_bound {
            let message = format!("the launch bound of kernel {name} is no product of numbers");
            let error = Error::new(ErrorKind::Kernel, message).within(format!("line {line}"));
            return Err(error.fix("write the number, or a macro or constant of this text"));
        }
        let mut kernel = Kernel::new(name);
        if let Some(threads) = signature.block_threads {
            kernel = kernel.block(threads);
        }
        for parameter in &signature.parameters {
            let kind = kind_of(&declarations, parameter).map_err(parse_error)?;
            kernel = kernel.param(&parameter.name, kind);
        }
        Ok(kernel)
    }
}

/// The kind of a kernel's parameter, from its C++ declaration.
fn kind_of(text: &Declarations, parameter: &Parameter) -> Result<ParamKind, SignatureError> {
    let dtype = |element: &CudaType| dtype_of(text, element, parameter.line);
    Ok(match (&parameter.pointer, &parameter.element) {
        (Some(access), element) => ParamKind::Buffer {
            dtype: dtype(element)?,
            access: (*access).into(),
        },
        (None, CudaType::Number(number)) => ParamKind::Scalar {
            dtype: (*number).into(),
        },
        (None, CudaType::Struct(name)) => {
            if let Some((bytes, _)) = vector_bytes(name) {
                let pointers = Vec::new();
                return Ok(ParamKind::Struct { bytes, pointers });
            }
            let layout = text.layout(name, parameter.line)?;
            let field = |(offset, access, element): &(usize, PointerAccess, CudaType)| {
                Ok(PointerField {
                    offset: *offset,
                    access: (*access).into(),
                    dtype: dtype(element)?,
                })
            };
            ParamKind::Struct {
                bytes: layout.bytes,
                pointers: layout
                    .pointers
                    .iter()
                    .map(field)
                    .collect::<Result<_, _>>()?,
            }
        }
    })
}

/// The type of the elements of a buffer that `line` declares. A struct has to be defined in the
/// text, as its size is part of the type. The error is at `line`.
fn dtype_of(text: &Declarations, element: &CudaType, line: usize) -> Result<DType, SignatureError> {
    match element {
        CudaType::Number(number) => Ok((*number).into()),
        CudaType::Struct(name) => {
            let bytes = match vector_bytes(name) {
                Some((bytes, _)) => bytes,
                None => text.layout(name, line)?.bytes,
            };
            if bytes == 0 || name.len() > StructType::NAME_BYTES_MAX {
                let max = StructType::NAME_BYTES_MAX;
                let message = format!("struct {name} is empty, or its name is above {max} bytes");
                return Err(SignatureError { line, message });
            }
            Ok(DType::Struct(StructType::new(name, bytes)))
        }
    }
}

impl From<PointerAccess> for Access {
    fn from(access: PointerAccess) -> Self {
        match access {
            PointerAccess::Read => Access::Read,
            PointerAccess::Write => Access::Write,
            PointerAccess::Update => Access::ReadWrite,
        }
    }
}

impl From<NumberType> for DType {
    fn from(number: NumberType) -> Self {
        match number {
            NumberType::U8 => DType::U8,
            NumberType::I8 => DType::I8,
            NumberType::U16 => DType::U16,
            NumberType::I16 => DType::I16,
            NumberType::U32 => DType::U32,
            NumberType::I32 => DType::I32,
            NumberType::U64 => DType::U64,
            NumberType::I64 => DType::I64,
            NumberType::F16 => DType::F16,
            NumberType::BF16 => DType::BF16,
            NumberType::F32 => DType::F32,
            NumberType::F64 => DType::F64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        struct Particle { float position[3]; float mass; };
        struct Field { const Particle* particles; float* energy; unsigned count; };
        extern "C" __global__ void __launch_bounds__(256)
        move(const Particle* from, Particle* to, unsigned* moved /* updated */, float4 wind,
             Field field, unsigned count) {}
    "#;

    #[test]
    fn the_text_is_the_declaration() {
        let by_text = Kernel::declared_in(TEXT, "move").unwrap();
        let particle = DType::Struct(StructType::new("Particle", 16));
        let by_hand = Kernel::new("move")
            .block(256)
            .param(
                "from",
                ParamKind::Buffer {
                    dtype: particle,
                    access: Access::Read,
                },
            )
            .param(
                "to",
                ParamKind::Buffer {
                    dtype: particle,
                    access: Access::Write,
                },
            )
            .updates::<u32>("moved")
            .structure("wind", 16, &[])
            .structure(
                "field",
                24,
                &[(0, Access::Read, particle), (8, Access::Write, DType::F32)],
            )
            .scalar::<u32>("count");
        assert_eq!(by_text.params(), by_hand.params());
        assert_eq!(by_text.threads(), by_hand.threads());
        assert!(!by_text.has_code());
    }

    #[test]
    fn what_the_text_lacks_is_an_error_that_names_it() {
        let error = |text: &str, name: &str| Kernel::declared_in(text, name).unwrap_err();
        let other = error(TEXT, "shift");
        assert_eq!(other.kind(), ErrorKind::Kernel);
        assert!(other.to_string().contains("shift"), "{other}");
        assert!(other.to_string().contains("move"), "{other}");
        let bound = "__global__ void\n__launch_bounds__(sizeof(int)) f(int x) {}";
        let bound = error(bound, "f").to_string();
        assert!(
            bound.contains("launch bound") && bound.contains("line 2"),
            "{bound}"
        );
        let on_line_3 = [
            ("\n__global__ void f(\nOther* x) {}", "define struct Other"),
            ("\n__global__ void f(\nOther x) {}", "define struct Other"),
            (
                "struct S {\nint i;\nOther o; }; __global__ void f(S x) {}",
                "define struct Other",
            ),
            (
                "struct Empty {};\n__global__ void f(\nEmpty* x) {}",
                "struct Empty is empty",
            ),
        ];
        for (text, part) in on_line_3 {
            let refused = error(text, "f").to_string();
            assert!(
                refused.contains(part) && refused.contains("line 3"),
                "{refused}"
            );
        }
        // SAFETY: nothing is launched.
        let named = unsafe { Kernel::from_cuda("f.cu", "__global__ void f(\nlong x) {}", "f") };
        let named = named.unwrap_err().to_string();
        assert!(
            named.contains("f.cu") && named.contains("line 2"),
            "{named}"
        );
    }
}
