#include "other_chains.cuh"
#include "vector.cuh"

// The search for the nearest atom of another chain ends at this distance, in 0.001 A. A short
// search comes first.
constexpr int CHAIN_REACH = 12000, CHAIN_NEARBY = 5000;

// The squared distance of an atom in the upper and its chain in the lower 32 bits, so that of equal
// distances the one with the lower chain is less.
typedef unsigned long long Nearest;
constexpr Nearest NOTHING = ~0ull;

// The atom of another chain that is nearest to any of a residue's atoms, which lie in the box from
// low to high. All threads of the warp call. Exact if the distance is within `reach`. Skips cells
// that hold only the residue's own chain.
__device__ inline Nearest nearest_within(const Cells& cells, const Grid& grid,
                                         const unsigned* ranges, const ResidueSpan& residue,
                                         const Atom* atoms, Position low, Position high,
                                         int reach)
{
    Nearest nearest = NOTHING;
    each_of_other_chains(cells, grid, ranges, residue.chain, low, high, reach, [&](unsigned other) {
        const int x = cells.x[other], y = cells.y[other], z = cells.z[other];
        unsigned d2 = ~0u;
        for (unsigned a = 0; a < residue.atom_count; ++a) {
            const Atom atom = atoms[residue.atom_start + a];
            d2 = min(d2, squared(x - atom.x, y - atom.y, z - atom.z));
        }
        nearest = min(nearest, Nearest(d2) << 32 | tag_chain(cells.tag[other]));
    });
    for (unsigned stride = 16; stride > 0; stride /= 2)
        nearest = min(nearest, __shfl_xor_sync(~0u, nearest, stride));
    return nearest;
}

// Finds for each residue the nearest atom of another chain, one warp per residue. Writes its
// distance in A, whether that is below the cutoff, and its chain; of equally near chains the first.
KERNEL(32 * WARPS)
nearest_chain(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
              const Atom* atoms, CELL_PARAMS, const unsigned* ranges, float* distances,
              int* contacts, unsigned cutoff)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        const StructureSpan& structure = structures[residue.structure];
        Nearest nearest = NOTHING;
        if (structure.chain_count > 1 && residue.atom_count > 0) {
            Position low, high;
            corners(residue, atoms, low, high);
            const Cells cells = CELLS_OF_PARAMS;
            nearest = nearest_within(cells, structure.atom_grid, ranges, residue, atoms, low, high,
                                     CHAIN_NEARBY);
            if (nearest >> 32 >= CHAIN_NEARBY * CHAIN_NEARBY)
                nearest = nearest_within(cells, structure.atom_grid, ranges, residue, atoms, low,
                                         high, CHAIN_REACH);
        }
        if (threadIdx.x % 32 == 0) {
            const unsigned d2 = unsigned(nearest >> 32);
            const bool found = d2 < CHAIN_REACH * CHAIN_REACH;
            distances[row] = found ? float(sqrt(double(d2)) * 0.001) : null_real();
            contacts[2 * row] = found && d2 < cutoff * cutoff;
            contacts[2 * row + 1] = found ? int(unsigned(nearest) - structure.chain_start)
                                          : NULL_COUNT;
        }
    });
}
