#include "gather.cuh"
#include "work.cuh"

constexpr unsigned CUTOFFS_MAX = 8;

// Counts the other residues of the structure within each of `values` cutoffs, one warp per residue:
// those of all chains, or of the residue's chain. The header has the cutoffs from index `first` on.
KERNEL(32 * WARPS)
contact_number(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
               const Atom* atoms, CELL_PARAMS, int* counts, unsigned values, unsigned first,
               unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue) {
        const unsigned lane = threadIdx.x % 32;
        const Atom atom = atoms[residue];
        if (!present(atom)) {
            if (lane < values)
                counts[residue * values + lane] = NULL_COUNT;
            return;
        }
        unsigned cutoff2[CUTOFFS_MAX], reach = 0;
        int near[CUTOFFS_MAX];
#pragma unroll
        for (unsigned v = 0; v < CUTOFFS_MAX; ++v) {
            const unsigned cutoff = v < values ? header[first + v] : 0;
            cutoff2[v] = cutoff * cutoff;
            reach = max(reach, cutoff);
            near[v] = 0;
        }
        const Cells cells = CELLS_OF_PARAMS;
        const Grid& grid = structures[residues[residue].structure].residue_grid;
        uint2* places = warp_memory<Places, WARPS>().scratch;
        each_candidate(cells, grid, atom, reach, places, [&](bool has_atom, unsigned other) {
            if (!has_atom || (own_chain && !same_chain(cells.tag[other], atom.tag)))
                return;
            const unsigned d2 = squared(cells.x[other] - atom.x, cells.y[other] - atom.y,
                                        cells.z[other] - atom.z);
#pragma unroll
            for (unsigned v = 0; v < CUTOFFS_MAX; ++v)
                near[v] += d2 < cutoff2[v];
        });
#pragma unroll
        for (unsigned v = 0; v < CUTOFFS_MAX; ++v) {
            const int sum = warp_sum(near[v]);
            // Leaves out the residue itself, which is at distance 0.
            if (lane == 0 && v < values)
                counts[residue * values + v] = sum - 1;
        }
    });
}
