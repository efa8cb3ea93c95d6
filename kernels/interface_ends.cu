#include "work.cuh"

// Sums degrees over the residues of a structure, or over its chains, up to and including each of
// them; one block per structure. totals[] has the sum of each structure.
KERNEL(BLOCK)
interface_ends(const unsigned* header, const StructureSpan* structures, const int* degrees,
               int* ends, int* totals, unsigned of_chains)
{
    wait_for_dependencies();
    __shared__ unsigned warp_sums[BLOCK / 32];
    each_block(header, STRUCTURES, [&](unsigned structure_index) {
        const StructureSpan& structure = structures[structure_index];
        const unsigned first = of_chains ? structure.chain_start : structure.residue_start;
        const unsigned count = of_chains ? structure.chain_count : structure.residue_count;
        unsigned base = 0;
        for (unsigned step = 0; step < count; step += BLOCK) {
            const unsigned offset = step + threadIdx.x;
            const unsigned degree = offset < count ? unsigned(degrees[first + offset]) : 0;
            const unsigned sum = block_scan(warp_sums, degree, base);
            if (offset < count)
                ends[first + offset] = int(sum);
            __syncthreads();
        }
        if (threadIdx.x == 0)
            totals[structure_index] = int(base);
    });
}
