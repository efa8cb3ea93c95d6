//! Declarations of the kernels that no single feature owns. A feature's own are
//! in its file.

use super::{cpu, image};
use crate::record::Kernel;

/// Threads of a block where each takes one atom or residue.
pub(super) const THREADS: u32 = 256;

/// Threads of a block that take one chain or structure together.
pub(super) const BLOCK: u32 = 256;

/// Threads of a block whose warps take one residue each, as in `kernels/work.cuh`.
const WARPS_BLOCK: u32 = 128;

/// A built-in kernel.
pub(super) fn kernel(name: &str) -> Kernel {
    Kernel::new(name, &image::image())
}

/// Adds the parameters of sorted atoms, whose arguments are
/// [`Cells::args`](super::recording::Cells::args).
pub(super) fn reads_cells(kernel: Kernel) -> Kernel {
    kernel
        .reads::<u32>("cell_start")
        .reads::<i32>("cell_x")
        .reads::<i32>("cell_y")
        .reads::<i32>("cell_z")
        .reads::<u32>("cell_tag")
        .reads::<u32>("cell_source")
}

/// A kernel of which each warp takes a residue and looks at the sorted atoms around
/// it; its own parameters follow.
pub(super) fn around_residues(name: &str) -> Kernel {
    let kernel = kernel(name)
        .block(WARPS_BLOCK)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("residues")
        .reads::<i32>("atoms");
    reads_cells(kernel)
}

pub(super) fn cell_count() -> Kernel {
    kernel("cell_count")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("chains")
        .reads::<i32>("atoms")
        .updates::<u32>("counts")
        .scalar::<u32>("axis")
        .twin(cpu::cell_count)
}

pub(super) fn cell_scan() -> Kernel {
    kernel("cell_scan")
        .block(BLOCK)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("counts")
        .writes::<u32>("start")
        .scalar::<u32>("axis")
        .twin(cpu::cell_scan)
}

pub(super) fn cell_fill() -> Kernel {
    kernel("cell_fill")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("chains")
        .reads::<i32>("atoms")
        .reads::<u32>("start")
        .updates::<u32>("counts")
        .writes::<i32>("x")
        .writes::<i32>("y")
        .writes::<i32>("z")
        .writes::<u32>("tag")
        .writes::<u32>("source")
        .scalar::<u32>("axis")
        .twin(cpu::cell_fill)
}

pub(super) fn atom_residue() -> Kernel {
    kernel("atom_residue")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<u32>("residues")
        .updates::<u32>("residue_of")
        .twin(cpu::atom_residue)
}
