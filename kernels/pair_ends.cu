#include "work.cuh"

// Sums the numbers of pairs over the residues of a structure, up to and with each of them; one
// block per structure.
KERNEL(BLOCK)
pair_ends(const unsigned* header, const StructureSpan* structures, const int* degrees, int* ends)
{
    __shared__ unsigned warp_sums[BLOCK / 32];
    each_block(header, STRUCTURES, [&](unsigned of_structure) {
        const StructureSpan& structure = structures[of_structure];
        unsigned base = 0;
        for (unsigned step = 0; step < structure.residue_count; step += BLOCK) {
            const unsigned own = step + threadIdx.x;
            const bool is_one = own < structure.residue_count;
            const unsigned degree = is_one ? unsigned(degrees[structure.residue_start + own]) : 0;
            const unsigned sum = block_scan(warp_sums, degree, base);
            if (is_one)
                ends[structure.residue_start + own] = int(sum);
            __syncthreads();
        }
    });
}
