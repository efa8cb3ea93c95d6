// The contacts of a residue with later residues of its structure.
#pragma once
#include "gather.cuh"

// Calls visit(found, is_contact, other) for 32 candidates at a time, one per lane: `found` has a bit
// for each lane that has a contact, and `other` is that residue. `places` is [32].
template <typename Visit>
__device__ inline void each_contact(const Cells& cells, const Grid& grid, unsigned own, Atom point,
                                    unsigned cutoff, unsigned own_chain, uint2* places, Visit visit)
{
    each_candidate(cells, grid, point, int(cutoff), places, [&](bool is_one, unsigned at) {
        unsigned other = 0;
        bool is_contact = false;
        if (is_one) {
            other = cells.source[at];
            const unsigned d2 = squared(cells.x[at] - point.x, cells.y[at] - point.y,
                                        cells.z[at] - point.z);
            is_contact = other > own && d2 < cutoff * cutoff
                && !(own_chain && !same_chain(cells.tag[at], point.tag));
        }
        visit(__ballot_sync(~0u, is_contact), is_contact, other);
    });
}
