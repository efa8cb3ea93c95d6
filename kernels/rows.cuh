// The residues of a chain or of a structure.
#pragma once
#include "layout.cuh"

constexpr unsigned ROW_THREADS = 128;

// The rows of block `blockIdx.x` of CHAINS or STRUCTURES, by `axis`:
// for (unsigned k = 0; k < rows.count; ++k) rows[k].
struct Rows {
    unsigned start, count;
    const unsigned* members;

    __device__ inline Rows(const Structure* structures, const Chain* chains,
                           const unsigned* all_members, unsigned axis)
    {
        const bool of_chain = axis == CHAINS;
        start = of_chain ? chains[blockIdx.x].member_start : structures[blockIdx.x].residue_start;
        count = of_chain ? chains[blockIdx.x].count : structures[blockIdx.x].residue_count;
        members = of_chain ? all_members : nullptr;
    }

    // Row k as a residue of the batch.
    __device__ inline unsigned operator[](unsigned k) const
    {
        return members ? members[start + k] : start + k;
    }
};
