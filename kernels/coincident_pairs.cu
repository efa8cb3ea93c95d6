#include "work.cuh"

// Counts the coincident pairs of each structure, one block per structure: half the sum over its
// residues, clamped to the largest count.
KERNEL(BLOCK)
coincident_pairs(const unsigned* header, const StructureSpan* structures,
                 const unsigned* coincident, int* pairs)
{
    wait_for_dependencies();
    __shared__ unsigned long long shared[BLOCK];
    each_block(header, STRUCTURES, [&](unsigned structure_index) {
        const StructureSpan& structure = structures[structure_index];
        unsigned long long sum = 0;
        for (unsigned i = threadIdx.x; i < structure.residue_count; i += BLOCK)
            sum += coincident[structure.residue_start + i];
        sum = block_sum(shared, sum);
        if (threadIdx.x == 0)
            pairs[structure_index] = int(min(sum / 2, 2147483647ull));
    });
}
