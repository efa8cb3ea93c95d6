#include "cells.cuh"
#include "work.cuh"

// The number of cells that a thread takes in a step.
constexpr unsigned SCAN_CELLS = 8;

// Finds the index of each cell's first sorted atom, one block per structure. A structure's sorted
// atoms start at the index of its first atom (or residue, by `axis`). A structure whose atoms are
// too dense gets a flag, and its cells are empty; see src/features/density.rs.
KERNEL(BLOCK)
cell_scan(const unsigned* header, const StructureSpan* structures, const unsigned* counts,
          unsigned* start, unsigned* flags /* updated */, unsigned axis, unsigned flag_shift)
{
    wait_for_dependencies();
    __shared__ unsigned warp_sums[BLOCK / 32];
    __shared__ unsigned long long all_pairs[BLOCK];
    each_block(header, STRUCTURES, [&](unsigned structure_index) {
        const StructureSpan& structure = structures[structure_index];
        const Grid& grid = axis == ATOMS ? structure.atom_grid : structure.residue_grid;
        const unsigned cells = unsigned(grid.wrap[0]) * grid.wrap[1] * grid.wrap[2];
        if (cells == 0)
            return;

        const unsigned first = axis == ATOMS ? structure.atom_start : structure.residue_start;
        unsigned base = first, most = 0;
        unsigned long long pairs = 0;
        for (unsigned step = 0; step < cells; step += BLOCK * SCAN_CELLS) {
            const unsigned cell = step + threadIdx.x * SCAN_CELLS;
            unsigned before[SCAN_CELLS], sum = 0;
            for (unsigned k = 0; k < SCAN_CELLS; ++k) {
                before[k] = sum;
                const unsigned count = cell + k < cells ? counts[grid.first + cell + k] : 0;
                most = max(most, count);
                pairs += 1ull * count * count;
                sum += count;
            }
            const unsigned offset = block_scan(warp_sums, sum, base) - sum;
            for (unsigned k = 0; k < SCAN_CELLS; ++k)
                if (cell + k < cells)
                    start[grid.first + cell + k] = offset + before[k];
            __syncthreads();
        }

        unsigned flag = 0;
        if (__syncthreads_or(most > CELL_POINTS_MAX))
            flag = TOO_MANY;
        else if (__syncthreads_or(most > MEAN_CELL_POINTS_MAX)) {
            pairs = block_sum(all_pairs, pairs);
            flag = pairs > 1ull * MEAN_CELL_POINTS_MAX * (base - first) ? TOO_MANY_ON_AVERAGE : 0;
        }
        for (unsigned cell = threadIdx.x; flag != 0 && cell < cells; cell += BLOCK)
            start[grid.first + cell] = first;
        if (threadIdx.x == 0) {
            start[grid.first + cells] = flag != 0 ? first : base;
            flags[structure_index] |= flag << flag_shift;
        }
    });
}
