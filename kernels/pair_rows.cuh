// Tables with a row for each pair of residues. One kernel counts each residue's partners, pair_ends
// sums them up, and another kernel lists them. A function each(visit) finds the partners of a
// residue with a warp: it calls visit(is_one, other) for 32 candidates at a time, one per lane.
#pragma once
#include "work.cuh"

// The number of partners.
template <typename Each> __device__ inline unsigned count_partners(Each each)
{
    unsigned count = 0;
    each([&](bool is_one, unsigned) { count += __popc(__ballot_sync(~0u, is_one)); });
    return count;
}

// Calls write(row, other) for each partner of residue `own`, with the rows in the partners' order.
// A structure's rows lie in its room: [structures, 2] has the first row and the number of rows. If
// they exceed it, no row is written. A residue's rows end at ends[]; `unsorted` is scratch memory.
template <typename Each, typename Write>
__device__ inline void list_partners(const StructureSpan* structures, unsigned of_structure,
                                     unsigned own, const unsigned* rooms, const int* ends,
                                     unsigned* unsorted, Each each, Write write)
{
    const StructureSpan& structure = structures[of_structure];
    const unsigned start = structure.residue_start;
    const unsigned total = unsigned(ends[start + structure.residue_count - 1]);
    if (total > rooms[2 * of_structure + 1])
        return;
    const unsigned first = rooms[2 * of_structure] + (own > start ? unsigned(ends[own - 1]) : 0);
    unsigned count = 0;
    each([&](bool is_one, unsigned other) {
        const unsigned found = __ballot_sync(~0u, is_one);
        if (is_one)
            unsorted[first + count + before(found)] = other;
        count += __popc(found);
    });
    __syncwarp();
    for (unsigned k = lane(); k < count; k += 32) {
        const unsigned other = unsorted[first + k];
        unsigned row = first;
        for (unsigned one = 0; one < count; ++one)
            row += unsorted[first + one] < other;
        write(row, other);
    }
}
