#include "cells.cuh"
#include "work.cuh"

// Number of cells of a thread in a step.
constexpr unsigned SCAN_CELLS = 8;

// Finds the index of each cell's first sorted atom, one block per structure. A structure's sorted
// atoms start at the index of its first atom (or residue, by `axis`).
KERNEL(BLOCK)
cell_scan(const unsigned* header, const StructureSpan* structures, const unsigned* counts,
          unsigned* start, unsigned axis)
{
    __shared__ unsigned warp_sums[BLOCK / 32];
    each_block(header, STRUCTURES, [&](unsigned of_structure) {
        const StructureSpan& structure = structures[of_structure];
        const Grid& grid = axis == ATOMS ? structure.atom_grid : structure.residue_grid;
        const unsigned cells = unsigned(grid.wrap[0]) * grid.wrap[1] * grid.wrap[2];
        if (cells == 0)
            return;

        unsigned base = axis == ATOMS ? structure.atom_start : structure.residue_start;
        for (unsigned step = 0; step < cells; step += BLOCK * SCAN_CELLS) {
            const unsigned own = step + threadIdx.x * SCAN_CELLS;
            unsigned before[SCAN_CELLS], sum = 0;
            for (unsigned k = 0; k < SCAN_CELLS; ++k) {
                before[k] = sum;
                sum += own + k < cells ? counts[grid.first + own + k] : 0;
            }
            const unsigned offset = block_scan(warp_sums, sum, base) - sum;
            for (unsigned k = 0; k < SCAN_CELLS; ++k)
                if (own + k < cells)
                    start[grid.first + own + k] = offset + before[k];
            __syncthreads();
        }
        if (threadIdx.x == 0)
            start[grid.first + cells] = base;
    });
}
