// Goes through the atoms of other chains around a box with a warp.
#pragma once
#include "cells.cuh"
#include "work.cuh"

// Calls visit(sorted) for every sorted atom of another chain within `reach` of a box, and for some
// farther ones, each on one lane. All threads of the warp call. `ranges` are those of chain_range;
// cells that hold only atoms of `own_chain` are skipped.
template <typename Visit>
__device__ inline void each_of_other_chains(const Cells& cells, const Grid& grid,
                                            const unsigned* ranges, unsigned own_chain,
                                            Position low, Position high, int reach, Visit visit)
{
    const Runs runs(grid, low, high, reach);
    for (unsigned base = 0; base < runs.count; base += 32) {
        // Each lane searches a run for the cells that hold other chains.
        unsigned first = 0, end = 0;
        if (base + lane() < runs.count) {
            unsigned cell, last;
            runs.cells(base + lane(), cell, last);
            for (; cell < last; ++cell) {
                const unsigned highest = ranges[2 * cell + 1];
                const bool is_only_own = highest == own_chain + 1
                    && ranges[2 * cell] == CHAINS_MAX - own_chain;
                if (highest != 0 && !is_only_own) {
                    first = end == 0 ? cell : first;
                    end = cell + 1;
                }
            }
        }
        for (unsigned found = __ballot_sync(~0u, end > 0); found; found &= found - 1) {
            const int leader = __ffs(found) - 1;
            const unsigned from = cells.start[__shfl_sync(~0u, first, leader)];
            const unsigned to = cells.start[__shfl_sync(~0u, end, leader)];
            for (unsigned sorted = from + lane(); sorted < to; sorted += 32)
                if (tag_chain(cells.tag[sorted]) != own_chain)
                    visit(sorted);
        }
    }
}
