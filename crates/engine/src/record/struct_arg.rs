//! Structs that kernels take by value, and the places of pointers in a launch's arguments.

use super::buffer::{Buffer, BufferId, DType, Element, Number};
use super::kernel::{Access, Kernel, ParamKind};
use super::uniform::{Uniform, UniformId};
use crate::error::{Error, Result};

/// Size of a parameter word in bytes. A launch passes its arguments as words, and each argument
/// starts a new word.
pub const WORD_BYTES: usize = size_of::<u64>();

/// The largest struct in bytes: CUDA's limit on all parameters of a kernel together, 32,764.
pub const STRUCT_BYTES_MAX: usize = tapeloop_signature::PARAMETER_BYTES_MAX;

/// A pointer inside a struct that a kernel takes by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub struct PointerField {
    /// Its offset in the struct, in bytes; a multiple of 8.
    pub offset: usize,
    /// What the kernel does with the memory that it points to.
    pub access: Access,
    /// The type of the elements that it points to.
    pub dtype: DType,
}

/// What a pointer among the arguments of a launch points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A buffer of the recording.
    Buffer(BufferId),
    /// A value in the header.
    Uniform(UniformId),
    /// A device address in the embedder's memory, which the embedder declared to the executor
    /// (`Executor::declare`).
    Address(u64),
}

/// A struct as a launch passes it: its bytes, and the targets of its pointers in the order in which
/// the kernel declares the pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructArg {
    pub(super) bytes: Vec<u8>,
    pub(super) targets: Vec<Target>,
}

impl StructArg {
    /// A struct of these bytes. The bytes at the offsets of its pointers are replaced by addresses.
    pub fn new(bytes: &[u8]) -> Self {
        StructArg {
            bytes: bytes.to_vec(),
            targets: Vec::new(),
        }
    }

    /// Points the next pointer at a buffer.
    #[must_use]
    pub fn buffer<T: Element>(mut self, buffer: Buffer<T>) -> Self {
        self.targets.push(Target::Buffer(buffer.id()));
        self
    }

    /// Points the next pointer at a value in the header.
    #[must_use]
    pub fn uniform<T: Number>(mut self, uniform: Uniform<T>) -> Self {
        self.targets.push(Target::Uniform(uniform.id()));
        self
    }

    /// Points the next pointer at an address in the embedder's memory: `Allocation::address`, or an
    /// address behind it.
    ///
    /// ```compile_fail,E0133
    /// use tapeloop_engine::record::StructArg;
    /// let anywhere = StructArg::new(&[0; 8]).address(0x1000);
    /// ```
    ///
    /// # Safety
    /// The kernel that gets the struct accesses, from `address` on, only memory that is declared to
    /// the executor. An address has no length, so no check can see how far the kernel goes.
    #[must_use]
    pub unsafe fn address(mut self, address: u64) -> Self {
        self.targets.push(Target::Address(address));
        self
    }

    /// A struct that consists of one pointer into the embedder's memory.
    #[cfg(test)]
    pub(crate) fn of_address(address: u64) -> Self {
        StructArg {
            bytes: vec![0; WORD_BYTES],
            targets: vec![Target::Address(address)],
        }
    }

    /// The targets of its pointers.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The bytes as words; the last word is padded with zeros.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.bytes.chunks(WORD_BYTES).map(|chunk| {
            let mut word = [0; WORD_BYTES];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        })
    }
}

/// The place of an address among the words that a launch passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Index of the parameter.
    pub param: usize,
    /// Offset in bytes inside the parameter, if that is a struct.
    pub offset: Option<usize>,
    /// Index of the word.
    pub word: usize,
    /// What the kernel does with the memory that it points to.
    pub access: Access,
    /// The type of the elements that it points to.
    pub dtype: DType,
}

impl ParamKind {
    /// Size in bytes as the kernel's code sees it.
    pub fn size_bytes(&self) -> usize {
        match self {
            ParamKind::Buffer { .. } => size_of::<u64>(),
            ParamKind::Scalar { dtype } => dtype.size_bytes(),
            ParamKind::Struct { bytes, .. } => *bytes,
        }
    }

    /// The number of words in which a launch passes it.
    pub fn words(&self) -> usize {
        self.size_bytes().div_ceil(WORD_BYTES)
    }
}

/// The number of words in which a launch passes parameters of these kinds.
pub fn words_of<'a>(kinds: impl IntoIterator<Item = &'a ParamKind>) -> usize {
    let words = kinds.into_iter().map(ParamKind::words);
    words.fold(0, usize::saturating_add)
}

/// The pointers among the words of parameters of these kinds, in declaration order.
pub fn pointers_of<'a>(
    kinds: impl IntoIterator<Item = &'a ParamKind>,
) -> impl Iterator<Item = Pointer> {
    let mut start = 0_usize;
    let of_param = move |(param, kind): (usize, &'a ParamKind)| {
        let first = start;
        // Nothing has checked the sizes yet.
        start = first.saturating_add(kind.words());
        let plain = match kind {
            ParamKind::Buffer { dtype, access } => Some(Pointer {
                param,
                offset: None,
                word: first,
                access: *access,
                dtype: *dtype,
            }),
            _ => None,
        };
        let fields = match kind {
            ParamKind::Struct { pointers, .. } => &pointers[..],
            _ => &[],
        };
        let inside = fields.iter().map(move |field| Pointer {
            param,
            offset: Some(field.offset),
            word: first.saturating_add(field.offset / WORD_BYTES),
            access: field.access,
            dtype: field.dtype,
        });
        plain.into_iter().chain(inside)
    };
    kinds.into_iter().enumerate().flat_map(of_param)
}

/// Checks a struct argument against its declaration.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a size that is 0 or too large, a pointer that
/// is misplaced or declared twice, or another size or number of pointers than declared.
pub(crate) fn check_struct(
    bytes: usize,
    pointers: &[PointerField],
    passed: &StructArg,
) -> Result<()> {
    let usage_error = |message: String| Err(Error::usage(message));
    if bytes == 0 || bytes > STRUCT_BYTES_MAX {
        return usage_error(format!(
            "a struct of {bytes} bytes; it must have 1 to {STRUCT_BYTES_MAX}"
        ));
    }
    for (place, field) in pointers.iter().enumerate() {
        let offset = field.offset;
        if !offset.is_multiple_of(WORD_BYTES) || offset >= bytes || bytes - offset < WORD_BYTES {
            return usage_error(format!(
                "a pointer at offset {offset} of {bytes} bytes; pointers lie inside, at multiples \
                 of {WORD_BYTES}"
            ));
        }
        if pointers[..place].iter().any(|other| other.offset == offset) {
            return usage_error(format!("two pointers at offset {offset}"));
        }
    }
    if passed.bytes.len() != bytes || passed.targets.len() != pointers.len() {
        let (got, set) = (passed.bytes.len(), passed.targets.len());
        let declared = pointers.len();
        return usage_error(format!(
            "it takes {bytes} bytes with {declared} pointers, and got {got} bytes with {set}"
        ));
    }
    Ok(())
}

impl Kernel {
    /// Adds a struct of `bytes` bytes that is passed by value, with the pointers in it that the
    /// kernel follows: for each its offset in bytes, how the kernel accesses the memory behind it,
    /// and the type of the elements there.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn structure(self, name: &str, bytes: usize, pointers: &[(usize, Access, DType)]) -> Self {
        let field = |&(offset, access, dtype): &(usize, Access, DType)| PointerField {
            offset,
            access,
            dtype,
        };
        let pointers = pointers.iter().map(field).collect();
        self.param(name, ParamKind::Struct { bytes, pointers })
    }

    /// Declares that the kernel reads pointers from device memory and follows them, as in a list of
    /// lists. No check sees these pointers: they must point into buffers that the launch passes, or
    /// into memory that is declared to the executor.
    ///
    /// # Panics
    /// After [`Kernel::code`].
    #[must_use]
    pub fn follows_device_pointers(mut self) -> Self {
        self.expect_open();
        self.follows_device_pointers = true;
        self
    }

    /// The places of the pointers among the words of a launch.
    pub fn pointers(&self) -> impl Iterator<Item = Pointer> {
        pointers_of(self.params.iter().map(|param| &param.kind))
    }

    /// The number of words that a launch passes.
    pub fn words(&self) -> usize {
        words_of(self.params.iter().map(|param| &param.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_starts_a_word_and_pointers_are_found_in_them() {
        let kernel = Kernel::new("k")
            .scalar::<u8>("a")
            .structure(
                "s",
                28,
                &[
                    (16, Access::Write, DType::F32),
                    (0, Access::Read, DType::I32),
                ],
            )
            .reads::<f64>("x");
        assert_eq!(kernel.words(), 1 + 4 + 1);
        let found: Vec<_> = kernel
            .pointers()
            .map(|pointer| (pointer.param, pointer.offset, pointer.word))
            .collect();
        assert_eq!(found, [(1, Some(16), 3), (1, Some(0), 1), (2, None, 5)]);
    }

    #[test]
    fn structs_that_no_recording_takes_overflow_nothing() {
        let pointers = [(usize::MAX, Access::Read, DType::U8)];
        let endless = |kernel: Kernel| kernel.structure("s", usize::MAX, &pointers);
        let kernel = (0..9).fold(Kernel::new("k"), |kernel, _| endless(kernel));
        assert_eq!(kernel.words(), usize::MAX);
        assert_eq!(kernel.pointers().last().unwrap().word, usize::MAX);
    }

    #[test]
    fn the_last_word_of_a_struct_is_filled_up_with_zeros() {
        let words: Vec<u64> = StructArg::new(&[1, 0, 0, 0, 0, 0, 0, 0, 2, 1])
            .words()
            .collect();
        assert_eq!(words, [1, 0x102]);
    }
}
