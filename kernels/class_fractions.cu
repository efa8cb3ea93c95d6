#include "rows.cuh"

// The shares of helix, strand and coil among the rows that have a secondary
// structure, whose class is the second of each row's two states; one block a chain
// or a structure, as `axis` says.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
class_fractions(const unsigned* header, const Structure* structures, const Chain* chains,
                const unsigned* members, const int* states, float* fractions, unsigned axis)
{
    if (blockIdx.x >= header[axis])
        return;
    const Rows rows(structures, chains, members, axis);
    unsigned counts[3] = {};
    for (unsigned k = threadIdx.x; k < rows.count; k += ROW_THREADS) {
        const int state = states[2 * rows[k] + 1];
        for (int of = 0; of < 3; ++of)
            counts[of] += state == of;
    }
    __shared__ unsigned shared[ROW_THREADS];
    for (int of = 0; of < 3; ++of)
        counts[of] = block_sum<ROW_THREADS>(shared, counts[of]);
    const unsigned all = counts[0] + counts[1] + counts[2];
    if (threadIdx.x < 3) {
        const unsigned own = threadIdx.x == 0 ? counts[0] : threadIdx.x == 1 ? counts[1] : counts[2];
        fractions[3 * blockIdx.x + threadIdx.x] =
            all > 0 ? float(double(own) / double(all)) : null_real();
    }
}
