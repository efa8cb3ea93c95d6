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

// Calls write(row, other) for each partner of a residue or atom, with the rows in the partners' order.
// The structure's residues or atoms are `units` from `start` on. Its rows lie in its room: room[0] is
// the first row, and room[1] the number of rows. If the rows exceed the room, none is written. The
// rows of a residue or atom end at ends[]; `unsorted` is scratch memory.
template <typename Each, typename Write>
__device__ inline void list_in_room(const unsigned* room, const int* ends, unsigned start,
                                    unsigned units, unsigned unit, unsigned* unsorted, Each each,
                                    Write write)
{
    const unsigned total = unsigned(ends[start + units - 1]);
    if (total > room[1])
        return;
    const unsigned first = room[0] + (unit > start ? unsigned(ends[unit - 1]) : 0);
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

// list_in_room for a residue. rooms[] is [structures, 2].
template <typename Each, typename Write>
__device__ inline void list_partners(const StructureSpan* structures, unsigned structure_index,
                                     unsigned residue, const unsigned* rooms, const int* ends,
                                     unsigned* unsorted, Each each, Write write)
{
    const StructureSpan& structure = structures[structure_index];
    list_in_room(rooms + 2 * structure_index, ends, structure.residue_start, structure.residue_count,
                 residue, unsorted, each, write);
}
