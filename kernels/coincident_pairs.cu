#include "layout.cuh"

constexpr unsigned PAIR_THREADS = 128;

// Half the sum over a structure's residues, at most the largest count; one block a
// structure.
extern "C" __global__ void __launch_bounds__(PAIR_THREADS)
coincident_pairs(const unsigned* header, const Structure* structures,
                 const unsigned* coincident, int* pairs)
{
    if (blockIdx.x >= header[STRUCTURES])
        return;
    const Structure& structure = structures[blockIdx.x];
    __shared__ unsigned long long shared[PAIR_THREADS];
    unsigned long long sum = 0;
    for (unsigned i = threadIdx.x; i < structure.residue_count; i += PAIR_THREADS)
        sum += coincident[structure.residue_start + i];
    sum = block_sum<PAIR_THREADS>(shared, sum);
    if (threadIdx.x == 0)
        pairs[blockIdx.x] = int(min(sum / 2, 2147483647ull));
}
