//! A kernel that does copies and memsets of a graph.
//!
//! On an H100 (driver 580) a launch of a graph of 47 kernels in branches, 14 uploads, 6 memsets
//! and 34 downloads takes the host 96 us; with one copy or memset of each kind 28 us; as kernels
//! alone 1.2 us, whatever the branches. So a graph's small copies and memsets become kernels, which
//! access pinned memory in place.

use super::programmatic_launch;
use crate::backend::{FunctionId, Op};
use crate::record::{Image, Kernel};
use std::sync::OnceLock;

/// The most copies and memsets of a launch, as in copies.cu, which is compiled for them.
pub(super) const PIECES_MAX: usize = 96;

/// A graph's copies and memsets become kernels up to this mean size in bytes. The device's
/// copy engines do larger ones as fast, and leave its multiprocessors to kernels. All features take
/// 0.87 of the time by kernels in batches of 4,096 residues, 82 KiB each on average, and 1.13 of it
/// in batches of 16,384.
pub(super) const MEAN_BYTES_MAX: usize = 128 << 10;

/// Threads of a block, as in copies.cu, which is compiled for them.
const THREADS: u32 = 256;
/// The bytes that a block copies at a time: four words of 16 bytes a thread, as in copies.cu.
const CHUNK_BYTES: u64 = THREADS as u64 * WORDS_OF_THREAD * 16;
const WORDS_OF_THREAD: u64 = 4;
/// The most blocks of a launch. This many copy at the rate of the link to the host, and take 1% of an
/// H100 from kernels that run at the same time; 128 blocks take 6%.
const BLOCKS_MAX: u64 = 16;

/// Words of a piece among the arguments: where to, where from (0 for a memset), the number of
/// bytes, and the byte that a memset sets.
const PIECE_WORDS: usize = 4;
const ARGS_WORDS: usize = 1 + PIECE_WORDS * PIECES_MAX;
pub(super) const ARGS_BYTES: usize = ARGS_WORDS * size_of::<u64>();
const _: () = assert!(ARGS_BYTES <= 4096, "every device takes 4 KiB of arguments");

/// The kernel, with its code for a device of this compute capability.
pub(super) fn kernel(capability: (u32, u32)) -> &'static Kernel {
    static KERNELS: [OnceLock<Kernel>; 2] = [OnceLock::new(), OnceLock::new()];
    let waits = capability >= programmatic_launch::SINCE;
    KERNELS[usize::from(waits)].get_or_init(|| {
        let [plain, waiting]: [&[u8]; 2] = [
            include_bytes!("copies.ptx"),
            include_bytes!("copies_90.ptx"),
        ];
        let image = Image::compiled("copies", if waits { waiting } else { plain });
        let kernel = Kernel::new("tapeloop_copies")
            .block(THREADS)
            .waits_for_dependencies()
            .structure("pieces", ARGS_BYTES, &[]);
        // SAFETY: both texts take one struct of this size. They access the ranges that its pieces
        // name and no others, with any number of blocks of this size. Its addresses are not
        // declared as pointers: `CudaSlot` launches it over ranges that it has checked and leased,
        // and no caller gets its `FunctionId`. The text for compute capability 9.0 waits first.
        unsafe { kernel.code(&image) }
    })
}

/// The bytes that the kernel writes for a copy or memset; `None` for other operations.
pub(super) fn bytes(op: &Op) -> Option<usize> {
    piece(op).map(|[_, _, bytes, _]| bytes as usize)
}

/// The four words of a piece that the kernel of merged copies reads: target, source, bytes, and the
/// byte to set where the source is null. `None` for an operation that is never merged.
fn piece(op: &Op) -> Option<[u64; PIECE_WORDS]> {
    match *op {
        Op::Upload {
            host,
            device,
            bytes,
        } => Some([device, host, bytes as u64, 0]),
        Op::Download {
            device,
            host,
            bytes,
        } => Some([host, device, bytes as u64, 0]),
        Op::Memset {
            device,
            byte,
            bytes,
        } => Some([device, 0, bytes as u64, byte.into()]),
        Op::Copy { .. } | Op::Launch { .. } | Op::Timestamp { .. } => None,
    }
}

/// One launch that does all of `ops`, which are copies and memsets. None of them may use what another
/// writes.
///
/// # Panics
/// If there are more than [`PIECES_MAX`], or another operation among them.
pub(super) fn launch<'a>(function: FunctionId, ops: impl Iterator<Item = &'a Op>) -> Op {
    let mut args = vec![0; ARGS_WORDS].into_boxed_slice();
    let (count, places) = args.split_at_mut(1);
    let mut chunks = 0_u64;
    for (index, op) in ops.enumerate() {
        let piece = piece(op).expect("a copy or a memset");
        places[PIECE_WORDS * index..][..PIECE_WORDS].copy_from_slice(&piece);
        count[0] += 1;
        chunks = chunks.saturating_add(piece[2].div_ceil(CHUNK_BYTES));
    }
    Op::Launch {
        function,
        // One block if there is nothing to copy: a grid is not empty.
        grid: [chunks.clamp(1, BLOCKS_MAX) as u32, 1, 1],
        block: [THREADS, 1, 1],
        shared_bytes: 0,
        args,
    }
}

/// The copies and memsets that a launch from [`launch`] does, read from its arguments; `kinds` has an
/// operation of the kind of each. `None` if `launch` does another number of operations.
pub(super) fn ops_of<'a>(launch: &Op, kinds: impl Iterator<Item = &'a Op>) -> Option<Vec<Op>> {
    let Op::Launch { args, .. } = launch else {
        return None;
    };
    let (count, pieces) = args.split_first()?;
    let pieces = pieces.chunks_exact(PIECE_WORDS);
    let ops: Vec<Op> = kinds
        .zip(pieces)
        .map(|(kind, piece)| {
            let (to, from, bytes) = (piece[0], piece[1], piece[2] as usize);
            match kind {
                Op::Upload { .. } => Op::Upload {
                    host: from,
                    device: to,
                    bytes,
                },
                Op::Download { .. } => Op::Download {
                    device: from,
                    host: to,
                    bytes,
                },
                _ => Op::Memset {
                    device: to,
                    byte: piece[3] as u8,
                    bytes,
                },
            }
        })
        .collect();
    (ops.len() as u64 == *count).then_some(ops)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};
    use std::fmt::Write;

    #[test]
    fn the_ptx_was_made_of_the_source_as_it_is() {
        let digest = Sha256::digest(include_bytes!("copies.cu"));
        let mut expected = "// SHA-256 of copies.cu: ".to_owned();
        for byte in digest {
            write!(expected, "{byte:02x}").unwrap();
        }
        for ptx in [include_str!("copies.ptx"), include_str!("copies_90.ptx")] {
            assert_eq!(
                ptx.lines().next(),
                Some(&*expected),
                "run scripts/make_ptx.sh"
            );
        }
    }
}
