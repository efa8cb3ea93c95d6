#include "work.cuh"

// Sums the numbers of contacts over the residues of a structure, up to and with each of them; one
// block per structure.
KERNEL(BLOCK)
contact_ends(const unsigned* header, const StructureSpan* structures, const int* degrees, int* ends)
{
    __shared__ unsigned warp_sums[BLOCK / 32];
    each_block(header, STRUCTURES, [&](unsigned of_structure) {
        const StructureSpan& structure = structures[of_structure];
        const unsigned warp = threadIdx.x / 32;
        unsigned base = 0;
        for (unsigned step = 0; step < structure.residue_count; step += BLOCK) {
            const unsigned own = step + threadIdx.x;
            const bool is_one = own < structure.residue_count;
            unsigned sum = is_one ? unsigned(degrees[structure.residue_start + own]) : 0;
            for (unsigned stride = 1; stride < 32; stride *= 2) {
                const unsigned other = __shfl_up_sync(~0u, sum, stride);
                sum += lane() >= stride ? other : 0;
            }
            if (lane() == 31)
                warp_sums[warp] = sum;
            __syncthreads();
            sum += base;
            for (unsigned w = 0; w < BLOCK / 32; ++w) {
                sum += w < warp ? warp_sums[w] : 0;
                base += warp_sums[w];
            }
            if (is_one)
                ends[structure.residue_start + own] = int(sum);
            __syncthreads();
        }
    });
}
