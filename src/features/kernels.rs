//! The declarations of the built-in kernels, which the build script reads from `kernels/*.cu`.
//!
//! Each kernel has a module of its name with two types: `Args`, the arguments of a launch by name,
//! and `Views`, the arguments as its CPU twin sees them. The feature that owns the kernel
//! implements [`Twin`] for the views. The text of a kernel is thus its only declaration: a launch
//! or a twin with other parameters does not compile.

use super::Features;
use super::dssp::Bridges;
use super::image;
use super::layout::{Atom, AtomTag, Backbone, ChainSpan, ResidueSpan, StructureSpan, Tile};
use crate::record::{Arg, Buffer, DType, Element, Kernel, Recorder, TwinLaunch};

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The arguments of a launch of a built-in kernel.
pub(super) trait BuiltIn {
    /// The kernel's declaration and twin, without its code.
    fn kernel() -> Kernel;

    /// The arguments in the kernel's order.
    fn args(self) -> Vec<Arg>;
}

/// The CPU twin of a kernel, implemented for the kernel's views. It does the same arithmetic in the
/// same order, and uses only operations that are correctly rounded on both sides, so results are
/// bit-identical. Buffers may be longer than recorded.
pub(super) trait Twin {
    /// Computes what the kernel computes.
    fn run(self);
}

macro_rules! structs {
    ($($name:ident),*) => {
        $(impl Element for $name {
            const DTYPE: DType = DType::of_struct::<$name>(stringify!($name));
        })*
    };
}
structs!(
    Atom,
    AtomTag,
    Backbone,
    Bridges,
    ChainSpan,
    ResidueSpan,
    StructureSpan,
    Tile
);

/// Attaches the code of a built-in kernel for `recorder`.
///
/// The kernels rely on the header and on the descriptors that [`super::pack`] writes. Only a
/// recorder that an engine made for [`Features`] guarantees both. Any other gets the kernel without
/// its code, so that only the twin can run.
pub(super) fn with_code(kernel: Kernel, recorder: &Recorder) -> Kernel {
    if !recorder.is_for::<Features>() {
        return kernel;
    }
    // SAFETY: the build script compiled the image from `kernels/*.cu`, and read each declaration
    // from the same text, so it names a function there with the parameters that it has. A kernel
    // takes its bounds from the header and from descriptors, never from the grid alone. The
    // recorder is the engine's own for `Features` (checked above), so nothing else records commands
    // around these launches or writes what they upload: the engine writes the header within the
    // capacity, and `pack` writes descriptors that lie within the item's part of the batch, for
    // structures whose parts `pack::extent` checked. No parameter is declared changeable.
    unsafe { kernel.code(&image::image()) }
}
