// What the host packs and every kernel reads. src/features/layout.rs is the
// other side; both assert the sizes.
#pragma once

// Totals of the batch along each axis, in the header.
enum Axis { RESIDUES, ATOMS, STRUCTURES, TILES, CHAINS };

// A position in 0.001 A. A missing one has MISSING in all three, which is far
// enough from every real one (at most 100,000,000 from the origin) to be within
// no cutoff, and near enough that differences do not overflow.
struct Position { int x, y, z; };
static_assert(sizeof(Position) == 12, "three packed ints");
constexpr int MISSING = 2000000000;

// Spans of one structure in the batch.
struct alignas(16) Structure { unsigned residue_start, residue_count, atom_start, atom_count; };
static_assert(sizeof(Structure) == 16, "one 16-byte load");

// Up to TILE residues of one structure: `first` counts from `residue_start`.
constexpr unsigned TILE = 128;
struct alignas(16) Tile { unsigned residue_start, residue_count, first, count; };
static_assert(sizeof(Tile) == 16, "one 16-byte load");

// The residues of one chain, as members[member_start ...], which count from
// `residue_start`.
struct alignas(16) Chain { unsigned residue_start, member_start, count, unused; };
static_assert(sizeof(Chain) == 16, "one 16-byte load");

constexpr int NULL_COUNT = -1;

__device__ inline float null_real() { return __int_as_float(0x7fc00000); }

__device__ inline bool present(Position p) { return p.x != MISSING; }

// Differences beyond this are taken for this, so that the sum of three squares
// fits 32 bits; cutoffs are below it.
constexpr int REACH = 37000;

// Whether a and b are closer than the square root of cutoff2, exactly.
__device__ inline bool within(Position a, Position b, unsigned cutoff2)
{
    unsigned x = min(abs(a.x - b.x), REACH);
    unsigned y = min(abs(a.y - b.y), REACH);
    unsigned z = min(abs(a.z - b.z), REACH);
    return x * x + y * y + z * z < cutoff2;
}

// Loads up to TILE positions of a structure, from residue `base` on, for all
// threads of the block; returns how many.
__device__ inline unsigned load_tile(Position* shared, const Position* positions,
                                     const Tile& tile, unsigned base)
{
    unsigned length = min(TILE, tile.residue_count - base);
    __syncthreads();
    if (threadIdx.x < length)
        shared[threadIdx.x] = positions[tile.residue_start + base + threadIdx.x];
    __syncthreads();
    return length;
}

// The sum over all THREADS threads of the block, always added in the same order.
template <unsigned THREADS, typename T>
__device__ inline T block_sum(T* shared, T value)
{
    __syncthreads();
    shared[threadIdx.x] = value;
    for (unsigned stride = THREADS / 2; stride > 0; stride /= 2) {
        __syncthreads();
        if (threadIdx.x < stride)
            shared[threadIdx.x] += shared[threadIdx.x + stride];
    }
    __syncthreads();
    return shared[0];
}
