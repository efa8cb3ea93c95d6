#include "work.cuh"

// Sums the numbers of pairs over the residues of a structure, up to and including each of them; one
// block per structure.
KERNEL(BLOCK)
pair_ends(const unsigned* header, const StructureSpan* structures, const int* degrees, int* ends)
{
    wait_for_dependencies();
    __shared__ unsigned warp_sums[BLOCK / 32];
    each_block(header, STRUCTURES, [&](unsigned structure_index) {
        const StructureSpan& structure = structures[structure_index];
        unsigned base = 0;
        for (unsigned step = 0; step < structure.residue_count; step += BLOCK) {
            const unsigned offset = step + threadIdx.x;
            const bool is_residue = offset < structure.residue_count;
            const unsigned degree = is_residue ? unsigned(degrees[structure.residue_start + offset]) : 0;
            const unsigned sum = block_scan(warp_sums, degree, base);
            if (is_residue)
                ends[structure.residue_start + offset] = int(sum);
            __syncthreads();
        }
    });
}
