//! Declarations of the kernels that no single feature owns, and the one place where
//! built-in kernels get their code. A feature's own declarations are in its file.

use super::{Features, cpu, image};
use crate::record::{Kernel, Recorder};

/// Threads of a block where each takes one atom or residue.
pub(super) const THREADS: u32 = 256;

/// Threads of a block that take one chain or structure together.
pub(super) const BLOCK: u32 = 256;

/// Threads of a block whose warps take one residue each, as in `kernels/work.cuh`.
const WARPS_BLOCK: u32 = 128;

/// Declares a built-in kernel, still without its code.
pub(super) fn kernel(name: &str) -> Kernel {
    Kernel::new(name)
}

/// Attaches the code of a built-in kernel for `recorder`.
///
/// The kernels rely on the header and on the descriptors that [`super::pack`] writes.
/// A recorder that no engine made for [`Features`] gets the kernel without its code,
/// which then runs as its twin alone: what its batches upload could be written by
/// other code.
pub(super) fn with_code(kernel: Kernel, recorder: &Recorder) -> Kernel {
    if !recorder.is_for::<Features>() {
        return kernel;
    }
    // SAFETY: the image is what the build made of `kernels/*.cu`, and each declaration
    // names a function there with the parameters that it has. A kernel takes its bounds
    // from the header and from descriptors, never from the grid alone. The recorder is
    // the engine's own for `Features` (checked above), so nothing else records commands
    // around these launches or writes what they upload: the engine writes the header
    // within the capacity, and `pack` writes descriptors that lie within the item's
    // part of the batch, for structures whose parts `pack::extent` checked. No parameter
    // is declared changeable.
    unsafe { kernel.code(&image::image()) }
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
