// The structs that the host or a kernel writes and kernels read. src/features/layout.rs and grid.rs
// have the same structs; all files assert the sizes.
#pragma once

// Indices of the batch's totals along each axis in the header.
enum Axis { RESIDUES, ATOMS, STRUCTURES, TILES, CHAINS, CELLS, PAIR_ROOM, LIGANDS, AXES };

// A position in 0.001 A. A missing position has MISSING in all three coordinates. That is farther
// from every real position (at most 100,000,000 from the origin) than any cutoff, and near enough
// that differences do not overflow.
struct Position { int x, y, z; };
static_assert(sizeof(Position) == 12, "three packed ints");
constexpr int MISSING = 2000000000;

// An atom: its position and its tag; all zeros if there is none.
using AtomTag = unsigned;
struct alignas(16) Atom { int x, y, z; AtomTag tag; };
static_assert(sizeof(Atom) == 16, "one 16-byte load");

// The tag of an atom: its radius in 0.001 A (11 bits, never 0; a set with larger radii than RADIUS_MAX
// has the excess in the probe), whether it is of a side chain, whether it is polar, and its chain in
// the batch (19 bits). In the tag of a ligand's atom the two flags tell whether it belongs to a
// ligand, not an ion or glycan, and whether it is a metal.
__device__ inline bool present(Atom atom) { return atom.tag != 0; }
__device__ inline unsigned tag_radius(unsigned tag) { return tag & 2047u; }
constexpr unsigned TAG_SIDE = 1u << 11, TAG_POLAR = 1u << 12;
constexpr unsigned TAG_LIGAND = TAG_SIDE, TAG_METAL = TAG_POLAR;
__device__ inline bool tag_side(unsigned tag) { return tag & TAG_SIDE; }
__device__ inline unsigned tag_chain(unsigned tag) { return tag >> 13; }
constexpr unsigned CHAINS_MAX = 1u << 19;
__device__ inline bool same_chain(unsigned a, unsigned b) { return (a ^ b) >> 13 == 0; }

// What an atom can be in an interaction, as bits; 0 for none. `owner` is the index of its residue or
// ligand in its structure.
struct alignas(8) AtomRoles { unsigned owner, roles; };
static_assert(sizeof(AtomRoles) == 8, "one 8-byte load");

// The direction from the atoms that are bonded to a donor or acceptor to it, or the normal of a ring,
// as a vector of length 2^14; zero if there is none. `centre` leads from an atom that stands for a
// group to the group's centre, in 0.001 A; its fourth element is unused. That of a direction is 1 if two
// or more atoms are bonded to the donor or acceptor.
struct alignas(16) AtomFrame { short centre[4], direction[4]; };
static_assert(sizeof(AtomFrame) == 16, "one 16-byte load");

// The backbone of a residue; each atom may be missing.
struct alignas(16) Backbone { Position n, ca, c, o; };
static_assert(sizeof(Backbone) == 48, "three 16-byte loads");

// The side chain of a residue; each atom may be missing. `chain` are the atoms that define chi1 to
// chi5, with N, C-alpha and C-beta. `bins` has a bit for each chi that has a bin, chi1's the
// lowest. `symmetric` is the chi that half a turn changes in the names of atoms alone, and
// `missing` the number of missing atoms; NULL_COUNT for none.
struct SideChain {
    Position beta, chain[5];
    unsigned bins;
    int symmetric, missing;
    unsigned unused;
};
static_assert(sizeof(SideChain) == 88, "eighteen coordinates and four words");

// One residue of the batch; its atoms are atom_start ... + atom_count.
struct alignas(16) ResidueSpan {
    unsigned structure, chain, atom_start;
    unsigned short atom_count;
    unsigned char aa, flags;
};
static_assert(sizeof(ResidueSpan) == 16, "one 16-byte load");
constexpr unsigned char PRESENT = 1, LINKED = 2, STANDARD = 4, NAMED = 8;

// Whether a residue of the batch's `count` residues exists and is linked to the one before it.
__device__ inline bool linked(const ResidueSpan* residues, unsigned count, unsigned residue)
{
    return residue > 0 && residue < count && (residues[residue].flags & LINKED)
        && residues[residue - 1].structure == residues[residue].structure;
}

// A grid of cubic cells over one structure, with an edge of 2^shift; see src/features/grid.rs.
struct Grid {
    int x, y, z;
    unsigned first;
    unsigned short extent[3], wrap[3];
    unsigned shift;
};
static_assert(sizeof(Grid) == 32, "eight words");

// One structure of the batch; `predicted` is not 0 if its B factors are pLDDT.
struct alignas(16) StructureSpan {
    unsigned residue_start, residue_count, atom_start, atom_count, chain_start, chain_count;
    unsigned predicted, tile_start;
    // Atoms of ligands, which follow the others along the axis of atoms, those of glycans first;
    // atom_grid includes them.
    unsigned ligand_atom_count, glycan_atom_count;
    unsigned ligand_start, ligand_count;
    Grid atom_grid, residue_grid;
};
static_assert(sizeof(StructureSpan) == 112, "seven 16-byte loads");

// Up to TILE residues of one structure: `first` counts from `residue_start`.
constexpr unsigned TILE = 128;
struct alignas(16) Tile { unsigned residue_start, residue_count, first, count; };
static_assert(sizeof(Tile) == 16, "one 16-byte load");

// The residues of one chain, as members[member_start ...]: residues of the batch in the chain's
// order.
struct alignas(16) ChainSpan { unsigned structure, member_start, count, unused; };
static_assert(sizeof(ChainSpan) == 16, "one 16-byte load");

constexpr int NULL_COUNT = -1;

__device__ inline float null_real() { return __int_as_float(0x7fc00000); }
__device__ inline double null_double() { return __longlong_as_double(0x7ff8000000000000); }

__device__ inline bool present(Position p) { return p.x != MISSING; }

// Larger differences of coordinates are clamped to this, so that the sum of three squares fits 32
// bits; cutoffs are below it.
constexpr int REACH = 37000;

// The squared length of a difference of positions. It is exact below REACH^2, and otherwise larger
// than any cutoff's square.
__device__ inline unsigned squared(int dx, int dy, int dz)
{
    unsigned x = min(abs(dx), REACH);
    unsigned y = min(abs(dy), REACH);
    unsigned z = min(abs(dz), REACH);
    return x * x + y * y + z * z;
}

// The sum over the warp; every thread gets it.
template <typename T> __device__ inline T warp_sum(T value)
{
    for (unsigned stride = 16; stride > 0; stride /= 2)
        value += __shfl_xor_sync(~0u, value, stride);
    return value;
}

// The sum over the warp's threads from the first up to and including this one.
__device__ inline unsigned warp_scan(unsigned value)
{
    const unsigned lane = threadIdx.x % 32;
    for (unsigned stride = 1; stride < 32; stride *= 2) {
        const unsigned other = __shfl_up_sync(~0u, value, stride);
        value += lane >= stride ? other : 0;
    }
    return value;
}

// The maximum over the warp; every thread gets it.
__device__ inline float warp_max(float value)
{
    for (unsigned stride = 16; stride > 0; stride /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, stride));
    return value;
}
