// Tables with a row for each pair of residues. One kernel counts each residue's partners, pair_ends
// sums them up, and another kernel lists them. A function each(visit) finds the partners of a
// residue with a warp: it calls visit(is_partner, other) for 32 candidates at a time, one per lane.
#pragma once
#include "work.cuh"

// The number of partners.
template <typename Each> __device__ inline unsigned count_partners(Each each)
{
    unsigned count = 0;
    each([&](bool is_partner, unsigned) { count += __popc(__ballot_sync(~0u, is_partner)); });
    return count;
}

// Calls write(row, other) for each partner of a residue, with the rows in the partners' order. A
// structure's rows lie in its room: rooms[], [structures, 2], has the first row and the number of
// rows. If the rows exceed the room, none is written. A residue's rows end at ends[]; `unsorted` is
// scratch memory.
template <typename Each, typename Write>
__device__ inline void list_partners(const StructureSpan* structures, unsigned structure_index,
                                     unsigned residue, const unsigned* rooms, const int* ends,
                                     unsigned* unsorted, Each each, Write write)
{
    const StructureSpan& structure = structures[structure_index];
    const unsigned start = structure.residue_start;
    const unsigned total = unsigned(ends[start + structure.residue_count - 1]);
    if (total > rooms[2 * structure_index + 1])
        return;
    const unsigned first = rooms[2 * structure_index]
        + (residue > start ? unsigned(ends[residue - 1]) : 0);
    unsigned count = 0;
    each([&](bool is_partner, unsigned other) {
        const unsigned found = __ballot_sync(~0u, is_partner);
        if (is_partner)
            unsorted[first + count + before(found)] = other;
        count += __popc(found);
    });
    __syncwarp();
    for (unsigned k = lane(); k < count; k += 32) {
        const unsigned other = unsorted[first + k];
        unsigned row = first;
        for (unsigned compared = 0; compared < count; ++compared)
            row += unsorted[first + compared] < other;
        write(row, other);
    }
}
