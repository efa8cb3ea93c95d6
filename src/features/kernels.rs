//! The declarations of the built-in kernels, which the build script reads from `kernels/*.cu`.
//!
//! Each kernel has a module of its name with two types: `Args`, the arguments of a launch by name,
//! and `Views`, the arguments as its CPU twin sees them. The feature that owns the kernel
//! implements [`Twin`] for the views. The text of a kernel is thus its only declaration: a launch
//! or a twin with other parameters does not compile.

use super::layout::{
    Atom, AtomFrame, AtomRoles, AtomTag, Backbone, Bridges, ChainSpan, Position, ResidueSpan,
    SideChain, StructureSpan, Tile,
};
use crate::record::{Arg, Buffer, DType, Element, Image, Kernel, Recorder, TwinLaunch};
use std::sync::Arc;

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

/// Attaches the code of a kernel: the given code of a kernel of the user's own, or that of a built-in one. Only
/// if an engine made the recorder for [`Features`](super::Features), as the code relies on what that one uploads;
/// otherwise the kernel has its twin alone.
pub(super) type WithCode = fn(Kernel, Option<&Arc<Image>>, &Recorder) -> Kernel;

macro_rules! structs {
    ($($name:ident),*) => {
        $(impl Element for $name {
            const DTYPE: DType = DType::of_struct::<$name>(stringify!($name));
        })*
    };
}
structs!(
    Atom,
    AtomFrame,
    AtomRoles,
    AtomTag,
    Backbone,
    Bridges,
    ChainSpan,
    Position,
    ResidueSpan,
    SideChain,
    StructureSpan,
    Tile
);
