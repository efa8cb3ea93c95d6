#include "work.cuh"

// Number of terms that are added in single precision before they are added to the sum in double
// precision: few enough that the rounding error stays below 2e-6 of the sum.
constexpr unsigned GROUP = 32;
static_assert(TILE % GROUP == 0, "groups start at the same residues in every tile");

// Upper limit of a group's sum of 1/d^2, for distances of at least 0.001 A.
constexpr float SUM_MAX = 2.0f * GROUP;

// 1/x with an error of up to 6e-7, in operations whose results are bit-identical on a CPU: a guess
// from the bits, and two Newton steps whose constants spread the error evenly. The result for 0 is
// not below SUM_MAX.
__device__ inline float reciprocal(float x)
{
    const float guess = __uint_as_float(0x7ee80000u - __float_as_uint(x));
    const float better = guess * __fmaf_rn(x * guess, -1.1149222f, 2.1127994f);
    return __fmaf_rn(better, __fmaf_rn(-x, better, 1.0000005f), better);
}

// The position of a C-alpha: in floats relative to the corner of the structure's grid if the grid
// is so small that they are exact, otherwise as integers. w is the chain plus one if OWN_CHAIN,
// otherwise 1; 0 if the C-alpha is missing.
template <bool COMPACT, bool OWN_CHAIN>
__device__ inline int4 place(Atom atom, const Grid& grid)
{
    const int there = !present(atom) ? 0
        : OWN_CHAIN                  ? int(tag_chain(atom.tag)) + 1
                                     : __float_as_int(1.0f);
    if (!present(atom))
        atom = {grid.x, grid.y, grid.z, 0};
    if (!COMPACT)
        return {atom.x, atom.y, atom.z, there};
    return {__float_as_int(float(atom.x - grid.x)), __float_as_int(float(atom.y - grid.y)),
            __float_as_int(float(atom.z - grid.z)), there};
}

template <bool COMPACT> __device__ inline float difference(int a, int b)
{
    return COMPACT ? __int_as_float(a) - __int_as_float(b) : float(a - b);
}

template <bool COMPACT> __device__ inline float squared_distance(int4 a, int4 b)
{
    const float x = difference<COMPACT>(a.x, b.x);
    const float y = difference<COMPACT>(a.y, b.y);
    const float z = difference<COMPACT>(a.z, b.z);
    return __fmaf_rn(z, z, __fmaf_rn(y, y, x * x));
}

// 1 for a residue that counts, else 0: one that is present, and of the own chain if OWN_CHAIN.
template <bool OWN_CHAIN> __device__ inline float weight(int4 centre, int4 other)
{
    return OWN_CHAIN ? (other.w == centre.w ? 1.0f : 0.0f) : __int_as_float(other.w);
}

// A group's sum if a distance is 0: such pairs are counted instead of added.
template <bool COMPACT, bool OWN_CHAIN>
__device__ inline float careful_sum(int4 centre, const int4* group, unsigned& coincident)
{
    float sum = 0.0f;
    for (unsigned k = 0; k < GROUP; ++k) {
        const float d2 = squared_distance<COMPACT>(centre, group[k]);
        if (weight<OWN_CHAIN>(centre, group[k]) == 0.0f)
            continue;
        if (d2 > 0.0f)
            sum += reciprocal(d2);
        else
            ++coincident;
    }
    return sum;
}

// The sum over the structure, with distances in 0.001 A. All threads of the block call.
template <bool COMPACT, bool OWN_CHAIN>
__device__ inline double weighted_sum(int4* others, const Tile& tile, const Atom* atoms,
                                      const Grid& grid, Atom atom, unsigned& coincident)
{
    const int4 centre = place<COMPACT, OWN_CHAIN>(atom, grid);
    double total = 0.0;
    for (unsigned base = 0; base < tile.residue_count; base += TILE) {
        const unsigned length = min(TILE, tile.residue_count - base);
        const unsigned other = tile.residue_start + base + threadIdx.x;
        __syncthreads();
        if (threadIdx.x < TILE)
            others[threadIdx.x]
                = place<COMPACT, OWN_CHAIN>(threadIdx.x < length ? atoms[other] : Atom{}, grid);
        __syncthreads();
        for (unsigned group = 0; group < length; group += GROUP) {
            float sum = 0.0f;
#pragma unroll 8
            for (unsigned k = group; k < group + GROUP; ++k) {
                const float term = reciprocal(squared_distance<COMPACT>(centre, others[k]));
                sum = __fmaf_rn(weight<OWN_CHAIN>(centre, others[k]), term, sum);
            }
            if (!(sum < SUM_MAX))
                sum = careful_sum<COMPACT, OWN_CHAIN>(centre, others + group, coincident);
            total += double(sum);
        }
    }
    return total;
}

// Computes the sum of 1/d^2 over the other residues of the structure, or of the chain, in 1/A^2; one
// thread per residue. Residues at distance 0 are counted instead of added.
KERNEL(TILE)
weighted_contact_number(const unsigned* header, const StructureSpan* structures,
                        const ResidueSpan* residues, const Tile* tiles, const Atom* atoms,
                        float* sums, unsigned* coincident, unsigned own_chain)
{
    wait_for_dependencies();
    __shared__ int4 others[TILE];
    each_block(header, TILES, [&](unsigned tile_index) {
        const Tile tile = tiles[tile_index];
        if (tile.count == 0)
            return;
        const unsigned first = tile.residue_start + tile.first;
        const Grid& grid = structures[residues[first].structure].residue_grid;
        const bool compact = max(max(grid.extent[0], grid.extent[1]), grid.extent[2])
            <= 1u << (24 - grid.shift);
        const bool active = threadIdx.x < tile.count;
        const unsigned residue = first + threadIdx.x;
        const Atom atom = active ? atoms[residue] : Atom{};

        unsigned at_zero = 0;
        const double total = own_chain
            ? compact ? weighted_sum<true, true>(others, tile, atoms, grid, atom, at_zero)
                      : weighted_sum<false, true>(others, tile, atoms, grid, atom, at_zero)
            : compact ? weighted_sum<true, false>(others, tile, atoms, grid, atom, at_zero)
                      : weighted_sum<false, false>(others, tile, atoms, grid, atom, at_zero);
        if (active) {
            sums[residue] = present(atom) ? float(total * 1e6) : null_real();
            // Leaves out the residue itself, which is at distance 0.
            coincident[residue] = present(atom) ? at_zero - 1 : 0;
        }
    });
}
