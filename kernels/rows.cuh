// The residues of a chain or of a structure.
#pragma once
#include "work.cuh"

// The residues of a chain or of a structure, by `axis`, which is CHAINS or STRUCTURES: for
// (unsigned k = 0; k < rows.count; ++k) rows[k].
struct Rows {
    unsigned start, count;
    const unsigned* members;

    __device__ inline Rows(const StructureSpan* structures, const ChainSpan* chains,
                           const unsigned* all_members, unsigned axis, unsigned unit)
    {
        const bool is_chain = axis == CHAINS;
        start = is_chain ? chains[unit].member_start : structures[unit].residue_start;
        count = is_chain ? chains[unit].count : structures[unit].residue_count;
        members = is_chain ? all_members : nullptr;
    }

    // Residue k as an index in the batch.
    __device__ inline unsigned operator[](unsigned k) const
    {
        return members ? members[start + k] : start + k;
    }
};
