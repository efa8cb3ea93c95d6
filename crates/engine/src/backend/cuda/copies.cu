// Several copies and memsets of a graph as one kernel. `copies.ptx` and `copies_90.ptx` are what nvcc
// makes of this.
// After a change run scripts/make_ptx.sh; a test compares this text's digest.

// The most pieces of a launch: `PIECES_MAX` in copies.rs.
constexpr unsigned PIECES = 96;
// Threads of a block, and the bytes that it copies at a time: `CHUNK_BYTES` in copies.rs.
constexpr unsigned THREADS = 256;
constexpr unsigned WORDS = 4;
constexpr unsigned long long CHUNK = THREADS * WORDS * sizeof(uint4);

struct Piece {
    unsigned char* to;
    // Null for a memset.
    const unsigned char* from;
    unsigned long long bytes;
    // The byte that a memset sets.
    unsigned long long fill;
};

struct Pieces {
    unsigned long long count;
    Piece pieces[PIECES];
};

__device__ inline unsigned long long chunks(const Piece& piece)
{
    return (piece.bytes + CHUNK - 1) / CHUNK;
}

__device__ inline void copy_byte(const Piece& piece, unsigned long long at)
{
    piece.to[at] = piece.from ? __ldcv(piece.from + at) : (unsigned char)piece.fill;
}

// Copies all pieces, chunk by chunk; the blocks take chunks in turns.
extern "C" __global__ void __launch_bounds__(THREADS)
tapeloop_copies(const __grid_constant__ Pieces all)
{
#if __CUDA_ARCH__ >= 900
    // The kernel may start before the work before it has ended (programmatic dependent launch).
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    unsigned at = 0;
    // The first chunk of piece `at`.
    unsigned long long first = 0;
    for (unsigned long long chunk = blockIdx.x;; chunk += gridDim.x) {
        for (; at < all.count && chunk - first >= chunks(all.pieces[at]); ++at)
            first += chunks(all.pieces[at]);
        if (at >= all.count)
            return;
        const Piece piece = all.pieces[at];
        const unsigned long long begin = (chunk - first) * CHUNK;
        const unsigned long long end = min(piece.bytes, begin + CHUNK);
        if (((unsigned long long)piece.to | (unsigned long long)piece.from) % sizeof(uint4) != 0) {
            for (unsigned long long byte = begin + threadIdx.x; byte < end; byte += THREADS)
                copy_byte(piece, byte);
            continue;
        }
        const unsigned fill = 0x01010101u * (unsigned char)piece.fill;
        uint4 words[WORDS];
        for (unsigned word = 0; word < WORDS; ++word) {
            const unsigned long long byte = begin + (word * THREADS + threadIdx.x) * sizeof(uint4);
            if (byte + sizeof(uint4) <= end)
                words[word] = piece.from ? __ldcv((const uint4*)(piece.from + byte))
                                         : make_uint4(fill, fill, fill, fill);
        }
        for (unsigned word = 0; word < WORDS; ++word) {
            const unsigned long long byte = begin + (word * THREADS + threadIdx.x) * sizeof(uint4);
            if (byte + sizeof(uint4) <= end)
                *(uint4*)(piece.to + byte) = words[word];
        }
        const unsigned long long rest = end - end % sizeof(uint4) + threadIdx.x;
        if (rest < end)
            copy_byte(piece, rest);
    }
}
