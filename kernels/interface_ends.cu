#include "work.cuh"

// Sums degrees over the residues of a structure, or over its chains, up to and with each of them;
// one block per structure. totals[] has the sum of each structure.
KERNEL(BLOCK)
interface_ends(const unsigned* header, const StructureSpan* structures, const int* degrees,
               int* ends, int* totals, unsigned of_chains)
{
    __shared__ unsigned warp_sums[BLOCK / 32];
    each_block(header, STRUCTURES, [&](unsigned of_structure) {
        const StructureSpan& structure = structures[of_structure];
        const unsigned first = of_chains ? structure.chain_start : structure.residue_start;
        const unsigned count = of_chains ? structure.chain_count : structure.residue_count;
        unsigned base = 0;
        for (unsigned step = 0; step < count; step += BLOCK) {
            const unsigned own = step + threadIdx.x;
            const unsigned degree = own < count ? unsigned(degrees[first + own]) : 0;
            const unsigned sum = block_scan(warp_sums, degree, base);
            if (own < count)
                ends[first + own] = int(sum);
            __syncthreads();
        }
        if (threadIdx.x == 0)
            totals[of_structure] = int(base);
    });
}
