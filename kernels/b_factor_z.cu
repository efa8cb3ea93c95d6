#include "layout.cuh"

constexpr unsigned CHAIN_THREADS = 128;

// (b - mean) / sd over the residues of a chain that have a b, with the
// population's sd; one block a chain.
extern "C" __global__ void __launch_bounds__(CHAIN_THREADS)
b_factor_z(const unsigned* header, const Chain* chains, const unsigned* members, const float* b,
           float* z)
{
    if (blockIdx.x >= header[CHAINS])
        return;
    const Chain chain = chains[blockIdx.x];
    const unsigned* own = members + chain.member_start;

    __shared__ double shared[CHAIN_THREADS];
    double sum = 0.0, count = 0.0;
    for (unsigned m = threadIdx.x; m < chain.count; m += CHAIN_THREADS) {
        const float value = b[own[m]];
        if (!isnan(value)) {
            sum += double(value);
            count += 1.0;
        }
    }
    sum = block_sum<CHAIN_THREADS>(shared, sum);
    count = block_sum<CHAIN_THREADS>(shared, count);
    const double mean = sum / count;

    double squares = 0.0;
    for (unsigned m = threadIdx.x; m < chain.count; m += CHAIN_THREADS) {
        const float value = b[own[m]];
        const double deviation = double(value) - mean;
        if (!isnan(value))
            squares += deviation * deviation;
    }
    const double sd = sqrt(block_sum<CHAIN_THREADS>(shared, squares) / count);

    for (unsigned m = threadIdx.x; m < chain.count; m += CHAIN_THREADS) {
        const unsigned residue = own[m];
        const float value = b[residue];
        z[residue] = sd > 0.0 && !isnan(value) ? float((double(value) - mean) / sd) : null_real();
    }
}
