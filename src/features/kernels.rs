//! The declarations of the built-in kernels, which the build script reads from `kernels/*.cu`.
//!
//! Each kernel has a module of its name with two types: `Args`, the arguments of a launch by name,
//! and `Views`, the arguments as its CPU twin sees them. The feature that owns the kernel
//! implements [`Twin`] for the views. The text of a kernel is thus its only declaration: a launch
//! or a twin with other parameters does not compile.

use super::layout::{
    Atom, AtomTag, Backbone, Bridges, ChainSpan, Position, ResidueSpan, SideChain, StructureSpan,
    Tile,
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

/// Attaches the code of a kernel, where the recorder may have it: the given code of a kernel of the
/// user's own, or that of a built-in one.
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

#[cfg(test)]
mod tests {
    use super::super::{cell_kind, density, grid, layout, side_chain_atoms};
    use layout::ResidueSpan;

    /// The value of a constant in a kernel's source.
    fn number(source: &str, name: &str) -> u32 {
        let text = source.split(&format!(" {name} = ")).nth(1).unwrap();
        let end = text.find([',', ';']).unwrap();
        text[..end].parse().unwrap()
    }

    #[test]
    fn constants_of_kernels_are_those_of_the_twins() {
        let limits = include_str!("../../kernels/limits.cuh");
        let structs = include_str!("../../kernels/layout.cuh");
        let cells = include_str!("../../kernels/cells.cuh");
        let residue_grid = include_str!("../../kernels/residue_grid.cu");
        let side_chains = include_str!("../../kernels/side_chain_atoms.cu");
        let expected = [
            (limits, "COORDINATE_MAX", layout::COORDINATE_MAX),
            (limits, "RADIUS_MAX", layout::RADIUS_MAX),
            (structs, "PRESENT", ResidueSpan::PRESENT.into()),
            (structs, "LINKED", ResidueSpan::LINKED.into()),
            (structs, "STANDARD", ResidueSpan::STANDARD.into()),
            (structs, "NAMED", ResidueSpan::NAMED.into()),
            (cells, "CELL_POINTS_MAX", density::CELL_POINTS_MAX),
            (cells, "MEAN_CELL_POINTS_MAX", density::MEAN_CELL_POINTS_MAX),
            (cells, "TOO_MANY", density::TOO_MANY),
            (cells, "TOO_MANY_ON_AVERAGE", density::TOO_MANY_ON_AVERAGE),
            (cells, "FLAG_MASK", (1 << cell_kind::FLAG_BITS) - 1),
            (residue_grid, "RESIDUE_CELL_SHIFT", grid::RESIDUE_CELL_SHIFT),
            (residue_grid, "CELLS_MIN", grid::CELLS_MIN),
            (
                side_chains,
                "DEFINITION_WORDS",
                side_chain_atoms::DEFINITION_WORDS as u32,
            ),
        ];
        for (source, name, value) in expected {
            assert_eq!(number(source, name), value, "{name}");
        }
    }
}
