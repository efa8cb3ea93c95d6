// The residues of a chain or of a structure.
#pragma once
#include "work.cuh"

// The residues of unit `own` of CHAINS or STRUCTURES, by `axis`: for (unsigned k = 0; k <
// rows.count; ++k) rows[k].
struct Rows {
    unsigned start, count;
    const unsigned* members;

    __device__ inline Rows(const StructureSpan* structures, const ChainSpan* chains,
                           const unsigned* all_members, unsigned axis, unsigned own)
    {
        const bool of_chain = axis == CHAINS;
        start = of_chain ? chains[own].member_start : structures[own].residue_start;
        count = of_chain ? chains[own].count : structures[own].residue_count;
        members = of_chain ? all_members : nullptr;
    }

    // Residue k as an index in the batch.
    __device__ inline unsigned operator[](unsigned k) const
    {
        return members ? members[start + k] : start + k;
    }
};
