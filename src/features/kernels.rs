//! The built-in kernels, as the build read them from `kernels/*.cu`.
//!
//! Each kernel has a module of its name with two types: `Args`, the arguments of a launch by
//! name, and `Views`, what its CPU twin sees of them. [`Twin`] is implemented for the views next to
//! the feature that owns the kernel. So the text of a kernel alone says what it takes, and whoever
//! launches or mirrors it otherwise does not compile.

use super::layout::{
    Atom, AtomTag, Backbone, Bridges, ChainSpan, ResidueSpan, StructureSpan, Tile,
};
use crate::record::{Arg, Buffer, DType, Element, Kernel, Recorder, TwinLaunch};

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The arguments of a launch of a built-in kernel.
pub(super) trait BuiltIn {
    /// The kernel's declaration and twin, without its code.
    fn kernel() -> Kernel;

    /// The arguments in the kernel's order.
    fn args(self) -> Vec<Arg>;
}

/// The CPU twin of a kernel, implemented for what it sees of a launch. It does the same arithmetic
/// in the same order, and every operation in use is rounded correctly on both sides, so results
/// are equal in every bit. Buffers may be longer than recorded.
pub(super) trait Twin {
    /// Computes what the kernel computes.
    fn run(self);
}

/// Attaches the code of a built-in kernel, where the recorder may have it.
pub(super) type WithCode = fn(Kernel, &Recorder) -> Kernel;

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
