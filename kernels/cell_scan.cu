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

        const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        unsigned base = axis == ATOMS ? structure.atom_start : structure.residue_start;
        for (unsigned step = 0; step < cells; step += BLOCK * SCAN_CELLS) {
            const unsigned own = step + threadIdx.x * SCAN_CELLS;
            unsigned before[SCAN_CELLS], sum = 0;
            for (unsigned k = 0; k < SCAN_CELLS; ++k) {
                before[k] = sum;
                sum += own + k < cells ? counts[grid.first + own + k] : 0;
            }
            unsigned inclusive = sum;
            for (unsigned stride = 1; stride < 32; stride *= 2) {
                const unsigned other = __shfl_up_sync(~0u, inclusive, stride);
                inclusive += lane >= stride ? other : 0;
            }
            if (lane == 31)
                warp_sums[warp] = inclusive;
            __syncthreads();
            unsigned offset = base + inclusive - sum;
            for (unsigned w = 0; w < BLOCK / 32; ++w) {
                offset += w < warp ? warp_sums[w] : 0;
                base += warp_sums[w];
            }
            for (unsigned k = 0; k < SCAN_CELLS; ++k)
                if (own + k < cells)
                    start[grid.first + own + k] = offset + before[k];
            __syncthreads();
        }
        if (threadIdx.x == 0)
            start[grid.first + cells] = base;
    });
}
